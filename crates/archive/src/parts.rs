// SPDX-License-Identifier: Apache-2.0
//! An archive whose agents the caller runs, with disk, memory, time and random numbers of the caller.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use taran::{Client, CommandError, Counter, ImageHandlers, ImageView, Pending, Subscription};
use taran_core::agent::Agent;
use taran_core::clock::{Clock, Now};
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Storage;
use taran_core::queue::spsc;
use taran_storage::{Disk, DiskQueue};

use crate::conductor::{
    Conductor, ConductorCounters, ConductorParts, ImageEvent, SteppedStore, StoreState,
};
use crate::config::ArchiveConfig;
use crate::counters::{CounterSpec, type_id};
use crate::disk_io::DiskIo;
use crate::event_log::EventLog;
use crate::files::{
    Catalog, CatalogFile, CatalogOptions, MarkFile, MarkSettings, create_directory, recover,
};
use crate::launch::ArchiveError;
use crate::mark::KeptMarkFile;
use crate::recorder::{
    Recorder, RecorderCounters, RecorderOptions, RecordingEvents, WriterOptions,
};
use crate::replayer::{Replayer, ReplayerCounters, ReplayerOptions};
use crate::security::{AcceptAll, AllowAll, DenyAll};

/// Capacity of the queues between agents.
const QUEUE_CAPACITY: usize = 64;
/// Highest number of blocks and buffers in memory.
const MAX_BUFFERS: usize = 32;

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

/// Surroundings of an archive, beside its client.
pub struct ArchiveEnvironment {
    /// Disk of catalog and segment files.
    pub disk: Arc<dyn Disk>,
    /// Memory of the mark file.
    pub storage: Arc<dyn Storage>,
    /// Makes a disk queue with this number of workers.
    pub queue: Box<dyn FnMut(usize) -> Box<dyn DiskQueue + Send>>,
    /// Directory of the driver, for the mark file.
    pub aeron_directory: String,
    /// Random numbers; `None` if there are none.
    pub random: Box<dyn FnMut() -> Option<i64> + Send>,
}

/// An archive that waits for what the driver adds for it.
///
/// Contract: the caller runs the client and calls [`poll`](Self::poll) until it returns true, then [`finish`](Self::finish).
pub struct ArchiveStart {
    pub(crate) config: ArchiveConfig,
    client: Client,
    archive_id: i64,
    environment: ArchiveEnvironment,
    mark: MarkFile,
    pending_counters: Vec<Pending<Counter>>,
    counters: Vec<Counter>,
    pending_controls: Vec<Pending<Subscription>>,
    controls: Vec<Subscription>,
    image_sender: std::sync::mpsc::Sender<ImageEvent>,
    image_events: std::sync::mpsc::Receiver<ImageEvent>,
}

/// The files of an archive after their recovery.
pub(crate) struct OpenedFiles {
    pub(crate) file: CatalogFile,
    pub(crate) catalog: Catalog,
    /// Texts for the error log.
    pub(crate) findings: Vec<String>,
}

