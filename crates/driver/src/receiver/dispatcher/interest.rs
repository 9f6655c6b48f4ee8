// SPDX-License-Identifier: Apache-2.0
//! Streams and sessions in which subscriptions are interested.

use super::{Dispatcher, Session, Stream};

impl Dispatcher {
    pub(in crate::receiver) fn add_subscription(
        &mut self,
        stream_id: i32,
        session_id: Option<i32>,
    ) {
        let hash = self.streams.hasher().clone();
        let stream = self
            .streams
            .entry(stream_id)
            .or_insert_with(|| Stream::new(hash));
        match session_id {
            None => stream.all_sessions = true,
            Some(session_id) => {
                stream.session_ids.insert(session_id);
            }
        }
    }

    /// Removes an interest and all sessions without any; calls `abandoned` with the slots of their images.
    pub(in crate::receiver) fn remove_subscription(
        &mut self,
        stream_id: i32,
        session_id: Option<i32>,
        mut abandoned: impl FnMut(usize),
    ) {
        let Some(stream) = self.streams.get_mut(&stream_id) else {
            return;
        };
        match session_id {
            None => stream.all_sessions = false,
            Some(session_id) => {
                stream.session_ids.remove(&session_id);
            }
        }
        let unwanted: Vec<i32> = stream
            .sessions
            .keys()
            .copied()
            .filter(|&session| !stream.is_interested_in(session))
            .collect();
        let is_last = !stream.all_sessions && stream.session_ids.is_empty();
        for session_id in unwanted {
            if let Some(Session::Image(slot)) = self.session(session_id, stream_id) {
                abandoned(slot);
            }
            self.set(session_id, stream_id, None);
        }
        if is_last {
            self.streams.remove(&stream_id);
        }
    }

    /// Returns true if there is any subscription.
    pub(in crate::receiver) fn has_interest(&self) -> bool {
        !self.streams.is_empty()
    }
}
