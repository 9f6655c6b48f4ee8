// SPDX-License-Identifier: Apache-2.0
//! Commands that add network publications.

use std::sync::Arc;

use taran_core::counters::Counter;
use taran_protocol::counter::StreamCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::UdpChannel;

use super::super::clients::PublicationRef;
use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::log_files::LogFile;
use super::super::network::{
    Endpoint, NetworkPublication, PublicationCounters, ResolvedChannel, resolve,
};
use super::super::publication_config::PublicationConfig;
use super::super::state::ConductorState;
use super::publications::{
    NewPublication, PublicationNotice, identity, publisher_position, session_conflict,
};
use super::sender_spec::SenderParams;
use crate::boundary::{EndpointId, PublicationId, PublicationShared, SenderCommand};
use crate::secured::policy::{End, StreamAudience, check_shared};
use crate::sender::SenderPublication;

impl ConductorState {
    pub(super) fn add_network_publication(
        &mut self,
        new: &mut NewPublication,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let Some(udp) = new.channel.udp() else {
            return Err(Failure::generic("not a UDP channel").into());
        };
        self.check_response(new.params.is_response, new.params.response)
            .map_err(|failure| {
                let text = format!("{}: channel={}", failure.text, new.channel.uri());
                Failure::new(failure.code, text)
            })?;
        let resolved = self.resolve_channel(udp, prerequisites)?;
        let canonical = self.networking.send_endpoints.canonical(&resolved);
        let existing = self
            .networking
            .send_endpoints
            .matching(&resolved, &canonical)?;
        let requested = existing.map_or_else(
            || self.networking.sockets.requested_buffers(&resolved),
            |e| e.buffers,
        );
        let security = self.security.decide(&resolved, End::Sender)?;
        let is_secured = match existing {
            Some(existing) => {
                check_shared(&existing.security, &security, &resolved.channel)?;
                existing.security.is_secured
            }
            None => security.is_secured,
        };
        let (is_response, response) = (new.params.is_response, new.params.response);
        let audience = if is_secured {
            self.audience(is_response, response)
        } else {
            Ok(StreamAudience::All)
        };
        let audience = audience
            .and_then(|audience| {
                let is_request = !is_response;
                if is_request {
                    self.check_requests(is_secured, response)?;
                }
                Ok(audience)
            })
            .map_err(|failure| {
                let text = format!("{}: channel={}", failure.text, new.channel.uri());
                Failure::new(failure.code, text)
            })?;
        let endpoint_id = existing.map(|endpoint| endpoint.id);
        let datagrams = existing.map(|endpoint| (endpoint.max_datagram, endpoint.expansion));
        // A channel that is only a tag has the group semantics of the endpoint with that tag.
        let is_group = existing.map_or_else(|| resolved.is_group(), Endpoint::is_group);
        if is_group {
            new.params
                .use_group_flow_control(&new.channel, &self.settings.publication_defaults)
                .map_err(Failure::from)?;
        }
        let send_buffer = self.networking.sockets.send_buffer(requested);
        new.params
            .check_send_buffer(send_buffer, &new.channel)
            .map_err(Failure::from)?;
        if let Some((max_datagram, expansion)) = datagrams {
            new.params
                .check_datagram(max_datagram, expansion, send_buffer, &new.channel)
                .map_err(Failure::from)?;
        }
        self.ensure_client(new.client_id)?;

        if let Some(endpoint_id) = endpoint_id {
            if !new.exclusive
                && let Some(shared) = self.networking.publications.find_shared(
                    endpoint_id,
                    new.stream_id,
                    new.params.response,
                )
            {
                new.params
                    .check_shared(&shared.config.live(true), &new.channel)
                    .map_err(Failure::from)?;
                shared.add_reference();
                let id = shared.id;
                return Ok(self.finish_network_publication(new, id)?);
            }
            if let Some(session_id) = new.session_id
                && self.networking.publications.endpoint_uses_session(
                    endpoint_id,
                    new.stream_id,
                    session_id,
                )
            {
                return Err(session_conflict(new, session_id).into());
            }
        }
        if endpoint_id.is_none() {
            self.check_new_send_endpoint(new, &resolved)?;
        }
        let file = self.log_file(new, prerequisites)?;
        let opened = match endpoint_id {
            Some(id) => Ok(id),
            None => self.open_send_endpoint(new, resolved, canonical),
        };
        let endpoint_id = match opened {
            Ok(id) => id,
            Err(failure) => {
                self.logs.retire(file);
                return Err(failure.into());
            }
        };
        let created = self.create_network_publication(new, endpoint_id, file, audience);
        if created.is_err() {
            self.networking.close_unused_send_endpoint(endpoint_id);
        }
        created?;
        let endpoint = self.networking.send_endpoints.get(endpoint_id);
        if let Some(warning) = endpoint.and_then(|endpoint| endpoint.path_warning(new.params.mtu)) {
            self.record(ErrorCode::GenericError, &warning);
        }
        let id = PublicationId(new.correlation_id);
        self.finish_network_publication(new, id)?;
        self.start_response_setup(id);
        self.join_subscriptions(PublicationRef::Network(id));
        Ok(())
    }

