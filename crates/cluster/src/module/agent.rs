//! The agent of a consensus module: moves messages between driver, archive, files and the state machines.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use taran::{
    Action, ChannelUri, Client, ControlledFragmentAssembler, ExclusivePublication,
    FragmentAssembler, ImageControlledFragmentAssembler, ImageHandlers, Now, OfferError, Pending,
    Subscription,
};
use taran_archive_client::{ArchiveConnection, Call};
use taran_core::agent::{Agent, AgentEnd};
use taran_storage::DiskError;

use super::config::{ClusterConfig, ClusterConfigError};
use super::counters::ModuleCounters;
use super::egress::{Io, append, append_message};
use super::files::StateFiles;
use super::log::Log;
use super::remote::Leader;
use super::replicated::{EntryError, ModuleState, Replicated};
use super::snapshot::SnapshotRecorder;
use crate::consensus::{
    Consensus, Decision, Fault, LogCommand, LogEvent, MemberId, Nanos, RecoveryError, Role, State,
    StopReason, Write,
};
use crate::files::{EntryKind, RecordingLogEntry};
use crate::protocol::{
    AdminRequestType, AdminResponse, AdminResponseCode, ClusterAction, ClusterActionRequest,
    ClusterTimeUnit, ConsensusMessage, Context, EgressMessage, IngressMessage, LogMessage,
    NewLeadershipTermEvent, SESSION_HEADER_LENGTH, SessionMessageHeader, TimerEvent, split,
};
use crate::service::{Service, SnapshotWriter};
use crate::state::{AcceptAll, Authenticator, Leadership, ModuleSnapshot};

/// Interval of the slow tick.
const SLOW_TICK: Nanos = 10_000_000;
/// Consensus messages per duty cycle.
const CONSENSUS_LIMIT: usize = 10;
/// Timers and messages of services per duty cycle.
const SERVICE_LIMIT: usize = 20;
/// Length of a NewLeadershipTermEvent and of a ClusterActionRequest in the log.
const ACTION_LENGTH: i64 = 96;

/// Values of the control toggle.
pub(super) mod toggle {
    pub(crate) const INACTIVE: i64 = 0;
    pub(crate) const NEUTRAL: i64 = 1;
    pub(crate) const SUSPEND: i64 = 2;
    pub(crate) const RESUME: i64 = 3;
    pub(crate) const SNAPSHOT: i64 = 4;
    pub(crate) const SHUTDOWN: i64 = 5;
    pub(crate) const ABORT: i64 = 6;
}

/// Reason why a member ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The archive is not connected any more.
    #[error("local archive is not connected")]
    ArchiveLost,
    /// The driver is not there any more, or the client was closed.
    #[error("the driver is lost: {0}")]
    DriverLost(String),
    /// A file cannot be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The configuration is no cluster.
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    /// The recovered state contradicts itself.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// An entry of the log cannot be applied.
    #[error("{0}")]
    Entry(String),
    /// The log publication cannot be written any more.
    #[error("the log cannot be written: {0}")]
    Log(OfferError),
    /// The consensus core has stopped.
    #[error("the member stops: {0:?}")]
    Stopped(StopReason),
}

impl From<EntryError> for ModuleError {
    fn from(error: EntryError) -> Self {
        Self::Entry(error.to_string())
    }
}

/// Publication to another member.
enum Peer {
    Adding(Pending<ExclusivePublication>),
    Ready(Box<ExclusivePublication>),
    Failed { retry: Nanos },
}

/// Ingress subscriptions, with a channel of the images that are gone.
struct Ingress {
    subscriptions: Vec<(Subscription, ControlledFragmentAssembler)>,
    pending: Vec<Pending<Subscription>>,
    gone: Receiver<i64>,
}

/// Parts of an agent.
pub(super) struct Parts<S> {
    pub(super) config: Arc<ClusterConfig>,
    pub(super) client: Client,
    pub(super) archive: ArchiveConnection,
    pub(super) core: Consensus,
    pub(super) log: Log,
    pub(super) files: StateFiles,
    pub(super) replicated: Replicated<S>,
    pub(super) consensus: Subscription,
    pub(super) counters: ModuleCounters,
    pub(super) authenticator: Box<dyn Authenticator>,
    pub(super) on_error: Box<dyn FnMut(&str) + Send>,
}

/// The agent.
pub(super) struct ModuleAgent<S> {
    config: Arc<ClusterConfig>,
    ingress_endpoints: String,
    name: String,
    client: Client,
    archive: ArchiveConnection,
    core: Consensus,
    log: Log,
    log_assembler: ImageControlledFragmentAssembler,
    files: StateFiles,
    replicated: Replicated<S>,
    consensus: Subscription,
    consensus_assembler: FragmentAssembler,
    peers: HashMap<MemberId, Peer>,
    ingress: Option<Ingress>,
    counters: ModuleCounters,
    authenticator: Box<dyn Authenticator>,
    on_error: Box<dyn FnMut(&str) + Send>,
    writes: VecDeque<(u64, Write)>,
    truncation: Option<Call<i64>>,
    term_event: Option<(i64, i64)>,
    snapshot: Option<(SnapshotRecorder, super::replicated::SnapshotDue)>,
    termination: Option<i64>,
    is_startup: bool,
    slow_tick: Nanos,
    now: Now,
    last_timestamp: i64,
    buffer: Vec<u8>,
}

