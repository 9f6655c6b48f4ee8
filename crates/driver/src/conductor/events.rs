// SPDX-License-Identifier: Apache-2.0
//! Handlers for events from the sender and the receiver.

use taran_protocol::error_code::ErrorCode;
use taran_protocol::event::EventCode;
use taran_protocol::response::Response;

use super::failure::Failure;
use super::file_worker::RequestOrigin;
use super::log_files::{LogFile, LogFolder, LogKey, ReservationOutcome, SpaceChange};
use super::publication_config::PublicationConfig;
use super::publication_log::PublicationLog;
use super::state::ConductorState;
use crate::boundary::{ConductorEvent, ImageId, PublicationError, PublicationId};
use crate::event_log::{EventLog, FieldValue};

/// Logs the removal of an IPC or network publication.
pub(crate) fn log_publication_removed(events: &EventLog, config: &PublicationConfig) {
    events.log(
        EventCode::RemovePublicationCleanup,
        &[
            FieldValue::Int(config.session_id),
            FieldValue::Int(config.stream_id),
            FieldValue::Text(&config.channel),
        ],
    );
}

/// Logs the revocation of an IPC or network publication.
pub(crate) fn log_publication_revoked(
    events: &EventLog,
    config: &PublicationConfig,
    log: &PublicationLog,
) {
    events.log(
        EventCode::PublicationRevoke,
        &[
            FieldValue::Long(log.buffers().end_of_stream_position()),
            FieldValue::Int(config.session_id),
            FieldValue::Int(config.stream_id),
            FieldValue::Text(&config.channel),
        ],
    );
}

impl ConductorState {
    pub(crate) fn on_event(&mut self, event: ConductorEvent) {
        match event {
            ConductorEvent::CreateImage(request) => {
                self.queue_image(request);
            }
            ConductorEvent::PublicationReleased(publication) => {
                let id = publication.id();
                // The sender's view of the log is dropped before the log itself.
                drop(publication);
                if let Some(publication) = self.networking.publications.remove(id) {
                    let endpoint = publication.endpoint;
                    self.security.remove_stream(
                        endpoint,
                        publication.config.session_id,
                        publication.config.stream_id,
                    );
                    log_publication_removed(&self.events, &publication.config);
                    let (log, counters) = publication.into_parts();
                    self.counters.free_all(&counters);
                    self.logs.retire(log);
                    self.networking.release_send_endpoint(endpoint);
                }
            }
            ConductorEvent::SendEndpointReleased(mut endpoint) => {
                if let Some(endpoint) = self.networking.send_endpoints.get(endpoint.id()) {
                    let channel = FieldValue::Text(endpoint.resolved.text());
                    self.events.log(EventCode::SendChannelClose, &[channel]);
                }
                self.networking
                    .send_destinations
                    .remove_endpoint(endpoint.id());
                if self.security.remove_sender(self.now, endpoint.id()) {
                    endpoint.send_last();
                }
                if let Some(counters) = self.networking.send_endpoints.on_released(endpoint.id()) {
                    self.counters.free_all(&counters);
                }
            }
            ConductorEvent::ImageReleased(image) => {
                if let Some(image) = self.networking.images.get_mut(image.id()) {
                    image.set_released();
                }
            }
            ConductorEvent::ReceiveEndpointReleased(mut endpoint) => {
                let id = endpoint.id();
                if let Some(endpoint) = self.networking.receive_endpoints.get(id) {
                    let channel = FieldValue::Text(endpoint.resolved.text());
                    self.events.log(EventCode::ReceiveChannelClose, &[channel]);
                }
                if self.security.remove_receive_endpoint(self.now, id) {
                    endpoint.send_last();
                }
                if let Some(counters) = self.networking.receive_endpoints.on_released(id) {
                    self.counters.free_all(&counters);
                }
                let counters = self
                    .networking
                    .receive_destinations
                    .on_endpoint_released(id);
                self.counters.free_all(&counters);
            }
            ConductorEvent::ReceiveTransportReleased(mut transport) => {
                if self.security.remove_receiver(self.now, transport.id()) {
                    transport.send_last();
                }
                let destinations = &mut self.networking.receive_destinations;
                if let Some(counter) = destinations.on_released(transport.id()) {
                    self.counters.free(counter.id());
                }
            }
            ConductorEvent::PublicationError(error) => self.on_publication_error(&error),
            ConductorEvent::ReResolveEndpoint(endpoint) => {
                self.on_re_resolve_endpoint(endpoint);
            }
            ConductorEvent::ReResolveControl {
                endpoint,
                transport,
            } => self.on_re_resolve_control(endpoint, transport),
            ConductorEvent::ReResolveDestination {
                endpoint,
                destination,
            } => self.on_re_resolve_destination(endpoint, destination),
            ConductorEvent::ResponseSetup {
                publication,
                session_id,
            } => self.on_response_setup(publication, session_id),
            ConductorEvent::SessionLimitReached {
                endpoint,
                session_id,
                stream_id,
            } => {
                let cause = format!(
                    "session limit reached, no image created (aeron.driver.stream.session.limit={}): \
                     stream={stream_id} channel={}",
                    self.settings.receiver.stream_session_limit,
                    self.networking.receive_channel(endpoint)
                );
                let details = format!("{cause} session-id={session_id}");
                self.record_remote_error(ErrorCode::GenericError, &cause, &details);
            }
        }
    }

