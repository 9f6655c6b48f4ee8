//! A command that cannot be done, in the form its client is told.

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::UriError;

/// The code and text of an `ON_ERROR` answer (docs/spec/shared-memory.md §9.3, C column of docs/spec/uri-and-configuration.md §1).
///
/// Every failure is also recorded in the distinct error log and counted, by whoever sends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    /// The code of the answer.
    pub(crate) code: ErrorCode,
    /// What was wrong, with the value found and the value needed.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// Anything that has no code of its own.
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
