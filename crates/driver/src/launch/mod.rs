// SPDX-License-Identifier: Apache-2.0
//! Start and shutdown of a driver.

mod access;
mod added_agents;
mod cnc_file;
mod directory;
mod files;
#[cfg(feature = "secure")]
mod handshakes;
mod invoked;
mod invoker_agent;
#[cfg(feature = "secure")]
mod key_watch;
mod names;
mod network_agents;
mod page_prefaulter;
mod parts;
mod resolver;
mod saved_errors;
mod security;
mod signal;
mod startup_lock;
mod threads;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::agent::Agent;
use taran_core::clock::{Clock, SystemClock, SystemWallClock};
use taran_core::counters::CountersReader;
use taran_core::debugger;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{FileStorage, Storage};
use taran_net::SocketNetwork;
use taran_protocol::option::OptionSet;

pub use added_agents::{AddAgentError, AgentId, AgentPlacement};
pub use parts::{DriverParts, Environment};
pub use signal::Termination;

use added_agents::AddedAgents;
use directory::{DirectoryOwner, DriverIdentity};
use files::FileThread;
use resolver::SystemResolver;
use signal::ShutdownSignal;
use startup_lock::StartupLock;
use threads::{Running, Supervisor, ThreadingPlan};

use crate::context::{DirectorySettings, DriverContext};
use crate::diagnostics::DriverWarning;
use crate::error::DriverError;
use crate::event_log::{EventClock, EventWriter, EventWriterSpec};

/// A running media driver. Closed on drop.
///
/// ```no_run
/// use taran_driver::{DriverContext, MediaDriver};
///
/// let driver = MediaDriver::launch(DriverContext::from_environment()?)?;
/// println!("clients find the driver in {}", driver.aeron_dir().display());
/// driver.close()?;
/// # Ok::<(), taran_driver::DriverError>(())
/// ```
pub struct MediaDriver {
    running: Option<Running>,
    added: AddedAgents,
    supervisor: Supervisor,
    directory: PathBuf,
    storage: Arc<dyn Storage>,
    identity: DriverIdentity,
    delete_on_shutdown: bool,
    counters: CountersReader,
    events: Option<EventWriter>,
    #[cfg(feature = "secure")]
    keys: Option<key_watch::KeyWatch>,
    /// Outlives the conductor, which passes jobs to it.
    #[cfg(feature = "secure")]
    _handshakes: Option<handshakes::HandshakeThread>,
}

impl MediaDriver {
    /// Starts a driver in the threading mode of the context. In `INVOKER` mode [`Self::invoke`] must be called
    /// frequently.
    ///
    /// # Errors
    /// Fails for invalid options, if a live driver owns the directory, and if space or permission for its files is
    /// missing.
    pub fn launch(mut context: DriverContext) -> Result<Self, DriverError> {
        if debugger::is_attached() {
            context.use_debug_timeout();
        }
        let settings = context.build_settings()?;
        let options = context.options().clone();
        let access = access::Access::of(&options)?;
        let storage: Arc<dyn Storage> = match (context.storage.take(), access) {
            (Some(storage), _) => storage,
            (None, Some(access)) => Arc::new(access::AccessStorage::new(access)),
            (None, None) => Arc::new(FileStorage),
        };
        let diagnostics = context.diagnostics.clone();
        let (agent_events, start_hook) = (context.agent_events.take(), context.start_hook.take());
        let signal = Arc::new(ShutdownSignal::default());
        let mut hook = context.hook.take();
        let requested = Arc::clone(&signal);
        context.hook = Some(Box::new(move || {
            requested.request();
            if let Some(hook) = &mut hook {
                hook();
            }
        }));
        if options.print_configuration() {
            diagnostics.configuration(&DriverParts::describe(&options));
        }
        let events = event_writer(&options)?;
        if let Some(events) = &events {
            context.events = events.log();
        }
        let startup_lock = StartupLock::acquire(&storage, &settings.directory, &diagnostics)?;
        let mut clock = SystemClock::new();
        if !settings.directory.delete_on_start {
            await_starting_driver(storage.as_ref(), &settings.directory, &mut clock)?;
        }
        context.files = Some(Box::new(FileThread::start(Arc::clone(&storage))?));
        // In INVOKER mode the caller's thread computes handshakes, too.
        #[cfg(feature = "secure")]
        let handshakes =
            if options.secure_mode_name() == "off" || options.threading_mode_name() == "INVOKER" {
                None
            } else {
                let (thread, queues) = handshakes::HandshakeThread::start()?;
                context.handshakes = Some(queues);
                Some(thread)
            };
        let environment = Environment {
            storage: Arc::clone(&storage),
            network: context
                .network
                .take()
                .unwrap_or_else(|| Box::new(SocketNetwork::new())),
            resolver: context
                .resolver
                .take()
                .unwrap_or_else(|| Box::new(SystemResolver::new())),
            seed: fastrand::u64(..),
            now: clock.now(),
            wall_clock: Arc::new(SystemWallClock),
            pid: i64::from(std::process::id()),
        };
        let identity = DriverIdentity {
            pid: environment.pid,
            start_ms: environment.now.epoch_millis,
        };
        #[cfg_attr(not(feature = "secure"), expect(unused_mut))]
        let mut parts = DriverParts::build(context, environment)?;
        #[cfg(feature = "secure")]
        let keys = match parts.security.take() {
            Some((control, Some(directory))) => {
                Some(key_watch::KeyWatch::start(directory, control)?)
            }
            _ => None,
        };
        startup_lock.keep_directory();
        if options.secure_mode_name() != "off"
            && let Some(mode) = access::open_to_all(&settings.directory.path)
        {
            diagnostics.warn(&DriverWarning::OpenDirectory {
                directory: settings.directory.path.clone(),
                mode,
            });
        }
        for warning in &parts.warnings {
            diagnostics.warn(warning);
        }
        let counters = parts.counters.clone();
        let supervisor = Supervisor {
            errors: parts.errors.clone(),
            signal,
            agent_events,
            start_hook,
        };
        let plan = ThreadingPlan {
            options: &options,
            idle_status: parts.idle_status.clone(),
            supervisor: &supervisor,
        };
        let (running, host) = threads::start(parts, &plan)?;
        Ok(Self {
            running: Some(running),
            added: AddedAgents::new(host),
            supervisor,
            directory: settings.directory.path,
            storage,
            identity,
            delete_on_shutdown: settings.directory.delete_on_shutdown,
            counters,
            events,
            #[cfg(feature = "secure")]
            keys,
            #[cfg(feature = "secure")]
            _handshakes: handshakes,
        })
    }

