// SPDX-License-Identifier: Apache-2.0
//! The common part of the start of archives with threads and without: commands to the driver, and the agents over their
//! results.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use taran::{
    Client, CommandError, Counter, CounterMeta, ExclusivePublication, ImageHandlers, ImageView,
    Pending, Subscription,
};
use taran_core::agent::DutyCycleTracker;
use taran_core::clock::Clock;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Storage;
use taran_core::queue::spsc;
use taran_protocol::uri::value::format_duration_ns;
use taran_storage::{Disk, DiskLock};

use crate::conductor::{CatalogStore, Conductor, ConductorCounters, ConductorParts, ImageEvent};
use crate::config::{ArchiveConfig, StreamConfig};
use crate::counters::{CounterSpec, type_id};
use crate::disk_io::DiskIo;
use crate::event_log::EventLog;
use crate::files::{
    Catalog, CatalogFile, CatalogOptions, FoundCatalog, MarkFile, MarkSettings, recover,
};
use crate::launch::ArchiveError;
use crate::mark::KeptMarkFile;
use crate::recorder::{
    Recorder, RecorderCounters, RecorderOptions, RecordingEvents, WriterOptions,
};
use crate::replayer::{Replayer, ReplayerCounters, ReplayerOptions};
use crate::security::{Authenticator, AuthorisationService};

/// Counters with one value per archive, in the order in which [`Assembly::assemble`] takes them.
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

/// Returns what the mark file says.
pub(crate) fn mark_settings(
    config: &ArchiveConfig,
    archive_id: i64,
    pid: i64,
    aeron_directory: String,
    page_size: usize,
) -> MarkSettings {
    let stream = |stream: Option<&StreamConfig>| {
        stream.map_or((String::new(), 0), |stream| {
            (stream.channel.to_string(), stream.stream_id)
        })
    };
    let (control_channel, control_stream_id) = stream(config.control.as_ref());
    let (local_control_channel, local_control_stream_id) = stream(Some(&config.local_control));
    let (events_channel, events_stream_id) = stream(config.recording_events.as_ref());
    MarkSettings {
        archive_id,
        pid,
        control_stream_id,
        local_control_stream_id,
        events_stream_id,
        control_channel,
        local_control_channel,
        events_channel,
        aeron_directory,
        error_log_length: config.error_buffer_length,
        page_size,
    }
}

/// Claims the directory of an archive whose lock is held, and reads its catalog. Nothing is written before all that is there
/// was found to be usable.
pub(crate) fn claim(
    lock: DiskLock,
    disk: &Arc<dyn Disk>,
    storage: &dyn Storage,
    config: &ArchiveConfig,
    settings: &MarkSettings,
    now_ms: i64,
) -> Result<(MarkFile, FoundCatalog), ArchiveError> {
    let (dir, mark_dir) = (&config.dir, &config.mark_file_dir);
    MarkFile::check_inactive(&**disk, storage, dir, mark_dir, now_ms)?;
    let options = CatalogOptions {
        capacity: config.catalog_capacity as u64,
        checksum: config.record_checksum,
        sync: config.catalog_sync_level,
    };
    let catalog = CatalogFile::find(disk, dir, options)?;
    let mark = MarkFile::claim(lock, storage, dir, mark_dir, settings, now_ms)?;
    Ok((mark, catalog))
}

/// Checks that the driver has no archive with this id.
pub(crate) fn check_id(client: &Client, archive_id: i64) -> Result<(), ArchiveError> {
    let key = archive_id.to_le_bytes();
    let is_other = |meta: &CounterMeta| meta.type_id == type_id::ERRORS && meta.key[..8] == key;
    match client.counters().find(is_other) {
        Some(other) => Err(ArchiveError::DuplicateId {
            archive_id,
            counter_id: other.id,
        }),
        None => Ok(()),
    }
}

/// The files of an archive after their recovery.
pub(crate) struct OpenedFiles {
    pub(crate) file: CatalogFile,
    pub(crate) catalog: Catalog,
    /// Texts for the error log.
    pub(crate) findings: Vec<String>,
}

impl OpenedFiles {
    /// Opens the catalog that was found, and recovers the recordings that were active.
    pub(crate) fn open(
        found: FoundCatalog,
        disk: &Arc<dyn Disk>,
        config: &ArchiveConfig,
        now_ms: i64,
    ) -> Result<Self, ArchiveError> {
        let (mut file, mut catalog, opened) = found.open()?;
        let level = config.file_sync_level;
        let report = recover(&**disk, &config.dir, &mut catalog, &mut file, level, now_ms)?;
        let findings = opened.findings().into_iter().chain(report.findings());
        Ok(Self {
            file,
            catalog,
            findings: findings.collect(),
        })
    }
}

