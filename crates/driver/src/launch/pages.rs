//! Pages of log files, made ready before messages come to them.
//!
//! The pages of a new log are set aside, but the system clears each of them only when it is met for the first time, and that
//! is in the middle of a message: some 2 us for 4 KiB, and as much again for whoever else maps the file. Whoever has nothing
//! else to do takes a [`step`](Pages::step): it clears and maps a few pages of one log, then it is another one's turn.
//! Pages are met as if they were read, so that nothing has to be written to a disk.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use taran_core::memory::Region;

/// Bytes made ready in a step, some 150 us: for so long a job waits that comes in meanwhile.
const STEP: usize = 256 * 1024;

/// Logs of which there are pages to be made ready.
#[derive(Debug, Default)]
pub(super) struct Pages {
    logs: VecDeque<Log>,
}

#[derive(Debug)]
struct Log {
    path: PathBuf,
    region: Region,
    ready: usize,
}

impl Pages {
    /// A new log.
    pub(super) fn add(&mut self, path: &Path, region: &Region) {
        self.logs.push_back(Log {
            path: path.to_owned(),
            region: region.clone(),
            ready: 0,
        });
    }

    /// A log that nobody uses any more. It is to be unmapped, which it is with the last view of it.
    pub(super) fn forget(&mut self, path: &Path) {
        self.logs.retain(|log| log.path != path);
    }

    /// Makes some pages ready. False if there are none left.
    pub(super) fn step(&mut self) -> bool {
        let Some(mut log) = self.logs.pop_front() else {
            return false;
        };
        let length = STEP.min(log.region.len() - log.ready);
        // A system that cannot do it is asked once for each log.
        let is_done = log
            .region
            .sub(log.ready, length)
            .is_ok_and(|part| part.fault_in().is_ok());
        log.ready += length;
        if is_done && log.ready < log.region.len() {
            self.logs.push_back(log);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(path: &str, length: usize) -> (PathBuf, Region) {
        (path.into(), Region::anonymous(length).unwrap())
    }

    fn waiting(pages: &Pages) -> Vec<(&str, usize)> {
        let logs = pages.logs.iter();
        logs.map(|log| (log.path.to_str().unwrap(), log.ready))
            .collect()
    }

    #[test]
    fn logs_take_turns_and_each_comes_to_its_end() {
        let mut pages = Pages::default();
        for (path, region) in [log("a", 2 * STEP + 4_096), log("b", STEP)] {
            pages.add(&path, &region);
        }
        for expected in [
            vec![("b", 0), ("a", STEP)],
            vec![("a", STEP)],
            vec![("a", 2 * STEP)],
            vec![],
        ] {
            assert!(pages.step());
            assert_eq!(waiting(&pages), expected);
        }
        assert!(!pages.step());
    }

    #[test]
    fn of_a_log_that_is_gone_nothing_is_kept() {
        let mut pages = Pages::default();
        for (path, region) in [log("a", 4 * STEP), log("b", 4 * STEP)] {
            pages.add(&path, &region);
        }
        pages.step();
        pages.forget("a".as_ref());
        assert_eq!(waiting(&pages), [("b", 0)]);
    }
}
