// SPDX-License-Identifier: Apache-2.0
//! Properties of a subscription and its channel.

use std::net::SocketAddr;

use taran_protocol::uri::{ChannelUri, Param};

use super::Subscription;
use crate::channel_status::{self, ChannelStatus};

impl Subscription {
    /// Returns the channel as it was given.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.state.channel
    }

    /// Returns the stream id.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.state.stream_id
    }

    /// Returns the registration id of the subscription.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.state.registration_id
    }

    /// Returns the status of the channel.
    #[must_use]
    pub fn channel_status(&self) -> ChannelStatus {
        if self.is_closed() {
            return ChannelStatus::Closed;
        }
        channel_status::read(self.client.counters(), self.state.status_counter_id)
    }

    /// Returns the counter id of the channel's status indicator; `None` for IPC and spies.
    #[must_use]
    pub fn channel_status_id(&self) -> Option<i32> {
        channel_status::status_id(self.state.status_counter_id)
    }

    /// Returns the addresses that the channel is bound to, with the port that the system has assigned if the channel
    /// has port 0. Empty for IPC, and until the channel is active.
    #[must_use]
    pub fn local_socket_addresses(&self) -> Vec<SocketAddr> {
        if self.is_closed() {
            return Vec::new();
        }
        channel_status::local_addresses(self.client.counters(), self.state.status_counter_id)
    }

    /// Returns the first of the [local addresses](Self::local_socket_addresses): the address for publishers if the
    /// channel has only one.
    #[must_use]
    pub fn resolved_endpoint(&self) -> Option<SocketAddr> {
        self.local_socket_addresses().into_iter().next()
    }

    /// Returns the channel with port 0 replaced by the port that the system has assigned, for use by publishers; `None`
    /// until the port is known. A channel without a wildcard port is returned unchanged.
    #[must_use]
    pub fn try_resolve_channel_endpoint_port(&self) -> Option<String> {
        let unchanged = || Some(self.channel().to_owned());
        let Ok(uri) = ChannelUri::parse(self.channel()) else {
            return unchanged();
        };
        let is_wildcard = uri
            .get(Param::Endpoint)
            .is_some_and(|endpoint| endpoint.ends_with(":0"));
        // With control-mode=manual the bound addresses are those of the destinations.
        if !is_wildcard || uri.get(Param::ControlMode) == Some("manual") {
            return unchanged();
        }
        let resolved = self.resolved_endpoint()?.to_string();
        let uri = uri.with_endpoint_port(&resolved).ok()?;
        Some(uri.as_str().to_owned())
    }
}
