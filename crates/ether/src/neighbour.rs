// SPDX-License-Identifier: Apache-2.0
//! Neighbours on the link: which MAC address an IP address has (RFC 826, RFC 4861 section 7.3).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::MacAddress;

const SECOND_NS: i64 = 1_000_000_000;
/// Time for which an address is taken as reachable after its last confirmation.
const REACHABLE_NS: i64 = 30 * SECOND_NS;
/// Time between solicitations.
const RETRANSMIT_NS: i64 = SECOND_NS;
/// Solicitations of an unknown, and of a known address that is not confirmed any more.
const SOLICITATIONS: u8 = 3;
/// Time for which a failed address is not looked for again.
const FAILED_NS: i64 = 3 * SECOND_NS;
/// Time without a use after which a known address is dropped if another one needs its place.
const UNUSED_NS: i64 = 60 * SECOND_NS;
/// Shortest time between two changes of the MAC address of a neighbour.
const CHANGE_NS: i64 = SECOND_NS;
/// Most items that wait for one address.
const WAITING: usize = 3;

/// Answer to the question for a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The MAC address is known.
    Known(MacAddress),
    /// It is being looked for.
    Pending,
    /// No neighbour answered.
    Failed,
    /// The table is full of addresses in use.
    TableFull,
}

/// Decision of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourOutput<T> {
    /// Send a solicitation: to the MAC address that is to be confirmed, or to all.
    Solicit {
        /// Address that is looked for.
        target: IpAddr,
        /// MAC address to confirm.
        known: Option<MacAddress>,
    },
    /// Send an item that waited.
    Send {
        /// Neighbour.
        target: IpAddr,
        /// Its MAC address.
        mac: MacAddress,
        /// The item.
        item: T,
    },
    /// Give up an item that waited.
    Drop {
        /// Neighbour that did not answer.
        target: IpAddr,
        /// The item.
        item: T,
    },
}

/// Numbers of what happened to a table since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourCounters {
    /// Neighbours that did not answer.
    pub failed: u64,
    /// Items that made room for later ones.
    pub displaced: u64,
    /// Questions that found no place in the table.
    pub full: u64,
    /// MAC addresses that changed.
    pub changed: u64,
    /// Changes of MAC addresses that were refused because the last one was less than a second ago.
    pub refused: u64,
    /// Messages about addresses that are not in the table.
    pub unasked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Never answered; number of solicitations.
    Incomplete(u8),
    Reachable(MacAddress),
    /// Known, but not confirmed for some time.
    Stale(MacAddress),
    /// Being confirmed; number of solicitations.
    Probe(MacAddress, u8),
    Failed,
}

impl State {
    fn mac(self) -> Option<MacAddress> {
        match self {
            State::Reachable(mac) | State::Stale(mac) | State::Probe(mac, _) => Some(mac),
            State::Incomplete(_) | State::Failed => None,
        }
    }
}

#[derive(Debug)]
struct Entry<T> {
    state: State,
    /// End of the state, if it has one.
    deadline_ns: Option<i64>,
    used_ns: i64,
    changed_ns: Option<i64>,
    waiting: [Option<T>; WAITING],
    is_queued: bool,
    /// True if a solicitation is due.
    solicits: bool,
}

/// Table of neighbours.
///
/// Contract: [`resolve`](Self::resolve) asks for an address before a send, [`hold`](Self::hold) leaves an item with a pending
/// one; [`learn`](Self::learn) takes what ARP and ND messages say. After each of these, and when
/// [`next_deadline_ns`](Self::next_deadline_ns) has come, the caller takes [`poll`](Self::poll) until it returns nothing, and does
/// what the outputs say. Times are nanoseconds of a clock that never goes back.
///
/// Only `resolve` makes entries: messages from the network change those that exist, so that no flood of them grows the table or
/// displaces an entry. The table has a fixed capacity. At most half of it holds addresses without an answer; a further one
/// displaces the oldest of these. An answered address makes room after a minute without a use. A MAC address
/// changes once a second at most, and is confirmed by a solicitation after the change.
#[derive(Debug)]
pub struct NeighbourTable<T> {
    entries: HashMap<IpAddr, Entry<T>>,
    capacity: usize,
    /// Addresses with outputs, each once.
    ready: VecDeque<IpAddr>,
    /// Items of displaced entries.
    dropped: VecDeque<(IpAddr, T)>,
    generation: u64,
    counters: NeighbourCounters,
}

