//! The connection to a driver: what every handle of a client shares.
//!
//! Contract: user threads send commands ([`Link::ask`], [`Link::send_or_keep`]) and close things; whoever runs the
//! client conductor calls [`Link::do_work`] with the present time. Two locks, always taken in this order: the
//! conductor's, held for a whole turn, callbacks included; the registry's, held for moments.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use taran_core::agent::{RunningAgent, ThreadWaker};
use taran_core::clock::{Clock, Now};
use taran_core::counters::CountersReader;
use taran_core::memory::Storage;
use taran_core::ring::WriteError;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::command::Command;

use crate::callback::thread_token;
use crate::closing::Closing;
use crate::conductor::Conductor;
use crate::error::AddError;
use crate::handlers::Handlers;
use crate::life::Life;
use crate::linger::Lingering;
use crate::pending::{Pending, Promise};
use crate::registry::{Encoded, InFlight, Registry, Wish};

/// How often a command is offered to a full buffer before its caller is told.
const SEND_ATTEMPTS: usize = 16;
/// Longest channel that the protocol knows, in bytes.
pub(crate) const CHANNEL_LENGTH_MAX: usize = 4095;

/// The user's function that runs a driver for a turn and says how much work there was.
pub(crate) type DriverInvoker = Box<dyn FnMut() -> usize + Send>;

/// Numbers and places that do not change while the client lives.
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

pub(crate) struct Link {
    pub(crate) settings: Settings,
    pub(crate) client_id: i64,
    pub(crate) handlers: Handlers,
    pub(crate) life: Life,
    pub(crate) closing: Closing,
    pub(crate) lingering: Lingering,
    to_driver: Producer,
    counters: CountersReader,
    registry: Mutex<Registry>,
    conductor: Mutex<Conductor>,
    /// Token of the thread that is inside the conductor's turn; 0 when none is.
    running_on: AtomicUsize,
    /// Commands in flight: while there are any the conductor naps only.
    awaited: AtomicUsize,
    /// For an invoked conductor.
    clock: Mutex<Box<dyn Clock>>,
    waker: OnceLock<ThreadWaker>,
    thread: Mutex<Option<RunningAgent>>,
    /// Runs a driver that has no threads.
    driver: Mutex<Option<DriverInvoker>>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("client_id", &self.client_id)
            .field("directory", &self.settings.directory)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// What connecting has found in `cnc.dat`.
pub(crate) struct Attached {
    pub(crate) to_driver: Producer,
    pub(crate) counters: CountersReader,
    pub(crate) conductor: Conductor,
}

impl Link {
    pub(crate) fn new(
        settings: Settings,
        handlers: Handlers,
        attached: Attached,
        clock: Box<dyn Clock>,
        driver: Option<DriverInvoker>,
    ) -> Self {
        Self {
            client_id: attached.to_driver.next_correlation_id(),
            lingering: Lingering::new(settings.resource_linger),
            settings,
            handlers,
            life: Life::default(),
            closing: Closing::default(),
            to_driver: attached.to_driver,
            counters: attached.counters,
            registry: Mutex::default(),
            conductor: Mutex::new(attached.conductor),
            running_on: AtomicUsize::new(0),
            awaited: AtomicUsize::new(0),
            clock: Mutex::new(clock),
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

    /// The driver's last sign of life, epoch milliseconds; −1 after an orderly shutdown.
    pub(crate) fn driver_heartbeat_ms(&self) -> i64 {
        self.to_driver.consumer_heartbeat_ms()
    }

    // --- commands ---

    /// Sends a command made by `command` from its correlation id, and remembers what was asked for.
    pub(crate) fn ask<'c, T>(
        self: &Arc<Self>,
        wish: impl FnOnce(Promise<T>) -> Wish,
        command: impl FnOnce(i64) -> Command<'c>,
    ) -> Result<Pending<T>, AddError> {
        let correlation_id = self.next_correlation_id();
        let (pending, promise) = Pending::new(self, correlation_id);
        let in_flight = InFlight {
            since_ns: None,
            wish: wish(promise),
        };
        {
            let mut registry = self.registry();
            // Under the lock: whoever ends the client takes the lock afterwards and finds every wish registered here.
            self.life.check()?;
            registry.in_flight.insert(correlation_id, in_flight);
            self.note_in_flight(&registry);
        }
        if let Err(error) = self.send(&Encoded::new(&command(correlation_id))) {
            let mut registry = self.registry();
            let unsent = registry.in_flight.remove(&correlation_id);
            self.note_in_flight(&registry);
            drop(registry);
            drop(unsent);
            return Err(error);
        }
        self.wake_conductor();
        Ok(pending)
    }

    /// As [`ask`](Self::ask) for a command without a result, which waits for room if the buffer is full. A dropped
    /// [`Pending`] changes nothing about the command.
    pub(crate) fn ask_or_keep<'c>(
        self: &Arc<Self>,
        command: impl FnOnce(i64) -> Command<'c>,
    ) -> Result<Pending<()>, AddError> {
        let correlation_id = self.next_correlation_id();
        let (pending, promise) = Pending::new(self, correlation_id);
        let wish = Wish::Operation { promise };
        {
            let mut registry = self.registry();
            self.life.check()?;
            registry.in_flight.insert(
                correlation_id,
                InFlight {
                    since_ns: None,
                    wish,
                },
            );
            self.note_in_flight(&registry);
        }
        self.send_or_keep(&command(correlation_id));
        self.wake_conductor();
        Ok(pending)
    }

