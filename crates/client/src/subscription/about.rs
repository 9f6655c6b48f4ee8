//! What is known of a subscription and its channel.

use std::net::SocketAddr;

use taran_protocol::uri::{ChannelUri, Param};

use super::Subscription;
use crate::channel_status::{self, ChannelStatus};

impl Subscription {
    /// The channel as it was given.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.state.channel
    }

    /// The stream.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.state.stream_id
    }

    /// Id of the subscription with the driver.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.state.registration_id
    }

    /// State of the channel at the driver.
    #[must_use]
    pub fn channel_status(&self) -> ChannelStatus {
        if self.is_closed() {
            return ChannelStatus::Closed;
        }
        channel_status::read(self.link.counters(), self.state.status_counter_id)
    }

    /// Counter id of the channel's status indicator; `None` for IPC and spies.
    #[must_use]
    pub fn channel_status_id(&self) -> Option<i32> {
        channel_status::known(self.state.status_counter_id)
    }

    /// Addresses that the channel is bound to, with the port that the system chose if the channel says port 0. Empty
    /// for IPC, and until the channel is active.
    #[must_use]
    pub fn local_socket_addresses(&self) -> Vec<SocketAddr> {
        if self.is_closed() {
            return Vec::new();
        }
        channel_status::local_addresses(self.link.counters(), self.state.status_counter_id)
    }

    /// The first of the [local addresses](Self::local_socket_addresses): where publishers reach a channel of one
    /// address.
    #[must_use]
    pub fn resolved_endpoint(&self) -> Option<SocketAddr> {
        self.local_socket_addresses().into_iter().next()
    }

    /// The channel with the port that the system chose, if it says port 0: for telling publishers where to send. A
    /// channel without an open port is given as it is. `None` until the port is known.
    #[must_use]
    pub fn try_resolve_channel_endpoint_port(&self) -> Option<String> {
        let as_given = || Some(self.channel().to_owned());
        let Ok(uri) = ChannelUri::parse(self.channel()) else {
            return as_given();
        };
        let is_open = uri
            .get(Param::Endpoint)
            .is_some_and(|endpoint| endpoint.ends_with(":0"));
        // With control-mode=manual the addresses are those of the destinations.
        if !is_open || uri.get(Param::ControlMode) == Some("manual") {
            return as_given();
        }
        let resolved = self.resolved_endpoint()?.to_string();
        let uri = uri.with_endpoint_port(&resolved).ok()?;
        Some(uri.as_str().to_owned())
    }
}
