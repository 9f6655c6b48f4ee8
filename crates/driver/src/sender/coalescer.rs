// SPDX-License-Identifier: Apache-2.0
//! Coalesces single datagrams of several publications on one endpoint into one GSO send.
//!
//! A publication with much data sends a GSO batch of its own; one with an occasional message has a single datagram.
//! Where several publications of an endpoint have a single datagram in the same duty cycle, the datagrams are copied
//! one after the other, and those of one length form one segment run. Each copy costs about 50 ns and saves a call. Not
//! used where a datagram goes to several destinations: after a partial send the rest would have to be offered to all of
//! them again.
//!
//! Contract: [`DatagramCoalescer::push`] a datagram while publications are polled; [`DatagramCoalescer::flush`] when no
//! more are expected, before any other data except that of a publication that sends uncoalesced, and before idle
//! publications are polled; [`DatagramCoalescer::drain_results`] after all were polled, to pass each publication the
//! outcome of its datagram. A publication whose datagram was not sent sends it again. The one whose datagram ended a
//! call sends it uncoalesced, so that a datagram that is rejected each time delays the others once.

use taran_core::clock::Now;
use taran_net::Transmit;

use super::send_plan::MAX_RUNS;
use super::send_transport::SendTransport;
use crate::error_reporter::ErrorReporter;
use crate::poll_schedule::Slot;

/// Maximum bytes queued: about what one call takes.
const CAPACITY: usize = 64 * 1024;
/// Maximum number of datagrams per duty cycle.
const MAX_DATAGRAMS: usize = 1_024;

/// Single datagrams of several publications that are sent by one call.
#[derive(Debug)]
pub(super) struct DatagramCoalescer {
    bytes: Vec<u8>,
    /// Ends of the segment runs in `bytes`, and their segment lengths.
    runs: Vec<(usize, usize)>,
    datagrams: Vec<QueuedDatagram>,
    /// Number of datagrams that were flushed.
    flushed: usize,
}

/// A queued datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedDatagram {
    /// Slot of its publication.
    pub(super) slot: Slot,
    /// Bytes on the wire.
    pub(super) length: usize,
    /// Bytes by which the sender position advances.
    pub(super) advance: i64,
    pub(super) outcome: SendOutcome,
}

/// Outcome of a queued datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// The socket took it.
    Sent,
    /// The call ended with it: the socket buffer was full, or the datagram was rejected.
    Rejected,
    /// It was behind the datagram that ended the call.
    NotAttempted,
}

impl DatagramCoalescer {
    /// Length in bytes of the longest datagram. Copying a longer one costs as much as a call.
    pub(super) const MAX_DATAGRAM_LENGTH: i32 = 2_048;

    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(CAPACITY),
            runs: Vec::with_capacity(MAX_RUNS),
            datagrams: Vec::with_capacity(MAX_DATAGRAMS),
            flushed: 0,
        }
    }

    /// Returns true if a datagram of this length can be pushed without a flush before.
    pub(super) fn fits(&self, length: usize) -> bool {
        let is_alike = self
            .runs
            .last()
            .is_some_and(|(_, segment)| *segment == length);
        self.bytes.len() + length <= CAPACITY && (is_alike || self.runs.len() < MAX_RUNS)
    }

    /// Returns true if the duty cycle has room for another datagram.
    pub(super) fn has_capacity(&self) -> bool {
        self.datagrams.len() < MAX_DATAGRAMS
    }

    /// Returns true if datagrams are queued.
    pub(super) fn has_datagrams(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Queues a datagram that [`fits`](Self::fits).
    pub(super) fn push(&mut self, datagram: &[u8], slot: Slot, advance: i64) {
        self.bytes.extend_from_slice(datagram);
        let (end, length) = (self.bytes.len(), datagram.len());
        match self.runs.last_mut() {
            Some((last, segment)) if *segment == length => *last = end,
            _ => self.runs.push((end, length)),
        }
        self.datagrams.push(QueuedDatagram {
            slot,
            length,
            advance,
            outcome: SendOutcome::NotAttempted,
        });
    }

    /// Sends the queued datagrams. Returns true if the socket took all of them.
    pub(super) fn flush(
        &mut self,
        transport: &mut SendTransport,
        now: Now,
        reporter: &mut ErrorReporter,
    ) -> bool {
        let mut batch = [Transmit::connected(&[]); MAX_RUNS];
        let mut begin = 0;
        for (transmit, &(end, segment)) in batch.iter_mut().zip(&self.runs) {
            *transmit = Transmit::connected(&self.bytes[begin..end]).segmented(segment);
            begin = end;
        }
        let mut accepted = transport.send(&mut batch[..self.runs.len()], now, reporter);
        let is_complete = accepted == self.bytes.len();
        for datagram in &mut self.datagrams[self.flushed..] {
            if datagram.length > accepted {
                datagram.outcome = SendOutcome::Rejected;
                break;
            }
            datagram.outcome = SendOutcome::Sent;
            accepted -= datagram.length;
        }
        self.flushed = self.datagrams.len();
        self.bytes.clear();
        self.runs.clear();
        is_complete
    }

    /// Removes all datagrams and passes each, with its outcome, to `on_result`.
    pub(super) fn drain_results(&mut self, on_result: impl FnMut(QueuedDatagram)) {
        debug_assert!(!self.has_datagrams(), "not flushed");
        self.flushed = 0;
        self.datagrams.drain(..).for_each(on_result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_of_equal_lengths_extends_run() {
        let mut coalescer = DatagramCoalescer::new();
        for (number, length) in [320, 320, 64, 320].into_iter().enumerate() {
            assert!(coalescer.fits(length));
            coalescer.push(&vec![number as u8; length], Slot(number), length as i64);
        }
        assert_eq!(coalescer.runs, [(640, 320), (704, 64), (1_024, 320)]);
    }

    #[test]
    fn fits_is_limited_by_runs_and_bytes_of_one_call() {
        let mut coalescer = DatagramCoalescer::new();
        for length in (1..=MAX_RUNS).map(|number| 32 * number) {
            assert!(coalescer.fits(length));
            coalescer.push(&vec![0; length], Slot(0), 0);
        }
        assert!(!coalescer.fits(32) && coalescer.fits(32 * MAX_RUNS));
        let mut coalescer = DatagramCoalescer::new();
        for _ in 0..46 {
            assert!(coalescer.fits(1_408));
            coalescer.push(&[0; 1_408], Slot(0), 0);
        }
        assert!(!coalescer.fits(1_408));
    }
}
