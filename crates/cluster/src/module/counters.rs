//! Counters of a consensus module, with official type ids and labels (`docs/spec/cluster.md` §9.4).

use taran::{Client, CommandError, Counter};

pub(super) const MODULE_STATE: i32 = 200;
pub(super) const COMMIT_POSITION: i32 = 203;

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
}

impl ModuleCounters {
    pub(super) fn add(client: &Client, cluster_id: i32) -> Result<Self, CommandError> {
        let key = cluster_id.to_le_bytes();
        let add = |type_id: i32, text: &str| {
            client.add_counter(type_id, &key, &format!("{text} - clusterId={cluster_id}"))
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
        };
        counters.elections.set(1);
        counters.term.set(-1);
        Ok(counters)
    }
}
