//! Opening the sockets of network publications.

use std::sync::Arc;

use taran_core::counters::Counter;
use taran_protocol::counter::type_id;
use taran_protocol::event::EventCode;
use taran_protocol::uri::ChannelKind;

use super::super::failure::Failure;
use super::super::network::{Endpoint, ResolvedChannel, status};
use super::super::owners::Owners;
use super::publications::NewPublication;
use crate::boundary::{Destination, EndpointId, SendEndpointSpec, SenderCommand};
use crate::event_log::Fact;
use crate::sender::SendEndpoint;

/// What is counted of an endpoint.
struct EndpointCounters {
    status: Counter,
    local_address: Counter,
    destination_count: Option<Counter>,
}

impl Owners {
    /// Refuses what can be known to fail before anything is made.
    pub(super) fn check_new_send_endpoint(
        &self,
        new: &NewPublication,
        resolved: &ResolvedChannel,
    ) -> Result<(), Failure> {
        if resolved.channel.kind() == ChannelKind::ByTag {
            return Err(Failure::generic(format!(
                "URI must have explicit control, endpoint, or be manual control-mode when original: no publication's channel has \
                 this tag: channel={}",
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

    /// Opens the endpoint of a channel and hands it to the sender. Nobody uses it yet.
    pub(super) fn open_send_endpoint(
        &mut self,
        new: &NewPublication,
        resolved: ResolvedChannel,
        canonical: String,
    ) -> Result<EndpointId, Failure> {
        let id = EndpointId(new.correlation_id);
        let opened = self.networking.open_sender(&resolved)?;
        let bound = opened.bound();
        let channel = resolved.text();
        let EndpointCounters {
            status,
            local_address,
            destination_count,
        } = self.send_endpoint_counters(id, &resolved, &bound.to_string())?;
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
            unheard_timeout_ns: if resolved.is_group() || resolved.is_response() {
                None
            } else {
                self.unheard_timeout(resolved.channel.endpoint.as_ref())
            },
            seed: self.random.u64(..),
        };
        self.networking
            .sender
            .post(SenderCommand::AddEndpoint(Box::new(SendEndpoint::new(
                spec,
            ))));
        status.set(status::ACTIVE);
        local_address.set(status::ACTIVE);
        self.events.log(
            EventCode::SendChannelCreation,
            &[Fact::Text(resolved.text())],
        );
        let buffers = self.networking.sockets.wanted(&resolved);
        self.networking.send_endpoints.insert(Endpoint {
            id,
            resolved,
            canonical,
            buffers,
            ttl,
            destination_count,
            receive_params: None,
            status,
            port: Some(bound.port()),
            local_address: Some(local_address),
            references: 0,
            closing: false,
        });
        Ok(id)
    }

    /// All counters of a new endpoint; all or none.
    fn send_endpoint_counters(
        &mut self,
        id: EndpointId,
        resolved: &ResolvedChannel,
        bound: &str,
    ) -> Result<EndpointCounters, Failure> {
        let (counters, channel) = (&mut self.counters, resolved.text());
        let status = counters.channel_status(
            type_id::SEND_CHANNEL_STATUS,
            "snd-channel",
            id.0,
            channel,
            bound,
        )?;
        let mut others = || {
            let local = counters.local_address("snd-local-sockaddr", id.0, status.id(), bound)?;
            if !resolved.has_destinations() {
                return Ok((local, None));
            }
            match counters.destination_count(id.0, channel) {
                Ok(count) => Ok((local, Some(count))),
                Err(failure) => {
                    counters.free(local.id());
                    Err(failure)
                }
            }
        };
        match others() {
            Ok((local_address, destination_count)) => Ok(EndpointCounters {
                status,
                local_address,
                destination_count,
            }),
            Err(failure) => {
                self.counters.free(status.id());
                Err(failure)
            }
        }
    }
}
