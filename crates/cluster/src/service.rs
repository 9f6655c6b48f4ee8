// SPDX-License-Identifier: Apache-2.0
//! Services: user state machines that run in the process of the consensus module, or in a container of their own
//! (`docs/spec/cluster.md` §7).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use taran::{OfferError, Publication};
use thiserror::Error;

use crate::consensus::{MemberId, Role};
use crate::container::Requests;
use crate::protocol::{CloseReason, SESSION_HEADER_LENGTH, SessionMessageHeader};
use crate::state::{Handle, PendingMessages, ServiceMessageError, Sessions, Timers};

/// A session of a client, as services see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSession {
    /// Id of the session.
    pub id: i64,
    /// Stream id for egress.
    pub response_stream_id: i32,
    /// Channel for egress.
    pub response_channel: String,
    /// Principal of the client.
    pub principal: Vec<u8>,
}

/// Reason why a message to a client was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No session is open with this id.
    #[error("there is no session {session_id}")]
    UnknownSession {
        /// The id.
        session_id: i64,
    },
    /// The client's egress is not connected: it left, or is about to reconnect.
    #[error("the client of session {session_id} is not connected")]
    NotConnected {
        /// The session.
        session_id: i64,
    },
    /// The egress publication refused the message.
    #[error(transparent)]
    Offer(#[from] OfferError),
}

impl SendError {
    /// Returns true if the same message may be sent later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Offer(error) => error.is_retryable(),
            Self::NotConnected { .. } => true,
            Self::UnknownSession { .. } => false,
        }
    }
}

/// A replicated state machine.
///
/// All members call it with the same messages in the same order. What it does must depend on nothing else: not on the wall clock,
/// random numbers, files, or the order of a hash map; time is [`Cluster::timestamp`]. Calls come from the agent of the
/// consensus module, or of the container, and must not wait.
pub trait Service: Send {
    /// Called before [`on_start`](Self::on_start) if there is a snapshot. An error is the reason why this service cannot begin with
    /// it, and ends the start of the member or container: the frames are of another service, of a later version, or damaged.
    fn check_snapshot(&self, frames: &[Vec<u8>]) -> Result<(), String> {
        let _ = frames;
        Ok(())
    }

    /// Called once at the start, with the frames of the last snapshot if there is one.
    fn on_start(&mut self, cluster: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>);

    /// Called when a session is open.
    fn on_session_open(&mut self, cluster: &mut Cluster<'_>, session: &ClientSession) {
        let _ = (cluster, session);
    }

    /// Called when a session is closed.
    fn on_session_close(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: &ClientSession,
        reason: CloseReason,
    ) {
        let _ = (cluster, session, reason);
    }

    /// Called with a message of a client, or of a service if there is no session.
    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    );

    /// Called when a timer is due.
    fn on_timer_event(&mut self, cluster: &mut Cluster<'_>, correlation_id: i64) {
        let _ = (cluster, correlation_id);
    }

    /// Called when a snapshot is to be taken: writes the state as frames, or shares it with an iterator that makes them later
    /// ([`SnapshotWriter::write_later`]).
    fn on_take_snapshot(&mut self, cluster: &mut Cluster<'_>, snapshot: &mut SnapshotWriter);

    /// Called when a new leader has begun its term.
    fn on_new_leadership_term(&mut self, cluster: &mut Cluster<'_>, term: i64, leader: MemberId) {
        let _ = (cluster, term, leader);
    }

    /// Called when the role of the member has changed.
    fn on_role_change(&mut self, role: Role) {
        let _ = role;
    }

    /// Called before the member ends in order.
    fn on_terminate(&mut self) {}

    /// Called in each duty cycle, also without an entry of the log: for answers that wait for room, and work outside the cluster.
    /// It must not change what is replicated. Returns the amount of work done.
    fn do_background_work(&mut self, cluster: &Cluster<'_>) -> usize {
        let _ = cluster;
        0
    }
}

/// Takes the frames of a service's snapshot.
#[derive(Default)]
pub struct SnapshotWriter(SnapshotFrames);

impl SnapshotWriter {
    /// Creates a writer without frames.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frame. [`Service::on_start`] gets the frames in the same order.
    pub fn write(&mut self, frame: impl Into<Vec<u8>>) {
        self.0.push(frame.into());
    }

    /// Adds the frames of an iterator, which is asked for them after [`Service::on_take_snapshot`] has returned, for a few in each
    /// duty cycle, while the member goes on with the log. What it yields must be the state at the time of this call: the iterator
    /// owns it, or shares it with a service that copies what it changes (`Arc::make_mut`). Each frame must be made without
    /// waiting, and in much less time than messages may be delayed for.
    ///
    /// [`write`](Self::write) copies its frames within the call. With a large state the member stands still for that time, and a
    /// leader that stands still for the heartbeat timeout loses its leadership.
    pub fn write_later(
        &mut self,
        frames: impl IntoIterator<Item = Vec<u8>, IntoIter: Send + 'static>,
    ) {
        self.0.push_all(frames);
    }

    /// Returns the frames.
    #[must_use]
    pub fn into_frames(self) -> Vec<Vec<u8>> {
        self.0.collect()
    }

    /// Returns the frames in the order in which they were added.
    pub(crate) fn frames(self) -> SnapshotFrames {
        self.0
    }
}

impl fmt::Debug for SnapshotWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotWriter").finish_non_exhaustive()
    }
}

/// Frames of a snapshot, some of which are made when they are asked for.
#[derive(Default)]
pub(crate) struct SnapshotFrames(VecDeque<Frames>);

enum Frames {
    Made(VecDeque<Vec<u8>>),
    Later(Box<dyn Iterator<Item = Vec<u8>> + Send>),
}

