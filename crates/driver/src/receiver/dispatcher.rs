//! Which image a frame belongs to, and what to do while there is none (docs/spec/wire.md §5.1).
//!
//! Pure bookkeeping: frames come in as their ids, verdicts go out. "Nobody is interested" is not stored, it is what the
//! subscriptions say. The tables are bounded, because anybody can send frames with invented ids.

mod interest;

use std::collections::VecDeque;

use crate::ids::{IdHash, IdMap, IdSet};

/// How long data waits for the SETUP that was asked for.
const SETUP_TIMEOUT_NS: i64 = 1_000_000_000;

/// Sessions waiting for a SETUP at a time; beyond it data of further sessions is dropped.
const MAX_PENDING: usize = 1024;

/// Images being created at a time; a SETUP beyond it is dropped, its sender repeats it.
const MAX_CREATING: usize = 64;

/// Sessions known per stream, in whatever state.
const MAX_SESSIONS: usize = 65_536;

/// Session and stream.
type Key = (i32, i32);

#[doc(alias = "DataPacketDispatcher")]
#[derive(Debug)]
pub(super) struct Dispatcher {
    streams: IdMap<i32, Stream>,
    session_limit: usize,
    pending: VecDeque<Pending>,
    creating: usize,
    /// The image found last: streams come in trains.
    recent: Option<(Key, usize)>,
}

#[derive(Debug)]
struct Stream {
    all_sessions: bool,
    session_ids: IdSet,
    sessions: IdMap<i32, Session>,
    /// Images, and those being made.
    images: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// Data came, a SETUP was asked for.
    PendingSetup { deadline_ns: i64 },
    /// The conductor is making the image.
    Creating,
    /// Slot of the image.
    Image(usize),
    /// The image timed out: ignored until the conductor says otherwise.
    CoolDown,
}

#[derive(Debug)]
struct Pending {
    key: Key,
    deadline_ns: i64,
}

/// What to do with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataAction {
    Image(usize),
    /// Ask for a SETUP.
    ElicitSetup,
    Drop,
}

/// What to do with a SETUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupAction {
    Image(usize),
    /// Ask the conductor for an image, then [`Dispatcher::on_image_requested`].
    CreateImage,
    /// As [`SetupAction::Drop`], and somebody should know.
    LimitReached,
    Drop,
}

impl Dispatcher {
    /// `seed` is chance, so that nobody can choose ids that are slow to find.
    pub(super) fn new(session_limit: usize, seed: u64) -> Self {
        Self {
            streams: IdMap::with_hasher(IdHash::new(seed)),
            session_limit,
            pending: VecDeque::new(),
            creating: 0,
            recent: None,
        }
    }

    /// The slot of an image.
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

    /// Data, padding or a heartbeat arrived.
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
        let has_room = self.pending.len() < MAX_PENDING && stream.sessions.len() < MAX_SESSIONS;
        if is_end_of_stream || !is_new || !stream.is_interested_in(session_id) || !has_room {
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

    /// A SETUP arrived.
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

    /// The conductor was asked for an image.
    pub(super) fn on_image_requested(&mut self, session_id: i32, stream_id: i32) {
        self.set(session_id, stream_id, Some(Session::Creating));
    }

    /// The conductor will not make the image.
    pub(super) fn on_image_refused(&mut self, session_id: i32, stream_id: i32) {
        if self.session(session_id, stream_id) == Some(Session::Creating) {
            self.set(session_id, stream_id, None);
        }
    }

    /// The image is there. False when nobody wants it any more.
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

    /// The image leaves, if it is still the one of its session; with `cool_down` nothing else takes its place yet.
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

    /// Gives up on SETUPs that did not come; the next data asks again.
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

    fn session(&self, session_id: i32, stream_id: i32) -> Option<Session> {
        self.streams
            .get(&stream_id)?
            .sessions
            .get(&session_id)
            .copied()
    }

    /// The only place where a session changes, which keeps the counts.
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