/// Commands to the driver of one kind, whose results are taken in their order.
pub(crate) struct Commands<T> {
    /// Commands, each with its attempt as text for an error.
    pending: VecDeque<(String, Pending<T>)>,
    added: VecDeque<T>,
}

impl<T> Commands<T> {
    pub(crate) fn new() -> Self {
        Self {
            pending: VecDeque::new(),
            added: VecDeque::new(),
        }
    }

    fn send(
        &mut self,
        what: String,
        sent: Result<Pending<T>, CommandError>,
    ) -> Result<(), ArchiveError> {
        match sent {
            Ok(pending) => {
                self.pending.push_back((what, pending));
                Ok(())
            }
            Err(source) => Err(ArchiveError::Command { what, source }),
        }
    }

    /// Returns true when all are answered.
    pub(crate) fn poll(&mut self) -> Result<bool, ArchiveError> {
        while let Some((what, mut pending)) = self.pending.pop_front() {
            match pending.poll() {
                None => {
                    self.pending.push_front((what, pending));
                    return Ok(false);
                }
                Some(Ok(added)) => self.added.push_back(added),
                Some(Err(source)) => return Err(ArchiveError::Command { what, source }),
            }
        }
        Ok(true)
    }

    /// Waits until all are answered. The client runs meanwhile.
    pub(crate) fn wait(&mut self) -> Result<(), ArchiveError> {
        for (what, pending) in self.pending.drain(..) {
            match pending.wait() {
                Ok(added) => self.added.push_back(added),
                Err(source) => return Err(ArchiveError::Command { what, source }),
            }
        }
        Ok(())
    }
}

impl Commands<Counter> {
    pub(crate) fn add_counter(
        &mut self,
        client: &Client,
        spec: &CounterSpec,
    ) -> Result<(), ArchiveError> {
        let sent = client.async_add_counter(spec.type_id, &spec.key, &spec.label);
        self.send(format!("cannot add the counter `{}`", spec.label), sent)
    }

    /// Returns the counter that was asked for first among those that are left.
    pub(crate) fn next(&mut self) -> Counter {
        let next = self.added.pop_front();
        next.expect("the driver has answered, and each counter is taken once")
    }
}

/// Commands of an archive to the driver, beside the one for the counter of errors.
///
/// Contract: [`send`](Self::send) sends all commands. Then either the caller runs the client and calls [`poll`](Self::poll)
/// until it returns true, or it calls [`wait`](Self::wait) once.
pub(crate) struct DriverRequests {
    counters: Commands<Counter>,
    controls: Commands<Subscription>,
    events: Commands<ExclusivePublication>,
    image_sender: std::sync::mpsc::Sender<ImageEvent>,
    image_events: std::sync::mpsc::Receiver<ImageEvent>,
    /// Agents whose duty cycles are timed, with the threshold in nanoseconds.
    timed: Vec<(TimedAgent, i64)>,
}

/// An agent whose duty cycles are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedAgent {
    Conductor,
    Recorder,
    Replayer,
}

impl TimedAgent {
    const fn name(self) -> &'static str {
        match self {
            Self::Conductor => "archive-conductor",
            Self::Recorder => "archive-recorder",
            Self::Replayer => "archive-replayer",
        }
    }
}

