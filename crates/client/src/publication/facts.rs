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

    /// Why nothing can be appended at a position that has reached the limit. What is too long is that at any position:
    /// nobody shall offer it again and again until there is room, only to hear that then.
    #[cold]
    pub(super) fn pressed_back(&self, position: Position, size: Size) -> OfferError {
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
    pub(super) fn close(&self, revoke: bool) {
        if self.state.mark_closed() {
            self.link
                .remove_publication(self.state.registration_id, revoke);
        }
        self.state.end_callbacks();
    }
}

/// The accessors that both kinds of publication have; `$facts` is the way to the [`PublicationFacts`].
macro_rules! accessors {
    ($($facts:tt)+) => {
        /// The channel as it was given.
        #[must_use]
        pub fn channel(&self) -> &str {
            &self.$($facts)+.channel
        }

        /// The stream.
        #[must_use]
        pub fn stream_id(&self) -> i32 {
            self.$($facts)+.stream_id
        }

        /// The session: tells the streams of one channel and stream id apart.
        #[must_use]
        pub fn session_id(&self) -> i32 {
            self.$($facts)+.session_id
        }

        /// Id of this publication with the driver.
        #[must_use]
        pub fn registration_id(&self) -> i64 {
            self.$($facts)+.state.registration_id
        }

        /// Id of the registration that made the stream: that of another publication if this one found a stream to
        /// share.
        #[must_use]
        pub fn original_registration_id(&self) -> i64 {
            self.$($facts)+.state.original_registration_id
        }

        /// Longest message, in bytes: an eighth of the term, at most 16 MiB.
        #[must_use]
        pub fn max_message_length(&self) -> usize {
            self.$($facts)+.log.max_message_length() as usize
        }

        /// Longest message in one fragment, in bytes, and longest claim: the mtu less 32.
        #[must_use]
        pub fn max_payload_length(&self) -> usize {
            self.$($facts)+.log.max_payload_length() as usize
        }

        /// Bytes in a term.
        #[must_use]
        pub fn term_length(&self) -> usize {
            self.$($facts)+.log.term_length() as usize
        }

        /// Id of the first term of the stream.
        #[must_use]
        pub fn initial_term_id(&self) -> i32 {
            self.$($facts)+.log.geometry().initial_term_id()
        }

        /// First position that the stream can not reach: 2^31 terms.
        #[must_use]
        pub fn max_possible_position(&self) -> Position {
            self.$($facts)+.log.geometry().max_position()
        }

        /// True while somebody receives the stream and the publication is open.
        #[must_use]
        pub fn is_connected(&self) -> bool {
            !self.is_closed() && self.$($facts)+.log.is_connected()
        }

        /// True once it was closed, or its client has ended.
        #[must_use]
        pub fn is_closed(&self) -> bool {
            self.$($facts)+.state.is_closed()
        }

        /// Position up to which messages are accepted at present; after the end the present position.
        #[must_use]
        pub fn position_limit(&self) -> Position {
            self.$($facts)+.position_limit(self.position())
        }

        /// Bytes that can be offered before back-pressure sets in, frame headers and padding included.
        #[must_use]
        pub fn available_window(&self) -> i64 {
            self.position_limit().saturating_sub(self.position()).max(0)
        }

        /// State of the channel at the driver.
        #[must_use]
        pub fn channel_status(&self) -> ChannelStatus {
            self.$($facts)+.channel_status()
        }

        /// Counter id of the channel's status indicator; `None` for IPC.
        #[must_use]
        pub fn channel_status_id(&self) -> Option<i32> {
            channel_status::known(self.$($facts)+.state.status_counter_id)
        }

        /// Counter id of the position limit.
        #[must_use]
        pub fn position_limit_id(&self) -> i32 {
            self.$($facts)+.limit.id()
        }

        /// Addresses that the channel sends from. Empty for IPC, and until the channel is active.
        #[must_use]
        pub fn local_socket_addresses(&self) -> Vec<SocketAddr> {
            self.$($facts)+.local_socket_addresses()
        }

        /// Adds a destination to a publication whose channel says `control-mode=manual`; waits for the driver. Returns
        /// the registration id of the destination.
        ///
        /// # Errors
        /// The driver refuses or does not answer.
        pub fn add_destination(&self, channel: &str) -> Result<i64, AddError> {
            let pending = self.async_add_destination(channel)?;
            let registration_id = pending.registration_id();
            pending.wait().map(|()| registration_id)
        }

        /// As [`add_destination`](Self::add_destination), without waiting; the registration id of the destination is
        /// that of the [`Pending`].
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_add_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
            self.$($facts)+.destination(channel, |client_id, correlation_id, registration_id, channel| {
                Command::AddDestination { client_id, correlation_id, registration_id, channel }
            })
        }

        /// Removes a destination that was added with the same text; waits for the driver.
        ///
        /// # Errors
        /// The driver refuses or does not answer.
        pub fn remove_destination(&self, channel: &str) -> Result<(), AddError> {
            self.async_remove_destination(channel)?.wait()
        }

        /// As [`remove_destination`](Self::remove_destination), without waiting.
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_remove_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
            self.$($facts)+.destination(channel, |client_id, correlation_id, registration_id, channel| {
                Command::RemoveDestination { client_id, correlation_id, registration_id, channel }
            })
        }

        /// Removes the destination with a registration id; waits for the driver.
        ///
        /// # Errors
        /// The driver refuses or does not answer.
        pub fn remove_destination_by_id(&self, destination_id: i64) -> Result<(), AddError> {
            self.async_remove_destination_by_id(destination_id)?.wait()
        }

        /// As [`remove_destination_by_id`](Self::remove_destination_by_id), without waiting.
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_remove_destination_by_id(&self, destination_id: i64) -> Result<Pending<()>, AddError> {
            self.$($facts)+.destination("", |client_id, correlation_id, registration_id, _| {
                Command::RemoveDestinationById { client_id, correlation_id, registration_id, destination_id }
            })
        }
    };
}
pub(super) use accessors;
