// SPDX-License-Identifier: Apache-2.0
//! Adding, finding and removing publications.

use taran_protocol::command::Command;

use super::Client;
use crate::client_core::check_channel;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::registry::Request;
use crate::removal::ResourceKind;

impl Client {
    /// Adds a publication that any number of threads may share. Waits for the driver. If the driver already has a
    /// shared publication of this channel and stream, in any process, both append to the same stream.
    ///
    /// # Errors
    /// The driver rejects the command, for instance because of the channel; it does not answer; the client is closed.
    pub fn add_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Publication, CommandError> {
        self.async_add_publication(channel, stream_id)?.wait()
    }

    /// Like [`add_publication`](Self::add_publication), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<Publication>, CommandError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.core().request(
            |completer| Request::Publication {
                channel: channel.to_owned(),
                completer,
            },
            |correlation_id| Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// Adds a publication with a single writer and its own session. It is faster than a shared one. Waits for the
    /// driver.
    ///
    /// # Errors
    /// As for [`add_publication`](Self::add_publication).
    pub fn add_exclusive_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<ExclusivePublication, CommandError> {
        self.async_add_exclusive_publication(channel, stream_id)?
            .wait()
    }

    /// Like [`add_exclusive_publication`](Self::add_exclusive_publication), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_exclusive_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<ExclusivePublication>, CommandError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.core().request(
            |completer| Request::ExclusivePublication {
                channel: channel.to_owned(),
                completer,
            },
            |correlation_id| Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// Returns the open shared publication of this client with a registration id. Exclusive publications and
    /// subscriptions cannot be found, because they have a single owner.
    #[must_use]
    pub fn find_publication(&self, registration_id: i64) -> Option<Publication> {
        let handle = self
            .core()
            .registry()
            .publications
            .get(&registration_id)?
            .handle
            .clone()?;
        // The registry is unlocked here: if this is the last handle, its drop takes the lock.
        let publication = Publication::from_handle(handle.upgrade()?);
        (!publication.is_closed()).then_some(publication)
    }

    /// Closes the publication of this client with a registration id, shared or exclusive. The result is available when
    /// the driver has removed the publication. A publication that is still being added is withdrawn: its [`Pending`]
    /// fails with [`CommandError::Withdrawn`]. If the driver then rejects the add command, the removal fails because the
    /// driver does not know the publication.
    ///
    /// # Errors
    /// [`CommandError::UnknownRegistration`] if this client has no such publication; the client is closed.
    pub fn async_remove_publication(
        &self,
        registration_id: i64,
    ) -> Result<Pending<()>, CommandError> {
        self.core()
            .remove(ResourceKind::Publication, registration_id)
    }
}