/// The agents of an archive.
///
/// Contract: [`do_work`](Self::do_work) is called with the number of each agent, again and again, until it fails or
/// [`close`](Self::close) was called.
pub struct ArchiveParts {
    client: Client,
    archive_id: i64,
    conductor: Conductor,
    recorder: Recorder,
    replayer: Replayer,
    store: Arc<Mutex<StoreState>>,
    failure: Arc<Mutex<Option<String>>>,
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

fn refused(what: &str) -> impl FnOnce(CommandError) -> ArchiveError {
    let what = what.to_owned();
    move |source| ArchiveError::Command { what, source }
}

impl ArchiveStart {
    /// Claims the directory, and asks the driver for counters and subscriptions.
    ///
    /// # Errors
    /// The directory cannot be used or is in use, or the driver takes no commands.
    pub fn begin(
        client: Client,
        config: ArchiveConfig,
        environment: ArchiveEnvironment,
        now: Now,
    ) -> Result<Self, ArchiveError> {
        let disk = &*environment.disk;
        create_directory(disk, &config.dir)?;
        let created = environment.storage.create_dir_all(&config.dir);
        created.map_err(|source| ArchiveError::Directory {
            path: config.dir.clone(),
            source,
        })?;
        let archive_id = client.next_correlation_id();
        let control = config
            .control
            .as_ref()
            .map(|stream| (stream.channel.to_string(), stream.stream_id));
        let local = (
            config.local_control.channel.to_string(),
            config.local_control.stream_id,
        );
        let mark_settings = MarkSettings {
            archive_id,
            pid: 1,
            control_stream_id: control.as_ref().map_or(0, |(_, stream_id)| *stream_id),
            local_control_stream_id: local.1,
            events_stream_id: 0,
            control_channel: control
                .as_ref()
                .map(|(channel, _)| channel.clone())
                .unwrap_or_default(),
            local_control_channel: local.0.clone(),
            events_channel: String::new(),
            aeron_directory: environment.aeron_directory.clone(),
            error_log_length: config.error_buffer_length,
            page_size: 4096,
        };
        let mark = MarkFile::claim(
            disk,
            &*environment.storage,
            &config.dir,
            &config.dir,
            &mark_settings,
            now.epoch_millis,
        )?;
        let mut specs = vec![CounterSpec::errors(archive_id, "0", "0")];
        specs.extend(SINGLE.map(|type_id| CounterSpec::single(type_id, archive_id)));
        let add = |spec: &CounterSpec| {
            let pending = client.async_add_counter(spec.type_id, &spec.key, &spec.label);
            pending.map_err(refused("cannot add a counter"))
        };
        let pending_counters = specs.iter().map(add).collect::<Result<Vec<_>, _>>()?;
        let (image_sender, image_events) = channel();
        let mut pending_controls = Vec::new();
        for (channel, stream_id) in control.into_iter().chain([local]) {
            let sender = image_sender.clone();
            let handlers = ImageHandlers::new().on_unavailable(move |image: &ImageView| {
                let correlation_id = image.correlation_id();
                // The conductor ends before the client does.
                let _ = sender.send(ImageEvent::RequestsGone { correlation_id });
            });
            let pending = client.async_add_subscription_with(channel, stream_id, handlers);
            pending_controls.push(pending.map_err(refused("cannot subscribe to requests"))?);
        }
        Ok(Self {
            config,
            client,
            archive_id,
            environment,
            mark,
            pending_counters,
            counters: Vec::new(),
            pending_controls,
            controls: Vec::new(),
            image_sender,
            image_events,
        })
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns true when the driver has added all.
    ///
    /// # Errors
    /// It has refused something.
    pub fn poll(&mut self) -> Result<bool, ArchiveError> {
        while let Some(pending) = self.pending_counters.first_mut() {
            let Some(added) = pending.poll() else {
                return Ok(false);
            };
            self.counters
                .push(added.map_err(refused("cannot add a counter"))?);
            drop(self.pending_counters.remove(0));
        }
        while let Some(pending) = self.pending_controls.first_mut() {
            let Some(added) = pending.poll() else {
                return Ok(false);
            };
            self.controls
                .push(added.map_err(refused("cannot subscribe to requests"))?);
            drop(self.pending_controls.remove(0));
        }
        Ok(true)
    }

    /// Recovers the files, and makes the agents.
    ///
    /// # Errors
    /// Catalog or mark file cannot be read or written.
    ///
    /// # Panics
    /// If [`poll`](Self::poll) has not returned true.
    pub fn finish(self, now: Now) -> Result<ArchiveParts, ArchiveError> {
        let options = CatalogOptions {
            capacity: self.config.catalog_capacity as u64,
            checksum: self.config.record_checksum,
            sync: self.config.catalog_sync_level,
        };
        let disk = &self.environment.disk;
        let dir = &self.config.dir;
        let (mut file, mut catalog, opened) = CatalogFile::open(disk, dir, options)?;
        let level = self.config.file_sync_level;
        let report = recover(
            &**disk,
            dir,
            &mut catalog,
            &mut file,
            level,
            now.epoch_millis,
        )?;
        let findings = opened.findings().into_iter().chain(report.findings());
        let files = OpenedFiles {
            file,
            catalog,
            findings: findings.collect(),
        };
        self.assemble(files, now)
    }

    /// Makes the agents over recovered files.
    pub(crate) fn assemble(
        self,
        files: OpenedFiles,
        now: Now,
    ) -> Result<ArchiveParts, ArchiveError> {
        let Self {
            config,
            client,
            archive_id,
            environment:
                ArchiveEnvironment {
                    mut queue,
                    mut random,
                    ..
                },
            mark,
            counters,
            controls,
            image_sender,
            image_events,
            ..
        } = self;
        let store = Arc::new(Mutex::new(StoreState::new(files.file)));
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let mut counters = counters.into_iter();
        let mut next = || counters.next().expect("`poll` has added one for each spec");
        let error_counter = next();
        let error_memory = client
            .counters()
            .counter(error_counter.id())
            .expect("the counter was just added");
        let errors = ErrorHandler::or_stderr(mark.error_log(), error_memory);
        for finding in files.findings {
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
        let mut io = |workers: usize| DiskIo::new(queue(workers));
        let (command_sender, commands) = spsc(QUEUE_CAPACITY);
        let (report_sender, reports) = spsc(QUEUE_CAPACITY);
        let recorder = Recorder::new(
            RecorderOptions {
                writer: WriterOptions {
                    directory: config.dir.clone(),
                    sync: config.file_sync_level,
                    disk_full: config.disk_full,
                },
                checksum: config.record_checksum,
                block_length: config.io_max_length,
                max_blocks: MAX_BUFFERS,
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
                max_buffers: MAX_BUFFERS,
                cycle_bytes: config.io_max_length,
            },
            io(2),
            (replay_commands, replay_report_sender),
            replayer_counters,
            None,
        );
        let ready = mark.set_ready(now.epoch_millis);
        ready.map_err(|source| ArchiveError::Directory {
            path: config.dir.clone(),
            source,
        })?;
        let first_session_id = random().unwrap_or_default().rem_euclid(i64::from(i32::MAX));
        let on_fatal = Arc::clone(&failure);
        let conductor = Conductor::new(ConductorParts {
            archive_id,
            controls,
            image_events,
            image_sender,
            catalog: files.catalog,
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
            mark: Box::new(KeptMarkFile::new(mark)),
            authenticator: Box::new(AcceptAll),
            authorisation: if config.deny_all {
                Box::new(DenyAll)
            } else {
                Box::new(AllowAll)
            },
            first_session_id,
            random,
            on_fatal: Box::new(move |text| {
                let mut failure = on_fatal.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| text.to_owned());
            }),
            client: client.clone(),
            config: Arc::new(config),
        });
        Ok(ArchiveParts {
            client,
            archive_id,
            conductor,
            recorder,
            replayer,
            store,
            failure,
        })
    }
}

impl ArchiveParts {
    /// Number of the conductor.
    pub const CONDUCTOR: usize = 0;
    /// Number of the recorder.
    pub const RECORDER: usize = 1;
    /// Number of the replayer.
    pub const REPLAYER: usize = 2;
    /// Number of the agent that applies changes to the catalog file, which an archive with threads does on one of its own.
    pub const CATALOG: usize = 3;
    /// Number of agents.
    pub const AGENTS: usize = 4;

