//! Counters of a consensus module, with official type ids and labels (`docs/spec/cluster.md` §9.4).

use taran::{Client, CommandError, Counter};
use taran_protocol::uri::value::format_duration_ns;

use crate::consensus::Nanos;

pub(super) const MODULE_STATE: i32 = 200;
pub(crate) const COMMIT_POSITION: i32 = 203;

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
        let add = |type_id: i32, text: &str| {
            client.add_counter(type_id, &key, &format!("{text} - clusterId={cluster_id}"))
        };
        let duration = |type_id: i32, longest: &str, exceeded: &str, threshold: Nanos| {
            let limit = duration_text(threshold);
            Ok::<_, CommandError>(DurationCounters::new(
                add(type_id, longest)?,
                add(type_id + 1, &format!("{exceeded}: threshold={limit}"))?,
                threshold,
            ))
        };
        let counters = Self {
            state: add(MODULE_STATE, "Consensus Module state")?,
            role: add(201, "Cluster node role")?,
            toggle: add(202, "Cluster control toggle")?,
            commit: add(COMMIT_POSITION, "Cluster commit-pos:")?,
            snapshots: add(205, "Cluster snapshot count")?,
            election_state: add(207, "Cluster election state")?,
            errors: add(212, "Cluster Errors")?,
            timed_out: add(213, "Cluster timed out client count")?,
            elections: add(238, "Cluster election count")?,
            term: add(239, "Cluster leadership term id")?,
            node_toggle: add(233, "Node control toggle")?,
            cycle: duration(
                216,
                "Cluster max cycle time in ns",
                "Cluster work cycle time exceeded count",
                cycle_threshold,
            )?,
            snapshot: duration(
                234,
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
