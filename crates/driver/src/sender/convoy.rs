//! Lone datagrams of several streams, sent by one call.
//!
//! A train is cheap because the kernel takes all its datagrams in one go, and a stream with a message now and then has none.
//! Where several streams of an endpoint have a single datagram each in the same duty cycle, it is copied behind those of the
//! others, and those of one length leave as one train: some 50 ns for each in place of a call of its own. Not where each
//! datagram goes to several destinations, to which all of what some of them have not taken would be offered again.
//!
//! Contract: [`Convoy::take`] a datagram while publications have their turns, [`Convoy::leave`] when nobody joins any more,
//! before any other data but that of a publication that sends alone, and before calm streams have their turns, and
//! [`Convoy::settle`] after the turns: each publication is told what became of its datagram. One whose datagram did not go
//! sends it again, and the one at which a call ended sends it alone, so that what is refused each time holds up the others
//! once.

use taran_core::clock::Now;
use taran_net::Transmit;

use super::plan::MAX_RUNS;
use super::wire::Wire;
use crate::error_reporter::ErrorReporter;
use crate::poll_schedule::Slot;

/// Bytes that wait at most: what one call takes, or little more.
const BYTES: usize = 64 * 1024;
/// Most datagrams of a duty cycle.
const MOST: usize = 1_024;

/// Datagrams that leave together, and whose they are.
#[derive(Debug)]
pub(super) struct Convoy {
    bytes: Vec<u8>,
    /// Where in the bytes runs of datagrams of one length end, and how long these are.
    runs: Vec<(usize, usize)>,
    passengers: Vec<Passenger>,
    /// So many of the passengers are told whether they went.
    left: usize,
}

/// One datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passenger {
    /// Whose it is.
    pub(super) seat: Slot,
    /// Bytes on the wire.
    pub(super) length: usize,
    /// How far its stream moves.
    pub(super) advance: i64,
    /// What became of it.
    pub(super) fate: Fate,
}

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It went.
    Went,
    /// The call ended with it: the socket was full, or there is something about it.
    Refused,
    /// It was behind that one.
    Left,
}

impl Convoy {
    /// Bytes of the longest datagram: to copy what is longer costs as much as a call.
    pub(super) const LONGEST: i32 = 2_048;

    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(BYTES),
            runs: Vec::with_capacity(MAX_RUNS),
            passengers: Vec::with_capacity(MOST),
            left: 0,
        }
    }

    /// Whether a datagram of this length can be taken before those that wait have left.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let is_alike = self
            .runs
            .last()
            .is_some_and(|(_, segment)| *segment == length);
        self.bytes.len() + length <= BYTES && (is_alike || self.runs.len() < MAX_RUNS)
    }

    /// Whether one more is not too many for a duty cycle.
    pub(super) fn is_open(&self) -> bool {
        self.passengers.len() < MOST
    }

    /// Whether somebody waits.
    pub(super) fn waits(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Takes a datagram, for which there is room.
    pub(super) fn take(&mut self, datagram: &[u8], seat: Slot, advance: i64) {
        self.bytes.extend_from_slice(datagram);
        let (end, length) = (self.bytes.len(), datagram.len());
        match self.runs.last_mut() {
            Some((last, segment)) if *segment == length => *last = end,
            _ => self.runs.push((end, length)),
        }
        self.passengers.push(Passenger {
            seat,
            length,
            advance,
            fate: Fate::Left,
        });
    }

    /// Sends those that wait. True if the socket took all of them.
    pub(super) fn leave(
        &mut self,
        wire: &mut Wire,
        now: Now,
        reporter: &mut ErrorReporter,
    ) -> bool {
        let mut batch = [Transmit::connected(&[]); MAX_RUNS];
        let mut begin = 0;
        for (transmit, &(end, segment)) in batch.iter_mut().zip(&self.runs) {
            *transmit = Transmit::connected(&self.bytes[begin..end]).segmented(segment);
            begin = end;
        }
        let mut accepted = wire.send(&mut batch[..self.runs.len()], now, reporter);
        let is_whole = accepted == self.bytes.len();
        for passenger in &mut self.passengers[self.left..] {
            if passenger.length > accepted {
                passenger.fate = Fate::Refused;
                break;
            }
            passenger.fate = Fate::Went;
            accepted -= passenger.length;
        }
        self.left = self.passengers.len();
        self.bytes.clear();
        self.runs.clear();
        is_whole
    }

    /// Tells of all that have left.
    pub(super) fn settle(&mut self, tell: impl FnMut(Passenger)) {
        debug_assert!(!self.waits(), "somebody was left behind");
        self.left = 0;
        self.passengers.drain(..).for_each(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_one_run() {
        let mut convoy = Convoy::new();
        for (number, length) in [320, 320, 64, 320].into_iter().enumerate() {
            assert!(convoy.has_room(length));
            convoy.take(&vec![number as u8; length], Slot(number), length as i64);
        }
        assert_eq!(convoy.runs, [(640, 320), (704, 64), (1_024, 320)]);
    }

    #[test]
    fn there_is_room_for_as_many_runs_and_bytes_as_a_call_takes() {
        let mut convoy = Convoy::new();
        for length in (1..=MAX_RUNS).map(|number| 32 * number) {
            assert!(convoy.has_room(length));
            convoy.take(&vec![0; length], Slot(0), 0);
        }
        assert!(!convoy.has_room(32) && convoy.has_room(32 * MAX_RUNS));
        let mut convoy = Convoy::new();
        for _ in 0..46 {
            assert!(convoy.has_room(1_408));
            convoy.take(&[0; 1_408], Slot(0), 0);
        }
        assert!(!convoy.has_room(1_408));
    }
}