    /// Returns the client of the archive.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the id of the archive.
    #[must_use]
    pub fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Returns recording, position, and the segment file that is read next, of each replay that has not ended.
    #[cfg(test)]
    pub(crate) fn replayed_files(&self) -> Vec<(i64, i64, std::path::PathBuf)> {
        self.replayer.files().collect()
    }

    /// Returns id, start and stop position of each recording that was not deleted; `None` for those that are unavailable.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> impl Iterator<Item = (i64, Option<(i64, i64)>)> {
        self.conductor.extents()
    }

    /// Runs one duty cycle of an agent; returns the amount of work.
    ///
    /// # Errors
    /// The reason why the archive cannot go on, as text.
    pub fn do_work(&mut self, agent: usize, now: Now) -> Result<usize, String> {
        let done = match agent {
            Self::CONDUCTOR => self.conductor.do_work(now),
            Self::RECORDER => self.recorder.do_work(now),
            Self::REPLAYER => self.replayer.do_work(now),
            _ => {
                let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(store.step())
            }
        };
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match (done, failure) {
            (Ok(work), None) => Ok(work),
            (Err(end), None) => Err(end.to_string()),
            (_, Some(text)) => Err(text),
        }
    }

    /// Ends the archive in order. It must have no active recordings.
    pub fn close(&mut self) {
        self.recorder.on_close();
        self.replayer.on_close();
        self.conductor.on_close();
    }
}