impl<S: Service> ModuleAgent<S> {
    pub(super) fn new(parts: Parts<S>) -> Self {
        let Parts {
            config,
            client,
            archive,
            core,
            log,
            files,
            replicated,
            consensus,
            counters,
            authenticator,
            on_error,
        } = parts;
        Self {
            ingress_endpoints: config.members.ingress_endpoints(),
            name: format!(
                "consensus-module-{}-{}",
                config.cluster_id, config.member_id
            ),
            config,
            client,
            archive,
            core,
            log,
            log_assembler: ImageControlledFragmentAssembler::new(),
            files,
            replicated,
            consensus,
            consensus_assembler: FragmentAssembler::new(),
            peers: HashMap::new(),
            ingress: None,
            counters,
            authenticator,
            on_error,
            writes: VecDeque::new(),
            truncation: None,
            term_event: None,
            snapshot: None,
            termination: None,
            is_startup: true,
            slow_tick: Nanos::MIN,
            now: Now {
                nanos: 0,
                epoch_millis: 0,
            },
            last_timestamp: 0,
            buffer: vec![0; 4096],
        }
    }

    fn error(&mut self, text: &str) {
        self.counters.errors.increment();
        (self.on_error)(text);
    }

    /// Returns the time for an entry: that of the clock, and never before that of the entry before.
    fn timestamp(&mut self) -> i64 {
        let millis = self.now.epoch_millis;
        let time = match self.config.time_unit {
            ClusterTimeUnit::NANOS => millis.saturating_mul(1_000_000),
            ClusterTimeUnit::MICROS => millis.saturating_mul(1_000),
            _ => millis,
        };
        self.last_timestamp = self.last_timestamp.max(time).max(self.replicated.timestamp);
        self.last_timestamp
    }

