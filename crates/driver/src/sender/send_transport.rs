// SPDX-License-Identifier: Apache-2.0
//! Sending side of an endpoint: its socket and its destinations.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use super::destinations::Destinations;
use crate::boundary::{Destination, SendDestination};
use crate::error_reporter::ErrorReporter;

/// Socket with a set of destinations.
#[derive(Debug)]
pub(super) struct SendTransport {
    pub(super) socket: Box<dyn Transport>,
    destinations: DestinationSet,
    channel: Arc<str>,
}

/// Destinations of datagrams.
#[derive(Debug)]
enum DestinationSet {
    /// The peer of the connected socket.
    Connected,
    /// One address.
    Single(SocketAddr),
    /// Each of several.
    Multi(Destinations),
    /// The peer of the publication that is polled, once that is known.
    Learned(Option<SocketAddr>),
}

/// Counts of a reply: datagrams, and those of them that were not sent.
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

    /// Sends a batch to every destination, and sets the destinations of its items. Returns the bytes that were sent to
    /// all; the caller offers the rest again later.
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

    /// Sends a reply to one receiver, if it is among the destinations.
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

    /// Sets the new address of the peer or of a destination whose name was resolved again.
    pub(super) fn change_destination(
        &mut self,
        destination: Option<i64>,
        address: SocketAddr,
        now: Now,
        reporter: &mut ErrorReporter,
    ) {
        match (&mut self.destinations, destination) {
            (DestinationSet::Multi(destinations), Some(id)) => {
                destinations.set_address(id, address);
            }
            (DestinationSet::Single(present), None) => *present = address,
            (DestinationSet::Connected, None) => {
                if let Err(error) = self.socket.connect(address) {
                    // A route may exist later, but the socket is not connected again: send to the new address
                    // explicitly.
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

    /// Returns true if all publications send to the same destinations.
    pub(super) fn has_shared_destinations(&self) -> bool {
        !matches!(self.destinations, DestinationSet::Learned(_))
    }

    /// Returns true if the datagrams of all publications go to one and the same address.
    pub(super) fn has_single_destination(&self) -> bool {
        matches!(
            self.destinations,
            DestinationSet::Connected | DestinationSet::Single(_)
        )
    }

    /// Sets the peer of the next sends, where each publication has its own.
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

    /// Handles an accepted status message.
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

    /// Returns the registration id of the destination that a control frame came from, -1 if it has none.
    pub(super) fn destination_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        match &self.destinations {
            DestinationSet::Multi(destinations) => destinations.id_of(receiver_id, source),
            DestinationSet::Connected | DestinationSet::Single(_) | DestinationSet::Learned(_) => {
                -1
            }
        }
    }

    /// Passes on the destinations whose names should be resolved again.
    pub(super) fn silent_destinations(&mut self, now: Now, take: impl FnMut(i64)) {
        if let DestinationSet::Multi(destinations) = &mut self.destinations {
            destinations.silent_named(now.nanos, take);
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
