//! Logs mapped page by page before messages meet them.
//!
//! A log whose file has all its pages still costs whoever writes to it for the first time a page fault for each: some 2 us
//! for 4 KiB, in the middle of a message. The conductor's thread takes them, a step at a time between naps, in the order in
//! which a publication comes to them; a publication that is faster meets the rest of them itself. Files that are sparse are
//! left as they are, because to touch a hole is to fill it.
//!
//! Input: [`Ahead::add`], a log; [`Ahead::step`] maps the next pages.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use taran_protocol::log::LogBuffers;

/// Bytes mapped in a step: some 30 us, with pages of 4 KiB.
const STEP: usize = 64 * 1024;
/// Most bytes of logs that are used at a time. The page tables for them take a five-hundredth of it.
const MOST: usize = 1024 * 1024 * 1024;
/// Terms of a log.
const TERMS: usize = 3;

/// What is to be mapped, and what was.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    waiting: VecDeque<Job>,
    /// Logs that are mapped, and some that were and are gone.
    done: Vec<Log>,
    /// Bytes of all of these.
    used: usize,
    /// So many more are refused before it is looked again which of them are gone.
    patience: usize,
}

/// A log, and bytes of its terms.
#[derive(Debug)]
struct Log(Weak<LogBuffers>, usize);

/// A log that is being mapped.
#[derive(Debug)]
struct Job {
    log: Log,
    /// The term in which its publication begins.
    first: usize,
    /// Bytes of the terms that are mapped, counted from there.
    mapped: usize,
}

impl Ahead {
    /// A log whose file has all its pages. Beyond the most that are mapped it is left alone.
    pub(crate) fn add(&mut self, log: &Arc<LogBuffers>) {
        let length = TERMS * log.term(0).len();
        if self.used + length > MOST {
            self.forget_gone();
        }
        if self.used + length <= MOST {
            self.used += length;
            self.waiting.push_back(Job {
                log: Log(Arc::downgrade(log), length),
                first: log.active_term_count().rem_euclid(TERMS as i32) as usize,
                mapped: 0,
            });
        }
    }

    /// Not each time: so one costs the same however many there are.
    fn forget_gone(&mut self) {
        if self.patience > 0 {
            self.patience -= 1;
            return;
        }
        self.done.retain(|Log(log, _)| log.strong_count() > 0);
        let waiting = self.waiting.iter().map(|job| &job.log);
        self.used = waiting.chain(&self.done).map(|Log(_, length)| length).sum();
        self.patience = self.done.len() / 2;
    }

    /// Whether there is something to do.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Maps the next pages.
    pub(crate) fn step(&mut self) {
        let Some(job) = self.waiting.front_mut() else {
            return;
        };
        let is_more = (job.log.0.upgrade()).is_some_and(|log| job.step(&log));
        if !is_more && let Some(job) = self.waiting.pop_front() {
            self.done.push(job.log);
        }
    }
}

impl Job {
    /// Whether there is more to do.
    fn step(&mut self, log: &LogBuffers) -> bool {
        let term_length = log.term(0).len();
        let term = log.term((self.first + self.mapped / term_length) % TERMS);
        let offset = self.mapped % term_length;
        // Terms are powers of two, and none is shorter.
        let Ok(part) = term.sub(offset, STEP.min(term_length - offset)) else {
            return false;
        };
        self.mapped += part.len();
        // An old kernel cannot do it, and a file that was cut has no such pages: then nothing is gained.
        part.populate().is_ok() && self.mapped < self.log.1
    }
}

#[cfg(test)]
mod tests {
    use taran_core::memory::Region;
    use taran_protocol::log::{LogKind, LogSpec};

    use super::*;

    fn log(term_length: i32) -> Arc<LogBuffers> {
        let spec = LogSpec::new(LogKind::Concurrent, 1, 2, 3, term_length);
        let region = Region::anonymous(spec.file_length()).unwrap();
        Arc::new(LogBuffers::create(&region, &spec, 0).unwrap())
    }

    #[test]
    fn a_log_is_mapped_step_by_step_from_the_term_on_that_is_used() {
        let log = log(128 * 1024);
        let mut ahead = Ahead::default();
        ahead.add(&log);
        assert_eq!(ahead.waiting[0].first, 0);
        for _ in 0..6 {
            assert!(ahead.is_waiting());
            ahead.step();
        }
        assert!(!ahead.is_waiting());
        assert_eq!(ahead.done.len(), 1);
        ahead.step();
    }

    #[test]
    fn a_log_that_is_gone_is_no_more_work() {
        let mut ahead = Ahead::default();
        let (gone, used) = (log(64 * 1024), log(64 * 1024));
        ahead.add(&gone);
        ahead.add(&used);
        drop(gone);
        for _ in 0..4 {
            assert!(ahead.is_waiting());
            ahead.step();
        }
        assert!(!ahead.is_waiting());
    }

    #[test]
    fn no_more_than_the_most_is_mapped_of_logs_that_are_used() {
        const FIT: usize = MOST / (TERMS * LENGTH as usize);
        const LENGTH: i32 = 32 * 1024 * 1024;
        let mut ahead = Ahead::default();
        // Nobody touches their pages.
        let mut logs: Vec<_> = (0..=FIT).map(|_| log(LENGTH)).collect();
        logs.iter().for_each(|log| ahead.add(log));
        assert_eq!(ahead.waiting.len(), FIT);
        // As if they were mapped.
        ahead.done = ahead.waiting.drain(..).map(|job| job.log).collect();
        ahead.add(&logs[FIT]);
        assert!(!ahead.is_waiting(), "all are used");
        logs.drain(..2);
        for _ in 0..=FIT {
            ahead.add(&logs[FIT - 2]);
        }
        assert_eq!(ahead.waiting.len(), 2, "two are gone");
    }
}
