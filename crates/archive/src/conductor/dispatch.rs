// SPDX-License-Identifier: Apache-2.0
//! Decoding, admission and routing of requests (`docs/spec/archive.md` §1.6).

use taran::ImageView;
use taran_archive_client::protocol::{
    ControlResponseCode, ErrorCode, MessageError, NULL_VALUE, Request,
};
use taran_protocol::event::ArchiveEventCode;

use super::ConductorCore;
use super::connect::ConnectFields;
use super::recordings::RecordingRequest;
use super::replays::ReplayFields;
use super::replications::ReplicationFields;
use super::request::{Refusal, RequestIds, Requester, ids_of};
use crate::files::Descriptor;
use crate::security::CONTROL_PROTOCOL_ID;
use crate::session::SessionEnd;

/// Template id of a request to keep a session alive, which is never answered.
const KEEP_ALIVE: i32 = 61;

impl ConductorCore {
    pub(super) fn on_message(&mut self, message: &[u8], image: &ImageView) {
        match Request::decode(message) {
            Ok(request) => {
                if let Some(event) = ArchiveEventCode::of_request(request.template_id()) {
                    self.events
                        .message(event, message.len(), format_args!("{request}"));
                }
                self.on_request(&request, image);
            }
            // A message that newer clients may send.
            Err(MessageError::UnexpectedTemplate { .. }) => {}
            Err(error) => {
                let source = image.source_identity();
                let text = format!("a request from {source} cannot be read: {error}");
                self.log(ErrorCode::Generic, &text);
            }
        }
    }

    fn on_request(&mut self, request: &Request<'_>, image: &ImageView) {
        match request {
            Request::ConnectRequest(request) => {
                let fields = ConnectFields {
                    correlation_id: request.correlation_id,
                    response_stream_id: request.response_stream_id,
                    version: request.version,
                    response_channel: request.response_channel,
                    credentials: &[],
                    client_info: "",
                };
                self.connect(&fields, image);
            }
            Request::AuthConnectRequest(request) => {
                let fields = ConnectFields {
                    correlation_id: request.correlation_id,
                    response_stream_id: request.response_stream_id,
                    version: request.version,
                    response_channel: request.response_channel,
                    credentials: request.encoded_credentials,
                    client_info: request.client_info,
                };
                self.connect(&fields, image);
            }
            Request::CloseSessionRequest(request) => {
                if self.is_own_image(request.control_session_id, image)
                    && let Some(session) = self.sessions.get_mut(&request.control_session_id)
                {
                    session.control.close(SessionEnd::Closed);
                }
            }
            Request::ChallengeResponse(request) => {
                let now_ms = self.now.epoch_millis;
                if self.is_own_image(request.control_session_id, image)
                    && let Some(session) = self.sessions.get_mut(&request.control_session_id)
                {
                    session.control.on_challenge_response(
                        request.correlation_id,
                        request.encoded_credentials,
                        &mut *self.authenticator,
                        now_ms,
                    );
                }
            }
            request => {
                if let Some(ids) = ids_of(request) {
                    self.on_session_request(request, ids, image);
                }
            }
        }
    }

    fn on_session_request(&mut self, request: &Request<'_>, ids: RequestIds, image: &ImageView) {
        if let Some(fields) = ReplayFields::of(request)
            && fields.has_token()
        {
            self.replay_with_token(&fields, ids, image);
            return;
        }
        if !self.admit(ids, image) {
            return;
        }
        let to = Requester {
            session_id: ids.session_id,
            correlation_id: ids.correlation_id,
        };
        self.route(request, to, image);
    }

    /// Checks the session of a request. Returns false if it is not handled.
    fn admit(&mut self, ids: RequestIds, image: &ImageView) -> bool {
        let RequestIds {
            session_id,
            correlation_id,
            action_id,
        } = ids;
        if !self.is_own_image(session_id, image) {
            let source = image.source_identity();
            let text = format!(
                "a request from {source} names the control session {session_id}, which it did not open or which has \
                 ended: the client has to connect anew"
            );
            self.log(ErrorCode::Generic, &text);
            return false;
        }
        let now_ns = self.now.nanos;
        let Some(session) = self.sessions.get_mut(&session_id) else {
            return false;
        };
        let principal = session.control.principal();
        if !self
            .authorisation
            .is_authorised(CONTROL_PROTOCOL_ID, action_id, principal)
        {
            let text = format!("the client may not make requests of type {action_id}");
            self.log(ErrorCode::UnauthorisedAction, &text);
            let to = Requester {
                session_id,
                correlation_id,
            };
            self.respond_with(
                to,
                ControlResponseCode::ERROR,
                ErrorCode::UnauthorisedAction.raw(),
                &text,
            );
            return false;
        }
        session.control.activate(now_ns) && action_id != KEEP_ALIVE
    }

