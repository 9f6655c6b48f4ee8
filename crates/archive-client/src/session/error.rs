// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::protocol::{ControlResponse, ControlResponseCode, ErrorCode};

/// An error that an archive has sent.
#[derive(Clone, PartialEq, Eq)]
pub struct ArchiveError {
    /// The request in words; `None` if the request was answered before, and its recording, replay or replication has
    /// failed.
    pub request: Option<&'static str>,
    /// Correlation id of the request; the replication id for an error of a replication.
    pub correlation_id: i64,
    /// Code of the error.
    pub code: ErrorCode,
    /// The archive's text.
    pub message: String,
}

taran_core::debug_is_display!(ArchiveError);

impl ArchiveError {
    pub(super) fn of(response: &ControlResponse<'_>, request: Option<&'static str>) -> Self {
        Self {
            request,
            correlation_id: response.correlation_id,
            code: ErrorCode::from_raw(response.relevant_id),
            message: response.error_message.to_owned(),
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, message, .. } = self;
        match self.request {
            Some(request) => write!(out, "the archive refused to {request}: {code} ({message})"),
            None => write!(
                out,
                "the archive reports a failure of what the request with correlation id {} started: {code} ({message})",
                self.correlation_id
            ),
        }
    }
}

impl std::error::Error for ArchiveError {}

/// Failure of a request to an archive.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The archive has refused the request, or has failed to do what it asks for.
    #[error(transparent)]
    Rejected(#[from] ArchiveError),
    /// The archive's response is none that the request can have.
    #[error("the archive answered the request to {request} with {code:?}")]
    UnexpectedResponse {
        /// The request in words.
        request: &'static str,
        /// Code of the response.
        code: ControlResponseCode,
    },
    /// The archive did not answer in time. It may still do what the request asks for.
    #[error(
        "the archive did not answer the request to {request} within {after:?} (aeron.archive.message.timeout)"
    )]
    Timeout {
        /// The request in words.
        request: &'static str,
        /// The message timeout.
        after: Duration,
    },
    /// The request does not fit into a message of the control stream.
    #[error(
        "the request to {request} does not fit into {max} bytes, the longest message of the control stream; shorten its \
         channels, or raise term-length of the control channel (aeron.archive.control.term.buffer.length)"
    )]
    TooLong {
        /// The request in words.
        request: &'static str,
        /// Maximum length in bytes.
        max: usize,
    },
    /// More requests wait for room in the control stream than the client holds.
    #[error(
        "the request to {request} was not sent: {waiting} others wait for room in the control stream"
    )]
    Overloaded {
        /// The request in words.
        request: &'static str,
        /// Number of requests that wait.
        waiting: usize,
    },
    /// An argument is invalid; nothing was sent.
    #[error("the request to {request} was not sent: {reason}")]
    InvalidArgument {
        /// The request in words.
        request: &'static str,
        /// Reason, with the value that is needed.
        reason: String,
    },
    /// The control session was lost. Connect again.
    #[error(
        "the connection to the archive is lost: the archive has ended, or has closed the session of a client that it could \
         not reach or that did not poll; connect again"
    )]
    Disconnected,
    /// The application has closed the client of the archive.
    #[error("the archive client is closed")]
    Closed,
    /// The media driver refused to add or to remove what the request needs.
    #[error("the request to {request} failed at the media driver: {reason}")]
    Driver {
        /// The request in words.
        request: &'static str,
        /// The error of the driver.
        reason: taran::CommandError,
    },
}

taran_core::debug_is_display!(RequestError);

impl RequestError {
    /// Returns the archive's error code; `None` if the archive did not send an error.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Rejected(error) => Some(error.code),
            _ => None,
        }
    }

    /// Returns true if the connection is of no more use: a new one has to be made.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self, Self::Disconnected | Self::Closed)
    }
}
