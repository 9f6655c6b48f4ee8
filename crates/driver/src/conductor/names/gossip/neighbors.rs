//! The drivers that this one speaks to.

use std::net::SocketAddr;

use taran_protocol::event::EventCode;

use crate::event_log::{EventLog, Fact};

/// Most neighbours kept: each gets every frame, so that a peer which invents some makes this driver send.
const NEIGHBORS_MAX: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Neighbor {
    address: SocketAddr,
    heard_ns: i64,
}

/// Addresses of drivers, and when each was last heard of.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    list: Vec<Neighbor>,
    events: EventLog,
}

impl Neighbors {
    /// Nobody yet; who comes and goes is told to `events`.
    pub(super) fn new(events: EventLog) -> Self {
        Self {
            list: Vec::new(),
            events,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.list.iter().any(|known| known.address == address)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.list.iter().map(|neighbor| neighbor.address)
    }

    /// Takes in what was heard: a new neighbour from whoever tells, a sign of life from itself only.
    pub(super) fn learn(&mut self, address: SocketAddr, heard_ns: i64, is_self: bool) {
        let has_room = self.list.len() < NEIGHBORS_MAX;
        let known = self.list.iter_mut().find(|known| known.address == address);
        match known {
            Some(known) if is_self => known.heard_ns = known.heard_ns.max(heard_ns),
            None if has_room => {
                self.list.push(Neighbor { address, heard_ns });
                let event = EventCode::NameResolutionNeighborAdded;
                self.events.log(event, &[Fact::Address(Some(address))]);
            }
            Some(_) | None => {}
        }
    }

    /// Forgets who was not heard of since `deadline_ns`; true if there was one.
    pub(super) fn forget_before(&mut self, deadline_ns: i64) -> bool {
        let before = self.list.len();
        let events = &self.events;
        self.list.retain(|neighbor| {
            let is_kept = neighbor.heard_ns >= deadline_ns;
            if !is_kept {
                let event = EventCode::NameResolutionNeighborRemoved;
                events.log(event, &[Fact::Address(Some(neighbor.address))]);
            }
            is_kept
        });
        self.list.len() != before
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
}
