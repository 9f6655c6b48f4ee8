// SPDX-License-Identifier: Apache-2.0
//! Opening of send endpoints.

use std::sync::Arc;

use taran_net::{AgentRole, Capabilities};
use taran_protocol::event::EventCode;
use taran_protocol::uri::ChannelKind;

use super::super::counters::{Direction, EndpointCounters, EndpointIdentity};
use super::super::failure::Failure;
use super::super::network::{Endpoint, ResolvedChannel, status};
use super::super::state::ConductorState;
use super::publications::NewPublication;
use crate::boundary::{Destination, EndpointId, SendEndpointSpec, SenderCommand};
use crate::event_log::FieldValue;
use crate::secured::Security;
use crate::secured::policy::End;
use crate::sender::SendEndpoint;

impl ConductorState {
    /// Rejects a new endpoint that cannot be opened, before resources are allocated.
    pub(super) fn check_new_send_endpoint(
        &self,
        new: &NewPublication,
        resolved: &ResolvedChannel,
    ) -> Result<(), Failure> {
        if resolved.channel.kind() == ChannelKind::ByTag {
            return Err(Failure::generic(format!(
                "URI must have explicit control, endpoint, or be manual control-mode when original: no \
                 publication's channel has this tag: channel={}",
                resolved.text()
            )));
        }
        let id = EndpointId(new.correlation_id);
        if self.networking.send_endpoints.contains(id) {
            return Err(Failure::generic(format!(
                "registration id {} is in use by another endpoint",
                id.0
            )));
        }
        Ok(())
    }

    /// Opens the endpoint of a channel and passes it to the sender. It has no references yet.
    pub(super) fn open_send_endpoint(
        &mut self,
        new: &NewPublication,
        resolved: ResolvedChannel,
        canonical: String,
    ) -> Result<EndpointId, Failure> {
        let id = EndpointId(new.correlation_id);
        let security = self.security.decide(&resolved, End::Sender)?;
        self.security.prepare_sender(id, &security, resolved.text());
        let opened = self.networking.open_sender(&resolved, id.0);
        self.security
            .opened(AgentRole::Sender, id.0, opened.is_ok());
        let opened = opened?;
        let bound = opened.bound();
        let buffers = self.networking.sockets.requested_buffers(&resolved);
        let Capabilities {
            max_datagram,
            expansion,
            ..
        } = opened.data.capabilities();
        let max_datagram = Security::max_datagram(&security, max_datagram);
        let send_buffer = self.networking.sockets.send_buffer(buffers);
        new.params
            .check_datagram(max_datagram, expansion, send_buffer, &new.channel)?;
        let path_mtu = opened.data.peer().zip(opened.data.path_mtu());
        let channel = resolved.text();
        let EndpointCounters {
            status,
            local_address,
            destination_count,
        } = self.counters.endpoint(
            EndpointIdentity {
                direction: Direction::Send,
                registration_id: id.0,
                channel,
            },
            Some(&bound.to_string()),
            resolved.has_destinations(),
        )?;
        let sockets = &self.networking.sockets;
        let ttl = match sockets.multicast_ttl(&resolved) {
            Some(_) => opened.data.multicast_ttl(),
            None => 0,
        };
        let spec = SendEndpointSpec {
            id,
            channel: Arc::from(channel),
            data: opened.data,
            control: opened.control,
            destination: match (&destination_count, resolved.channel.kind()) {
                (Some(count), ChannelKind::Manual) => Destination::Manual(count.clone()),
                (Some(count), _) => Destination::Dynamic(count.clone()),
                (None, ChannelKind::Response) => Destination::Learned,
                (None, _) if sockets.connect => Destination::Connected,
                (None, _) => Destination::Address(resolved.roles.remote_data),
            },
            re_resolution_timeout_ns: if resolved.is_group() || resolved.is_response() {
                None
            } else {
                self.re_resolution_timeout(resolved.channel.endpoint.as_ref())
            },
            seed: self.random.u64(..),
        };
        self.networking
            .sender
            .send(SenderCommand::AddEndpoint(Box::new(SendEndpoint::new(
                spec,
            ))));
        for counter in local_address.iter().chain([&status]) {
            counter.set(status::ACTIVE);
        }
        self.events.log(
            EventCode::SendChannelCreation,
            &[FieldValue::Text(resolved.text())],
        );
        self.security.add_sender(id, &security, &resolved, bound);
        self.networking.send_endpoints.insert(Endpoint {
            id,
            security,
            resolved,
            canonical,
            buffers,
            ttl,
            max_datagram,
            expansion,
            path_mtu,
            destination_count,
            receiver_id: 0,
            receive_params: None,
            status,
            port: Some(bound.port()),
            local_address,
            references: 0,
            closing: false,
        });
        Ok(id)
    }
}
