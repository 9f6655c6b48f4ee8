// SPDX-License-Identifier: Apache-2.0
//! State and operations that shared and exclusive publications have in common.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use taran_core::counters::Counter;
use taran_core::idle::IdleStrategy;
use taran_protocol::command::Command;
use taran_protocol::log::{AppendError, BlockError, LogBuffers};
use taran_protocol::position::align32;

use super::PublicationState;
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::client_core::{ClientCore, check_channel};
use crate::error::{CommandError, OfferError};
use crate::limit::{LimitedBy, LogState, StreamPositions};
use crate::pending::Pending;
use crate::registry::Request;

/// The part of a publication that is the same for shared and exclusive ones.
#[derive(Debug)]
pub(crate) struct PublicationCore {
    pub(crate) client: Arc<ClientCore>,
    pub(crate) state: Arc<PublicationState>,
    pub(crate) channel: String,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    /// Position limit, set by the driver.
    pub(crate) limit: Counter,
    pub(crate) log: Arc<LogBuffers>,
}

/// Length of an append operation, by its kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// A message, fragmented if necessary.
    Message(usize),
    /// A claim, which is one fragment.
    Claim(usize),
    /// A block of frames, within one term.
    Block(usize),
}

impl PublicationCore {
    #[inline]
    pub(super) fn check_open(&self) -> Result<(), OfferError> {
        if self.state.is_closed() {
            Err(self.closed_error())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn closed_error(&self) -> OfferError {
        self.state.close_reason().into()
    }

    /// Returns the position limit. It must be read before the tail: the driver raises it only after it has cleaned the
    /// term behind it, and the acquire of this read makes the zeros visible.
    #[inline]
    pub(super) fn limit(&self) -> Position {
        self.limit.get()
    }

    /// Returns the error for an append at a position that has reached the limit, or is invalid. The length is checked
    /// first, because a message that is too long fails at every position and must not be reported as retryable.
    #[cold]
    pub(super) fn back_pressure_error(&self, position: Position, size: Size) -> OfferError {
        if position < 0 {
            return OfferError::Damaged;
        }
        let max_position = self.log.geometry().max_position();
        let max_message_length = self.log.max_message_length();
        let (length, max) = match size {
            Size::Message(length) => (length, max_message_length as usize),
            Size::Claim(length) => (
                length,
                self.log.max_payload_length().min(max_message_length) as usize,
            ),
            Size::Block(length) => (length, usize::MAX),
        };
        if length > max {
            return OfferError::TooLong { length, max };
        }
        // Only a block can be longer than a message; it is checked when there is room.
        let length = i32::try_from(length)
            .unwrap_or(i32::MAX)
            .min(max_message_length);
        if position.saturating_add(Position::from(align32(length + 32))) >= max_position {
            OfferError::MaxPositionExceeded { max_position }
        } else if self.log.is_connected() {
            OfferError::BackPressured
        } else {
            OfferError::NotConnected
        }
    }

    /// Converts an error of an append.
    #[cold]
    pub(super) fn append_error(&self, error: &AppendError) -> OfferError {
        match *error {
            AppendError::AdminAction => OfferError::AdminAction,
            AppendError::MaxPositionExceeded => OfferError::MaxPositionExceeded {
                max_position: self.log.geometry().max_position(),
            },
            // The maximum message length is at least 8 KiB.
            AppendError::TooLong { length, max } => OfferError::TooLong {
                length,
                max: max as usize,
            },
            AppendError::CorruptTail(_) => OfferError::Damaged,
        }
    }

    /// Converts an error of appending a block.
    #[cold]
    pub(super) fn block_error(&self, error: &BlockError) -> OfferError {
        match error {
            BlockError::Append(error) => self.append_error(error),
            error => OfferError::InvalidBlock(*error),
        }
    }

    /// Returns what limits the publication, whose position is `position`.
    pub(super) fn limited_by(&self, position: Position) -> LimitedBy {
        let positions = StreamPositions::read(self.client.counters());
        let id = self.state.original_registration_id;
        let Some(found) = positions.publication(id) else {
            // It is closed, or the driver has removed it.
            return LimitedBy::NoReceiver;
        };
        let mut publication = found.clone();
        publication.position = publication.position.max(position);
        let window = i64::from(
            self.log
                .metadata()
                .publication_window
                .load(Ordering::Relaxed),
        );
        let log = LogState {
            is_connected: Some(!self.state.is_closed() && self.log.is_connected()),
            window: (window > 0).then_some(window),
        };
        positions.limited_by(&publication, log)
    }

    /// Waits before an attempt that failed with `error` is repeated. Returns the error if the deadline has passed. Not
    /// by the clock of the client, whose time cannot be compared with an [`Instant`].
    pub(super) fn await_retry(
        &self,
        error: OfferError,
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<(), OfferError> {
        if Instant::now() >= deadline {
            return Err(error);
        }
        // After the rotation of the log the next attempt can succeed at once.
        let rotated = usize::from(error == OfferError::AdminAction);
        let work = self.client.run_invoked().unwrap_or_default();
        idle.idle(rotated + work, &mut std::thread::sleep);
        Ok(())
    }

    pub(super) fn position_limit(&self, position: Position) -> Position {
        // The counter may be reused after the close.
        let limit = self.limit.get();
        if self.state.is_closed() {
            position
        } else {
            limit
        }
    }

    pub(super) fn channel_status(&self) -> ChannelStatus {
        if self.state.is_closed() {
            return ChannelStatus::Closed;
        }
        channel_status::read(self.client.counters(), self.state.status_counter_id)
    }

    pub(super) fn local_socket_addresses(&self) -> Vec<SocketAddr> {
        if self.state.is_closed() {
            return Vec::new();
        }
        channel_status::local_addresses(self.client.counters(), self.state.status_counter_id)
    }

    /// Sends a command that adds or removes a destination of the stream.
    pub(super) fn send_destination_command<'c>(
        &self,
        channel: &'c str,
        command: impl FnOnce(i64, i64, i64, &'c str) -> Command<'c>,
    ) -> Result<Pending<()>, CommandError> {
        check_channel(channel)?;
        if self.state.is_closed() {
            return Err(self.state.close_reason().into());
        }
        // Destinations belong to the stream, not to one of its registrations.
        let registration_id = self.state.original_registration_id;
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| {
                command(
                    self.client.client_id,
                    correlation_id,
                    registration_id,
                    channel,
                )
            },
        )
    }

    /// Closes this registration; the driver ends the stream when its last registration is closed.
    pub(super) fn close(&self) -> Result<Pending<()>, CommandError> {
        self.client.close_publication(&self.state)
    }
}
