// SPDX-License-Identifier: Apache-2.0
//! Fake socket and other fixtures that tests of the agents share.

pub(crate) mod many_streams;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::clock::Now;
use taran_core::memory::Region;
use taran_core::sync::Ordering;
use taran_net::{
    BufferLengths, Capabilities, NetError, ReceiveBatch, Received, Transmit, Transport,
};
use taran_protocol::log::{LogBuffers, LogKind, LogSpec};
use taran_protocol::position::{RawTail, partition_of_count};

use crate::event_log::EventLog;
use crate::sender::StreamLog;

/// Session of the worked examples in docs/spec/wire.md §9.
pub(crate) const SESSION: i32 = 0x1A2B_3C4D;
/// Stream of the worked examples.
pub(crate) const STREAM: i32 = 1001;
/// Initial term of the worked examples.
pub(crate) const INITIAL_TERM: i32 = 100;
/// Term length of the worked examples.
pub(crate) const TERM_LENGTH: i32 = 65_536;
/// Receiver of the worked examples.
pub(crate) const RECEIVER: i64 = 0x1122_3344_5566_7788;

pub(crate) const MS: i64 = 1_000_000;

/// Address of the peer.
pub(crate) fn peer() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 7), 4040))
}

/// Returns the bytes of a hex dump, as written in the specification.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

pub(crate) fn log(kind: LogKind, start_position: i64) -> LogBuffers {
    log_of(kind, TERM_LENGTH, start_position)
}

pub(crate) fn log_of(kind: LogKind, term_length: i32, start_position: i64) -> LogBuffers {
    let spec = LogSpec::new(kind, SESSION, STREAM, INITIAL_TERM, term_length);
    LogBuffers::create(
        &Region::anonymous(spec.file_length()).unwrap(),
        &spec,
        start_position,
    )
    .unwrap()
}

/// Moves the tail to `end`, as if a publisher had written everything before.
pub(crate) fn move_tail(log: &LogBuffers, end: i64) {
    let (geometry, metadata) = (log.geometry(), log.metadata());
    let term_id = geometry.term_id(end - 1);
    let count = geometry.term_count(term_id);
    let tail = RawTail::new(term_id, geometry.term_offset(end - 1) as u32 + 1);
    metadata.tails[partition_of_count(count)].store(tail.0, Ordering::Release);
    metadata.active_term_count.store(count, Ordering::Release);
}

/// Returns a disabled event log.
pub(crate) fn stream_log() -> StreamLog {
    StreamLog {
        events: EventLog::off(),
        session_id: SESSION,
        stream_id: STREAM,
        channel: "aeron:udp?endpoint=10.0.0.7:4040".into(),
    }
}

/// Returns a point in virtual time.
pub(crate) fn at(nanos: i64) -> Now {
    Now {
        nanos,
        epoch_millis: 1_700_000_000_000 + nanos / MS,
    }
}

