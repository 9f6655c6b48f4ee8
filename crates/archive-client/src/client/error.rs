// SPDX-License-Identifier: Apache-2.0
use thiserror::Error;

use crate::protocol::MessageError;
use crate::session::{ArchiveError, RequestError, SessionError};

/// Failure of connecting to an archive.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Options are invalid, one per line.
    #[error("invalid options of the archive client: {0}")]
    Option(String),
    /// The archive refused the session, or did not answer.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The media driver refused the request or response channel.
    #[error("connecting to the archive failed at the media driver: {0}")]
    Driver(#[from] taran::CommandError),
    /// A derived channel is invalid.
    #[error("connecting to the archive failed: {0}")]
    Channel(#[from] taran::UriError),
    /// The request could not be sent for a reason that does not pass.
    #[error("the connect request could not be sent: {0}")]
    Offer(#[from] taran::OfferError),
    /// The subscription for responses cannot be polled.
    #[error("the responses of the archive cannot be received: {0}")]
    Poll(#[from] taran::PollError),
    /// The connect request does not fit into a message.
    #[error(
        "the connect request does not fit into {max} bytes, the longest message of the control stream; shorten credentials \
         and response channel, or raise aeron.archive.control.term.buffer.length"
    )]
    TooLong {
        /// Maximum length in bytes.
        max: usize,
    },
}

taran_core::debug_is_display!(ConnectError);

/// Something that an archive has sent without being asked, or an error that no call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveEvent {
    /// A signal of a recording or replication that this session has asked for.
    Signal(crate::protocol::RecordingSignalEvent),
    /// A recording, replay or replication has failed after its request was answered.
    Error(ArchiveError),
    /// A request whose [`Call`](super::Call) was dropped has failed.
    Dropped(RequestError),
    /// A message on the response stream could not be decoded and was skipped.
    Malformed(MessageError),
}
