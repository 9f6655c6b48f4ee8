// SPDX-License-Identifier: Apache-2.0
//! Counters of a consensus module, with official type ids and labels (`docs/spec/cluster.md` §9.4).

use taran::{Client, CommandError, Counter};
use taran_protocol::uri::value::format_duration_ns;

use super::type_id;
use crate::consensus::Nanos;

/// Counters.
pub(super) struct ModuleCounters {
    pub(super) state: Counter,
    pub(super) role: Counter,
    pub(super) toggle: Counter,
    pub(super) commit: Counter,
    pub(super) snapshots: Counter,
    pub(super) election_state: Counter,
    pub(super) errors: Counter,
    pub(super) timed_out: Counter,
    pub(super) elections: Counter,
    pub(super) term: Counter,
    pub(super) node_toggle: Counter,
    pub(super) transfer_toggle: Counter,
    pub(super) cycle: DurationCounters,
    pub(super) snapshot: DurationCounters,
}

impl ModuleCounters {
    pub(super) fn add(
        client: &Client,
        cluster_id: i32,
        cycle_threshold: Nanos,
        snapshot_threshold: Nanos,
    ) -> Result<Self, CommandError> {
        let key = cluster_id.to_le_bytes();
        let add = |id: i32, text: &str| {
            client.add_counter(id, &key, &format!("{text} - clusterId={cluster_id}"))
        };
        let duration = |id: i32, longest: &str, exceeded: &str, threshold: Nanos| {
            let limit = duration_text(threshold);
            Ok::<_, CommandError>(DurationCounters::new(
                add(id, longest)?,
                add(id + 1, &format!("{exceeded}: threshold={limit}"))?,
                threshold,
            ))
        };
        let counters = Self {
            state: add(type_id::MODULE_STATE, "Consensus Module state")?,
            role: add(type_id::NODE_ROLE, "Cluster node role")?,
            toggle: add(type_id::CONTROL_TOGGLE, "Cluster control toggle")?,
            commit: add(type_id::COMMIT_POSITION, "Cluster commit-pos:")?,
            snapshots: add(type_id::SNAPSHOT_COUNT, "Cluster snapshot count")?,
            election_state: add(type_id::ELECTION_STATE, "Cluster election state")?,
            errors: client.add_counter(
                type_id::ERRORS,
                &key,
                &format!("Cluster Errors - clusterId={cluster_id} {}", version()),
            )?,
            timed_out: add(type_id::TIMED_OUT_CLIENTS, "Cluster timed out client count")?,
            elections: add(type_id::ELECTION_COUNT, "Cluster election count")?,
            term: add(type_id::LEADERSHIP_TERM_ID, "Cluster leadership term id")?,
            node_toggle: add(type_id::NODE_CONTROL_TOGGLE, "Node control toggle")?,
            transfer_toggle: add(type_id::TRANSFER_TOGGLE, "Cluster transfer toggle")?,
            cycle: duration(
                type_id::MAX_CYCLE_TIME,
                "Cluster max cycle time in ns",
                "Cluster work cycle time exceeded count",
                cycle_threshold,
            )?,
            snapshot: duration(
                type_id::MAX_SNAPSHOT_DURATION,
                "Total max snapshot duration in ns",
                "Total max snapshot duration exceeded count",
                snapshot_threshold,
            )?,
        };
        counters.elections.set(1);
        counters.term.set(-1);
        Ok(counters)
    }
}

/// Returns version and commit as labels show them.
pub(crate) fn version() -> &'static str {
    concat!("version=", env!("CARGO_PKG_VERSION"), " commit=taran")
}

/// Returns a duration as labels show it.
pub(crate) fn duration_text(duration: Nanos) -> String {
    format_duration_ns(duration)
}

/// The longest of some durations, and the number of those beyond a threshold.
pub(crate) struct DurationCounters {
    longest: Counter,
    exceeded: Counter,
    threshold: Nanos,
}

impl DurationCounters {
    pub(crate) const fn new(longest: Counter, exceeded: Counter, threshold: Nanos) -> Self {
        Self {
            longest,
            exceeded,
            threshold,
        }
    }

    pub(crate) fn record(&self, duration: Nanos) {
        self.longest.propose_max(duration);
        if duration > self.threshold {
            self.exceeded.increment();
        }
    }
}
