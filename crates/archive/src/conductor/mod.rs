// SPDX-License-Identifier: Apache-2.0
//! The conductor: control sessions, the catalog, and what recorder and replayer are told (`docs/spec/archive.md` §1, §2).
//!
//! Nothing here waits: commands to the driver are [`Pending`](taran::Pending) until they are answered, changes of the
//! catalog are tickets until they are applied, files are touched through a disk queue.

mod attachment;
mod catalog_store;
mod connect;
mod deletion;
mod dispatch;
mod listing;
mod migration;
mod recordings;
mod replays;
mod replications;
mod request;
mod retention;
mod segments;
mod stepped_store;
mod time_index;
mod truncation;
mod verification;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver as EventReceiver;

use taran::{Client, Counter, FragmentAssembler, ImageView, Subscription};
use taran_archive_client::protocol::{ControlResponseCode, ErrorCode};
use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_core::queue::{Receiver, Sender};
use taran_protocol::event::ArchiveEventCode;

pub(crate) use catalog_store::{CatalogStore, StoreStatus, ThreadedCatalogStore, Ticket};
pub(crate) use stepped_store::{SteppedStore, StoreState};

use crate::clock_steps::ClockSteps;
use crate::config::ArchiveConfig;
use crate::disk_io::DiskIo;
use crate::event_log::EventLog;
use crate::files::{Catalog, Change};
use crate::mark::MarkKeeper;
use crate::outgoing::Outgoing;
use crate::recorder::{RecorderCommand, RecorderReport};
use crate::replayer::{ReplayReport, ReplayerCommand};
use crate::security::{Authenticator, AuthorisationService};
use crate::session::{Response, Signal};
use connect::Session;
use deletion::Deletion;
use recordings::{ActiveRecording, PendingRecording, PendingSubscription, RecordingSubscription};
use replays::{ActiveReplay, PendingReplay, ReplayToken};
use replications::Replication;
use request::{Refusal, Requester};
use retention::Retention;
use time_index::TimeIndexes;
use truncation::PendingFileOperation;
use verification::Verification;

/// Fragments taken from a control stream per duty cycle.
const FRAGMENT_LIMIT: usize = 10;

/// Report of the client's conductor about an image.
#[derive(Debug)]
pub(crate) enum ImageEvent {
    /// A recording subscription has an image.
    Available {
        subscription_id: i64,
        correlation_id: i64,
    },
    /// A control subscription has lost an image.
    RequestsGone { correlation_id: i64 },
}

/// Counters of the conductor.
#[derive(Debug)]
pub(crate) struct ConductorCounters {
    pub(crate) control_sessions: Counter,
    pub(crate) recordings: Counter,
    pub(crate) replays: Counter,
    /// Recordings that wait for space.
    pub(crate) held: Counter,
    /// Purges by retention.
    pub(crate) purged: Counter,
    /// Recordings that cannot be used until the next start.
    pub(crate) unavailable: Counter,
    /// Recordings that verification has found damaged.
    pub(crate) damaged: Counter,
    /// Bytes that verification has read.
    pub(crate) verified: Counter,
}

/// A stream of requests.
#[derive(Debug)]
struct Control {
    subscription: Subscription,
    assembler: FragmentAssembler,
}

/// Parts of a conductor.
pub(crate) struct ConductorParts {
    pub(crate) config: Arc<ArchiveConfig>,
    pub(crate) archive_id: i64,
    pub(crate) client: Client,
    pub(crate) controls: Vec<Subscription>,
    pub(crate) image_events: EventReceiver<ImageEvent>,
    pub(crate) image_sender: std::sync::mpsc::Sender<ImageEvent>,
    pub(crate) catalog: Catalog,
    pub(crate) store: Box<dyn CatalogStore>,
    pub(crate) io: DiskIo,
    /// For verification in the background; `None` without it.
    pub(crate) verify_io: Option<DiskIo>,
    pub(crate) recorder: (Sender<RecorderCommand>, Receiver<RecorderReport>),
    pub(crate) replayer: (Sender<ReplayerCommand>, Receiver<ReplayReport>),
    pub(crate) counters: ConductorCounters,
    pub(crate) cycle: Option<DutyCycleTracker>,
    pub(crate) events: EventLog,
    pub(crate) errors: ErrorHandler,
    /// The counter of the error handler, which is freed with the archive; `None` if it is the driver's.
    pub(crate) error_counter: Option<Counter>,
    pub(crate) mark: Box<dyn MarkKeeper>,
    pub(crate) authenticator: Box<dyn Authenticator>,
    pub(crate) authorisation: Box<dyn AuthorisationService>,
    /// First id of sessions and replications.
    pub(crate) first_session_id: i64,
    /// Unpredictable numbers, for replay tokens; `None` if the system has none.
    pub(crate) random: Box<dyn FnMut() -> Option<i64> + Send>,
    /// Called once if the archive cannot go on.
    pub(crate) on_fatal: Box<dyn FnMut(&str) + Send>,
}