impl SnapshotFrames {
    fn push(&mut self, frame: Vec<u8>) {
        if let Some(Frames::Made(frames)) = self.0.back_mut() {
            frames.push_back(frame);
        } else {
            self.0.push_back(Frames::Made(VecDeque::from([frame])));
        }
    }

    fn push_all(&mut self, frames: impl IntoIterator<Item = Vec<u8>, IntoIter: Send + 'static>) {
        self.0
            .push_back(Frames::Later(Box::new(frames.into_iter())));
    }

    /// Adds frames behind these.
    pub(crate) fn append(&mut self, mut frames: Self) {
        self.0.append(&mut frames.0);
    }
}

impl From<Vec<Vec<u8>>> for SnapshotFrames {
    fn from(frames: Vec<Vec<u8>>) -> Self {
        Self(VecDeque::from([Frames::Made(frames.into())]))
    }
}

impl Iterator for SnapshotFrames {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(frames) = self.0.front_mut() {
            let frame = match frames {
                Frames::Made(frames) => frames.pop_front(),
                Frames::Later(frames) => frames.next(),
            };
            if frame.is_some() {
                return frame;
            }
            self.0.pop_front();
        }
        None
    }
}

/// The cluster, as a service uses it while it is called.
///
/// All members of the cluster execute the calls; only the leader sends to clients.
pub struct Cluster<'a> {
    pub(crate) member_id: MemberId,
    pub(crate) role: Role,
    pub(crate) term: i64,
    pub(crate) timestamp: i64,
    pub(crate) log_position: i64,
    pub(crate) clients: &'a BTreeMap<i64, ClientSession>,
    pub(crate) effects: Effects<'a>,
}

/// Receiver of the calls of a service.
pub(crate) enum Effects<'a> {
    /// The state of the consensus module in the same process.
    Module {
        sessions: &'a mut Sessions,
        timers: &'a mut Timers,
        pending: &'a mut PendingMessages,
        egress: &'a HashMap<Handle, Publication>,
    },
    /// A consensus module in another process.
    Container {
        requests: &'a mut Requests,
        egress: &'a HashMap<i64, Publication>,
    },
}

impl Cluster<'_> {
    /// Returns the id of this member.
    #[must_use]
    pub const fn member_id(&self) -> MemberId {
        self.member_id
    }

    /// Returns the role of this member. Nothing that is replicated may depend on it.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the time of the log entry that is being processed, in the unit of the cluster's clock: the only clock of a
    /// service.
    #[must_use]
    pub const fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Returns the position behind the log entry that is being processed.
    #[must_use]
    pub const fn log_position(&self) -> i64 {
        self.log_position
    }

    /// Returns all open sessions, by ascending id.
    pub fn sessions(&self) -> impl Iterator<Item = &ClientSession> {
        self.clients.values()
    }

    /// Sends a message to a client. Members that do not lead do nothing and succeed.
    ///
    /// # Errors
    /// There is no such session, its client is not connected, or there is no room now.
    pub fn send(&self, session_id: i64, message: &[u8]) -> Result<(), SendError> {
        if !self.clients.contains_key(&session_id) {
            return Err(SendError::UnknownSession { session_id });
        }
        if self.role != Role::Leader {
            return Ok(());
        }
        let publication = match &self.effects {
            Effects::Module {
                sessions, egress, ..
            } => {
                let handle = sessions.get(session_id).map(|(handle, _)| handle);
                handle.and_then(|handle| egress.get(&handle))
            }
            Effects::Container { egress, .. } => egress.get(&session_id),
        };
        let publication = publication.ok_or(SendError::NotConnected { session_id })?;
        let header = SessionMessageHeader {
            leadership_term_id: self.term,
            cluster_session_id: session_id,
            timestamp: self.timestamp,
        };
        let mut bytes = [0; SESSION_HEADER_LENGTH];
        // The buffer has the length of the header.
        let _ = header.encode(&mut bytes);
        publication.offer_parts(&[&bytes, message])?;
        Ok(())
    }

    /// Closes a session.
    pub fn close_session(&mut self, session_id: i64) {
        match &mut self.effects {
            Effects::Module { sessions, .. } => sessions.close_by_service(session_id),
            Effects::Container { requests, .. } => requests.close_session(session_id),
        }
    }

    /// Schedules a timer, or moves it. [`Service::on_timer_event`] is called once the leader's clock has passed the deadline,
    /// which is in the unit of the cluster's clock.
    pub fn schedule_timer(&mut self, correlation_id: i64, deadline: i64) {
        match &mut self.effects {
            Effects::Module { timers, .. } => timers.schedule(correlation_id, deadline),
            Effects::Container { requests, .. } => {
                requests.schedule_timer(correlation_id, deadline);
            }
        }
    }

    /// Cancels a timer, if it is scheduled. Its event may be in the log already.
    pub fn cancel_timer(&mut self, correlation_id: i64) {
        match &mut self.effects {
            Effects::Module { timers, .. } => {
                timers.cancel(correlation_id);
            }
            Effects::Container { requests, .. } => requests.cancel_timer(correlation_id),
        }
    }

    /// Sends a message to all services of all members, through the log: it is delivered exactly once, also if the leader fails.
    ///
    /// # Errors
    /// In the process of the consensus module: too many messages are waiting. In a container: the message is too long for the
    /// channel to the consensus module; the number of messages in one call has no bound there.
    pub fn offer(&mut self, message: &[u8]) -> Result<(), ServiceMessageError> {
        match &mut self.effects {
            Effects::Module { pending, .. } => pending.enqueue(message),
            Effects::Container { requests, .. } => requests.offer(message),
        }
    }
}
