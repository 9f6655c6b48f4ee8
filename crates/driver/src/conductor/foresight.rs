//! Log files that are made before the commands run that need them.
//!
//! Commands of a client run one after the other. Where one of them waits for its log file, those behind it have theirs made
//! meanwhile, so that who adds a thousand publications does not wait a thousand times for another thread.
//!
//! Contract: `expect` a file that was asked for; `made` brings it; `take` it when its command runs, or `forget` it with
//! the command. What is foreseen is a guess: a command gets what it needs without it, too.

use std::collections::{BTreeMap, BTreeSet};

use super::log_files::LogFile;

/// Most bytes of files that are foreseen at a time: one log of the longest usual terms, or a thousand of the shortest.
const BYTES: usize = 256 * 1024 * 1024;

/// A log file that a command is going to need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreseen {
    /// Under which the file was asked for.
    pub(crate) ticket: u64,
    pub(crate) stream_id: i32,
    pub(crate) length: usize,
}

/// What there is of a file that was foreseen.
#[derive(Debug)]
pub(crate) enum Outlook {
    Made(LogFile),
    UnderWay,
    /// It could not be made, or nobody has foreseen it.
    Nothing,
}

#[derive(Debug)]
struct Expected {
    of: Foreseen,
    made: Option<LogFile>,
}

/// All files that are foreseen.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    files: BTreeMap<u64, Expected>,
    streams: BTreeSet<i32>,
    bytes: usize,
}

impl Foresight {
    /// Whether a file of so many bytes may be asked for. One for each stream: further commands are likely to share it.
    pub(crate) fn has_room(&self, stream_id: i32, length: usize) -> bool {
        self.bytes + length <= BYTES && !self.streams.contains(&stream_id)
    }

    pub(crate) fn expect(&mut self, of: Foreseen) {
        self.bytes += of.length;
        self.streams.insert(of.stream_id);
        self.files.insert(of.ticket, Expected { of, made: None });
    }

    /// A file was made, if there is one. Gives it back if nobody has foreseen it.
    pub(crate) fn made(&mut self, ticket: u64, file: Option<LogFile>) -> Option<LogFile> {
        match (self.files.get_mut(&ticket), file) {
            (Some(expected), Some(file)) => expected.made.replace(file),
            (Some(_), None) => self.forget(ticket),
            (None, file) => file,
        }
    }

    /// For the command that needs it.
    pub(crate) fn take(&mut self, ticket: u64) -> Outlook {
        match self.files.get(&ticket) {
            None => Outlook::Nothing,
            Some(expected) if expected.made.is_none() => Outlook::UnderWay,
            Some(_) => self.forget(ticket).map_or(Outlook::Nothing, Outlook::Made),
        }
    }

    /// Nobody needs it from here: what there is of it is given back.
    pub(crate) fn forget(&mut self, ticket: u64) -> Option<LogFile> {
        let Expected { of, made } = self.files.remove(&ticket)?;
        self.bytes -= of.length;
        self.streams.remove(&of.stream_id);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = BYTES / 2;

    fn foreseen(ticket: u64, stream_id: i32) -> Foreseen {
        Foreseen {
            ticket,
            stream_id,
            length: LENGTH,
        }
    }

    #[test]
    fn a_file_is_there_for_its_command_once() {
        let mut foresight = Foresight::default();
        foresight.expect(foreseen(1, 10));
        assert!(matches!(foresight.take(1), Outlook::UnderWay));
        assert!(foresight.made(1, Some(LogFile::detached())).is_none());
        assert!(matches!(foresight.take(1), Outlook::Made(_)));
        assert!(matches!(foresight.take(1), Outlook::Nothing));
        assert!(foresight.made(2, Some(LogFile::detached())).is_some());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_none() {
        let mut foresight = Foresight::default();
        foresight.expect(foreseen(1, 10));
        assert!(foresight.made(1, None).is_none());
        assert!(matches!(foresight.take(1), Outlook::Nothing));
        assert!(foresight.has_room(10, BYTES));
    }

    #[test]
    fn what_is_forgotten_is_given_back() {
        let mut foresight = Foresight::default();
        for ticket in [1, 2] {
            foresight.expect(foreseen(ticket, ticket as i32));
        }
        foresight.made(1, Some(LogFile::detached()));
        assert!(foresight.forget(1).is_some() && foresight.forget(2).is_none());
        assert!(foresight.made(2, Some(LogFile::detached())).is_some());
    }

    #[test]
    fn room_and_streams_are_limited() {
        let mut foresight = Foresight::default();
        foresight.expect(foreseen(1, 10));
        assert!(foresight.has_room(11, LENGTH) && !foresight.has_room(11, LENGTH + 1));
        assert!(!foresight.has_room(10, LENGTH), "one for each stream");
        foresight.forget(1);
        assert!(foresight.has_room(10, BYTES));
    }
}
