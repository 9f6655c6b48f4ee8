// SPDX-License-Identifier: Apache-2.0
//! Bounded liveness table, keyed by status messages.
//!
//! The sender uses it for the receivers of a publication, for flow control and for the destinations of a channel. An
//! entry expires when it was not refreshed for the timeout. While [`MAX_LIVE_ENTRIES`] entries are live, new ones are
//! rejected, so that forged ids can neither exhaust memory nor evict real receivers.

/// Maximum number of entries of a table, not counting those that were added by command.
pub(crate) const MAX_LIVE_ENTRIES: usize = 1024;

/// Bounded table of entries that expire.
#[derive(Debug)]
#[doc(alias = "ReceiverLivenessTracker")]
pub(super) struct LivenessTable<T> {
    entries: Vec<Entry<T>>,
    timeout: TimeoutRule,
    has_rejected: bool,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    refreshed_ns: i64,
}

/// Time without a refresh after which an entry expires.
#[derive(Clone, Copy, Debug)]
enum TimeoutRule {
    /// Expires when the time is longer than this.
    After(i64),
    /// Expires when the time is at least this.
    At(i64),
}

impl TimeoutRule {
    /// Returns the last time at which an entry is live that was refreshed at `refreshed_ns`.
    fn last_live_ns(self, refreshed_ns: i64) -> i64 {
        match self {
            Self::After(timeout_ns) => refreshed_ns.saturating_add(timeout_ns),
            Self::At(timeout_ns) => refreshed_ns.saturating_add(timeout_ns).saturating_sub(1),
        }
    }

    fn is_exceeded(self, silent_ns: i64) -> bool {
        match self {
            Self::After(timeout_ns) => silent_ns > timeout_ns,
            Self::At(timeout_ns) => silent_ns >= timeout_ns,
        }
    }
}

impl<T> Entry<T> {
    fn is_expired(&self, now_ns: i64, timeout: TimeoutRule) -> bool {
        timeout.is_exceeded(now_ns - self.refreshed_ns)
    }
}

impl<T> LivenessTable<T> {
    /// Returns a table whose entries expire when they were not refreshed for longer than the timeout.
    pub(super) fn expiring_after(timeout_ns: i64) -> Self {
        Self::new(TimeoutRule::After(timeout_ns))
    }

    /// Returns a table whose entries expire when they were not refreshed for the timeout.
    pub(super) fn expiring_at(timeout_ns: i64) -> Self {
        Self::new(TimeoutRule::At(timeout_ns))
    }

    fn new(timeout: TimeoutRule) -> Self {
        Self {
            entries: Vec::with_capacity(4),
            timeout,
            has_rejected: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    /// Returns all entries in a cycle that begins with index `first`.
    pub(super) fn iter_from(&self, first: usize) -> impl Iterator<Item = &T> {
        let (later, sooner) = self.entries.split_at(first.min(self.entries.len()));
        sooner.iter().chain(later).map(|entry| &entry.value)
    }

    /// Refreshes the first entry that matches, and returns it.
    pub(super) fn refresh(&mut self, now_ns: i64, matches: impl Fn(&T) -> bool) -> Option<&mut T> {
        let entry = self
            .entries
            .iter_mut()
            .find(|entry| matches(&entry.value))?;
        entry.refreshed_ns = now_ns;
        Some(&mut entry.value)
    }

    /// Adds an entry. A full table first removes its expired entries and passes each to `removed`. Returns false if the
    /// table is still full.
    pub(super) fn insert(&mut self, value: T, now_ns: i64, removed: impl FnMut(&T)) -> bool {
        let has_room =
            self.entries.len() < MAX_LIVE_ENTRIES || self.remove_expired(now_ns, removed);
        self.has_rejected |= !has_room;
        if has_room {
            self.insert_unbounded(value, now_ns);
        }
        has_room
    }

    /// Adds an entry that a command asked for. Their number is not limited.
    pub(super) fn insert_unbounded(&mut self, value: T, now_ns: i64) {
        let refreshed_ns = now_ns;
        self.entries.push(Entry {
            value,
            refreshed_ns,
        });
    }

    /// Removes all entries that match. Returns true if there was one.
    pub(super) fn remove(&mut self, matches: impl Fn(&T) -> bool) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !matches(&entry.value));
        self.entries.len() != before
    }

    /// Removes expired entries and passes each to `removed`. Returns true if there was one.
    pub(super) fn remove_expired(&mut self, now_ns: i64, removed: impl FnMut(&T)) -> bool {
        self.remove_expired_or(now_ns, |_| false, removed)
    }

