// SPDX-License-Identifier: Apache-2.0
//! Start and end of a consensus module.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taran::{
    ChannelUri, Client, CommandError, ConnectError, ExclusivePublication, SystemClock, UriError,
};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveClient, ArchiveContext, RequestError};
use taran_core::agent::{AgentEvent, AgentEventHandler, AgentRunner, RunningAgent};
use taran_core::memory::{FileStorage, Storage as _};
use thiserror::Error;

use super::agent::{CoreSeed, ModuleAgent, Parts};
use super::config::{ClusterConfig, ClusterConfigError};
use super::containers::Containers;
use super::counters::ModuleCounters;
use super::files::{StateFileError, StateFiles};
use super::leave::Leave;
use super::log::{Log, LogParams, find_recording};
use super::recordings::{POLL_INTERVAL, RecordingReader, START_TIMEOUT, wait};
use super::replicated::Replicated;
use super::type_id;
use crate::consensus::{Consensus, Recovered, RecoveryError};
use crate::files::{
    Mark, MarkComponent, MarkError, MarkFile, RecordingLogEntry, RecordingLogError,
};
use crate::service::{ClientSession, Cluster, Service, SnapshotWriter};
use crate::state::{
    AcceptAll, AckRound, AdminAuthorisation, Authenticator, AuthorisationService, CredentialsError,
    FileAuthenticator, SnapshotError, SnapshotReader,
};

/// Name of the mark file of a consensus module.
const MARK_FILE: &str = "cluster-mark.dat";
/// Name of the file that has the directory of the mark file, if that is another one.
const MARK_LINK: &str = "cluster-mark.lnk";
/// Time limit for the counters of a member that has ended.
const DUPLICATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time for which the end of a leader waits for its successor.
const LONGEST_HAND_OVER: Duration = Duration::from_secs(1);
/// Offset of response streams of the archive, which official members use too.
const RESPONSE_STREAM: i32 = 120;

/// Reason why a consensus module did not start.
#[derive(Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The configuration is no cluster.
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    /// Files of the member cannot be used.
    #[error(transparent)]
    Files(#[from] StateFileError),
    /// The mark file cannot be claimed.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// There is no driver.
    #[error(transparent)]
    Driver(#[from] ConnectError),
    /// There is no archive.
    #[error("cannot connect to the archive on {channel}: {source}")]
    Archive {
        /// Channel to the archive.
        channel: String,
        /// Reason.
        source: taran_archive_client::ConnectError,
    },
    /// The driver has refused what the member needs.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The archive has refused what the member needs.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A channel is invalid.
    #[error(transparent)]
    Channel(#[from] UriError),
    /// The file of credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The program and the configuration both decide which clients may connect.
    #[error(
        "taran.cluster.credentials.file={} is set, and the program has an authenticator of its own: remove either of them",
        path.display()
    )]
    Authenticators {
        /// The file.
        path: PathBuf,
    },
    /// Clients have no names.
    #[error(
        "taran.cluster.admins={names} has no effect, because clients have no names: set taran.cluster.credentials.file, or give \
         the program an authenticator"
    )]
    Nameless {
        /// Names of admins.
        names: String,
    },
    /// The driver has another member of the cluster.
    #[error(
        "found a consensus module of cluster {cluster_id} at this driver (counter {counter_id}): use another aeron.cluster.id; \
         if that module was killed, wait until the driver has timed it out"
    )]
    Duplicate {
        /// Id of the cluster.
        cluster_id: i32,
        /// Counter of the other module.
        counter_id: i32,
    },
    /// The recording of the log is gone.
    #[error(
        "the archive has no recording {recording_id}, in which the recording log has the log: restore the archive, or replace \
         the member"
    )]
    LogMissing {
        /// Recording of the log.
        recording_id: i64,
    },
    /// A step took too long.
    #[error("{what} took longer than {} s", START_TIMEOUT.as_secs())]
    Timeout {
        /// The step.
        what: &'static str,
    },
    /// The recording log is corrupt.
    #[error(transparent)]
    RecordingLog(#[from] RecordingLogError),
    /// The recovered state contradicts itself.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A snapshot cannot be read.
    #[error("the snapshot in recording {recording_id} cannot be loaded: {source}")]
    Snapshot {
        /// Recording of the snapshot.
        recording_id: i64,
        /// Reason.
        source: SnapshotError,
    },
    /// The service refuses its snapshot.
    #[error(
        "the service refuses its snapshot in recording {recording_id}: {reason}; start the version of the service that wrote it, or, \
         if this service can read the log before it, invalidate it ('taran members invalidate-latest-snapshot DIR'): the member then \
         starts from the snapshot before, or from the log"
    )]
    ServiceSnapshot {
        /// Recording of the snapshot.
        recording_id: i64,
        /// Reason of the service.
        reason: String,
    },
    /// The thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
}

