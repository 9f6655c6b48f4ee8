// SPDX-License-Identifier: Apache-2.0
//! The faults of one transport.

use super::FaultControl;
use super::reorder_buffer::ReorderBuffer;
use super::rng::{Direction, FaultAction, FaultRng};
use crate::{LayerCapabilities, LowerLayers, NetError, ReceiveBatch, Transmit, TransportLayer};

/// Slots of the batch that is received from the layers below.
const SLOTS: usize = 16;

/// A layer that applies the faults.
///
/// Outgoing: consecutive datagrams that pass stay one batch. Incoming: datagrams are delivered from `arrived` one by
/// one; those that do not fit into the caller's batch stay there (and do not end a wait).
#[derive(Debug)]
pub(super) struct TransportFaults {
    outgoing: FaultRng,
    outgoing_delayed: ReorderBuffer,
    incoming: FaultRng,
    incoming_delayed: ReorderBuffer,
    arrived: ReceiveBatch,
    /// The next datagram to deliver: index of the run in `arrived`, and index in the run.
    delivered: (usize, usize),
}

impl TransportFaults {
    pub(super) fn new(
        control: &FaultControl,
        outgoing: fastrand::Rng,
        incoming: fastrand::Rng,
    ) -> Self {
        Self {
            outgoing: FaultRng::new(outgoing, &control.shared, Direction::Outgoing),
            outgoing_delayed: ReorderBuffer::new(),
            incoming: FaultRng::new(incoming, &control.shared, Direction::Incoming),
            incoming_delayed: ReorderBuffer::new(),
            arrived: ReceiveBatch::new(SLOTS),
            delivered: (0, 0),
        }
    }

    /// Sends the next datagrams of a batch that have the same action, and returns how many bytes were accepted.
    fn send_run(
        &mut self,
        rest: Transmit<'_>,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let stride = rest.stride();
        let count = rest
            .datagrams()
            .len()
            .min(self.outgoing_delayed.until_next_release());
        let passing = self.outgoing.passing(count);
        if passing > 0 {
            let length = (passing * stride).min(rest.payload.len());
            let run = Transmit {
                payload: &rest.payload[..length],
                segment_size: stride,
                ..rest
            };
            let accepted = lower.send(&[run])?;
            let count = accepted.div_ceil(stride);
            self.outgoing.on_passed(count);
            self.outgoing_delayed.on_passed(count);
            return Ok(accepted);
        }
        let datagram = &rest.payload[..stride.min(rest.payload.len())];
        let alone = Transmit {
            payload: datagram,
            segment_size: stride,
            ..rest
        };
        let action = self.outgoing.next();
        match action {
            FaultAction::Drop => {}
            FaultAction::Delay(overtakers) if !self.outgoing_delayed.is_full() => {
                self.outgoing_delayed
                    .push(rest.destination, None, datagram, overtakers);
            }
            FaultAction::Pass | FaultAction::Delay(_) | FaultAction::Duplicate => {
                if lower.send(&[alone])? == 0 {
                    return Ok(0);
                }
                self.outgoing_delayed.on_passed(1);
                if action == FaultAction::Duplicate {
                    // Without buffer space the duplicate is lost, which is permitted.
                    let _ = lower.send(&[alone]);
                }
            }
        }
        self.outgoing.on_applied(action);
        Ok(datagram.len())
    }

    /// Sends the delayed datagrams that are due. A datagram whose send fails is lost: its sender has seen success
    /// already.
    fn send_delayed(&mut self, lower: &mut LowerLayers<'_>) {
        self.outgoing_delayed.release(|held| {
            let transmit = match held.address {
                Some(destination) => Transmit::to(destination, &held.bytes),
                None => Transmit::connected(&held.bytes),
            };
            !matches!(lower.send(&[transmit]), Ok(0))
        });
    }

    /// Delivers arrived datagrams until none is left or `batch` is full.
    fn deliver(&mut self, batch: &mut ReceiveBatch) {
        let (index, mut offset) = self.delivered;
        for run in self.arrived.datagram_runs().skip(index) {
            for datagram in run.datagrams().skip(offset) {
                let action = self.incoming.next();
                match action {
                    FaultAction::Drop => {}
                    FaultAction::Delay(overtakers) if !self.incoming_delayed.is_full() => {
                        self.incoming_delayed.push(
                            Some(run.source),
                            run.timestamp_ns,
                            datagram,
                            overtakers,
                        );
                    }
                    FaultAction::Pass | FaultAction::Delay(_) | FaultAction::Duplicate => {
                        if !batch.push_coalesced(run.source, run.timestamp_ns, datagram) {
                            self.delivered.1 = offset;
                            return;
                        }
                        self.incoming_delayed.on_passed(1);
                        if action == FaultAction::Duplicate {
                            batch.push_coalesced(run.source, run.timestamp_ns, datagram);
                        }
                        deliver_delayed(&mut self.incoming_delayed, batch);
                    }
                }
                self.incoming.on_applied(action);
                offset += 1;
            }
            self.delivered.0 += 1;
            offset = 0;
        }
        self.delivered = (self.arrived.datagram_runs().len(), 0);
    }
}

/// Delivers the delayed datagrams that are due.
fn deliver_delayed(held: &mut ReorderBuffer, batch: &mut ReceiveBatch) {
    held.release(|held| {
        // Received datagrams always have a source.
        held.address
            .is_none_or(|source| batch.push_coalesced(source, held.timestamp_ns, &held.bytes))
    });
}

impl TransportLayer for TransportFaults {
    fn capabilities(&self) -> LayerCapabilities {
        LayerCapabilities {
            inspects_received: true,
            holds_received: true,
            ..LayerCapabilities::default()
        }
    }

    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        self.outgoing_delayed.on_call();
        let mut accepted = 0;
        for transmit in batch {
            let mut rest = *transmit;
            while !rest.payload.is_empty() {
                let taken = match self.send_run(rest, lower) {
                    Ok(taken) => taken,
                    Err(error) if accepted == 0 => return Err(error),
                    Err(_) => 0,
                };
                self.send_delayed(lower);
                if taken == 0 {
                    return Ok(accepted);
                }
                accepted += taken;
                rest.segment_size = transmit.stride();
                rest.payload = &rest.payload[taken..];
            }
        }
        self.send_delayed(lower);
        Ok(accepted)
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        batch.clear();
        self.outgoing_delayed.on_call();
        self.send_delayed(lower);
        self.incoming_delayed.on_call();
        if self.delivered.0 >= self.arrived.datagram_runs().len() {
            // No more than the caller's batch can take: datagrams that stay here are not visible on the descriptor.
            self.arrived.clear_to(batch.free_slots().len());
            lower.receive(&mut self.arrived)?;
            self.delivered = (0, 0);
        }
        self.deliver(batch);
        deliver_delayed(&mut self.incoming_delayed, batch);
        Ok(batch.datagram_count())
    }
}
