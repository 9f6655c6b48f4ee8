// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove publications.

use std::sync::Arc;

use taran_protocol::counter::{
    CONCURRENT_PUBLISHER_POSITION, EXCLUSIVE_PUBLISHER_POSITION, StreamCounter,
};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::{LogBuffers, file_length};
use taran_protocol::response::Response;
use taran_protocol::uri::{Channel, PublicationParams, SessionChoice};

use super::super::clients::PublicationRef;
use super::super::command_error::CommandError;
use super::super::counters::StreamIdentity;
use super::super::deferred_commands::{Prerequisite, ResolvedPrerequisites};
use super::super::failure::Failure;
use super::super::log_files::{LogFile, LogFolder, LogKey, LogRequest};
use super::super::log_reservation::LogDimensions;
use super::super::publication_config::{
    LogSocketBuffers, PublicationConfig, initial_position, start_position,
};
use super::super::publication_log::PublicationLog;
use super::super::state::ConductorState;

/// An add command with its parsed channel.
#[derive(Debug)]
pub(super) struct NewPublication {
    pub(super) client_id: i64,
    pub(super) correlation_id: i64,
    pub(super) stream_id: i32,
    pub(super) exclusive: bool,
    pub(super) channel: Channel,
    pub(super) params: PublicationParams,
    pub(super) session_id: Option<i32>,
}

/// Contents of the response to an add command.
#[derive(Debug, Clone)]
pub(super) struct PublicationNotice {
    pub(super) registration_id: i64,
    pub(super) session_id: i32,
    pub(super) limit_counter_id: i32,
    pub(super) status_counter_id: i32,
    pub(super) log_name: String,
}

