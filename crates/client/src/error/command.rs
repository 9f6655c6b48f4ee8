// SPDX-License-Identifier: Apache-2.0
//! Errors of commands to the driver.

use std::path::PathBuf;
use std::time::Duration;

use taran_protocol::error_code::ErrorCode;

use super::Lost;

/// The driver rejected a command.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the media driver rejected the command: {text} ({}, error code {})", .code.name(), .code.code())]
#[doc(alias = "RegistrationException")]
#[non_exhaustive]
pub struct RegistrationError {
    /// Error code of the driver.
    pub code: ErrorCode,
    /// Error message of the driver.
    pub text: String,
    /// Correlation id of the rejected command.
    pub correlation_id: i64,
}

/// Reason why a command to the driver failed: adding or removing a publication, subscription, counter or destination,
/// rejecting an image, or requesting a session id.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The driver rejected the command.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// The driver did not answer within the driver timeout. It may still execute the command; a resource that it
    /// creates is removed.
    #[error(
        "the media driver did not answer within {after:?} (aeron.driver.timeout); 'taran errors' shows whether it has a \
         problem"
    )]
    Timeout {
        /// Time since the command was sent.
        after: Duration,
    },
    /// The response was overwritten before the client read it, because the driver sent many responses at once. Repeat
    /// the command.
    #[error(
        "the media driver's response was overwritten before this client read it; repeat the command"
    )]
    ResponseOverwritten,
    /// The driver's command buffer is full. Try again later.
    #[error(
        "the driver's command buffer has no room for {length} bytes: the driver's conductor is overloaded; try again \
         later"
    )]
    DriverBufferFull {
        /// Length of the command in bytes.
        length: usize,
    },
    /// A channel, key, label or reason exceeds the limit of the protocol.
    #[error("the {item} has {length} bytes, the maximum is {max}")]
    TooLong {
        /// The argument that is too long.
        item: &'static str,
        /// Its length in bytes.
        length: usize,
        /// Maximum length in bytes.
        max: usize,
    },
    /// The log of the publication could not be mapped, or its metadata is invalid.
    #[error("the log {} cannot be used: {reason}", .path.display())]
    Log {
        /// Path of the log, as the driver named it.
        path: PathBuf,
        /// Reason why the log cannot be used.
        reason: String,
    },
    /// The tail of an exclusive publication's log is invalid.
    #[error("the log cannot be used: {reason}")]
    Damaged {
        /// Reason why the log cannot be used.
        reason: String,
    },
    /// The driver named a counter that does not exist.
    #[error("the media driver answered with counter id {counter_id}, which does not exist")]
    NoSuchCounter {
        /// Counter id in the driver's response.
        counter_id: i32,
    },
    /// The driver's response does not match the command.
    #[error("the media driver's response does not match the command: expected {expected}")]
    UnexpectedResponse {
        /// Name of the matching response.
        expected: &'static str,
    },
    /// The resource was removed by its registration id before the driver had answered the add command.
    #[error("it was removed by its registration id before the media driver had answered")]
    Withdrawn,
    /// This client has no resource of this kind with this registration id.
    #[error(
        "this client has no {kind} with registration id {registration_id}: it is closed, or was never added"
    )]
    UnknownRegistration {
        /// Kind of resource: publication, subscription or counter.
        kind: &'static str,
        /// Requested registration id.
        registration_id: i64,
    },
    /// A blocking method was called inside a callback. The response would have to be processed by the same thread.
    #[error("a callback must not wait for the media driver; use the async_ variant of the call")]
    CalledFromCallback,
    /// The application closed the client or the resource.
    #[error("the client is closed")]
    Closed,
    /// The client has lost its driver.
    #[error(transparent)]
    DriverLost(#[from] Lost),
}