    fn route(&mut self, request: &Request<'_>, to: Requester, image: &ImageView) {
        match request {
            Request::StartRecordingRequest(request) => {
                let wanted = RecordingRequest {
                    extends: None,
                    replication: None,
                    channel: request.channel,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    auto_stop: false,
                };
                self.start_recording(&wanted, to);
            }
            Request::StartRecordingRequest2(request) => {
                let wanted = RecordingRequest {
                    extends: None,
                    replication: None,
                    channel: request.channel,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    auto_stop: request.auto_stop,
                };
                self.start_recording(&wanted, to);
            }
            Request::ExtendRecordingRequest(request) => {
                let wanted = RecordingRequest {
                    extends: Some(request.recording_id),
                    replication: None,
                    channel: request.channel,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    auto_stop: false,
                };
                self.start_recording(&wanted, to);
            }
            Request::ExtendRecordingRequest2(request) => {
                let wanted = RecordingRequest {
                    extends: Some(request.recording_id),
                    replication: None,
                    channel: request.channel,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    auto_stop: request.auto_stop,
                };
                self.start_recording(&wanted, to);
            }
            Request::StopRecordingRequest(request) => {
                let result = self.stop_recording(request.channel, request.stream_id);
                self.respond(to, result);
            }
            Request::StopRecordingSubscriptionRequest(request) => {
                let result = self.stop_recording_subscription(request.subscription_id);
                self.respond(to, result);
            }
            Request::StopRecordingByIdentityRequest(request) => {
                let result = self.stop_recording_by_identity(request.recording_id);
                self.respond(to, result);
            }
            Request::ReplayRequest(_) | Request::BoundedReplayRequest(_) => {
                if let Some(fields) = ReplayFields::of(request) {
                    self.start_replay(&fields, to, image);
                }
            }
            Request::StopReplayRequest(request) => {
                self.stop_replay(request.replay_session_id);
                self.respond(to, Ok(0));
            }
            Request::StopAllReplaysRequest(request) => {
                self.stop_all_replays(request.recording_id);
                self.respond(to, Ok(0));
            }
            Request::ReplayTokenRequest(request) => {
                let token = self.add_replay_token(to.session_id, request.recording_id);
                self.respond(to, token);
            }
            request => self.route_catalog_request(request, to),
        }
    }

    fn route_catalog_request(&mut self, request: &Request<'_>, to: Requester) {
        match request {
            Request::ListRecordingsRequest(_)
            | Request::ListRecordingsForUriRequest(_)
            | Request::ListRecordingRequest(_)
            | Request::ListRecordingSubscriptionsRequest(_) => self.start_listing(request, to),
            Request::FindLastMatchingRecordingRequest(request) => {
                let result = if request.min_recording_id < 0 {
                    Err(Refusal::unknown_recording(request.min_recording_id))
                } else {
                    Ok(self
                        .catalog
                        .find_last_matching(
                            request.min_recording_id,
                            request.stream_id,
                            request.session_id,
                            request.channel,
                        )
                        .unwrap_or(NULL_VALUE))
                };
                self.respond(to, result);
            }
            Request::StartPositionRequest(request) => {
                let result = self
                    .known(request.recording_id)
                    .map(|found| found.start_position);
                self.respond(to, result);
            }
            Request::StopPositionRequest(request) => {
                let result = self
                    .known(request.recording_id)
                    .map(|found| found.stop_position);
                self.respond(to, result);
            }
            Request::RecordingPositionRequest(request) => {
                let recorded = self.recorded_position(request.recording_id);
                let known = self.known(request.recording_id);
                let result = known.map(|_| recorded.unwrap_or(NULL_VALUE));
                self.respond(to, result);
            }
            Request::MaxRecordedPositionRequest(request) => {
                let recorded = self.recorded_position(request.recording_id);
                let known = self.known(request.recording_id);
                let result = known.map(|found| recorded.unwrap_or(found.stop_position));
                self.respond(to, result);
            }
            Request::ArchiveIdRequest(_) => self.respond(to, Ok(self.archive_id)),
            request => self.route_segment_request(request, to),
        }
    }

    fn route_segment_request(&mut self, request: &Request<'_>, to: Requester) {
        if let Some(fields) = ReplicationFields::of(request) {
            self.replicate(&fields, to);
            return;
        }
        let result = match request {
            Request::StopReplicationRequest(request) => {
                let result = self.stop_replication(request.replication_id);
                self.respond(to, result);
                Ok(())
            }
            Request::TruncateRecordingRequest(request) => {
                self.truncate_recording(request.recording_id, request.position, to)
            }
            Request::PurgeRecordingRequest(request) => {
                self.purge_recording(request.recording_id, to)
            }
            Request::DetachSegmentsRequest(request) => {
                self.detach_segments(request.recording_id, request.new_start_position, to)
            }
            Request::DeleteDetachedSegmentsRequest(request) => {
                self.delete_detached_segments(request.recording_id, to)
            }
            Request::PurgeSegmentsRequest(request) => {
                self.purge_segments(request.recording_id, request.new_start_position, to)
            }
            Request::AttachSegmentsRequest(request) => {
                self.attach_segments(request.recording_id, to)
            }
            Request::MigrateSegmentsRequest(request) => {
                self.migrate_segments(request.src_recording_id, request.dst_recording_id, to)
            }
            Request::UpdateChannelRequest(request) => {
                self.update_channel(request.recording_id, request.channel, to)
            }
            _ => Err(Refusal::new(
                ErrorCode::Generic,
                "this archive does not support the request yet",
            )),
        };
        if let Err(refusal) = result {
            self.refuse(to, &refusal);
        }
    }

    /// Returns a recording of the catalog.
    pub(super) fn known(&self, recording_id: i64) -> Result<&Descriptor, Refusal> {
        let found = self.catalog.get(recording_id);
        found.ok_or_else(|| match self.catalog.unavailable(recording_id) {
            Some(reason) => Refusal::unavailable_recording(recording_id, reason),
            None => Refusal::unknown_recording(recording_id),
        })
    }
}
