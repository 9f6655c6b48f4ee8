//! Neighbors: the drivers that this one sends to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use taran_protocol::event::EventCode;

use crate::event_log::{EventLog, Fact};

/// Maximum number of neighbors. Each one is sent every frame, so invented neighbors cause traffic.
const NEIGHBORS_MAX: usize = 1024;

/// Maximum number of neighbors known only from third parties. A live neighbor announces itself as soon as it is sent
/// to, which makes room for the next.
const INDIRECT_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Neighbor {
    heard_ns: i64,
    is_hearsay: bool,
}

/// Addresses of drivers, and the time when each was last seen.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    known: BTreeMap<SocketAddr, Neighbor>,
    hearsay: usize,
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
    pub(super) fn behind(&self, last: Option<SocketAddr>, count: usize) -> Vec<SocketAddr> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.known.range((start, Bound::Unbounded)).take(count);
        next.map(|(address, _)| *address).collect()
    }

    /// Adds a neighbor reported by any driver. Only an announcement by the neighbor itself extends its lifetime.
    pub(super) fn learn(&mut self, address: SocketAddr, heard_ns: i64, is_self: bool) {
        if let Some(known) = self.known.get_mut(&address) {
            if is_self {
                known.heard_ns = known.heard_ns.max(heard_ns);
                self.hearsay -= usize::from(std::mem::take(&mut known.is_hearsay));
            }
            return;
        }
        let has_room = is_self || self.hearsay < INDIRECT_MAX;
        if has_room && self.known.len() < NEIGHBORS_MAX {
            self.hearsay += usize::from(!is_self);
            let neighbor = Neighbor {
                heard_ns,
                is_hearsay: !is_self,
            };
            self.known.insert(address, neighbor);
            let event = EventCode::NameResolutionNeighborAdded;
            self.events.log(event, &[Fact::Address(Some(address))]);
        }
    }

    /// Removes neighbors not seen since `deadline_ns`; returns true if there were any.
    pub(super) fn forget_before(&mut self, deadline_ns: i64) -> bool {
        let before = self.known.len();
        let (events, hearsay) = (&self.events, &mut self.hearsay);
        self.known.retain(|address, neighbor| {
            let is_kept = neighbor.heard_ns >= deadline_ns;
            if !is_kept {
                *hearsay -= usize::from(neighbor.is_hearsay);
                let event = EventCode::NameResolutionNeighborRemoved;
                events.log(event, &[Fact::Address(Some(*address))]);
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
    fn what_others_tell_keeps_nobody_alive() {
        let mut neighbors = Neighbors::default();
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        neighbors.learn(a, 10, false);
        neighbors.learn(b, 10, true);
        neighbors.learn(a, 20, false);
        neighbors.learn(b, 20, true);
        neighbors.learn(b, 15, true);
        assert_eq!(neighbors.len(), 2);
        assert!(neighbors.forget_before(20));
        assert!(neighbors.contains(b) && !neighbors.contains(a));
        assert!(!neighbors.forget_before(20));
    }

    #[test]
    fn who_comes_and_goes_is_logged_once() {
        let (events, mut source) = EventLog::captured("admin");
        let mut neighbors = Neighbors::new(events);
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        for (address, heard_ns) in [(a, 10), (b, 20), (a, 15)] {
            neighbors.learn(address, heard_ns, true);
        }
        neighbors.forget_before(20);
        neighbors.forget_before(20);
        let prefix = "[5.000000007] DRIVER: NAME_RESOLUTION_NEIGHBOR_";
        let told = source.lines();
        let told: Vec<&str> = told
            .lines()
            .map(|line| line.strip_prefix(prefix).unwrap())
            .collect();
        assert!(told[0].starts_with("ADDED ") && told[0].ends_with("address=10.0.0.1:1"));
        assert!(told[1].starts_with("ADDED ") && told[1].ends_with("address=10.0.0.1:2"));
        assert!(told[2].starts_with("REMOVED ") && told[2].ends_with("address=10.0.0.1:1"));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn who_has_not_spoken_takes_no_room_from_those_who_have() {
        let mut neighbors = Neighbors::default();
        let addresses =
            |net: u8| (0..2_000_u16).map(move |port| SocketAddr::from(([10, 0, 0, net], port)));
        let mut learn = |net, count, is_self| {
            for address in addresses(net).take(count) {
                neighbors.learn(address, 10, is_self);
            }
            neighbors.len()
        };
        assert_eq!(learn(1, 2_000, false), INDIRECT_MAX);
        assert_eq!(learn(1, 4, true), INDIRECT_MAX, "they are known");
        assert_eq!(learn(2, 2_000, false), INDIRECT_MAX + 4);
        assert_eq!(learn(3, 2_000, true), NEIGHBORS_MAX);
        assert!(neighbors.forget_before(11));
        for address in addresses(4) {
            neighbors.learn(address, 20, false);
        }
        assert_eq!(neighbors.len(), INDIRECT_MAX);
    }
}
