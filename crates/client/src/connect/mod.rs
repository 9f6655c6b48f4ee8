//! Finding a driver (`docs/spec/shared-memory.md §1.6`).
//!
//! Contract: [`Connecting::poll`] is called with the present time until it gives a client or an error; in between it
//! says how long to wait. It does no waiting itself.

mod driver;
mod file;

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{AgentFailure, AgentRunner};
use taran_core::broadcast::Receiver;
use taran_core::clock::{Clock, Now, SystemClock, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::idle::{Backoff, BackoffLimits, IdleStrategy};
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::Cnc;

pub use driver::DriverView;

use self::file::{Found, Missing};
use crate::client::Client;
use crate::conductor::{Conductor, ConductorAgent};
use crate::context::Context;
use crate::error::{ClientError, ConnectError, Lost};
use crate::link::{Attached, Link};

/// Heartbeat of a driver that has not begun yet.
const NO_HEARTBEAT: i64 = 0;
/// Heartbeat of a driver that has shut down in an orderly way.
const SHUT_DOWN: i64 = -1;

const WAIT_FOR_FILE: Duration = Duration::from_millis(16);
const WAIT_FOR_START: Duration = Duration::from_millis(1);
const WAIT_FOR_NEW_DRIVER: Duration = Duration::from_millis(100);
/// First sleep of an idle conductor; each one after it is twice as long, up to the longest.
const SHORTEST_IDLE_SLEEP: Duration = Duration::from_micros(50);

/// Time since a heartbeat.
fn heartbeat_age(heartbeat_ms: i64, now: Now) -> Duration {
    let age_ms = now.epoch_millis.saturating_sub(heartbeat_ms).max(0);
    Duration::from_millis(age_ms.unsigned_abs())
}

/// A connection in the making; from [`Context::connecting`].
#[derive(Debug)]
pub struct Connecting {
    context: Context,
    since_ns: Option<i64>,
}

/// How far connecting has come.
#[derive(Debug)]
pub enum Progress {
    /// Connected.
    Connected(Client),
    /// There is no driver yet: ask again after this time.
    Wait(Duration),
}

/// What one look at the directory has found.
enum Look {
    Ready(Cnc, Producer),
    /// Not yet, and why; it becomes the error when the time is over.
    NotYet {
        why: ConnectError,
        again_in: Duration,
    },
}

impl Connecting {
    pub(crate) fn new(context: Context) -> Self {
        Self {
            context,
            since_ns: None,
        }
    }

    /// Looks for the driver once. After [`Progress::Connected`] or an error it must not be called again: the handlers
    /// are gone.
    ///
    /// # Errors
    /// No connection is possible, or none was within the driver timeout; see [`ConnectError`].
    pub fn poll(&mut self, now: Now) -> Result<Progress, ConnectError> {
        self.context.check()?;
        let since = *self.since_ns.get_or_insert(now.nanos);
        match self.look(now)? {
            Look::Ready(cnc, producer) => self.attach(&cnc, producer).map(Progress::Connected),
            Look::NotYet { why, again_in } => {
                let timeout = saturating_nanos(self.context.timeout());
                if now.nanos.saturating_sub(since) >= timeout {
                    Err(why)
                } else {
                    Ok(Progress::Wait(again_in))
                }
            }
        }
    }

    pub(crate) fn wait(mut self) -> Result<Client, ConnectError> {
        let mut clock = SystemClock::new();
        loop {
            match self.poll(clock.now())? {
                Progress::Connected(client) => return Ok(client),
                Progress::Wait(pause) => {
                    if let Some(invoke) = &mut self.context.driver_invoker {
                        invoke();
                    }
                    std::thread::sleep(pause);
                }
            }
        }
    }

    fn look(&self, now: Now) -> Result<Look, ConnectError> {
        let not_yet = |why, again_in| Ok(Look::NotYet { why, again_in });
        let found = match file::find(&self.context) {
            Ok(found) => found,
            Err(Missing { why, again_in }) => {
                return match again_in {
                    Some(again_in) => not_yet(why, again_in),
                    None => Err(why),
                };
            }
        };
        let Found {
            path,
            cnc,
            producer,
        } = found;
        let (directory, timeout) = (self.context.directory(), self.context.timeout());
        let heartbeat = producer.consumer_heartbeat_ms();
        let age = heartbeat_age(heartbeat, now);
        match heartbeat {
            NO_HEARTBEAT => not_yet(
                ConnectError::NotReady {
                    path,
                    waited: timeout,
                },
                WAIT_FOR_START,
            ),
            SHUT_DOWN => not_yet(
                ConnectError::DriverStopped {
                    directory,
                    waited: timeout,
                },
                WAIT_FOR_NEW_DRIVER,
            ),
            _ if age > timeout => not_yet(
                ConnectError::DriverDied {
                    directory,
                    age,
                    timeout,
                },
                WAIT_FOR_NEW_DRIVER,
            ),
            _ => Ok(Look::Ready(cnc, producer)),
        }
    }

    fn attach(&mut self, cnc: &Cnc, producer: Producer) -> Result<Client, ConnectError> {
        let damaged = |reason: String| ConnectError::Damaged {
            path: self.context.directory(),
            reason,
        };
        let liveness = cnc.client_liveness_timeout();
        let keepalive = self.context.keepalive();
        if liveness <= keepalive {
            return Err(ConnectError::Option(format!(
                "the keepalive interval of {keepalive:?} must be less than the driver's client liveness timeout of \
                 {liveness:?} (aeron.client.liveness.timeout)"
            )));
        }
        let settings = self.context.settings(liveness);
        if settings.inter_service <= keepalive {
            return Err(ConnectError::Option(format!(
                "the inter-service timeout of {:?} must be more than the keepalive interval of {keepalive:?}",
                settings.inter_service
            )));
        }
        let responses =
            Receiver::open(&cnc.to_clients).map_err(|error| damaged(error.to_string()))?;
        let attached = Attached {
            to_driver: producer,
            counters: CountersReader::new(
                cnc.counters_metadata.clone(),
                cnc.counters_values.clone(),
            ),
            conductor: Conductor::new(responses),
        };
        let handlers = self.context.take_handlers();
        let link = Arc::new(Link::new(
            settings,
            handlers,
            attached,
            self.context.take_clock(),
            self.context.driver_invoker.take(),
        ));
        for text in std::mem::take(&mut self.context.suspicious) {
            link.handlers.report(&ClientError::UnknownOption(text));
        }
        // From here on a client that is dropped closes the link.
        let client = Client::new(Arc::clone(&link));
        if !self.context.invoked {
            self.start_thread(&link)?;
        }
        Ok(client)
    }

    fn start_thread(&mut self, link: &Arc<Link>) -> Result<(), ConnectError> {
        let idle = self.context.idle.take();
        let idle = idle.unwrap_or_else(|| self.default_idle());
        let of_failure = Arc::downgrade(link);
        let runner = AgentRunner::new(
            ConductorAgent::new(Arc::clone(link)),
            SystemClock::new(),
            idle,
            move |failure| {
                if let Some(link) = of_failure.upgrade() {
                    thread_failed(&link, &failure);
                }
            },
        );
        let running = runner
            .cpu(self.context.cpu)
            .start()
            .map_err(|error| ConnectError::Thread(error.to_string()))?;
        link.set_thread(running);
        Ok(())
    }
}

impl Connecting {
    fn default_idle(&self) -> Box<dyn IdleStrategy> {
        let max_park = self.context.longest_idle_sleep();
        Box::new(Backoff::new(BackoffLimits {
            spins: 0,
            yields: 0,
            min_park: SHORTEST_IDLE_SLEEP.min(max_park),
            max_park,
        }))
    }
}

fn thread_failed(link: &Link, failure: &AgentFailure) {
    match failure {
        AgentFailure::NotPinned { .. } => {
            link.handlers.report(&ClientError::NotPinned {
                reason: failure.to_string(),
            });
        }
        AgentFailure::Panicked { .. } => link.lose(Lost::ConductorFailed),
    }
}
