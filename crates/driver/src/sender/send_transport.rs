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
pub(super) struct SendTransport {
    pub(super) socket: Box<dyn Transport>,
    destinations: DestinationSet,
    channel: Arc<str>,
}

/// Where datagrams go.
#[derive(Debug)]
enum DestinationSet {
    /// To the peer of the socket.
    Connected,
    /// To one address.
    Single(SocketAddr),
    /// To each of several.
    Multi(Destinations),
    /// To the peer of the publication whose turn it is, once that knows it.
    Learned(Option<SocketAddr>),
}

/// What came of an answer: so many datagrams, of which some found no room or no destinations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyCounts {
    pub(super) datagrams: i64,
    pub(super) short: i64,
}

impl ReplyCounts {
    fn count(&mut self, sent: usize) {
        self.datagrams += 1;
        self.short += i64::from(sent == 0);
    }
}

impl SendTransport {
    pub(super) fn new(
        socket: Box<dyn Transport>,
        destination: Destination,
        channel: Arc<str>,
    ) -> Self {
        Self {
            socket,
            destinations: match destination {
                Destination::Connected => DestinationSet::Connected,
                Destination::Address(address) => DestinationSet::Single(address),
                Destination::Manual(count) => DestinationSet::Multi(Destinations::manual(count)),
                Destination::Dynamic(count) => DestinationSet::Multi(Destinations::dynamic(count)),
                Destination::Learned => DestinationSet::Learned(None),
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
        let sent = match &mut self.destinations {
            DestinationSet::Connected => self.socket.send(batch),
            DestinationSet::Learned(None) => return 0,
            DestinationSet::Single(address) | DestinationSet::Learned(Some(address)) => {
                for transmit in batch.iter_mut() {
                    transmit.destination = Some(*address);
                }
                self.socket.send(batch)
            }
            DestinationSet::Multi(destinations) => {
                let (transport, channel) = (self.socket.as_mut(), &self.channel);
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
    pub(super) fn reply_to(
        &mut self,
        frame: &[u8],
        receiver_id: i64,
        source: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) -> ReplyCounts {
        let mut counts = ReplyCounts::default();
        if let DestinationSet::Multi(destinations) = &self.destinations {
            for address in destinations.addresses_of(receiver_id, source) {
                let sent = self.socket.send(&[Transmit::to(address, frame)]);
                counts.count(sent.unwrap_or_else(|error| {
                    reporter.report(now, &self.channel, &error);
                    0
                }));
            }
            return counts;
        }
        self.set_peer(Some(source));
        counts.count(self.send(&mut [Transmit::connected(frame)], now, reporter));
        counts
    }

    /// The peer's name, or that of a destination, resolved to another address.
    pub(super) fn change_destination(
        &mut self,
        destination: Option<i64>,
        address: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) {
        match (&mut self.destinations, destination) {
            (DestinationSet::Multi(destinations), Some(id)) => {
                destinations.set_address(id, address)
            }
            (DestinationSet::Single(present), None) => *present = address,
            (DestinationSet::Connected, None) => {
                if let Err(error) = self.socket.connect(address) {
                    // The destinations there may open later, and nobody connects again: the name means this address by now.
                    self.destinations = DestinationSet::Single(address);
                    reporter.report(now, &self.channel, &error);
                }
            }
            (DestinationSet::Multi(_) | DestinationSet::Learned(_), None)
            | (
                DestinationSet::Connected | DestinationSet::Single(_) | DestinationSet::Learned(_),
                Some(_),
            ) => {}
        }
    }

    /// Whether all publications speak to the same peers.
    pub(super) fn has_shared_destinations(&self) -> bool {
        !matches!(self.destinations, DestinationSet::Learned(_))
    }

    /// Whether a datagram goes to one place, and to the same one whoever sends it.
    pub(super) fn has_single_destination(&self) -> bool {
        matches!(
            self.destinations,
            DestinationSet::Connected | DestinationSet::Single(_)
        )
    }

    /// Whom the next sends go to, where each publication has its own peer.
    pub(super) fn set_peer(&mut self, learned: Option<SocketAddr>) {
        if let DestinationSet::Learned(peer) = &mut self.destinations {
            *peer = learned;
        }
    }

    pub(super) fn add_destination(&mut self, destination: SendDestination, now: Now) {
        if let DestinationSet::Multi(destinations) = &mut self.destinations {
            destinations.add(destination, now.nanos);
        }
    }

    pub(super) fn remove_destination(&mut self, id: i64) {
        if let DestinationSet::Multi(destinations) = &mut self.destinations {
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
        if let DestinationSet::Multi(destinations) = &mut self.destinations {
            destinations.on_status(receiver_id, source, now.nanos);
            if destinations.take_rejected() {
                reporter.report_too_many_receivers(now, &self.channel);
            }
        }
    }

    /// Registration id of the destination that a control frame came from, -1 if it has none.
    pub(super) fn destination_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        match &self.destinations {
            DestinationSet::Multi(destinations) => destinations.id_of(receiver_id, source),
            DestinationSet::Connected | DestinationSet::Single(_) | DestinationSet::Learned(_) => {
                -1
            }
        }
    }

    /// Hands out the destinations whose names should be resolved again.
    pub(super) fn silent_destinations(&mut self, now: Now, take: impl FnMut(i64)) {
        if let DestinationSet::Multi(destinations) = &mut self.destinations {
            destinations.silent_named(now.nanos, take);
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
