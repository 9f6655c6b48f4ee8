// SPDX-License-Identifier: Apache-2.0
//! A member, as its files and its driver show it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use taran::{Client, FragmentAssembler};
use taran_cluster::files::{Mark, MarkComponent, RecordingLog};
use taran_cluster::module::type_id;
use taran_cluster::protocol::{
    ClusterMembersExtendedResponse, ClusterMembersQuery, ServiceRequest,
};
use taran_core::counters::Counter;

use crate::failure::Failure;

/// Interval between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Role of a member that leads, or is elected to.
pub(crate) const LEADER: i64 = 2;
/// State of an election that is over.
pub(crate) const ELECTION_CLOSED: i64 = 17;
/// Time after which a question is asked again.
const REPEAT: Duration = Duration::from_secs(1);

/// Names of the states of a consensus module, by the value of its counter.
const STATES: [&str; 7] = [
    "INIT",
    "ACTIVE",
    "SUSPENDED",
    "SNAPSHOT",
    "QUITTING",
    "TERMINATING",
    "CLOSED",
];

/// Returns the name of a state of the consensus module.
pub(crate) fn state_name(value: i64) -> String {
    let name = usize::try_from(value).ok().and_then(|at| STATES.get(at));
    name.map_or_else(|| value.to_string(), |name| (*name).to_owned())
}

/// Returns the path of a member's mark file, which may be in another directory.
fn mark_path(dir: &Path) -> Result<PathBuf, Failure> {
    let link = dir.join("cluster-mark.lnk");
    let mark_dir = match std::fs::read_to_string(&link) {
        Ok(text) => PathBuf::from(text.trim()),
        Err(error) if error.kind() == ErrorKind::NotFound => dir.to_path_buf(),
        Err(source) => return Err(Failure::File { path: link, source }),
    };
    Ok(mark_dir.join("cluster-mark.dat"))
}

/// Reads the mark file of a member.
pub(super) fn mark(dir: &Path) -> Result<(PathBuf, Mark, Vec<u8>), Failure> {
    find_mark(dir)?.ok_or_else(|| {
        Failure::Other(format!(
            "there is no cluster-mark.dat: no member has run in {}; give its aeron.cluster.dir",
            dir.display()
        ))
    })
}

/// Reads the mark file of a member, if there is one.
pub(super) fn find_mark(dir: &Path) -> Result<Option<(PathBuf, Mark, Vec<u8>)>, Failure> {
    let path = mark_path(dir)?;
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::File { path, source }),
    };
    let mark = Mark::parse(&bytes).map_err(|reason| {
        Failure::Other(format!("{} is no mark file: {reason}", path.display()))
    })?;
    if mark.component != MarkComponent::ConsensusModule {
        return Err(Failure::Other(format!(
            "{} is of the component {:?}, not of a consensus module",
            path.display(),
            mark.component
        )));
    }
    Ok(Some((path, mark, bytes)))
}

/// Reads the recording log of a member.
pub(super) fn recording_log(dir: &Path) -> Result<(PathBuf, RecordingLog), Failure> {
    let path = dir.join("recording.log");
    let bytes = std::fs::read(&path).map_err(|source| Failure::File {
        path: path.clone(),
        source,
    })?;
    let log = RecordingLog::decode(&bytes)
        .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    Ok((path, log))
}

/// A member whose driver runs.
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) client: Client,
    timeout: Duration,
}

impl Node {
    pub(super) fn attach(dir: &Path, timeout: Duration) -> Result<Self, Failure> {
        let (_, mark, _) = mark(dir)?;
        let client = Client::builder()
            .client_name("taran-members")
            .aeron_dir(&mark.aeron_directory)
            .connect()
            .map_err(|error| {
                Failure::Other(format!(
                    "member {} (pid {}) cannot be reached through its driver: {error}",
                    mark.member_id, mark.pid
                ))
            })?;
        let node = Self {
            mark,
            client,
            timeout,
        };
        if node.value(type_id::MODULE_STATE).is_none() {
            return Err(Failure::Other(format!(
                "no consensus module of cluster {} runs with the driver in {}: the member of {} (pid {}) has ended",
                node.mark.cluster_id,
                node.mark.aeron_directory,
                dir.display(),
                node.mark.pid
            )));
        }
        Ok(node)
    }

    fn counter_id(&self, type_id: i32) -> Option<i32> {
        let key = self.mark.cluster_id.to_le_bytes();
        let counters = self.client.counters();
        let found = counters.find(|meta| meta.type_id == type_id && meta.key[..4] == key);
        found.map(|meta| meta.id)
    }

    /// Returns the value of a counter of the consensus module.
    pub(super) fn value(&self, type_id: i32) -> Option<i64> {
        self.client.counters().value(self.counter_id(type_id)?)
    }

    /// Returns a counter of the consensus module, to change it.
    pub(super) fn counter(&self, type_id: i32) -> Option<Counter> {
        let found = self.client.counters().counter(self.counter_id(type_id)?)?;
        Some(found)
    }

    pub(super) fn is_leader(&self) -> bool {
        let role = self.value(type_id::NODE_ROLE);
        let election = self.value(type_id::ELECTION_STATE);
        (role, election) == (Some(LEADER), Some(ELECTION_CLOSED))
    }

    /// Waits until `condition` returns a value; `what` says what is missing otherwise.
    pub(super) fn wait<T>(
        &self,
        what: &str,
        mut condition: impl FnMut() -> Option<T>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + self.timeout;
        loop {
            if let Some(value) = condition() {
                return Ok(value);
            }
            if Instant::now() > deadline {
                return Err(Failure::Other(format!(
                    "{what} within {:?} (--timeout)",
                    self.timeout
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Asks the member for all members.
    pub(super) fn members(&self) -> Result<ClusterMembersExtendedResponse, Failure> {
        let refused = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
        let channel = &self.mark.control_channel;
        let mut subscription = self
            .client
            .add_subscription(channel, self.mark.service_stream_id)
            .map_err(|error| refused(&error))?;
        let publication = self
            .client
            .add_publication(channel, self.mark.consensus_module_stream_id)
            .map_err(|error| refused(&error))?;
        let correlation_id = self.client.next_correlation_id();
        let query = ServiceRequest::ClusterMembersQuery(ClusterMembersQuery {
            correlation_id,
            extended: true,
        });
        let mut bytes = [0; 64];
        let length = query.encode(&mut bytes).map_err(|error| refused(&error))?;
        let mut assembler = FragmentAssembler::new();
        let mut next = Instant::now();
        self.wait("the member does not answer", || {
            if subscription.is_connected() && Instant::now() >= next {
                match publication.offer(&bytes[..length]) {
                    Ok(_) => next = Instant::now() + REPEAT,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Some(Err(refused(&error))),
                }
            }
            let mut answer = None;
            let handler = |bytes: &[u8], _: &taran::Header<'_>| {
                let response = ClusterMembersExtendedResponse::decode(bytes).ok();
                answer = answer
                    .take()
                    .or(response.filter(|it| it.correlation_id == correlation_id));
            };
            if let Err(error) = subscription.poll(assembler.wrap(handler), 10) {
                return Some(Err(refused(&error)));
            }
            answer.map(Ok)
        })?
    }
}
