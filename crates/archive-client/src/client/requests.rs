// SPDX-License-Identifier: Apache-2.0
//! The requests of a client, polled and blocking.

use taran::Position;

use super::connection::{ArchiveConnection, Kind};
use super::params::{ReplayParams, ReplaySession, ReplicationParams};
use super::{ArchiveClient, AsyncArchive, Call};
use crate::protocol::*;
use crate::session::{
    Expected, Recording, RecordingSubscription, Reply, RequestError, some_unless_null,
};

type Outcome = Result<Reply, RequestError>;

fn value(outcome: Outcome) -> Result<i64, RequestError> {
    match outcome? {
        Reply::Value(value) => Ok(value),
        Reply::Recordings(_) | Reply::Subscriptions(_) => Ok(NULL_VALUE),
    }
}

fn optional(outcome: Outcome) -> Result<Option<i64>, RequestError> {
    value(outcome).map(some_unless_null)
}

fn nothing(outcome: Outcome) -> Result<(), RequestError> {
    value(outcome).map(drop)
}

fn replay_session(outcome: Outcome) -> Result<ReplaySession, RequestError> {
    value(outcome).map(ReplaySession::from_id)
}

fn is_not_zero(outcome: Outcome) -> Result<bool, RequestError> {
    value(outcome).map(|value| value != 0)
}

fn recordings(outcome: Outcome) -> Result<Vec<Recording>, RequestError> {
    match outcome? {
        Reply::Recordings(list) => Ok(list),
        Reply::Value(_) | Reply::Subscriptions(_) => Ok(Vec::new()),
    }
}

fn recording(outcome: Outcome) -> Result<Option<Recording>, RequestError> {
    recordings(outcome).map(|mut list| list.pop())
}

fn subscriptions(outcome: Outcome) -> Result<Vec<RecordingSubscription>, RequestError> {
    match outcome? {
        Reply::Subscriptions(list) => Ok(list),
        Reply::Value(_) | Reply::Recordings(_) => Ok(Vec::new()),
    }
}

/// Returns false if what is to be stopped is not known.
fn is_stopped(outcome: Outcome) -> Result<bool, RequestError> {
    match outcome {
        Err(error)
            if matches!(
                error.code(),
                Some(ErrorCode::UnknownSubscription | ErrorCode::UnknownReplication)
            ) =>
        {
            Ok(false)
        }
        outcome => value(outcome).map(|_| true),
    }
}

fn count(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

macro_rules! requests {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty {
            $words:literal, $expected:expr, $convert:path, $message:ident {
                $($field:ident $(: $value:expr)?),* $(,)?
            }
        }
    )*) => {
        /// Requests. Each returns at once; the [`Call`] has the result when the archive has answered.
        impl ArchiveConnection {
            $(
                $(#[$doc])*
                pub fn $name(&mut self, $($argument: $type),*) -> Call<$result> {
                    let kind = Kind {
                        request: $words,
                        expected: $expected,
                        convert: $convert,
                    };
                    self.request(&kind, |ids, buffer| {
                        $message {
                            control_session_id: ids.control_session_id,
                            correlation_id: ids.correlation_id,
                            $($field $(: $value)?),*
                        }
                        .encode(buffer)
                    })
                }
            )*
        }

        /// Requests. Each future is ready when the archive has answered.
        impl AsyncArchive {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// See [`RequestError`].
                pub async fn $name(&self, $($argument: $type),*) -> Result<$result, RequestError> {
                    let call = self.with_connection(|connection| connection.$name($($argument),*));
                    call.await
                }
            )*
        }

        /// Requests. Each waits for the answer of the archive, at most for the message timeout.
        impl ArchiveClient {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// See [`RequestError`].
                pub fn $name(&mut self, $($argument: $type),*) -> Result<$result, RequestError> {
                    let call = self.connection_mut().$name($($argument),*);
                    self.wait(call)
                }
            )*
        }
    };
}

