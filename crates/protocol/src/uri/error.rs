// SPDX-License-Identifier: Apache-2.0
//! Error of channel URI operations.

use crate::error_code::ErrorCode;

/// Reason why a channel is rejected: the code for the error response, and a text that names the key, the value and the
/// valid values.
///
/// Texts of [`ErrorCode::InvalidChannel`] start with `invalid channel`, as in the error logs of the official drivers.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct UriError {
    /// Error code of the driver's response.
    pub code: ErrorCode,
    /// Error text.
    pub text: String,
}

taran_core::debug_is_display!(UriError);

impl UriError {
    /// Returns an error for a malformed channel (code 1).
    pub(super) fn invalid(text: impl AsRef<str>) -> Self {
        UriError {
            code: ErrorCode::InvalidChannel,
            text: format!("invalid channel: {}", text.as_ref()),
        }
    }

    /// Returns an error for a well-formed channel with an invalid value or combination of values (code 11).
    pub(super) fn rejected(text: impl Into<String>) -> Self {
        UriError {
            code: ErrorCode::GenericError,
            text: text.into(),
        }
    }

    /// Returns an error for a host name that cannot be resolved (code 9).
    #[must_use]
    pub fn unknown_host(key: &str, host: &str) -> Self {
        UriError {
            code: ErrorCode::UnknownHost,
            text: format!("unknown host: {key} names {host}, which could not be resolved"),
        }
    }

    /// Appends the text of the channel, so that the message is self-contained.
    #[must_use]
    pub(super) fn in_channel(mut self, channel: &str) -> Self {
        self.text.push_str(": channel=");
        self.text.push_str(channel);
        self
    }
}