    /// Removes entries that are expired or match, and passes each to `removed`. Returns true if there was one.
    pub(super) fn remove_expired_or(
        &mut self,
        now_ns: i64,
        matches: impl Fn(&T) -> bool,
        mut removed: impl FnMut(&T),
    ) -> bool {
        let (before, timeout) = (self.entries.len(), self.timeout);
        self.entries.retain(|entry| {
            let stays = !entry.is_expired(now_ns, timeout) && !matches(&entry.value);
            if !stays {
                removed(&entry.value);
            }
            stays
        });
        self.entries.len() != before
    }

    /// Returns the last time at which no entry is expired, if none is refreshed before.
    pub(super) fn unchanged_until_ns(&self) -> i64 {
        let last = |entry: &Entry<T>| self.timeout.last_live_ns(entry.refreshed_ns);
        self.entries.iter().map(last).min().unwrap_or(i64::MAX)
    }

    /// Passes each expired entry that matches to `on_expired` and restarts its timeout.
    pub(super) fn restart_expired(
        &mut self,
        now_ns: i64,
        matches: impl Fn(&T) -> bool,
        mut on_expired: impl FnMut(&T),
    ) {
        for entry in &mut self.entries {
            if entry.is_expired(now_ns, self.timeout) && matches(&entry.value) {
                entry.refreshed_ns = now_ns;
                on_expired(&entry.value);
            }
        }
    }

    /// Returns true if an entry was rejected since the last call.
    pub(super) fn take_rejected(&mut self) -> bool {
        std::mem::take(&mut self.has_rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refresh(table: &mut LivenessTable<i64>, id: i64, now_ns: i64) {
        if table.refresh(now_ns, |&known| known == id).is_none() {
            table.insert(id, now_ns, |_| {});
        }
    }

    #[test]
    fn entry_silent_for_longer_than_timeout_is_removed() {
        let mut table = LivenessTable::expiring_after(100);
        refresh(&mut table, 1, 0);
        refresh(&mut table, 2, 50);
        let mut removed = Vec::new();
        assert_eq!(table.unchanged_until_ns(), 100);
        assert!(!table.remove_expired(100, |&id| removed.push(id)));
        refresh(&mut table, 2, 101);
        assert!(table.remove_expired(101, |&id| removed.push(id)));
        assert_eq!(removed, [1]);
        assert!(!table.remove_expired(201, |&id| removed.push(id)));
        assert!(table.remove_expired(202, |&id| removed.push(id)));
        assert!(table.is_empty());
    }

    #[test]
    fn entry_of_table_expiring_at_timeout_is_removed_at_timeout() {
        for (timeout_ns, last_ns) in [(100, 99), (0, -1)] {
            let mut table = LivenessTable::expiring_at(timeout_ns);
            refresh(&mut table, 1, 0);
            assert_eq!(table.unchanged_until_ns(), last_ns);
            assert!(!table.remove_expired(last_ns, |_| {}));
            assert!(table.remove_expired(last_ns + 1, |_| {}));
            assert_eq!(table.unchanged_until_ns(), i64::MAX);
        }
    }

    #[test]
    fn remove_twice_is_true_once() {
        let mut table = LivenessTable::expiring_after(100);
        refresh(&mut table, 1, 0);
        assert!(table.remove(|&id| id == 1));
        assert!(!table.remove(|&id| id == 1));
    }

    #[test]
    fn insert_into_full_table_is_rejected_without_eviction() {
        let mut table = LivenessTable::expiring_after(100);
        refresh(&mut table, -1, 0);
        for id in 0..10_000 {
            refresh(&mut table, id, id / 1000);
        }
        assert_eq!(table.len(), MAX_LIVE_ENTRIES);
        assert!(table.take_rejected() && !table.take_rejected());
        assert!(table.iter().any(|&id| id == -1));
        // Entries that expired, but were not removed yet, make room for others.
        refresh(&mut table, 20_000, 101);
        assert!(!table.take_rejected());
        assert!(table.iter().all(|&id| id != -1));
    }

    #[test]
    fn restart_expired_restarts_timeout() {
        let mut table = LivenessTable::expiring_after(100);
        table.insert_unbounded(7, 0);
        table.insert_unbounded(8, 0);
        let mut expired = |now_ns| {
            let mut passed = Vec::new();
            table.restart_expired(now_ns, |&id| id == 7, |&id| passed.push(id));
            passed
        };
        assert!(expired(100).is_empty());
        assert_eq!(expired(101), [7]);
        assert!(expired(201).is_empty());
        assert_eq!(expired(202), [7]);
        // The other one was not asked for, and is as expired as ever.
        assert!(table.remove_expired(202, |&id| assert_eq!(id, 8)));
    }

    #[test]
    fn iter_from_wraps_around() {
        let mut table = LivenessTable::expiring_after(100);
        for id in 0..3 {
            table.insert_unbounded(id, 0);
        }
        for (first, order) in [(0, [0, 1, 2]), (2, [2, 0, 1]), (9, [0, 1, 2])] {
            assert!(table.iter_from(first).eq(&order), "{first}");
        }
    }
}
