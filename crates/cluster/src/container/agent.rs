// SPDX-License-Identifier: Apache-2.0
//! The agent of a container: reads the log of the consensus module, and calls the service.

use std::collections::{BTreeMap, HashMap};

use taran::{Client, FragmentAssembler, Now, OfferError, Pending, Publication, Subscription};
use taran_core::agent::{Agent, AgentEnd};
use taran_core::error_log::ErrorLog;
use taran_storage::DiskLock;
use thiserror::Error;

use super::config::ContainerConfig;
use super::counters::ContainerCounters;
use super::joining::{ActiveLog, Join, Joining};
use super::launch::ContainerLaunchError;
use super::requests::Requests;
use super::snapshots::Snapshot;
use crate::consensus::{MemberId, Nanos, Role};
use crate::files::MarkFile;
use crate::module::reports::Reports;
use crate::protocol::{ClusterTimeUnit, MessageError, ServiceCommand};
use crate::service::{ClientSession, Cluster, Effects, Service};

/// Interval of the slow tick.
const SLOW_TICK: Nanos = 1_000_000;
/// Commands of the consensus module per duty cycle.
const FRAGMENT_LIMIT: usize = 10;
/// Duty cycles for which the last acknowledgement may wait for room.
const LAST_ATTEMPTS: usize = 5;

/// Reason why a container ended by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The driver is not there any more, or the client was closed.
    #[error("the driver is lost: {0}")]
    DriverLost(String),
    /// The consensus module is gone.
    #[error(
        "the consensus module is gone: its commit-pos counter is closed; start the container again, it waits for the next one"
    )]
    ModuleLost,
    /// The consensus module ended without an orderly termination.
    #[error(
        "the consensus module ended the service at {position}: it does not go on itself, see its errors"
    )]
    Unexpected {
        /// Position of the service.
        position: i64,
    },
    /// The state to start from cannot be loaded.
    #[error(transparent)]
    Start(#[from] Box<ContainerLaunchError>),
    /// The driver has refused a command.
    #[error("the driver refused a command: {0}")]
    Command(#[from] taran::CommandError),
    /// The consensus module does not take requests any more.
    #[error("the consensus module cannot be asked any more: {0}")]
    Request(OfferError),
    /// The log that the consensus module names does not continue the one before.
    #[error(
        "the log starts at {start}, image at {image}, but the service is at {position}: start the container again, it loads \
         the last snapshot"
    )]
    NotContiguous {
        /// Start that the consensus module named.
        start: i64,
        /// Start of the image.
        image: i64,
        /// Position of the service.
        position: i64,
    },
    /// The image of the log has not come.
    #[error(
        "no image of session {session_id} of the log came within {seconds} s: channel {channel}"
    )]
    NoImage {
        /// Session of the log.
        session_id: i32,
        /// Channel of the log.
        channel: String,
        /// Time limit.
        seconds: i64,
    },
    /// A channel of the log is invalid.
    #[error("the channel of the log is invalid: {0}")]
    Channel(#[from] taran::UriError),
    /// An entry of the log cannot be applied.
    #[error("the log has an entry at {position} that cannot be applied: {reason}")]
    Entry {
        /// Position behind the entry.
        position: i64,
        /// Reason.
        reason: String,
    },
    /// A snapshot was not taken.
    #[error("failed to take snapshot: {0}")]
    Snapshot(String),
}

/// Parts that an agent starts with.
pub(super) struct Parts<S> {
    pub(super) config: ContainerConfig,
    pub(super) service: S,
    pub(super) client: Client,
    pub(super) commands: Subscription,
    pub(super) requests: Requests,
    pub(super) counters: ContainerCounters,
    pub(super) mark: MarkFile,
    pub(super) lock: DiskLock,
    pub(super) on_error: Box<dyn FnMut(&str) + Send>,
}

/// State that follows from the log, and the service.
pub(super) struct Replica<S> {
    pub(super) service: S,
    pub(super) requests: Requests,
    pub(super) clients: BTreeMap<i64, ClientSession>,
    pub(super) egress: HashMap<i64, Publication>,
    /// Publications to clients that the driver is adding.
    pub(super) connecting: HashMap<i64, Pending<Publication>>,
    pub(super) member_id: MemberId,
    pub(super) role: Role,
    pub(super) term: i64,
    pub(super) position: i64,
    pub(super) timestamp: i64,
    pub(super) time_unit: ClusterTimeUnit,
    pub(super) app_version: i32,
    /// A snapshot is to be taken before the next entry.
    pub(super) is_snapshot_due: bool,
    pub(super) failure: Option<ContainerError>,
    pub(super) is_responder: bool,
}