impl<T> NeighbourTable<T> {
    /// Creates a table for so many neighbours, at least two.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(2);
        Self {
            entries: HashMap::with_capacity(2 * capacity),
            capacity,
            ready: VecDeque::with_capacity(capacity),
            dropped: VecDeque::new(),
            generation: 0,
            counters: NeighbourCounters::default(),
        }
    }

    /// Number of neighbours, with those that did not answer.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Changes whenever a MAC address changes or is lost: templates made under another generation are to be made anew.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Numbers of what happened.
    pub fn counters(&self) -> NeighbourCounters {
        self.counters
    }

    /// Returns the MAC address of a unicast address on the link, and looks for it if need be.
    pub fn resolve(&mut self, target: IpAddr, now_ns: i64) -> Resolution {
        if !self.entries.contains_key(&target) && !self.make_room(now_ns) {
            self.counters.full += 1;
            return Resolution::TableFull;
        }
        let entry = self.entries.entry(target).or_insert_with(|| Entry {
            state: State::Failed,
            deadline_ns: Some(now_ns),
            used_ns: now_ns,
            changed_ns: None,
            waiting: [const { None }; WAITING],
            is_queued: false,
            solicits: false,
        });
        entry.used_ns = now_ns;
        match entry.state {
            State::Failed if entry.deadline_ns.is_some_and(|deadline| deadline > now_ns) => {
                return Resolution::Failed;
            }
            State::Failed => {
                entry.state = State::Incomplete(1);
                entry.deadline_ns = Some(now_ns + RETRANSMIT_NS);
                entry.solicits = true;
            }
            State::Stale(mac) => {
                entry.state = State::Probe(mac, 1);
                entry.deadline_ns = Some(now_ns + RETRANSMIT_NS);
                entry.solicits = true;
            }
            State::Incomplete(_) | State::Reachable(_) | State::Probe(..) => {}
        }
        let resolution = entry
            .state
            .mac()
            .map_or(Resolution::Pending, Resolution::Known);
        if entry.solicits {
            self.enqueue(target);
        }
        resolution
    }

    /// Leaves an item with a pending address. Returns the item that makes room for it, or the item itself if the address is
    /// not pending.
    pub fn hold(&mut self, target: IpAddr, item: T) -> Option<T> {
        let Some(entry) = self.entries.get_mut(&target) else {
            return Some(item);
        };
        if !matches!(entry.state, State::Incomplete(_)) {
            return Some(item);
        }
        if let Some(free) = entry.waiting.iter_mut().find(|place| place.is_none()) {
            *free = Some(item);
            return None;
        }
        entry.waiting.rotate_left(1);
        self.counters.displaced += 1;
        entry.waiting[WAITING - 1].replace(item)
    }

    /// Takes the MAC address that a message states for an address. `is_answer` is true for an ARP reply to the own address
    /// and for a solicited advertisement: only these confirm that the neighbour is reachable.
    pub fn learn(&mut self, target: IpAddr, mac: MacAddress, is_answer: bool, now_ns: i64) {
        let Some(entry) = self.entries.get_mut(&target) else {
            self.counters.unasked += 1;
            return;
        };
        if !mac.is_station() {
            return;
        }
        let known = entry.state.mac();
        let is_change = known.is_some_and(|known| known != mac);
        if is_change {
            let is_early = |last: i64| now_ns - last < CHANGE_NS;
            if entry.changed_ns.is_some_and(is_early) {
                self.counters.refused += 1;
                return;
            }
            self.counters.changed += 1;
            entry.changed_ns = Some(now_ns);
            self.generation += 1;
        }
        match (known.is_some() && !is_change, is_answer) {
            (_, true) if !is_change => {
                entry.state = State::Reachable(mac);
                entry.deadline_ns = Some(now_ns + REACHABLE_NS);
                entry.solicits = false;
            }
            // A statement that changes nothing.
            (true, false) => {}
            _ => {
                entry.state = State::Stale(mac);
                entry.deadline_ns = None;
                entry.solicits = false;
            }
        }
        self.enqueue(target);
    }

    /// Returns the time at which `poll` has to be called at the latest.
    pub fn next_deadline_ns(&self) -> Option<i64> {
        if !self.ready.is_empty() || !self.dropped.is_empty() {
            return Some(i64::MIN);
        }
        let timed = self.entries.values().filter(|entry| entry.is_timed());
        timed.filter_map(|entry| entry.deadline_ns).min()
    }

    /// Returns the next decision; none if there is nothing to do.
    pub fn poll(&mut self, now_ns: i64) -> Option<NeighbourOutput<T>> {
        if let Some((target, item)) = self.dropped.pop_front() {
            return Some(NeighbourOutput::Drop { target, item });
        }
        loop {
            let Some(&target) = self.ready.front() else {
                if !self.expire(now_ns) {
                    return None;
                }
                continue;
            };
            let output = self.entries.get_mut(&target).and_then(|entry| {
                let output = entry.output(target);
                entry.is_queued = output.is_some();
                output
            });
            if output.is_some() {
                return output;
            }
            self.ready.pop_front();
        }
    }

    fn enqueue(&mut self, target: IpAddr) {
        if let Some(entry) = self.entries.get_mut(&target)
            && !entry.is_queued
        {
            entry.is_queued = true;
            self.ready.push_back(target);
        }
    }

    /// Ends the states whose time is over. Returns true if that makes outputs.
    fn expire(&mut self, now_ns: i64) -> bool {
        for (target, entry) in &mut self.entries {
            if !entry.is_timed() || entry.deadline_ns.is_none_or(|deadline| deadline > now_ns) {
                continue;
            }
            let retry = Some(now_ns + RETRANSMIT_NS);
            (entry.state, entry.deadline_ns, entry.solicits) = match entry.state {
                State::Incomplete(count) if count < SOLICITATIONS => {
                    (State::Incomplete(count + 1), retry, true)
                }
                State::Probe(mac, count) if count < SOLICITATIONS => {
                    (State::Probe(mac, count + 1), retry, true)
                }
                State::Reachable(mac) => (State::Stale(mac), None, false),
                State::Incomplete(_) | State::Probe(..) => {
                    self.counters.failed += 1;
                    self.generation += 1;
                    (State::Failed, Some(now_ns + FAILED_NS), false)
                }
                unchanged => (unchanged, None, false),
            };
            if !entry.is_queued {
                entry.is_queued = true;
                self.ready.push_back(*target);
            }
        }
        !self.ready.is_empty()
    }

    /// Returns true if there is a place for one more address.
    fn make_room(&mut self, now_ns: i64) -> bool {
        let is_open = |entry: &Entry<T>| entry.state.mac().is_none();
        let open = self.entries.values().filter(|entry| is_open(entry)).count();
        if open < self.capacity / 2 && self.entries.len() < self.capacity {
            return true;
        }
        let is_over = open >= self.capacity / 2;
        let candidates = self.entries.iter().filter(|(_, entry)| {
            let is_unused = now_ns - entry.used_ns >= UNUSED_NS;
            is_open(entry) || !is_over && is_unused
        });
        let oldest = candidates.min_by_key(|(_, entry)| entry.used_ns);
        let Some(target) = oldest.map(|(target, _)| *target) else {
            return false;
        };
        if let Some(entry) = self.entries.remove(&target) {
            let items = entry.waiting.into_iter().flatten();
            self.dropped.extend(items.map(|item| (target, item)));
            self.generation += 1;
            if entry.is_queued {
                self.ready.retain(|queued| *queued != target);
            }
        }
        true
    }
}

impl<T> Entry<T> {
    /// Returns true if the state ends by itself. A failed one ends when it is asked for again.
    fn is_timed(&self) -> bool {
        self.state != State::Failed
    }

    fn output(&mut self, target: IpAddr) -> Option<NeighbourOutput<T>> {
        if std::mem::take(&mut self.solicits) {
            let known = self.state.mac();
            return Some(NeighbourOutput::Solicit { target, known });
        }
        if matches!(self.state, State::Incomplete(_)) {
            return None;
        }
        let item = self.waiting.iter_mut().find_map(Option::take)?;
        Some(match self.state.mac() {
            Some(mac) => NeighbourOutput::Send { target, mac, item },
            None => NeighbourOutput::Drop { target, item },
        })
    }
}
