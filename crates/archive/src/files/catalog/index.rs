// SPDX-License-Identifier: Apache-2.0
//! Index of recordings by stream id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Recording ids by stream id, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamIndex(HashMap<i32, Vec<i64>>);

impl StreamIndex {
    pub(super) fn insert(&mut self, stream_id: i32, id: i64) {
        let ids = self.0.entry(stream_id).or_default();
        match ids.last() {
            Some(last) if *last >= id => {
                if let Err(at) = ids.binary_search(&id) {
                    ids.insert(at, id);
                }
            }
            _ => ids.push(id),
        }
    }

    pub(super) fn remove(&mut self, stream_id: i32, id: i64) {
        let Some(ids) = self.0.get_mut(&stream_id) else {
            return;
        };
        if let Ok(at) = ids.binary_search(&id) {
            ids.remove(at);
        }
        if ids.is_empty() {
            self.0.remove(&stream_id);
        }
    }

    /// Returns the ids of a stream that are at least `from`.
    pub(super) fn ids_from(&self, stream_id: i32, from: i64) -> &[i64] {
        let ids = self.0.get(&stream_id).map_or(&[][..], Vec::as_slice);
        &ids[ids.partition_point(|id| *id < from)..]
    }
}

/// Texts, each stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub(super) fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = text.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }
}
