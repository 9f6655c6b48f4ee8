// SPDX-License-Identifier: Apache-2.0
//! The process of an archive: its agents over a client, on the disk of its host.

use std::collections::BTreeMap;
use std::sync::Arc;

use taran::{Client, ClientBuilder, Connecting, Progress};
use taran_protocol::option::{OptionSet, Source};
use taran_sim::disk::ProcessDisk;
use taran_sim::{AfterKill, CycleContext, HostEnv, Process, Violation};
use taran_storage::{Disk, InlineQueue};

use super::hooked_disk::{Defect, HookedDisk};
use super::journal::{Journal, Retention, Role};
use super::verify::RecoveredFiles;
use crate::assembly::OpenedFiles;
use crate::config::ArchiveConfig;
use crate::counters::type_id;
use crate::disk_io::testing::EndingQueue;
use crate::files::{
    CATALOG_FILE, CatalogError, CatalogFile, CatalogOptions, Checksum, EntryState, SyncLevel,
    recover,
};
use crate::launch::ArchiveError;
use crate::parts::{ArchiveEnvironment, ArchiveParts, ArchiveStart};

/// Directory of the archive on the disk of its host.
pub(super) const DIRECTORY: &str = "/archive";
/// Port of the control channel.
pub(super) const CONTROL_PORT: u16 = 8010;
/// Time between attempts to connect to the driver.
const CONNECT_RETRY_NS: i64 = 50_000_000;

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
    pub(super) role: Role,
    /// Retention by these options.
    pub(super) retention: Retention,
}

impl Settings {
    /// Returns the defect of the archive's disk.
    fn planted(&self) -> Option<Defect> {
        let is_here = self.defect != Some(Defect::DamagesReplica) || self.role == Role::Replica;
        self.defect.filter(|_| is_here)
    }
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
    Adding(Box<ArchiveStart>),
    Running(Box<Running>),
    Ended(String),
}

struct Running {
    parts: ArchiveParts,
    /// Recorded positions seen last, by registration id of their counter.
    seen: BTreeMap<i64, i64>,
    /// Start and stop positions of all recordings in the catalog, by id; `None` for those that are unavailable.
    extents: BTreeMap<i64, Option<(i64, i64)>>,
    is_closed: bool,
}

