//! What shared and exclusive publications answer alike.

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

        /// True for the publication that made the stream; false if it found one to share.
        #[must_use]
        pub fn is_original(&self) -> bool {
            self.registration_id() == self.original_registration_id()
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

        /// From now on closing the publication, in whatever way, [revokes](Self::revoke) the stream.
        pub fn revoke_on_close(&self) {
            self.$($facts)+.state.revoke_on_close();
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
