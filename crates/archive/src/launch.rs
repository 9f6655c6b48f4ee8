// SPDX-License-Identifier: Apache-2.0
//! Starting and ending an archive (`docs/spec/archive.md` §3.8).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ClientBuilder, CommandError, ConnectError, DriverView, FileStorage};
use taran_core::agent::{
    Agent, AgentEvent, AgentEventHandler, AgentGroup, AgentInvoker, AgentThread, CompositeAgent,
};
use taran_core::clock::{Clock, SystemClock};
use taran_core::error_log::ErrorHandler;
use taran_core::idle::IdleSpec;
use taran_storage::{Disk, DiskError, OsDisk, ThreadedQueue, ThreadedQueueOptions};
use thiserror::Error;

use crate::assembly::{
    Agents, Assembly, Commands, DriverRequests, Limits, OpenedFiles, TimedAgent, check_id, claim,
    mark_settings, shared,
};
use crate::conductor::{Conductor, ThreadedCatalogStore};
use crate::config::{ArchiveConfig, ArchiveThreadingMode};
use crate::counters::CounterSpec;
use crate::disk_io::DiskIo;
use crate::event_log::{EventLogError, EventWriter, EventWriterSpec};
use crate::files::{CatalogError, ClaimError, MarkFile, RecoveryError, create_directory};
use crate::recorder::{CLOSE_TIMEOUT, Recorder};
use crate::replayer::Replayer;
use crate::security::{AcceptAll, Authenticator, AuthorisationService, authorisation_of};

/// Capacity of the queues between agents.
const QUEUE_CAPACITY: usize = 1024;
/// Time limit for a driver to start.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks for a driver.
const DRIVER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Blocks and buffers in memory beyond those of the configured number of recordings or replays.
const SPARE_BUFFERS: usize = 8;
/// Blocks between image and disk per recording.
const BLOCKS_PER_RECORDING: usize = 4;
/// Longest time between two duty cycles of the client while recordings are recovered.
const RECOVERY_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Reason why an archive did not start.
#[derive(Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A directory cannot be used.
    #[error("cannot use the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The directory is to be deleted at start, which only an archive on the system's disk does.
    #[error(
        "aeron.archive.dir.delete.on.start is set, and an archive on a disk of its caller does not delete its directory {}: \
         unset the option, and delete the directory before the start", path.display()
    )]
    DeletionUnsupported {
        /// The directory.
        path: PathBuf,
    },
    /// The event log cannot be written.
    #[error("{0}")]
    EventLog(String),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The mark file was not claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// There is no driver.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The driver has refused what the archive needs.
    #[error("{what}: {source}")]
    Command {
        /// Attempted command.
        what: String,
        /// Reason.
        source: CommandError,
    },
    /// The driver has another archive with the same id.
    #[error(
        "found an archive with id {archive_id} at this driver (counter {counter_id}): use another aeron.archive.id; if that \
         archive was killed, wait until the driver has timed it out"
    )]
    DuplicateId {
        /// The id.
        archive_id: i64,
        /// The counter of the other archive.
        counter_id: i32,
    },
    /// The catalog cannot be opened.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Recordings cannot be recovered.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// The system has no random numbers.
    #[error("there are no random numbers: {0}")]
    Random(io::Error),
}

taran_core::debug_is_display!(ArchiveError);

/// Reason why a running archive has ended by itself.
type Fate = Arc<Mutex<Option<String>>>;
type Hook = Arc<Mutex<Box<dyn FnMut() + Send>>>;

/// An archive to start.
pub struct ArchiveBuilder {
    config: ArchiveConfig,
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn AuthorisationService>,
    on_failure: Box<dyn FnMut() + Send>,
    errors: Option<ErrorHandler>,
    driver_invoker: Option<Box<dyn FnMut() -> usize + Send>>,
    commit: String,
}

impl ArchiveBuilder {
    /// Sets the commit of the program, for the label of the counter of errors and the first line of the event log. Default:
    /// unknown.
    #[must_use]
    pub fn commit(mut self, commit: impl Into<String>) -> Self {
        self.commit = commit.into();
        self
    }

