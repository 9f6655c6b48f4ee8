// SPDX-License-Identifier: Apache-2.0
//! Index of publications by stream, session and channel.

use std::collections::BTreeSet;

/// Publication ids by stream. `C` is the channel on which publications are shared: the endpoint, or `()` for IPC.
#[derive(Debug)]
pub(crate) struct PublicationIndex<C> {
    /// Stream id, session id, registration id.
    sessions: BTreeSet<(i32, i32, i64)>,
    /// Publications that several clients may share: channel, stream id, registration id.
    shared: BTreeSet<(C, i32, i64)>,
}

/// Key of a publication. It is constant for the lifetime of the publication.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublicationKey<C> {
    pub(crate) registration_id: i64,
    pub(crate) channel: C,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) exclusive: bool,
}

impl<C: Ord> Default for PublicationIndex<C> {
    fn default() -> Self {
        Self {
            sessions: BTreeSet::new(),
            shared: BTreeSet::new(),
        }
    }
}

impl<C: Ord + Copy> PublicationIndex<C> {
    pub(crate) fn insert(&mut self, key: PublicationKey<C>) {
        let id = key.registration_id;
        self.sessions.insert((key.stream_id, key.session_id, id));
        if !key.exclusive {
            self.shared.insert((key.channel, key.stream_id, id));
        }
    }

    pub(crate) fn remove(&mut self, key: PublicationKey<C>) {
        let id = key.registration_id;
        self.sessions.remove(&(key.stream_id, key.session_id, id));
        self.shared.remove(&(key.channel, key.stream_id, id));
    }

    /// Returns the shareable publications, oldest first.
    pub(crate) fn shared(&self, channel: C, stream_id: i32) -> impl Iterator<Item = i64> {
        let range = (channel, stream_id, i64::MIN)..=(channel, stream_id, i64::MAX);
        self.shared.range(range).map(|&(_, _, id)| id)
    }

    /// Returns the publications of a session of a stream, oldest first.
    pub(crate) fn of_session(&self, stream_id: i32, session_id: i32) -> impl Iterator<Item = i64> {
        let range = (stream_id, session_id, i64::MIN)..=(stream_id, session_id, i64::MAX);
        self.sessions.range(range).map(|&(_, _, id)| id)
    }

    /// Returns the publications of a stream, or of one session of it, oldest first.
    pub(crate) fn of_stream(&self, stream_id: i32, session_id: Option<i32>) -> Vec<i64> {
        let (first, last) = match session_id {
            Some(session_id) => (session_id, session_id),
            None => (i32::MIN, i32::MAX),
        };
        let range = (stream_id, first, i64::MIN)..=(stream_id, last, i64::MAX);
        let mut ids: Vec<i64> = self.sessions.range(range).map(|&(_, _, id)| id).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(id: i64, channel: i64, stream_id: i32, session_id: i32) -> PublicationKey<i64> {
        PublicationKey {
            registration_id: id,
            channel,
            stream_id,
            session_id,
            exclusive: id % 2 == 1,
        }
    }

    #[test]
    fn publication_index_finds_by_stream_session_and_channel() {
        let mut index = PublicationIndex::default();
        let all = [
            publication(1, 7, 10, 5),
            publication(2, 7, 10, 4),
            publication(4, 7, 10, 3),
            publication(6, 8, 10, 3),
            publication(8, 7, 11, 3),
        ];
        for key in all {
            index.insert(key);
        }
        assert_eq!(index.of_stream(10, None), [1, 2, 4, 6]);
        assert_eq!(index.of_stream(10, Some(3)), [4, 6]);
        assert_eq!(index.of_stream(12, None), []);
        assert!(index.of_session(10, 3).eq([4, 6]));
        assert!(index.of_session(11, 4).next().is_none());
        assert!(index.shared(7, 10).eq([2, 4]), "exclusive ones are not");
        for key in all {
            index.remove(key);
        }
        assert_eq!(index.of_stream(10, None), []);
        assert!(index.shared(7, 10).next().is_none());
    }
}
