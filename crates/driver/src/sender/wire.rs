//! The sending half of an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use crate::boundary::Destination;
use crate::faults::Faults;

/// A socket and who is behind it.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) transport: Box<dyn Transport>,
    destinations: Destinations,
    channel: Arc<str>,
}

/// Where datagrams go: the one place that changes when a channel has several destinations.
#[derive(Debug)]
enum Destinations {
    One(Destination),
}

impl Wire {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        destination: Destination,
        channel: Arc<str>,
    ) -> Self {
        Self {
            transport,
            destinations: Destinations::One(destination),
            channel,
        }
    }

    /// Sends a batch to every destination. Returns how many bytes of it all of them took; what is missing is offered
    /// again later. The batch names no destination, that is filled in here.
    pub(super) fn send(
        &mut self,
        batch: &mut [Transmit<'_>],
        now: Now,
        faults: &mut Faults,
    ) -> usize {
        let Destinations::One(destination) = self.destinations;
        if let Destination::Address(address) = destination {
            for transmit in batch.iter_mut() {
                transmit.destination = Some(address);
            }
        }
        match self.transport.send(batch) {
            Ok(accepted) => accepted,
            Err(error) => {
                faults.report(now, &self.channel, &error);
                0
            }
        }
    }

    /// The peer's name resolved to another address.
    pub(super) fn change_destination(
        &mut self,
        address: SocketAddr,
        now: Now,
        faults: &mut Faults,
    ) {
        let Destinations::One(destination) = &mut self.destinations;
        match destination {
            Destination::Address(present) => *present = address,
            Destination::Connected => {
                if let Err(error) = self.transport.connect(address) {
                    faults.report(now, &self.channel, &error);
                }
            }
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
