// SPDX-License-Identifier: Apache-2.0
//! Streams between the consensus module and containers of services, or tools (`docs/spec/cluster.md` §7).

use std::collections::VecDeque;

use taran::{
    Client, CommandError, Counter, FragmentAssembler, OfferError, Publication, Subscription,
};
use taran_cluster_client::protocol::{JoinLog, ServiceCommand, ServiceTerminationPosition};
use taran_protocol::counter::{HeartbeatKey, type_id};
use taran_sbe::runtime::EncodeError;
use thiserror::Error;

use super::config::ClusterConfig;
use super::log::LogJoin;
use super::type_id::RECOVERY_STATE;
use crate::consensus::MemberId;
use crate::files::RecordingLogEntry;
use crate::state::ServiceAcks;

/// Attempts of one message, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

/// Commands that may wait for room. Containers that follow the protocol leave fewer: each join is acknowledged before the next.
const MAX_WAITING: usize = 64;

/// Length of the buffer that a message is tried in first.
const FIRST_LENGTH: usize = 512;

/// Offset in the key of the recovery state at which the recordings of the services' snapshots start.
pub(crate) const RECOVERY_RECORDINGS: usize = 32;

/// Reason why containers cannot be commanded any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContainersError {
    /// A command is longer than the longest message of the control stream.
    #[error("a command for containers cannot be encoded: {0}")]
    Encode(EncodeError),
    /// The publication refuses a command for good, or too many commands wait for room.
    #[error("the containers cannot be commanded any more: {0}")]
    Offer(OfferError),
}

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
    waiting: VecDeque<Vec<u8>>,
    failure: Option<ContainersError>,
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
            waiting: VecDeque::new(),
            failure: None,
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

    fn send(&mut self, command: &ServiceCommand<'_>) {
        let max = self.publication.max_message_length();
        match encoded(max, |buffer| command.encode(buffer)) {
            Ok(bytes) => self.waiting.push_back(bytes),
            Err(error) => self.failure = Some(ContainersError::Encode(error)),
        }
        // A failure is kept for the next duty cycle, which flushes again.
        let _ = self.flush();
    }

    /// Sends an answer to a tool, which asks again if it does not get it.
    ///
    /// # Errors
    /// The answer is longer than the longest message of the stream.
    pub(super) fn answer(
        &self,
        encode: impl Fn(&mut [u8]) -> Result<usize, EncodeError>,
    ) -> Result<(), EncodeError> {
        let bytes = encoded(self.publication.max_message_length(), encode)?;
        let _ = offer(&self.publication, &bytes);
        Ok(())
    }

    /// Sends what waits for room.
    ///
    /// # Errors
    /// A command cannot be sent, now or later, or too many of them wait.
    pub(super) fn flush(&mut self) -> Result<(), ContainersError> {
        while let Some(bytes) = self.waiting.front() {
            match offer(&self.publication, bytes) {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(error) if error.is_retryable() && self.waiting.len() <= MAX_WAITING => break,
                Err(error) => {
                    self.failure = Some(ContainersError::Offer(error));
                    break;
                }
            }
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Offers a message, again if it meets the end of a term.
fn offer(publication: &Publication, bytes: &[u8]) -> Result<(), OfferError> {
    for _ in 1..ATTEMPTS {
        match publication.offer(bytes) {
            Err(OfferError::AdminAction) => {}
            result => return result.map(|_| ()),
        }
    }
    publication.offer(bytes).map(|_| ())
}

/// Encodes a message of at most `max` bytes.
fn encoded(
    max: usize,
    encode: impl Fn(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = vec![0; FIRST_LENGTH.min(max)];
    loop {
        match encode(&mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Err(EncodeError::Short { .. }) if bytes.len() < max => {
                let length = (bytes.len() * 2).min(max);
                bytes.resize(length, 0);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_grows_to_the_longest_message_and_no_further() {
        let encode = |needed: usize| {
            move |buffer: &mut [u8]| {
                let actual = buffer.len();
                if actual < needed {
                    let what = "text";
                    return Err(EncodeError::Short {
                        what,
                        needed,
                        actual,
                    });
                }
                Ok(needed)
            }
        };
        assert_eq!(encoded(3000, encode(10)).map(|it| it.len()), Ok(10));
        assert_eq!(encoded(3000, encode(3000)).map(|it| it.len()), Ok(3000));
        let refused = encoded(3000, encode(3001));
        assert!(matches!(
            refused,
            Err(EncodeError::Short { actual: 3000, .. })
        ));
    }
}
