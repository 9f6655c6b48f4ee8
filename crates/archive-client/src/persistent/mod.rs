// SPDX-License-Identifier: Apache-2.0
//! Reading a stream from the recording of an archive, and live from then on.

mod counters;
mod machine;
mod subscription;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::session::RequestError;

pub use machine::PersistentState;
pub use subscription::{PersistentOptions, PersistentSubscription};

/// Start of a persistent subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPosition {
    /// At the start of the recording.
    Start,
    /// With the live stream.
    #[default]
    Live,
    /// At this position, the start of a frame.
    At(i64),
    /// The position that the recording had at this time, in milliseconds since 1970 UTC: see [`ReplayParams::from_time_ms`]. Archives of Aeron
    /// refuse it: [`PersistentError::StartTimeRefused`].
    ///
    /// [`ReplayParams::from_time_ms`]: crate::ReplayParams::from_time_ms
    Time(i64),
}

/// An event of a persistent subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PersistentEvent {
    /// From now on, messages come from the live stream.
    JoinedLive,
    /// The live stream has ended or was lost. Messages come from the recording again.
    LeftLive,
    /// Something has failed and is tried again.
    Error(PersistentError),
    /// The subscription has failed for good.
    Failed(PersistentError),
}

/// Failure of a persistent subscription, or of something that it tries again.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PersistentError {
    /// An option is invalid.
    #[error("invalid options of the persistent subscription: {0}")]
    Option(String),
    /// The archive does not have the recording.
    #[error("the archive has no recording {recording_id}")]
    RecordingNotFound {
        /// Id of the recording.
        recording_id: i64,
    },
    /// The recording is of another stream.
    #[error(
        "the recording has the stream id {recording}, the live stream has {live}; they must be equal"
    )]
    StreamIdMismatch {
        /// Stream id of the recording.
        recording: i32,
        /// Stream id of the live stream.
        live: i32,
    },
    /// The position is not in the recording. After the first message, the recording has lost what was read already.
    #[error("position {position} is not in the recording, which is from {start} to {stop:?}")]
    InvalidStartPosition {
        /// The position.
        position: i64,
        /// Start position of the recording.
        start: i64,
        /// Stop position of the recording; `None` while it is active.
        stop: Option<i64>,
    },
    /// The archive does not replay from a time. Archives of Aeron do not.
    #[error(
        "the archive does not replay recording {recording_id} from the time {time_ms} ms since 1970; archives of Aeron do not know \
         times: {error}"
    )]
    StartTimeRefused {
        /// Id of the recording.
        recording_id: i64,
        /// The time in milliseconds since 1970 UTC.
        time_ms: i64,
        /// The archive's answer.
        error: RequestError,
    },
    /// A request to the archive failed.
    #[error(transparent)]
    Request(RequestError),
    /// The connection to the archive could not be made.
    #[error(transparent)]
    Connect(#[from] crate::client::ConnectError),
    /// A command to the media driver failed.
    #[error("a subscription could not be added: {0}")]
    Driver(taran::CommandError),
    /// The replay has not arrived within the message timeout.
    #[error(
        "the replay does not arrive within the message timeout; check that the archive can send to the replay channel"
    )]
    NoReplayImage,
    /// The live stream has not arrived within the message timeout.
    #[error(
        "the live stream does not arrive within the message timeout; reading the recording goes on"
    )]
    NoLiveImage,
}

taran_core::debug_is_display!(PersistentError);
