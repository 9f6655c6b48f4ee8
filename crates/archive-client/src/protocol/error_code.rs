// SPDX-License-Identifier: Apache-2.0
use std::fmt;

/// Reason of a failed request: the `relevant_id` of a control response with the code `ERROR`
/// (`docs/spec/archive.md` §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// No specific code; the text of the response gives the reason.
    Generic,
    /// The control session already lists recordings.
    ActiveListing,
    /// The recording is active.
    ActiveRecording,
    /// The stream is already being recorded.
    ActiveSubscription,
    /// There is no such recording subscription.
    UnknownSubscription,
    /// There is no such recording.
    UnknownRecording,
    /// There is no such replay.
    UnknownReplay,
    /// The greatest number of concurrent replays is reached.
    MaxReplays,
    /// The greatest number of concurrent recordings is reached.
    MaxRecordings,
    /// The stream does not continue the recording.
    InvalidExtension,
    /// The credentials were rejected.
    AuthenticationRejected,
    /// Too little space is left in the archive's file system.
    StorageSpace,
    /// There is no such replication.
    UnknownReplication,
    /// The client may not make this request.
    UnauthorisedAction,
    /// The source archive of a replication could not be reached.
    ReplicationConnectionFailure,
    /// The recording is empty.
    EmptyRecording,
    /// The position is outside of the recording.
    InvalidPosition,
    /// A code that this version does not know.
    Other(i64),
}

impl ErrorCode {
    const NAMES: [(Self, &'static str); 17] = [
        (Self::Generic, "GENERIC"),
        (Self::ActiveListing, "ACTIVE_LISTING"),
        (Self::ActiveRecording, "ACTIVE_RECORDING"),
        (Self::ActiveSubscription, "ACTIVE_SUBSCRIPTION"),
        (Self::UnknownSubscription, "UNKNOWN_SUBSCRIPTION"),
        (Self::UnknownRecording, "UNKNOWN_RECORDING"),
        (Self::UnknownReplay, "UNKNOWN_REPLAY"),
        (Self::MaxReplays, "MAX_REPLAYS"),
        (Self::MaxRecordings, "MAX_RECORDINGS"),
        (Self::InvalidExtension, "INVALID_EXTENSION"),
        (Self::AuthenticationRejected, "AUTHENTICATION_REJECTED"),
        (Self::StorageSpace, "STORAGE_SPACE"),
        (Self::UnknownReplication, "UNKNOWN_REPLICATION"),
        (Self::UnauthorisedAction, "UNAUTHORISED_ACTION"),
        (
            Self::ReplicationConnectionFailure,
            "REPLICATION_CONNECTION_FAILURE",
        ),
        (Self::EmptyRecording, "EMPTY_RECORDING"),
        (Self::InvalidPosition, "INVALID_POSITION"),
    ];

    /// Returns the code with this encoding.
    #[must_use]
    pub fn from_raw(raw: i64) -> Self {
        let known = usize::try_from(raw).ok().and_then(|at| Self::NAMES.get(at));
        known.map_or(Self::Other(raw), |(code, _)| *code)
    }

    /// Returns the encoding.
    #[must_use]
    pub fn raw(self) -> i64 {
        match self {
            Self::Other(raw) => raw,
            code => Self::NAMES
                .iter()
                .take_while(|(known, _)| *known != code)
                .count() as i64,
        }
    }
}

/// Writes Aeron's name of the code.
impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(code, _)| code == self) {
            Some((_, name)) => out.write_str(name),
            None => write!(out, "unknown error code {}", self.raw()),
        }
    }
}
