//! A transport with faults.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use super::FaultControl;
use super::dice::{Dice, Direction, Fate};
use super::held::Held;
use crate::{BufferLengths, Capabilities, NetError, ReceiveBatch, Transmit, Transport};

/// Trains that are taken from the inner transport at a time.
const SLOTS: usize = 16;

/// Any transport, with dice between it and the caller.
///
/// Outgoing: runs of datagrams that pass stay trains. Incoming: datagrams are dealt from `arrived` one by one, and what
/// does not fit into the caller's batch waits there (a wait on the descriptor does not see it).
#[derive(Debug)]
pub(super) struct FaultyTransport {
    inner: Box<dyn Transport>,
    outgoing: Dice,
    held_outgoing: Held,
    incoming: Dice,
    held_incoming: Held,
    arrived: ReceiveBatch,
    /// The next datagram to deal: which train of `arrived`, and where in it.
    dealt: (usize, usize),
}

impl FaultyTransport {
    pub(super) fn new(
        inner: Box<dyn Transport>,
        control: &FaultControl,
        outgoing: fastrand::Rng,
        incoming: fastrand::Rng,
    ) -> Self {
        Self {
            inner,
            outgoing: Dice::new(outgoing, &control.shared, Direction::Outgoing),
            held_outgoing: Held::new(),
            incoming: Dice::new(incoming, &control.shared, Direction::Incoming),
            held_incoming: Held::new(),
            arrived: ReceiveBatch::new(SLOTS),
            dealt: (0, 0),
        }
    }

    /// Sends the next datagrams of a train that suffer the same fate, and returns how many bytes were accepted.
    fn send_run(&mut self, rest: Transmit<'_>) -> Result<usize, NetError> {
        let stride = rest.stride();
        let count = rest.datagrams().len().min(self.held_outgoing.before_next());
        let passing = self.outgoing.passes(count);
        if passing > 0 {
            let length = (passing * stride).min(rest.payload.len());
            let run = Transmit {
                payload: &rest.payload[..length],
                segment_size: stride,
                ..rest
            };
            let accepted = self.inner.send(&[run])?;
            let count = accepted.div_ceil(stride);
            self.outgoing.passed(count);
            self.held_outgoing.overtaken(count);
            return Ok(accepted);
        }
        let datagram = &rest.payload[..stride.min(rest.payload.len())];
        let alone = Transmit {
            payload: datagram,
            segment_size: stride,
            ..rest
        };
        let fate = self.outgoing.next();
        match fate {
            Fate::Lose => {}
            Fate::Hold(overtakers) if !self.held_outgoing.is_full() => {
                self.held_outgoing
                    .keep(rest.destination, None, datagram, overtakers);
            }
            Fate::Pass | Fate::Hold(_) | Fate::Duplicate => {
                if self.inner.send(&[alone])? == 0 {
                    return Ok(0);
                }
                self.held_outgoing.overtaken(1);
                if fate == Fate::Duplicate {
                    // Where there is no room for it, the duplicate is lost, as duplicates may be.
                    let _ = self.inner.send(&[alone]);
                }
            }
        }
        self.outgoing.happened(fate);
        Ok(datagram.len())
    }

    /// Sends what was held back for long enough. An error means that it is lost: its sender was told of success before.
    fn send_held(&mut self) {
        let inner = &mut self.inner;
        self.held_outgoing.release(|held| {
            let transmit = match held.address {
                Some(destination) => Transmit::to(destination, &held.bytes),
                None => Transmit::connected(&held.bytes),
            };
            !matches!(inner.send(&[transmit]), Ok(0))
        });
    }

    /// Deals what has arrived until nothing is left or `batch` is full.
    fn deal(&mut self, batch: &mut ReceiveBatch) {
        let (index, mut offset) = self.dealt;
        for train in self.arrived.datagram_runs().skip(index) {
            for datagram in train.datagrams().skip(offset) {
                let fate = self.incoming.next();
                match fate {
                    Fate::Lose => {}
                    Fate::Hold(overtakers) if !self.held_incoming.is_full() => {
                        self.held_incoming.keep(
                            Some(train.source),
                            train.timestamp_ns,
                            datagram,
                            overtakers,
                        );
                    }
                    Fate::Pass | Fate::Hold(_) | Fate::Duplicate => {
                        if !batch.push_coalesced(train.source, train.timestamp_ns, datagram) {
                            self.dealt.1 = offset;
                            return;
                        }
                        self.held_incoming.overtaken(1);
                        if fate == Fate::Duplicate {
                            batch.push_coalesced(train.source, train.timestamp_ns, datagram);
                        }
                        hand_on(&mut self.held_incoming, batch);
                    }
                }
                self.incoming.happened(fate);
                offset += 1;
            }
            self.dealt.0 += 1;
            offset = 0;
        }
        self.dealt = (self.arrived.datagram_runs().len(), 0);
    }
}

/// Hands on what was held back for long enough.
fn hand_on(held: &mut Held, batch: &mut ReceiveBatch) {
    held.release(|held| {
        // What arrives has a source.
        held.address
            .is_none_or(|source| batch.push_coalesced(source, held.timestamp_ns, &held.bytes))
    });
}

impl Transport for FaultyTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        self.held_outgoing.called();
        let mut accepted = 0;
        for transmit in batch {
            let mut rest = *transmit;
            while !rest.payload.is_empty() {
                let taken = match self.send_run(rest) {
                    Ok(taken) => taken,
                    Err(error) if accepted == 0 => return Err(error),
                    Err(_) => 0,
                };
                self.send_held();
                if taken == 0 {
                    return Ok(accepted);
                }
                accepted += taken;
                rest.segment_size = transmit.stride();
                rest.payload = &rest.payload[taken..];
            }
        }
        self.send_held();
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        self.held_outgoing.called();
        self.send_held();
        self.held_incoming.called();
        if self.dealt.0 >= self.arrived.datagram_runs().len() {
            // No more than is dealt now: what waits here shows on no descriptor.
            self.arrived.clear_to(batch.free_slots().len());
            self.inner.receive(&mut self.arrived)?;
            self.dealt = (0, 0);
        }
        self.deal(batch);
        hand_on(&mut self.held_incoming, batch);
        Ok(batch.datagram_count())
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.inner.connect(peer)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.inner.peer()
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }

    fn raw_fd(&self) -> Option<RawFd> {
        self.inner.raw_fd()
    }

    /// All goes through a batch.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receives_parts: false,
            ..self.inner.capabilities()
        }
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        self.inner.grow_receive_buffer(bytes)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        self.inner.buffer_lengths()
    }

    fn overflowed(&self) -> Option<u32> {
        self.inner.overflowed()
    }

    fn multicast_ttl(&self) -> u8 {
        self.inner.multicast_ttl()
    }
}