impl CommandError {
    /// Returns true if the same command can succeed later: the driver did not answer in time, its response was
    /// overwritten, its command buffer was full, or it rejected the command because a resource is temporarily unavailable
    /// (an endpoint with the same address is still being closed).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.is_repeatable() || matches!(self, Self::Timeout { .. } | Self::ResponseOverwritten)
    }

    /// Returns true if the driver has not executed the command, and the same command can succeed later: the driver asks for another
    /// attempt, or its command buffer was full. Of the other [retryable](Self::is_retryable) errors the driver may have executed the
    /// command, so that a destination, for example, has to be removed before it is added again.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::DriverBufferFull { .. } => true,
            Self::Registration(rejected) => {
                rejected.code == ErrorCode::ResourceTemporarilyUnavailable
            }
            _ => false,
        }
    }

    /// Returns true if the kind of error says that the same command will fail on the same driver again: its arguments are
    /// invalid, the driver does not know the command, it names a resource that the driver does not have, or this client cannot
    /// use the answer.
    ///
    /// [`ErrorCode::InvalidChannel`] is permanent by this rule, but can pass in two cases, which only the channel shows: it
    /// names other streams, which can come and go, or it has a host name that an official Java driver cannot resolve at the
    /// moment. [`Reconnecting::get`](crate::Reconnecting::get) has the exact rule, which takes the channel into account.
    ///
    /// An error that is neither permanent nor [retryable](Self::is_retryable) may pass: an unknown host, storage without space,
    /// a log that cannot be mapped, or anything for which drivers have no code but `GENERIC_ERROR`, such as a port or a session
    /// id that another stream still uses.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Registration(rejected) => matches!(
                rejected.code,
                ErrorCode::InvalidChannel
                    | ErrorCode::UnknownSubscription
                    | ErrorCode::UnknownPublication
                    | ErrorCode::UnknownCounter
                    | ErrorCode::UnknownCommandTypeId
                    | ErrorCode::MalformedCommand
                    | ErrorCode::NotSupported
            ),
            Self::TooLong { .. }
            | Self::Damaged { .. }
            | Self::NoSuchCounter { .. }
            | Self::UnexpectedResponse { .. }
            | Self::Withdrawn
            | Self::UnknownRegistration { .. } => true,
            Self::Timeout { .. }
            | Self::ResponseOverwritten
            | Self::DriverBufferFull { .. }
            | Self::Log { .. }
            | Self::CalledFromCallback
            | Self::Closed
            | Self::DriverLost(_) => false,
        }
    }

    /// Returns the reason of the loss if the client has lost its driver.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::DriverLost(lost) => Some(*lost),
            _ => None,
        }
    }
}

taran_core::debug_is_display!(RegistrationError, CommandError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_may_have_been_executed_is_retryable_but_not_repeatable() {
        let after = Duration::from_secs(1);
        for error in [
            CommandError::Timeout { after },
            CommandError::ResponseOverwritten,
        ] {
            assert!(error.is_retryable() && !error.is_repeatable(), "{error}");
        }
        let full = CommandError::DriverBufferFull { length: 8 };
        assert!(full.is_retryable() && full.is_repeatable());
    }

    #[test]
    fn rejection_that_names_an_invalid_argument_is_permanent_and_others_may_pass() {
        let permanent = [
            ErrorCode::InvalidChannel,
            ErrorCode::UnknownSubscription,
            ErrorCode::UnknownPublication,
            ErrorCode::UnknownCounter,
            ErrorCode::UnknownCommandTypeId,
            ErrorCode::MalformedCommand,
            ErrorCode::NotSupported,
        ];
        for code in ErrorCode::ALL.iter().chain(&[ErrorCode::Unknown]) {
            let error = CommandError::Registration(RegistrationError {
                code: *code,
                text: String::new(),
                correlation_id: 1,
            });
            assert_eq!(error.is_permanent(), permanent.contains(code), "{code:?}");
            assert!(!(error.is_permanent() && error.is_retryable()), "{code:?}");
        }
    }

    #[test]
    fn error_of_a_closed_client_is_not_permanent() {
        let lost = CommandError::DriverLost(Lost::DriverShutdown);
        assert!(!CommandError::Closed.is_permanent() && !lost.is_permanent());
        let (item, length, max) = ("channel", 9, 8);
        assert!(CommandError::TooLong { item, length, max }.is_permanent());
    }

    #[test]
    fn rejection_is_retryable_only_if_driver_asks_for_another_attempt() {
        let rejected = |code| {
            CommandError::Registration(RegistrationError {
                code,
                text: String::new(),
                correlation_id: 1,
            })
        };
        assert!(rejected(ErrorCode::ResourceTemporarilyUnavailable).is_retryable());
        for code in ErrorCode::ALL {
            let is_expected = *code == ErrorCode::ResourceTemporarilyUnavailable;
            assert_eq!(rejected(*code).is_retryable(), is_expected, "{code:?}");
            assert_eq!(rejected(*code).is_repeatable(), is_expected, "{code:?}");
        }
    }
}
