// SPDX-License-Identifier: Apache-2.0
//! The client, which creates publications, subscriptions and counters.

mod counters;
mod handlers;
mod publications;
mod subscriptions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::Now;
use taran_protocol::command::Command;

use crate::builder::ClientBuilder;
use crate::client_core::ClientCore;
use crate::client_state::CloseReason;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::registry::Request;

/// A connection to a media driver; created by [`ClientBuilder::connect`](crate::ClientBuilder::connect).
///
/// A client is cheap to clone and may be used by many threads. All its publications, subscriptions and counters close
/// with it: when [`close`](Self::close) is called on any clone, or when the last clone is dropped. After that has
/// returned, no callback runs.
///
/// Methods named `add_…` wait for the driver, at most for the driver timeout; `async_…` methods return a [`Pending`] at
/// once.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// let client = taran::Client::builder().aeron_dir(directory).client_name("pricing").connect()?;
/// let subscription = client.add_subscription("aeron:udp?endpoint=localhost:40123", 1001)?;
/// let publication = client.add_publication("aeron:udp?endpoint=localhost:40123", 1001)?;
/// client.close();
/// assert!(subscription.is_closed() && publication.is_closed());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "Aeron")]
pub struct Client(Arc<Owner>);

/// Closes the client when the last clone is dropped.
#[derive(Debug)]
struct Owner(Arc<ClientCore>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Client {
    pub(crate) fn new(core: Arc<ClientCore>) -> Self {
        Self(Arc::new(Owner(core)))
    }

    /// Returns a builder with the defaults and the options set in the environment; see [`ClientBuilder`].
    #[must_use]
    #[doc(alias = "Context")]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::from_environment()
    }

    pub(crate) fn core(&self) -> &Arc<ClientCore> {
        &self.0.0
    }

    // --- session ids and command status ---

    /// Returns a session id that no publication of the stream uses, for the `session-id` parameter of a channel. Waits
    /// for the driver.
    ///
    /// # Errors
    /// The driver does not answer; the client is closed.
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<i32, CommandError> {
        self.async_next_available_session_id(stream_id)?.wait()
    }

    /// Like [`next_available_session_id`](Self::next_available_session_id), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_next_available_session_id(
        &self,
        stream_id: i32,
    ) -> Result<Pending<i32>, CommandError> {
        let client_id = self.client_id();
        self.core().request(
            |completer| Request::SessionId { completer },
            |correlation_id| Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            },
        )
    }

    /// Returns true while the driver has not answered the command with a correlation id: adding, removing or closing a
    /// resource, or changing destinations. The conductor processes the responses, so in invoker mode
    /// [`invoke`](Self::invoke) must be called meanwhile.
    #[must_use]
    pub fn is_command_active(&self, correlation_id: i64) -> bool {
        self.core()
            .registry()
            .in_flight
            .contains_key(&correlation_id)
    }

    /// Returns true while the driver has not answered all commands.
    #[must_use]
    pub fn has_active_commands(&self) -> bool {
        !self.core().registry().in_flight.is_empty()
    }

    /// Returns a number that is unique among all clients of this driver.
    #[must_use]
    pub fn next_correlation_id(&self) -> i64 {
        self.core().next_correlation_id()
    }

    // --- the client itself ---

    /// Returns the id by which the driver knows this client.
    #[must_use]
    pub fn client_id(&self) -> i64 {
        self.core().client_id
    }

    /// Returns the name of this client, which tools show.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core().settings.client_name
    }

    /// Returns the maximum time for a response of the driver and between two of its heartbeats.
    #[must_use]
    pub fn driver_timeout(&self) -> Duration {
        self.core().settings.driver_timeout
    }

    /// Returns the Aeron directory of the driver.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.core().settings.directory
    }

    /// Returns why the client is closed; `None` while it is open.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.core().state.check_open().err()
    }

    /// Returns true if the client was closed or has lost its driver.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core().state.is_closed()
    }

    /// Runs one duty cycle of the client conductor on the calling thread. With
    /// [`ClientBuilder::invoker`](crate::ClientBuilder::invoker) it must be called often, at least every few milliseconds. Returns
    /// the amount of work done; 0 inside a callback, or while another thread runs the conductor.
    ///
    /// A call that has nothing to do reads the time and the tail of the driver's responses, and takes no lock. A call takes a
    /// lock in four cases: a response has arrived, a command is in flight, the keepalive interval has passed, or the client
    /// has a clock of its own ([`ClientBuilder::clock`](crate::ClientBuilder::clock)). The lock is contended only if other
    /// threads run the conductor too.
    pub fn invoke(&self) -> usize {
        self.core().invoke()
    }

    /// Runs one duty cycle of what the calling thread has to run while it waits for another process: the client conductor
    /// in invoker mode, and a driver set with [`ClientBuilder::driver_invoker`](crate::ClientBuilder::driver_invoker).
    /// Returns the amount of work done; `None` if there is neither.
    pub fn run_invoked(&self) -> Option<usize> {
        self.core().run_invoked()
    }

    /// Like [`invoke`](Self::invoke), with a time that the caller provides: for simulations.
    pub fn do_work(&self, now: Now) -> usize {
        self.core().do_work(now)
    }

    /// Returns the time, on the clock of [`do_work`](Self::do_work), of the next duty cycle that has something to do if no
    /// response comes before: for simulations. `i64::MAX` stands for never, a time in the past for at once.
    #[must_use]
    pub fn next_deadline_ns(&self) -> i64 {
        self.core().next_deadline_ns()
    }

    /// Closes the client and all its resources, for all clones. Waits for a callback in progress on another thread, so
    /// the caller must not hold a lock that a callback takes. Inside a callback it returns at once, and no callback
    /// runs after that one.
    pub fn close(&self) {
        self.core().close();
    }
}
