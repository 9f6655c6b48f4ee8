// SPDX-License-Identifier: Apache-2.0
//! Map with a one-entry cache: consecutive datagrams mostly have the same key.

use std::hash::Hash;

use crate::ids::{IdHash, IdMap};

/// Map from small keys to entries. A lookup of the key that was looked up last costs one comparison.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    index: IdMap<K, usize>,
    entries: Vec<(K, V)>,
    last: usize,
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    /// Returns an empty table. The seed keeps peers from choosing keys that collide.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            index: IdMap::with_hasher(IdHash::new(seed)),
            entries: Vec::new(),
            last: 0,
        }
    }

    /// Returns the entry of a key.
    #[inline]
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let is_last = self
            .entries
            .get(self.last)
            .is_some_and(|(last, _)| *last == key);
        if !is_last {
            self.last = *self.index.get(&key)?;
        }
        self.entries.get_mut(self.last).map(|(_, value)| value)
    }

    /// Inserts an entry, or replaces the one of this key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Some(&at) = self.index.get(&key) {
            self.entries[at].1 = value;
        } else {
            self.index.insert(key, self.entries.len());
            self.entries.push((key, value));
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.index.remove(&key)?;
        let (_, value) = self.entries.swap_remove(at);
        if let Some((moved, _)) = self.entries.get(at) {
            self.index.insert(*moved, at);
        }
        Some(value)
    }

    /// Returns all entries.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_finds_moved_entries_after_a_removal() {
        let mut table = Table::new(1);
        for key in 0..10_i64 {
            table.insert(key, key * 10);
        }
        assert_eq!(table.remove(3), Some(30));
        assert_eq!(table.remove(3), None);
        for key in (0..10).filter(|key| *key != 3) {
            assert_eq!(table.get_mut(key).copied(), Some(key * 10));
        }
        assert_eq!(table.get_mut(3), None);
        table.insert(9, 1);
        assert_eq!(table.get_mut(9).copied(), Some(1));
        assert_eq!(table.values_mut().count(), 9);
    }
}
