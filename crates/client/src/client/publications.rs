//! Adding, finding and removing publications.

use taran_protocol::command::Command;

use super::Client;
use crate::error::AddError;
use crate::link::check_channel;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::registry::Wish;
use crate::removal::Kind;

impl Client {
    /// Adds a publication that any number of threads may share. If this driver has one of the same channel and stream
    /// already, in whatever process, both append to the same stream.
    ///
    /// # Errors
    /// The driver refuses, for instance because of the channel; it does not answer; the client has ended.
    pub fn add_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Publication, AddError> {
        self.async_add_publication(channel, stream_id)?.wait()
    }

    /// As [`add_publication`](Self::add_publication), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<Publication>, AddError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.link().ask(
            |promise| Wish::Publication {
                channel: channel.to_owned(),
                promise,
            },
            |correlation_id| Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// Adds a publication with one writer, which has a stream, and a session, of its own. It is faster than a shared
    /// one.
    ///
    /// # Errors
    /// As [`add_publication`](Self::add_publication).
    pub fn add_exclusive_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<ExclusivePublication, AddError> {
        self.async_add_exclusive_publication(channel, stream_id)?
            .wait()
    }

    /// As [`add_exclusive_publication`](Self::add_exclusive_publication), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_exclusive_publication(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<ExclusivePublication>, AddError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.link().ask(
            |promise| Wish::ExclusivePublication {
                channel: channel.to_owned(),
                promise,
            },
            |correlation_id| Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// The shared publication of this client with that registration id, if it is still open. (Exclusive publications
    /// and subscriptions have one owner, and are not found but kept.)
    #[must_use]
    pub fn find_publication(&self, registration_id: i64) -> Option<Publication> {
        let handle = self
            .link()
            .registry()
            .publications
            .get(&registration_id)?
            .handle
            .clone()?;
        // The registry is unlocked here: if this turns out to be the last handle, its drop needs the lock.
        let publication = Publication::from_handle(handle.upgrade()?);
        (!publication.is_closed()).then_some(publication)
    }

    /// Closes the publication of this client with that registration id, shared or exclusive, and answers when the
    /// driver has given it up. One that is still being added is withdrawn: its [`Pending`] fails with
    /// [`AddError::Withdrawn`]; should the driver refuse it afterwards, the answer is that it is unknown.
    ///
    /// # Errors
    /// [`AddError::UnknownRegistration`] if this client has no such publication; the client has ended.
    pub fn async_remove_publication(&self, registration_id: i64) -> Result<Pending<()>, AddError> {
        self.link().remove(Kind::Publication, registration_id)
    }
}
