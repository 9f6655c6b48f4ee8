// SPDX-License-Identifier: Apache-2.0
//! The state that all handles of one client share, and its connection to the driver.
//!
//! Contract: user threads send commands ([`ClientCore::request`], [`ClientCore::send_or_queue`]) and close resources.
//! The thread that runs the client conductor calls [`ClientCore::do_work`] with the current time. There are two locks,
//! always taken in this order: the conductor's, held for a whole duty cycle including callbacks, and the registry's,
//! held briefly. A duty cycle without a command, a response or a duty that is due takes none ([`IdleCycle`]); one that only
//! has a duty takes the first one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use taran_core::agent::{RunningAgent, ThreadWaker};
use taran_core::clock::{Clock, Now, SystemClock, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::memory::Storage;
use taran_core::ring::WriteError;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::command::Command;

use crate::callback::thread_token;
use crate::client_state::ClientState;
use crate::closing::Closing;
use crate::conductor::Conductor;
use crate::error::CommandError;
use crate::handlers::Handlers;
use crate::idle_cycle::IdleCycle;
use crate::pending::{Completer, Pending};
use crate::registry::{EncodedCommand, InFlight, Registry, Request};
use crate::resource_linger::ResourceLinger;

/// Attempts to write a command to a full driver buffer before the caller gets an error.
const SEND_ATTEMPTS: usize = 16;
/// Maximum length of a channel in the protocol, in bytes.
pub(crate) const CHANNEL_LENGTH_MAX: usize = 4095;

/// Runs one duty cycle of a driver without threads and returns its work count; supplied by the user.
pub(crate) type DriverInvoker = Box<dyn FnMut() -> usize + Send>;

/// Options in force; constant for the lifetime of the client.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) directory: PathBuf,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) driver_timeout: Duration,
    pub(crate) client_liveness: Duration,
    pub(crate) keepalive: Duration,
    pub(crate) inter_service: Duration,
    pub(crate) resource_linger: Duration,
    pub(crate) close_linger: Duration,
    pub(crate) pre_touch: bool,
    pub(crate) invoked: bool,
    pub(crate) client_name: String,
}

/// Shared state of a client. The main handle is [`Client`](crate::Client); publications, subscriptions, counters and
/// images refer to it too.
#[doc(alias = "DriverProxy")]
pub(crate) struct ClientCore {
    pub(crate) settings: Settings,
    pub(crate) client_id: i64,
    pub(crate) handlers: Handlers,
    pub(crate) state: ClientState,
    pub(crate) closing: Closing,
    pub(crate) resource_linger: ResourceLinger,
    pub(crate) idle_cycle: IdleCycle,
    to_driver: Producer,
    driver_identity: DriverIdentity,
    counters: CountersReader,
    registry: Mutex<Registry>,
    turn: Mutex<TurnState>,
    /// True if [`TurnState::clock`] is the system's, which can be read without the lock.
    has_system_clock: bool,
    /// Token of the thread that executes the conductor's duty cycle; 0 if none does.
    conductor_thread: AtomicUsize,
    /// Number of commands in flight or queued. While it is not 0 the conductor's thread parks only briefly.
    pending_commands: AtomicUsize,
    waker: OnceLock<ThreadWaker>,
    thread: Mutex<Option<RunningAgent>>,
    /// Runs one duty cycle of a driver in invoker mode.
    driver: Mutex<Option<DriverInvoker>>,
}

impl std::fmt::Debug for ClientCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCore")
            .field("client_id", &self.client_id)
            .field("directory", &self.settings.directory)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// State that only one duty cycle at a time uses.
struct TurnState {
    conductor: Conductor,
    clock: InvokerClock,
}

/// Clock for [`ClientCore::invoke`].
pub(crate) enum InvokerClock {
    System(SystemClock),
    Custom(Box<dyn Clock>),
}

/// The parts of `cnc.dat` that a client uses.
pub(crate) struct DriverConnection {
    pub(crate) to_driver: Producer,
    pub(crate) counters: CountersReader,
    pub(crate) conductor: Conductor,
    pub(crate) driver: DriverIdentity,
}

/// Process id and start of a driver: they differ from those of the driver that had the directory before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriverIdentity {
    pub(crate) pid: i64,
    pub(crate) start_timestamp_ms: i64,
}

impl InvokerClock {
    fn now(&mut self) -> Now {
        match self {
            Self::System(clock) => clock.now(),
            Self::Custom(clock) => clock.now(),
        }
    }

    /// Returns the current time, of which the system clock has just shown the nanoseconds.
    fn at(&mut self, nanos: i64) -> Now {
        match self {
            Self::System(clock) => clock.at(nanos),
            Self::Custom(clock) => clock.now(),
        }
    }
}

