// SPDX-License-Identifier: Apache-2.0
//! The terms of a log.

use super::NULL_TERM;

/// A TERM entry of the recording log: the log from `base` on, up to the base of the next entry, is of this term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TermEntry {
    /// Leadership term id.
    pub term: i64,
    /// Log position at which the term starts.
    pub base: i64,
}

/// TERM entries in ascending order of both term and base. Terms without content are allowed; they show which leader a member
/// followed, and nothing about its log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    entries: Vec<TermEntry>,
}

impl Terms {
    /// Checks the entries of a recording log. Returns none if terms do not ascend or bases descend.
    #[must_use]
    pub fn new(entries: Vec<TermEntry>) -> Option<Self> {
        let is_valid = entries
            .iter()
            .all(|entry| entry.term >= 0 && entry.base >= 0)
            && entries
                .windows(2)
                .all(|pair| pair[0].term < pair[1].term && pair[0].base <= pair[1].base);
        is_valid.then_some(Self { entries })
    }

    /// Returns all entries.
    #[must_use]
    pub fn entries(&self) -> &[TermEntry] {
        &self.entries
    }

    /// Returns the log term: that of the last entry, or [`NULL_TERM`].
    #[must_use]
    pub fn log_term(&self) -> i64 {
        self.entries.last().map_or(NULL_TERM, |entry| entry.term)
    }

    /// Returns the entry of a term.
    #[must_use]
    pub fn get(&self, term: i64) -> Option<TermEntry> {
        self.entries
            .iter()
            .copied()
            .find(|entry| entry.term == term)
    }

    /// Returns the first entry of a later term, and the base of the one behind it.
    pub(super) fn after(&self, term: i64) -> Option<(TermEntry, Option<i64>)> {
        let index = self.entries.iter().position(|entry| entry.term > term)?;
        let end = self.entries.get(index + 1).map(|entry| entry.base);
        Some((self.entries[index], end))
    }

    /// Returns the last term that has content in a log of this length.
    pub(super) fn last_with_content(&self, append_position: i64) -> Option<TermEntry> {
        let mut end = append_position;
        for entry in self.entries.iter().rev() {
            if entry.base < end {
                return Some(*entry);
            }
            end = entry.base;
        }
        None
    }

    /// Adds an entry, and removes those of later terms.
    pub(super) fn set(&mut self, entry: TermEntry) {
        self.entries.retain(|other| other.term <= entry.term);
        if self.log_term() < entry.term {
            self.entries.push(entry);
        }
    }

    /// Removes the entries that start behind the position, and those from the term on.
    pub(super) fn truncate(&mut self, position: i64, from_term: i64) {
        self.entries
            .retain(|entry| entry.base <= position && entry.term < from_term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(entries: &[(i64, i64)]) -> Terms {
        let entries = entries.iter().map(|&(term, base)| TermEntry { term, base });
        Terms::new(entries.collect()).unwrap()
    }

    #[test]
    fn last_with_content_skips_terms_without_content() {
        let list = terms(&[(0, 0), (3, 96), (4, 192), (6, 192)]);
        assert_eq!(list.last_with_content(192).unwrap().term, 3);
        assert_eq!(list.last_with_content(288).unwrap().term, 6);
        assert_eq!(terms(&[(2, 0)]).last_with_content(0), None);
        assert_eq!(terms(&[]).last_with_content(0), None);
    }

    #[test]
    fn set_of_an_earlier_term_removes_later_ones() {
        let mut list = terms(&[(0, 0), (4, 96)]);
        list.set(TermEntry { term: 3, base: 96 });
        assert_eq!(list, terms(&[(0, 0), (3, 96)]));
        list.set(TermEntry { term: 0, base: 0 });
        assert_eq!(list, terms(&[(0, 0)]));
    }

    #[test]
    fn truncate_removes_the_term_and_what_starts_behind() {
        let mut list = terms(&[(0, 0), (1, 96), (2, 192)]);
        list.truncate(96, i64::MAX);
        assert_eq!(list, terms(&[(0, 0), (1, 96)]));
        list.truncate(96, 1);
        assert_eq!(list, terms(&[(0, 0)]));
    }

    #[test]
    fn entries_out_of_order_are_no_terms() {
        let entry = |term, base| TermEntry { term, base };
        assert_eq!(Terms::new(vec![entry(1, 0), entry(1, 96)]), None);
        assert_eq!(Terms::new(vec![entry(1, 96), entry(2, 0)]), None);
        assert_eq!(Terms::new(vec![entry(-1, 0)]), None);
    }
}
