//! Errors of the commands: adding, removing, asking the driver for something.

use std::path::PathBuf;
use std::time::Duration;

use taran_protocol::error_code::ErrorCode;

use super::Lost;

/// The driver refused a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the media driver refused: {text} ({}, error code {})", .code.name(), .code.code())]
pub struct RegistrationError {
    /// What kind of refusal it is.
    pub code: ErrorCode,
    /// The driver's explanation.
    pub text: String,
    /// Correlation id of the refused command.
    pub correlation_id: i64,
}

/// Why the driver did not do what it was asked: to add a publication, subscription, counter or destination, or to
/// name a session id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The driver refused.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// The driver did not answer in time. It may still do what it was asked; a resource that it makes is given back.
    #[error("the media driver did not answer within {after:?} (aeron.driver.timeout)")]
    Timeout {
        /// How long the answer was waited for.
        after: Duration,
    },
    /// So many responses came at once that this one was overwritten before it was read. Ask again.
    #[error("the media driver's answer was overwritten before this client read it; ask again")]
    ResponseOverwritten,
    /// The driver does not take commands out of the command buffer fast enough.
    #[error(
        "the driver's command buffer has no room for {length} bytes: the driver's conductor is overloaded; try again \
         later"
    )]
    DriverBufferFull {
        /// Bytes of the command.
        length: usize,
    },
    /// A channel, key, label or reason is longer than the protocol allows.
    #[error("the {what} has {length} bytes, at most {max} are possible")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The longest possible, in bytes.
        max: usize,
    },
    /// The log of the publication could not be mapped, or what it says about itself is not sound.
    #[error("the log {} can not be used: {reason}", .path.display())]
    Log {
        /// Where the driver says the log is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The log of an exclusive publication says about its tail what can not be.
    #[error("the log can not be used: {reason}")]
    Damaged {
        /// What is wrong with it.
        reason: String,
    },
    /// The driver named a counter that does not exist.
    #[error("the media driver answered with counter id {counter_id}, which does not exist")]
    NoSuchCounter {
        /// The id in the driver's response.
        counter_id: i32,
    },
    /// The driver answered with a response that does not belong to this command.
    #[error("the media driver's answer does not fit the command: expected {expected}")]
    UnexpectedResponse {
        /// The response that belongs to the command.
        expected: &'static str,
    },
    /// What was asked for was removed by its registration id before the driver had answered.
    #[error("it was removed by its registration id before the media driver had answered")]
    Withdrawn,
    /// This client has nothing of that kind with that registration id.
    #[error(
        "this client has no {what} with registration id {registration_id}: it is closed, or was never added"
    )]
    UnknownRegistration {
        /// What was looked for.
        what: &'static str,
        /// Its registration id.
        registration_id: i64,
    },
    /// A blocking call was made from inside a callback, which runs on the thread that would have to end the wait.
    #[error("a callback must not wait for the media driver; use the async_ variant of the call")]
    CalledFromCallback,
    /// The client, or the resource concerned, was closed by its owner.
    #[error("the client is closed")]
    Closed,
    /// The connection to the driver is gone.
    #[error(transparent)]
    DriverLost(#[from] Lost),
}
