//! Streams between the consensus module and containers of services, or tools (`docs/spec/cluster.md` §7).

use taran::{Client, CommandError, Counter, FragmentAssembler, Publication, Subscription};
use taran_cluster_client::protocol::{JoinLog, ServiceCommand, ServiceTerminationPosition};
use taran_protocol::counter::{HeartbeatKey, type_id};

use super::config::ClusterConfig;
use super::log::LogJoin;
use crate::consensus::MemberId;
use crate::files::RecordingLogEntry;
use crate::state::ServiceAcks;

/// Type of the counter from which containers learn what to load.
pub(crate) const RECOVERY_STATE: i32 = 204;

/// Attempts of one message, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

/// Offset in the key of the recovery state at which the recordings of the services' snapshots start.
pub(crate) const RECOVERY_RECORDINGS: usize = 32;

/// Streams to and from containers and tools, and what is known of the containers.
pub(super) struct Containers {
    publication: Publication,
    pub(super) subscription: Subscription,
    pub(super) assembler: FragmentAssembler,
    pub(super) acks: ServiceAcks,
    /// Client ids of the containers, once they have started.
    pub(super) clients: Vec<i64>,
    /// The state to recover from, while containers start.
    recovery: Option<Counter>,
    /// Commands that wait for room.
    waiting: Vec<Vec<u8>>,
}

impl Containers {
    /// Creates the streams. `count` containers are awaited; none if the service runs in this process.
    pub(super) fn add(
        client: &Client,
        config: &ClusterConfig,
        count: usize,
    ) -> Result<Self, CommandError> {
        let channel = &config.control_channel;
        Ok(Self {
            publication: client.add_publication(channel, config.service_stream_id)?,
            subscription: client.add_subscription(channel, config.consensus_module_stream_id)?,
            assembler: FragmentAssembler::new(),
            acks: ServiceAcks::new(count),
            clients: Vec::new(),
            recovery: None,
            waiting: Vec::new(),
        })
    }

    /// Tells containers to load these snapshots, or to start without.
    pub(super) fn start(
        &mut self,
        client: &Client,
        cluster_id: i32,
        snapshot: Option<(&RecordingLogEntry, Vec<&RecordingLogEntry>)>,
    ) -> Result<(), CommandError> {
        let (term, position, timestamp, recordings) = match snapshot {
            Some((module, services)) => (
                module.leadership_term_id,
                module.log_position,
                module.timestamp,
                services.iter().map(|it| it.recording_id).collect(),
            ),
            None => (-1, 0, 0, Vec::new()),
        };
        let mut key = Vec::with_capacity(RECOVERY_RECORDINGS + 8 * recordings.len());
        for value in [term, position, timestamp] {
            key.extend_from_slice(&value.to_le_bytes());
        }
        key.extend_from_slice(&cluster_id.to_le_bytes());
        key.extend_from_slice(&(recordings.len() as u32).to_le_bytes());
        for recording in recordings {
            key.extend_from_slice(&recording.to_le_bytes());
        }
        let label = format!(
            "Cluster recovery: leadershipTermId={term} logPosition={position} clusterId={cluster_id}"
        );
        self.recovery = Some(client.add_counter(RECOVERY_STATE, &key, &label)?);
        Ok(())
    }

    /// Notes that all containers have started.
    pub(super) fn on_started(&mut self, clients: Vec<i64>) {
        self.recovery = None;
        self.clients = clients;
    }

    /// Returns a service whose container is gone.
    pub(super) fn lost(&self, client: &Client) -> Option<usize> {
        let counters = client.counters();
        self.clients.iter().position(|id| {
            let key = HeartbeatKey { client_id: *id }.encode();
            let found = counters
                .find(|meta| meta.type_id == type_id::CLIENT_HEARTBEAT && meta.key[..8] == key);
            found.is_none()
        })
    }

    pub(super) fn join_log(&mut self, join: &LogJoin, member_id: MemberId, is_startup: bool) {
        self.send(&ServiceCommand::JoinLog(JoinLog {
            log_position: join.position,
            max_log_position: join.max_position,
            member_id,
            log_session_id: join.session_id,
            log_stream_id: join.stream_id,
            is_startup,
            role: if join.is_leader { 2 } else { 0 },
            is_standby: false,
            log_channel: &join.channel,
        }));
    }

    /// Ends the services at a position; 0 ends them now, without an acknowledgement that counts.
    pub(super) fn terminate(&mut self, log_position: i64) {
        self.send(&ServiceCommand::ServiceTerminationPosition(
            ServiceTerminationPosition { log_position },
        ));
    }

    pub(super) fn send(&mut self, command: &ServiceCommand<'_>) {
        let mut bytes = vec![0; 512];
        let length = loop {
            match command.encode(&mut bytes) {
                Ok(length) => break length,
                Err(_) => bytes.resize(bytes.len() * 2, 0),
            }
        };
        bytes.truncate(length);
        self.waiting.push(bytes);
        self.flush();
    }

    /// Sends an encoded answer to a tool, which asks again if it does not get it.
    pub(super) fn answer(&mut self, bytes: &[u8]) {
        let _ = (0..ATTEMPTS).any(|_| self.publication.offer(bytes).is_ok());
    }

    /// Sends what waits for room.
    pub(super) fn flush(&mut self) {
        while let Some(bytes) = self.waiting.first()
            && (0..ATTEMPTS).any(|_| self.publication.offer(bytes).is_ok())
        {
            self.waiting.remove(0);
        }
    }
}