taran_core::debug_is_display!(LaunchError);

/// Reason why a running member has ended by itself.
type Fate = Arc<Mutex<Option<Ended>>>;

#[derive(Clone, Debug)]
enum Ended {
    InOrder,
    Failed(String),
}

/// Decisions of the embedding program.
pub(super) struct Hooks {
    pub(super) authenticator: Box<dyn Authenticator>,
    /// The authenticator is one of the program.
    pub(super) has_authenticator: bool,
    pub(super) authorisation: Box<dyn AuthorisationService>,
    pub(super) on_error: Box<dyn FnMut(&str) + Send>,
    /// Set when the member ends because of a container.
    pub(super) has_lost_service: Arc<AtomicBool>,
    /// Set when the program ends the member.
    pub(super) leave: Arc<Leave>,
}

/// Stands for services in containers of their own.
pub struct InContainers(());

impl Service for InContainers {
    fn on_start(&mut self, _: &mut Cluster<'_>, _: Option<&[Vec<u8>]>) {}

    fn on_session_message(&mut self, _: &mut Cluster<'_>, _: Option<&ClientSession>, _: &[u8]) {}

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, _: &mut SnapshotWriter) {}
}

/// A consensus module to start.
pub struct ConsensusModuleBuilder<S> {
    config: ClusterConfig,
    service: S,
    container_count: usize,
    hooks: Hooks,
    on_end: Box<dyn FnMut() + Send>,
}

impl<S: Service + 'static> ConsensusModuleBuilder<S> {
    /// Sets what decides which clients may connect; by default all may. A configuration with a file of credentials is an error then.
    /// The administrative requests of clients are allowed whose principal `taran.cluster.admins` names.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.hooks.has_authenticator = true;
        self.hooks.authenticator = Box::new(authenticator);
        self
    }

    /// Replaces the authorisation of the configuration.
    #[must_use]
    pub fn authorisation(mut self, service: impl AuthorisationService + 'static) -> Self {
        self.hooks.authorisation = Box::new(service);
        self
    }

    /// Calls `handler` with errors that the member survives. By default they are printed to standard error.
    #[must_use]
    pub fn on_error(mut self, handler: impl FnMut(&str) + Send + 'static) -> Self {
        self.hooks.on_error = Box::new(handler);
        self
    }

    /// Calls `hook` when the member ends by itself.
    #[must_use]
    pub fn on_end(mut self, hook: impl FnMut() + Send + 'static) -> Self {
        self.on_end = Box::new(hook);
        self
    }

    /// Starts the member: loads the last snapshot, and begins an election. Waits for driver and archive.
    ///
    /// # Errors
    /// See [`LaunchError`].
    pub fn launch(mut self) -> Result<ConsensusModule, LaunchError> {
        let admins = &self.config.admins;
        match &self.config.credentials_file {
            Some(path) if self.hooks.has_authenticator => {
                let path = path.clone();
                return Err(LaunchError::Authenticators { path });
            }
            Some(path) => {
                let authenticator = FileAuthenticator::read(path)?;
                authenticator.check_admins(path, admins)?;
                self.hooks.authenticator = Box::new(authenticator);
            }
            None if !admins.is_empty() && !self.hooks.has_authenticator => {
                let names = admins.join(",");
                return Err(LaunchError::Nameless { names });
            }
            None => {}
        }
        let on_end = Mutex::new(self.on_end);
        let idle = self.config.idle.build();
        let name = self.config.agent_name.clone();
        let has_lost_service = Arc::clone(&self.hooks.has_lost_service);
        let leave = Arc::clone(&self.hooks.leave);
        // A member with official timing does not keep its program waiting for so long.
        let longest = self.config.timing.heartbeat_timeout.saturating_mul(2);
        let leave_limit = Duration::from_nanos(longest.unsigned_abs()).min(LONGEST_HAND_OVER);
        let agent = prepare(self.config, self.service, self.container_count, self.hooks)?;
        let fate = Fate::default();
        let seen = Arc::clone(&fate);
        let left = Arc::clone(&leave);
        let handler = AgentEventHandler::new(move |event: &AgentEvent| {
            let ended = if event.is_failure() {
                Ended::Failed(event.to_string())
            } else {
                Ended::InOrder
            };
            left.complete();
            let mut first = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(ended);
                drop(first);
                let mut on_end = on_end.lock().unwrap_or_else(PoisonError::into_inner);
                on_end();
            }
        });
        let running = AgentRunner::new(agent, SystemClock::new(), idle, handler)
            .thread_name(&name)
            .start()
            .map_err(LaunchError::Thread)?;
        Ok(ConsensusModule {
            running,
            fate,
            has_lost_service,
            leave,
            leave_limit,
        })
    }
}

