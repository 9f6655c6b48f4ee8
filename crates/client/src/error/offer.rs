//! Errors of the road: offering and polling.

use taran_protocol::log::BlockError;

use super::Lost;
use crate::image::LogFileError;

/// Why a message was not accepted. Nothing was written to the stream.
///
/// [`OfferError::is_retryable`] tells the passing states from the lasting ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use = "the message was not sent"]
pub enum OfferError {
    /// There is no subscriber, and the publication has reached its limit. Offer again later, or drop the message.
    #[error("no subscriber is connected")]
    NotConnected,
    /// The slowest subscriber, the receivers' window or the driver has to catch up first. Offer again later.
    #[error(
        "back-pressured: the slowest receiver, the flow control window or the driver has to catch up first"
    )]
    BackPressured,
    /// The log has just turned to its next term. Offer again at once.
    #[error("the log has just turned to its next term: offer again at once")]
    AdminAction,
    /// The publication, or its client, was closed by its owner.
    #[error(
        "the publication is closed: it was closed by its owner, or with its client; add it again to go on"
    )]
    Closed,
    /// The connection to the driver is gone.
    #[error(transparent)]
    DriverLost(#[from] Lost),
    /// The stream has used up its position space of 2^31 terms. Add a new publication, with longer terms.
    #[error(
        "the stream has used up its position space of {max_position} bytes; add a new publication, with a longer \
         term-length"
    )]
    MaxPositionExceeded {
        /// First position that the stream can not reach, in bytes.
        max_position: i64,
    },
    /// The message can not be sent in one piece.
    #[error(
        "the message has {length} bytes, at most {max} are possible here; split it, offer it (a claim is limited by \
         the mtu), or raise mtu or term-length of the channel"
    )]
    TooLong {
        /// Bytes that were offered.
        length: usize,
        /// Bytes that can be offered by this operation on this publication.
        max: usize,
    },
    /// A block did not consist of whole frames that follow on where the publication stands.
    #[error("the block can not be appended: {0}")]
    InvalidBlock(BlockError),
    /// The log in shared memory was damaged by another process: its fields contradict each other.
    #[error("the log of the publication is damaged")]
    Damaged,
}

impl OfferError {
    /// True if the same offer can succeed later: not connected, back-pressured, admin action.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::BackPressured | Self::AdminAction
        )
    }
}

/// Why a raw poll gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawPollError {
    /// Nothing can be polled any more.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// The file of a log can not be opened.
    #[error(transparent)]
    File(#[from] LogFileError),
}

/// Why nothing can be polled any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// The subscription's client was closed by its owner.
    #[error("the subscription is closed")]
    Closed,
    /// The connection to the driver is gone.
    #[error(transparent)]
    DriverLost(#[from] Lost),
}
