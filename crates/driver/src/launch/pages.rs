//! Pages of log files, made ready before messages come to them.
//!
//! The pages of a new log are set aside, but the system clears each of them only when it is met for the first time, and that
//! is in the middle of a message: some 2 us for 4 KiB, and as much again for whoever else maps the file. Whoever has nothing
//! else to do takes a [`step`](Pages::step): it clears and maps a few pages of one log, then it is another one's turn. Logs
//! that clients have asked for come first: whoever reaches a socket can ask for images.
//!
//! Pages are met as if they were read, so that nothing has to be written to a disk; there, but not in memory, whoever writes
//! to one first still meets a fault.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use taran_core::memory::Region;

use crate::conductor::RequestOrigin;

/// Bytes made ready in a step, some 150 us: for so long a job waits that comes in meanwhile.
const STEP: usize = 256 * 1024;

/// Logs of which there are pages to be made ready.
#[derive(Debug, Default)]
pub(super) struct Pages {
    logs: HashMap<PathBuf, Log>,
    /// Whose turns come, those of logs that are gone among them.
    for_clients: VecDeque<PathBuf>,
    for_peers: VecDeque<PathBuf>,
}

#[derive(Debug)]
struct Log {
    region: Region,
    origin: RequestOrigin,
    ready: usize,
}

impl Pages {
    /// A new log.
    pub(super) fn add(&mut self, path: &Path, region: &Region, origin: RequestOrigin) {
        let log = Log {
            region: region.clone(),
            origin,
            ready: 0,
        };
        self.logs.insert(path.to_owned(), log);
        self.turns_of(origin).push_back(path.to_owned());
    }

    /// A log that nobody uses any more. It is to be unmapped, which it is with the last view of it.
    pub(super) fn forget(&mut self, path: &Path) {
        self.logs.remove(path);
    }

    /// Makes some pages ready. False if there are none left.
    pub(super) fn step(&mut self) -> bool {
        while let Some(path) = self.next_turn() {
            let Some(log) = self.logs.get_mut(&path) else {
                continue;
            };
            if log.make_ready() {
                let origin = log.origin;
                self.turns_of(origin).push_back(path);
            } else {
                self.logs.remove(&path);
            }
            return true;
        }
        false
    }

    fn next_turn(&mut self) -> Option<PathBuf> {
        let clients = self.for_clients.pop_front();
        clients.or_else(|| self.for_peers.pop_front())
    }

    fn turns_of(&mut self, origin: RequestOrigin) -> &mut VecDeque<PathBuf> {
        match origin {
            RequestOrigin::Client => &mut self.for_clients,
            RequestOrigin::Peer => &mut self.for_peers,
        }
    }
}

impl Log {
    /// The next pages. False if there are no more, or the system cannot do it.
    fn make_ready(&mut self) -> bool {
        let length = STEP.min(self.region.len() - self.ready);
        let part = self.region.sub(self.ready, length);
        self.ready += length;
        part.is_ok_and(|part| part.fault_in().is_ok()) && self.ready < self.region.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(logs: &[(&str, usize, RequestOrigin)]) -> Pages {
        let mut pages = Pages::default();
        for (path, length, origin) in logs {
            let region = Region::anonymous(*length).unwrap();
            pages.add(path.as_ref(), &region, *origin);
        }
        pages
    }

    fn ready(pages: &Pages) -> Vec<(&str, usize)> {
        let logs = pages.logs.iter();
        let mut ready: Vec<_> = logs
            .map(|(path, log)| (path.to_str().unwrap(), log.ready))
            .collect();
        ready.sort_unstable();
        ready
    }

    #[test]
    fn logs_take_turns_and_each_comes_to_its_end() {
        let client = RequestOrigin::Client;
        let mut pages = pages(&[("a", 2 * STEP + 4_096, client), ("b", STEP, client)]);
        for expected in [
            vec![("a", STEP), ("b", 0)],
            vec![("a", STEP)],
            vec![("a", 2 * STEP)],
            vec![],
        ] {
            assert!(pages.step());
            assert_eq!(ready(&pages), expected);
        }
        assert!(!pages.step());
    }

    #[test]
    fn what_peers_ask_for_comes_last() {
        let mut pages = pages(&[
            ("peer", STEP, RequestOrigin::Peer),
            ("client", 3 * STEP, RequestOrigin::Client),
        ]);
        for _ in 0..3 {
            assert_eq!(ready(&pages)[1], ("peer", 0));
            pages.step();
        }
        assert_eq!(ready(&pages), [("peer", 0)]);
        assert!(pages.step());
        assert!(!pages.step());
    }

    #[test]
    fn of_a_log_that_is_gone_nothing_is_kept() {
        let client = RequestOrigin::Client;
        let mut pages = pages(&[("a", 4 * STEP, client), ("b", 4 * STEP, client)]);
        pages.step();
        pages.forget("a".as_ref());
        assert_eq!(ready(&pages), [("b", 0)]);
        for _ in 0..4 {
            assert!(pages.step());
        }
        assert!(!pages.step());
        assert!(pages.for_clients.is_empty());
    }
}