impl<S: Service> Replica<S> {
    /// Runs `call` with the service and the cluster.
    pub(super) fn with_service<T>(
        &mut self,
        call: impl FnOnce(&mut S, &mut Cluster<'_>) -> T,
    ) -> T {
        let (service, mut cluster) = self.split();
        call(service, &mut cluster)
    }

    /// Separates the service from what it may use.
    pub(super) fn split(&mut self) -> (&mut S, Cluster<'_>) {
        let cluster = Cluster {
            member_id: self.member_id,
            role: self.role,
            term: self.term,
            timestamp: self.timestamp,
            log_position: self.position,
            clients: &self.clients,
            effects: Effects::Container {
                requests: &mut self.requests,
                egress: &self.egress,
            },
        };
        (&mut self.service, cluster)
    }

    /// Adds the publication to a client, unless the service does not answer.
    pub(super) fn connect(&mut self, client: &Client, session: &ClientSession) {
        if !self.is_responder {
            return;
        }
        let channel = &session.response_channel;
        // A client without a valid channel gets no answers; the consensus module has said so.
        if let Ok(pending) = client.async_add_publication(channel, session.response_stream_id) {
            self.connecting.insert(session.id, pending);
        }
    }

    /// Takes publications that the driver has added. Returns true if none is awaited.
    fn is_connected(&mut self) -> bool {
        let egress = &mut self.egress;
        self.connecting.retain(|id, pending| match pending.poll() {
            None => true,
            Some(added) => {
                egress.extend(added.ok().map(|publication| (*id, publication)));
                false
            }
        });
        self.connecting.is_empty()
    }

    pub(super) fn disconnect(&mut self) {
        self.egress.clear();
        self.connecting.clear();
    }

    pub(super) fn take_role(&mut self, role: Role) {
        if self.role != role {
            self.role = role;
            self.service.on_role_change(role);
        }
    }
}

/// The agent.
pub(super) struct ContainerAgent<S> {
    pub(super) config: ContainerConfig,
    pub(super) client: Client,
    commands: Subscription,
    assembler: FragmentAssembler,
    pub(super) replica: Replica<S>,
    pub(super) counters: ContainerCounters,
    pub(super) mark: MarkFile,
    _lock: DiskLock,
    errors: ErrorLog,
    reports: Reports,
    on_error: Box<dyn FnMut(&str) + Send>,
    /// Commit position of the consensus module: counter id and registration id.
    pub(super) commit: Option<(i32, i64)>,
    /// The newest request to join a log.
    pub(super) next_join: Option<Join>,
    pub(super) joining: Option<Joining>,
    pub(super) active: Option<ActiveLog>,
    pub(super) snapshot: Option<Snapshot>,
    termination: Option<i64>,
    /// Duty cycles since the service was ended, or has failed.
    ended: Option<usize>,
    /// The failure that ends the agent, once the consensus module has been told.
    failed: Option<ContainerError>,
    requested_ack: Option<i64>,
    heartbeat_ms: i64,
    slow_tick: Nanos,
    pub(super) now: Now,
}

impl<S: Service> ContainerAgent<S> {
    pub(super) fn new(parts: Parts<S>) -> Self {
        let Parts {
            config,
            service,
            client,
            commands,
            requests,
            counters,
            mark,
            lock,
            on_error,
        } = parts;
        Self {
            replica: Replica {
                service,
                requests,
                clients: BTreeMap::new(),
                egress: HashMap::new(),
                connecting: HashMap::new(),
                member_id: -1,
                role: Role::Follower,
                term: -1,
                position: 0,
                timestamp: 0,
                time_unit: ClusterTimeUnit::MILLIS,
                app_version: config.app_version,
                is_snapshot_due: false,
                failure: None,
                is_responder: config.is_responder,
            },
            config,
            client,
            commands,
            assembler: FragmentAssembler::new(),
            counters,
            errors: mark.error_log(),
            reports: Reports::default(),
            mark,
            _lock: lock,
            on_error,
            commit: None,
            next_join: None,
            joining: None,
            active: None,
            snapshot: None,
            termination: None,
            ended: None,
            failed: None,
            requested_ack: None,
            heartbeat_ms: 0,
            slow_tick: Nanos::MIN,
            now: Now {
                nanos: 0,
                epoch_millis: 0,
            },
        }
    }

    pub(super) fn error(&mut self, text: &str) {
        self.counters.errors.increment();
        // An error log that is full keeps the first errors.
        let _ = self.errors.record(self.now.epoch_millis, 0, text);
        if self.reports.note(self.now.nanos, text) {
            (self.on_error)(text);
        }
    }

    fn cycle(&mut self) -> Result<usize, ContainerError> {
        if let Some(reason) = self.client.close_reason() {
            return Err(ContainerError::DriverLost(format!("{reason:?}")));
        }
        while let Some(text) = self.reports.next_due(self.now.nanos) {
            (self.on_error)(&text);
        }
        if self.failed.is_some() {
            // Only the last acknowledgement is left to send; if it cannot be sent, the failure before it is the one to report.
            let _ = self.replica.requests.flush();
            return Ok(0);
        }
        if self.now.nanos >= self.slow_tick {
            self.slow_tick = self.now.nanos + SLOW_TICK;
            self.tick_slowly()?;
        }
        if self.commit.is_none() {
            return self.recover();
        }
        let mut work = self.poll_commands()?;
        work += self.proceed()?;
        if self.ended.is_none() {
            let background =
                |service: &mut S, cluster: &mut Cluster<'_>| service.do_background_work(cluster);
            work += self.replica.with_service(background);
        }
        Ok(work)
    }

