// SPDX-License-Identifier: Apache-2.0
//! The log of the leader, read from its archive.

use std::time::Duration;

use taran::{ChannelUri, Client, Pending, Subscription};
use taran_archive_client::{
    ArchiveConnecting, ArchiveConnection, ArchiveContext, Call, ReplayParams, ReplaySession,
    ReplicationParams,
};

use super::config::ClusterConfig;
use super::log::{LogError, find_recording};
use crate::consensus::{MemberId, Nanos};
use crate::members::host;
use crate::protocol::LogMessage;

/// Length of a NewLeadershipTermEvent in the log.
const TERM_EVENT_LENGTH: i64 = 96;

/// Stream id of control requests to archives of other members.
const ARCHIVE_CONTROL_STREAM: i32 = 10;

/// Time limit for the archive of the leader.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A leader, as its announcements describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) member_id: MemberId,
    pub(super) log_session_id: i32,
    pub(super) recording_id: i64,
}

/// Progress of a [`Fetch`].
pub(super) enum FetchProgress {
    Pending,
    Read { position: i64, term: Option<i64> },
}

/// Reads the entry at a position of the leader's log.
pub(super) struct Fetch {
    leader: Leader,
    position: i64,
    replay_channel: String,
    replay_stream_id: i32,
    step: FetchStep,
}

enum FetchStep {
    Connecting(Box<ArchiveConnecting>),
    Subscribing(Box<ArchiveConnection>, Pending<Subscription>),
    Requesting(
        Box<ArchiveConnection>,
        Subscription,
        Option<Call<ReplaySession>>,
    ),
    Reading(Box<ArchiveConnection>, Subscription),
    Ended,
}

fn archive_channel(config: &ClusterConfig, leader: &Leader) -> Result<String, LogError> {
    let member = config.members.get(leader.member_id);
    let member = member.ok_or(LogError::UnknownLeader)?;
    let channel = ChannelUri::parse(&config.leader_archive_channel)?;
    Ok(channel
        .with("endpoint", &member.archive)?
        .as_str()
        .to_owned())
}

impl Fetch {
    pub(super) fn start(
        client: &Client,
        config: &ClusterConfig,
        leader: &Leader,
        position: i64,
        now: Nanos,
    ) -> Result<Self, LogError> {
        let own = host(&config.own().catchup);
        let channel = format!("aeron:udp?endpoint={own}:0");
        let context = ArchiveContext::new()
            .control_channel(archive_channel(config, leader)?)
            .control_stream_id(ARCHIVE_CONTROL_STREAM)
            .response_channel(channel.clone())
            .message_timeout(ARCHIVE_TIMEOUT);
        let connecting = context.connecting(client, now);
        let connecting = connecting.map_err(|error| failed(leader, &error))?;
        Ok(Self {
            leader: leader.clone(),
            position,
            replay_channel: channel,
            replay_stream_id: config.replay_stream_id,
            step: FetchStep::Connecting(Box::new(connecting)),
        })
    }

    pub(super) fn poll(&mut self, client: &Client, now: Nanos) -> Result<FetchProgress, LogError> {
        let leader = self.leader.clone();
        let step = std::mem::replace(&mut self.step, FetchStep::Ended);
        self.step = match step {
            FetchStep::Connecting(mut connecting) => {
                match connecting
                    .poll(now)
                    .map_err(|error| failed(&leader, &error))?
                {
                    None => FetchStep::Connecting(connecting),
                    Some(connection) => {
                        let pending = client
                            .async_add_subscription(&self.replay_channel, self.replay_stream_id)?;
                        FetchStep::Subscribing(Box::new(connection), pending)
                    }
                }
            }
            FetchStep::Subscribing(connection, mut pending) => match pending.poll() {
                None => FetchStep::Subscribing(connection, pending),
                Some(subscription) => FetchStep::Requesting(connection, subscription?, None),
            },
            FetchStep::Requesting(mut connection, subscription, mut call) => {
                connection.poll(now);
                if call.is_none()
                    && let Some(channel) = subscription.try_resolve_channel_endpoint_port()
                {
                    let params = ReplayParams::new()
                        .position(self.position)
                        .length(TERM_EVENT_LENGTH);
                    call = Some(connection.start_replay(
                        leader.recording_id,
                        &channel,
                        self.replay_stream_id,
                        &params,
                    ));
                }
                match call.as_mut().and_then(Call::poll) {
                    None => FetchStep::Requesting(connection, subscription, call),
                    Some(Ok(_)) => FetchStep::Reading(connection, subscription),
                    // A log that ends here, or begins behind: there is no entry.
                    Some(Err(error)) if error.code().is_some() => {
                        return Ok(FetchProgress::Read {
                            position: self.position,
                            term: None,
                        });
                    }
                    Some(Err(error)) => return Err(failed(&leader, &error)),
                }
            }
            FetchStep::Reading(mut connection, mut subscription) => {
                connection.poll(now);
                let mut term = None;
                let read = subscription.poll(
                    |bytes, _| {
                        term = match LogMessage::decode(bytes) {
                            Ok(LogMessage::NewLeadershipTermEvent(event)) => {
                                Some(event.leadership_term_id)
                            }
                            _ => None,
                        };
                    },
                    1,
                );
                if read.map_err(|error| failed(&leader, &error))? > 0 {
                    return Ok(FetchProgress::Read {
                        position: self.position,
                        term,
                    });
                }
                FetchStep::Reading(connection, subscription)
            }
            FetchStep::Ended => FetchStep::Ended,
        };
        Ok(FetchProgress::Pending)
    }
}

fn failed(leader: &Leader, error: &impl ToString) -> LogError {
    LogError::Remote {
        leader: leader.member_id,
        reason: error.to_string(),
    }
}

/// Replication of the leader's recording to the own one.
pub(super) struct Replication {
    recording_id: i64,
    end: i64,
    call: Option<Call<i64>>,
    stop_position: Option<Call<Option<i64>>>,
}

impl Replication {
    pub(super) fn start(
        config: &ClusterConfig,
        leader: &Leader,
        recording_id: i64,
        end: i64,
        archive: &mut ArchiveConnection,
    ) -> Result<Self, LogError> {
        let params = ReplicationParams::new()
            .destination(recording_id)
            .stop_position(end)
            .replication_channel(config.replication_channel.clone());
        let channel = archive_channel(config, leader)?;
        let call = archive.replicate(
            leader.recording_id,
            &channel,
            ARCHIVE_CONTROL_STREAM,
            &params,
        );
        Ok(Self {
            recording_id,
            end,
            call: Some(call),
            stop_position: None,
        })
    }

    pub(super) const fn end(&self) -> i64 {
        self.end
    }

    /// Returns the recorded position when the replication has ended, or proceeds.
    pub(super) fn poll(
        &mut self,
        archive: &mut ArchiveConnection,
        client: &Client,
    ) -> Result<Option<i64>, LogError> {
        if let Some(call) = &mut self.call {
            let Some(result) = call.poll() else {
                return Ok(None);
            };
            self.call = None;
            result?;
        }
        if let Some(counter) = find_recording(client, self.recording_id, None) {
            // The end counts once the recording has stopped, so that it can be extended.
            let position = client.counters().value(counter);
            return Ok(position.filter(|position| *position < self.end));
        }
        let recording_id = self.recording_id;
        let call = self
            .stop_position
            .get_or_insert_with(|| archive.stop_position(recording_id));
        let Some(result) = call.poll() else {
            return Ok(None);
        };
        self.stop_position = None;
        Ok(result?)
    }
}
