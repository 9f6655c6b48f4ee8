// SPDX-License-Identifier: Apache-2.0
//! Opening of receive endpoints.

use std::sync::Arc;

use taran_net::AgentRole;
use taran_protocol::event::EventCode;
use taran_protocol::uri::ChannelKind;

use super::super::counters::{Direction, EndpointIdentity};
use super::super::failure::Failure;
use super::super::network::{Endpoint, ResolvedChannel, status};
use super::super::state::ConductorState;
use super::subscriptions::NewSubscription;
use crate::boundary::{
    EndpointId, ReceiveEndpointSpec, ReceiveTransportSpec, ReceiverCommand, TransportId,
};
use crate::event_log::FieldValue;
use crate::receiver::ReceiveEndpoint;
use crate::secured::policy::End;
use crate::timestamps::ReceiveTimestamps;

impl ConductorState {
    /// Opens the endpoint of a channel and passes it to the receiver. It has no references yet.
    pub(super) fn open_receive_endpoint(
        &mut self,
        new: &NewSubscription,
        resolved: ResolvedChannel,
        canonical: String,
    ) -> Result<EndpointId, Failure> {
        let id = EndpointId(new.id);
        self.check_new_receive_endpoint(id, &resolved)?;
        let has_destinations = resolved.channel.kind() == ChannelKind::Manual;
        // With manual destinations there is no socket yet.
        let security = self.security.decide(&resolved, End::Receiver)?;
        let transport = if has_destinations {
            None
        } else {
            let transport = TransportId(id.0);
            self.security
                .prepare_receiver(transport, &security, resolved.text());
            let opened = self.networking.open_receiver(&resolved, id.0);
            self.security
                .opened(AgentRole::Receiver, id.0, opened.is_ok());
            Some(opened?)
        };
        let bound = transport
            .as_ref()
            .map(|transport| transport.local_address());
        let channel: Arc<str> = Arc::from(resolved.text());
        let address = bound.map(|bound| bound.to_string());
        let counters = self.counters.endpoint(
            EndpointIdentity {
                direction: Direction::Receive,
                registration_id: id.0,
                channel: &channel,
            },
            address.as_deref(),
            false,
        )?;
        let transport = transport.map(|transport| ReceiveTransportSpec {
            id: TransportId(id.0),
            transport,
            control_group: resolved.control_group(),
            explicit_control: resolved.explicit_control(),
            re_resolution_timeout_ns: self.re_resolution_timeout(resolved.channel.control.as_ref()),
            grows: self.networking.sockets.grows(&resolved),
        });
        let receiver_id = self.networking.next_receiver_id;
        self.networking.next_receiver_id = receiver_id.wrapping_add(1);
        if let Some(bound) = bound {
            let transport = TransportId(id.0);
            self.security
                .add_receiver(id, transport, &security, &resolved, (bound, receiver_id));
        }
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
            .send(ReceiverCommand::AddEndpoint(Box::new(
                ReceiveEndpoint::new(spec),
            )));
        for counter in counters.local_address.iter().chain([&counters.status]) {
            counter.set(status::ACTIVE);
        }
        self.events.log(
            EventCode::ReceiveChannelCreation,
            &[FieldValue::Text(resolved.text())],
        );
        let buffers = self.networking.sockets.requested_buffers(&resolved);
        self.networking.receive_endpoints.insert(Endpoint {
            id,
            security,
            resolved,
            canonical,
            buffers,
            ttl: 0,
            max_datagram: 0,
            expansion: 0,
            path_mtu: None,
            destination_count: None,
            receiver_id,
            receive_params: Some(new.params.clone()),
            status: counters.status,
            port: bound.map(|bound| bound.port()),
            local_address: counters.local_address,
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
                "invalid channel: URI must have explicit control, endpoint, or be manual control-mode when original: \
                 no subscription's channel has this tag: channel={}",
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
}