    fn leadership(&mut self) -> Leadership<'static> {
        Leadership {
            now: self.now.nanos,
            now_ms: self.now.epoch_millis,
            timestamp: self.timestamp(),
            term: self.core.term().unwrap_or(-1),
            leader: self.core.leader().unwrap_or(-1),
            ingress_endpoints: "",
            heartbeat_timeout: self.config.timing.heartbeat_timeout,
        }
    }

    fn is_leading(&self) -> bool {
        self.core.role() == Role::Leader && self.core.state() == State::Closed
    }

    /// Returns true if the leader takes entries of clients, timers and services.
    fn takes_entries(&self) -> bool {
        self.replicated.state == ModuleState::Active && self.core.accepts_entries(self.now.nanos)
    }

    fn cycle(&mut self) -> Result<usize, ModuleError> {
        let now = self.now.nanos;
        let mut work = self.archive.poll(now);
        if !self.archive.is_connected() {
            return Err(ModuleError::ArchiveLost);
        }
        if let Some(reason) = self.client.close_reason() {
            return Err(ModuleError::DriverLost(format!("{reason:?}")));
        }
        while self.archive.next_event().is_some() {}
        work += self.poll_consensus()?;
        work += self.poll_log()?;
        self.core.tick(now);
        work += self.decide()?;
        work += self.write()?;
        self.append_term_event()?;
        if self.takes_entries() {
            work += self.fire_timers()?;
            work += self.append_service_messages()?;
        }
        work += self.poll_ingress()?;
        work += self.consume()?;
        work += self.take_snapshot()?;
        work += self.replicated.service.do_background_work();
        if now >= self.slow_tick {
            self.slow_tick = now + SLOW_TICK;
            self.tick_slowly()?;
        }
        work += self.decide()?;
        Ok(work)
    }

    // --- consensus ---

    fn poll_consensus(&mut self) -> Result<usize, ModuleError> {
        let Self {
            consensus,
            consensus_assembler,
            core,
            log,
            config,
            now,
            ..
        } = self;
        let (me, now) = (config.member_id, now.nanos);
        let mut malformed = 0_u64;
        let mut termination = None;
        let polled = consensus.poll(
            consensus_assembler.wrap(|bytes: &[u8], _: &taran::Header<'_>| {
                let message = match ConsensusMessage::decode(bytes) {
                    Ok(message) => message,
                    Err(crate::protocol::MessageError::UnexpectedTemplate { .. }) => return,
                    Err(_) => {
                        malformed += 1;
                        return;
                    }
                };
                match message {
                    ConsensusMessage::CatchupPosition(request) => log
                        .set_catchup_endpoint(request.follower_member_id, request.catchup_endpoint),
                    ConsensusMessage::TerminationPosition(it)
                        if core.role() == Role::Follower
                            && core.term() == Some(it.leadership_term_id) =>
                    {
                        termination = Some(it.log_position);
                    }
                    _ => {}
                }
                let Some((from, received)) = message.consensus(me, core.leader()) else {
                    return;
                };
                core.receive(now, from, &received);
                if let ConsensusMessage::NewLeadershipTerm(announced) = message
                    && core.role() == Role::Follower
                    && core.leader() == Some(from)
                    && core.term() == Some(announced.leadership_term_id)
                {
                    log.set_leader(Leader {
                        member_id: from,
                        log_session_id: announced.log_session_id,
                        recording_id: announced.leader_recording_id,
                    });
                    log.approach(announced.log_position);
                }
                if let ConsensusMessage::CommitPosition(commit) = message
                    && core.leader() == Some(from)
                {
                    log.approach(commit.log_position);
                }
            }),
            CONSENSUS_LIMIT,
        );
        self.termination = self.termination.or(termination);
        if malformed > 0 {
            self.error(&format!("{malformed} consensus messages cannot be read"));
        }
        polled.map_err(|error| ModuleError::DriverLost(error.to_string()))
    }

    fn send(&mut self, to: MemberId, message: &crate::consensus::Message) {
        let now = self.now.nanos;
        let context = Context {
            recording_id: self.log.params().recording_id,
            timestamp: self.timestamp(),
            log_session_id: self.log.session_id().unwrap_or(0),
            app_version: self.config.app_version,
            is_startup: false,
            catchup_endpoint: &self.config.own().catchup,
        };
        let message = ConsensusMessage::new(message, self.config.member_id, to, &context);
        let Ok(length) = message.encode(&mut self.buffer) else {
            return;
        };
        let peer = self.peers.remove(&to);
        let peer = match peer {
            None => self.connect_peer(to),
            Some(Peer::Failed { retry }) if now >= retry => self.connect_peer(to),
            Some(peer) => peer,
        };
        let peer = match peer {
            Peer::Adding(mut pending) => match pending.poll() {
                None => Peer::Adding(pending),
                Some(Ok(publication)) => Peer::Ready(Box::new(publication)),
                Some(Err(error)) => {
                    self.error(&format!("no publication to member {to}: {error}"));
                    Peer::Failed {
                        retry: now + self.config.timing.heartbeat_timeout,
                    }
                }
            },
            peer => peer,
        };
        let mut peer = peer;
        if let Peer::Ready(publication) = &mut peer {
            // A message that is lost is repeated by its sender.
            let _ = (0..3).any(|_| publication.offer(&self.buffer[..length]).is_ok());
        }
        self.peers.insert(to, peer);
    }

    fn connect_peer(&self, to: MemberId) -> Peer {
        let failed = Peer::Failed {
            retry: self.now.nanos + self.config.timing.heartbeat_timeout,
        };
        let Some(member) = self.config.members.get(to) else {
            return failed;
        };
        let uri = ChannelUri::parse(&self.config.consensus_channel)
            .and_then(|uri| uri.with("endpoint", &member.consensus));
        let Ok(uri) = uri else {
            return failed;
        };
        self.client
            .async_add_exclusive_publication(uri.as_str(), self.config.consensus_stream_id)
            .map_or(failed, Peer::Adding)
    }

    fn poll_log(&mut self) -> Result<usize, ModuleError> {
        let mut work = 0;
        let now = self.now.nanos;
        while let Some(event) = self.log.poll(&mut self.archive, now) {
            self.core.on_log(now, event);
            work += 1;
            self.decide()?;
        }
        while let Some(error) = self.log.next_error() {
            self.error(&error.to_string());
        }
        Ok(work)
    }

    fn decide(&mut self) -> Result<usize, ModuleError> {
        let mut work = 0;
        while let Some(decision) = self.core.poll_decision() {
            work += 1;
            match decision {
                Decision::Send { to, message } => self.send(to, &message),
                Decision::Persist { sequence, write } => self.writes.push_back((sequence, write)),
                Decision::Log(command) => {
                    if let LogCommand::AppendTermEvent { term, base } = command {
                        self.term_event = Some((term, base));
                    }
                    if let LogCommand::Record { .. } = command {
                        // Services join the log as leader once they have consumed what came before, so that the answers to
                        // messages that are replayed are not sent again.
                        self.take_role(Role::Leader);
                    }
                    let now = self.now.nanos;
                    self.log.execute(command, &mut self.archive, now);
                }
                Decision::Commit { position } => self.on_commit(position),
                Decision::State(state) => self.on_state(state)?,
                Decision::Role(role) => {
                    self.counters.role.set(role as i64);
                    if role != Role::Leader {
                        self.take_role(role);
                    }
                }
                Decision::Fault(fault) => self.on_fault(fault),
                Decision::Stop(reason) => return Err(ModuleError::Stopped(reason)),
            }
        }
        Ok(work)
    }

    /// Changes the role that the service sees.
    fn take_role(&mut self, role: Role) {
        if self.replicated.role != role {
            self.replicated.role = role;
            self.replicated.service.on_role_change(role);
        }
    }

    fn on_fault(&mut self, fault: Fault) {
        self.error(&format!("WARN - election: {fault:?}"));
    }

    fn on_commit(&mut self, position: i64) {
        if self.is_leading() {
            self.counters.commit.set(position);
            self.replicated.sessions.on_committed(position);
            self.replicated.timers.on_committed(position);
            self.replicated.pending.on_committed(position);
        }
    }

    fn on_state(&mut self, state: State) -> Result<(), ModuleError> {
        self.counters.election_state.set(state as i64);
        match state {
            State::Init => {
                self.counters.toggle.set(toggle::INACTIVE);
                self.counters.elections.increment();
                self.ingress = None;
                self.term_event = None;
                self.replicated.own_base = None;
                self.log_assembler = ImageControlledFragmentAssembler::new();
                let commit = self.core.commit_position();
                let leadership = self.leadership();
                let Self {
                    replicated,
                    client,
                    buffer,
                    ..
                } = self;
                let mut io = Io {
                    client,
                    egress: &mut replicated.egress,
                    publication: None,
                    buffer,
                    failure: &mut None,
                };
                replicated
                    .sessions
                    .end_leadership(&leadership, commit, &mut io);
                replicated.timers.roll_back();
                replicated.pending.roll_back();
            }
            State::Closed => self.close_election()?,
            _ => {}
        }
        Ok(())
    }

    fn close_election(&mut self) -> Result<(), ModuleError> {
        self.counters.term.set(self.core.term().unwrap_or(-1));
        let is_leader = self.core.role() == Role::Leader;
        if is_leader {
            self.counters.toggle.set(toggle::NEUTRAL);
            let (now, is_startup) = (self.now.nanos, self.is_startup);
            let Self {
                replicated,
                client,
                buffer,
                ..
            } = self;
            let mut io = Io {
                client,
                egress: &mut replicated.egress,
                publication: None,
                buffer,
                failure: &mut None,
            };
            replicated
                .sessions
                .begin_leadership(now, is_startup, &mut io);
        }
        self.is_startup = false;
        self.connect_ingress(is_leader)
    }

    fn connect_ingress(&mut self, is_leader: bool) -> Result<(), ModuleError> {
        let (gone_sender, gone) = channel();
        let mut pending = Vec::new();
        let uri = ChannelUri::parse(&self.config.ingress_channel);
        let has_endpoint = uri
            .as_ref()
            .is_ok_and(|uri| uri.get(taran::Param::Endpoint).is_some());
        let uri = uri.and_then(|uri| {
            let uri = if has_endpoint {
                uri
            } else {
                uri.with("endpoint", &self.config.own().ingress)?
            };
            uri.with("rejoin", "false")?.with("reliable", "true")
        });
        let mut channels = Vec::new();
        match uri {
            Ok(uri) => channels.push(uri.as_str().to_owned()),
            Err(error) => self.error(&error.to_string()),
        }
        if is_leader && self.config.ingress_ipc_allowed {
            channels.push("aeron:ipc".to_owned());
        }
        for channel in channels {
            let handlers = image_handlers(gone_sender.clone());
            let stream = self.config.ingress_stream_id;
            match self
                .client
                .async_add_subscription_with(&channel, stream, handlers)
            {
                Ok(subscription) => pending.push(subscription),
                Err(error) => self.error(&format!("cannot subscribe to {channel}: {error}")),
            }
        }
        self.ingress = Some(Ingress {
            subscriptions: Vec::new(),
            pending,
            gone,
        });
        Ok(())
    }

    // --- files ---

    fn write(&mut self) -> Result<usize, ModuleError> {
        let now = self.now.nanos;
        let mut work = 0;
        while let Some((sequence, write)) = self.writes.front().copied() {
            if !self.write_one(write)? {
                break;
            }
            self.writes.pop_front();
            self.core.on_durable(now, sequence);
            work += 1;
        }
        if work > 0 {
            self.decide()?;
        }
        Ok(work)
    }

    /// Returns true if the write is complete.
    fn write_one(&mut self, write: Write) -> Result<bool, ModuleError> {
        let (now_ms, append) = (self.now.epoch_millis, self.log.append_position());
        let timestamp = self.timestamp();
        match write {
            Write::CandidateTerm(term) => {
                self.files.set_candidate_term(term, now_ms, append)?;
                Ok(true)
            }
            Write::Term { term, base } => {
                let recording_id = self.log.params().recording_id;
                self.files
                    .change(|log| log.append_term(recording_id, term, base, timestamp))?;
                Ok(true)
            }
            Write::Truncate {
                position,
                from_term,
            } => {
                let recording_id = self.log.params().recording_id;
                if append <= position {
                    self.files.change(|log| log.truncate(position, from_term))?;
                    return Ok(true);
                }
                if self.truncation.is_none() {
                    drop(self.archive.stop_all_replays(Some(recording_id)));
                }
                let archive = &mut self.archive;
                let call = self
                    .truncation
                    .get_or_insert_with(|| archive.truncate_recording(recording_id, position));
                let Some(result) = call.poll() else {
                    return Ok(false);
                };
                self.truncation = None;
                match result {
                    Ok(_) => {
                        self.log.on_truncated(position);
                        self.files.change(|log| log.truncate(position, from_term))?;
                        Ok(true)
                    }
                    Err(error) => {
                        // A replay may still be ending: the request is repeated.
                        self.error(&format!(
                            "the log cannot be truncated to {position}: {error}"
                        ));
                        Ok(false)
                    }
                }
            }
        }
    }

    // --- the leader's log ---

    fn append_term_event(&mut self) -> Result<(), ModuleError> {
        let Some((term, base)) = self.term_event else {
            return Ok(());
        };
        let event = NewLeadershipTermEvent {
            leadership_term_id: term,
            log_position: base + ACTION_LENGTH,
            timestamp: self.timestamp(),
            term_base_log_position: base,
            leader_member_id: self.config.member_id,
            log_session_id: self.log.session_id().unwrap_or(0),
            time_unit: Some(self.config.time_unit),
            app_version: Some(self.config.app_version),
        };
        let Some(publication) = self.log.publication() else {
            return Ok(());
        };
        let message = LogMessage::NewLeadershipTermEvent(event);
        let appended = append_message(publication, &message, &mut self.buffer);
        if appended.map_err(ModuleError::Log)?.is_some() {
            self.term_event = None;
            self.replicated.own_base = Some(base + ACTION_LENGTH);
        }
        Ok(())
    }

    fn fire_timers(&mut self) -> Result<usize, ModuleError> {
        let timestamp = self.timestamp();
        let Some(term) = self.core.term() else {
            return Ok(0);
        };
        let Self {
            replicated,
            log,
            buffer,
            ..
        } = self;
        let mut fired = 0;
        while fired < SERVICE_LIMIT
            && let Some(id) = replicated.timers.due(timestamp)
            && let Some(publication) = log.publication()
        {
            let event = LogMessage::TimerEvent(TimerEvent {
                leadership_term_id: term,
                correlation_id: id,
                timestamp,
            });
            let appended = append_message(publication, &event, buffer);
            let Some(position) = appended.map_err(ModuleError::Log)? else {
                break;
            };
            replicated.timers.fired(id, position);
            fired += 1;
        }
        Ok(fired)
    }

    fn append_service_messages(&mut self) -> Result<usize, ModuleError> {
        let timestamp = self.timestamp();
        let Some(term) = self.core.term() else {
            return Ok(0);
        };
        let Self {
            replicated, log, ..
        } = self;
        let mut count = 0;
        while count < SERVICE_LIMIT
            && let Some(message) = replicated.pending.next()
            && let Some(publication) = log.publication()
        {
            let header = header(term, message.id, timestamp);
            let appended = append(publication, &[&header, &message.payload]);
            let Some(position) = appended.map_err(ModuleError::Log)? else {
                break;
            };
            replicated.pending.appended(position);
            count += 1;
        }
        Ok(count)
    }

    fn poll_ingress(&mut self) -> Result<usize, ModuleError> {
        let takes_entries = self.takes_entries();
        let is_leader = self.is_leading();
        let is_follower = self.core.role() == Role::Follower && self.core.state() == State::Closed;
        if !(takes_entries || is_follower) {
            return Ok(0);
        }
        let mut leadership = self.leadership();
        let Self {
            ingress,
            replicated,
            log,
            client,
            buffer,
            authenticator,
            config,
            ingress_endpoints,
            counters,
            ..
        } = self;
        leadership.ingress_endpoints = ingress_endpoints;
        let Some(ingress) = ingress else {
            return Ok(0);
        };
        ingress.pending.retain_mut(|pending| match pending.poll() {
            None => true,
            Some(Ok(subscription)) => {
                let assembler = ControlledFragmentAssembler::new();
                ingress.subscriptions.push((subscription, assembler));
                false
            }
            Some(Err(_)) => {
                counters.errors.increment();
                false
            }
        });
        let mut failure = None;
        let mut fragments = 0;
        for (subscription, assembler) in &mut ingress.subscriptions {
            let handler = |bytes: &[u8], header: &taran::Header<'_>| {
                let mut request = IngressRequest {
                    leadership: &leadership,
                    is_leader,
                    replicated,
                    log,
                    client,
                    buffer,
                    authenticator: &mut **authenticator,
                    toggle: &counters.toggle,
                    failure: &mut failure,
                };
                request.take(bytes, header.image().correlation_id())
            };
            let polled = subscription
                .controlled_poll(assembler.wrap(handler), config.ingress_fragment_limit);
            fragments += polled.map_err(|error| ModuleError::DriverLost(error.to_string()))?;
        }
        match failure {
            Some(error) => Err(ModuleError::Log(error)),
            None => Ok(fragments),
        }
    }

    // --- consumption ---

    fn consume(&mut self) -> Result<usize, ModuleError> {
        if self.snapshot.is_some() || self.replicated.snapshot_due.is_some() {
            return Ok(0);
        }
        let commit = self.core.commit_position();
        let Self {
            log,
            log_assembler,
            replicated,
            config,
            core,
            now,
            counters,
            ..
        } = self;
        let Some((image, end)) = log.image() else {
            return Ok(0);
        };
        let limit = commit.min(end);
        let handler = |bytes: &[u8], header: &taran::Header<'_>| {
            replicated.on_entry(bytes, header.position())
        };
        let fragments = image.bounded_controlled_poll(
            log_assembler.wrap(handler),
            limit,
            config.log_fragment_limit,
        );
        let position = image.view().position();
        if fragments > 0 || position > replicated.position {
            // Padding counts as consumed.
            replicated.position = replicated.position.max(position);
            if core.role() != Role::Leader {
                counters.commit.set(position);
            }
            log.on_consumed(position);
            core.on_log(now.nanos, LogEvent::Consumed { position });
        }
        if let Some(error) = self.replicated.failure.take() {
            return Err(error.into());
        }
        if let Some(termination) = self.termination
            && self.replicated.position >= termination
            && self.snapshot.is_none()
            && self.replicated.snapshot_due.is_none()
            && self.replicated.state != ModuleState::Closed
        {
            self.replicated.state = ModuleState::Terminating;
        }
        Ok(fragments)
    }

    // --- snapshots ---

    fn take_snapshot(&mut self) -> Result<usize, ModuleError> {
        if self.snapshot.is_none()
            && let Some(due) = self.replicated.snapshot_due
        {
            let identity = ModuleSnapshot {
                log_position: due.log_position,
                term: due.term,
                time_unit: self.config.time_unit,
                app_version: self.config.app_version,
            };
            let mut writer = SnapshotWriter::new();
            self.replicated
                .with_service(|service, cluster| service.on_take_snapshot(cluster, &mut writer));
            let replicated = &self.replicated;
            let clients =
                replicated
                    .clients
                    .values()
                    .map(|session| crate::protocol::ClientSession {
                        cluster_session_id: session.id,
                        response_stream_id: session.response_stream_id,
                        response_channel: &session.response_channel,
                        encoded_principal: &session.principal,
                    });
            let mut service = identity.service_frames(clients);
            service.extend(writer.into_frames());
            let module = identity.module_frames(
                &replicated.sessions,
                &replicated.timers,
                std::slice::from_ref(&replicated.pending),
            );
            let parts = vec![
                (0, self.config.service_snapshot_stream_id, service),
                (-1, self.config.module_snapshot_stream_id, module),
            ];
            self.snapshot = Some((SnapshotRecorder::new(parts, self.now.nanos), due));
        }
        let Some((recorder, due)) = &mut self.snapshot else {
            return Ok(0);
        };
        let due = *due;
        let now = self.now.nanos;
        match recorder.poll(&self.client, &self.config, &mut self.archive, now) {
            Ok(None) => return Ok(0),
            Ok(Some(recordings)) => {
                let terms = self.core.terms();
                let base = terms.get(due.term).map_or(0, |entry| entry.base);
                for (service_id, recording_id) in recordings {
                    let entry = RecordingLogEntry {
                        recording_id,
                        leadership_term_id: due.term,
                        term_base_log_position: base,
                        log_position: due.log_position,
                        timestamp: due.timestamp,
                        service_id,
                        kind: EntryKind::Snapshot,
                        is_valid: true,
                        archive_endpoint: String::new(),
                    };
                    self.files.change(|log| vec![log.append_snapshot(entry)])?;
                }
                self.counters.snapshots.increment();
            }
            Err(error) => self.error(&format!("failed to take snapshot: {error}")),
        }
        self.snapshot = None;
        self.replicated.snapshot_due = None;
        self.replicated.state = ModuleState::Active;
        if self.is_leading() && self.counters.toggle.get() == toggle::SNAPSHOT {
            self.counters.toggle.set(toggle::NEUTRAL);
        }
        Ok(1)
    }

    // --- slow tick ---

    fn tick_slowly(&mut self) -> Result<(), ModuleError> {
        self.replicated.egress.poll();
        if let Some(ingress) = &self.ingress {
            while let Ok(image) = ingress.gone.try_recv() {
                if self.core.role() == Role::Leader {
                    self.replicated.sessions.on_image_gone(image);
                }
            }
        }
        let is_leader = self.takes_entries();
        if self.core.state() == State::Closed {
            let mut leadership = self.leadership();
            let Self {
                replicated,
                log,
                client,
                buffer,
                authenticator,
                ingress_endpoints,
                ..
            } = self;
            leadership.ingress_endpoints = ingress_endpoints;
            let mut failure = None;
            let mut io = Io {
                client,
                egress: &mut replicated.egress,
                publication: log.publication(),
                buffer,
                failure: &mut failure,
            };
            replicated
                .sessions
                .step(&leadership, is_leader, &mut **authenticator, &mut io);
            if let Some(error) = failure {
                return Err(ModuleError::Log(error));
            }
        }
        if self.is_leading() {
            self.check_toggle()?;
        }
        self.counters.state.set(self.replicated.state as i64);
        let timed_out = self.replicated.sessions.timed_out();
        self.counters
            .timed_out
            .set(i64::try_from(timed_out).unwrap_or(i64::MAX));
        Ok(())
    }

    fn check_toggle(&mut self) -> Result<(), ModuleError> {
        let value = self.counters.toggle.get();
        let is_active = self.replicated.state == ModuleState::Active;
        let is_suspended = self.replicated.state == ModuleState::Suspended;
        let is_ending = self.termination.is_some();
        if value == toggle::SUSPEND && is_active {
            if self.append_action(ClusterAction::SUSPEND)? {
                self.replicated.state = ModuleState::Suspended;
            }
        } else if value == toggle::RESUME {
            if !is_suspended {
                self.counters.toggle.set(toggle::NEUTRAL);
            } else if self.append_action(ClusterAction::RESUME)? {
                self.replicated.state = ModuleState::Active;
                self.counters.toggle.set(toggle::NEUTRAL);
            }
        } else if value == toggle::SNAPSHOT && is_active {
            if self.append_action(ClusterAction::SNAPSHOT)? {
                self.replicated.state = ModuleState::Snapshot;
            }
        } else if value == toggle::SHUTDOWN && is_active && !is_ending {
            if self.append_action(ClusterAction::SNAPSHOT)? {
                self.replicated.state = ModuleState::Snapshot;
                self.terminate_all();
            }
        } else if value == toggle::ABORT && is_active && !is_ending {
            self.terminate_all();
        }
        Ok(())
    }

    /// Tells all members to end at the end of the log.
    fn terminate_all(&mut self) {
        let Some(publication) = self.log.publication() else {
            return;
        };
        let log_position = publication.position();
        self.termination = Some(log_position);
        let message = ConsensusMessage::TerminationPosition(crate::protocol::TerminationPosition {
            leadership_term_id: self.core.term().unwrap_or(-1),
            log_position,
        });
        let Ok(length) = message.encode(&mut self.buffer) else {
            return;
        };
        for peer in self.peers.values_mut() {
            if let Peer::Ready(publication) = peer {
                let _ = (0..3).any(|_| publication.offer(&self.buffer[..length]).is_ok());
            }
        }
    }

    /// Appends an action for all members. Returns false if there is no room now.
    fn append_action(&mut self, action: ClusterAction) -> Result<bool, ModuleError> {
        let timestamp = self.timestamp();
        let term = self.core.term().unwrap_or(-1);
        let Some(publication) = self.log.publication() else {
            return Ok(false);
        };
        for _ in 0..3 {
            let message = LogMessage::ClusterActionRequest(ClusterActionRequest {
                leadership_term_id: term,
                log_position: publication.position() + ACTION_LENGTH,
                timestamp,
                action,
                flags: Some(0),
            });
            let Ok(length) = message.encode(&mut self.buffer) else {
                return Ok(false);
            };
            match publication.offer(&self.buffer[..length]) {
                Ok(_) => return Ok(true),
                // The position is that of the next term now.
                Err(OfferError::AdminAction) => {}
                Err(error) if error.is_retryable() => return Ok(false),
                Err(error) => return Err(ModuleError::Log(error)),
            }
        }
        Ok(false)
    }
}

