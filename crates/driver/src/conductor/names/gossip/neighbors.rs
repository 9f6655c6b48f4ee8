// SPDX-License-Identifier: Apache-2.0
//! Neighbors: the drivers that this one sends to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use taran_protocol::event::EventCode;

use crate::event_log::{EventLog, FieldValue};

/// Maximum number of neighbors. Each one is sent every frame, so invented neighbors cause traffic.
const NEIGHBORS_MAX: usize = 1024;

/// Maximum number of neighbors known only from third parties. A live neighbor announces itself as soon as it is sent
/// to, which makes room for the next.
const INDIRECT_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Neighbor {
    last_seen_ns: i64,
    is_indirect: bool,
}

/// Addresses of drivers, and the time when each was last seen.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    known: BTreeMap<SocketAddr, Neighbor>,
    indirect: usize,
    events: EventLog,
}

impl Neighbors {
    /// Creates an empty set; additions and removals are logged to `events`.
    pub(super) fn new(events: EventLog) -> Self {
        Self {
            events,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.known.contains_key(&address)
    }

    /// Returns up to `count` neighbors after `last`, in the order of addresses.
    pub(super) fn after(&self, last: Option<SocketAddr>, count: usize) -> Vec<SocketAddr> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.known.range((start, Bound::Unbounded)).take(count);
        next.map(|(address, _)| *address).collect()
    }

    /// Adds a neighbor reported by any driver. Only an announcement by the neighbor itself extends its lifetime.
    pub(super) fn update(&mut self, address: SocketAddr, last_seen_ns: i64, is_self: bool) {
        if let Some(known) = self.known.get_mut(&address) {
            if is_self {
                known.last_seen_ns = known.last_seen_ns.max(last_seen_ns);
                self.indirect -= usize::from(std::mem::take(&mut known.is_indirect));
            }
            return;
        }
        let has_room = is_self || self.indirect < INDIRECT_MAX;
        if has_room && self.known.len() < NEIGHBORS_MAX {
            self.indirect += usize::from(!is_self);
            let neighbor = Neighbor {
                last_seen_ns,
                is_indirect: !is_self,
            };
            self.known.insert(address, neighbor);
            let event = EventCode::NameResolutionNeighborAdded;
            self.events
                .log(event, &[FieldValue::Address(Some(address))]);
        }
    }

    /// Removes neighbors not seen since `deadline_ns`; returns true if there were any.
    pub(super) fn remove_older_than(&mut self, deadline_ns: i64) -> bool {
        let before = self.known.len();
        let (events, indirect) = (&self.events, &mut self.indirect);
        self.known.retain(|address, neighbor| {
            let is_kept = neighbor.last_seen_ns >= deadline_ns;
            if !is_kept {
                *indirect -= usize::from(neighbor.is_indirect);
                let event = EventCode::NameResolutionNeighborRemoved;
                events.log(event, &[FieldValue::Address(Some(*address))]);
            }
            is_kept
        });
        self.known.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_indirect_report_does_not_extend_lifetime() {
        let mut neighbors = Neighbors::default();
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        neighbors.update(a, 10, false);
        neighbors.update(b, 10, true);
        neighbors.update(a, 20, false);
        neighbors.update(b, 20, true);
        neighbors.update(b, 15, true);
        assert_eq!(neighbors.len(), 2);
        assert!(neighbors.remove_older_than(20));
        assert!(neighbors.contains(b) && !neighbors.contains(a));
        assert!(!neighbors.remove_older_than(20));
    }

    #[test]
    fn neighbor_changes_are_logged_once() {
        let (events, mut source) = EventLog::captured("admin");
        let mut neighbors = Neighbors::new(events);
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        for (address, last_seen_ns) in [(a, 10), (b, 20), (a, 15)] {
            neighbors.update(address, last_seen_ns, true);
        }
        neighbors.remove_older_than(20);
        neighbors.remove_older_than(20);
        let prefix = "[5.000000007] DRIVER: NAME_RESOLUTION_NEIGHBOR_";
        let logged = source.lines();
        let logged: Vec<&str> = logged
            .lines()
            .map(|line| line.strip_prefix(prefix).unwrap())
            .collect();
        assert!(logged[0].starts_with("ADDED ") && logged[0].ends_with("address=10.0.0.1:1"));
        assert!(logged[1].starts_with("ADDED ") && logged[1].ends_with("address=10.0.0.1:2"));
        assert!(logged[2].starts_with("REMOVED ") && logged[2].ends_with("address=10.0.0.1:1"));
        assert_eq!(logged.len(), 3);
    }

    #[test]
    fn update_indirect_neighbors_do_not_displace_direct_ones() {
        let mut neighbors = Neighbors::default();
        let addresses =
            |net: u8| (0..2_000_u16).map(move |port| SocketAddr::from(([10, 0, 0, net], port)));
        let mut update_all = |net, count, is_self| {
            for address in addresses(net).take(count) {
                neighbors.update(address, 10, is_self);
            }
            neighbors.len()
        };
        assert_eq!(update_all(1, 2_000, false), INDIRECT_MAX);
        assert_eq!(update_all(1, 4, true), INDIRECT_MAX, "already known");
        assert_eq!(update_all(2, 2_000, false), INDIRECT_MAX + 4);
        assert_eq!(update_all(3, 2_000, true), NEIGHBORS_MAX);
        assert!(neighbors.remove_older_than(11));
        for address in addresses(4) {
            neighbors.update(address, 20, false);
        }
        assert_eq!(neighbors.len(), INDIRECT_MAX);
    }
}
