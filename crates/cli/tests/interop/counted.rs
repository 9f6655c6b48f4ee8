// SPDX-License-Identifier: Apache-2.0
//! Reads drivers' counters.

use taran::Client;
use taran_protocol::counter::{StreamKey, SystemCounter};

/// Returns the value of the first counter whose label starts with `label`.
pub(crate) fn labelled(client: &Client, label: &str) -> Option<i64> {
    let counters = client.counters();
    let found = counters.find(|meta| meta.label.starts_with(label))?;
    counters.value(found.id)
}

/// Returns the value of a system counter.
pub(crate) fn system(client: &Client, counter: SystemCounter) -> i64 {
    let counters = client.counters();
    counters.value(counter as i32).expect("every driver has it")
}

/// Returns the value of the first counter of this type that belongs to the stream.
pub(crate) fn of_stream(client: &Client, type_id: i32, stream_id: i32) -> Option<i64> {
    let counters = client.counters();
    let found = counters.find(|meta| {
        let is_of = |key: StreamKey| key.stream_id == stream_id;
        meta.type_id == type_id && StreamKey::decode(&meta.key).is_some_and(is_of)
    })?;
    counters.value(found.id)
}
