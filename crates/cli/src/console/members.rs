// SPDX-License-Identifier: Apache-2.0
//! Members of clusters that use a driver, from their counters (docs/spec/cluster.md §9.4).

use std::collections::BTreeMap;

use serde::Serialize;
use taran_cluster::module::type_id;
use taran_core::counters::CountersReader;

use crate::members::{self, ELECTION_CLOSED, LEADER};

/// A member. What has no counter is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Member {
    pub(super) cluster_id: i32,
    /// State of the consensus module, by name.
    pub(super) state: String,
    /// `follower`, `candidate` or `leader`.
    pub(super) role: String,
    /// True if it leads, and its election is over.
    pub(super) leads: bool,
    /// True while there is an election.
    pub(super) elects: bool,
    pub(super) term: Option<i64>,
    /// Commit position: on a follower, the position up to which it has consumed the log.
    pub(super) commit: Option<i64>,
    pub(super) elections: Option<i64>,
    pub(super) snapshots: Option<i64>,
    pub(super) timed_out_clients: Option<i64>,
    pub(super) errors: Option<i64>,
}

/// Returns the members, ordered by the ids of their clusters.
pub(super) fn collect(counters: &CountersReader) -> Vec<Member> {
    let mut values: BTreeMap<i32, BTreeMap<i32, i64>> = BTreeMap::new();
    counters.for_each(|meta| {
        // Below 200 are counters of other components, above 239 those of others than members.
        if (type_id::MODULE_STATE..=type_id::LEADERSHIP_TERM_ID).contains(&meta.type_id)
            && let Some(value) = counters.value(meta.id)
            && let Some(cluster_id) = meta.key.first_chunk::<4>()
        {
            let cluster_id = i32::from_le_bytes(*cluster_id);
            values
                .entry(cluster_id)
                .or_default()
                .insert(meta.type_id, value);
        }
    });
    // The other counters may be those of a backup, or of a service in a container.
    let is_member =
        |(_, values): &(i32, BTreeMap<i32, i64>)| values.contains_key(&type_id::MODULE_STATE);
    values.into_iter().filter(is_member).map(member).collect()
}

fn member((cluster_id, values): (i32, BTreeMap<i32, i64>)) -> Member {
    let value = |type_id| values.get(&type_id).copied();
    let role = value(type_id::NODE_ROLE).unwrap_or(0);
    let elects = value(type_id::ELECTION_STATE).is_some_and(|state| state != ELECTION_CLOSED);
    Member {
        cluster_id,
        state: members::state_name(value(type_id::MODULE_STATE).unwrap_or(0)),
        role: match role {
            0 => "follower".to_owned(),
            1 => "candidate".to_owned(),
            LEADER => "leader".to_owned(),
            other => other.to_string(),
        },
        leads: role == LEADER && !elects,
        elects,
        term: value(type_id::LEADERSHIP_TERM_ID),
        commit: value(type_id::COMMIT_POSITION),
        elections: value(type_id::ELECTION_COUNT),
        snapshots: value(type_id::SNAPSHOT_COUNT),
        timed_out_clients: value(type_id::TIMED_OUT_CLIENTS),
        errors: value(type_id::ERRORS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use taran_core::counters::{CounterTable, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    #[test]
    fn collect_yields_one_member_per_cluster() {
        let metadata = Region::anonymous(64 * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(64 * VALUES_LENGTH).unwrap();
        let mut table = CounterTable::new(metadata.clone(), values.clone(), Duration::ZERO);
        let mut add = |type_id, key: &[u8], value| {
            table.allocate(type_id, key, "label", 0).unwrap().set(value);
        };
        let cluster = 3_i32.to_le_bytes();
        add(type_id::MODULE_STATE, &cluster, 1);
        add(type_id::NODE_ROLE, &cluster, LEADER);
        add(type_id::ELECTION_STATE, &cluster, ELECTION_CLOSED);
        add(type_id::COMMIT_POSITION, &cluster, 640);
        // A container without a member.
        add(type_id::SNAPSHOT_COUNT, &4_i32.to_le_bytes(), 1);
        let members = collect(&CountersReader::new(metadata, values));
        let expected = Member {
            cluster_id: 3,
            state: "ACTIVE".to_owned(),
            role: "leader".to_owned(),
            leads: true,
            commit: Some(640),
            ..Member::default()
        };
        assert_eq!(members, [expected]);
    }
}
