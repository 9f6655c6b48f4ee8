// SPDX-License-Identifier: Apache-2.0
//! Requests, sent by clients on a control stream (`docs/spec/archive.md` §2).

use taran_sbe::runtime::EncodeError;

use super::fields::Fields;
use super::message::messages;
use super::wire::{FromWire, ToWire};
use super::{Message, MessageError, ProtocolVersion, SourceLocation};
use crate::codecs::control;

messages! {
    /// A message from a client to an archive.
    enum Request<'a> {
        /// Opens a control session without credentials.
        ConnectRequest<'a> = connect_request::{ConnectRequestDecoder, ConnectRequestEncoder} [correlation_id] {
            /// Stream id for responses.
            response_stream_id: i32,
            /// Protocol version of the sender.
            version: ProtocolVersion,
            ;
            /// Channel for responses.
            response_channel: &'a str,
        }
        /// Closes a control session.
        CloseSessionRequest = close_session_request::{CloseSessionRequestDecoder, CloseSessionRequestEncoder} [control_session_id] {
            ;
        }
        /// Starts recording a stream.
        StartRecordingRequest<'a> = start_recording_request::{StartRecordingRequestDecoder, StartRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Stream id.
            stream_id: i32,
            /// Location of the stream's source.
            source_location: SourceLocation,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Stops recording a stream.
        StopRecordingRequest<'a> = stop_recording_request::{StopRecordingRequestDecoder, StopRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Starts a replay of a recording.
        ReplayRequest<'a> = replay_request::{ReplayRequestDecoder, ReplayRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Stream position in bytes.
            position: i64,
            /// Length in bytes.
            length: i64,
            /// Stream id of the replay.
            replay_stream_id: i32,
            /// Upper bound in bytes for one read or write of a file.
            file_io_max_length: i32,
            /// Token that permits a replay request on another image.
            replay_token: i64,
            ;
            /// Channel of the replay.
            replay_channel: &'a str,
        }
        /// Stops a replay.
        StopReplayRequest = stop_replay_request::{StopReplayRequestDecoder, StopReplayRequestEncoder} [control_session_id correlation_id] {
            /// Id of the replay session.
            replay_session_id: i64,
            ;
        }
        /// Requests descriptors of a range of recordings.
        ListRecordingsRequest = list_recordings_request::{ListRecordingsRequestDecoder, ListRecordingsRequestEncoder} [control_session_id correlation_id] {
            /// First recording id of the search.
            from_recording_id: i64,
            /// Greatest number of descriptors to return.
            record_count: i32,
            ;
        }
        /// Requests descriptors of recordings by channel and stream id.
        ListRecordingsForUriRequest<'a> = list_recordings_for_uri_request::{ListRecordingsForUriRequestDecoder, ListRecordingsForUriRequestEncoder} [control_session_id correlation_id] {
            /// First recording id of the search.
            from_recording_id: i64,
            /// Greatest number of descriptors to return.
            record_count: i32,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Requests the descriptor of a recording.
        ListRecordingRequest = list_recording_request::{ListRecordingRequestDecoder, ListRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Extends a stopped recording.
        ExtendRecordingRequest<'a> = extend_recording_request::{ExtendRecordingRequestDecoder, ExtendRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Stream id.
            stream_id: i32,
            /// Location of the stream's source.
            source_location: SourceLocation,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Requests the recorded position of an active recording.
        RecordingPositionRequest = recording_position_request::{RecordingPositionRequestDecoder, RecordingPositionRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Truncates a stopped recording.
        TruncateRecordingRequest = truncate_recording_request::{TruncateRecordingRequestDecoder, TruncateRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Stream position in bytes.
            position: i64,
            ;
        }
        /// Stops the recordings of a recording subscription.
        StopRecordingSubscriptionRequest = stop_recording_subscription_request::{StopRecordingSubscriptionRequestDecoder, StopRecordingSubscriptionRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording subscription.
            subscription_id: i64,
            ;
        }
        /// Requests the stop position of a recording.
        StopPositionRequest = stop_position_request::{StopPositionRequestDecoder, StopPositionRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Finds the last recording that matches.
        FindLastMatchingRecordingRequest<'a> = find_last_matching_recording_request::{FindLastMatchingRecordingRequestDecoder, FindLastMatchingRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Lowest recording id of the search.
            min_recording_id: i64,
            /// Session id of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Requests descriptors of recording subscriptions.
        ListRecordingSubscriptionsRequest<'a> = list_recording_subscriptions_request::{ListRecordingSubscriptionsRequestDecoder, ListRecordingSubscriptionsRequestEncoder} [control_session_id correlation_id] {
            /// Index of the first subscription to return.
            pseudo_index: i32,
            /// Greatest number of descriptors to return.
            subscription_count: i32,
            /// True if the stream id must match.
            apply_stream_id: bool,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Starts a replay whose position is bounded by a counter.
        BoundedReplayRequest<'a> = bounded_replay_request::{BoundedReplayRequestDecoder, BoundedReplayRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Stream position in bytes.
            position: i64,
            /// Length in bytes.
            length: i64,
            /// Id of the counter that bounds the replay position.
            limit_counter_id: i32,
            /// Stream id of the replay.
            replay_stream_id: i32,
            /// Upper bound in bytes for one read or write of a file.
            file_io_max_length: i32,
            /// Token that permits a replay request on another image.
            replay_token: i64,
            ;
            /// Channel of the replay.
            replay_channel: &'a str,
        }
        /// Stops all replays, or those of one recording.
        StopAllReplaysRequest = stop_all_replays_request::{StopAllReplaysRequestDecoder, StopAllReplaysRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Replicates a recording of another archive.
        ReplicateRequest<'a> = replicate_request::{ReplicateRequestDecoder, ReplicateRequestEncoder} [control_session_id correlation_id] {
            /// Id of the source recording.
            src_recording_id: i64,
            /// Id of the destination recording; -1 creates one.
            dst_recording_id: i64,
            /// Stream id for control requests to the source archive.
            src_control_stream_id: i32,
            ;
            /// Channel for control requests to the source archive.
            src_control_channel: &'a str,
            /// Destination of the live stream to merge with; empty for no merge.
            live_destination: &'a str,
        }
        /// Stops a replication.
        StopReplicationRequest = stop_replication_request::{StopReplicationRequestDecoder, StopReplicationRequestEncoder} [control_session_id correlation_id] {
            /// Id of the replication.
            replication_id: i64,
            ;
        }
        /// Requests the start position of a recording.
        StartPositionRequest = start_position_request::{StartPositionRequestDecoder, StartPositionRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Moves the start position of a recording; segment files before it are kept.
        DetachSegmentsRequest = detach_segments_request::{DetachSegmentsRequestDecoder, DetachSegmentsRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// New start position in bytes.
            new_start_position: i64,
            ;
        }
        /// Deletes detached segment files.
        DeleteDetachedSegmentsRequest = delete_detached_segments_request::{DeleteDetachedSegmentsRequestDecoder, DeleteDetachedSegmentsRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Moves the start position of a recording and deletes the segment files before it.
        PurgeSegmentsRequest = purge_segments_request::{PurgeSegmentsRequestDecoder, PurgeSegmentsRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// New start position in bytes.
            new_start_position: i64,
            ;
        }
        /// Attaches segment files before the start position again.
        AttachSegmentsRequest = attach_segments_request::{AttachSegmentsRequestDecoder, AttachSegmentsRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Moves segment files of a recording to the beginning or end of another.
        MigrateSegmentsRequest = migrate_segments_request::{MigrateSegmentsRequestDecoder, MigrateSegmentsRequestEncoder} [control_session_id correlation_id] {
            /// Id of the source recording.
            src_recording_id: i64,
            /// Id of the destination recording; -1 creates one.
            dst_recording_id: i64,
            ;
        }
        /// Opens a control session with credentials.
        AuthConnectRequest<'a> = auth_connect_request::{AuthConnectRequestDecoder, AuthConnectRequestEncoder} [correlation_id] {
            /// Stream id for responses.
            response_stream_id: i32,
            /// Protocol version of the sender.
            version: ProtocolVersion,
            ;
            /// Channel for responses.
            response_channel: &'a str,
            /// Credentials of the client.
            encoded_credentials: &'a [u8],
            /// Name and version of the client.
            client_info: &'a str,
        }
        /// Answers a challenge.
        ChallengeResponse<'a> = challenge_response::{ChallengeResponseDecoder, ChallengeResponseEncoder} [control_session_id correlation_id] {
            ;
            /// Credentials of the client.
            encoded_credentials: &'a [u8],
        }
        /// Keeps a control session alive.
        KeepAliveRequest = keep_alive_request::{KeepAliveRequestDecoder, KeepAliveRequestEncoder} [control_session_id correlation_id] {
            ;
        }
        /// Replicates a recording of another archive over a subscription with tags.
        TaggedReplicateRequest<'a> = tagged_replicate_request::{TaggedReplicateRequestDecoder, TaggedReplicateRequestEncoder} [control_session_id correlation_id] {
            /// Id of the source recording.
            src_recording_id: i64,
            /// Id of the destination recording; -1 creates one.
            dst_recording_id: i64,
            /// Channel tag for the subscription of the replication.
            channel_tag_id: i64,
            /// Tag for the subscription of the replication.
            subscription_tag_id: i64,
            /// Stream id for control requests to the source archive.
            src_control_stream_id: i32,
            ;
            /// Channel for control requests to the source archive.
            src_control_channel: &'a str,
            /// Destination of the live stream to merge with; empty for no merge.
            live_destination: &'a str,
        }
        /// Starts recording a stream, optionally until the first image ends.
        StartRecordingRequest2<'a> = start_recording_request2::{StartRecordingRequest2Decoder, StartRecordingRequest2Encoder} [control_session_id correlation_id] {
            /// Stream id.
            stream_id: i32,
            /// Location of the stream's source.
            source_location: SourceLocation,
            /// True to stop when the first image ends.
            auto_stop: bool,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Extends a stopped recording, optionally until the first image ends.
        ExtendRecordingRequest2<'a> = extend_recording_request2::{ExtendRecordingRequest2Decoder, ExtendRecordingRequest2Encoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Stream id.
            stream_id: i32,
            /// Location of the stream's source.
            source_location: SourceLocation,
            /// True to stop when the first image ends.
            auto_stop: bool,
            ;
            /// Channel URI.
            channel: &'a str,
        }
        /// Stops a recording by its id.
        StopRecordingByIdentityRequest = stop_recording_by_identity_request::{StopRecordingByIdentityRequestDecoder, StopRecordingByIdentityRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Replicates a recording of another archive, with all options.
        ReplicateRequest2<'a> = replicate_request2::{ReplicateRequest2Decoder, ReplicateRequest2Encoder} [control_session_id correlation_id] {
            /// Id of the source recording.
            src_recording_id: i64,
            /// Id of the destination recording; -1 creates one.
            dst_recording_id: i64,
            /// Stop position in bytes; -1 while the recording is active.
            stop_position: i64,
            /// Channel tag for the subscription of the replication.
            channel_tag_id: i64,
            /// Tag for the subscription of the replication.
            subscription_tag_id: i64,
            /// Stream id for control requests to the source archive.
            src_control_stream_id: i32,
            /// Upper bound in bytes for one read or write of a file.
            file_io_max_length: i32,
            /// Session id for the replayed stream.
            replication_session_id: i32,
            ;
            /// Channel for control requests to the source archive.
            src_control_channel: &'a str,
            /// Destination of the live stream to merge with; empty for no merge.
            live_destination: &'a str,
            /// Channel for the replayed stream.
            replication_channel: &'a str,
            /// Credentials of the client.
            encoded_credentials: &'a [u8],
            /// Channel for responses of the source archive.
            src_response_channel: &'a str,
        }
        /// Requests the recorded position, or the stop position of a stopped recording.
        MaxRecordedPositionRequest = max_recorded_position_request::{MaxRecordedPositionRequestDecoder, MaxRecordedPositionRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Requests the id of the archive.
        ArchiveIdRequest = archive_id_request::{ArchiveIdRequestDecoder, ArchiveIdRequestEncoder} [control_session_id correlation_id] {
            ;
        }
        /// Deletes a recording and its segment files.
        PurgeRecordingRequest = purge_recording_request::{PurgeRecordingRequestDecoder, PurgeRecordingRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Requests a token that permits a replay request on another image.
        ReplayTokenRequest = replay_token_request::{ReplayTokenRequestDecoder, ReplayTokenRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
        }
        /// Changes the channel of a recording.
        UpdateChannelRequest<'a> = update_channel_request::{UpdateChannelRequestDecoder, UpdateChannelRequestEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            ;
            /// Channel URI.
            channel: &'a str,
        }
    }
}
