// SPDX-License-Identifier: Apache-2.0
//! The agent of a consensus module: moves messages between driver, archive, files and the state machines.

mod containers;
mod control;
mod decisions;
mod entries;
mod ingress;
mod members;
mod peers;
mod snapshots;
mod stream;
mod writes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use taran::{Client, ImageControlledFragmentAssembler, Now, OfferError, Subscription};
use taran_archive_client::{ArchiveConnection, Call};
use taran_core::agent::{Agent, AgentEnd};
use taran_core::error_log::ErrorLog;

use super::config::{ClusterConfig, ClusterConfigError};
use super::containers::{Containers, ContainersError};
use super::counters::ModuleCounters;
use super::egress::Io;
use super::files::{StateFileError, StateFiles};
use super::launch::Hooks;
use super::log::Log;
use super::replicated::{EntryError, ModuleState, Replicated};
use super::reports::{REJECTED, Rejections, Reports};
use crate::consensus::{
    Config as ConsensusConfig, Consensus, LogCommand, Nanos, Recovered, RecoveryError, Role, State,
    StopReason, Write,
};
use crate::files::MarkFile;
use crate::protocol::ClusterTimeUnit;
use crate::service::{Cluster, Service};
use crate::state::{
    AckError, Authenticator, Leadership, ServiceMessageError, Sessions, Termination,
};
use control::Validation;
use ingress::Ingress;
use peers::Peers;
use snapshots::TakenSnapshot;
use stream::Stream;

