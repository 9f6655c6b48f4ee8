// SPDX-License-Identifier: Apache-2.0
//! Logs that a container reads, one after the other (`docs/spec/cluster.md` §7.4).

use taran::{ChannelUri, ImageControlledFragmentAssembler, Pending, Subscription};

use super::agent::{ContainerAgent, ContainerError};
use crate::consensus::{MemberId, Nanos, Role};
use crate::protocol::JoinLog;
use crate::service::{ClientSession, Service};

/// Time limit for the image of a log. The consensus module keeps the log until its services have joined.
const IMAGE_TIMEOUT: Nanos = 10_000_000_000;

/// A request to read a log.
pub(super) struct Join {
    channel: String,
    stream_id: i32,
    session_id: i32,
    position: i64,
    max_position: i64,
    member_id: MemberId,
    role: Role,
    is_startup: bool,
}

impl Join {
    pub(super) fn new(message: &JoinLog<'_>) -> Self {
        Self {
            channel: message.log_channel.to_owned(),
            stream_id: message.log_stream_id,
            session_id: message.log_session_id,
            position: message.log_position,
            max_position: message.max_log_position,
            member_id: message.member_id,
            role: match message.role {
                2 => Role::Leader,
                1 => Role::Candidate,
                _ => Role::Follower,
            },
            is_startup: message.is_startup,
        }
    }
}

/// A log whose image is awaited.
pub(super) struct Joining {
    join: Join,
    pending: Option<Pending<Subscription>>,
    subscription: Option<Subscription>,
    deadline: Nanos,
}

/// A log that is read.
pub(super) struct ActiveLog {
    subscription: Subscription,
    session_id: i32,
    assembler: ImageControlledFragmentAssembler,
    pub(super) max_position: i64,
}

impl<S: Service> ContainerAgent<S> {
    /// Joins the newest log once the one before is read. Returns true if something was done.
    pub(super) fn join(&mut self) -> Result<bool, ContainerError> {
        if self.active.is_some() {
            return Ok(false);
        }
        if self.joining.is_none() {
            let Some(join) = self.next_join.take() else {
                return Ok(false);
            };
            if join.role != Role::Leader {
                self.replica.disconnect();
            }
            let alias = format!("log-sc-{}", self.config.service_id);
            let channel = ChannelUri::parse(&join.channel)?.with("alias", &alias)?;
            let pending = self
                .client
                .async_add_subscription(channel.as_str(), join.stream_id)?;
            self.joining = Some(Joining {
                join,
                pending: Some(pending),
                subscription: None,
                deadline: self.now.nanos + IMAGE_TIMEOUT,
            });
        }
        let Some(joining) = &mut self.joining else {
            return Ok(false);
        };
        if let Some(result) = joining.pending.as_mut().and_then(Pending::poll) {
            joining.pending = None;
            joining.subscription = Some(result?);
        }
        let session_id = joining.join.session_id;
        let subscription = joining.subscription.as_ref();
        let view = subscription.and_then(|subscription| subscription.image(session_id));
        let Some(view) = view else {
            if self.now.nanos > joining.deadline {
                return Err(ContainerError::NoImage {
                    session_id,
                    channel: joining.join.channel.clone(),
                    seconds: IMAGE_TIMEOUT / 1_000_000_000,
                });
            }
            return Ok(false);
        };
        let (start, image) = (joining.join.position, view.join_position());
        let position = self.replica.position;
        if start != position || image != position {
            return Err(ContainerError::NotContiguous {
                start,
                image,
                position,
            });
        }
        if let Some(Joining {
            join,
            subscription: Some(subscription),
            ..
        }) = self.joining.take()
        {
            self.begin(&join, subscription);
        }
        Ok(true)
    }

    fn begin(&mut self, join: &Join, subscription: Subscription) {
        self.active = Some(ActiveLog {
            subscription,
            session_id: join.session_id,
            assembler: ImageControlledFragmentAssembler::new(),
            max_position: join.max_position,
        });
        let timestamp = self.replica.timestamp;
        self.replica
            .requests
            .acknowledge(join.position, timestamp, -1);
        self.replica.member_id = join.member_id;
        self.mark.set_member_id(join.member_id);
        if join.role == Role::Leader && !join.is_startup {
            let sessions: Vec<ClientSession> = self.replica.clients.values().cloned().collect();
            for session in &sessions {
                self.replica.connect(&self.client, session);
            }
        }
        self.replica.take_role(join.role);
    }

    /// Reads the active log as far as it is committed. Returns the number of fragments.
    pub(super) fn read_log(&mut self) -> Result<usize, ContainerError> {
        let Self {
            active,
            replica,
            client,
            config,
            commit,
            ..
        } = self;
        let Some(log) = active else {
            return Ok(0);
        };
        let commit = commit.and_then(|(counter, _)| client.counters().value(counter));
        let limit = commit.unwrap_or(0).min(log.max_position);
        let Some(image) = log.subscription.image_mut(log.session_id) else {
            self.close_log();
            return Ok(0);
        };
        let handler = |bytes: &[u8], header: &taran::Header<'_>| {
            replica.on_entry(client, bytes, header.position())
        };
        let fragments = image.bounded_controlled_poll(
            log.assembler.wrap(handler),
            limit,
            config.log_fragment_limit,
        );
        let position = image.view().position();
        // Padding counts as read. An entry that was refused is read again.
        replica.position = replica.position.max(position);
        let is_done = position >= log.max_position || image.view().is_end_of_stream();
        if let Some(error) = self.replica.failure.take() {
            return Err(error);
        }
        if is_done {
            self.close_log();
        }
        Ok(fragments)
    }

    fn close_log(&mut self) {
        self.active = None;
        self.replica.disconnect();
        self.replica.take_role(Role::Follower);
    }
}