fn image_handlers(gone: Sender<i64>) -> ImageHandlers {
    ImageHandlers::new().on_unavailable(move |image| {
        // The agent may have left this ingress already.
        let _ = gone.send(image.correlation_id());
    })
}

fn header(term: i64, session: i64, timestamp: i64) -> [u8; SESSION_HEADER_LENGTH] {
    let header = SessionMessageHeader {
        leadership_term_id: term,
        cluster_session_id: session,
        timestamp,
    };
    let mut bytes = [0; SESSION_HEADER_LENGTH];
    // The buffer has the length of the header.
    let _ = header.encode(&mut bytes);
    bytes
}

/// A request of a client.
struct IngressRequest<'a, S> {
    leadership: &'a Leadership<'a>,
    is_leader: bool,
    replicated: &'a mut Replicated<S>,
    log: &'a mut Log,
    client: &'a Client,
    buffer: &'a mut Vec<u8>,
    authenticator: &'a mut dyn Authenticator,
    toggle: &'a taran::Counter,
    failure: &'a mut Option<OfferError>,
}

impl<S: Service> IngressRequest<'_, S> {
    fn take(&mut self, bytes: &[u8], image: i64) -> Action {
        if let Ok((header, payload)) = split(bytes) {
            return self.message(&header, payload);
        }
        let Ok(message) = IngressMessage::decode(bytes) else {
            return Action::Continue;
        };
        let Replicated {
            sessions, egress, ..
        } = self.replicated;
        let mut io = Io {
            client: self.client,
            egress,
            publication: self.log.publication(),
            buffer: self.buffer,
            failure: self.failure,
        };
        match message {
            IngressMessage::SessionConnectRequest(request) => {
                sessions.on_connect_request(
                    self.leadership,
                    self.is_leader,
                    &request,
                    image,
                    self.authenticator,
                    &mut io,
                );
            }
            _ if !self.is_leader => {}
            IngressMessage::SessionKeepAlive(it) => sessions.on_keep_alive(
                self.leadership,
                it.leadership_term_id,
                it.cluster_session_id,
                image,
            ),
            IngressMessage::SessionCloseRequest(it) => sessions.on_close_request(
                self.leadership,
                it.leadership_term_id,
                it.cluster_session_id,
                &mut io,
            ),
            IngressMessage::ChallengeResponse(response) => {
                sessions.on_challenge_response(self.leadership, &response, self.authenticator);
            }
            IngressMessage::AdminRequest(request) => {
                let (term, id) = (request.leadership_term_id, request.cluster_session_id);
                if let Some(session) = sessions.admin(self.leadership, term, id) {
                    let is_snapshot = request.request_type == AdminRequestType::SNAPSHOT;
                    let unknown = format!("Unknown request type: {}", request.request_type);
                    let text = if is_snapshot {
                        "Execution of the SNAPSHOT request was not authorised"
                    } else {
                        &unknown
                    };
                    let response = AdminResponse {
                        cluster_session_id: id,
                        correlation_id: request.correlation_id,
                        request_type: request.request_type,
                        // No authorisation service can be set yet; the default one denies.
                        response_code: if is_snapshot {
                            AdminResponseCode::UnauthorisedAccess
                        } else {
                            AdminResponseCode::ERROR
                        },
                        message: text,
                        payload: &[],
                    };
                    use crate::state::SessionIo as _;
                    io.send(session.handle, &EgressMessage::AdminResponse(response));
                }
            }
            IngressMessage::SessionMessageHeader(_) => {}
        }
        let _ = self.toggle;
        Action::Continue
    }

    fn message(&mut self, received: &SessionMessageHeader, payload: &[u8]) -> Action {
        let id = received.cluster_session_id;
        let sessions = &mut self.replicated.sessions;
        if !self.is_leader || !sessions.accepts(self.leadership, received.leadership_term_id, id) {
            return Action::Continue;
        }
        let Some(publication) = self.log.publication() else {
            return Action::Abort;
        };
        let header = header(self.leadership.term, id, self.leadership.timestamp);
        match append(publication, &[&header, payload]) {
            Ok(Some(_)) => {
                sessions.touch(self.leadership.now, id);
                Action::Continue
            }
            Ok(None) => Action::Abort,
            Err(OfferError::TooLong { .. }) => Action::Continue,
            Err(error) => {
                *self.failure = Some(error);
                Action::Break
            }
        }
    }
}

impl<S: Service> Agent for ModuleAgent<S> {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        self.now = now;
        let work = self.cycle().map_err(AgentEnd::failed)?;
        if self.replicated.state == ModuleState::Terminating {
            self.replicated.state = ModuleState::Closed;
            self.replicated.service.on_terminate();
            self.counters.state.set(ModuleState::Closed as i64);
            return Err(AgentEnd::Finished);
        }
        Ok(work)
    }

    fn role_name(&self) -> &str {
        &self.name
    }

    fn on_close(&mut self) {
        self.ingress = None;
        self.counters.state.set(ModuleState::Closed as i64);
        let recording_id = self.log.params().recording_id;
        let now = self.now.nanos;
        self.log.execute(
            LogCommand::Release { ends_stream: true },
            &mut self.archive,
            now,
        );
        drop(self.archive.stop_recording_by_identity(recording_id));
    }
}

/// Returns the default authenticator.
pub(super) fn accept_all() -> Box<dyn Authenticator> {
    Box::new(AcceptAll)
}
