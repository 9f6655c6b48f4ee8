//! Opening the sockets of network subscriptions.

use std::sync::Arc;

use taran_core::counters::Counter;
use taran_protocol::counter::type_id;
use taran_protocol::event::EventCode;
use taran_protocol::uri::ChannelKind;

use super::super::failure::Failure;
use super::super::network::{Endpoint, ResolvedChannel, status};
use super::super::owners::Owners;
use super::subscriptions::NewSubscription;
use crate::boundary::{
    EndpointId, ReceiveEndpointSpec, ReceiveTransportSpec, ReceiverCommand, TransportId,
};
use crate::event_log::Fact;
use crate::receiver::ReceiveEndpoint;
use crate::timestamps::ReceiveTimestamps;

/// The registration id and the channel of a socket's owner.
struct Owner<'a> {
    id: EndpointId,
    channel: &'a str,
}

impl Owners {
    /// Opens the endpoint of a channel and hands it to the receiver. Nobody uses it yet.
    pub(super) fn open_receive_endpoint(
        &mut self,
        new: &NewSubscription,
        resolved: ResolvedChannel,
        canonical: String,
    ) -> Result<EndpointId, Failure> {
        let id = EndpointId(new.id);
        self.check_new_receive_endpoint(id, &resolved)?;
        let has_destinations = resolved.channel.kind() == ChannelKind::Manual;
        // With sources by command there is no socket yet.
        let transport = if has_destinations {
            None
        } else {
            Some(self.networking.open_receiver(&resolved)?)
        };
        let bound = transport
            .as_ref()
            .map(|transport| transport.local_address());
        let channel: Arc<str> = Arc::from(resolved.text());
        let owner = Owner {
            id,
            channel: &channel,
        };
        let address = bound.map(|bound| bound.to_string());
        let (status, local_address) = self.receive_endpoint_counters(&owner, address.as_deref())?;
        let transport = transport.map(|transport| ReceiveTransportSpec {
            id: TransportId(id.0),
            transport,
            control_group: resolved.control_group(),
            explicit_control: resolved.explicit_control(),
            unheard_timeout_ns: self.unheard_timeout(resolved.channel.control.as_ref()),
        });
        let receiver_id = self.networking.next_receiver_id;
        self.networking.next_receiver_id = receiver_id.wrapping_add(1);
        let spec = ReceiveEndpointSpec {
            id,
            channel,
            transports: transport.into_iter().collect(),
            has_destinations,
            timestamps: self.receive_timestamps(&resolved),
            receiver_id,
            group_tag: new.params.group_tag,
            stream_session_limit: self.settings.receiver.stream_session_limit,
            seed: self.random.u64(..),
        };
        self.networking
            .receiver
            .post(ReceiverCommand::AddEndpoint(Box::new(
                ReceiveEndpoint::new(spec),
            )));
        for counter in local_address.iter().chain([&status]) {
            counter.set(status::ACTIVE);
        }
        self.events.log(
            EventCode::ReceiveChannelCreation,
            &[Fact::Text(resolved.text())],
        );
        let buffers = self.networking.sockets.wanted(&resolved);
        self.networking.receive_endpoints.insert(Endpoint {
            id,
            resolved,
            canonical,
            buffers,
            ttl: 0,
            destination_count: None,
            receive_params: Some(new.params.clone()),
            status,
            port: bound.map(|bound| bound.port()),
            local_address,
            references: 0,
            closing: false,
        });
        Ok(id)
    }

    fn receive_timestamps(&self, resolved: &ResolvedChannel) -> Option<ReceiveTimestamps> {
        let media = resolved.channel.media_receive_timestamp;
        let channel = resolved.channel.channel_receive_timestamp;
        (media.is_some() || channel.is_some()).then(|| ReceiveTimestamps {
            media,
            channel,
            clock: Arc::clone(&self.networking.wall_clock),
        })
    }

    fn check_new_receive_endpoint(
        &self,
        id: EndpointId,
        resolved: &ResolvedChannel,
    ) -> Result<(), Failure> {
        if resolved.channel.kind() == ChannelKind::ByTag {
            return Err(Failure::invalid_channel(format!(
                "invalid channel: URI must have explicit control, endpoint, or be manual control-mode when original: no \
                 subscription's channel has this tag: channel={}",
                resolved.text()
            )));
        }
        if self.networking.receive_endpoints.contains(id) {
            return Err(Failure::generic(format!(
                "registration id {} is in use by another endpoint",
                id.0
            )));
        }
        Ok(())
    }

    /// Status of a channel, and the address it is bound to where it has one; both or none. The label of a channel
    /// without a socket ends in a blank (spec/02 §2.15).
    fn receive_endpoint_counters(
        &mut self,
        owner: &Owner<'_>,
        bound: Option<&str>,
    ) -> Result<(Counter, Option<Counter>), Failure> {
        let status = self.counters.channel_status(
            type_id::RECEIVE_CHANNEL_STATUS,
            "rcv-channel",
            owner.id.0,
            owner.channel,
            bound.unwrap_or_default(),
        )?;
        let Some(bound) = bound else {
            return Ok((status, None));
        };
        let local_address =
            self.counters
                .local_address("rcv-local-sockaddr", owner.id.0, status.id(), bound);
        match local_address {
            Ok(counter) => Ok((status, Some(counter))),
            Err(failure) => {
                self.counters.free(status.id());
                Err(failure)
            }
        }
    }
}