    /// Replaces the authenticator, which accepts all clients.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authenticator = Box::new(authenticator);
        self
    }

    /// Replaces the authorisation service that the configuration names.
    #[must_use]
    pub fn authorisation(mut self, service: impl AuthorisationService + 'static) -> Self {
        self.authorisation = Box::new(service);
        self
    }

    /// Calls `hook` when the archive ends by itself; [`Archive::failure`] says why.
    #[must_use]
    pub fn on_failure(mut self, hook: impl FnMut() + Send + 'static) -> Self {
        self.on_failure = Box::new(hook);
        self
    }

    /// Records errors with this handler, that of a driver in the same process, in place of the mark file's error log and a
    /// counter of the archive's own.
    #[must_use]
    pub fn error_handler(mut self, errors: ErrorHandler) -> Self {
        self.errors = Some(errors);
        self
    }

    /// Calls `invoke` while the start waits for the driver: for a driver that the caller invokes. `invoke` returns the amount
    /// of work done. The archive then runs in threading mode INVOKER.
    #[must_use]
    pub fn driver_invoker(mut self, invoke: impl FnMut() -> usize + Send + 'static) -> Self {
        self.driver_invoker = Some(Box::new(invoke));
        self.config.threading_mode = ArchiveThreadingMode::Invoker;
        self
    }

    /// Starts the archive. Waits for the driver, and for the recovery of recordings that were active when the archive before
    /// ended.
    ///
    /// # Errors
    /// See [`ArchiveError`]; nothing is left behind.
    pub fn launch(self) -> Result<Archive, ArchiveError> {
        launch(self)
    }
}

/// A running archive. Dropping it ends it as [`close`](Self::close) does.
pub struct Archive {
    archive_id: i64,
    fate: Fate,
    hook: Hook,
    runner: Runner,
    /// Dropped after the agents.
    _events: EventWriter,
}

enum Runner {
    Threads(AgentGroup),
    Invoker(Box<AgentInvoker<CompositeAgent, SystemClock>>),
}

impl Archive {
    /// Returns a builder with the defaults.
    #[must_use]
    pub fn builder(config: ArchiveConfig) -> ArchiveBuilder {
        ArchiveBuilder {
            authorisation: authorisation_of(config.deny_all),
            config,
            authenticator: Box::new(AcceptAll),
            on_failure: Box::new(|| ()),
            errors: None,
            driver_invoker: None,
            commit: "unknown".to_owned(),
        }
    }

    /// Returns the id of the archive.
    #[must_use]
    pub fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Returns why the archive has ended by itself; `None` while it runs.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.fate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Runs one duty cycle of all agents on the calling thread, in threading mode INVOKER; returns the amount of work.
    pub fn invoke(&mut self) -> usize {
        match &mut self.runner {
            Runner::Threads(_) => 0,
            Runner::Invoker(invoker) => invoker.invoke().unwrap_or_else(|reason| {
                end(&self.fate, &self.hook, &reason.to_string());
                0
            }),
        }
    }

