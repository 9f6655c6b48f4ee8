// SPDX-License-Identifier: Apache-2.0
//! Data packet dispatcher: maps frames to images and tracks sessions without one (docs/spec/wire.md §5.1).
//!
//! It does no I/O: it takes the ids of frames and returns actions. "No interest" is not a stored state but follows from
//! the subscriptions. All tables are bounded, because anyone can send frames with invented ids.

mod interest;

use std::collections::VecDeque;

use crate::ids::{IdHash, IdMap, IdSet};

/// Time to wait for an elicited SETUP before it is requested again.
const SETUP_TIMEOUT_NS: i64 = 1_000_000_000;

/// Maximum sessions waiting for a SETUP; data of further sessions is dropped.
const MAX_PENDING: usize = 1024;

/// Maximum images under creation; further SETUPs are dropped, and their senders repeat them.
const MAX_CREATING: usize = 64;

/// Maximum sessions per stream, in any state.
const MAX_SESSIONS: usize = 65_536;

/// Session id and stream id.
type Key = (i32, i32);

#[doc(alias = "DataPacketDispatcher")]
#[derive(Debug)]
pub(super) struct Dispatcher {
    streams: IdMap<i32, Stream>,
    session_limit: usize,
    pending: VecDeque<Pending>,
    creating: usize,
    /// The image found last: consecutive frames usually belong to one stream.
    recent: Option<(Key, usize)>,
}

#[derive(Debug)]
struct Stream {
    all_sessions: bool,
    session_ids: IdSet,
    sessions: IdMap<i32, Session>,
    /// Images, including those under creation.
    images: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// Data arrived and a SETUP was requested.
    PendingSetup { deadline_ns: i64 },
    /// The conductor is creating the image.
    Creating,
    /// Slot of the image.
    Image(usize),
    /// The image timed out; frames are ignored until the conductor ends the cool-down.
    CoolDown,
}

#[derive(Debug)]
struct Pending {
    key: Key,
    deadline_ns: i64,
}

/// Action for a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataAction {
    Image(usize),
    /// Request a SETUP.
    ElicitSetup,
    Drop,
}

/// Action for a SETUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupAction {
    Image(usize),
    /// Request an image from the conductor, then call [`Dispatcher::on_image_requested`].
    CreateImage,
    /// Drop it and report that the session limit was reached.
    LimitReached,
    Drop,
}

impl Dispatcher {
    /// `seed` must be random, so that peers cannot choose ids that collide in the hash tables.
    pub(super) fn new(session_limit: usize, seed: u64) -> Self {
        Self {
            streams: IdMap::with_hasher(IdHash::new(seed)),
            session_limit,
            pending: VecDeque::new(),
            creating: 0,
            recent: None,
        }
    }

    /// Returns the slot of an image.
    pub(super) fn image(&mut self, session_id: i32, stream_id: i32) -> Option<usize> {
        let key = (session_id, stream_id);
        if let Some((recent, slot)) = self.recent
            && recent == key
        {
            return Some(slot);
        }
        match self.streams.get(&stream_id)?.sessions.get(&session_id)? {
            Session::Image(slot) => {
                self.recent = Some((key, *slot));
                Some(*slot)
            }
            _ => None,
        }
    }

    /// Handles data, padding or a heartbeat.
    pub(super) fn on_data(
        &mut self,
        session_id: i32,
        stream_id: i32,
        is_end_of_stream: bool,
        now_ns: i64,
    ) -> DataAction {
        if let Some(slot) = self.image(session_id, stream_id) {
            return DataAction::Image(slot);
        }
        let Some(stream) = self.streams.get_mut(&stream_id) else {
            return DataAction::Drop;
        };
        let is_new = !stream.sessions.contains_key(&session_id);
        let has_capacity = self.pending.len() < MAX_PENDING && stream.sessions.len() < MAX_SESSIONS;
        if is_end_of_stream || !is_new || !stream.is_interested_in(session_id) || !has_capacity {
            return DataAction::Drop;
        }
        let deadline_ns = now_ns + SETUP_TIMEOUT_NS;
        stream
            .sessions
            .insert(session_id, Session::PendingSetup { deadline_ns });
        self.pending.push_back(Pending {
            key: (session_id, stream_id),
            deadline_ns,
        });
        DataAction::ElicitSetup
    }