/// Interval of the slow tick.
const SLOW_TICK: Nanos = 10_000_000;

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
    Files(#[from] StateFileError),
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
    /// A container is gone.
    #[error(
        "the container of service {service_id} is gone: its client is closed, or was silent for aeron.client.liveness.timeout; \
         start it again"
    )]
    ServiceLost {
        /// Service.
        service_id: usize,
    },
    /// A container has reported that its service cannot start.
    #[error("service {service_id} cannot start: see the error log in its mark file")]
    ServiceNotStarted {
        /// Service.
        service_id: usize,
    },
    /// A container does not follow the protocol.
    #[error(transparent)]
    Acknowledgement(#[from] AckError),
    /// Containers cannot be commanded any more.
    #[error(transparent)]
    Containers(#[from] ContainersError),
    /// A message of a service cannot be kept.
    #[error(transparent)]
    ServiceMessage(#[from] ServiceMessageError),
}

impl ModuleError {
    /// Returns true if the member can be started again once the containers are back.
    const fn is_of_services(&self) -> bool {
        matches!(
            self,
            Self::ServiceLost { .. } | Self::ServiceNotStarted { .. } | Self::Acknowledgement(_)
        )
    }
}

/// Input of the consensus core at its start.
pub(super) struct CoreSeed {
    pub(super) consensus: ConsensusConfig,
    pub(super) recovered: Recovered,
    pub(super) random: u64,
}

impl From<EntryError> for ModuleError {
    fn from(error: EntryError) -> Self {
        Self::Entry(error.to_string())
    }
}

/// Parts that an agent starts with.
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
    pub(super) mark: MarkFile,
    pub(super) hooks: Hooks,
    pub(super) containers: Containers,
    /// Containers that are awaited; none if the service runs in this process.
    pub(super) container_count: usize,
    /// Set to start the core once the containers have started.
    pub(super) awaiting_services: Option<CoreSeed>,
}

/// The agent.
pub(super) struct ModuleAgent<S> {
    config: Arc<ClusterConfig>,
    ingress_endpoints: Arc<str>,
    name: String,
    client: Client,
    archive: ArchiveConnection,
    core: Consensus,
    log: Log,
    log_assembler: ImageControlledFragmentAssembler,
    files: StateFiles,
    replicated: Replicated<S>,
    stream: Stream,
    peers: Peers,
    ingress: Option<Ingress>,
    counters: ModuleCounters,
    mark: MarkFile,
    errors: ErrorLog,
    reports: Reports,
    rejections: Rejections,
    heartbeat_ms: i64,
    hooks: Hooks,
    containers: Containers,
    container_count: usize,
    awaiting_services: Option<CoreSeed>,
    has_ended_services: bool,
    /// Commands for the log that wait until containers have joined the present one.
    held: Vec<LogCommand>,
    /// Writes of the core that wait for the one that is being flushed.
    writes: VecDeque<(u64, Write)>,
    flushing: Option<u64>,
    truncation: Option<Call<i64>>,
    term_event: Option<(i64, i64)>,
    snapshot: Option<TakenSnapshot>,
    /// Position of the snapshot that the toggle of this leader has begun.
    toggled_snapshot: Option<i64>,
    termination: Termination,
    /// The toggle has begun a hand-over of leadership.
    is_transfer_begun: bool,
    /// The end of the member is requested, and prepared.
    is_leaving: bool,
    validation: Option<Validation>,
    /// Actions of this leader that are not committed: position behind them, and the state before.
    uncommitted_states: VecDeque<(i64, ModuleState)>,
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
            mark,
            hooks,
            containers,
            container_count,
            awaiting_services,
        } = parts;
        Self {
            ingress_endpoints: config.members.ingress_endpoints().into(),
            name: config.agent_name.clone(),
            peers: Peers::new(client.clone(), Arc::clone(&config)),
            termination: Termination::new(config.termination_timeout),
            config,
            client,
            archive,
            core,
            log,
            log_assembler: ImageControlledFragmentAssembler::new(),
            files,
            replicated,
            stream: Stream::new(consensus),
            ingress: None,
            counters,
            errors: mark.error_log(),
            reports: Reports::default(),
            rejections: Rejections::default(),
            mark,
            heartbeat_ms: 0,
            hooks,
            containers,
            container_count,
            awaiting_services,
            has_ended_services: container_count == 0,
            held: Vec::new(),
            writes: VecDeque::new(),
            flushing: None,
            truncation: None,
            term_event: None,
            snapshot: None,
            toggled_snapshot: None,
            is_transfer_begun: false,
            is_leaving: false,
            validation: None,
            uncommitted_states: VecDeque::new(),
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

    /// Reports an error that the member survives: in its counter, in the error log of the mark file, and to the program, which gets
    /// equal ones at most once per second.
    fn error(&mut self, text: &str) {
        self.counters.errors.increment();
        // An error log that is full keeps the first errors.
        let _ = self.errors.record(self.now.epoch_millis, 0, text);
        if self.reports.note(self.now.nanos, text) {
            (self.hooks.on_error)(text);
        }
    }

    /// Reports the clients that the authenticator has rejected.
    fn report_rejected(&mut self) {
        for channel in self.replicated.sessions.take_rejected() {
            self.counters.errors.increment();
            self.rejections.note(channel);
        }
        if let Some((_, text)) = self.rejections.next_due(self.now.nanos) {
            // Without the channel: clients that choose another one each time do not fill the error log.
            let _ = self.errors.record(self.now.epoch_millis, 0, REJECTED);
            (self.hooks.on_error)(&text);
        }
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

    fn leadership<'a>(&mut self, ingress_endpoints: &'a str) -> Leadership<'a> {
        Leadership {
            now: self.now.nanos,
            now_ms: self.now.epoch_millis,
            timestamp: self.timestamp(),
            term: self.core.term().unwrap_or(-1),
            leader: self.core.leader().unwrap_or(-1),
            ingress_endpoints,
            heartbeat_timeout: self.config.timing.heartbeat_timeout,
        }
    }

    /// Runs `call` with the sessions, and what they use.
    fn with_sessions<T>(
        &mut self,
        call: impl FnOnce(&mut Sessions, &mut Io<'_>, &mut dyn Authenticator) -> T,
    ) -> Result<T, ModuleError> {
        let mut failure = None;
        let mut io = Io {
            client: &self.client,
            egress: &mut self.replicated.egress,
            publication: self.log.publication(),
            buffer: &mut self.buffer,
            failure: &mut failure,
        };
        let sessions = &mut self.replicated.sessions;
        let result = call(sessions, &mut io, &mut *self.hooks.authenticator);
        failure.map_or(Ok(result), |error| Err(ModuleError::Log(error)))
    }

    fn is_leading(&self) -> bool {
        self.core.role() == Role::Leader && self.core.state() == State::Closed
    }

    /// Returns true if the leader takes entries of clients, timers and services.
    fn takes_entries(&self) -> bool {
        self.replicated.state == ModuleState::Active
            && !self.termination.is_begun_in(self.core.term())
            && self.core.accepts_entries(self.now.nanos)
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
        work += self.poll_containers()?;
        while let Some(text) = self.reports.next_due(now) {
            (self.hooks.on_error)(&text);
        }
        if self.awaiting_services.is_some() {
            self.keep_mark();
            return Ok(work);
        }
        work += self.poll_consensus()?;
        work += self.poll_log()?;
        self.join_services();
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
        let background =
            |service: &mut S, cluster: &mut Cluster<'_>| service.do_background_work(cluster);
        work += self.replicated.with_service(background);
        if now >= self.slow_tick {
            self.slow_tick = now + SLOW_TICK;
            self.tick_slowly()?;
        }
        work += self.decide()?;
        Ok(work)
    }
}

impl<S: Service> Agent for ModuleAgent<S> {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        if self.now.nanos != 0 {
            self.counters.cycle.record(now.nanos - self.now.nanos);
        }
        self.now = now;
        let work = match self.cycle() {
            Ok(work) => work,
            Err(error) => {
                self.error(&error.to_string());
                let is_of_services = error.is_of_services();
                self.hooks
                    .has_lost_service
                    .store(is_of_services, Ordering::Release);
                if self.has_containers() {
                    self.containers.terminate(0);
                }
                return Err(AgentEnd::failed(error));
            }
        };
        if self.terminate() {
            return Err(AgentEnd::Finished);
        }
        self.leave();
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
