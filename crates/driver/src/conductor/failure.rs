// SPDX-License-Identifier: Apache-2.0
//! Failure of a command, as sent to the client.

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::UriError;

/// Error code and text of an `ON_ERROR` response (docs/spec/shared-memory.md §9.3, C column of
/// docs/spec/uri-and-configuration.md §1).
///
/// The caller that sends a failure also counts it and records it in the distinct error log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    /// Error code of the response.
    pub(crate) code: ErrorCode,
    /// The error, with the actual and the required value.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// Creates a failure with `GENERIC_ERROR`.
    pub(crate) fn generic(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::GenericError, text)
    }

    pub(crate) fn invalid_channel(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidChannel, text)
    }
}

impl From<UriError> for Failure {
    fn from(error: UriError) -> Self {
        Self {
            code: error.code,
            text: error.text,
        }
    }
}
