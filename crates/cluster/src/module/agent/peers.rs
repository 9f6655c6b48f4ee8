// SPDX-License-Identifier: Apache-2.0
//! Publications to the other members.

use std::collections::HashMap;
use std::sync::Arc;

use taran::{ChannelUri, Client, CommandError, ExclusivePublication, Pending, UriError};
use thiserror::Error;

use crate::consensus::{MemberId, Nanos};
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
    let endpoint = config.members.get(member).map(|it| it.consensus.as_str());
    let uri = ChannelUri::parse(&config.consensus_channel)
        // The core sends to members only.
        .and_then(|uri| uri.with("endpoint", endpoint.unwrap_or_default()))
        .map_err(|source| PeerError::Channel { member, source })?;
    client
        .async_add_exclusive_publication(uri.as_str(), config.consensus_stream_id)
        .map_err(|source| PeerError::Command { member, source })
}