/// A running member of a cluster. Dropping it ends it as [`close`](Self::close) does.
pub struct ConsensusModule {
    running: RunningAgent,
    fate: Fate,
    has_lost_service: Arc<AtomicBool>,
    leave: Arc<Leave>,
    leave_limit: Duration,
}

impl ConsensusModule {
    /// Returns a builder for a member with this service in the same process.
    #[must_use]
    pub fn builder<S: Service + 'static>(
        config: ClusterConfig,
        service: S,
    ) -> ConsensusModuleBuilder<S> {
        Self::build(config, service, 0)
    }

    /// Returns a builder for a member whose services run in containers: `aeron.cluster.service.count` processes of Taran
    /// ([`ServiceContainer`](crate::container::ServiceContainer)) or Aeron, which connect over IPC. The member takes part in the
    /// cluster once all of them have started, and ends with an error when one of them is gone.
    #[must_use]
    pub fn with_containers(config: ClusterConfig) -> ConsensusModuleBuilder<InContainers> {
        let count = config.service_count;
        Self::build(config, InContainers(()), count)
    }

    fn build<S: Service + 'static>(
        config: ClusterConfig,
        service: S,
        container_count: usize,
    ) -> ConsensusModuleBuilder<S> {
        let hooks = Hooks {
            authenticator: Box::new(AcceptAll),
            has_authenticator: false,
            authorisation: Box::new(AdminAuthorisation::new(
                config.authorisation,
                config.admins.clone(),
            )),
            on_error: Box::new(|text| eprintln!("taran cluster: {text}")),
            has_lost_service: Arc::default(),
            leave: Arc::default(),
        };
        ConsensusModuleBuilder {
            config,
            service,
            container_count,
            hooks,
            on_end: Box::new(|| ()),
        }
    }

    /// Returns true once the member has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        fate.is_some()
    }

    /// Returns why the member has failed; none while it runs, and after an end in order.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fate {
            Some(Ended::Failed(text)) => Some(text.clone()),
            Some(Ended::InOrder) | None => None,
        }
    }

    /// Returns true if the member has ended because a container is gone, or did not start. It may be started again at once: it
    /// then waits for its containers.
    #[must_use]
    pub fn has_lost_service(&self) -> bool {
        self.has_lost_service.load(Ordering::Acquire)
    }

    /// Ends the member. A leader hands leadership over first, and waits until another member leads: up to twice the heartbeat
    /// timeout, and at most 1 s. Clients and other members see its log and ingress end.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for ConsensusModule {
    fn drop(&mut self) {
        if !self.has_ended() {
            let waker = self.running.waker();
            self.leave.request(self.leave_limit, || {
                if let Some(waker) = waker {
                    waker.wake();
                }
            });
        }
        // The agent ends when its handle is dropped.
    }
}