impl DriverRequests {
    /// Sends all commands.
    pub(crate) fn send(
        client: &Client,
        config: &ArchiveConfig,
        archive_id: i64,
        timed: Vec<(TimedAgent, i64)>,
    ) -> Result<Self, ArchiveError> {
        let mut counters = Commands::new();
        for type_id in SINGLE {
            counters.add_counter(client, &CounterSpec::single(type_id, archive_id))?;
        }
        let mode = config.threading_mode;
        for (agent, threshold_ns) in &timed {
            let (name, threshold) = (agent.name(), format_duration_ns(*threshold_ns));
            let longest = CounterSpec::max_cycle_time(name, mode, archive_id);
            let exceeded = CounterSpec::cycle_time_exceeded(name, &threshold, mode, archive_id);
            counters.add_counter(client, &longest)?;
            counters.add_counter(client, &exceeded)?;
        }
        let (image_sender, image_events) = channel();
        let mut controls = Commands::new();
        for (channel, stream_id) in control_streams(config) {
            let sender = image_sender.clone();
            let on_unavailable = move |image: &ImageView| {
                // The conductor ends before the client does.
                let _ = sender.send(ImageEvent::RequestsGone {
                    correlation_id: image.correlation_id(),
                });
            };
            let handlers = ImageHandlers::new().on_unavailable(on_unavailable);
            let sent = client.async_add_subscription_with(&channel, stream_id, handlers);
            controls.send(format!("cannot subscribe to requests on {channel}"), sent)?;
        }
        let mut events = Commands::new();
        if let Some(stream) = &config.recording_events {
            let channel = stream.channel.as_str();
            let sent = client.async_add_exclusive_publication(channel, stream.stream_id);
            events.send(
                format!("cannot publish recording events on {channel}"),
                sent,
            )?;
        }
        Ok(Self {
            counters,
            controls,
            events,
            image_sender,
            image_events,
            timed,
        })
    }

    /// Returns true when the driver has added all.
    pub(crate) fn poll(&mut self) -> Result<bool, ArchiveError> {
        Ok(self.counters.poll()? && self.controls.poll()? && self.events.poll()?)
    }

    /// Waits until the driver has added all. The client runs meanwhile.
    pub(crate) fn wait(&mut self) -> Result<(), ArchiveError> {
        self.counters.wait()?;
        self.controls.wait()?;
        self.events.wait()
    }
}

/// Returns the channels and stream ids of requests.
fn control_streams(config: &ArchiveConfig) -> impl Iterator<Item = (String, i32)> {
    let remote = config.control.as_ref().map(|stream| {
        let sparse = config.control_term_sparse.to_string();
        let channel = stream.channel.with("sparse", &sparse);
        let channel = channel.map_or_else(
            |_| stream.channel.to_string(),
            |channel| channel.to_string(),
        );
        (channel, stream.stream_id)
    });
    let local = &config.local_control;
    let local = (local.channel.to_string(), local.stream_id);
    remote.into_iter().chain([local])
}

/// Returns the memory of a counter, which its owner keeps allocated.
pub(crate) fn shared(client: &Client, counter: &Counter) -> taran_core::counters::Counter {
    // The counter was just allocated.
    let memory = client.counters().counter(counter.id());
    memory.unwrap_or_else(taran_core::counters::Counter::detached)
}

/// As [`shared`], for a counter that stays as long as the client.
fn kept(client: &Client, counter: Counter) -> taran_core::counters::Counter {
    let memory = shared(client, &counter);
    // Never dropped, so that it is freed with the client.
    std::mem::forget(counter);
    memory
}

/// Bounds of what agents hold in memory and do at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Capacity of the queues between agents.
    pub(crate) queue_capacity: usize,
    /// Highest number of blocks between images and the disk.
    pub(crate) max_blocks: usize,
    /// Highest number of buffers between the disk and replays.
    pub(crate) max_buffers: usize,
    /// Bytes that replays send per duty cycle.
    pub(crate) replayed_per_cycle: usize,
}

/// All of which the agents are made.
pub(crate) struct Assembly {
    pub(crate) config: ArchiveConfig,
    pub(crate) archive_id: i64,
    pub(crate) client: Client,
    /// Answered by the driver.
    pub(crate) requests: DriverRequests,
    pub(crate) catalog: Catalog,
    pub(crate) store: Box<dyn CatalogStore>,
    pub(crate) mark: MarkFile,
    pub(crate) errors: ErrorHandler,
    /// The counter of the error handler, which is freed with the archive; `None` if it is the driver's.
    pub(crate) error_counter: Option<Counter>,
    pub(crate) events: EventLog,
    pub(crate) authenticator: Box<dyn Authenticator>,
    pub(crate) authorisation: Box<dyn AuthorisationService>,
    /// Unpredictable numbers; `None` if there are none.
    pub(crate) random: Box<dyn FnMut() -> Option<i64> + Send>,
    /// Tells the recorder how much time passes at the end.
    pub(crate) close_clock: Box<dyn Clock>,
    pub(crate) limits: Limits,
    /// Called once if the archive cannot go on.
    pub(crate) on_fatal: Box<dyn FnMut(&str) + Send>,
}

/// The agents of an archive.
pub(crate) struct Agents {
    pub(crate) conductor: Conductor,
    pub(crate) recorder: Recorder,
    pub(crate) replayer: Replayer,
}

