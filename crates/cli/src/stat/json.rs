// SPDX-License-Identifier: Apache-2.0
//! JSON output of one refresh.

use serde::Serialize;
use taran_core::counters::CountersReader;

use crate::attach::Attached;

use super::filter::Filter;

/// State of a driver and its counters at one time.
#[derive(Serialize)]
pub(super) struct Snapshot {
    time_ms: i64,
    cnc_version: String,
    pid: i64,
    /// `None` after an orderly shutdown.
    heartbeat_age_ms: Option<i64>,
    counters: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    id: i32,
    type_id: i32,
    value: i64,
    registration_id: i64,
    owner_id: i64,
    reference_id: i64,
    label: String,
}

impl Snapshot {
    pub(super) fn take(attached: &Attached, counters: &CountersReader, filter: &Filter) -> Self {
        let mut entries = Vec::new();
        counters.for_each(|meta| {
            if filter.passes(meta)
                && let Some(value) = counters.value(meta.id)
            {
                entries.push(Entry {
                    id: meta.id,
                    type_id: meta.type_id,
                    value,
                    registration_id: meta.registration_id,
                    owner_id: meta.owner_id,
                    reference_id: meta.reference_id,
                    label: meta.label.as_str().to_owned(),
                });
            }
        });
        Self {
            time_ms: chrono::Utc::now().timestamp_millis(),
            cnc_version: attached.version().to_string(),
            pid: attached.pid(),
            heartbeat_age_ms: attached.heartbeat_age_ms(),
            counters: entries,
        }
    }
}