impl ClientCore {
    pub(crate) fn new(
        settings: Settings,
        handlers: Handlers,
        connection: DriverConnection,
        clock: InvokerClock,
        driver: Option<DriverInvoker>,
    ) -> Self {
        Self {
            idle_cycle: IdleCycle::new(connection.conductor.tail_probe()),
            has_system_clock: matches!(clock, InvokerClock::System(_)),
            client_id: connection.to_driver.next_correlation_id(),
            resource_linger: ResourceLinger::new(settings.resource_linger),
            settings,
            handlers,
            state: ClientState::default(),
            closing: Closing::default(),
            to_driver: connection.to_driver,
            driver_identity: connection.driver,
            counters: connection.counters,
            registry: Mutex::default(),
            turn: Mutex::new(TurnState {
                conductor: connection.conductor,
                clock,
            }),
            conductor_thread: AtomicUsize::new(0),
            pending_commands: AtomicUsize::new(0),
            waker: OnceLock::new(),
            thread: Mutex::new(None),
            driver: Mutex::new(driver),
        }
    }

    pub(crate) fn counters(&self) -> &CountersReader {
        &self.counters
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.to_driver.next_correlation_id()
    }

    /// Returns the driver's last heartbeat in milliseconds since the epoch; −1 after an orderly shutdown.
    pub(crate) fn driver_heartbeat_ms(&self) -> i64 {
        self.to_driver.consumer_heartbeat_ms()
    }

    /// Returns the driver that the client is connected to.
    pub(crate) fn driver_identity(&self) -> DriverIdentity {
        self.driver_identity
    }

    // --- commands ---