fn prepare<S: Service>(
    config: ClusterConfig,
    service: S,
    container_count: usize,
    hooks: Hooks,
) -> Result<ModuleAgent<S>, LaunchError> {
    let config = Arc::new(config);
    let consensus = config.consensus()?;
    let files = StateFiles::open(&config.dir)?;
    let mark = claim_mark(&config)?;
    let mut builder = Client::builder().client_name(config.agent_name.as_str());
    if let Some(directory) = &config.aeron_dir {
        builder = builder.aeron_dir(directory);
    }
    let client = builder.connect()?;
    check_duplicate(&client, config.cluster_id)?;
    let mut start = Start {
        archive: connect_archive(&config, &client)?,
        config: &config,
        client: &client,
    };
    let params = start.open_log(&files)?;
    let append = start.stop_position(params.recording_id)?;
    let service_count = container_count.max(1);
    let mut replicated = Replicated::new(
        service,
        config.member_id,
        config.time_unit,
        config.sessions,
        service_count,
    );
    let snapshot = files.recording_log().latest_snapshot(service_count);
    let mut frames = None;
    let mut commit = 0;
    if let Some((module, services)) = &snapshot {
        commit = module.log_position;
        start.load_module(module, &mut replicated)?;
        if container_count == 0 {
            // There is one service.
            for service in services {
                frames = Some(start.load_service(service, &mut replicated)?);
            }
        }
    }
    replicated.with_service(|service, cluster| service.on_start(cluster, frames.as_deref()));
    let recovered = Recovered {
        candidate_term: files.candidate_term(),
        terms: files.recording_log().terms()?,
        append_position: append,
        commit_position: commit,
        memberships: Vec::new(),
        examined_position: 0,
    };
    let mut clock = SystemClock::new();
    let now = taran::Clock::now(&mut clock);
    let seed = u64::from_le_bytes(now.nanos.to_le_bytes()) ^ u64::from(std::process::id()) << 32;
    let core_config = consensus;
    let core = Consensus::new(core_config.clone(), recovered.clone(), seed, now.nanos)?;
    let counters = ModuleCounters::add(
        &client,
        config.cluster_id,
        config.cycle_threshold,
        config.snapshot_threshold,
    )?;
    counters.commit.set(commit);
    let uri = ChannelUri::parse(&config.consensus_channel)?;
    let uri = uri.with("endpoint", &config.own().consensus)?;
    let consensus = client.add_subscription(uri.as_str(), config.consensus_stream_id)?;
    let log = Log::new(
        client.clone(),
        Arc::clone(&config),
        params,
        append,
        container_count > 0,
    );
    let archive = start.archive.into_connection();
    let mut containers = Containers::add(&client, &config, container_count)?;
    let mut awaiting_services = None;
    if container_count > 0 {
        containers.acks.expect(AckRound::Start, commit);
        containers.start(&client, config.cluster_id, snapshot)?;
        awaiting_services = Some(CoreSeed {
            consensus: core_config,
            recovered,
            random: seed,
        });
    } else {
        mark.set_ready(now.epoch_millis);
    }
    Ok(ModuleAgent::new(Parts {
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
    }))
}

/// Claims the mark file. The directory of the member is locked.
fn claim_mark(config: &ClusterConfig) -> Result<MarkFile, LaunchError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        |error| MarkError::Io { path, error }
    };
    let storage = FileStorage;
    storage
        .create_dir_all(&config.mark_dir)
        .map_err(io(&config.mark_dir))?;
    let now = taran::Clock::now(&mut SystemClock::new());
    let aeron_dir = config
        .aeron_dir
        .clone()
        .unwrap_or_else(taran_core::directory::default_directory);
    let mark = Mark {
        component: MarkComponent::ConsensusModule,
        activity_timestamp: 0,
        start_timestamp: now.epoch_millis,
        pid: i64::from(std::process::id()),
        archive_stream_id: config.archive_stream_id,
        service_stream_id: config.service_stream_id,
        consensus_module_stream_id: config.consensus_module_stream_id,
        ingress_stream_id: config.ingress_stream_id,
        member_id: config.member_id,
        service_id: -1,
        cluster_id: config.cluster_id,
        aeron_directory: aeron_dir.display().to_string(),
        control_channel: config.control_channel.clone(),
        ingress_channel: config.ingress_channel.clone(),
        service_name: String::new(),
        authenticator: String::new(),
        services_directory: config.services_dir.display().to_string(),
        error_log_length: config.error_log_length,
    };
    let file = MarkFile::claim(&storage, &config.mark_dir.join(MARK_FILE), &mark)?;
    let link = config.dir.join(MARK_LINK);
    let linked = if config.mark_dir == config.dir {
        match storage.remove(&link) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    } else {
        storage.write_file(&link, config.mark_dir.to_string_lossy().as_bytes())
    };
    linked.map_err(io(&link))?;
    Ok(file)
}

