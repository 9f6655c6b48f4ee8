// SPDX-License-Identifier: Apache-2.0
//! The error of any operation of the client.

use taran_protocol::uri::UriError;

use super::{
    ClientError, CommandError, ConnectError, Lost, OfferError, PollError, RawPollError,
    RegistrationError,
};
use crate::image::{LogFileError, PositionError};

/// The error of any operation of this crate; every other error type converts to it.
///
/// Like all error types of this crate its `Debug` has the text of `Display`, so that a failing `main` prints a text that
/// says what to do:
///
/// ```no_run
/// fn main() -> Result<(), taran::Error> {
///     let client = taran::Client::builder().connect()?;
///     let publication = client.add_publication("aeron:ipc", 1001)?;
///     publication.offer(b"hello")?;
///     Ok(())
/// }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum Error {
    /// Connecting to a driver failed.
    Connect(#[from] ConnectError),
    /// A command to the driver failed: adding or removing a resource, or an inquiry.
    Command(#[from] CommandError),
    /// A message was not accepted.
    Offer(#[from] OfferError),
    /// A subscription cannot be polled.
    Poll(#[from] PollError),
    /// A log cannot be opened as a file.
    LogFile(#[from] LogFileError),
    /// An image cannot be moved to a position.
    Position(#[from] PositionError),
    /// A channel URI is invalid.
    Uri(#[from] UriError),
    /// An error that was reported to the error handler.
    Client(#[from] ClientError),
    /// A reactor could not be started.
    #[cfg(feature = "async")]
    Reactor(#[from] crate::ReactorError),
    /// The client has lost its driver, as reported by a [`CloseReason`](crate::CloseReason).
    Lost(#[from] Lost),
}

impl Error {
    /// Returns the reason of the loss if the client has lost its driver: connect again and add all resources again.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::Command(error) => error.lost(),
            Self::Offer(error) => error.lost(),
            Self::Poll(error) => error.lost(),
            Self::Lost(lost) | Self::Client(ClientError::Lost(lost)) => Some(*lost),
            _ => None,
        }
    }

    /// Returns true if the same call can succeed later; see the method of the same name of [`OfferError`],
    /// [`CommandError`] and [`ConnectError`].
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect(error) => error.is_retryable(),
            Self::Command(error) => error.is_retryable(),
            Self::Offer(error) => error.is_retryable(),
            _ => false,
        }
    }
}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Self {
        Self::Command(error.into())
    }
}

impl From<RawPollError> for Error {
    fn from(error: RawPollError) -> Self {
        match error {
            RawPollError::Poll(error) => error.into(),
            RawPollError::File(error) => error.into(),
        }
    }
}

taran_core::debug_is_display!(Error);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LOST: Lost = Lost::DriverShutdown;

    #[test]
    fn lost_is_found_in_error_of_each_operation() {
        let lost: [Error; 6] = [
            CommandError::DriverLost(LOST).into(),
            OfferError::DriverLost(LOST).into(),
            PollError::DriverLost(LOST).into(),
            RawPollError::Poll(PollError::DriverLost(LOST)).into(),
            ClientError::Lost(LOST).into(),
            LOST.into(),
        ];
        assert!(lost.iter().all(|error| error.lost() == Some(LOST)));
        let open: [Error; 3] = [
            CommandError::Closed.into(),
            OfferError::Closed.into(),
            PollError::Closed.into(),
        ];
        assert!(open.iter().all(|error| error.lost().is_none()));
    }

    #[test]
    fn is_retryable_follows_the_operation() {
        let after = Duration::from_secs(1);
        assert!(Error::from(OfferError::BackPressured).is_retryable());
        assert!(Error::from(CommandError::Timeout { after }).is_retryable());
        assert!(!Error::from(OfferError::Closed).is_retryable());
        assert!(!Error::from(LOST).is_retryable());
    }

    #[test]
    fn debug_has_the_text_of_display() {
        let error = Error::from(OfferError::TooLong {
            length: 70_000,
            max: 8_192,
        });
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(error.to_string().contains("the maximum is 8192"));
    }
}
