//! The drivers that were heard of, by name.

use std::net::{IpAddr, SocketAddr};

use taran_protocol::frame::ResolutionEntry;

/// Most names kept; what is beyond is not taken in. A peer may tell anything.
const ENTRIES_MAX: usize = 4096;

/// Where a driver of this name was last known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: Box<[u8]>,
    address: SocketAddr,
    /// When it gave its last sign of life, which may have come by way of others.
    heard_ns: i64,
}

/// Names of drivers and their addresses; one entry per name and family of address.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Vec<Entry>,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes in what was heard. Of two reports the younger one counts, so that an old one which is still passed on does
    /// not take a driver back to where it was before.
    pub(super) fn learn(&mut self, name: &[u8], address: SocketAddr, heard_ns: i64) {
        let has_room = self.entries.len() < ENTRIES_MAX;
        let known = self
            .entries
            .iter_mut()
            .find(|entry| *entry.name == *name && entry.address.is_ipv4() == address.is_ipv4());
        match known {
            Some(entry) if entry.heard_ns <= heard_ns => {
                entry.address = address;
                entry.heard_ns = heard_ns;
            }
            None if has_room => self.entries.push(Entry {
                name: name.into(),
                address,
                heard_ns,
            }),
            Some(_) | None => {}
        }
    }

    /// Forgets what was not heard of since `deadline_ns`; true if there was something.
    pub(super) fn forget_before(&mut self, deadline_ns: i64) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.heard_ns >= deadline_ns);
        self.entries.len() != before
    }

    /// The addresses under a name.
    pub(super) fn find(&self, name: &str) -> Vec<IpAddr> {
        self.entries
            .iter()
            .filter(|entry| *entry.name == *name.as_bytes())
            .map(|entry| entry.address.ip())
            .collect()
    }

    /// All entries from `first` on, as they are told to others at `now_ns`.
    pub(super) fn tell(
        &self,
        first: usize,
        now_ns: i64,
    ) -> impl Iterator<Item = ResolutionEntry<'_>> {
        self.entries[first..].iter().map(move |entry| {
            let age_ms = (now_ns - entry.heard_ns) / 1_000_000;
            ResolutionEntry {
                is_self: false,
                address: entry.address,
                age_ms: i32::try_from(age_ms).unwrap_or(i32::MAX),
                name: &entry.name,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_youngest_report_counts_per_name_and_family() {
        let mut cache = Cache::default();
        cache.learn(b"a", address("10.0.0.1:1"), 50);
        cache.learn(b"a", address("10.0.0.2:1"), 40);
        cache.learn(b"a", address("[::1]:1"), 10);
        cache.learn(b"b", address("10.0.0.3:1"), 10);
        assert_eq!(cache.len(), 3);
        assert_eq!(
            cache.find("a"),
            [address("10.0.0.1:1").ip(), address("[::1]:1").ip()]
        );
        cache.learn(b"a", address("10.0.0.2:1"), 60);
        assert_eq!(cache.find("a")[0], address("10.0.0.2:1").ip());
        assert!(cache.forget_before(11));
        assert!(!cache.forget_before(11));
        assert_eq!(cache.find("a").len(), 1);
        assert!(cache.find("b").is_empty());
    }

    #[test]
    fn there_is_a_limit_to_what_others_can_tell() {
        let mut cache = Cache::default();
        for number in 0..ENTRIES_MAX + 10 {
            cache.learn(number.to_string().as_bytes(), address("10.0.0.1:1"), 0);
        }
        assert_eq!(cache.len(), ENTRIES_MAX);
    }

    #[test]
    fn ages_are_told_in_milliseconds() {
        let mut cache = Cache::default();
        cache.learn(b"a", address("10.0.0.1:1"), 1_000_000);
        let told: Vec<i32> = cache.tell(0, 4_900_000).map(|entry| entry.age_ms).collect();
        assert_eq!(told, [3]);
    }
}
