// SPDX-License-Identifier: Apache-2.0
//! Background prefaulting of log file pages.
//!
//! The pages of a log are reserved ahead, but the kernel clears each one on its first access, which would be in the
//! middle of a message: about 2 us per 4 KiB, and as much again for each other process that maps the file. An idle
//! thread therefore calls [`step`](PagePrefaulter::step), which clears and maps a few pages of one log; logs take
//! turns. Logs requested by clients have priority, because any peer that reaches a socket can cause images.
//!
//! Pages are faulted in for reading, so that nothing has to be written to disk. On a file system that is not in memory
//! the first write to a page therefore still faults.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use taran_core::memory::Region;

use crate::conductor::RequestOrigin;

/// Bytes per step, about 150 us: the longest delay of a job that arrives meanwhile.
const STEP_LENGTH: usize = 256 * 1024;

/// Logs with reserved pages that are not mapped yet.
#[derive(Debug, Default)]
pub(super) struct PagePrefaulter {
    logs: HashMap<PathBuf, Log>,
    /// Queues of logs; they may contain logs that were removed.
    for_clients: VecDeque<PathBuf>,
    for_peers: VecDeque<PathBuf>,
}

#[derive(Debug)]
struct Log {
    /// Reserved parts that are not mapped, in the order in which they are used. Never empty.
    parts: VecDeque<Region>,
    origin: RequestOrigin,
    /// Bytes mapped of the first part.
    prefaulted: usize,
}

impl PagePrefaulter {
    /// Adds a reserved part of a log.
    pub(super) fn add(&mut self, path: &Path, part: Region, origin: RequestOrigin) {
        if let Some(log) = self.logs.get_mut(path) {
            log.parts.push_back(part);
            return;
        }
        let log = Log {
            parts: VecDeque::from([part]),
            origin,
            prefaulted: 0,
        };
        self.logs.insert(path.to_owned(), log);
        self.queue_for(origin).push_back(path.to_owned());
    }

    /// Removes a log that is no longer in use. Its memory is unmapped with the last view of it.
    pub(super) fn remove(&mut self, path: &Path) {
        self.logs.remove(path);
    }

    /// Prefaults some pages. Returns false if there are none left.
    pub(super) fn step(&mut self) -> bool {
        while let Some(path) = self.next_path() {
            let Some(log) = self.logs.get_mut(&path) else {
                continue;
            };
            if log.prefault_step() {
                let origin = log.origin;
                self.queue_for(origin).push_back(path);
            } else {
                self.logs.remove(&path);
            }
            return true;
        }
        false
    }

    fn next_path(&mut self) -> Option<PathBuf> {
        let clients = self.for_clients.pop_front();
        clients.or_else(|| self.for_peers.pop_front())
    }

    fn queue_for(&mut self, origin: RequestOrigin) -> &mut VecDeque<PathBuf> {
        match origin {
            RequestOrigin::Client => &mut self.for_clients,
            RequestOrigin::Peer => &mut self.for_peers,
        }
    }
}

impl Log {
    /// Prefaults the next pages. Returns false if there are no more or the system does not support it.
    fn prefault_step(&mut self) -> bool {
        let Some(part) = self.parts.front() else {
            return false;
        };
        let length = STEP_LENGTH.min(part.len() - self.prefaulted);
        let pages = part.sub(self.prefaulted, length);
        self.prefaulted += length;
        if self.prefaulted == part.len() {
            self.parts.pop_front();
            self.prefaulted = 0;
        }
        pages.is_ok_and(|pages| pages.fault_in().is_ok()) && !self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefaulter(logs: &[(&str, usize, RequestOrigin)]) -> PagePrefaulter {
        let mut prefaulter = PagePrefaulter::default();
        for (path, length, origin) in logs {
            let region = Region::anonymous(*length).unwrap();
            prefaulter.add(path.as_ref(), region, *origin);
        }
        prefaulter
    }

    fn prefaulted(prefaulter: &PagePrefaulter) -> Vec<(&str, usize)> {
        let logs = prefaulter.logs.iter();
        let mut ready: Vec<_> = logs
            .map(|(path, log)| (path.to_str().unwrap(), log.prefaulted))
            .collect();
        ready.sort_unstable();
        ready
    }

    #[test]
    fn step_alternates_among_logs_until_all_are_prefaulted() {
        let client = RequestOrigin::Client;
        let mut prefaulter = prefaulter(&[
            ("a", 2 * STEP_LENGTH + 4_096, client),
            ("b", STEP_LENGTH, client),
        ]);
        for expected in [
            vec![("a", STEP_LENGTH), ("b", 0)],
            vec![("a", STEP_LENGTH)],
            vec![("a", 2 * STEP_LENGTH)],
            vec![],
        ] {
            assert!(prefaulter.step());
            assert_eq!(prefaulted(&prefaulter), expected);
        }
        assert!(!prefaulter.step());
    }

    #[test]
    fn step_prefers_logs_of_clients() {
        let mut prefaulter = prefaulter(&[
            ("peer", STEP_LENGTH, RequestOrigin::Peer),
            ("client", 3 * STEP_LENGTH, RequestOrigin::Client),
        ]);
        for _ in 0..3 {
            assert_eq!(prefaulted(&prefaulter)[1], ("peer", 0));
            prefaulter.step();
        }
        assert_eq!(prefaulted(&prefaulter), [("peer", 0)]);
        assert!(prefaulter.step());
        assert!(!prefaulter.step());
    }

    #[test]
    fn step_skips_removed_logs() {
        let client = RequestOrigin::Client;
        let mut prefaulter = prefaulter(&[
            ("a", 4 * STEP_LENGTH, client),
            ("b", 4 * STEP_LENGTH, client),
        ]);
        prefaulter.step();
        prefaulter.remove("a".as_ref());
        assert_eq!(prefaulted(&prefaulter), [("b", 0)]);
        for _ in 0..4 {
            assert!(prefaulter.step());
        }
        assert!(!prefaulter.step());
        assert!(prefaulter.for_clients.is_empty());
    }

    #[test]
    fn step_continues_with_parts_that_are_added_later() {
        let client = RequestOrigin::Client;
        let mut prefaulter = prefaulter(&[("a", 2 * STEP_LENGTH, client)]);
        prefaulter.step();
        let part = Region::anonymous(STEP_LENGTH).unwrap();
        prefaulter.add("a".as_ref(), part, client);
        prefaulter.step();
        assert_eq!(prefaulted(&prefaulter), [("a", 0)], "of the second part");
        assert!(prefaulter.step());
        assert!(prefaulted(&prefaulter).is_empty());
        assert!(!prefaulter.step());
    }
}
