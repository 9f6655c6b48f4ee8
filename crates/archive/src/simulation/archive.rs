//! The process of an archive: its agents over a client, on the disk of its host.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use taran::{
    Client, ClientBuilder, Connecting, Counter, ImageHandlers, ImageView, Pending, Progress,
    Subscription,
};
use taran_core::agent::Agent;
use taran_core::clock::{Clock, Now};
use taran_core::error_log::ErrorHandler;
use taran_core::queue::spsc;
use taran_protocol::option::{OptionSet, Source};
use taran_sim::disk::ProcessDisk;
use taran_sim::{AfterKill, CycleContext, HostEnv, Process, Violation};
use taran_storage::{Disk, InlineQueue};

use super::hooked_disk::{Defect, HookedDisk};
use super::journal::Journal;
use super::store::{SteppedStore, StoreState};
use super::verify::RecoveredFiles;
use crate::conductor::{Conductor, ConductorCounters, ConductorParts, ImageEvent};
use crate::config::ArchiveConfig;
use crate::counters::{CounterSpec, type_id};
use crate::disk_io::DiskIo;
use crate::disk_io::testing::EndingQueue;
use crate::event_log::EventLog;
use crate::files::{
    CATALOG_FILE, CatalogError, CatalogFile, CatalogOptions, Checksum, MarkFile, MarkSettings,
    SyncLevel, create_directory, recover,
};
use crate::mark::KeptMarkFile;
use crate::recorder::{
    Recorder, RecorderCounters, RecorderOptions, RecordingEvents, WriterOptions,
};
use crate::replayer::{Replayer, ReplayerCounters, ReplayerOptions};
use crate::security::{AcceptAll, AllowAll};

/// Directory of the archive on the disk of its host.
pub(super) const DIRECTORY: &str = "/archive";
/// Port of the control channel.
pub(super) const CONTROL_PORT: u16 = 8010;
/// Capacity of the queues between agents.
const QUEUE_CAPACITY: usize = 64;
/// Time between attempts to connect to the driver.
const CONNECT_RETRY_NS: i64 = 50_000_000;

/// Numbers of the agents.
const CONDUCTOR: usize = 0;
const RECORDER: usize = 1;
const REPLAYER: usize = 2;
const CATALOG: usize = 3;

/// Counters with one value per archive, in the order in which they are added.
const SINGLE: [i32; 14] = [
    type_id::RECORDER_MAX_WRITE_TIME,
    type_id::RECORDER_TOTAL_WRITE_BYTES,
    type_id::RECORDER_TOTAL_WRITE_TIME,
    type_id::REPLAYER_MAX_READ_TIME,
    type_id::REPLAYER_TOTAL_READ_BYTES,
    type_id::REPLAYER_TOTAL_READ_TIME,
    type_id::CONTROL_SESSIONS,
    type_id::RECORDING_SESSIONS,
    type_id::REPLAY_SESSIONS,
    type_id::HELD_RECORDINGS,
    type_id::PURGED_BY_RETENTION,
    type_id::UNAVAILABLE_RECORDINGS,
    type_id::DAMAGED_RECORDINGS,
    type_id::VERIFIED_BYTES,
];

/// Properties of an archive that differ between worlds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) sync: SyncLevel,
    pub(super) checksum: Option<Checksum>,
    pub(super) segment_length: i32,
    pub(super) stops_when_full: bool,
    /// Highest length of the catalog in place of that of its format.
    pub(super) catalog_length_max: Option<u64>,
    /// Further options.
    pub(super) options: &'static [(&'static str, &'static str)],
    pub(super) defect: Option<Defect>,
}

/// An archive that starts, runs, and ends by itself when it cannot go on.
pub(super) struct ArchiveProcess {
    settings: Settings,
    state: State,
    /// States before the end. The destructors would act on the memory of the driver, so that a crash runs none.
    kept: Vec<State>,
    /// Reason why the archive before this one ended by itself.
    last_end: Option<String>,
}

enum State {
    Connecting {
        connecting: Box<Connecting>,
        retry_at_ns: i64,
    },
    Adding(Box<Adding>),
    Running(Box<Running>),
    Ended(String),
}