    /// Registers the request that `request` builds, then sends the command that `command` builds from the correlation
    /// id.
    pub(crate) fn request<'c, T>(
        self: &Arc<Self>,
        request: impl FnOnce(Completer<T>) -> Request,
        command: impl FnOnce(i64) -> Command<'c>,
    ) -> Result<Pending<T>, CommandError> {
        let correlation_id = self.next_correlation_id();
        let (pending, completer) = Pending::new(self, correlation_id);
        let in_flight = InFlight {
            since_ns: None,
            request: request(completer),
        };
        {
            let mut registry = self.registry();
            // Checked under the lock: closing sets the state before it takes the lock, so it finds every request
            // registered here.
            self.state.check_open()?;
            registry.in_flight.insert(correlation_id, in_flight);
            self.update_pending_commands(&registry);
        }
        if let Err(error) = self.send(&EncodedCommand::new(&command(correlation_id))) {
            let mut registry = self.registry();
            let unsent = registry.in_flight.remove(&correlation_id);
            self.update_pending_commands(&registry);
            drop(registry);
            drop(unsent);
            return Err(error);
        }
        self.wake_conductor();
        Ok(pending)
    }

    /// Like [`request`](Self::request) for a command without a result, but queues the command if the driver's buffer is
    /// full. Dropping the [`Pending`] does not affect the command.
    pub(crate) fn request_or_queue<'c>(
        self: &Arc<Self>,
        command: impl FnOnce(i64) -> Command<'c>,
    ) -> Result<Pending<()>, CommandError> {
        let correlation_id = self.next_correlation_id();
        let (pending, completer) = Pending::new(self, correlation_id);
        let request = Request::Operation { completer };
        {
            let mut registry = self.registry();
            self.state.check_open()?;
            registry.in_flight.insert(
                correlation_id,
                InFlight {
                    since_ns: None,
                    request,
                },
            );
            self.update_pending_commands(&registry);
        }
        self.send_or_queue(&command(correlation_id));
        self.wake_conductor();
        Ok(pending)
    }

    /// Sends a command, or queues it if the driver's buffer is full. For commands whose response is not needed.
    pub(crate) fn send_or_queue(&self, command: &Command<'_>) {
        let encoded = EncodedCommand::new(command);
        let mut registry = self.registry();
        // Commands must stay in order, so this one goes behind those already queued.
        if !registry.queued.is_empty() || self.try_send(&encoded).is_err() {
            registry.queued.push_back(encoded);
            self.update_pending_commands(&registry);
        }
    }

    /// Sends a command; discards it if the driver's buffer is full.
    pub(crate) fn send_best_effort(&self, command: &Command<'_>) {
        drop(self.send(&EncodedCommand::new(command)));
    }

    /// Sends queued commands while the driver's buffer has room. Returns the number sent.
    pub(crate) fn flush_queued(&self) -> usize {
        if !self.has_pending_commands() {
            return 0;
        }
        let mut registry = self.registry();
        let mut sent = 0;
        while let Some(encoded) = registry.queued.front() {
            if self
                .try_send(encoded)
                .is_err_and(|error| is_transient(&error))
            {
                break;
            }
            registry.queued.pop_front();
            sent += 1;
        }
        self.update_pending_commands(&registry);
        sent
    }

    fn try_send(&self, encoded: &EncodedCommand) -> Result<(), WriteError> {
        self.to_driver.write(encoded.type_id, &encoded.bytes)
    }

    fn send(&self, encoded: &EncodedCommand) -> Result<(), CommandError> {
        let length = encoded.bytes.len();
        for _ in 0..SEND_ATTEMPTS {
            match self.try_send(encoded) {
                Ok(()) => return Ok(()),
                Err(error) if is_transient(&error) => std::thread::yield_now(),
                Err(_) => {
                    let max = self.to_driver.max_message_length();
                    return Err(CommandError::TooLong {
                        item: "command",
                        length,
                        max,
                    });
                }
            }
        }
        Err(CommandError::DriverBufferFull { length })
    }

    // --- running the conductor ---

    /// Returns true if the calling thread executes the conductor's duty cycle, as it does inside a callback.
    pub(crate) fn is_in_duty_cycle(&self) -> bool {
        // Relaxed: only this thread can have stored its own token.
        self.conductor_thread.load(Ordering::Relaxed) == thread_token()
    }

    pub(crate) fn is_invoked(&self) -> bool {
        self.settings.invoked
    }

    /// Runs one duty cycle with the time of the client's own clock.
    pub(crate) fn invoke(self: &Arc<Self>) -> usize {
        if !self.has_system_clock {
            return self.run_turn(InvokerClock::now);
        }
        let nanos = SystemClock::nanos();
        if self.is_idle(nanos) {
            return 0;
        }
        self.run_turn(|clock| clock.at(nanos))
    }

    /// Returns true if a duty cycle at this time has nothing to do. Takes no lock.
    fn is_idle(&self, now_ns: i64) -> bool {
        !self.has_pending_commands() && self.idle_cycle.is_idle(now_ns)
    }

    /// Runs one duty cycle of the driver if the builder has a driver invoker. Returns `None` if it has none, and
    /// `Some(0)` if another thread is running the driver.
    fn invoke_driver(&self) -> Option<usize> {
        let mut driver = match self.driver.try_lock() {
            Ok(driver) => driver,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(0),
        };
        driver.as_mut().map(|invoke| invoke())
    }

    /// Runs one duty cycle of what the calling thread has to run while it waits: a driver with a driver invoker, and the
    /// conductor in invoker mode. Returns `None` if it has to run neither.
    pub(crate) fn run_invoked(self: &Arc<Self>) -> Option<usize> {
        let driver = self.invoke_driver();
        if self.is_invoked() {
            Some(driver.unwrap_or_default() + self.invoke())
        } else {
            driver
        }
    }

    /// Runs one duty cycle of the conductor. Returns 0 if one is already in progress.
    pub(crate) fn do_work(self: &Arc<Self>, now: Now) -> usize {
        if self.is_idle(now.nanos) {
            return 0;
        }
        self.run_turn(|_| now)
    }

    /// Returns the time from which on a duty cycle has something to do if nothing comes from outside before: a response, or
    /// room for queued commands. `i64::MAX` stands for never.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        if self.state.is_closed() {
            return i64::MAX;
        }
        let timeout_ns = saturating_nanos(self.settings.driver_timeout);
        let registry = self.registry();
        let in_flight = registry.in_flight.values();
        // The timeout of a new command starts with the next duty cycle.
        let late = in_flight.map(|it| {
            it.since_ns
                .map_or(i64::MIN, |since| since.saturating_add(timeout_ns))
        });
        let late_ns = late.min().unwrap_or(i64::MAX);
        late_ns.min(self.idle_cycle.next_deadline_ns())
    }

    fn run_turn(self: &Arc<Self>, now: impl FnOnce(&mut InvokerClock) -> Now) -> usize {
        let mut turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        self.conductor_thread
            .store(thread_token(), Ordering::Relaxed);
        let _guard = DutyCycleGuard(&self.conductor_thread);
        let TurnState { conductor, clock } = &mut *turn;
        conductor.do_work(self, now(clock))
    }

    /// Waits until no duty cycle is in progress. Must not be called inside one.
    pub(crate) fn wait_for_duty_cycle(&self) {
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Updates the number of pending commands after a change of the registry.
    pub(crate) fn update_pending_commands(&self, registry: &Registry) {
        self.pending_commands.store(
            registry.in_flight.len() + registry.queued.len(),
            Ordering::Relaxed,
        );
    }

    /// Returns true while a command is in flight or queued.
    pub(crate) fn has_pending_commands(&self) -> bool {
        self.pending_commands.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set_waker(&self, waker: ThreadWaker) {
        // Each client has at most one conductor thread, which sets its waker once.
        drop(self.waker.set(waker));
    }

    fn wake_conductor(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    pub(crate) fn set_thread(&self, thread: RunningAgent) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Stops the conductor's thread and joins it, unless it is the calling thread.
    pub(crate) fn stop_thread(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(thread);
    }
}

/// Returns true for an error that resolves itself when the driver reads commands.
fn is_transient(error: &WriteError) -> bool {
    matches!(error, WriteError::Full | WriteError::Corrupt { .. })
}

/// Clears the conductor's thread token at the end of the duty cycle, also on unwinding.
struct DutyCycleGuard<'a>(&'a AtomicUsize);

impl Drop for DutyCycleGuard<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Checks the length of a channel against the limit of the protocol.
pub(crate) fn check_channel(channel: &str) -> Result<(), CommandError> {
    let (length, max) = (channel.len(), CHANNEL_LENGTH_MAX);
    if length > max {
        return Err(CommandError::TooLong {
            item: "channel",
            length,
            max,
        });
    }
    Ok(())
}