requests! {
    /// Starts to record a stream. Returns the id of the recording subscription. Each image of the stream starts a recording
    /// of its own, with a [`START`](RecordingSignal::START) signal. With `auto_stop` the subscription is closed when a
    /// recording ends.
    fn start_recording(channel: &str, stream_id: i32, source_location: SourceLocation, auto_stop: bool) -> i64 {
        "start a recording", Expected::Value, value, StartRecordingRequest2 { channel, stream_id, source_location, auto_stop }
    }

    /// Extends a stopped recording with a stream that begins where the recording ends. Returns the id of the recording
    /// subscription.
    fn extend_recording(recording_id: i64, channel: &str, stream_id: i32, source_location: SourceLocation, auto_stop: bool) -> i64 {
        "extend a recording", Expected::Value, value, ExtendRecordingRequest2 { recording_id, channel, stream_id, source_location, auto_stop }
    }

    /// Stops the recordings of a channel and stream id.
    fn stop_recording(channel: &str, stream_id: i32) -> () {
        "stop a recording", Expected::Value, nothing, StopRecordingRequest { channel, stream_id }
    }

    /// Like [`stop_recording`](Self::stop_recording), but returns false if the stream is not being recorded.
    fn try_stop_recording(channel: &str, stream_id: i32) -> bool {
        "stop a recording", Expected::Value, is_stopped, StopRecordingRequest { channel, stream_id }
    }

    /// Stops the recordings of a recording subscription.
    fn stop_recording_subscription(subscription_id: i64) -> () {
        "stop a recording subscription", Expected::Value, nothing, StopRecordingSubscriptionRequest { subscription_id }
    }

    /// Like [`stop_recording_subscription`](Self::stop_recording_subscription), but returns false if there is no such
    /// subscription.
    fn try_stop_recording_subscription(subscription_id: i64) -> bool {
        "stop a recording subscription", Expected::Value, is_stopped, StopRecordingSubscriptionRequest { subscription_id }
    }

    /// Stops one recording. Returns false if it was not active.
    fn stop_recording_by_identity(recording_id: i64) -> bool {
        "stop a recording", Expected::Value, is_not_zero, StopRecordingByIdentityRequest { recording_id }
    }

    /// Stops a replay. An unknown id is no error.
    fn stop_replay(session: ReplaySession) -> () {
        "stop a replay", Expected::Value, nothing, StopReplayRequest { replay_session_id: session.id() }
    }

    /// Stops all replays of a recording, also those of other clients; all replays of the archive with `None`.
    fn stop_all_replays(recording_id: Option<i64>) -> () {
        "stop all replays", Expected::Value, nothing, StopAllReplaysRequest { recording_id: recording_id.unwrap_or(NULL_VALUE) }
    }

    /// Returns up to `record_count` recordings with ids from `from_recording_id` on, in ascending order.
    fn list_recordings(from_recording_id: i64, record_count: i32) -> Vec<Recording> {
        "list recordings", Expected::Recordings { count: count(record_count) }, recordings, ListRecordingsRequest { from_recording_id, record_count }
    }

    /// Like [`list_recordings`](Self::list_recordings), for recordings with a stream id whose original channel contains
    /// `channel_fragment`.
    fn list_recordings_for_uri(from_recording_id: i64, record_count: i32, channel_fragment: &str, stream_id: i32) -> Vec<Recording> {
        "list recordings of a channel", Expected::Recordings { count: count(record_count) }, recordings, ListRecordingsForUriRequest { from_recording_id, record_count, channel: channel_fragment, stream_id }
    }

    /// Returns a recording; `None` if there is no such recording.
    fn list_recording(recording_id: i64) -> Option<Recording> {
        "list a recording", Expected::Recordings { count: 1 }, recording, ListRecordingRequest { recording_id }
    }

    /// Returns up to `subscription_count` recording subscriptions, from the `pseudo_index`-th on, whose channel contains
    /// `channel_fragment`; with `stream_id`, only those of this stream id.
    fn list_recording_subscriptions(pseudo_index: i32, subscription_count: i32, channel_fragment: &str, stream_id: Option<i32>) -> Vec<RecordingSubscription> {
        "list recording subscriptions", Expected::Subscriptions { count: count(subscription_count) }, subscriptions, ListRecordingSubscriptionsRequest { pseudo_index, subscription_count, channel: channel_fragment, apply_stream_id: stream_id.is_some(), stream_id: stream_id.unwrap_or(0) }
    }

    /// Returns the highest id of a recording, not below `min_recording_id`, with this session and stream id whose original
    /// channel contains `channel_fragment`; `None` if there is none.
    fn find_last_matching_recording(min_recording_id: i64, channel_fragment: &str, stream_id: i32, session_id: i32) -> Option<i64> {
        "find a recording", Expected::Value, optional, FindLastMatchingRecordingRequest { min_recording_id, channel: channel_fragment, stream_id, session_id }
    }

    /// Returns the position at which a recording starts.
    fn start_position(recording_id: i64) -> Position {
        "get a start position", Expected::Value, value, StartPositionRequest { recording_id }
    }

    /// Returns the recorded position of an active recording; `None` if it is not active.
    fn recording_position(recording_id: i64) -> Option<Position> {
        "get a recorded position", Expected::Value, optional, RecordingPositionRequest { recording_id }
    }

    /// Returns the position at which a recording has stopped; `None` while it is active.
    fn stop_position(recording_id: i64) -> Option<Position> {
        "get a stop position", Expected::Value, optional, StopPositionRequest { recording_id }
    }

    /// Returns the recorded position of an active recording, and the stop position of a stopped one.
    fn max_recorded_position(recording_id: i64) -> Position {
        "get a maximum recorded position", Expected::Value, value, MaxRecordedPositionRequest { recording_id }
    }

    /// Returns the id of the archive.
    fn archive_id() -> i64 {
        "get the archive id", Expected::Value, value, ArchiveIdRequest {}
    }

    /// Truncates a stopped recording to a position. Returns the number of segment files to delete; a
    /// [`DELETE`](RecordingSignal::DELETE) signal follows when they are deleted.
    fn truncate_recording(recording_id: i64, position: Position) -> i64 {
        "truncate a recording", Expected::Value, value, TruncateRecordingRequest { recording_id, position }
    }

    /// Deletes a stopped recording. Returns the number of segment files to delete; a [`DELETE`](RecordingSignal::DELETE)
    /// signal follows when they are deleted.
    fn purge_recording(recording_id: i64) -> i64 {
        "purge a recording", Expected::Value, value, PurgeRecordingRequest { recording_id }
    }

    /// Moves the start of a recording to the start of a segment; the segment files before it are kept.
    fn detach_segments(recording_id: i64, new_start_position: Position) -> () {
        "detach segments", Expected::Value, nothing, DetachSegmentsRequest { recording_id, new_start_position }
    }

    /// Deletes the segment files before the start of a recording. Returns their number; a
    /// [`DELETE`](RecordingSignal::DELETE) signal follows when they are deleted.
    fn delete_detached_segments(recording_id: i64) -> i64 {
        "delete detached segments", Expected::Value, value, DeleteDetachedSegmentsRequest { recording_id }
    }

    /// Moves the start of a recording to the start of a segment, and deletes the segment files before it. Returns their
    /// number; a [`DELETE`](RecordingSignal::DELETE) signal follows when they are deleted.
    fn purge_segments(recording_id: i64, new_start_position: Position) -> i64 {
        "purge segments", Expected::Value, value, PurgeSegmentsRequest { recording_id, new_start_position }
    }

    /// Attaches segment files before the start of a recording again. Returns their number.
    fn attach_segments(recording_id: i64) -> i64 {
        "attach segments", Expected::Value, value, AttachSegmentsRequest { recording_id }
    }

    /// Moves the segment files of a recording to the beginning or the end of another. Returns their number.
    fn migrate_segments(src_recording_id: i64, dst_recording_id: i64) -> i64 {
        "migrate segments", Expected::Value, value, MigrateSegmentsRequest { src_recording_id, dst_recording_id }
    }

    /// Changes the channel in the description of a recording.
    fn update_channel(recording_id: i64, channel: &str) -> () {
        "update the channel of a recording", Expected::Value, nothing, UpdateChannelRequest { recording_id, channel }
    }

    /// Replicates a recording of another archive to this one. Returns the id of the replication; signals and errors of it
    /// have this id as correlation id.
    fn replicate(src_recording_id: i64, src_control_channel: &str, src_control_stream_id: i32, params: &ReplicationParams) -> i64 {
        "replicate a recording", Expected::Value, value, ReplicateRequest2 {
            src_recording_id,
            src_control_channel,
            src_control_stream_id,
            dst_recording_id: params.dst_recording_id,
            stop_position: params.stop_position,
            channel_tag_id: params.channel_tag_id,
            subscription_tag_id: params.subscription_tag_id,
            file_io_max_length: params.file_io_max_length,
            replication_session_id: params.replication_session_id,
            live_destination: &params.live_destination,
            replication_channel: &params.replication_channel,
            encoded_credentials: &params.encoded_credentials,
            src_response_channel: &params.src_response_channel,
        }
    }

    /// Stops a replication.
    fn stop_replication(replication_id: i64) -> () {
        "stop a replication", Expected::Value, nothing, StopReplicationRequest { replication_id }
    }

    /// Like [`stop_replication`](Self::stop_replication), but returns false if there is no such replication.
    fn try_stop_replication(replication_id: i64) -> bool {
        "stop a replication", Expected::Value, is_stopped, StopReplicationRequest { replication_id }
    }

    /// Returns a token that permits a replay request of this recording over another image, for some seconds.
    fn request_replay_token(recording_id: i64) -> i64 {
        "get a replay token", Expected::Value, value, ReplayTokenRequest { recording_id }
    }
}

