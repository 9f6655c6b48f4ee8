// SPDX-License-Identifier: Apache-2.0
//! Publications to the other members.

use std::collections::HashMap;
use std::sync::Arc;

use taran::{ChannelUri, Client, CommandError, ExclusivePublication, Media, Pending, UriError};
use thiserror::Error;

use crate::consensus::{MemberId, Nanos};
use crate::members::host;
use crate::module::config::ClusterConfig;

/// Attempts of one message, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

/// Reason why a member cannot be sent to.
#[derive(Debug, Error)]
pub(super) enum PeerError {
    #[error("no publication to member {member}: {source}")]
    Command {
        member: MemberId,
        source: CommandError,
    },
    #[error("the consensus channel of member {member} is invalid: {source}")]
    Channel { member: MemberId, source: UriError },
}

/// Publication to another member.
enum Peer {
    /// There is none before this time.
    Absent {
        retry: Nanos,
    },
    Adding(Pending<ExclusivePublication>),
    Ready(Box<ExclusivePublication>),
}

/// Publications to the other members, which are added when they are used first.
pub(super) struct Peers {
    client: Client,
    config: Arc<ClusterConfig>,
    by_id: HashMap<MemberId, Peer>,
}

impl Peers {
    pub(super) fn new(client: Client, config: Arc<ClusterConfig>) -> Self {
        Self {
            client,
            config,
            by_id: HashMap::new(),
        }
    }

    /// Sends a message, if the publication is there. Returns true if it was sent: a message that is not, or is lost, has to be
    /// repeated by its sender.
    pub(super) fn send(
        &mut self,
        to: MemberId,
        bytes: &[u8],
        now: Nanos,
    ) -> Result<bool, PeerError> {
        let Self {
            client,
            config,
            by_id,
        } = self;
        let peer = by_id.entry(to).or_insert(Peer::Absent { retry: now });
        let retry = Peer::Absent {
            retry: now + config.timing.heartbeat_timeout,
        };
        match peer {
            Peer::Absent { retry: at } if now < *at => return Ok(false),
            Peer::Absent { .. } => {
                *peer = retry;
                *peer = Peer::Adding(connect(client, config, to)?);
                return Ok(false);
            }
            Peer::Adding(pending) => match pending.poll() {
                None => return Ok(false),
                Some(Ok(publication)) => *peer = Peer::Ready(Box::new(publication)),
                Some(Err(source)) => {
                    *peer = retry;
                    return Err(PeerError::Command { member: to, source });
                }
            },
            Peer::Ready(_) => {}
        }
        let Peer::Ready(publication) = peer else {
            return Ok(false);
        };
        Ok((0..ATTEMPTS).any(|_| publication.offer(bytes).is_ok()))
    }
}

fn connect(
    client: &Client,
    config: &ClusterConfig,
    member: MemberId,
) -> Result<Pending<ExclusivePublication>, PeerError> {
    let uri = channel_to(config, member).map_err(|source| PeerError::Channel { member, source })?;
    client
        .async_add_exclusive_publication(uri.as_str(), config.consensus_stream_id)
        .map_err(|source| PeerError::Command { member, source })
}

/// Returns the channel to a member. Its socket is bound to the own host, if the configuration says so.
fn channel_to(config: &ClusterConfig, member: MemberId) -> Result<ChannelUri, UriError> {
    let endpoint = config.members.get(member).map(|it| it.consensus.as_str());
    // The core sends to members only.
    let uri = ChannelUri::parse(&config.consensus_channel)?
        .with("endpoint", endpoint.unwrap_or_default())?;
    if !config.consensus_control_enable || uri.media() != Media::Udp {
        return Ok(uri);
    }
    uri.with("control", &format!("{}:0", host(&config.own().consensus)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_to_a_member_is_bound_to_the_own_host_unless_that_is_disabled() {
        let members = "0,a:1,a:2,a:3,a:4,a:5|1,b:1,b:2,b:3,b:4,b:5";
        let channel = |enable| {
            let config = ClusterConfig::from_properties([
                ("aeron.cluster.members", members),
                ("aeron.cluster.consensus.channel", "aeron:udp"),
                ("aeron.cluster.consensus.control.enable", enable),
            ]);
            channel_to(&config.unwrap(), 1).unwrap().as_str().to_owned()
        };
        assert_eq!(channel("true"), "aeron:udp?endpoint=b:2|control=a:0");
        assert_eq!(channel("false"), "aeron:udp?endpoint=b:2");
    }
}