impl ConductorState {
    pub(super) fn add_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: &str,
        exclusive: bool,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let channel = Channel::for_publication(channel).map_err(Failure::from)?;
        let params = self.publication_params(&channel)?;
        let session_id = match params.session {
            SessionChoice::Id(session_id) => Some(session_id),
            SessionChoice::Generated | SessionChoice::OfTag(_) => None,
        };
        self.check_registration(correlation_id)?;
        let mut new = NewPublication {
            client_id,
            correlation_id,
            stream_id,
            exclusive,
            channel,
            params,
            session_id,
        };
        match &new.channel {
            Channel::Ipc(_) => self.add_ipc_publication(&new, prerequisites),
            Channel::Udp(_) | Channel::Spy(_) => {
                self.add_network_publication(&mut new, prerequisites)
            }
        }
    }

    /// Returns the parameters of a channel. With `session-id=tag:` some come from the tagged publication, which must be
    /// a network publication, as in the C driver, even if the channel is IPC.
    pub(super) fn publication_params(
        &self,
        channel: &Channel,
    ) -> Result<PublicationParams, Failure> {
        let defaults = &self.settings.publication_defaults;
        let SessionChoice::OfTag(tag) = SessionChoice::of(channel)? else {
            return Ok(PublicationParams::new(channel, defaults)?);
        };
        let publications = &self.networking.publications;
        match publications.find_tagged(tag) {
            Some(found) => Ok(PublicationParams::for_tagged(
                channel,
                defaults,
                &found.config.tagged(),
            )?),
            None => Err(Failure::generic(format!(
                "session-id=tag:{tag} must reference a network publication, add one with tags=<channel>,{tag} first: \
                 channel={}",
                channel.uri()
            ))),
        }
    }

    /// Checks that no publication has this registration id, which names files and counters.
    pub(super) fn check_registration(&self, id: i64) -> Result<(), Failure> {
        let network_id = crate::boundary::PublicationId(id);
        if self.ipc.contains(id) || self.networking.publications.contains(network_id) {
            return Err(Failure::generic(format!(
                "registration id {id} is in use by another publication"
            )));
        }
        Ok(())
    }

    /// Returns the identity and parameters of a new publication.
    pub(super) fn publication_config(&mut self, new: &NewPublication) -> PublicationConfig {
        let session_id = new
            .session_id
            .unwrap_or_else(|| self.next_session_id(new.stream_id));
        PublicationConfig {
            registration_id: new.correlation_id,
            session_id,
            stream_id: new.stream_id,
            exclusive: new.exclusive,
            channel: Arc::from(new.channel.uri().as_str()),
            entity_tag: new.channel.tags().entity,
            params: new.params.clone(),
            position: initial_position(&new.params, &mut self.random),
        }
    }

    /// Returns the log file of a new publication. Called before any state is changed, since on its first run the
    /// command stops here and waits for the file.
    pub(super) fn log_file(
        &mut self,
        new: &NewPublication,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Result<LogFile, CommandError> {
        if let Some(created) = prerequisites.log.take() {
            return Ok(created?);
        }
        let request = self.log_request(new.correlation_id, &new.params);
        let ticket = self.logs.request(&request, self.now.epoch_millis)?;
        Err(CommandError::Pending(Prerequisite::LogFile(ticket)))
    }

    pub(super) fn log_request(&self, id: i64, params: &PublicationParams) -> LogRequest {
        let page_size = self.settings.file_page_size;
        let term_length = params.term_length as i32;
        let dimensions = LogDimensions {
            term_length,
            file_length: file_length(term_length, page_size),
            page_size,
        };
        let start = params
            .position
            .map_or(0, |position| start_position(&position, term_length));
        LogRequest {
            key: LogKey {
                folder: LogFolder::Publications,
                id,
            },
            dimensions,
            start_position: start,
            reserve_to: dimensions.publisher_need(start.saturating_add(params.window as i64)),
            sparse: params.sparse,
        }
    }

    /// Initializes the log of a new publication in its file.
    pub(super) fn create_log(
        &mut self,
        config: &PublicationConfig,
        mut file: LogFile,
        start: i64,
        buffers: LogSocketBuffers,
        is_group: bool,
    ) -> Result<PublicationLog, Failure> {
        if !file.reservation().starts_at(start) {
            self.logs.retire(file);
            return Err(Failure::generic(format!(
                "the log was created for another start position than {start}: channel={}",
                config.channel
            )));
        }
        file.set_stream(config.session_id, config.stream_id, &config.channel);
        let spec = config.log_spec(self.settings.file_page_size, buffers, is_group);
        match LogBuffers::create(file.region(), &spec, start) {
            Ok(buffers) => Ok(PublicationLog::new(file, buffers, start, self.now.nanos)),
            Err(error) => {
                self.logs.retire(file);
                Err(Failure::generic(format!(
                    "cannot create a log: {error}: channel={}",
                    config.channel
                )))
            }
        }
    }

    /// Links the client to its publication and sends the response.
    pub(super) fn finish_publication(
        &mut self,
        new: &NewPublication,
        publication: PublicationRef,
        notice: PublicationNotice,
    ) {
        self.clients
            .link(new.client_id, new.correlation_id, publication);
        let PublicationNotice {
            registration_id,
            session_id,
            limit_counter_id,
            status_counter_id,
            log_name,
        } = notice;
        let (correlation_id, stream_id, log_name) =
            (new.correlation_id, new.stream_id, log_name.as_str());
        self.responses.send(&if new.exclusive {
            Response::ExclusivePublicationReady {
                correlation_id,
                registration_id,
                session_id,
                stream_id,
                limit_counter_id,
                status_counter_id,
                log_name,
            }
        } else {
            Response::PublicationReady {
                correlation_id,
                registration_id,
                session_id,
                stream_id,
                limit_counter_id,
                status_counter_id,
                log_name,
            }
        });
    }

    pub(super) fn remove_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        revoke: bool,
    ) -> Result<(), Failure> {
        let Some(publication) = self.clients.unlink(client_id, registration_id) else {
            return Err(Failure::new(
                ErrorCode::UnknownPublication,
                format!(
                    "unknown publication client_id={client_id} registration_id={registration_id}: it was \
                     removed or never existed"
                ),
            ));
        };
        if revoke {
            match publication {
                PublicationRef::Ipc(id) => self.ipc.find(id).map(|p| p.log.revoke()),
                PublicationRef::Network(id) => self
                    .networking
                    .publications
                    .get_mut(id)
                    .map(|p| p.log.revoke()),
            };
        }
        self.release_publication(publication);
        self.respond_success(correlation_id);
        Ok(())
    }
}

pub(super) fn identity(config: &PublicationConfig) -> StreamIdentity<'_> {
    StreamIdentity {
        registration_id: config.registration_id,
        session_id: config.session_id,
        stream_id: config.stream_id,
        channel: &config.channel,
    }
}

pub(super) fn publisher_position(exclusive: bool) -> StreamCounter {
    if exclusive {
        EXCLUSIVE_PUBLISHER_POSITION
    } else {
        CONCURRENT_PUBLISHER_POSITION
    }
}

pub(super) fn session_conflict(new: &NewPublication, session_id: i32) -> Failure {
    Failure::generic(format!(
        "Specified session-id is already in exclusive use for channel={} stream-id={}: use a session-id other than \
         {session_id}, or omit it",
        new.channel.uri(),
        new.stream_id
    ))
}