/// The agent that serves clients.
///
/// Contract: each duty cycle runs the conductor of the Aeron client, reads requests, and moves everything that waits for
/// something. Reports of recorder and replayer are read until the agent is closed, so it closes after them.
pub(crate) struct Conductor {
    controls: Vec<Control>,
    image_events: EventReceiver<ImageEvent>,
    core: ConductorCore,
}

/// All of the conductor but the streams of requests.
struct ConductorCore {
    config: Arc<ArchiveConfig>,
    archive_id: i64,
    client: Client,
    image_sender: std::sync::mpsc::Sender<ImageEvent>,
    catalog: Catalog,
    store: Box<dyn CatalogStore>,
    store_status: StoreStatus,
    io: DiskIo,
    to_recorder: Outgoing<RecorderCommand>,
    from_recorder: Receiver<RecorderReport>,
    to_replayer: Outgoing<ReplayerCommand>,
    from_replayer: Receiver<ReplayReport>,
    counters: ConductorCounters,
    cycle: Option<DutyCycleTracker>,
    events: EventLog,
    /// Length of the catalog that was logged last.
    logged_capacity: u64,
    errors: ErrorHandler,
    _error_counter: Option<Counter>,
    mark: Box<dyn MarkKeeper>,
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn AuthorisationService>,
    random: Box<dyn FnMut() -> Option<i64> + Send>,
    on_fatal: Box<dyn FnMut(&str) + Send>,
    is_fatal: bool,
    now: Now,
    next_session_id: i64,
    next_replay_id: i64,
    next_token: u64,
    sessions: HashMap<i64, Session>,
    /// Ids of recording subscriptions by recording key; -1 while the driver is asked.
    keys: HashMap<String, i64>,
    pending_subscriptions: Vec<PendingSubscription>,
    subscriptions: HashMap<i64, RecordingSubscription>,
    pending_recordings: Vec<PendingRecording>,
    recordings: HashMap<i64, ActiveRecording>,
    /// Active recordings that wait for space.
    held: HashSet<i64>,
    /// Recordings whose last writes the disk does not complete, at the end.
    abandoned: Vec<i64>,
    pending_replays: Vec<PendingReplay>,
    replays: HashMap<i64, ActiveReplay>,
    tokens: HashMap<i64, ReplayToken>,
    replications: HashMap<i64, Replication>,
    deletions: Vec<Deletion>,
    time_indexes: TimeIndexes,
    retention: Retention,
    verification: Verification,
    clock_steps: ClockSteps,
    file_operations: HashMap<u64, PendingFileOperation>,
    /// Responses and signals that wait for changes of the catalog.
    deferred: VecDeque<(Ticket, Deferred)>,
}

/// A message that waits for a change of the catalog.
#[derive(Debug)]
enum Deferred {
    Ok(Requester, i64),
    Signal(i64, Signal),
}