    /// Sends a command now or, if the buffer is full, as soon as there is room. For commands nobody waits for.
    pub(crate) fn send_or_keep(&self, command: &Command<'_>) {
        let encoded = Encoded::new(command);
        let mut registry = self.registry();
        // Behind those that are already waiting, to keep the order.
        if !registry.unsent.is_empty() || self.try_send(&encoded).is_err() {
            registry.unsent.push_back(encoded);
        }
    }

    /// Sends a command now, or not at all.
    pub(crate) fn send_now(&self, command: &Command<'_>) {
        drop(self.send(&Encoded::new(command)));
    }

    /// Sends commands that had no room before; how many.
    pub(crate) fn send_kept(&self) -> usize {
        let mut registry = self.registry();
        let mut sent = 0;
        while let Some(encoded) = registry.unsent.front() {
            if self.try_send(encoded).is_err_and(|error| can_pass(&error)) {
                break;
            }
            registry.unsent.pop_front();
            sent += 1;
        }
        sent
    }

    fn try_send(&self, encoded: &Encoded) -> Result<(), WriteError> {
        self.to_driver.write(encoded.type_id, &encoded.bytes)
    }

    fn send(&self, encoded: &Encoded) -> Result<(), AddError> {
        let length = encoded.bytes.len();
        for _ in 0..SEND_ATTEMPTS {
            match self.try_send(encoded) {
                Ok(()) => return Ok(()),
                Err(error) if can_pass(&error) => std::thread::yield_now(),
                Err(_) => {
                    let max = self.to_driver.max_message_length();
                    return Err(AddError::TooLong {
                        what: "command",
                        length,
                        max,
                    });
                }
            }
        }
        Err(AddError::DriverBufferFull { length })
    }

    // --- running the conductor ---

    /// True if the calling thread is inside a turn of the conductor, so inside a callback.
    pub(crate) fn is_in_duty_cycle(&self) -> bool {
        // Relaxed is enough: only this very thread can have stored its own token.
        self.running_on.load(Ordering::Relaxed) == thread_token()
    }

    pub(crate) fn is_invoked(&self) -> bool {
        self.settings.invoked
    }

    /// One turn with the time of the client's own clock.
    pub(crate) fn invoke(self: &Arc<Self>) -> usize {
        let now = self
            .clock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .now();
        self.do_work(now)
    }

    /// Runs the driver for a turn, if it runs on the application's threads and nobody else is running it.
    pub(crate) fn invoke_driver(&self) -> Option<usize> {
        let mut driver = match self.driver.try_lock() {
            Ok(driver) => driver,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(0),
        };
        driver.as_mut().map(|invoke| invoke())
    }

    /// One turn of the conductor; 0 if it is in a turn already.
    pub(crate) fn do_work(self: &Arc<Self>, now: Now) -> usize {
        let mut conductor = match self.conductor.try_lock() {
            Ok(conductor) => conductor,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        self.running_on.store(thread_token(), Ordering::Relaxed);
        let _left = Leaving(&self.running_on);
        conductor.turn(self, now)
    }

    /// Waits until nobody is inside a turn. Not to be called inside one.
    pub(crate) fn wait_for_turn(&self) {
        drop(
            self.conductor
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    pub(crate) fn note_in_flight(&self, registry: &Registry) {
        self.awaited.store(
            registry.in_flight.len() + registry.unsent.len(),
            Ordering::Relaxed,
        );
    }

    /// True while the driver's next response is wanted soon.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set_waker(&self, waker: ThreadWaker) {
        // There is one thread per client, which sets it once.
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

    /// Stops the conductor's thread and waits for its end, unless it is the calling thread.
    pub(crate) fn stop_thread(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(thread);
    }
}

/// True for an error that goes away when the driver reads its commands.
fn can_pass(error: &WriteError) -> bool {
    matches!(error, WriteError::Full | WriteError::Corrupt { .. })
}

/// Notes that the turn is over, also when it panicked.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Refuses a channel that no driver can take.
pub(crate) fn check_channel(channel: &str) -> Result<(), AddError> {
    let (length, max) = (channel.len(), CHANNEL_LENGTH_MAX);
    if length > max {
        return Err(AddError::TooLong {
            what: "channel",
            length,
            max,
        });
    }
    Ok(())
}