impl Assembly {
    /// Makes the agents, over disk queues with the names and numbers of workers that `io` is called with, and marks the archive
    /// as ready.
    pub(crate) fn assemble(
        self,
        now_ms: i64,
        mut io: impl FnMut(&'static str, usize) -> Result<DiskIo, ArchiveError>,
    ) -> Result<Agents, ArchiveError> {
        let Self {
            config,
            client,
            requests,
            mark,
            mut random,
            limits,
            ..
        } = self;
        let DriverRequests {
            mut counters,
            controls,
            mut events,
            image_sender,
            image_events,
            timed,
        } = requests;
        let recorder_counters = RecorderCounters {
            max_write_ns: counters.next(),
            total_write_bytes: counters.next(),
            total_write_ns: counters.next(),
        };
        let replayer_counters = ReplayerCounters {
            max_read_ns: counters.next(),
            total_read_bytes: counters.next(),
            total_read_ns: counters.next(),
        };
        let conductor_counters = ConductorCounters {
            control_sessions: counters.next(),
            recordings: counters.next(),
            replays: counters.next(),
            held: counters.next(),
            purged: counters.next(),
            unavailable: counters.next(),
            damaged: counters.next(),
            verified: counters.next(),
        };
        let mut cycles = Vec::new();
        for (agent, threshold_ns) in timed {
            let longest = kept(&client, counters.next());
            let exceeded = kept(&client, counters.next());
            let threshold = Duration::from_nanos(threshold_ns.unsigned_abs());
            cycles.push((agent, DutyCycleTracker::new(longest, exceeded, threshold)));
        }
        let mut cycle = |wanted: TimedAgent| {
            let found = cycles.iter().position(|(agent, _)| *agent == wanted);
            found.map(|at| cycles.swap_remove(at).1)
        };
        let (command_sender, commands) = spsc(limits.queue_capacity);
        let (report_sender, reports) = spsc(limits.queue_capacity);
        let recorder = Recorder::new(
            RecorderOptions {
                writer: WriterOptions {
                    directory: config.dir.clone(),
                    sync: config.file_sync_level,
                    disk_full: config.disk_full,
                },
                checksum: config.record_checksum,
                block_length: config.io_max_length,
                max_blocks: limits.max_blocks,
            },
            io("archive-write", 4)?,
            (commands, report_sender),
            RecordingEvents::new(events.added.pop_front()),
            recorder_counters,
            cycle(TimedAgent::Recorder),
            self.close_clock,
        );
        let (replay_sender, replay_commands) = spsc(limits.queue_capacity);
        let (replay_report_sender, replay_reports) = spsc(limits.queue_capacity);
        let replayer = Replayer::new(
            ReplayerOptions {
                buffer_length: config.io_max_length,
                max_buffers: limits.max_buffers,
                cycle_bytes: limits.replayed_per_cycle,
            },
            io("archive-read", 2)?,
            (replay_commands, replay_report_sender),
            replayer_counters,
            cycle(TimedAgent::Replayer),
        );
        let no_numbers = || ArchiveError::Random(std::io::ErrorKind::UnexpectedEof.into());
        let first_session_id = random()
            .ok_or_else(no_numbers)?
            .rem_euclid(i64::from(i32::MAX));
        let (files_io, verify_io) = (
            io("archive-files", 1)?,
            (config.verify_rate > 0)
                .then(|| io("archive-verify", 1))
                .transpose()?,
        );
        mark.set_ready(now_ms)
            .map_err(|source| ArchiveError::Directory {
                path: config.mark_file_dir.clone(),
                source,
            })?;
        let conductor = Conductor::new(ConductorParts {
            archive_id: self.archive_id,
            controls: controls.added.into(),
            image_events,
            image_sender,
            catalog: self.catalog,
            store: self.store,
            io: files_io,
            verify_io,
            recorder: (command_sender, reports),
            replayer: (replay_sender, replay_reports),
            counters: conductor_counters,
            cycle: cycle(TimedAgent::Conductor),
            events: self.events,
            errors: self.errors,
            error_counter: self.error_counter,
            mark: Box::new(KeptMarkFile::new(mark)),
            authenticator: self.authenticator,
            authorisation: self.authorisation,
            first_session_id,
            random,
            on_fatal: self.on_fatal,
            client,
            config: Arc::new(config),
        });
        Ok(Agents {
            conductor,
            recorder,
            replayer,
        })
    }
}
