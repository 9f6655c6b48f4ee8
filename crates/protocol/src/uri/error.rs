//! The error of everything that concerns a channel URI.

use crate::error_code::ErrorCode;

/// Why a channel was refused: the code for the error response and a text that names the key, its value and what is
/// allowed.
///
/// Texts of [`ErrorCode::InvalidChannel`] start with `invalid channel`, which is what readers of error logs look for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct UriError {
    /// The code a driver answers with.
    pub code: ErrorCode,
    /// The explanation.
    pub text: String,
}

impl UriError {
    /// The channel cannot be understood (code 1).
    pub(super) fn invalid(text: impl AsRef<str>) -> Self {
        UriError {
            code: ErrorCode::InvalidChannel,
            text: format!("invalid channel: {}", text.as_ref()),
        }
    }

    /// The channel is well formed, but a value or a combination of values is not allowed (code 11).
    pub(super) fn rejected(text: impl Into<String>) -> Self {
        UriError {
            code: ErrorCode::GenericError,
            text: text.into(),
        }
    }

    /// A host name could not be resolved (code 9).
    #[must_use]
    pub fn unknown_host(key: &str, host: &str) -> Self {
        UriError {
            code: ErrorCode::UnknownHost,
            text: format!("unknown host: {key} names {host}, which could not be resolved"),
        }
    }

    /// Adds the channel's text, so that the message can be understood without its context.
    #[must_use]
    pub(super) fn in_channel(mut self, channel: &str) -> Self {
        self.text.push_str(": channel=");
        self.text.push_str(channel);
        self
    }
}