impl Conductor {
    /// Returns id, start and stop position of each recording that was not deleted; `None` for those that are unavailable.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> impl Iterator<Item = (i64, Option<(i64, i64)>)> {
        let catalog = &self.core.catalog;
        let entries = catalog.entries().iter();
        let valid = entries.filter(|entry| entry.state() == crate::files::EntryState::Valid);
        valid.map(|entry| {
            let id = entry.descriptor().recording_id;
            let extent =
                |found: &crate::files::Descriptor| (found.start_position, found.stop_position);
            (id, catalog.get(id).map(extent))
        })
    }

    pub(crate) fn new(parts: ConductorParts) -> Self {
        let unavailable = parts.catalog.unavailable_count();
        parts.counters.unavailable.set(unavailable as i64);
        Self {
            controls: parts
                .controls
                .into_iter()
                .map(|subscription| Control {
                    subscription,
                    assembler: FragmentAssembler::new(),
                })
                .collect(),
            image_events: parts.image_events,
            core: ConductorCore {
                config: parts.config,
                archive_id: parts.archive_id,
                client: parts.client,
                image_sender: parts.image_sender,
                logged_capacity: parts.catalog.capacity(),
                catalog: parts.catalog,
                store: parts.store,
                store_status: StoreStatus::Working,
                io: parts.io,
                to_recorder: Outgoing::new(parts.recorder.0),
                from_recorder: parts.recorder.1,
                to_replayer: Outgoing::new(parts.replayer.0),
                from_replayer: parts.replayer.1,
                counters: parts.counters,
                cycle: parts.cycle,
                events: parts.events,
                errors: parts.errors,
                _error_counter: parts.error_counter,
                mark: parts.mark,
                authenticator: parts.authenticator,
                authorisation: parts.authorisation,
                random: parts.random,
                on_fatal: parts.on_fatal,
                is_fatal: false,
                now: Now::default(),
                next_session_id: parts.first_session_id,
                next_replay_id: 1,
                next_token: 0,
                sessions: HashMap::new(),
                keys: HashMap::new(),
                pending_subscriptions: Vec::new(),
                subscriptions: HashMap::new(),
                pending_recordings: Vec::new(),
                recordings: HashMap::new(),
                held: HashSet::new(),
                abandoned: Vec::new(),
                pending_replays: Vec::new(),
                replays: HashMap::new(),
                tokens: HashMap::new(),
                replications: HashMap::new(),
                deletions: Vec::new(),
                time_indexes: TimeIndexes::default(),
                retention: Retention::default(),
                verification: Verification::new(parts.verify_io),
                clock_steps: ClockSteps::default(),
                file_operations: HashMap::new(),
                deferred: VecDeque::new(),
            },
        }
    }

    fn poll_requests(&mut self) -> usize {
        let Self { controls, core, .. } = self;
        let mut work = 0;
        for Control {
            subscription,
            assembler,
        } in controls
        {
            let handler =
                assembler.wrap(|message, header| core.on_message(message, header.image()));
            // A closed subscription means that the client is closed, which `check_client` reports.
            work += subscription.poll(handler, FRAGMENT_LIMIT).unwrap_or(0);
        }
        work
    }

    fn poll_image_events(&mut self) -> usize {
        let mut work = 0;
        while let Ok(event) = self.image_events.try_recv() {
            work += 1;
            match event {
                ImageEvent::Available {
                    subscription_id,
                    correlation_id,
                } => self
                    .core
                    .on_recording_image(subscription_id, correlation_id),
                ImageEvent::RequestsGone { correlation_id } => {
                    self.core.on_requests_gone(correlation_id);
                }
            }
        }
        work
    }
}

impl Agent for Conductor {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        let core = &mut self.core;
        core.now = now;
        if let Some(cycle) = &mut core.cycle {
            cycle.begin_cycle(now.nanos);
        }
        let mut work = core.client.do_work(now);
        core.check_client();
        core.check_wall_clock();
        core.log_catalog_length();
        core.mark.on_duty_cycle(now.epoch_millis);
        work += core.poll_pending_subscriptions();
        work += self.poll_image_events();
        work += self.poll_requests();
        let core = &mut self.core;
        work += core.poll_recorder() + core.poll_replayer();
        work += core.poll_disk();
        work += core.poll_pending_recordings() + core.poll_pending_replays();
        work += core.poll_deletions() + core.poll_time_indexes() + core.poll_retention();
        work += core.poll_verification();
        work += core.poll_replications();
        work += core.poll_deferred();
        work += core.poll_sessions();
        core.to_recorder.forward();
        core.to_replayer.forward();
        Ok(work)
    }

    fn role_name(&self) -> &str {
        "archive-conductor"
    }

    /// Takes note of the last reports, closes all sessions, and marks the archive as ended. Recorder and replayer have ended
    /// before.
    fn on_close(&mut self) {
        let core = &mut self.core;
        core.poll_recorder();
        core.poll_replayer();
        core.close_all_replications();
        core.close_all_sessions();
        let is_stored = core.store.close();
        core.check_store();
        if core.abandoned.is_empty() && is_stored {
            core.mark.on_end();
        } else {
            core.log(
                ErrorCode::Generic,
                &format!(
                    "the disk does not answer, so the archive ends without waiting for it: recordings {:?} have no stop \
                     position and are recovered at the next start; the directory stays claimed until the process ends",
                    core.abandoned
                ),
            );
            core.mark.on_abandon();
        }
        core.client.close();
    }
}

impl ConductorCore {
    // --- results ---