/// Socket whose other end is the test. Clones are the same socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeSocket(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    sent: Vec<Vec<u8>>,
    destinations: Vec<Option<SocketAddr>>,
    send_calls: usize,
    inbox: VecDeque<(SocketAddr, Vec<u8>, usize)>,
    receive_calls: usize,
    receives_parts: bool,
    transforms: bool,
    queues_sends: bool,
    in_parts: usize,
    room: Option<usize>,
    refused: Option<usize>,
    is_broken: bool,
    receive_buffer: Option<usize>,
    granted: Option<usize>,
    overflowed: u32,
    unreachable: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl FakeSocket {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the datagrams sent since the last call.
    pub(crate) fn sent(&self) -> Vec<Vec<u8>> {
        self.state().destinations.clear();
        std::mem::take(&mut self.state().sent)
    }

    /// Returns the destinations of the datagrams that `sent` returns next.
    pub(crate) fn destinations(&self) -> Vec<Option<SocketAddr>> {
        self.state().destinations.clone()
    }

    pub(crate) fn send_calls(&self) -> usize {
        self.state().send_calls
    }

    pub(crate) fn receive_calls(&self) -> usize {
        self.state().receive_calls
    }

    /// Enables `receive_parts`.
    pub(crate) fn set_receives_parts(&self) {
        self.state().receives_parts = true;
    }

    /// Queues sends until a flush, for endpoints created from now on.
    pub(crate) fn set_queues_sends(&self) {
        self.state().queues_sends = true;
    }

    /// Adds a layer that transforms datagrams to all endpoints created from now on.
    pub(crate) fn set_transforms(&self) {
        self.state().transforms = true;
    }

    /// Returns the number of calls of `receive_parts` that received something.
    pub(crate) fn received_in_parts(&self) -> usize {
        self.state().in_parts
    }

    /// A datagram arrives from the peer.
    pub(crate) fn arrive(&self, datagram: &[u8]) {
        self.arrive_batch(datagram, datagram.len());
    }

    /// A datagram arrives from another address.
    pub(crate) fn arrive_from(&self, source: SocketAddr, datagram: &[u8]) {
        let entry = (source, datagram.to_vec(), datagram.len());
        self.state().inbox.push_back(entry);
    }

    /// Several datagrams arrive as one GRO batch.
    pub(crate) fn arrive_batch(&self, bytes: &[u8], stride: usize) {
        self.state()
            .inbox
            .push_back((peer(), bytes.to_vec(), stride));
    }

    /// Returns true if all that arrived was received.
    pub(crate) fn is_drained(&self) -> bool {
        self.state().inbox.is_empty()
    }

    /// Loses the last datagram that arrived.
    pub(crate) fn lose_last(&self) {
        self.state().inbox.pop_back();
    }

    /// Sets the length of the receive buffer.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) {
        self.state().granted = Some(bytes);
    }

    /// Adds to the number of datagrams dropped by the socket.
    pub(crate) fn overflow(&self, datagrams: u32) {
        self.state().overflowed += datagrams;
    }

    /// Returns the length of the receive buffer that was requested.
    pub(crate) fn receive_buffer(&self) -> Option<usize> {
        self.state().receive_buffer
    }

    /// From now on sends to this address fail.
    pub(crate) fn make_unreachable(&self, address: SocketAddr) {
        self.state().unreachable = Some(address);
    }

    /// Limits the bytes that are accepted from now on.
    pub(crate) fn room(&self, bytes: Option<usize>) {
        self.state().room = bytes;
    }

    /// From now on datagrams of this length are rejected.
    pub(crate) fn refuse(&self, length: usize) {
        self.state().refused = Some(length);
    }

    /// From now on sends, connecting and receiving in parts fail.
    pub(crate) fn set_broken(&self, is_broken: bool) {
        self.state().is_broken = is_broken;
    }
}

impl Transport for FakeSocket {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let mut state = self.state();
        state.send_calls += 1;
        let to = batch.first().and_then(|transmit| transmit.destination);
        let is_unreachable = to.is_some() && to == state.unreachable;
        if state.is_broken || is_unreachable {
            return Err(NetError::NoDestination {
                local: self.local_address(),
            });
        }
        let mut accepted = 0;
        for transmit in batch {
            for datagram in transmit.datagrams() {
                if state.refused == Some(datagram.len()) {
                    return if accepted > 0 {
                        Ok(accepted)
                    } else {
                        Err(NetError::NoDestination {
                            local: self.local_address(),
                        })
                    };
                }
                if let Some(room) = &mut state.room {
                    if *room < datagram.len() {
                        return Ok(accepted);
                    }
                    *room -= datagram.len();
                }
                accepted += datagram.len();
                state.sent.push(datagram.to_vec());
                state.destinations.push(transmit.destination);
            }
        }
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        let mut state = self.state();
        state.receive_calls += 1;
        batch.clear();
        while !batch.is_full()
            && let Some((source, bytes, stride)) = state.inbox.pop_front()
        {
            batch.free_slots().next().unwrap()[..bytes.len()].copy_from_slice(&bytes);
            batch.commit(Received {
                source,
                length: bytes.len(),
                stride,
                timestamp_ns: None,
            });
        }
        Ok(batch.datagram_count())
    }

    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let mut state = self.state();
        state.receive_calls += 1;
        if state.is_broken {
            return Err(NetError::NoDestination {
                local: self.local_address(),
            });
        }
        let Some((source, bytes, stride)) = state.inbox.pop_front() else {
            return Ok(None);
        };
        assert!(head.len() + rest.len() >= 65_536);
        let (first, behind) = bytes.split_at(head.len().min(bytes.len()));
        head[..first.len()].copy_from_slice(first);
        rest[..behind.len()].copy_from_slice(behind);
        state.in_parts += 1;
        Ok(Some(Received {
            source,
            length: bytes.len(),
            stride,
            timestamp_ns: None,
        }))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        let mut state = self.state();
        if state.is_broken {
            return Err(NetError::NoDestination {
                local: self.local_address(),
            });
        }
        state.peer = Some(peer);
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.state().peer
    }

    fn local_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 1))
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.state();
        let mut capabilities = Capabilities::PLAIN.with_parts(state.receives_parts);
        capabilities.transforms = state.transforms;
        capabilities.queues_sends = state.queues_sends;
        capabilities
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        self.state().receive_buffer = Some(bytes);
        Ok(())
    }

    fn overflowed(&self) -> Option<u32> {
        Some(self.state().overflowed)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        BufferLengths {
            send: 1 << 20,
            receive: self.state().granted.unwrap_or(1 << 20),
        }
    }
}