    /// Does what is next, as far as nothing has to wait for the consensus module, the driver or the archive.
    fn proceed(&mut self) -> Result<usize, ContainerError> {
        let is_flushed = self.replica.requests.flush();
        if !is_flushed.map_err(ContainerError::Request)? {
            return Ok(0);
        }
        if self.snapshot.is_some() || self.replica.is_snapshot_due {
            return self.take_snapshot();
        }
        if !self.replica.is_connected() {
            return Ok(0);
        }
        let joined = self.join()?;
        let read = self.read_log()?;
        self.check_positions();
        Ok(usize::from(joined) + read)
    }

    fn tick_slowly(&mut self) -> Result<(), ContainerError> {
        let now_ms = self.now.epoch_millis;
        if now_ms < self.heartbeat_ms || now_ms >= self.heartbeat_ms.saturating_add(1_000) {
            self.heartbeat_ms = now_ms;
            self.mark.heartbeat(now_ms);
        }
        if let Some((counter, registration_id)) = self.commit
            && self.client.counters().registration_id(counter) != Some(registration_id)
            && self.termination.is_none()
        {
            return Err(ContainerError::ModuleLost);
        }
        Ok(())
    }

    fn poll_commands(&mut self) -> Result<usize, ContainerError> {
        let Self {
            commands,
            assembler,
            next_join,
            active,
            termination,
            requested_ack,
            ..
        } = self;
        let mut malformed = 0_u64;
        let handler = |bytes: &[u8], _: &taran::Header<'_>| match ServiceCommand::decode(bytes) {
            Ok(ServiceCommand::JoinLog(join)) => {
                if let Some(active) = active {
                    // The log before ends where the new one starts.
                    active.max_position = join.log_position;
                }
                *next_join = Some(Join::new(&join));
            }
            Ok(ServiceCommand::ServiceTerminationPosition(it)) => {
                *termination = Some(it.log_position);
            }
            Ok(ServiceCommand::RequestServiceAck(it)) => *requested_ack = Some(it.log_position),
            Ok(ServiceCommand::ClusterMembersResponse(_))
            | Err(MessageError::UnexpectedTemplate { .. }) => {}
            Err(_) => malformed += 1,
        };
        let polled = commands.poll(assembler.wrap(handler), FRAGMENT_LIMIT);
        let fragments = polled.map_err(|error| ContainerError::DriverLost(error.to_string()))?;
        if malformed > 0 {
            self.error(&format!(
                "{malformed} commands of the consensus module cannot be read"
            ));
        }
        Ok(fragments)
    }

    /// Answers what the consensus module wants to know, or ends, once the position is reached.
    fn check_positions(&mut self) {
        let position = self.replica.position;
        let timestamp = self.replica.timestamp;
        if self.requested_ack.is_some_and(|it| position >= it) {
            self.requested_ack = None;
            self.replica.requests.acknowledge(position, timestamp, -1);
        }
        if self.ended.is_none() && self.termination.is_some_and(|it| position >= it) {
            self.replica.service.on_terminate();
            self.replica.requests.acknowledge(position, timestamp, -1);
            self.ended = Some(0);
        }
    }

    /// Ends the agent with a failure, once the acknowledgement that tells it is sent.
    pub(super) fn fail(&mut self, error: ContainerError) {
        self.failed = Some(error);
        self.ended = Some(0);
    }

    /// Returns the end of the agent, once the service was ended, or has failed, and that is acknowledged.
    fn end(&mut self) -> Option<AgentEnd> {
        let cycles = self.ended.as_mut()?;
        *cycles += 1;
        if *cycles < LAST_ATTEMPTS && !self.replica.requests.is_flushed() {
            return None;
        }
        if let Some(error) = self.failed.take() {
            self.error(&error.to_string());
            return Some(AgentEnd::failed(error));
        }
        let position = self.replica.position;
        if self.termination == Some(position) {
            return Some(AgentEnd::Finished);
        }
        let error = ContainerError::Unexpected { position };
        self.error(&error.to_string());
        Some(AgentEnd::failed(error))
    }
}

impl<S: Service> Agent for ContainerAgent<S> {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        if self.now.nanos != 0 {
            self.counters.cycle.record(now.nanos - self.now.nanos);
        }
        self.now = now;
        let work = match self.cycle() {
            Ok(work) => work,
            Err(error) => {
                self.error(&error.to_string());
                return Err(AgentEnd::failed(error));
            }
        };
        self.end().map_or(Ok(work), Err)
    }

    fn role_name(&self) -> &str {
        &self.config.service_name
    }
}
