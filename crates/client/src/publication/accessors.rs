// SPDX-License-Identifier: Apache-2.0
//! Methods that shared and exclusive publications have in common.

/// Defines the methods that both kinds of publication have; `$core` is the path to the `PublicationCore`.
macro_rules! accessors {
    ($($core:tt)+) => {
        /// Returns the channel as it was given.
        #[must_use]
        pub fn channel(&self) -> &str {
            &self.$($core)+.channel
        }

        /// Returns the stream id.
        #[must_use]
        pub fn stream_id(&self) -> i32 {
            self.$($core)+.stream_id
        }

        /// Returns the session id, which distinguishes the streams of one channel and stream id.
        #[must_use]
        pub fn session_id(&self) -> i32 {
            self.$($core)+.session_id
        }

        /// Returns the registration id of this publication.
        #[must_use]
        pub fn registration_id(&self) -> i64 {
            self.$($core)+.state.registration_id
        }

        /// Returns the registration id of the publication that created the stream: this one, or the one whose stream it
        /// shares.
        #[must_use]
        pub fn original_registration_id(&self) -> i64 {
            self.$($core)+.state.original_registration_id
        }

        /// Returns true if this publication created the stream, false if it shares an existing one.
        #[must_use]
        pub fn is_original(&self) -> bool {
            self.registration_id() == self.original_registration_id()
        }

        /// Returns the maximum length of a message in bytes: an eighth of the term length, at most 16 MiB.
        #[must_use]
        pub fn max_message_length(&self) -> usize {
            self.$($core)+.log.max_message_length() as usize
        }

        /// Returns the maximum length of an unfragmented message or a claim in bytes: the MTU minus 32.
        #[must_use]
        pub fn max_payload_length(&self) -> usize {
            self.$($core)+.log.max_payload_length() as usize
        }

        /// Returns the length of a term in bytes.
        #[must_use]
        pub fn term_length(&self) -> usize {
            self.$($core)+.log.term_length() as usize
        }

        /// Returns the id of the first term of the stream.
        #[must_use]
        pub fn initial_term_id(&self) -> i32 {
            self.$($core)+.log.geometry().initial_term_id()
        }

        /// Returns the end of the position space in bytes: 2^31 terms.
        #[must_use]
        pub fn max_possible_position(&self) -> Position {
            self.$($core)+.log.geometry().max_position()
        }

        /// Returns true if the publication is open and the stream has a subscriber.
        #[must_use]
        pub fn is_connected(&self) -> bool {
            !self.is_closed() && self.$($core)+.log.is_connected()
        }

        /// Returns true if the publication or its client is closed.
        #[must_use]
        pub fn is_closed(&self) -> bool {
            self.$($core)+.state.is_closed()
        }

        /// Returns the position limit in bytes, at which back-pressure sets in; after the close the current position.
        #[must_use]
        pub fn position_limit(&self) -> Position {
            self.$($core)+.position_limit(self.position())
        }

        /// Returns the number of bytes up to the position limit, including frame headers and padding.
        #[must_use]
        pub fn available_window(&self) -> i64 {
            self.position_limit().saturating_sub(self.position()).max(0)
        }

        /// Returns what limits the publication at present: a subscriber, receivers in other drivers, the congestion window,
        /// the driver, or only its publisher. Reads all counters of the driver, so not for the hot path: for a log line
        /// or a metric when offers are [back-pressured](crate::OfferError::BackPressured).
        ///
        /// ```
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let driver = taran_driver::MediaDriver::launch_embedded(
        /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
        /// # )?;
        /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
        /// let publication = client.add_publication("aeron:ipc", 1001)?;
        /// assert_eq!(publication.limited_by().to_string(), "no receiver: no subscriber is connected");
        /// # Ok(())
        /// # }
        /// ```
        #[must_use]
        pub fn limited_by(&self) -> LimitedBy {
            self.$($core)+.limited_by(self.position())
        }

        /// Returns the status of the channel.
        #[must_use]
        pub fn channel_status(&self) -> ChannelStatus {
            self.$($core)+.channel_status()
        }

        /// Returns the counter id of the channel's status indicator; `None` for IPC.
        #[must_use]
        pub fn channel_status_id(&self) -> Option<i32> {
            channel_status::status_id(self.$($core)+.state.status_counter_id)
        }

        /// Returns the counter id of the position limit.
        #[must_use]
        pub fn position_limit_id(&self) -> i32 {
            self.$($core)+.limit.id()
        }

        /// Returns the local addresses of the channel; empty for IPC, and until the channel is active.
        #[must_use]
        pub fn local_socket_addresses(&self) -> Vec<SocketAddr> {
            self.$($core)+.local_socket_addresses()
        }

        /// Makes every later close of the publication [revoke](Self::revoke) the stream.
        pub fn revoke_on_close(&self) {
            self.$($core)+.state.revoke_on_close();
        }

        /// Adds a destination to a publication whose channel has `control-mode=manual`; waits for the driver. Returns
        /// the registration id of the destination.
        ///
        /// # Errors
        /// The driver rejects the command or does not answer; the publication is closed.
        pub fn add_destination(&self, channel: impl AsRef<str>) -> Result<i64, CommandError> {
            let pending = self.async_add_destination(channel)?;
            let registration_id = pending.registration_id();
            pending.wait().map(|()| registration_id)
        }

        /// Like [`add_destination`](Self::add_destination), without waiting. The registration id of the destination is
        /// that of the [`Pending`].
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_add_destination(&self, channel: impl AsRef<str>) -> Result<Pending<()>, CommandError> {
            self.$($core)+.send_destination_command(channel.as_ref(), |client_id, correlation_id, registration_id, channel| {
                Command::AddDestination { client_id, correlation_id, registration_id, channel }
            })
        }

        /// Removes a destination by the channel that it was added with; waits for the driver.
        ///
        /// # Errors
        /// The driver rejects the command or does not answer; the publication is closed.
        pub fn remove_destination(&self, channel: impl AsRef<str>) -> Result<(), CommandError> {
            self.async_remove_destination(channel)?.wait()
        }

        /// Like [`remove_destination`](Self::remove_destination), without waiting.
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_remove_destination(&self, channel: impl AsRef<str>) -> Result<Pending<()>, CommandError> {
            self.$($core)+.send_destination_command(channel.as_ref(), |client_id, correlation_id, registration_id, channel| {
                Command::RemoveDestination { client_id, correlation_id, registration_id, channel }
            })
        }

        /// Removes a destination by its registration id; waits for the driver.
        ///
        /// # Errors
        /// The driver rejects the command or does not answer; the publication is closed.
        pub fn remove_destination_by_id(&self, destination_id: i64) -> Result<(), CommandError> {
            self.async_remove_destination_by_id(destination_id)?.wait()
        }

        /// Like [`remove_destination_by_id`](Self::remove_destination_by_id), without waiting.
        ///
        /// # Errors
        /// The command could not be sent.
        pub fn async_remove_destination_by_id(&self, destination_id: i64) -> Result<Pending<()>, CommandError> {
            self.$($core)+.send_destination_command("", |client_id, correlation_id, registration_id, _| {
                Command::RemoveDestinationById { client_id, correlation_id, registration_id, destination_id }
            })
        }
    };
}
pub(super) use accessors;