impl ArchiveProcess {
    pub(super) fn start(env: &mut HostEnv, settings: Settings, last_end: Option<String>) -> Self {
        let nothing: [(&str, &str); 0] = [];
        let builder = ClientBuilder::with_environment(nothing)
            .aeron_dir(env.aeron_dir())
            .storage(env.storage())
            .invoker(true)
            .client_name("archive")
            .on_error(|_| {});
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
            running.parts.client().counters().for_each(|meta| {
                if meta.type_id == wanted
                    && meta.key[..8] == running.parts.archive_id().to_le_bytes()
                {
                    value = running
                        .parts
                        .client()
                        .counters()
                        .value(meta.id)
                        .unwrap_or_default();
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
            running.parts.close();
            running.is_closed = true;
        }
    }

    fn connect(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now = context.now();
        let State::Connecting {
            connecting,
            retry_at_ns,
        } = &mut self.state
        else {
            return Ok(0);
        };
        if now.nanos < *retry_at_ns {
            return Ok(0);
        }
        Ok(match connecting.poll(now) {
            Ok(Progress::Connected(client)) => {
                let settings = self.settings;
                self.state = match begin(client, settings, context)? {
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
        })
    }

    fn add(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let State::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        let work = adding.client().do_work(context.now());
        let lost = adding.client().close_reason();
        match (lost, adding.poll()) {
            (Some(reason), _) => {
                self.state = State::Ended(reason.to_string());
                return Ok(1);
            }
            (None, Ok(false)) => return Ok(work),
            (None, Ok(true)) => {}
            (None, Err(error)) => {
                self.state = State::Ended(error.to_string());
                return Ok(1);
            }
        }
        let State::Adding(adding) = std::mem::replace(&mut self.state, State::Ended(String::new()))
        else {
            return Ok(work);
        };
        self.state = match run(*adding, self.settings, context)? {
            Ok(running) => State::Running(Box::new(running)),
            Err(text) => State::Ended(text),
        };
        Ok(1)
    }
}

fn configure(settings: Settings, endpoint: &str) -> ArchiveConfig {
    let mut options = OptionSet::archive();
    let control = format!("aeron:udp?endpoint={endpoint}");
    let address = endpoint.rsplit_once(':').map_or("", |(address, _)| address);
    let replication = format!("aeron:udp?endpoint={address}:0");
    let segment_length = settings.segment_length.to_string();
    let level = match settings.sync {
        SyncLevel::None => "0",
        SyncLevel::Data => "1",
        SyncLevel::All => "2",
    };
    let pairs = [
        ("aeron.archive.dir", DIRECTORY),
        ("aeron.archive.control.channel", control.as_str()),
        ("aeron.archive.replication.channel", replication.as_str()),
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
    let mut config = ArchiveConfig::new(&options).expect("the options fit together");
    config.is_blind_to_replays = settings.defect == Some(Defect::PurgesUnderReplays);
    config
}

/// Claims the directory, and asks the driver for counters and subscriptions.
fn begin(
    client: Client,
    settings: Settings,
    context: &mut CycleContext<'_>,
) -> Result<Result<ArchiveStart, String>, Violation> {
    let now = context.now();
    let journal = context.shared::<Journal>();
    let endpoint = journal.archive_endpoint();
    let hooks = journal.hooks().clone();
    journal.set_promises(settings.sync, settings.checksum, settings.retention);
    let env = context.env();
    let sim_disk: ProcessDisk = env.disk();
    let has_ended = hooks.threads_have_ended();
    let disk: Arc<dyn Disk> =
        Arc::new(HookedDisk::new(sim_disk.clone(), hooks, settings.planted()));
    let queue_disk = Arc::clone(&disk);
    let mut random = fastrand::Rng::with_seed(env.random().u64(..));
    let environment = ArchiveEnvironment {
        disk,
        storage: env.storage(),
        queue: Box::new(move |workers| {
            Box::new(EndingQueue {
                inner: InlineQueue::new(&queue_disk, workers, 64, sim_disk.times()),
                has_ended: Arc::clone(&has_ended),
            })
        }),
        aeron_directory: env.aeron_dir().display().to_string(),
        random: Box::new(move || Some(random.i64(..))),
    };
    let config = configure(settings, &endpoint);
    let start = ArchiveStart::begin(client, config.clone(), environment, now);
    if let Err(ArchiveError::Catalog(error @ CatalogError::Contents { .. })) = &start {
        let sim_disk: ProcessDisk = context.env().disk();
        lose_catalog(&sim_disk, &config, error, context.shared::<Journal>())?;
    }
    Ok(start.map_err(|error| error.to_string()))
}

/// Recovers the files, checks them against what is known, and makes the agents.
fn run(
    mut start: ArchiveStart,
    settings: Settings,
    context: &mut CycleContext<'_>,
) -> Result<Result<Running, String>, Violation> {
    let now = context.now();
    let sim_disk: ProcessDisk = context.env().disk();
    let hooks = context.shared::<Journal>().hooks().clone();
    let disk: Arc<dyn Disk> =
        Arc::new(HookedDisk::new(sim_disk.clone(), hooks, settings.planted()));
    let config = &start.config;
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
        Err(error) => return Ok(Err(error.to_string())),
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
    if settings.defect == Some(Defect::LosesRecording) {
        let lost = catalog.recordings(0).next().map(|found| found.recording_id);
        // The change of the file is not applied.
        let _ = lost.map(|id| catalog.set_state(id, EntryState::Deleted));
    }
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
    if settings.defect == Some(Defect::NeverSyncs) {
        start.config.file_sync_level = SyncLevel::None;
    }
    let findings = opened.findings().into_iter().chain(report.findings());
    let files = OpenedFiles {
        file,
        catalog,
        findings: findings.collect(),
    };
    let parts = match start.assemble(files, now) {
        Ok(parts) => parts,
        Err(error) => return Ok(Err(error.to_string())),
    };
    Ok(Ok(Running {
        extents: parts.extents().collect(),
        parts,
        seen: BTreeMap::new(),
        is_closed: false,
    }))
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
        let counters = self.parts.client().counters();
        counters.for_each(|meta| {
            if meta.type_id != type_id::RECORDING_POSITION {
                return;
            }
            let word = |at: usize| meta.key.get(at..at + 8).and_then(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?)));
            let Some(recording_id) = word(0) else { return };
            let session_id = word(8).unwrap_or_default() as i32;
            let source_length = (word(8).unwrap_or_default() >> 32) as usize;
            if word(16 + source_length) != Some(self.parts.archive_id()) {
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

impl Running {
    /// Checks that a recording that is gone from the catalog, or has lost its first segments, was to be purged, and that an empty
    /// one begins where its source has begun.
    fn check_purges(&mut self, journal: &mut Journal) -> Result<(), Violation> {
        let extents: BTreeMap<_, _> = self.parts.extents().collect();
        for (id, extent) in &extents {
            if let Some((start, _)) = extent {
                journal.on_start(*id, *start);
            }
        }
        let before = std::mem::replace(&mut self.extents, extents);
        for (id, before) in before {
            let checked = match (before, self.extents.get(&id)) {
                (_, None) => journal.on_shortened(id, None),
                (Some((start, stop)), Some(Some((now, _)))) if start != *now => {
                    if start == stop {
                        journal.on_replaced(id, *now)
                    } else {
                        journal.on_shortened(id, Some(*now))
                    }
                }
                _ => Ok(()),
            };
            checked.map_err(Violation)?;
        }
        Ok(())
    }

    /// Checks that the file that each replay reads, or reads next, is there.
    fn check_replayed_files(
        &self,
        disk: &ProcessDisk,
        journal: &mut Journal,
    ) -> Result<(), Violation> {
        if !journal.is_durable() {
            return Ok(());
        }
        for (recording_id, position, path) in self.parts.replayed_files() {
            let known = journal.recording(recording_id);
            let is_acknowledged = position < known.floor && !known.is_unavailable;
            let file = disk.metadata(&path);
            if is_acknowledged && file.is_err_and(|error| error.is_not_found()) {
                return Err(Violation(format!(
                    "a replay of recording {recording_id} stands at {position}, and {} was purged",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

impl ArchiveProcess {
    /// Runs one duty cycle.
    fn cycle(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now = context.now();
        let running = match &mut self.state {
            State::Connecting { .. } => return self.connect(context),
            State::Adding(_) => return self.add(context),
            State::Ended(_) => return Ok(0),
            State::Running(running) => running,
        };
        if running.is_closed {
            return Ok(0);
        }
        let agent = context.agent();
        let done = running.parts.do_work(agent, now);
        let has_worked = done.as_ref().is_ok_and(|work| *work > 0);
        if agent == ArchiveParts::RECORDER && has_worked {
            running.check_positions(context.shared::<Journal>())?;
        }
        if agent == ArchiveParts::CONDUCTOR {
            let journal = context.shared::<Journal>();
            journal.on_conductor_cycle();
            // Also in its last duty cycle.
            running.check_purges(journal)?;
        }
        if agent == ArchiveParts::CONDUCTOR && has_worked {
            let disk = context.env().disk();
            running.check_replayed_files(&disk, context.shared::<Journal>())?;
        }
        Ok(done.unwrap_or_else(|text| {
            self.end(text);
            1
        }))
    }
}

impl Process for ArchiveProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now_ns = context.now().nanos;
        let journal = context.shared::<Journal>();
        journal.select(self.settings.role);
        journal.set_now(now_ns);
        let done = self.cycle(context);
        let journal = context.shared::<Journal>();
        let done = done.map_err(|violation| journal.explain(violation));
        journal.select(Role::Source);
        done
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        match &self.state {
            State::Connecting { .. } | State::Adding(_) => agents.push(0),
            State::Running(running) if !running.is_closed => {
                agents.extend(0..ArchiveParts::AGENTS);
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
