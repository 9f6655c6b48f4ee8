//! The client: what publications, subscriptions and counters are made with.

use std::path::Path;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_core::counters::CountersReader;
use taran_protocol::command::Command;

use crate::counter::Counter;
use crate::error::AddError;
use crate::handlers::ImageHandlers;
use crate::life::ClientEnd;
use crate::link::{Link, check_channel};
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::registry::Wish;
use crate::subscription::Subscription;

/// Longest key of a counter, in bytes.
const KEY_LENGTH_MAX: usize = 112;
/// Longest label of a counter, in bytes.
const LABEL_LENGTH_MAX: usize = 380;

/// A connection to a media driver; made by [`Context::connect`](crate::Context::connect).
///
/// A client is cheap to clone, and may be used by many threads. Everything that was made through it ends with it: when
/// [`close`](Self::close) is called on any clone, or when the last clone is dropped. When that has returned, no callback
/// runs and none will.
///
/// Calls named `add_…` wait for the driver, at most as long as the driver timeout; `async_…` calls return a
/// [`Pending`] at once.
#[derive(Clone, Debug)]
pub struct Client(Arc<Owner>);

/// Ends the client when the last clone goes.
#[derive(Debug)]
struct Owner(Arc<Link>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Client {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self(Arc::new(Owner(link)))
    }

    fn link(&self) -> &Arc<Link> {
        &self.0.0
    }

    // --- publications ---

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

    // --- subscriptions ---

    /// Adds a subscription. Images that become available or unavailable are told to the handlers of the context.
    ///
    /// # Errors
    /// The driver refuses, for instance because of the channel; it does not answer; the client has ended.
    pub fn add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Subscription, AddError> {
        self.add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// Adds a subscription with handlers of its own.
    ///
    /// # Errors
    /// As [`add_subscription`](Self::add_subscription).
    pub fn add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Subscription, AddError> {
        self.async_add_subscription_with(channel, stream_id, handlers)?
            .wait()
    }

    /// As [`add_subscription`](Self::add_subscription), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<Subscription>, AddError> {
        self.async_add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// As [`add_subscription_with`](Self::add_subscription_with), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Pending<Subscription>, AddError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.link().ask(
            |promise| Wish::Subscription {
                channel: channel.to_owned(),
                stream_id,
                handlers,
                promise,
            },
            |correlation_id| Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    // --- counters ---

    /// Allocates a counter. Type ids from 1000 on are the applications'; key and label are shown by tools.
    ///
    /// # Errors
    /// The driver has no counter left or does not answer; the client has ended; the key has more than 112 bytes or the
    /// label more than 380.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter, AddError> {
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// As [`add_counter`](Self::add_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Pending<Counter>, AddError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.link().ask(
            |promise| Wish::Counter { promise },
            |correlation_id| Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id,
                key,
                label,
            },
        )
    }

    /// Allocates a counter that outlives this client, or finds the one with this type and registration id.
    ///
    /// # Errors
    /// As [`add_counter`](Self::add_counter); also if a counter with these ids belongs to a client.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter, AddError> {
        self.async_add_static_counter(type_id, key, label, registration_id)?
            .wait()
    }

    /// As [`add_static_counter`](Self::add_static_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Pending<Counter>, AddError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.link().ask(
            |promise| Wish::StaticCounter {
                registration_id,
                promise,
            },
            |correlation_id| Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                counter_type_id,
                key,
                label,
            },
        )
    }

    /// The counter of this client with that registration id, if it is still open.
    #[must_use]
    pub fn find_counter(&self, registration_id: i64) -> Option<Counter> {
        let handle = self
            .link()
            .registry()
            .counters
            .get(&registration_id)?
            .handle
            .clone();
        let counter = Counter::from_handle(handle.upgrade()?);
        (!counter.is_closed()).then_some(counter)
    }

    /// All counters of the driver, of every client.
    #[must_use]
    pub fn counters(&self) -> &CountersReader {
        self.link().counters()
    }

    // --- asking the driver ---

    /// A session id that no publication of the stream uses at this moment, for the `session-id` parameter.
    ///
    /// # Errors
    /// The driver does not answer; the client has ended.
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<i32, AddError> {
        self.async_next_available_session_id(stream_id)?.wait()
    }

    /// As [`next_available_session_id`](Self::next_available_session_id), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_next_available_session_id(
        &self,
        stream_id: i32,
    ) -> Result<Pending<i32>, AddError> {
        let client_id = self.client_id();
        self.link().ask(
            |promise| Wish::SessionId { promise },
            |correlation_id| Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            },
        )
    }

    /// A number that nobody else gets from this driver.
    #[must_use]
    pub fn next_correlation_id(&self) -> i64 {
        self.link().next_correlation_id()
    }

    // --- the client itself ---

    /// Id of this client with the driver.
    #[must_use]
    pub fn client_id(&self) -> i64 {
        self.link().client_id
    }

    /// The Aeron directory of the driver.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.link().settings.directory
    }

    /// How the client ended; `None` while it is in use.
    #[must_use]
    pub fn end(&self) -> Option<ClientEnd> {
        self.link().life.check().err()
    }

    /// True once the client was closed or has lost its driver.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.link().life.is_over()
    }

    /// Runs one turn of the client conductor on the calling thread: with [`Context::invoker`](crate::Context::invoker),
    /// to be called often, at least every few milliseconds. Returns the amount of work done; 0 inside a callback.
    pub fn invoke(&self) -> usize {
        self.link().invoke()
    }

    /// As [`invoke`](Self::invoke), with a time that the caller provides: for simulations.
    pub fn do_work(&self, now: Now) -> usize {
        self.link().do_work(now)
    }

    /// Ends the client and all that was made through it, for all clones. A callback in progress on another thread is
    /// waited for, so the caller must not hold a lock that a callback takes. Called inside a callback, it returns at
    /// once and that callback is the last.
    pub fn close(&self) {
        self.link().close();
    }
}

fn check_counter(key: &[u8], label: &str) -> Result<(), AddError> {
    for (what, length, max) in [
        ("key", key.len(), KEY_LENGTH_MAX),
        ("label", label.len(), LABEL_LENGTH_MAX),
    ] {
        if length > max {
            return Err(AddError::TooLong { what, length, max });
        }
    }
    Ok(())
}
