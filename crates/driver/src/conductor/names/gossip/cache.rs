// SPDX-License-Identifier: Apache-2.0
//! Cache of driver names and addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;

use taran_protocol::frame::ResolutionEntry;

/// Maximum number of cached names; further ones are ignored, since a peer may send any number.
const ENTRIES_MAX: usize = 4096;

/// Maximum number of names known only from third parties. The rest is for drivers that announce themselves.
const INDIRECT_MAX: usize = 1024;

/// Cache key: a name and an address family. Keys are ordered, so that an iteration can be continued.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    is_ipv6: bool,
    name: Box<[u8]>,
}

/// Last known address of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    address: SocketAddr,
    /// Time at which the driver was last alive, as reported by itself or by third parties.
    last_seen_ns: i64,
    is_indirect: bool,
}

/// Names of drivers and their addresses.
#[doc(alias = "DriverNameResolverCache")]
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: BTreeMap<Key, Entry>,
    indirect: usize,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds or updates an entry reported by the driver itself (`is_self`) or by a third party. The younger of two
    /// reports wins, so that an old report in circulation does not revert an address.
    pub(super) fn update(
        &mut self,
        name: &[u8],
        address: SocketAddr,
        last_seen_ns: i64,
        is_self: bool,
    ) {
        let key = Key {
            is_ipv6: address.is_ipv6(),
            name: name.into(),
        };
        if let Some(known) = self.entries.get_mut(&key) {
            if known.last_seen_ns <= last_seen_ns {
                known.address = address;
                known.last_seen_ns = last_seen_ns;
            }
            if is_self && std::mem::take(&mut known.is_indirect) {
                self.indirect -= 1;
            }
            return;
        }
        let has_room = is_self || self.indirect < INDIRECT_MAX;
        if has_room && self.entries.len() < ENTRIES_MAX {
            self.indirect += usize::from(!is_self);
            let entry = Entry {
                address,
                last_seen_ns,
                is_indirect: !is_self,
            };
            self.entries.insert(key, entry);
        }
    }

    /// Removes entries not seen since `deadline_ns`; returns true if there were any.
    pub(super) fn remove_older_than(&mut self, deadline_ns: i64) -> bool {
        let before = self.entries.len();
        let indirect = &mut self.indirect;
        self.entries.retain(|_, entry| {
            let is_kept = entry.last_seen_ns >= deadline_ns;
            *indirect -= usize::from(!is_kept && entry.is_indirect);
            is_kept
        });
        self.entries.len() != before
    }

    /// Returns the addresses of a name.
    pub(super) fn find(&self, name: &str) -> Vec<IpAddr> {
        let of_family = |is_ipv6| {
            let name = name.as_bytes().into();
            self.entries.get(&Key { is_ipv6, name })
        };
        let found = [false, true].into_iter().filter_map(of_family);
        found.map(|entry| entry.address.ip()).collect()
    }

    /// Returns the entries after `last`, with their ages at `now_ns`.
    pub(super) fn entries_after(
        &self,
        last: Option<&Key>,
        now_ns: i64,
    ) -> impl Iterator<Item = ResolutionEntry<'_>> {
        self.after(last).map(move |(key, entry)| {
            let age_ms = (now_ns - entry.last_seen_ns) / 1_000_000;
            ResolutionEntry {
                is_self: false,
                address: entry.address,
                age_ms: i32::try_from(age_ms).unwrap_or(i32::MAX),
                name: &key.name,
            }
        })
    }

    /// Returns the key of the entry at `index` after `last`.
    pub(super) fn key(&self, last: Option<&Key>, index: usize) -> Option<Key> {
        self.after(last).nth(index).map(|(key, _)| key.clone())
    }

    fn after(&self, last: Option<&Key>) -> impl Iterator<Item = (&Key, &Entry)> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range::<Key, _>((start, Bound::Unbounded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn update_younger_report_wins_per_name_and_family() {
        let mut cache = Cache::default();
        cache.update(b"a", address("10.0.0.1:1"), 50, false);
        cache.update(b"a", address("10.0.0.2:1"), 40, false);
        cache.update(b"a", address("[::1]:1"), 10, false);
        cache.update(b"b", address("10.0.0.3:1"), 10, false);
        assert_eq!(cache.len(), 3);
        assert_eq!(
            cache.find("a"),
            [address("10.0.0.1:1").ip(), address("[::1]:1").ip()]
        );
        cache.update(b"a", address("10.0.0.2:1"), 60, false);
        assert_eq!(cache.find("a")[0], address("10.0.0.2:1").ip());
        assert!(cache.remove_older_than(11));
        assert!(!cache.remove_older_than(11));
        assert_eq!(cache.find("a").len(), 1);
        assert!(cache.find("b").is_empty());
    }

    #[test]
    fn update_limits_total_and_indirect_entries() {
        let mut cache = Cache::default();
        let mut update_all = |numbers: std::ops::Range<usize>, is_self| {
            for number in numbers {
                let name = number.to_string();
                cache.update(name.as_bytes(), address("10.0.0.1:1"), 0, is_self);
            }
            cache.len()
        };
        assert_eq!(update_all(0..INDIRECT_MAX + 10, false), INDIRECT_MAX);
        assert_eq!(update_all(0..10, true), INDIRECT_MAX, "already known");
        assert_eq!(update_all(9_000..9_020, false), INDIRECT_MAX + 10);
        assert_eq!(update_all(10_000..20_000, true), ENTRIES_MAX);
        assert!(cache.remove_older_than(1));
        let count = INDIRECT_MAX as i64;
        for number in 0..count {
            cache.update(&number.to_le_bytes(), address("10.0.0.1:1"), 1, false);
        }
        assert_eq!(cache.len(), INDIRECT_MAX);
    }

    #[test]
    fn entries_after_reports_age_in_milliseconds() {
        let mut cache = Cache::default();
        cache.update(b"a", address("10.0.0.1:1"), 1_000_000, false);
        let ages: Vec<i32> = cache
            .entries_after(None, 4_900_000)
            .map(|entry| entry.age_ms)
            .collect();
        assert_eq!(ages, [3]);
    }
}
