//! The client: what publications, subscriptions and counters are made with.

mod counters;
mod handlers;
mod publications;
mod subscriptions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::Now;
use taran_protocol::command::Command;

use crate::error::AddError;
use crate::life::ClientEnd;
use crate::link::Link;
use crate::pending::Pending;
use crate::registry::Wish;

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

    /// True while the driver has not answered the command with that correlation id: adding, removing, closing,
    /// destinations. The answers are taken in by the conductor, so an [invoked](Self::invoke) one has to run meanwhile.
    #[must_use]
    pub fn is_command_active(&self, correlation_id: i64) -> bool {
        self.link()
            .registry()
            .in_flight
            .contains_key(&correlation_id)
    }

    /// True while there is a command that the driver has not answered.
    #[must_use]
    pub fn has_active_commands(&self) -> bool {
        !self.link().registry().in_flight.is_empty()
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

    /// Name of this client in tools; may be empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.link().settings.client_name
    }

    /// How long the driver may take to answer or to show a sign of life.
    #[must_use]
    pub fn driver_timeout(&self) -> Duration {
        self.link().settings.driver_timeout
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