/// Kind of a replay request.
pub(super) const REPLAY: Kind<ReplaySession> = Kind {
    request: "start a replay",
    expected: Expected::Value,
    convert: replay_session,
};

/// Writes a replay request.
pub(super) fn encode_replay(
    ids: super::connection::Ids,
    buffer: &mut [u8],
    recording_id: i64,
    (replay_channel, replay_stream_id): (&str, i32),
    params: &ReplayParams,
) -> Result<usize, taran_sbe::runtime::EncodeError> {
    let super::connection::Ids {
        control_session_id,
        correlation_id,
    } = ids;
    let ReplayParams {
        position,
        length,
        limit_counter_id,
        file_io_max_length,
        replay_token,
    } = *params;
    match limit_counter_id {
        Some(limit_counter_id) => BoundedReplayRequest {
            control_session_id,
            correlation_id,
            recording_id,
            position,
            length,
            limit_counter_id,
            replay_stream_id,
            file_io_max_length,
            replay_token,
            replay_channel,
        }
        .encode(buffer),
        None => ReplayRequest {
            control_session_id,
            correlation_id,
            recording_id,
            position,
            length,
            replay_stream_id,
            file_io_max_length,
            replay_token,
            replay_channel,
        }
        .encode(buffer),
    }
}

impl ArchiveConnection {
    /// Starts a replay to a channel and stream id. The replayed stream has the session id
    /// [`ReplaySession::session_id`]; [`ReplaySession::subscription_channel`] is the channel to subscribe to. For a channel
    /// with `control-mode=response` see [`ResponseReplay`](super::ResponseReplay).
    pub fn start_replay(
        &mut self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Call<ReplaySession> {
        if taran::ChannelUri::parse(replay_channel).is_ok_and(|uri| uri.is_response()) {
            let reason = format!(
                "the replay channel {replay_channel} has control-mode=response, for which the subscription comes first: \
                 use ResponseReplay"
            );
            let request = REPLAY.request;
            return self.refuse(&REPLAY, RequestError::InvalidArgument { request, reason });
        }
        self.request(&REPLAY, |ids, buffer| {
            let destination = (replay_channel, replay_stream_id);
            encode_replay(ids, buffer, recording_id, destination, params)
        })
    }
}