    /// Records an error frame for a publication and sends it to the clients.
    pub(crate) fn on_publication_error(&mut self, error: &PublicationError) {
        // The wording of the official drivers, which users search for.
        let cause = format!(
            "onPublicationError: registrationId={}, streamId={}",
            error.publication.0, error.stream_id
        );
        let details = format!(
            "{cause}, sessionId={}, receiverId={}, errorCode={}, errorMessage={}, from {}",
            error.session_id, error.receiver_id, error.code, error.text, error.source
        );
        self.record_remote_error(ErrorCode::from_code(error.code), &cause, &details);
        self.responses.send(&Response::PublicationError {
            registration_id: error.publication.0,
            destination_id: error.destination_id,
            session_id: error.session_id,
            stream_id: error.stream_id,
            receiver_id: error.receiver_id,
            group_tag: error.group_tag.unwrap_or(-1),
            source: error.source,
            error_code: error.code,
            message: error.text.as_bytes(),
        });
    }

    /// Handles a created log file, or the failure to create it. Returns it if it is not for an image.
    pub(crate) fn on_file(
        &mut self,
        ticket: u64,
        file: Result<LogFile, Failure>,
    ) -> Option<Result<LogFile, Failure>> {
        match self.networking.image_queue.on_created(ticket) {
            Some(image) => {
                self.on_image_file(image, file);
                None
            }
            None => Some(file),
        }
    }

    /// Handles the outcome of the reservation of pages of a log. Its stream may have been removed meanwhile.
    pub(crate) fn on_reserved(&mut self, outcome: &ReservationOutcome) {
        let now_ns = self.now.nanos;
        let LogKey { folder, id } = outcome.log;
        let networking = &mut self.networking;
        let change = match folder {
            LogFolder::Images => networking
                .images
                .get_mut(ImageId(id))
                .and_then(|image| image.on_reserved(outcome, now_ns)),
            LogFolder::Publications => {
                if let Some(publication) = self.ipc.find(id) {
                    publication.log.on_reserved(outcome, now_ns)
                } else {
                    networking
                        .publications
                        .get_mut(PublicationId(id))
                        .and_then(|publication| publication.log.on_reserved(outcome, now_ns))
                }
            }
        };
        if let Some(change) = change {
            self.record_space(&change);
        }
    }

    /// Records that a shortage of space has begun or ended for a log in use.
    pub(crate) fn record_space(&mut self, change: &SpaceChange) {
        let Failure { code, text } = &change.record;
        match change.origin {
            RequestOrigin::Client => self.record(*code, text),
            RequestOrigin::Peer => {
                let cause = "the space for pages of images changed: some wait, or continue";
                self.record_remote_error(*code, cause, text);
            }
        }
    }
}
