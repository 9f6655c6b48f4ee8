// SPDX-License-Identifier: Apache-2.0
use crate::protocol::{NULL_VALUE, RecordingDescriptor, RecordingSubscriptionDescriptor};

/// Description of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Id of the recording.
    pub recording_id: i64,
    /// Time of the start, in milliseconds since 1970-01-01 UTC.
    pub start_timestamp: i64,
    /// Time of the stop; `None` while the recording is active.
    pub stop_timestamp: Option<i64>,
    /// Position at which the recording starts, in bytes.
    pub start_position: i64,
    /// Position at which the recording has stopped; `None` while it is active.
    pub stop_position: Option<i64>,
    /// Initial term id of the stream.
    pub initial_term_id: i32,
    /// Length of a segment file in bytes.
    pub segment_file_length: i32,
    /// Term length of the stream in bytes.
    pub term_buffer_length: i32,
    /// MTU of the stream in bytes.
    pub mtu_length: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel with the parameters that identify the stream only.
    pub stripped_channel: String,
    /// Channel as requested.
    pub original_channel: String,
    /// Source identity of the recorded image.
    pub source_identity: String,
}

impl From<&RecordingDescriptor<'_>> for Recording {
    fn from(descriptor: &RecordingDescriptor<'_>) -> Self {
        Self {
            recording_id: descriptor.recording_id,
            start_timestamp: descriptor.start_timestamp,
            stop_timestamp: some_unless_null(descriptor.stop_timestamp),
            start_position: descriptor.start_position,
            stop_position: some_unless_null(descriptor.stop_position),
            initial_term_id: descriptor.initial_term_id,
            segment_file_length: descriptor.segment_file_length,
            term_buffer_length: descriptor.term_buffer_length,
            mtu_length: descriptor.mtu_length,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: descriptor.stripped_channel.to_owned(),
            original_channel: descriptor.original_channel.to_owned(),
            source_identity: descriptor.source_identity.to_owned(),
        }
    }
}

/// Description of a recording subscription: a subscription of the archive that starts a recording for each of its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSubscription {
    /// Id of the recording subscription.
    pub subscription_id: i64,
    /// Stream id.
    pub stream_id: i32,
    /// Channel with the parameters that identify the stream only.
    pub stripped_channel: String,
}

impl From<&RecordingSubscriptionDescriptor<'_>> for RecordingSubscription {
    fn from(descriptor: &RecordingSubscriptionDescriptor<'_>) -> Self {
        Self {
            subscription_id: descriptor.subscription_id,
            stream_id: descriptor.stream_id,
            stripped_channel: descriptor.stripped_channel.to_owned(),
        }
    }
}

/// Returns `None` for [`NULL_VALUE`].
pub(crate) fn some_unless_null(value: i64) -> Option<i64> {
    (value != NULL_VALUE).then_some(value)
}
