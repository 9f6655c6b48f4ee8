// SPDX-License-Identifier: Apache-2.0
//! Fields that all requests of a session have, and results of requests.

use std::fmt::Display;

use taran_archive_client::protocol::{ErrorCode, Message, Request};

/// Session, correlation id and template id of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestIds {
    pub(super) session_id: i64,
    pub(super) correlation_id: i64,
    pub(super) action_id: i32,
}

/// The client to which a result is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) session_id: i64,
    pub(super) correlation_id: i64,
}

/// Reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) text: String,
    /// True if the reason is also written to the error log.
    pub(super) is_logged: bool,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            is_logged: false,
        }
    }

    /// A refusal that is also written to the error log.
    pub(super) fn logged(text: impl Display) -> Self {
        Self {
            code: ErrorCode::Generic,
            text: text.to_string(),
            is_logged: true,
        }
    }

    /// A refusal of a recording whose files could not be read at the start.
    pub(super) fn unavailable_recording(recording_id: i64, reason: &str) -> Self {
        Self::new(
            ErrorCode::Generic,
            format!(
                "the recording {recording_id} is unavailable until the archive starts again, because its end could not be \
                 found: {reason}"
            ),
        )
    }

    pub(super) fn unknown_recording(recording_id: i64) -> Self {
        Self::new(
            ErrorCode::UnknownRecording,
            format!("there is no recording {recording_id}: list the recordings to find its id"),
        )
    }
}

macro_rules! ids {
    ($request:expr; $($name:ident)*) => {
        match $request {
            $(Request::$name(message) => Some(RequestIds {
                session_id: message.control_session_id,
                correlation_id: message.correlation_id,
                action_id: i32::from(action_of(message)),
            }),)*
            _ => None,
        }
    };
}

fn action_of<M: Message>(_: &M) -> u16 {
    M::TEMPLATE_ID
}

/// Returns the ids of a request of a session; `None` for those that open and close sessions.
pub(super) fn ids_of(request: &Request<'_>) -> Option<RequestIds> {
    ids!(request;
        StartRecordingRequest StartRecordingRequest2 StopRecordingRequest StopRecordingSubscriptionRequest
        StopRecordingByIdentityRequest ExtendRecordingRequest ExtendRecordingRequest2 ReplayRequest
        BoundedReplayRequest StopReplayRequest StopAllReplaysRequest ReplayTokenRequest ListRecordingsRequest
        ListRecordingsForUriRequest ListRecordingRequest ListRecordingSubscriptionsRequest
        FindLastMatchingRecordingRequest RecordingPositionRequest StartPositionRequest StopPositionRequest
        MaxRecordedPositionRequest ArchiveIdRequest TruncateRecordingRequest PurgeRecordingRequest
        DetachSegmentsRequest DeleteDetachedSegmentsRequest PurgeSegmentsRequest AttachSegmentsRequest
        MigrateSegmentsRequest UpdateChannelRequest ReplicateRequest TaggedReplicateRequest ReplicateRequest2
        StopReplicationRequest KeepAliveRequest)
}
