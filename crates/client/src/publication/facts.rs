//! What a shared and an exclusive publication have in common.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_protocol::command::Command;
use taran_protocol::log::{AppendError, BlockError, LogBuffers};
use taran_protocol::position::align32;

use super::PublicationState;
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{AddError, OfferError};
use crate::link::{Link, check_channel};
use crate::pending::Pending;
use crate::registry::Wish;

/// What the conductor learns of a publication when it is ready.
#[derive(Debug)]
pub(crate) struct PublicationFacts {
    pub(crate) link: Arc<Link>,
    pub(crate) state: Arc<PublicationState>,
    pub(crate) channel: String,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    /// Position up to which the driver lets publishers go.
    pub(crate) limit: Counter,
    pub(crate) log: Arc<LogBuffers>,
}

/// Bytes that somebody wants to append, and how.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// As a message, in fragments where it is long.
    Message(usize),
    /// In one fragment.
    Claim(usize),
    /// As frames, in one term.
    Block(usize),
}

impl PublicationFacts {
    #[inline]
    pub(super) fn check_open(&self) -> Result<(), OfferError> {
        if self.state.is_closed() {
            Err(self.ended())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn ended(&self) -> OfferError {
        self.link.life.reason().into()
    }

    /// The limit. Read before the tail: the driver raises it only after it has cleaned the term behind it, and the
    /// acquire in here makes the zeros visible.
    #[inline]
    pub(super) fn limit(&self) -> Position {
        self.limit.get()
    }

    /// Why nothing can be appended at a position that has reached the limit, or cannot be. What is too long is that at any
    /// position: nobody shall offer it again and again until there is room, only to hear that then.
    #[cold]
    pub(super) fn pressed_back(&self, position: Position, size: Size) -> OfferError {
        if position < 0 {
            return OfferError::Damaged;
        }
        let max_position = self.log.geometry().max_position();
        let longest = self.log.max_message_length();
        let (length, max) = match size {
            Size::Message(length) => (length, longest as usize),
            Size::Claim(length) => (length, self.log.max_payload_length().min(longest) as usize),
            Size::Block(length) => (length, usize::MAX),
        };
        if length > max {
            return OfferError::TooLong { length, max };
        }
        // Only a block can be longer than a message; the real check comes with room.
        let length = i32::try_from(length).unwrap_or(i32::MAX).min(longest);
        if position.saturating_add(Position::from(align32(length + 32))) >= max_position {
            OfferError::MaxPositionExceeded { max_position }
        } else if self.log.is_connected() {
            OfferError::BackPressured
        } else {
            OfferError::NotConnected
        }
    }

    #[cold]
    pub(super) fn refused(&self, error: &AppendError) -> OfferError {
        match *error {
            AppendError::AdminAction => OfferError::AdminAction,
            AppendError::MaxPositionExceeded => OfferError::MaxPositionExceeded {
                max_position: self.log.geometry().max_position(),
            },
            // The longest message is at least 8 KiB.
            AppendError::TooLong { length, max } => OfferError::TooLong {
                length,
                max: max as usize,
            },
            AppendError::CorruptTail(_) => OfferError::Damaged,
        }
    }

    #[cold]
    pub(super) fn refused_block(&self, error: &BlockError) -> OfferError {
        match error {
            BlockError::Append(error) => self.refused(error),
            error => OfferError::InvalidBlock(*error),
        }
    }

    pub(super) fn position_limit(&self, position: Position) -> Position {
        // The counter belongs to somebody else after the end.
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
        channel_status::read(self.link.counters(), self.state.status_counter_id)
    }

    pub(super) fn local_socket_addresses(&self) -> Vec<SocketAddr> {
        if self.state.is_closed() {
            return Vec::new();
        }
        channel_status::local_addresses(self.link.counters(), self.state.status_counter_id)
    }

    pub(super) fn destination<'c>(
        &self,
        channel: &'c str,
        command: impl FnOnce(i64, i64, i64, &'c str) -> Command<'c>,
    ) -> Result<Pending<()>, AddError> {
        check_channel(channel)?;
        if self.state.is_closed() {
            return Err(self.link.life.reason().into());
        }
        // Destinations belong to the stream, not to one registration of it.
        let registration_id = self.state.original_registration_id;
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| {
                command(
                    self.link.client_id,
                    correlation_id,
                    registration_id,
                    channel,
                )
            },
        )
    }

    /// Closes this registration; the driver ends the stream when its last one is gone.
    pub(super) fn close(&self) -> Result<Pending<()>, AddError> {
        self.link.close_publication(&self.state)
    }
}