    /// Ends the archive: recordings get their stop positions, sessions and the catalog are closed.
    pub fn close(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        match &mut self.runner {
            Runner::Threads(agents) => agents.close(),
            Runner::Invoker(invoker) => invoker.close(),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn launch(builder: ArchiveBuilder) -> Result<Archive, ArchiveError> {
    let ArchiveBuilder {
        mut config,
        authenticator,
        authorisation,
        on_failure,
        errors: own_errors,
        mut driver_invoker,
        commit,
    } = builder;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let mut clock = SystemClock::new();
    create_directories(&mut config)?;
    let event_log = EventWriter::start(&EventWriterSpec {
        enabled: config.events,
        path: config.event_log_file.as_deref(),
        commit: &commit,
    })
    .map_err(|error: EventLogError| ArchiveError::EventLog(error.to_string()))?;
    if let Some(invoke) = &mut driver_invoker {
        // The driver shows that it is active.
        invoke();
    }
    let driver = find_driver(&config)?;
    let archive_id = config
        .archive_id
        .unwrap_or_else(|| driver.next_correlation_id());
    let settings = mark_settings(
        &config,
        archive_id,
        i64::from(std::process::id()),
        driver.aeron_dir().display().to_string(),
        driver.file_page_size(),
    );
    let lock = MarkFile::lock(&*disk, &config.dir)?;
    let now_ms = clock.now().epoch_millis;
    if config.delete_dir_on_start {
        delete_files(&config, now_ms)?;
        create_directories(&mut config)?;
    }
    let (mark, found) = claim(lock, &disk, &FileStorage, &config, &settings, now_ms)?;
    let errors = Arc::new(OnceLock::new());
    let client = connect(&config, archive_id, &errors, driver_invoker)?;
    check_id(&client, archive_id)?;
    let (error_handler, error_counter) = if let Some(handler) = own_errors {
        (handler, None)
    } else {
        let spec = CounterSpec::errors(archive_id, env!("CARGO_PKG_VERSION"), &commit);
        let mut added = Commands::new();
        added.add_counter(&client, &spec)?;
        added.wait()?;
        let counter = added.next();
        let handler = ErrorHandler::or_stderr(mark.error_log(), shared(&client, &counter));
        (handler, Some(counter))
    };
    // Set once, here.
    let _ = errors.set(error_handler.clone());

    let now_ms = clock.now().epoch_millis;
    if let Some(unsaved) = mark.unsaved_errors() {
        error_handler.on_error(now_ms, 0, &unsaved.to_string());
    }
    let files = beside(
        || OpenedFiles::open(found, &disk, &config, now_ms),
        || {
            client.run_invoked();
        },
    )
    .map_err(ArchiveError::Thread)??;
    for text in files.findings {
        error_handler.on_error(now_ms, 0, &text);
    }
    let store = ThreadedCatalogStore::start(files.file).map_err(ArchiveError::Thread)?;

    let mode = config.threading_mode;
    let is_dedicated = mode == ArchiveThreadingMode::Dedicated;
    let mut timed = vec![(TimedAgent::Conductor, config.conductor_cycle_threshold_ns)];
    if is_dedicated {
        timed.push((TimedAgent::Recorder, config.recorder_cycle_threshold_ns));
        timed.push((TimedAgent::Replayer, config.replayer_cycle_threshold_ns));
    }
    let mut requests = DriverRequests::send(&client, &config, archive_id, timed)?;
    requests.wait()?;
    let fate = Fate::default();
    let hook: Hook = Arc::new(Mutex::new(on_failure));
    let idle = [config.idle, config.recorder_idle, config.replayer_idle];
    let assembly = Assembly {
        limits: Limits {
            queue_capacity: QUEUE_CAPACITY,
            max_blocks: config.max_recordings * BLOCKS_PER_RECORDING + SPARE_BUFFERS,
            max_buffers: config.max_replays + SPARE_BUFFERS,
            replayed_per_cycle: if is_dedicated {
                usize::MAX
            } else {
                config.io_max_length
            },
        },
        config,
        archive_id,
        client,
        requests,
        catalog: files.catalog,
        store: Box::new(store),
        mark,
        errors: error_handler,
        error_counter,
        events: event_log.log(),
        authenticator,
        authorisation,
        random: Box::new(random_numbers()?),
        close_clock: Box::new(SystemClock::new()),
        on_fatal: {
            let (fate, hook) = (Arc::clone(&fate), Arc::clone(&hook));
            Box::new(move |text| end(&fate, &hook, text))
        },
    };
    let agents = assembly.assemble(clock.now().epoch_millis, |name, workers| {
        disk_io(&disk, name, workers)
    })?;
    let runner = run(mode, idle, agents, &fate, &hook)?;
    Ok(Archive {
        archive_id,
        fate,
        hook,
        runner,
        _events: event_log,
    })
}

fn run(
    mode: ArchiveThreadingMode,
    [idle, recorder_idle, replayer_idle]: [IdleSpec; 3],
    agents: Agents,
    fate: &Fate,
    hook: &Hook,
) -> Result<Runner, ArchiveError> {
    let mut threads = AgentGroup::new(AgentEventHandler::new({
        let (fate, hook) = (Arc::clone(fate), Arc::clone(hook));
        move |event: &AgentEvent| {
            if event.is_failure() {
                end(&fate, &hook, &event.to_string());
            }
        }
    }));
    let thread = |idle: IdleSpec, name: &str| AgentThread::new(idle.build()).name(name);
    let Agents {
        conductor,
        recorder,
        replayer,
    } = agents;
    // Composite agents close in reverse order, so that the conductor is the last one.
    let composite = |conductor: Conductor, replayer: Replayer, recorder: Recorder| {
        CompositeAgent::new(vec![
            Box::new(conductor) as Box<dyn Agent>,
            Box::new(replayer),
            Box::new(recorder),
        ])
    };
    Ok(match mode {
        ArchiveThreadingMode::Dedicated => {
            // Closed in reverse order, so that the conductor is the last one.
            let conductor_thread = thread(idle, "archive-conductor");
            let replayer_thread = thread(replayer_idle, "archive-replayer");
            let recorder_thread = thread(recorder_idle, "archive-recorder");
            threads
                .start(conductor, conductor_thread)
                .and_then(|()| threads.start(replayer, replayer_thread))
                .and_then(|()| threads.start(recorder, recorder_thread))
                .map_err(ArchiveError::Thread)?;
            Runner::Threads(threads)
        }
        ArchiveThreadingMode::Shared => {
            let agents = composite(conductor, replayer, recorder);
            threads
                .start(agents, thread(idle, "archive"))
                .map_err(ArchiveError::Thread)?;
            Runner::Threads(threads)
        }
        ArchiveThreadingMode::Invoker => {
            let agents = composite(conductor, replayer, recorder);
            Runner::Invoker(Box::new(AgentInvoker::new(agents, SystemClock::new())))
        }
    })
}

/// Runs `work` on a thread of its own, and `poll` on this one until it is done: the driver gives up a client that does not
/// run for some seconds.
fn beside<T: Send>(work: impl FnOnce() -> T + Send, mut poll: impl FnMut()) -> io::Result<T> {
    let waiting = thread::current();
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("archive-recovery".to_owned());
        let worker = worker.spawn_scoped(scope, move || {
            let done = work();
            waiting.unpark();
            done
        })?;
        while !worker.is_finished() {
            poll();
            thread::park_timeout(RECOVERY_POLL_INTERVAL);
        }
        Ok(worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Records why the archive ends, the first time.
fn end(fate: &Fate, hook: &Hook, text: &str) {
    let mut first = fate.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none() {
        *first = Some(text.to_owned());
        drop(first);
        let mut hook = hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook();
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError + use<> {
    let path = path.to_path_buf();
    move |source| ArchiveError::Directory { path, source }
}

fn create_directories(config: &mut ArchiveConfig) -> Result<(), ArchiveError> {
    for directory in [&mut config.dir, &mut config.mark_file_dir] {
        create_directory(&OsDisk, directory)?;
        *directory = directory.canonicalize().map_err(failed(directory))?;
    }
    Ok(())
}

/// Returns true if there is a process of this id, of any user.
fn is_process(pid: i64) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Deletes all that is in the archive's directory, whose lock the caller holds, unless an official archive, which takes no lock,
/// is active there.
fn delete_files(config: &ArchiveConfig, now_ms: i64) -> Result<(), ArchiveError> {
    let (dir, mark_dir) = (&config.dir, &config.mark_file_dir);
    match MarkFile::check_inactive(&OsDisk, &FileStorage, dir, mark_dir, now_ms) {
        // A directory that no archive can use otherwise: to delete it is what the option is for.
        Ok(()) | Err(ClaimError::Contents { .. } | ClaimError::Version { .. }) => {}
        Err(ClaimError::ClaimedForever { pid, .. }) if !is_process(pid) => {}
        Err(error) => return Err(error.into()),
    }
    for entry in std::fs::read_dir(dir).map_err(failed(dir))? {
        let entry = entry.map_err(failed(dir))?;
        let path = entry.path();
        let is_directory = entry.file_type().map_err(failed(&path))?.is_dir();
        let removed = if is_directory {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.map_err(failed(&path))?;
    }
    Ok(())
}

fn client_builder(config: &ArchiveConfig) -> ClientBuilder {
    match &config.aeron_dir {
        Some(directory) => Client::builder().aeron_dir(directory),
        None => Client::builder(),
    }
}

/// Waits for a driver.
fn find_driver(config: &ArchiveConfig) -> Result<DriverView, ArchiveError> {
    let deadline = Instant::now() + DRIVER_TIMEOUT;
    loop {
        match client_builder(config).inspect_driver() {
            Ok(driver) if driver.is_active() => return Ok(driver),
            Ok(driver) if Instant::now() >= deadline => return Ok(driver),
            Err(error) if Instant::now() >= deadline => return Err(error.into()),
            _ => std::thread::sleep(DRIVER_POLL_INTERVAL),
        }
    }
}

fn connect(
    config: &ArchiveConfig,
    archive_id: i64,
    errors: &Arc<OnceLock<ErrorHandler>>,
    driver_invoker: Option<Box<dyn FnMut() -> usize + Send>>,
) -> Result<Client, ArchiveError> {
    let errors = Arc::clone(errors);
    let mut clock = SystemClock::new();
    let mut builder = client_builder(config);
    if let Some(invoke) = driver_invoker {
        builder = builder.driver_invoker(invoke);
    }
    let client = builder
        .client_name(format!("archive archiveId={archive_id}"))
        .invoker(true)
        .on_error(move |error| {
            if let Some(errors) = errors.get() {
                errors.on_error(clock.now().epoch_millis, 0, &error.to_string());
            }
        })
        .connect()?;
    Ok(client)
}

fn disk_io(disk: &Arc<dyn Disk>, name: &str, workers: usize) -> Result<DiskIo, ArchiveError> {
    let mut options = ThreadedQueueOptions::default();
    options.workers = workers;
    options.name = name.to_owned();
    options.close_timeout = CLOSE_TIMEOUT;
    let queue = ThreadedQueue::start(disk, &options).map_err(ArchiveError::Thread)?;
    Ok(DiskIo::new(Box::new(queue)))
}

/// Returns unpredictable numbers of the operating system.
fn random_numbers() -> Result<impl FnMut() -> Option<i64> + Send, ArchiveError> {
    let mut source = File::open("/dev/urandom").map_err(ArchiveError::Random)?;
    Ok(move || {
        let mut bytes = [0; 8];
        source.read_exact(&mut bytes).ok()?;
        Some(i64::from_le_bytes(bytes))
    })
}
