//! Start and end of a consensus module.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taran::{
    ChannelUri, Client, CommandError, ConnectError, ExclusivePublication, FragmentAssembler,
    SystemClock, UriError,
};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveClient, ArchiveContext, ReplayParams, RequestError};
use taran_core::agent::{AgentEvent, AgentEventHandler, AgentRunner, RunningAgent};
use taran_core::memory::{FileStorage, Storage as _};
use thiserror::Error;

use super::agent::{ModuleAgent, Parts};
use super::config::{ClusterConfig, ClusterConfigError};
use super::counters::{MODULE_STATE, ModuleCounters};
use super::files::{StateFileError, StateFiles};
use super::log::{Log, LogParams, find_recording};
use super::replicated::Replicated;
use crate::consensus::{Consensus, Recovered, RecoveryError};
use crate::files::{
    Mark, MarkComponent, MarkError, MarkFile, RecordingLogEntry, RecordingLogError,
};
use crate::protocol::{SnapshotMark, SnapshotMessage};
use crate::service::{ClientSession, Service};
use crate::state::{AcceptAll, Authenticator, AuthorisationService, SnapshotError, SnapshotReader};

/// Name of the mark file of a consensus module.
const MARK_FILE: &str = "cluster-mark.dat";
/// Name of the file that has the directory of the mark file, if that is another one.
const MARK_LINK: &str = "cluster-mark.lnk";
/// Time limit for steps of the start.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
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
    #[error("{what} took longer than {} s", TIMEOUT.as_secs())]
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
    pub(super) authorisation: Box<dyn AuthorisationService>,
    pub(super) on_error: Box<dyn FnMut(&str) + Send>,
}

/// A consensus module to start.
pub struct ConsensusModuleBuilder<S> {
    config: ClusterConfig,
    service: S,
    hooks: Hooks,
    on_end: Box<dyn FnMut() + Send>,
}