/// Resources that the driver adds before the archive runs.
struct Adding {
    client: Client,
    archive_id: i64,
    config: ArchiveConfig,
    mark: MarkFile,
    errors: Arc<OnceLock<ErrorHandler>>,
    pending_counters: Vec<Pending<Counter>>,
    counters: Vec<Counter>,
    pending_controls: Vec<Pending<Subscription>>,
    controls: Vec<Subscription>,
    image_sender: std::sync::mpsc::Sender<ImageEvent>,
    image_events: std::sync::mpsc::Receiver<ImageEvent>,
}

struct Running {
    client: Client,
    archive_id: i64,
    conductor: Conductor,
    recorder: Recorder,
    replayer: Replayer,
    store: Arc<Mutex<StoreState>>,
    failure: Arc<Mutex<Option<String>>>,
    /// Recorded positions seen last, by registration id of their counter.
    seen: BTreeMap<i64, i64>,
    is_closed: bool,
}

impl ArchiveProcess {
    pub(super) fn start(env: &mut HostEnv, settings: Settings, last_end: Option<String>) -> Self {
        let errors: Arc<OnceLock<ErrorHandler>> = Arc::default();
        let sink = Arc::clone(&errors);
        let wall_clock = env.wall_clock();
        let nothing: [(&str, &str); 0] = [];
        let builder = ClientBuilder::with_environment(nothing)
            .aeron_dir(env.aeron_dir())
            .storage(env.storage())
            .invoker(true)
            .client_name("archive")
            .on_error(move |error| {
                if let Some(errors) = sink.get() {
                    let now_ms = wall_clock.epoch_nanos() / 1_000_000;
                    errors.on_error(now_ms, 0, &error.to_string());
                }
            });
        Self {
            settings,
            state: State::Connecting {
                connecting: Box::new(builder.connecting()),
                retry_at_ns: i64::MIN,
            },
            kept: Vec::new(),
            last_end,
        }
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns true while requests are served.
    pub(super) fn is_running(&self) -> bool {
        matches!(&self.state, State::Running(running) if !running.is_closed)
    }

    /// Returns the reason why the archive ended by itself.
    pub(super) fn ended(&self) -> Option<&str> {
        match &self.state {
            State::Ended(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the numbers of control sessions, recordings and replays.
    pub(super) fn sessions(&self) -> [i64; 3] {
        let State::Running(running) = &self.state else {
            return [0; 3];
        };
        let value = |wanted: i32| {
            let mut value = 0;
            running.client.counters().for_each(|meta| {
                if meta.type_id == wanted && meta.key[..8] == running.archive_id.to_le_bytes() {
                    value = running.client.counters().value(meta.id).unwrap_or_default();
                }
            });
            value
        };
        [
            value(type_id::CONTROL_SESSIONS),
            value(type_id::RECORDING_SESSIONS),
            value(type_id::REPLAY_SESSIONS),
        ]
    }

    /// Ends the archive in order. It must have no active recordings.
    pub(super) fn close(&mut self) {
        if let State::Running(running) = &mut self.state {
            running.recorder.on_close();
            running.replayer.on_close();
            running.conductor.on_close();
            running.is_closed = true;
        }
    }

    fn connect(&mut self, context: &mut CycleContext<'_>) -> usize {
        let now = context.now();
        let State::Connecting {
            connecting,
            retry_at_ns,
        } = &mut self.state
        else {
            return 0;
        };
        if now.nanos < *retry_at_ns {
            return 0;
        }
        match connecting.poll(now) {
            Ok(Progress::Connected(client)) => {
                let settings = self.settings;
                self.state = match Adding::begin(client, settings, context) {
                    Ok(adding) => State::Adding(Box::new(adding)),
                    Err(text) => State::Ended(text),
                };
                1
            }
            Ok(Progress::Wait(_)) => {
                *retry_at_ns = now.nanos + CONNECT_RETRY_NS;
                0
            }
            Err(error) => {
                self.state = State::Ended(error.to_string());
                1
            }
        }
    }

    fn add(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let State::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        let work = adding.client.do_work(context.now());
        match adding.poll() {
            Ok(false) => return Ok(work),
            Ok(true) => {}
            Err(text) => {
                self.state = State::Ended(text);
                return Ok(1);
            }
        }
        let State::Adding(adding) = std::mem::replace(&mut self.state, State::Ended(String::new()))
        else {
            return Ok(work);
        };
        self.state = match adding.run(self.settings, context)? {
            Ok(running) => State::Running(Box::new(running)),
            Err(text) => State::Ended(text),
        };
        Ok(1)
    }
}

fn configure(settings: Settings, endpoint: &str) -> ArchiveConfig {
    let mut options = OptionSet::archive();
    let control = format!("aeron:udp?endpoint={endpoint}");
    let segment_length = settings.segment_length.to_string();
    let level = match settings.sync {
        SyncLevel::None => "0",
        SyncLevel::Data => "1",
        SyncLevel::All => "2",
    };
    let pairs = [
        ("aeron.archive.dir", DIRECTORY),
        ("aeron.archive.control.channel", control.as_str()),
        (
            "aeron.archive.replication.channel",
            "aeron:udp?endpoint=localhost:0",
        ),
        ("aeron.archive.segment.file.length", segment_length.as_str()),
        ("aeron.archive.file.sync.level", level),
        ("aeron.archive.catalog.file.sync.level", level),
        ("aeron.archive.catalog.capacity", "64k"),
        ("aeron.archive.file.io.max.length", "64k"),
        ("aeron.archive.low.storage.space.threshold", "0"),
        ("aeron.archive.error.buffer.length", "1m"),
        (
            "taran.archive.disk.full",
            if settings.stops_when_full {
                "stop"
            } else {
                "hold"
            },
        ),
        (
            "aeron.archive.record.checksum",
            match settings.checksum {
                Some(_) => "CRC-32C",
                None => "none",
            },
        ),
    ];
    let pairs = pairs.into_iter().chain(settings.options.iter().copied());
    let pairs = pairs.filter(|(_, value)| *value != "none");
    options
        .apply(&Source::Code, pairs)
        .expect("the options are valid");
    ArchiveConfig::new(&options).expect("the options fit together")
}

impl Adding {
    /// Claims the directory, and asks the driver for counters and subscriptions.
    fn begin(
        client: Client,
        settings: Settings,
        context: &mut CycleContext<'_>,
    ) -> Result<Self, String> {
        let now = context.now();
        let endpoint = context.shared::<Journal>().archive_endpoint();
        let hooks = context.shared::<Journal>().hooks().clone();
        context
            .shared::<Journal>()
            .set_durability(settings.sync, settings.checksum);
        let env = context.env();
        let disk: Arc<dyn Disk> = Arc::new(HookedDisk::new(env.disk(), hooks, settings.defect));
        let config = configure(settings, &endpoint);
        create_directory(&*disk, &config.dir).map_err(|error| error.to_string())?;
        env.storage()
            .create_dir_all(&config.dir)
            .map_err(|error| error.to_string())?;
        let archive_id = client.next_correlation_id();
        let mark_settings = MarkSettings {
            archive_id,
            pid: 1,
            control_stream_id: 10,
            local_control_stream_id: 10,
            events_stream_id: 0,
            control_channel: format!("aeron:udp?endpoint={endpoint}"),
            local_control_channel: config.local_control.channel.to_string(),
            events_channel: String::new(),
            aeron_directory: env.aeron_dir().display().to_string(),
            error_log_length: config.error_buffer_length,
            page_size: 4096,
        };
        let mark = MarkFile::claim(
            &*disk,
            &*env.storage(),
            &config.dir,
            &config.dir,
            &mark_settings,
            now.epoch_millis,
        )
        .map_err(|error| error.to_string())?;
        let mut specs = vec![CounterSpec::errors(archive_id, "0", "0")];
        specs.extend(SINGLE.map(|type_id| CounterSpec::single(type_id, archive_id)));
        let add = |spec: &CounterSpec| {
            let pending = client.async_add_counter(spec.type_id, &spec.key, &spec.label);
            pending.map_err(|error| error.to_string())
        };
        let pending_counters = specs.iter().map(add).collect::<Result<Vec<_>, _>>()?;
        let (image_sender, image_events) = channel();
        let control = config
            .control
            .as_ref()
            .map(|stream| (stream.channel.to_string(), stream.stream_id));
        let local = (
            config.local_control.channel.to_string(),
            config.local_control.stream_id,
        );
        let mut pending_controls = Vec::new();
        for (channel, stream_id) in control.into_iter().chain([local]) {
            let sender = image_sender.clone();
            let handlers = ImageHandlers::new().on_unavailable(move |image: &ImageView| {
                let correlation_id = image.correlation_id();
                let _ = sender.send(ImageEvent::RequestsGone { correlation_id });
            });
            let pending = client.async_add_subscription_with(channel, stream_id, handlers);
            pending_controls.push(pending.map_err(|error| error.to_string())?);
        }
        Ok(Self {
            client,
            archive_id,
            config,
            mark,
            errors: Arc::default(),
            pending_counters,
            counters: Vec::new(),
            pending_controls,
            controls: Vec::new(),
            image_sender,
            image_events,
        })
    }

    /// Returns true when all is added.
    fn poll(&mut self) -> Result<bool, String> {
        if let Some(reason) = self.client.close_reason() {
            return Err(reason.to_string());
        }
        while let Some(pending) = self.pending_counters.first_mut() {
            let Some(added) = pending.poll() else {
                return Ok(false);
            };
            self.counters
                .push(added.map_err(|error| error.to_string())?);
            drop(self.pending_counters.remove(0));
        }
        while let Some(pending) = self.pending_controls.first_mut() {
            let Some(added) = pending.poll() else {
                return Ok(false);
            };
            self.controls
                .push(added.map_err(|error| error.to_string())?);
            drop(self.pending_controls.remove(0));
        }
        Ok(true)
    }

    /// Recovers the files, checks them against what is known, and makes the agents.
    fn run(
        self,
        settings: Settings,
        context: &mut CycleContext<'_>,
    ) -> Result<Result<Running, String>, Violation> {
        let now = context.now();
        let sim_disk: ProcessDisk = context.env().disk();
        let hooks = context.shared::<Journal>().hooks().clone();
        let disk: Arc<dyn Disk> =
            Arc::new(HookedDisk::new(sim_disk.clone(), hooks, settings.defect));
        let config = self.config;
        let options = CatalogOptions {
            capacity: config.catalog_capacity as u64,
            checksum: match settings.defect {
                Some(Defect::BelievesTornTail) => None,
                _ => config.record_checksum,
            },
            sync: config.catalog_sync_level,
        };
        let opened = CatalogFile::open(&disk, &config.dir, options);
        let (mut file, mut catalog, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                if matches!(error, CatalogError::Contents { .. }) {
                    lose_catalog(&sim_disk, &config, &error, context.shared::<Journal>())?;
                }
                return Ok(Err(error.to_string()));
            }
        };
        let recovered = recover(
            &*disk,
            &config.dir,
            &mut catalog,
            &mut file,
            config.file_sync_level,
            now.epoch_millis,
        );
        let report = match recovered {
            Ok(report) => report,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let files = RecoveredFiles {
            disk: &sim_disk,
            directory: &config.dir,
            catalog: &catalog,
            report: &report,
            sync: settings.sync,
            has_checksum: settings.checksum.is_some(),
        };
        files.check(context.shared::<Journal>())?;
        if let Some(limit) = settings.catalog_length_max {
            catalog.set_length_max(limit);
        }

        let store = Arc::new(Mutex::new(StoreState::new(file)));
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let mut counters = self.counters.into_iter();
        let mut next = || counters.next().expect("one for each spec");
        let error_counter = next();
        let error_memory = self
            .client
            .counters()
            .counter(error_counter.id())
            .expect("the counter was just added");
        let errors = ErrorHandler::or_stderr(self.mark.error_log(), error_memory);
        let _ = self.errors.set(errors.clone());
        for finding in opened.findings().into_iter().chain(report.findings()) {
            errors.on_error(now.epoch_millis, 0, &finding);
        }
        let recorder_counters = RecorderCounters {
            max_write_ns: next(),
            total_write_bytes: next(),
            total_write_ns: next(),
        };
        let replayer_counters = ReplayerCounters {
            max_read_ns: next(),
            total_read_bytes: next(),
            total_read_ns: next(),
        };
        let conductor_counters = ConductorCounters {
            control_sessions: next(),
            recordings: next(),
            replays: next(),
            held: next(),
            purged: next(),
            unavailable: next(),
            damaged: next(),
            verified: next(),
        };
        let threads_have_ended = context.shared::<Journal>().hooks().threads_have_ended();
        let io = |workers: usize| {
            let times = sim_disk.times();
            DiskIo::new(Box::new(EndingQueue {
                inner: InlineQueue::new(&disk, workers, 64, times),
                has_ended: Arc::clone(&threads_have_ended),
            }))
        };
        let (command_sender, commands) = spsc(QUEUE_CAPACITY);
        let (report_sender, reports) = spsc(QUEUE_CAPACITY);
        let recorder = Recorder::new(
            RecorderOptions {
                writer: WriterOptions {
                    directory: config.dir.clone(),
                    sync: match settings.defect {
                        Some(Defect::NeverSyncs) => SyncLevel::None,
                        _ => config.file_sync_level,
                    },
                    disk_full: config.disk_full,
                },
                checksum: config.record_checksum,
                block_length: config.io_max_length,
                max_blocks: 32,
            },
            io(4),
            (commands, report_sender),
            RecordingEvents::new(None),
            recorder_counters,
            None,
            Box::new(CloseClock::default()),
        );
        let (replay_sender, replay_commands) = spsc(QUEUE_CAPACITY);
        let (replay_report_sender, replay_reports) = spsc(QUEUE_CAPACITY);
        let replayer = Replayer::new(
            ReplayerOptions {
                buffer_length: config.io_max_length,
                max_buffers: 32,
                cycle_bytes: config.io_max_length,
            },
            io(2),
            (replay_commands, replay_report_sender),
            replayer_counters,
            None,
        );
        if self.mark.set_ready(now.epoch_millis).is_err() {
            return Ok(Err("the mark file cannot be synced".to_owned()));
        }
        let mut random = fastrand::Rng::with_seed(context.env().random().u64(..));
        let on_fatal = Arc::clone(&failure);
        let conductor = Conductor::new(ConductorParts {
            archive_id: self.archive_id,
            controls: self.controls,
            image_events: self.image_events,
            image_sender: self.image_sender,
            catalog,
            store: Box::new(SteppedStore::new(Arc::clone(&store))),
            io: io(1),
            verify_io: (config.verify_rate > 0).then(|| io(1)),
            recorder: (command_sender, reports),
            replayer: (replay_sender, replay_reports),
            counters: conductor_counters,
            cycle: None,
            events: EventLog::default(),
            errors,
            error_counter: Some(error_counter),
            mark: Box::new(KeptMarkFile::new(self.mark)),
            authenticator: Box::new(AcceptAll),
            authorisation: Box::new(AllowAll),
            first_session_id: random.i64(0..i64::from(i32::MAX)),
            random: Box::new(move || Some(random.i64(..))),
            on_fatal: Box::new(move |text| {
                let mut failure = on_fatal.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| text.to_owned());
            }),
            client: self.client.clone(),
            config: Arc::new(config),
        });
        Ok(Ok(Running {
            client: self.client,
            archive_id: self.archive_id,
            conductor,
            recorder,
            replayer,
            store,
            failure,
            seen: BTreeMap::new(),
            is_closed: false,
        }))
    }
}

/// A clock for the end of an archive, which passes a millisecond with each reading.
#[derive(Default)]
struct CloseClock(Now);

impl Clock for CloseClock {
    fn now(&mut self) -> Now {
        self.0.nanos += 1_000_000;
        self.0
    }
}

/// Removes a catalog of which a power cut without syncs took a part, as an operator without a backup does. Otherwise the archive
/// must not refuse its catalog.
fn lose_catalog(
    disk: &dyn Disk,
    config: &ArchiveConfig,
    error: &CatalogError,
    journal: &Journal,
) -> Result<(), Violation> {
    if config.catalog_sync_level != SyncLevel::None || !journal.has_power_cut() {
        return Err(Violation(format!(
            "the archive refuses its catalog, and with it all recordings: {error}"
        )));
    }
    // The next start repeats what fails.
    let removed = disk.remove_file(&config.dir.join(CATALOG_FILE));
    let _ = removed.and_then(|()| disk.sync_directory(&config.dir));
    Ok(())
}

impl Running {
    /// Checks the recorded positions, which users can see in the counters.
    fn check_positions(&mut self, journal: &mut Journal) -> Result<(), Violation> {
        let mut violation = None;
        let counters = self.client.counters();
        counters.for_each(|meta| {
            if meta.type_id != type_id::RECORDING_POSITION {
                return;
            }
            let word = |at: usize| meta.key.get(at..at + 8).and_then(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?)));
            let Some(recording_id) = word(0) else { return };
            let session_id = word(8).unwrap_or_default() as i32;
            let source_length = (word(8).unwrap_or_default() >> 32) as usize;
            if word(16 + source_length) != Some(self.archive_id) {
                return;
            }
            let Some(counter) = counters.counter(meta.id) else { return };
            // The counter begins at 0 before the archive sets it to the start position.
            let position = counter.get();
            if position == 0 {
                return;
            }
            let seen = self.seen.entry(counter.registration_id()).or_insert(position);
            if position < *seen {
                violation = Some(format!(
                    "the recorded position of recording {recording_id} ran back from {seen} to {position}"
                ));
            }
            *seen = position;
            if let Err(text) = journal.on_recorded(recording_id, session_id, position) {
                violation = Some(text);
            }
        });
        violation.map_or(Ok(()), |text| Err(Violation(text)))
    }
}

impl ArchiveProcess {
    /// Runs one duty cycle.
    fn cycle(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now = context.now();
        let running = match &mut self.state {
            State::Connecting { .. } => return Ok(self.connect(context)),
            State::Adding(_) => return self.add(context),
            State::Ended(_) => return Ok(0),
            State::Running(running) => running,
        };
        if running.is_closed {
            return Ok(0);
        }
        let agent = context.agent();
        let done = match agent {
            CONDUCTOR => running.conductor.do_work(now),
            RECORDER => running.recorder.do_work(now),
            REPLAYER => running.replayer.do_work(now),
            _ => Ok(running
                .store
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .step()),
        };
        if agent == RECORDER && done.as_ref().is_ok_and(|work| *work > 0) {
            running.check_positions(context.shared::<Journal>())?;
        }
        let failure = running
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match (done, failure) {
            (Ok(work), None) => Ok(work),
            (Err(end), None) => {
                self.end(end.to_string());
                Ok(1)
            }
            (_, Some(text)) => {
                self.end(text);
                Ok(1)
            }
        }
    }
}

impl Process for ArchiveProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let done = self.cycle(context);
        done.map_err(|violation| context.shared::<Journal>().explain(violation))
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        match &self.state {
            State::Connecting { .. } | State::Adding(_) => agents.push(CONDUCTOR),
            State::Running(running) if !running.is_closed => {
                agents.extend([CONDUCTOR, RECORDER, REPLAYER, CATALOG]);
            }
            State::Running(_) | State::Ended(_) => {}
        }
    }

    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Keep
    }

    fn describe(&self) -> String {
        let state = match &self.state {
            State::Connecting { .. } => "connecting".to_owned(),
            State::Adding(_) => "adding its counters and subscriptions".to_owned(),
            State::Running(_) => "running".to_owned(),
            State::Ended(text) => format!("ended: {text}"),
        };
        let last_end = &self.last_end;
        format!("archive {:?}, {state}, before: {last_end:?}", self.settings)
    }
}

impl ArchiveProcess {
    /// Stops all agents where they are, as a crash does.
    fn end(&mut self, text: String) {
        let state = std::mem::replace(&mut self.state, State::Ended(text));
        self.kept.push(state);
    }
}
