//! Signs of life of many streams, collected so that one call sends them all: each still is a datagram of its own.
//!
//! Thousands of calm streams say ten times a second that they live, or five times that they are heard. One call for each
//! would take more time than a busy stream beside them has. Input: [`Signs::add`] what one says, if they [`Signs::accept`] it;
//! output: [`Signs::transmit`] what goes out together, when [`Signs::are_due`], and [`Signs::went`] how much of it did. Who
//! has something more recent to say has what was collected sent first, if that is his ([`Signs::hold`]). What finds no room
//! in the socket is lost like a datagram on its way: it is said again soon.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_net::Transmit;

/// Most in one call: what kernels cut a train into.
const MOST: usize = 64;
/// Bytes of the longest: a status message with a group tag.
const LONGEST: usize = 44;
/// None waits for longer, unless turns take longer.
const WAIT_NS: i64 = 1_000_000;
/// Fewer streams do not collect: each says at once what it has to say.
const CROWD: usize = 9;

/// The number of a train: signs that wait together have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// What is to be said next, all of one length and to one address.
#[derive(Debug)]
pub(crate) struct Signs {
    train: Vec<u8>,
    length: usize,
    to: Option<SocketAddr>,
    ticket: Ticket,
    since_ns: i64,
    is_crowd: bool,
}

impl Signs {
    pub(crate) fn new() -> Self {
        Self {
            train: Vec::with_capacity(MOST * LONGEST),
            length: 0,
            to: None,
            ticket: Ticket(0),
            since_ns: 0,
            is_crowd: false,
        }
    }

    /// So many streams share the socket.
    pub(crate) fn shared_by(&mut self, streams: usize) {
        self.is_crowd = streams >= CROWD;
    }

    /// Whether a sign of this length to this address may be added now.
    pub(crate) fn accept(&self, length: usize, to: Option<SocketAddr>) -> bool {
        let is_alike = self.train.is_empty() || (length, to) == (self.length, self.to);
        self.is_crowd && is_alike && length <= LONGEST && !self.is_full()
    }

    /// Whether those that wait have to go before a sign of this length to this address can be added.
    pub(crate) fn are_in_the_way(&self, length: usize, to: Option<SocketAddr>) -> bool {
        self.wait() && !self.accept(length, to)
    }

    /// Another one. `to` as for [`Transmit`].
    pub(crate) fn add(&mut self, sign: &[u8], to: Option<SocketAddr>, now: Now) -> Ticket {
        if self.train.is_empty() {
            (self.length, self.to, self.since_ns) = (sign.len(), to, now.nanos);
        }
        self.train.extend_from_slice(sign);
        self.ticket
    }

    /// Whether a sign waits still.
    #[inline]
    pub(crate) fn hold(&self, ticket: Option<Ticket>) -> bool {
        ticket == Some(self.ticket)
    }

    /// Whether something waits.
    pub(crate) fn wait(&self) -> bool {
        !self.train.is_empty()
    }

    /// Whether it is time to send them; at rest they do not wait for others.
    pub(crate) fn are_due(&self, is_at_rest: bool, now: Now) -> bool {
        let is_late = || now.nanos.saturating_sub(self.since_ns) >= WAIT_NS;
        self.wait() && (is_at_rest || self.is_full() || is_late())
    }

    /// All of them.
    pub(crate) fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.to,
            ..Transmit::connected(&self.train).segmented(self.length)
        }
    }

    /// They went, of which so many bytes were taken: none waits any more. How many were tried: those that were taken, and
    /// the one behind these.
    pub(crate) fn went(&mut self, bytes: usize) -> usize {
        let tried = self.train.len().min(bytes + self.length);
        self.train.clear();
        self.ticket = Ticket(self.ticket.0.wrapping_add(1));
        tried / self.length.max(1)
    }

    fn is_full(&self) -> bool {
        self.train.len() >= MOST * self.length.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN: [u8; 32] = [7; 32];

    fn crowd() -> Signs {
        let mut signs = Signs::new();
        signs.shared_by(CROWD);
        signs
    }

    fn at(nanos: i64) -> Now {
        Now {
            nanos,
            epoch_millis: 0,
        }
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn few_streams_do_not_collect() {
        let mut signs = Signs::new();
        assert!(!signs.accept(32, None));
        signs.shared_by(CROWD - 1);
        assert!(!signs.accept(32, None));
        signs.shared_by(CROWD);
        assert!(signs.accept(32, None));
    }

    #[test]
    fn what_differs_does_not_go_together() {
        let mut signs = crowd();
        assert!(signs.accept(44, Some(address(1))) && !signs.accept(45, None));
        signs.add(&SIGN, Some(address(1)), at(0));
        assert!(signs.accept(32, Some(address(1))));
        assert!(!signs.accept(44, Some(address(1))));
        assert!(!signs.accept(32, Some(address(2))));
        assert!(!signs.accept(32, None));
        assert_eq!(signs.transmit().destination, Some(address(1)));
    }

    #[test]
    fn they_wait_for_a_millisecond_or_until_there_is_nothing_else_to_do() {
        let mut signs = crowd();
        assert!(!signs.are_due(true, at(0)), "there are none");
        signs.add(&SIGN, None, at(100));
        signs.add(&SIGN, None, at(100 + WAIT_NS - 1));
        assert!(!signs.are_due(false, at(100 + WAIT_NS - 1)));
        assert!(signs.are_due(true, at(101)));
        assert!(signs.are_due(false, at(100 + WAIT_NS)));
        assert_eq!(signs.transmit().datagrams().count(), 2);
    }

    #[test]
    fn a_full_train_goes_at_once() {
        let mut signs = crowd();
        for _ in 0..MOST {
            assert!(signs.accept(32, None) && !signs.are_due(false, at(0)));
            signs.add(&SIGN, None, at(0));
        }
        assert!(!signs.accept(32, None) && signs.are_due(false, at(0)));
    }

    #[test]
    fn a_sign_waits_until_its_train_has_gone() {
        let mut signs = crowd();
        assert!(!signs.hold(None));
        let first = signs.add(&SIGN, None, at(0));
        assert!(signs.hold(Some(first)));
        assert_eq!(signs.went(32), 1);
        assert!(!signs.hold(Some(first)) && !signs.are_due(true, at(i64::MAX)));
        let second = signs.add(&SIGN, None, at(5));
        assert!(signs.hold(Some(second)) && !signs.hold(Some(first)));
    }

    #[test]
    fn what_found_no_room_does_not_wait() {
        for (taken, tried) in [(0, 1), (1, 2), (3, 4), (4, 4)] {
            let mut signs = crowd();
            for _ in 0..4 {
                signs.add(&SIGN, None, at(0));
            }
            assert_eq!(signs.went(taken * SIGN.len()), tried);
            assert!(!signs.wait());
        }
    }
}
