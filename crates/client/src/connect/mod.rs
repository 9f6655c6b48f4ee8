// SPDX-License-Identifier: Apache-2.0
//! Connecting to a driver (`docs/spec/shared-memory.md §1.6`).
//!
//! Contract: [`Connecting::poll`] is called with the current time until it returns a client or an error. Otherwise it
//! returns the time until the next call; it does not wait itself.

mod driver;
mod file;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{AgentEvent, AgentEventHandler, AgentRunner};
use taran_core::broadcast::Receiver;
use taran_core::clock::{Clock, Now, SystemClock, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::idle::{Backoff, BackoffLimits, IdleStrategy};

pub use driver::DriverView;
pub use waiting::WaitingForDriver;

use self::file::{CncUnavailable, OpenedCnc};
use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::client_core::{ClientCore, DriverConnection, DriverIdentity};
use crate::conductor::{Conductor, ConductorAgent};
use crate::error::{ClientError, ConnectError, Lost};
use crate::trace::event;

/// Heartbeat of a driver that is still starting.
const NO_HEARTBEAT: i64 = 0;
/// Heartbeat of a driver that has shut down in an orderly way.
pub(crate) const SHUT_DOWN: i64 = -1;

/// Delay before the next attempt if there is no `cnc.dat`.
const WAIT_FOR_FILE: Duration = Duration::from_millis(16);
/// Delay before the next attempt if a driver is starting.
const WAIT_FOR_START: Duration = Duration::from_millis(1);
/// Delay before the next attempt if the driver has ended.
const WAIT_FOR_NEW_DRIVER: Duration = Duration::from_millis(100);
/// First sleep of an idle conductor; doubled on each further sleep, up to the maximum.
const MIN_IDLE_SLEEP: Duration = Duration::from_micros(50);

/// Returns the time since a heartbeat.
fn heartbeat_age(heartbeat_ms: i64, now: Now) -> Duration {
    let age_ms = now.epoch_millis.saturating_sub(heartbeat_ms).max(0);
    Duration::from_millis(age_ms.unsigned_abs())
}

/// A connection attempt that does not block; created by [`ClientBuilder::connecting`].
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// use taran::{Clock, Progress, SystemClock};
///
/// let mut attempt = taran::Client::builder().aeron_dir(directory).connecting();
/// let mut clock = SystemClock::new();
/// let client = loop {
///     match attempt.poll(clock.now())? {
///         Progress::Connected(client) => break client,
///         // Other work can be done meanwhile.
///         Progress::Wait(pause) => std::thread::sleep(pause),
///     }
/// };
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connecting {
    builder: ClientBuilder,
    since_ns: Option<i64>,
    /// True after the notice that the client waits.
    notified: bool,
}

/// State of a connection attempt. Exhaustive, because a caller has to act on each state.
#[derive(Debug)]
pub enum Progress {
    /// The client is connected.
    Connected(Client),
    /// No driver is ready yet: call [`Connecting::poll`] again after this time.
    Wait(Duration),
}

/// Result of one check of the driver's directory.
enum Probe {
    Ready(Box<OpenedCnc>),
    /// The driver is not ready. The error is returned when the driver timeout is over.
    NotReady {
        error: ConnectError,
        retry_after: Duration,
    },
}

impl Connecting {
    pub(crate) fn new(builder: ClientBuilder) -> Self {
        Self {
            builder,
            since_ns: None,
            notified: false,
        }
    }

    /// Checks once for the driver. Must not be called again after [`Progress::Connected`] or an error: the handlers
    /// were moved into the client.
    ///
    /// # Errors
    /// Connecting is impossible, or was not possible within the driver timeout; see [`ConnectError`].
    pub fn poll(&mut self, now: Now) -> Result<Progress, ConnectError> {
        self.builder.check()?;
        let since = *self.since_ns.get_or_insert(now.nanos);
        match self.probe(now)? {
            Probe::Ready(found) => self.attach(*found).map(Progress::Connected),
            Probe::NotReady { error, retry_after } => {
                let timeout = saturating_nanos(self.builder.timeout());
                let waited = now.nanos.saturating_sub(since);
                if waited >= timeout {
                    Err(error)
                } else {
                    if waited >= saturating_nanos(waiting::NOTICE_AFTER) {
                        self.notify_waiting();
                    }
                    Ok(Progress::Wait(retry_after))
                }
            }
        }
    }

    /// Calls the waiting handler, once.
    fn notify_waiting(&mut self) {
        if std::mem::replace(&mut self.notified, true) {
            return;
        }
        let (directory, timeout) = (self.builder.directory(), self.builder.timeout());
        event!(
            info,
            "waiting for a media driver",
            aeron_dir = directory.display()
        );
        if let Some(handler) = self.builder.handlers.waiting.take() {
            handler(&WaitingForDriver::new(directory, timeout));
        }
    }

    pub(crate) fn wait(mut self) -> Result<Client, ConnectError> {
        let mut clock = SystemClock::new();
        loop {
            match self.poll(clock.now())? {
                Progress::Connected(client) => return Ok(client),
                Progress::Wait(pause) => {
                    if let Some(invoke) = &mut self.builder.driver_invoker {
                        invoke();
                    }
                    std::thread::sleep(pause);
                }
            }
        }
    }

    fn probe(&self, now: Now) -> Result<Probe, ConnectError> {
        let not_ready = |error, retry_after| Ok(Probe::NotReady { error, retry_after });
        let found = match file::open(&self.builder) {
            Ok(found) => found,
            Err(CncUnavailable { error, retry_after }) => {
                return match retry_after {
                    Some(retry_after) => not_ready(error, retry_after),
                    None => Err(error),
                };
            }
        };
        let (directory, timeout) = (self.builder.directory(), self.builder.timeout());
        let heartbeat = found.producer.consumer_heartbeat_ms();
        let age = heartbeat_age(heartbeat, now);
        match heartbeat {
            NO_HEARTBEAT => not_ready(
                ConnectError::NotReady {
                    path: found.path,
                    waited: timeout,
                },
                WAIT_FOR_START,
            ),
            SHUT_DOWN => not_ready(
                ConnectError::DriverStopped {
                    directory,
                    waited: timeout,
                },
                WAIT_FOR_NEW_DRIVER,
            ),
            _ if age > timeout => not_ready(
                ConnectError::DriverDied {
                    directory,
                    age,
                    timeout,
                },
                WAIT_FOR_NEW_DRIVER,
            ),
            _ if found.has_driver_died() => not_ready(
                ConnectError::DriverProcessEnded {
                    directory,
                    pid: found.cnc.spec().driver_pid,
                    waited: timeout,
                },
                WAIT_FOR_NEW_DRIVER,
            ),
            _ => Ok(Probe::Ready(Box::new(found))),
        }
    }

    fn attach(&mut self, found: OpenedCnc) -> Result<Client, ConnectError> {
        let OpenedCnc {
            cnc,
            producer,
            lock,
            ..
        } = found;
        let damaged = |reason: String| ConnectError::Damaged {
            path: self.builder.directory(),
            reason,
        };
        let liveness = cnc.client_liveness_timeout();
        let keepalive = self.builder.keepalive();
        if liveness <= keepalive {
            return Err(ConnectError::Option(format!(
                "the keepalive interval of {keepalive:?} must be less than the driver's client liveness timeout of \
                 {liveness:?} (aeron.client.liveness.timeout)"
            )));
        }
        let settings = self.builder.settings(liveness);
        if settings.inter_service <= keepalive {
            return Err(ConnectError::Option(format!(
                "the inter-service timeout of {:?} must be more than the keepalive interval of {keepalive:?}",
                settings.inter_service
            )));
        }
        let responses =
            Receiver::open(&cnc.to_clients).map_err(|error| damaged(error.to_string()))?;
        let connection = DriverConnection {
            to_driver: producer,
            counters: CountersReader::new(
                cnc.counters_metadata.clone(),
                cnc.counters_values.clone(),
            ),
            conductor: Conductor::new(responses, lock),
            driver: DriverIdentity {
                pid: cnc.spec().driver_pid,
                start_timestamp_ms: cnc.spec().start_timestamp_ms,
            },
        };
        let handlers = self.builder.take_handlers();
        let core = Arc::new(ClientCore::new(
            settings,
            handlers,
            connection,
            self.builder.take_clock(),
            self.builder.driver_invoker.take(),
        ));
        for text in std::mem::take(&mut self.builder.unknown_variables) {
            core.handlers.report(&ClientError::UnknownOption(text));
        }
        // Dropping the client from here on closes it.
        let client = Client::new(Arc::clone(&core));
        event!(
            info,
            "connected to the media driver",
            client_id = client.client_id(),
            client_name = client.name(),
            aeron_dir = client.aeron_dir().display(),
        );
        if !self.builder.invoked {
            self.start_thread(&core)?;
        }
        Ok(client)
    }

    fn start_thread(&mut self, core: &Arc<ClientCore>) -> Result<(), ConnectError> {
        let idle = self.builder.idle.take();
        let idle = idle.unwrap_or_else(|| self.default_idle());
        let weak_core = Arc::downgrade(core);
        let handler = AgentEventHandler::new(move |event| {
            if let Some(core) = weak_core.upgrade() {
                on_thread_event(&core, event);
            }
        });
        let agent = ConductorAgent::new(Arc::clone(core));
        let runner = AgentRunner::new(agent, SystemClock::new(), idle, handler);
        let running = runner
            .cpu(self.builder.cpu)
            .start()
            .map_err(|error| ConnectError::Thread(error.to_string()))?;
        core.set_thread(running);
        Ok(())
    }
}

impl Connecting {
    fn default_idle(&self) -> Box<dyn IdleStrategy> {
        let max_park = self.builder.max_idle_sleep();
        Box::new(Backoff::new(BackoffLimits {
            spins: 0,
            yields: 0,
            min_park: MIN_IDLE_SLEEP.min(max_park),
            max_park,
        }))
    }
}

fn on_thread_event(core: &ClientCore, event: &AgentEvent) {
    match event {
        AgentEvent::NotPinned { .. } => {
            core.handlers.report(&ClientError::NotPinned {
                reason: event.to_string(),
            });
        }
        AgentEvent::Panicked { .. } | AgentEvent::Ended { .. } => core.lose(Lost::ConductorFailed),
    }
}