    /// Starts a driver for this process and its children. Without a configured directory it uses a new one, which is
    /// deleted when the driver closes.
    ///
    /// # Errors
    /// As [`Self::launch`].
    pub fn launch_embedded(mut context: DriverContext) -> Result<Self, DriverError> {
        if context.options().dir().is_none() {
            let base = taran_core::directory::default_directory();
            let name = format!("{}-{:016x}", base.display(), fastrand::u64(..));
            context = context
                .aeron_dir(name)
                .delete_dir_on_start(true)
                .delete_dir_on_shutdown(true);
        }
        Self::launch(context)
    }

    /// Returns the directory in which clients find the driver.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.directory
    }

    /// Returns a reader of all counters.
    #[must_use]
    pub fn counters(&self) -> &CountersReader {
        &self.counters
    }

    /// Returns the handler of the driver's error log, `taran errors` and counter `Errors`: to read the errors, and to record
    /// those of the embedding program.
    #[must_use]
    pub fn errors(&self) -> &ErrorHandler {
        &self.supervisor.errors
    }

    /// Runs an agent of the embedding program with those of the driver. It starts on the thread of its placement, before its
    /// first duty cycle. Its panic or end closes only this agent; a panic or failure is also recorded in the error log and a
    /// reason for [`termination`](Self::termination), and all are passed to the handler set with
    /// [`DriverContext::on_agent_event`].
    ///
    /// When the driver closes, it first closes the added agents, each on its own thread, one after the other, the last one
    /// first. The agents of the driver run until then, in `INVOKER` mode by the call that closes, so that the close of an
    /// agent on a thread of its own may need the driver. An agent on the driver's thread closes between two duty cycles of
    /// the driver, so its `on_close` must not wait for the driver.
    ///
    /// ```
    /// use taran_driver::{Agent, AgentEnd, AgentPlacement, DriverContext, MediaDriver, Now};
    ///
    /// /// Counts its duty cycles.
    /// struct CycleCounter(u64);
    ///
    /// impl Agent for CycleCounter {
    ///     fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
    ///         self.0 += 1;
    ///         Ok(0)
    ///     }
    ///
    ///     fn role_name(&self) -> &str {
    ///         "cycle-counter"
    ///     }
    ///
    ///     fn on_close(&mut self) {
    ///         println!("{} duty cycles", self.0);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = DriverContext::new().on_agent_event(|event| println!("{event}"));
    /// let mut driver = MediaDriver::launch_embedded(context)?;
    /// driver.add_agent(CycleCounter(0), AgentPlacement::DriverThread)?;
    /// driver.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The driver's thread has ended, or a thread cannot be started. The agent is dropped.
    pub fn add_agent(
        &mut self,
        agent: impl Agent + 'static,
        placement: AgentPlacement,
    ) -> Result<AgentId, AddAgentError> {
        self.added.add(agent, placement, &self.supervisor)
    }

    /// Returns false once an added agent has ended or was closed.
    #[must_use]
    pub fn is_agent_running(&self, id: AgentId) -> bool {
        self.added.is_running(id)
    }

    /// Closes an added agent on its own thread, and returns when it is dropped. Does nothing if it is closed.
    pub fn close_agent(&mut self, id: AgentId) {
        if let Some(running) = &mut self.running {
            self.added.close(id, running);
        }
    }

    /// Runs one duty cycle of all agents in `INVOKER` mode; does nothing in other modes. Returns the amount of work. The
    /// first call starts the agents.
    ///
    /// A panic of an agent does not reach the caller. As in the other modes it is recorded in the error log and passed to the
    /// handler set with [`DriverContext::on_agent_event`]. The panic of an agent of the driver closes the driver's agents and
    /// those on its thread, and [`termination`](Self::termination) returns it: a loop that invokes the driver should check
    /// that.
    pub fn invoke(&mut self) -> usize {
        match &mut self.running {
            Some(Running::Invoker(driver)) => driver.invoke(),
            Some(Running::Threads(_)) | None => 0,
        }
    }

    /// Sleeps until a datagram arrives or a waker of this thread is used, for `longest` at most; for users that invoke the
    /// driver and have nothing else to do. Returns at once if the last cycle skipped the conductor (possible after a cycle
    /// without work).
    pub fn park(&mut self, longest: Duration) {
        match &mut self.running {
            Some(Running::Invoker(driver)) => driver.park(longest),
            Some(Running::Threads(_)) | None => thread::sleep(longest),
        }
    }

    /// Reads the files of `taran.secure.keys.dir` again. They are also read within a second of a change.
    #[cfg(feature = "secure")]
    pub fn reload_keys(&self) {
        if let Some(keys) = &self.keys {
            keys.reload();
        }
    }

    /// Returns why the driver should be closed, if it should: a permitted request of a client, or the failure of an
    /// agent.
    #[must_use]
    pub fn termination(&self) -> Option<Termination> {
        self.supervisor.signal.get()
    }

    /// Waits for a reason to close the driver, for `timeout` at most.
    #[must_use]
    pub fn wait_for_termination(&self, timeout: Duration) -> Option<Termination> {
        self.supervisor.signal.wait(timeout)
    }

    /// Stops all agents, notifies clients, and deletes the directory if so configured. No thread of the driver is
    /// running when it returns.
    ///
    /// # Errors
    /// Fails if the directory cannot be deleted.
    pub fn close(mut self) -> Result<(), DriverError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), DriverError> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        if let Running::Invoker(driver) = &mut running {
            // An agent that never started is not closed, and clients would not see the driver's end.
            driver.start();
        }
        self.added.close_all(&mut running);
        match running {
            Running::Threads(mut threads) => threads.close(),
            Running::Invoker(mut driver) => driver.close(),
        }
        #[cfg(feature = "secure")]
        {
            self.keys = None;
        }
        // All agents have stopped; closing the writer flushes the log.
        self.events = None;
        if self.delete_on_shutdown {
            directory::remove(self.storage.as_ref(), &self.directory, self.identity)?;
        }
        Ok(())
    }
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        // There is no caller to report the error to.
        let _ = self.shut_down();
    }
}

impl fmt::Debug for MediaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaDriver")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Starts the event log writer if any event is enabled.
fn event_writer(options: &OptionSet) -> Result<Option<EventWriter>, DriverError> {
    let enabled = options.events();
    if enabled.is_empty() {
        return Ok(None);
    }
    EventWriter::start(EventWriterSpec {
        enabled,
        path: options.event_log_filename().map(PathBuf::from),
        capacity: options.event_buffer_length(),
        clock: EventClock::named(options.event_log_clock()),
    })
    .map(Some)
}

/// Waits while `cnc.dat` is incomplete, for the driver timeout at most: it may belong to a driver that is just starting
/// (docs/spec/shared-memory.md §1.5).
fn await_starting_driver(
    storage: &dyn Storage,
    settings: &DirectorySettings,
    clock: &mut SystemClock,
) -> Result<(), DriverError> {
    let timeout = Duration::from_millis(settings.driver_timeout_ms.unsigned_abs());
    let start = Instant::now();
    while let DirectoryOwner::Unfinished =
        directory::find_owner(storage, settings, clock.now().epoch_millis)?
    {
        if start.elapsed() > timeout {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
