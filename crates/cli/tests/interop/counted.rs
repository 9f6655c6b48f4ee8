//! What drivers count, for tests that look whether something has happened.

use taran::Client;
use taran_protocol::counter::{StreamKey, SystemCounter};

/// The value of the first counter whose label starts like this.
pub(crate) fn labelled(client: &Client, label: &str) -> Option<i64> {
    let counters = client.counters();
    let found = counters.find(|meta| meta.label.starts_with(label))?;
    counters.value(found.id)
}

/// The value of a system counter.
pub(crate) fn system(client: &Client, counter: SystemCounter) -> i64 {
    let counters = client.counters();
    counters.value(counter as i32).expect("every driver has it")
}

/// The value of the first counter of this type that belongs to the stream.
pub(crate) fn of_stream(client: &Client, type_id: i32, stream_id: i32) -> Option<i64> {
    let counters = client.counters();
    let found = counters.find(|meta| {
        let is_of = |key: StreamKey| key.stream_id == stream_id;
        meta.type_id == type_id && StreamKey::decode(&meta.key).is_some_and(is_of)
    })?;
    counters.value(found.id)
}