    fn respond(&mut self, to: Requester, result: Result<i64, Refusal>) {
        match result {
            Ok(relevant_id) => {
                self.respond_with(to, ControlResponseCode::OK, relevant_id, "");
            }
            Err(refusal) => self.refuse(to, &refusal),
        }
    }

    fn refuse(&mut self, to: Requester, refusal: &Refusal) {
        if refusal.is_logged {
            self.log(refusal.code, &refusal.text);
        }
        let code = refusal.code.raw();
        self.respond_with(to, ControlResponseCode::ERROR, code, &refusal.text);
    }

    fn respond_with(
        &mut self,
        to: Requester,
        code: ControlResponseCode,
        relevant_id: i64,
        text: &str,
    ) {
        let now_ns = self.now.nanos;
        // The results of what a closed session has started are lost.
        if let Some(session) = self.sessions.get_mut(&to.session_id) {
            let response = Response {
                correlation_id: to.correlation_id,
                relevant_id,
                code,
                text,
            };
            session.control.respond(&response, now_ns);
        }
    }

    fn signal(&mut self, session_id: i64, signal: &Signal) {
        let now_ns = self.now.nanos;
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.control.signal(signal, now_ns);
        }
    }

    /// Applies a change, then sends a message.
    fn after(&mut self, change: Change, message: Deferred) {
        let ticket = self.store.submit(change);
        self.deferred.push_back((ticket, message));
    }

    fn poll_deferred(&mut self) -> usize {
        let applied = self.store.applied();
        let mut work = 0;
        while self
            .deferred
            .front()
            .is_some_and(|(ticket, _)| *ticket <= applied)
            && let Some((_, message)) = self.deferred.pop_front()
        {
            work += 1;
            match message {
                Deferred::Ok(to, relevant_id) => self.respond(to, Ok(relevant_id)),
                Deferred::Signal(session_id, signal) => self.signal(session_id, &signal),
            }
        }
        self.check_store();
        work
    }

    fn check_store(&mut self) {
        let status = self.store.status();
        if status == self.store_status {
            return;
        }
        match &status {
            StoreStatus::Working => {}
            StoreStatus::Held(error) => {
                let text = format!("{error}; the catalog waits for space");
                self.log(ErrorCode::StorageSpace, &text);
            }
            StoreStatus::Failed(error) => {
                let text = format!("{error}; the catalog file is behind, so the archive ends");
                self.fatal(&text);
            }
        }
        self.store_status = status;
    }

    // --- errors ---

    fn log(&self, code: ErrorCode, text: &str) {
        // Codes of requests are small.
        let code = i32::try_from(code.raw()).unwrap_or(0);
        self.errors.on_error(self.now.epoch_millis, code, text);
    }

    fn fatal(&mut self, text: &str) {
        if !self.is_fatal {
            self.is_fatal = true;
            self.log(ErrorCode::Generic, text);
            (self.on_fatal)(text);
        }
    }

    fn check_wall_clock(&mut self) {
        if let Some(step_ms) = self.clock_steps.on_reading(self.now) {
            self.log(
                ErrorCode::Generic,
                &format!(
                    "the wall clock was set forward by {step_ms} ms: retention by age waits until its age has passed since then"
                ),
            );
        }
    }

    fn log_catalog_length(&mut self) {
        let capacity = self.catalog.capacity();
        if capacity != self.logged_capacity {
            let before = std::mem::replace(&mut self.logged_capacity, capacity);
            let entries = self.catalog.entries().len();
            self.events.log(
                ArchiveEventCode::CatalogResize,
                format_args!("entries={entries}, bytes={before} -> {capacity}"),
            );
        }
    }

    fn check_client(&mut self) {
        if let Some(reason) = self.client.close_reason() {
            self.fatal(&format!(
                "the archive has lost its media driver: {reason}; active recordings are recovered at the next start"
            ));
        }
    }

    fn directory(&self) -> PathBuf {
        self.config.dir.clone()
    }

    fn on_requests_gone(&mut self, correlation_id: i64) {
        // The first session of the image is the one that the official archive closes; there is one.
        let sessions = self.sessions.values_mut();
        let mut of_image =
            sessions.filter(|session| session.control.request_image() == correlation_id);
        if let Some(session) = of_image.next() {
            session
                .control
                .close(crate::session::SessionEnd::RequestsGone);
        }
    }

    fn is_own_image(&self, session_id: i64, image: &ImageView) -> bool {
        self.sessions
            .get(&session_id)
            .is_some_and(|session| session.control.request_image() == image.correlation_id())
    }
}