/// Checks that the driver has no other member of the cluster. One that has just ended may still be there for a moment.
fn check_duplicate(client: &Client, cluster_id: i32) -> Result<(), LaunchError> {
    let key = cluster_id.to_le_bytes();
    let deadline = Instant::now() + DUPLICATE_TIMEOUT;
    loop {
        let other = client
            .counters()
            .find(|meta| meta.type_id == type_id::MODULE_STATE && meta.key[..4] == key);
        match other {
            None => return Ok(()),
            Some(other) if Instant::now() >= deadline => {
                return Err(LaunchError::Duplicate {
                    cluster_id,
                    counter_id: other.id,
                });
            }
            Some(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

fn connect_archive(config: &ClusterConfig, client: &Client) -> Result<ArchiveClient, LaunchError> {
    let context = ArchiveContext::new()
        .control_channel(&config.archive_channel)
        .control_stream_id(config.archive_stream_id)
        .response_channel(&config.archive_channel)
        .response_stream_id(RESPONSE_STREAM + 100 * config.cluster_id)
        .client_name(format!(
            "cluster-{}-member-{}",
            config.cluster_id, config.member_id
        ));
    context
        .connect(client)
        .map_err(|source| LaunchError::Archive {
            channel: config.archive_channel.clone(),
            source,
        })
}

/// Steps of a start, each of which waits.
struct Start<'a> {
    config: &'a ClusterConfig,
    client: &'a Client,
    archive: ArchiveClient,
}

impl Start<'_> {
    /// Finds the recording of the log; creates an empty one for a member that has none. Its parameters are those of the log for
    /// ever.
    fn open_log(&mut self, files: &StateFiles) -> Result<LogParams, LaunchError> {
        let recording_id = match files.recording_log().recording_id() {
            Some(recording_id) => {
                // A member that was killed may have left it active.
                self.archive.stop_recording_by_identity(recording_id)?;
                recording_id
            }
            None => self.create_log()?,
        };
        let recording = self
            .archive
            .list_recording(recording_id)?
            .ok_or(LaunchError::LogMissing { recording_id })?;
        Ok(LogParams {
            recording_id,
            initial_term_id: recording.initial_term_id,
            term_length: recording.term_buffer_length as usize,
            mtu: recording.mtu_length as usize,
        })
    }

    fn create_log(&mut self) -> Result<i64, LaunchError> {
        let stream_id = self.config.log_stream_id;
        let log = ChannelUri::parse(&self.config.log_channel)?;
        let length = log.get(taran::Param::TermLength).unwrap_or("64m");
        let mut channel = ChannelUri::parse("aeron:ipc?init-term-id=0|term-id=0|term-offset=0")?
            .with("term-length", length)?
            .with("alias", "log")?;
        if let Some(mtu) = log.get(taran::Param::Mtu) {
            channel = channel.with("mtu", mtu)?;
        }
        let client = self.client;
        let publication = client.add_exclusive_publication(channel.as_str(), stream_id)?;
        let session = publication.session_id();
        let recorded = ChannelUri::parse("aeron:ipc")?.with_session_id(session)?;
        self.archive
            .start_recording(recorded.as_str(), stream_id, SourceLocation::LOCAL, true)?;
        let recording_id = wait(
            &mut self.archive,
            "the creation of the log's recording",
            |_| Ok(recording_of(client, &publication)),
        )?;
        publication.close();
        Ok(recording_id)
    }

    fn stop_position(&mut self, recording_id: i64) -> Result<i64, LaunchError> {
        wait(
            &mut self.archive,
            "the end of the log's recording",
            |archive| Ok(archive.stop_position(recording_id)?),
        )
    }

    fn reader(&mut self) -> RecordingReader<'_> {
        let config = self.config;
        RecordingReader::new(
            &mut self.archive,
            &config.replay_channel,
            config.replay_stream_id,
        )
    }

    fn load_module<S: Service>(
        &mut self,
        entry: &RecordingLogEntry,
        replicated: &mut Replicated<S>,
    ) -> Result<(), LaunchError> {
        let mut reader = SnapshotReader::new(self.config.time_unit, self.config.app_version);
        let recording_id = entry.recording_id;
        let Replicated {
            sessions, timers, ..
        } = replicated;
        let mut is_done = false;
        self.reader().read(recording_id, |frame| {
            // What follows the end belongs to an extension.
            if !is_done {
                is_done = reader.on_frame(frame, sessions, timers)?;
            }
            Ok(())
        })?;
        let service_count = replicated.pending.len();
        let (marker, services) =
            reader
                .finish(service_count)
                .map_err(|source| LaunchError::Snapshot {
                    recording_id,
                    source,
                })?;
        replicated.pending = services;
        replicated.term = marker.leadership_term_id;
        replicated.position = marker.log_position;
        replicated.timestamp = entry.timestamp;
        Ok(())
    }

    /// Loads the sessions of the service in this process, and returns the frames of its own.
    fn load_service<S: Service>(
        &mut self,
        entry: &RecordingLogEntry,
        replicated: &mut Replicated<S>,
    ) -> Result<Vec<Vec<u8>>, LaunchError> {
        let snapshot = self.reader().read_service(entry.recording_id)?;
        let checked = replicated.service.check_snapshot(&snapshot.frames);
        checked.map_err(|reason| LaunchError::ServiceSnapshot {
            recording_id: entry.recording_id,
            reason,
        })?;
        let sessions = snapshot.sessions.into_iter();
        replicated
            .clients
            .extend(sessions.map(|session| (session.id, session)));
        Ok(snapshot.frames)
    }
}

/// Returns the recording of a publication, once it is active.
fn recording_of(client: &Client, publication: &ExclusivePublication) -> Option<i64> {
    let session = publication.session_id().to_le_bytes();
    let found = client
        .counters()
        .find(|meta| meta.type_id == 100 && meta.key[8..12] == session)?;
    let mut id = [0; 8];
    id.copy_from_slice(&found.key[..8]);
    let id = i64::from_le_bytes(id);
    find_recording(client, id, Some(publication.session_id())).map(|_| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Authentication;

    struct Rejecting;

    impl Authenticator for Rejecting {
        fn on_connect_request(&mut self, _: i64, _: &[u8], _: i64) {}

        fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

        fn decide(&mut self, _: i64, _: bool, _: i64) -> Authentication {
            Authentication::Reject
        }
    }

    /// Returns why a member with these properties does not start; there is no driver.
    fn failure(properties: &[(&str, &str)], has_authenticator: bool) -> String {
        let dir = std::env::temp_dir().join(format!(
            "taran-launch-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let dir_text = dir.display().to_string();
        let mut all = vec![
            ("aeron.cluster.members", "0,a:1,a:2,a:3,a:4,a:5"),
            ("aeron.cluster.dir", &dir_text),
            ("aeron.dir", "/nonexistent/driver"),
        ];
        all.extend(properties);
        let config = ClusterConfig::from_properties(all).unwrap();
        let mut builder = ConsensusModule::builder(config, InContainers(()));
        if has_authenticator {
            builder = builder.authenticator(Rejecting);
        }
        let error = builder.launch().map(drop).unwrap_err();
        let _ = std::fs::remove_dir_all(&dir);
        error.to_string()
    }

    #[test]
    fn file_of_credentials_beside_an_authenticator_of_the_program_is_an_error() {
        let file = ("taran.cluster.credentials.file", "/nonexistent/clients");
        let text = failure(&[file], true);
        assert!(
            text.contains("taran.cluster.credentials.file=/nonexistent/clients is set")
                && text.contains("authenticator of its own"),
            "{text}"
        );
        let text = failure(&[file], false);
        assert!(text.contains("No such file"), "{text}");
    }

    #[test]
    fn admins_need_a_file_of_credentials_or_an_authenticator_of_the_program() {
        let admins = ("taran.cluster.admins", "ops, bob");
        let text = failure(&[admins], false);
        assert!(
            text.contains("taran.cluster.admins=ops,bob has no effect"),
            "{text}"
        );
        // The start goes on to the driver, which does not exist.
        let text = failure(&[admins], true);
        assert!(text.contains("/nonexistent/driver"), "{text}");
    }
}
