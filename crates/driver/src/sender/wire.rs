//! The sending half of an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use super::destinations::Destinations;
use crate::boundary::{Destination, SendDestination};
use crate::error_reporter::ErrorReporter;

/// A socket and who is behind it.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) transport: Box<dyn Transport>,
    way: Way,
    channel: Arc<str>,
}

/// Where datagrams go.
#[derive(Debug)]
enum Way {
    /// To the peer of the socket.
    Connected,
    /// To one address.
    One(SocketAddr),
    /// To each of several.
    Many(Destinations),
    /// To the peer of the publication whose turn it is, once that knows it.
    Learned(Option<SocketAddr>),
}

/// What came of an answer: so many datagrams, of which some found no room or no way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    pub(super) datagrams: i64,
    pub(super) short: i64,
}

impl Answered {
    fn count(&mut self, sent: usize) {
        self.datagrams += 1;
        self.short += i64::from(sent == 0);
    }
}

impl Wire {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        destination: Destination,
        channel: Arc<str>,
    ) -> Self {
        Self {
            transport,
            way: match destination {
                Destination::Connected => Way::Connected,
                Destination::Address(address) => Way::One(address),
                Destination::Manual(count) => Way::Many(Destinations::manual(count)),
                Destination::Dynamic(count) => Way::Many(Destinations::dynamic(count)),
                Destination::Learned => Way::Learned(None),
            },
            channel,
        }
    }

    /// Sends a batch to every destination. Returns how many bytes of it all of them took; what is missing is offered
    /// again later. The batch names no destination, that is filled in here.
    pub(super) fn send(
        &mut self,
        batch: &mut [Transmit<'_>],
        now: Now,
        reporter: &mut ErrorReporter,
    ) -> usize {
        let sent = match &mut self.way {
            Way::Connected => self.transport.send(batch),
            Way::Learned(None) => return 0,
            Way::One(address) | Way::Learned(Some(address)) => {
                for transmit in batch.iter_mut() {
                    transmit.destination = Some(*address);
                }
                self.transport.send(batch)
            }
            Way::Many(destinations) => {
                let (transport, channel) = (self.transport.as_mut(), &self.channel);
                return destinations.send(transport, batch, now.nanos, |error| {
                    reporter.report(now, channel, error);
                });
            }
        };
        match sent {
            Ok(accepted) => accepted,
            Err(error) => {
                reporter.report(now, &self.channel, &error);
                0
            }
        }
    }

    /// Answers one receiver, if it is one of those that are sent to.
    pub(super) fn answer(
        &mut self,
        frame: &[u8],
        receiver_id: i64,
        source: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) -> Answered {
        let mut answered = Answered::default();
        if let Way::Many(destinations) = &self.way {
            for address in destinations.addresses_of(receiver_id, source) {
                let sent = self.transport.send(&[Transmit::to(address, frame)]);
                answered.count(sent.unwrap_or_else(|error| {
                    reporter.report(now, &self.channel, &error);
                    0
                }));
            }
            return answered;
        }
        self.speak_to(Some(source));
        answered.count(self.send(&mut [Transmit::connected(frame)], now, reporter));
        answered
    }

    /// The peer's name, or that of a destination, resolved to another address.
    pub(super) fn change_destination(
        &mut self,
        destination: Option<i64>,
        address: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) {
        match (&mut self.way, destination) {
            (Way::Many(destinations), Some(id)) => destinations.readdress(id, address),
            (Way::One(present), None) => *present = address,
            (Way::Connected, None) => {
                if let Err(error) = self.transport.connect(address) {
                    // The way there may open later, and nobody connects again: the name means this address by now.
                    self.way = Way::One(address);
                    reporter.report(now, &self.channel, &error);
                }
            }
            (Way::Many(_) | Way::Learned(_), None)
            | (Way::Connected | Way::One(_) | Way::Learned(_), Some(_)) => {}
        }
    }

    /// Whether all publications speak to the same peers.
    pub(super) fn is_common(&self) -> bool {
        !matches!(self.way, Way::Learned(_))
    }

    /// Whether a datagram goes to one place, and to the same one whoever sends it.
    pub(super) fn is_single(&self) -> bool {
        matches!(self.way, Way::Connected | Way::One(_))
    }

    /// Whom the next sends go to, where each publication has its own peer.
    pub(super) fn speak_to(&mut self, learned: Option<SocketAddr>) {
        if let Way::Learned(peer) = &mut self.way {
            *peer = learned;
        }
    }

    pub(super) fn add_destination(&mut self, destination: SendDestination, now: Now) {
        if let Way::Many(destinations) = &mut self.way {
            destinations.add(destination, now.nanos);
        }
    }

    pub(super) fn remove_destination(&mut self, id: i64) {
        if let Way::Many(destinations) = &mut self.way {
            destinations.remove(id);
        }
    }

    /// A status message was accepted.
    pub(super) fn on_status(
        &mut self,
        receiver_id: i64,
        source: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) {
        if let Way::Many(destinations) = &mut self.way {
            destinations.on_status(receiver_id, source, now.nanos);
            if destinations.take_turned_away() {
                reporter.report_too_many_receivers(now, &self.channel);
            }
        }
    }

    /// Registration id of the destination that a control frame came from, -1 if it has none.
    pub(super) fn destination_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        match &self.way {
            Way::Many(destinations) => destinations.id_of(receiver_id, source),
            Way::Connected | Way::One(_) | Way::Learned(_) => -1,
        }
    }

    /// Hands out the destinations whose names should be resolved again.
    pub(super) fn unheard_destinations(&mut self, now: Now, take: impl FnMut(i64)) {
        if let Way::Many(destinations) = &mut self.way {
            destinations.unheard(now.nanos, take);
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
