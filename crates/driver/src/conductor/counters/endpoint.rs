// SPDX-License-Identifier: Apache-2.0
//! Counters of endpoints: channel status, bound address, number of destinations (docs/spec/shared-memory.md §5.9).

use taran_core::counters::Counter;
use taran_protocol::counter::{ChannelKey, SocketKey, channel_label, socket_label, type_id};

use super::super::failure::Failure;
use super::{CounterInit, Counters};

/// Direction of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Send,
    Receive,
}

/// The channel that a counter belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndpointIdentity<'a> {
    pub(crate) direction: Direction,
    pub(crate) registration_id: i64,
    pub(crate) channel: &'a str,
}

/// Counters of one endpoint.
#[derive(Debug)]
pub(crate) struct EndpointCounters {
    pub(crate) status: Counter,
    pub(crate) local_address: Option<Counter>,
    pub(crate) destination_count: Option<Counter>,
}

impl EndpointCounters {
    fn all(&self) -> impl Iterator<Item = &Counter> {
        let others = self.local_address.iter().chain(&self.destination_count);
        others.chain([&self.status])
    }
}

impl Counters {
    /// Allocates the counters of a new endpoint; all or none. Without a socket the label ends in a blank
    /// (docs/spec/wire.md §2.15).
    pub(crate) fn endpoint(
        &mut self,
        of: EndpointIdentity<'_>,
        bound: Option<&str>,
        has_destinations: bool,
    ) -> Result<EndpointCounters, Failure> {
        let mut created = EndpointCounters {
            status: self.channel_status(of, bound.unwrap_or_default())?,
            local_address: None,
            destination_count: None,
        };
        match self.allocate_optional(&mut created, of, bound, has_destinations) {
            Ok(()) => Ok(created),
            Err(failure) => {
                self.free_all(created.all());
                Err(failure)
            }
        }
    }

    fn allocate_optional(
        &mut self,
        created: &mut EndpointCounters,
        of: EndpointIdentity<'_>,
        bound: Option<&str>,
        has_destinations: bool,
    ) -> Result<(), Failure> {
        if let Some(bound) = bound {
            created.local_address = Some(self.local_address(of, created.status.id(), bound)?);
        }
        if has_destinations {
            created.destination_count = Some(self.destination_count(of)?);
        }
        Ok(())
    }

    fn channel_status(
        &mut self,
        of: EndpointIdentity<'_>,
        bound: &str,
    ) -> Result<Counter, Failure> {
        let (type_id, name) = match of.direction {
            Direction::Send => (type_id::SEND_CHANNEL_STATUS, "snd-channel"),
            Direction::Receive => (type_id::RECEIVE_CHANNEL_STATUS, "rcv-channel"),
        };
        let label = channel_label(name, of.channel, Some(bound));
        self.allocate_channel_counter(type_id, of, &label)
    }

    /// Allocates the counter of a bound address.
    pub(crate) fn local_address(
        &mut self,
        of: EndpointIdentity<'_>,
        channel_status_id: i32,
        address: &str,
    ) -> Result<Counter, Failure> {
        let name = match of.direction {
            Direction::Send => "snd-local-sockaddr",
            Direction::Receive => "rcv-local-sockaddr",
        };
        let key = SocketKey {
            channel_status_id,
            address: address.into(),
        }
        .encode();
        self.allocate(
            type_id::LOCAL_SOCKET_ADDRESS,
            &key,
            &socket_label(name, channel_status_id, address),
            of.registration_id,
            CounterInit::default(),
        )
    }

    /// Allocates the counter for the number of destinations.
    fn destination_count(&mut self, of: EndpointIdentity<'_>) -> Result<Counter, Failure> {
        let label = channel_label("mdc-num-dest", of.channel, None);
        self.allocate_channel_counter(type_id::MDC_DESTINATIONS, of, &label)
    }

    fn allocate_channel_counter(
        &mut self,
        type_id: i32,
        of: EndpointIdentity<'_>,
        label: &str,
    ) -> Result<Counter, Failure> {
        let key = ChannelKey {
            channel: of.channel.into(),
        }
        .encode();
        self.allocate(
            type_id,
            &key,
            label,
            of.registration_id,
            CounterInit::default(),
        )
    }
}