    /// Handles a SETUP.
    pub(super) fn on_setup(&self, session_id: i32, stream_id: i32) -> SetupAction {
        let Some(stream) = self.streams.get(&stream_id) else {
            return SetupAction::Drop;
        };
        match stream.sessions.get(&session_id) {
            Some(Session::Image(slot)) => SetupAction::Image(*slot),
            Some(Session::Creating | Session::CoolDown) => SetupAction::Drop,
            None | Some(Session::PendingSetup { .. }) => {
                if !stream.is_interested_in(session_id) {
                    SetupAction::Drop
                } else if stream.images >= self.session_limit {
                    SetupAction::LimitReached
                } else if self.creating < MAX_CREATING && stream.sessions.len() < MAX_SESSIONS {
                    SetupAction::CreateImage
                } else {
                    SetupAction::Drop
                }
            }
        }
    }

    /// Records that the conductor was asked for an image.
    pub(super) fn on_image_requested(&mut self, session_id: i32, stream_id: i32) {
        self.set(session_id, stream_id, Some(Session::Creating));
    }

    /// Records that the conductor refused to create the image.
    pub(super) fn on_image_refused(&mut self, session_id: i32, stream_id: i32) {
        if self.session(session_id, stream_id) == Some(Session::Creating) {
            self.set(session_id, stream_id, None);
        }
    }

    /// Records that the image exists. Returns false if no subscription is interested in it.
    pub(super) fn add_image(&mut self, session_id: i32, stream_id: i32, slot: usize) -> bool {
        let has_interest = self
            .streams
            .get(&stream_id)
            .is_some_and(|stream| stream.is_interested_in(session_id));
        if has_interest {
            self.set(session_id, stream_id, Some(Session::Image(slot)));
        }
        has_interest
    }

    /// Removes the image if it is still the current one of its session; `cool_down` blocks a new image for now.
    pub(super) fn remove_image(
        &mut self,
        session_id: i32,
        stream_id: i32,
        slot: usize,
        cool_down: bool,
    ) {
        if self.session(session_id, stream_id) == Some(Session::Image(slot)) {
            self.set(
                session_id,
                stream_id,
                cool_down.then_some(Session::CoolDown),
            );
        }
    }

    pub(super) fn remove_cool_down(&mut self, session_id: i32, stream_id: i32) {
        if self.session(session_id, stream_id) == Some(Session::CoolDown) {
            self.set(session_id, stream_id, None);
        }
    }

    /// Drops sessions whose SETUP did not arrive in time; their next data frame requests it again.
    pub(super) fn expire(&mut self, now_ns: i64) {
        while let Some(Pending {
            key: (session_id, stream_id),
            deadline_ns,
        }) = self.pending.front()
            && *deadline_ns <= now_ns
        {
            let (session_id, stream_id, deadline_ns) = (*session_id, *stream_id, *deadline_ns);
            if self.session(session_id, stream_id) == Some(Session::PendingSetup { deadline_ns }) {
                self.set(session_id, stream_id, None);
            }
            self.pending.pop_front();
        }
    }

    /// Returns the time at which [`expire`](Self::expire) drops a session; `i64::MAX` for never.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        let first = self.pending.front();
        first.map_or(i64::MAX, |pending| pending.deadline_ns)
    }

    fn session(&self, session_id: i32, stream_id: i32) -> Option<Session> {
        self.streams
            .get(&stream_id)?
            .sessions
            .get(&session_id)
            .copied()
    }

    /// Changes the state of a session. All changes go through here, to keep the counts.
    fn set(&mut self, session_id: i32, stream_id: i32, to: Option<Session>) {
        self.recent = None;
        let Some(stream) = self.streams.get_mut(&stream_id) else {
            return;
        };
        let from = match to {
            Some(session) => stream.sessions.insert(session_id, session),
            None => stream.sessions.remove(&session_id),
        };
        let is_creating =
            |session: Option<Session>| usize::from(session == Some(Session::Creating));
        let is_image = |session: Option<Session>| {
            usize::from(matches!(
                session,
                Some(Session::Image(_) | Session::Creating)
            ))
        };
        stream.images = stream.images + is_image(to) - is_image(from);
        self.creating = self.creating + is_creating(to) - is_creating(from);
    }
}

impl Stream {
    fn new(hash: IdHash) -> Self {
        Self {
            all_sessions: false,
            session_ids: IdSet::with_hasher(hash.clone()),
            sessions: IdMap::with_hasher(hash),
            images: 0,
        }
    }

    fn is_interested_in(&self, session_id: i32) -> bool {
        self.all_sessions || self.session_ids.contains(&session_id)
    }
}

#[cfg(test)]
#[path = "tests/dispatcher.rs"]
mod tests;