    /// Resolves the host names of a channel.
    pub(super) fn resolve_channel(
        &mut self,
        udp: &UdpChannel,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<ResolvedChannel, CommandError> {
        resolve(udp.clone(), prerequisites, &mut self.networking.sockets)
    }

    fn create_network_publication(
        &mut self,
        new: &NewPublication,
        endpoint: EndpointId,
        file: LogFile,
        audience: StreamAudience,
    ) -> Result<(), Failure> {
        let config = self.publication_config(new);
        let start = config.start_position();
        let Some(requested) = self
            .networking
            .send_endpoints
            .get(endpoint)
            .map(|e| e.buffers)
        else {
            self.logs.retire(file);
            return Err(Failure::generic(format!("endpoint {} is gone", endpoint.0)));
        };
        let group = self.group(endpoint);
        let buffers = self.networking.sockets.log_buffers(Some(requested));
        let log = self.create_log(&config, file, start, buffers, group.is_group)?;
        let created =
            self.flow_control(&config, group.is_group)
                .and_then(|(strategy, receivers)| {
                    let counters = self.publication_counters(new, &config, start, receivers)?;
                    Ok((strategy, counters))
                });
        let (flow_control, counters) = match created {
            Ok(created) => created,
            Err(failure) => {
                self.logs.retire(log.into_file());
                return Err(failure);
            }
        };
        let shared = Arc::new(PublicationShared::new(start));
        let sender_params = SenderParams {
            endpoint,
            group,
            start_position: start,
            flow_control,
        };
        let spec = self.sender_publication_spec(sender_params, &config, &log, &counters, &shared);
        let stream = (config.session_id, config.stream_id);
        self.security
            .add_stream(self.now, endpoint, stream, audience);
        self.networking
            .sender
            .send(SenderCommand::AddPublication(Box::new(
                SenderPublication::new(spec),
            )));
        self.networking.send_endpoints.add_reference(endpoint);
        let unblock_ns = self.settings.publication.unblock_timeout_ns;
        self.networking.publications.insert(NetworkPublication::new(
            endpoint, config, log, counters, shared, unblock_ns, start,
        ));
        Ok(())
    }

    /// Allocates all counters of a new publication; all or none.
    fn publication_counters(
        &mut self,
        new: &NewPublication,
        config: &PublicationConfig,
        start: i64,
        receivers: Option<Counter>,
    ) -> Result<PublicationCounters, Failure> {
        let created = self.position_and_event_counters(new, config, start);
        match created {
            Ok(counters) => Ok(PublicationCounters {
                receivers,
                ..counters
            }),
            Err(failure) => {
                self.counters.free_all(&receivers);
                Err(failure)
            }
        }
    }

    fn position_and_event_counters(
        &mut self,
        new: &NewPublication,
        config: &PublicationConfig,
        start: i64,
    ) -> Result<PublicationCounters, Failure> {
        let identity = identity(config);
        let positions = [
            publisher_position(new.exclusive),
            StreamCounter::PUBLISHER_LIMIT,
            StreamCounter::SENDER_POSITION,
            StreamCounter::SENDER_LIMIT,
        ];
        let events = [
            StreamCounter::SENDER_BACK_PRESSURE_EVENTS,
            StreamCounter::SENDER_NAKS_RECEIVED,
        ];
        let positions = self
            .counters
            .stream(positions, &identity, new.client_id, start)?;
        match self.counters.stream(events, &identity, new.client_id, 0) {
            Ok([back_pressure_events, naks_received]) => {
                let [
                    publisher_position,
                    publisher_limit,
                    sender_position,
                    sender_limit,
                ] = positions;
                Ok(PublicationCounters {
                    publisher_position,
                    publisher_limit,
                    sender_position,
                    sender_limit,
                    back_pressure_events,
                    naks_received,
                    receivers: None,
                })
            }
            Err(failure) => {
                self.counters.free_all(&positions);
                Err(failure)
            }
        }
    }

    fn finish_network_publication(
        &mut self,
        new: &NewPublication,
        id: PublicationId,
    ) -> Result<(), Failure> {
        let Some(publication) = self.networking.publications.get(id) else {
            return Err(Failure::generic(format!("publication {} is gone", id.0)));
        };
        let status_counter_id = self
            .networking
            .send_endpoints
            .get(publication.endpoint)
            .map_or(-1, |e| e.status.id());
        let notice = PublicationNotice {
            registration_id: id.0,
            session_id: publication.config.session_id,
            limit_counter_id: publication.counters.publisher_limit.id(),
            status_counter_id,
            log_name: publication.log.name().to_owned(),
        };
        self.finish_publication(new, PublicationRef::Network(id), notice);
        Ok(())
    }
}