impl<S: Service + 'static> ConsensusModuleBuilder<S> {
    /// Replaces the authenticator, which accepts all clients.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
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
    pub fn launch(self) -> Result<ConsensusModule, LaunchError> {
        let on_end = Mutex::new(self.on_end);
        let idle = self.config.idle.build();
        let name = self.config.agent_name();
        let agent = prepare(self.config, self.service, self.hooks)?;
        let fate = Fate::default();
        let seen = Arc::clone(&fate);
        let handler = AgentEventHandler::new(move |event: &AgentEvent| {
            let ended = if event.is_failure() {
                Ended::Failed(event.to_string())
            } else {
                Ended::InOrder
            };
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
        Ok(ConsensusModule { running, fate })
    }
}

/// A running member of a cluster. Dropping it ends it as [`close`](Self::close) does.
pub struct ConsensusModule {
    running: RunningAgent,
    fate: Fate,
}

impl ConsensusModule {
    /// Returns a builder for a member with this service in the same process.
    #[must_use]
    pub fn builder<S: Service + 'static>(
        config: ClusterConfig,
        service: S,
    ) -> ConsensusModuleBuilder<S> {
        let hooks = Hooks {
            authenticator: Box::new(AcceptAll),
            authorisation: Box::new(config.authorisation),
            on_error: Box::new(|text| eprintln!("taran cluster: {text}")),
        };
        ConsensusModuleBuilder {
            config,
            service,
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

    /// Ends the member. Clients and other members see its log and ingress end.
    pub fn close(self) {
        self.running.close();
    }
}

fn prepare<S: Service>(
    config: ClusterConfig,
    service: S,
    hooks: Hooks,
) -> Result<ModuleAgent<S>, LaunchError> {
    let config = Arc::new(config);
    let consensus = config.consensus()?;
    let files = StateFiles::open(&config.dir)?;
    let mark = claim_mark(&config)?;
    let mut builder = Client::builder().client_name(config.agent_name());
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
    let mut replicated =
        Replicated::new(service, config.member_id, config.time_unit, config.sessions);
    let snapshot = files.recording_log().latest_snapshot(1);
    let mut frames = None;
    let mut commit = 0;
    if let Some((module, services)) = snapshot {
        commit = module.log_position;
        start.load_module(module, &mut replicated)?;
        // There is one service.
        for service in services {
            frames = Some(start.load_service(service, &mut replicated)?);
        }
    }
    replicated.with_service(|service, cluster| service.on_start(cluster, frames.as_deref()));
    let recovered = Recovered {
        candidate_term: files.candidate_term(),
        terms: files.recording_log().terms()?,
        append_position: append,
        commit_position: commit,
    };
    let mut clock = SystemClock::new();
    let now = taran::Clock::now(&mut clock);
    let seed = u64::from_le_bytes(now.nanos.to_le_bytes()) ^ u64::from(std::process::id()) << 32;
    let core = Consensus::new(consensus, recovered, seed, now.nanos)?;
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
    let log = Log::new(client.clone(), Arc::clone(&config), params, append);
    let archive = start.archive.into_connection();
    mark.set_ready(now.epoch_millis);
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

fn check_duplicate(client: &Client, cluster_id: i32) -> Result<(), LaunchError> {
    let key = cluster_id.to_le_bytes();
    let other = client
        .counters()
        .find(|meta| meta.type_id == MODULE_STATE && meta.key[..4] == key);
    other.map_or(Ok(()), |other| {
        Err(LaunchError::Duplicate {
            cluster_id,
            counter_id: other.id,
        })
    })
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
    /// Waits until `condition` returns a value.
    fn wait<T>(
        &mut self,
        what: &'static str,
        mut condition: impl FnMut(&mut ArchiveClient) -> Result<Option<T>, LaunchError>,
    ) -> Result<T, LaunchError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            self.archive.poll();
            if let Some(value) = condition(&mut self.archive)? {
                return Ok(value);
            }
            if Instant::now() > deadline {
                return Err(LaunchError::Timeout { what });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

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
        let recording_id = self.wait("the creation of the log's recording", |_| {
            Ok(recording_of(client, &publication))
        })?;
        publication.close();
        Ok(recording_id)
    }

    fn stop_position(&mut self, recording_id: i64) -> Result<i64, LaunchError> {
        self.wait("the end of the log's recording", |archive| {
            Ok(archive.stop_position(recording_id)?)
        })
    }

    /// Reads the messages of a recording.
    fn read_recording(
        &mut self,
        recording_id: i64,
        mut take: impl FnMut(&[u8]) -> Result<(), SnapshotError>,
    ) -> Result<(), LaunchError> {
        let end = self.stop_position(recording_id)?;
        let (_, mut subscription) = self.archive.replay(
            recording_id,
            &self.config.replay_channel,
            self.config.replay_stream_id,
            &ReplayParams::new().position(0).length(end),
        )?;
        let mut assembler = FragmentAssembler::new();
        let mut failure = None;
        let mut position = 0;
        self.wait("the replay of a snapshot", |_| {
            let handler = |bytes: &[u8], header: &taran::Header<'_>| {
                position = header.position();
                if failure.is_none() {
                    failure = take(bytes).err();
                }
            };
            // A closed subscription ends in the time limit.
            let _ = subscription.poll(assembler.wrap(handler), 100);
            Ok((position >= end).then_some(()))
        })?;
        failure.map_or(Ok(()), |source| {
            Err(LaunchError::Snapshot {
                recording_id,
                source,
            })
        })
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
        self.read_recording(recording_id, |frame| {
            // What follows the end belongs to an extension.
            if !is_done {
                is_done = reader.on_frame(frame, sessions, timers)?;
            }
            Ok(())
        })?;
        let (marker, services) = reader.finish(1).map_err(|source| LaunchError::Snapshot {
            recording_id,
            source,
        })?;
        if let Some(pending) = services.into_iter().next() {
            replicated.pending = pending;
        }
        replicated.term = marker.leadership_term_id;
        replicated.position = marker.log_position;
        replicated.timestamp = entry.timestamp;
        Ok(())
    }

    /// Loads the sessions of a service, and returns the frames of its own.
    fn load_service<S: Service>(
        &mut self,
        entry: &RecordingLogEntry,
        replicated: &mut Replicated<S>,
    ) -> Result<Vec<Vec<u8>>, LaunchError> {
        let mut frames = Vec::new();
        let mut has_ended = false;
        let clients = &mut replicated.clients;
        self.read_recording(entry.recording_id, |frame| {
            if has_ended {
                frames.push(frame.to_vec());
                return Ok(());
            }
            match SnapshotMessage::decode(frame)? {
                SnapshotMessage::SnapshotMarker(marker) => {
                    has_ended = marker.mark == SnapshotMark::END;
                }
                SnapshotMessage::ClientSession(session) => {
                    let id = session.cluster_session_id;
                    clients.insert(
                        id,
                        ClientSession {
                            id,
                            response_stream_id: session.response_stream_id,
                            response_channel: session.response_channel.to_owned(),
                            principal: session.encoded_principal.to_vec(),
                        },
                    );
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(frames)
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
