// SPDX-License-Identifier: Apache-2.0
//! Errors of offering and polling.

use taran_protocol::log::BlockError;

use super::Lost;
use crate::image::LogFileError;

/// Reason why a message was not accepted. Nothing was written to the stream.
///
/// [`OfferError::is_retryable`] distinguishes temporary from permanent errors.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[must_use = "the message was not sent"]
pub enum OfferError {
    /// No subscriber is connected. Offer again later, or drop the message.
    #[error(
        "no subscriber is connected; if there should be one, 'taran errors' on the machines of both sides shows what \
         prevents it"
    )]
    NotConnected,
    /// The publication has reached its position limit: the slowest subscriber, the flow control window or the driver
    /// has to catch up. Offer again later.
    #[error(
        "back-pressured: the slowest subscriber, the flow control window or the driver has to catch up first; \
         'taran backlog' shows which"
    )]
    BackPressured,
    /// The offer reached the end of a term, and the log was rotated. Offer again at once.
    #[error("the log was rotated to its next term: offer again at once")]
    AdminAction,
    /// The application closed the publication or its client.
    #[error(
        "the publication is closed: the application closed it or its client; add it again to continue"
    )]
    Closed,
    /// The client has lost its driver.
    #[error(transparent)]
    DriverLost(#[from] Lost),
    /// The publication of a [`ReconnectingClient`](crate::ReconnectingClient) cannot be added on this driver, for a reason that
    /// does not pass by itself; [`Reconnecting::failure`](crate::Reconnecting::failure) returns it. It is added again on the next
    /// connection.
    #[error(
        "the publication cannot be added on this media driver; 'Reconnecting::failure' has the reason"
    )]
    Refused,
    /// The stream has used up its position space of 2^31 terms. Add a new publication, with a longer term length.
    #[error(
        "the stream has used up its position space of {max_position} bytes; add a new publication, with a longer \
         term-length"
    )]
    MaxPositionExceeded {
        /// End of the position space, in bytes.
        max_position: i64,
    },
    /// The message exceeds the maximum length.
    #[error(
        "the message has {length} bytes, the maximum is {max}; split it, offer it (a claim is limited by \
         the mtu), or raise mtu or term-length of the channel"
    )]
    TooLong {
        /// Length that was offered, in bytes.
        length: usize,
        /// Maximum length for this operation on this publication, in bytes.
        max: usize,
    },
    /// The block does not consist of whole frames that continue the stream at the publication's position.
    #[error("the block cannot be appended: {0}")]
    InvalidBlock(BlockError),
    /// The log in shared memory is inconsistent: another process has damaged it.
    #[error("the log of the publication is damaged")]
    Damaged,
}

impl OfferError {
    /// Returns true if the same offer can succeed later: not connected, back-pressured, admin action.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::BackPressured | Self::AdminAction
        )
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

/// Reason why a raw poll failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawPollError {
    /// The subscription cannot be polled.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// The file of a log cannot be opened.
    #[error(transparent)]
    File(#[from] LogFileError),
}

/// Reason why a subscription cannot be polled.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PollError {
    /// The application closed the subscription or its client.
    #[error("the subscription is closed")]
    Closed,
    /// The client has lost its driver.
    #[error(transparent)]
    DriverLost(#[from] Lost),
    /// The subscription of a [`ReconnectingClient`](crate::ReconnectingClient) cannot be added on this driver, for a reason that
    /// does not pass by itself; [`Reconnecting::failure`](crate::Reconnecting::failure) returns it. It is added again on the next
    /// connection.
    #[error(
        "the subscription cannot be added on this media driver; 'Reconnecting::failure' has the reason"
    )]
    Refused,
}

impl PollError {
    /// Returns the reason of the loss if the client has lost its driver.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::DriverLost(lost) => Some(*lost),
            Self::Closed | Self::Refused => None,
        }
    }
}

taran_core::debug_is_display!(OfferError, PollError, RawPollError);
