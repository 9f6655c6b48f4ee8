// SPDX-License-Identifier: Apache-2.0
//! Messages from an archive: responses and signals to one client, and recording events to all.

use taran_sbe::runtime::EncodeError;

use super::fields::Fields;
use super::message::messages;
use super::wire::{FromWire, ToWire};
use super::{ControlResponseCode, Message, MessageError, ProtocolVersion, RecordingSignal};
use crate::codecs::control;

messages! {
    /// A message on the response stream of a control session.
    enum Event<'a> {
        /// Response to a request.
        ControlResponse<'a> = control_response::{ControlResponseDecoder, ControlResponseEncoder} [control_session_id correlation_id] {
            /// Result of the request: an id, a position, a count, or an error code.
            relevant_id: i64,
            /// Result code.
            code: ControlResponseCode,
            /// Protocol version of the sender.
            version: ProtocolVersion,
            ;
            /// Text of the error.
            error_message: &'a str,
        }
        /// Describes a recording.
        RecordingDescriptor<'a> = recording_descriptor::{RecordingDescriptorDecoder, RecordingDescriptorEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Start time.
            start_timestamp: i64,
            /// Stop time.
            stop_timestamp: i64,
            /// Start position in bytes.
            start_position: i64,
            /// Stop position in bytes; -1 while the recording is active.
            stop_position: i64,
            /// Initial term id of the stream.
            initial_term_id: i32,
            /// Length of a segment file in bytes.
            segment_file_length: i32,
            /// Term length of the stream in bytes.
            term_buffer_length: i32,
            /// MTU of the stream in bytes.
            mtu_length: i32,
            /// Session id of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel with the parameters that identify the stream only.
            stripped_channel: &'a str,
            /// Channel as requested.
            original_channel: &'a str,
            /// Source identity of the image.
            source_identity: &'a str,
        }
        /// Describes a recording subscription.
        RecordingSubscriptionDescriptor<'a> = recording_subscription_descriptor::{RecordingSubscriptionDescriptorDecoder, RecordingSubscriptionDescriptorEncoder} [control_session_id correlation_id] {
            /// Id of the recording subscription.
            subscription_id: i64,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel with the parameters that identify the stream only.
            stripped_channel: &'a str,
        }
        /// Signals an event of a recording or replication.
        RecordingSignalEvent = recording_signal_event::{RecordingSignalEventDecoder, RecordingSignalEventEncoder} [control_session_id correlation_id] {
            /// Id of the recording.
            recording_id: i64,
            /// Id of the recording subscription.
            subscription_id: i64,
            /// Stream position in bytes.
            position: i64,
            /// Signal.
            signal: RecordingSignal,
            ;
        }
        /// Challenges a client during connect.
        Challenge<'a> = challenge::{ChallengeDecoder, ChallengeEncoder} [control_session_id correlation_id] {
            /// Protocol version of the sender.
            version: ProtocolVersion,
            ;
            /// Encoded challenge.
            encoded_challenge: &'a [u8],
        }
        /// Sent by an archive to fill the response stream of a client that does not poll.
        Ping = ping::{PingDecoder, PingEncoder} [control_session_id] {
            ;
        }
    }
}

messages! {
    /// A message on the recording events channel.
    enum RecordingEvent<'a> {
        /// Sent on the events channel when a recording started.
        RecordingStarted<'a> = recording_started::{RecordingStartedDecoder, RecordingStartedEncoder} [] {
            /// Id of the recording.
            recording_id: i64,
            /// Start position in bytes.
            start_position: i64,
            /// Session id of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            ;
            /// Channel URI.
            channel: &'a str,
            /// Source identity of the image.
            source_identity: &'a str,
        }
        /// Sent on the events channel with the position of a recording.
        RecordingProgress = recording_progress::{RecordingProgressDecoder, RecordingProgressEncoder} [] {
            /// Id of the recording.
            recording_id: i64,
            /// Start position in bytes.
            start_position: i64,
            /// Stream position in bytes.
            position: i64,
            ;
        }
        /// Sent on the events channel when a recording stopped.
        RecordingStopped = recording_stopped::{RecordingStoppedDecoder, RecordingStoppedEncoder} [] {
            /// Id of the recording.
            recording_id: i64,
            /// Start position in bytes.
            start_position: i64,
            /// Stop position in bytes; -1 while the recording is active.
            stop_position: i64,
            ;
        }
    }
}
