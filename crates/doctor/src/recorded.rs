// SPDX-License-Identifier: Apache-2.0
//! Machines as text: recorded on a real one or made up, for tests and for reports of users.
//!
//! ```text
//! # comment
//! == /proc/cmdline
//! isolcpus=2-5
//! == /proc/stat after          (second sample)
//! == /proc/1/status denied     (permission denied)
//! == space /dev/shm            (size and free space in bytes)
//! 67108864 67108864
//! == gaps 2                    (longest, sum, duration in nanoseconds)
//! 4000 0 2000000000
//! ```
//!
//! A section `== /proc/irq list` has the entries of a directory, one per line. A directory without one has the entries that
//! paths of files name.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use crate::machine::{Gaps, Machine, Space};

/// Reason why a text is no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct ParseError {
    /// Number of the line, counted from 1.
    pub line: usize,
    /// Description of the defect.
    pub what: String,
}

/// A machine read from text. [`Machine::wait`] switches to the second samples.
#[derive(Debug, Clone, Default)]
pub struct RecordedMachine {
    files: BTreeMap<String, Entry>,
    later: BTreeMap<String, Entry>,
    lists: BTreeMap<String, Vec<String>>,
    spaces: BTreeMap<String, Space>,
    gaps: BTreeMap<usize, Gaps>,
    has_waited: Cell<bool>,
}

#[derive(Debug, Clone)]
enum Entry {
    Text(String),
    Denied,
}

impl RecordedMachine {
    /// Parses the text of a machine.
    ///
    /// # Errors
    /// [`ParseError`] at the first line that is none of the format.
    pub fn parse(text: &str) -> Result<RecordedMachine, ParseError> {
        let mut machine = RecordedMachine::default();
        let mut section: Option<(usize, &str, Vec<&str>)> = None;
        for (index, line) in text.lines().enumerate() {
            if let Some(title) = line.strip_prefix("== ") {
                if let Some(section) = section.replace((index + 1, title.trim(), Vec::new())) {
                    machine.add(section)?;
                }
            } else if let Some((_, _, lines)) = &mut section {
                // A line of a file that begins like a section has one more backslash.
                lines.push(line.strip_prefix('\\').unwrap_or(line));
            } else if !line.is_empty() && !line.starts_with('#') {
                return Err(error(index + 1, "text before the first section"));
            }
        }
        if let Some(section) = section {
            machine.add(section)?;
        }
        Ok(machine)
    }

    fn add(&mut self, (at, title, lines): (usize, &str, Vec<&str>)) -> Result<(), ParseError> {
        let numbers = || {
            let fields = lines.iter().flat_map(|line| line.split_ascii_whitespace());
            fields.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()
        };
        if let Some(path) = title.strip_prefix("space ") {
            let Some([total, free]) = numbers().and_then(|list| <[u64; 2]>::try_from(list).ok())
            else {
                return Err(error(at, "needs size and free space in bytes"));
            };
            self.spaces.insert(path.to_owned(), Space { total, free });
        } else if let Some(cpu) = title.strip_prefix("gaps ") {
            let numbers = numbers().and_then(|list| <[u64; 3]>::try_from(list).ok());
            let (Ok(cpu), Some([longest_ns, lost_ns, elapsed_ns])) = (cpu.parse(), numbers) else {
                return Err(error(
                    at,
                    "needs a CPU, and longest gap, sum and duration in nanoseconds",
                ));
            };
            self.gaps.insert(
                cpu,
                Gaps {
                    longest_ns,
                    lost_ns,
                    elapsed_ns,
                },
            );
        } else if title.starts_with('/') {
            let text = lines.iter().flat_map(|line| [*line, "\n"]).collect();
            if let Some(path) = title.strip_suffix(" denied") {
                self.files.insert(path.to_owned(), Entry::Denied);
            } else if let Some(path) = title.strip_suffix(" list") {
                let names = lines.iter().map(|name| (*name).to_owned());
                self.lists.insert(
                    path.to_owned(),
                    names.filter(|name| !name.is_empty()).collect(),
                );
            } else if let Some(path) = title.strip_suffix(" after") {
                self.later.insert(path.to_owned(), Entry::Text(text));
            } else {
                self.files.insert(title.to_owned(), Entry::Text(text));
            }
        } else {
            return Err(error(at, "is no path, space or gaps"));
        }
        Ok(())
    }

    /// Replaces or adds a file, for variants of a machine.
    #[must_use]
    pub fn with_file(mut self, path: &str, text: &str) -> RecordedMachine {
        self.files
            .insert(path.to_owned(), Entry::Text(text.to_owned()));
        self
    }

    /// Removes a file and its second sample.
    #[must_use]
    pub fn without_file(mut self, path: &str) -> RecordedMachine {
        self.files.remove(path);
        self.later.remove(path);
        self
    }

    /// Makes a file unreadable.
    #[must_use]
    pub fn with_denied(mut self, path: &str) -> RecordedMachine {
        self.files.insert(path.to_owned(), Entry::Denied);
        self
    }

    /// Sets the space of a file system.
    #[must_use]
    pub fn with_space(mut self, path: &str, space: Space) -> RecordedMachine {
        self.spaces.insert(path.to_owned(), space);
        self
    }

    /// Sets the gaps of a CPU.
    #[must_use]
    pub fn with_gaps(mut self, cpu: usize, gaps: Gaps) -> RecordedMachine {
        self.gaps.insert(cpu, gaps);
        self
    }

    /// Replaces the second sample of a file.
    #[must_use]
    pub fn with_later(mut self, path: &str, text: &str) -> RecordedMachine {
        self.later
            .insert(path.to_owned(), Entry::Text(text.to_owned()));
        self
    }
}

fn error(line: usize, what: &str) -> ParseError {
    ParseError {
        line,
        what: what.to_owned(),
    }
}

impl Machine for RecordedMachine {
    fn read(&self, path: &str) -> io::Result<String> {
        let later = self
            .has_waited
            .get()
            .then(|| self.later.get(path))
            .flatten();
        match later.or_else(|| self.files.get(path)) {
            Some(Entry::Text(text)) => Ok(text.clone()),
            Some(Entry::Denied) => Err(io::ErrorKind::PermissionDenied.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        if let Some(Entry::Denied) = self.files.get(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if let Some(names) = self.lists.get(path) {
            return Ok(names.clone());
        }
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let below = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&prefix));
        let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
        if names.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn space(&self, path: &str) -> io::Result<Space> {
        let holds = |point: &str| {
            path == point
                || path
                    .strip_prefix(point)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let holding = self
            .spaces
            .iter()
            .filter(|(point, _)| holds(point) || *point == "/");
        let deepest = holding.max_by_key(|(point, _)| point.len());
        deepest
            .map(|(_, space)| *space)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn wait(&self, _time: Duration) {
        self.has_waited.set(true);
    }

    fn gaps(&self, cpus: &[usize], _time: Duration) -> Vec<io::Result<Gaps>> {
        let of = |cpu| {
            self.gaps
                .get(cpu)
                .copied()
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        cpus.iter().map(of).collect()
    }
}

/// A machine that notes all that is read from another one.
pub struct Recorder<'a> {
    machine: &'a dyn Machine,
    text: RefCell<BTreeMap<String, String>>,
    has_waited: Cell<bool>,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder of `machine`.
    #[must_use]
    pub fn new(machine: &'a dyn Machine) -> Recorder<'a> {
        Recorder {
            machine,
            text: RefCell::default(),
            has_waited: Cell::new(false),
        }
    }

    /// Returns the text that [`RecordedMachine::parse`] reads. It names no address, but it has the kernel's command line,
    /// mounts, and the names of interfaces and processes.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = "# Recorded by `taran doctor --record`.\n".to_owned();
        for (title, lines) in &*self.text.borrow() {
            text += &format!("== {title}\n");
            for line in lines.lines() {
                let escape = if line.starts_with("== ") || line.starts_with('\\') {
                    "\\"
                } else {
                    ""
                };
                text += &format!("{escape}{line}\n");
            }
        }
        text
    }

    fn note(&self, title: String, text: String) {
        self.text.borrow_mut().insert(title, text);
    }
}

impl Machine for Recorder<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let result = self.machine.read(path);
        match &result {
            Ok(text) if self.has_waited.get() && self.text.borrow().contains_key(path) => {
                if self.text.borrow().get(path) != Some(text) {
                    self.note(format!("{path} after"), text.clone());
                }
            }
            Ok(text) => self.note(path.to_owned(), text.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.note(format!("{path} denied"), String::new());
            }
            Err(_) => {}
        }
        result
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let result = self.machine.list(path);
        match &result {
            Ok(names) => self.note(format!("{path} list"), names.join("\n")),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.note(format!("{path} denied"), String::new());
            }
            Err(_) => {}
        }
        result
    }

    fn space(&self, path: &str) -> io::Result<Space> {
        let result = self.machine.space(path);
        if let Ok(Space { total, free }) = result {
            self.note(format!("space {path}"), format!("{total} {free}"));
        }
        result
    }

    fn wait(&self, time: Duration) {
        self.machine.wait(time);
        self.has_waited.set(true);
    }

    fn gaps(&self, cpus: &[usize], time: Duration) -> Vec<io::Result<Gaps>> {
        let result = self.machine.gaps(cpus, time);
        for (cpu, gaps) in cpus.iter().zip(&result) {
            if let Ok(Gaps {
                longest_ns,
                lost_ns,
                elapsed_ns,
            }) = gaps
            {
                self.note(
                    format!("gaps {cpu}"),
                    format!("{longest_ns} {lost_ns} {elapsed_ns}"),
                );
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# made up\n== /a/b\none\n\\== two\n== /a/c/d denied\n== /a/b after\nthree\n== space /\n9 4\n== gaps 1\n1 2 3\n";

    #[test]
    fn recorded_machine_has_files_directories_space_and_gaps() {
        let machine = RecordedMachine::parse(TEXT).unwrap();
        assert_eq!(machine.read("/a/b").unwrap(), "one\n== two\n");
        assert_eq!(machine.list("/a").unwrap(), ["b", "c"]);
        let kind = |path: &str| machine.read(path).unwrap_err().kind();
        assert_eq!(kind("/a/c/d"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind("/none"), io::ErrorKind::NotFound);
        assert_eq!(machine.space("/x").unwrap(), Space { total: 9, free: 4 });
        assert_eq!(
            machine.gaps(&[1], Duration::ZERO)[0]
                .as_ref()
                .unwrap()
                .lost_ns,
            2
        );
        machine.wait(Duration::ZERO);
        assert_eq!(machine.read("/a/b").unwrap(), "three\n");
    }

    #[test]
    fn recorder_text_parses_to_the_same_answers() {
        let machine = RecordedMachine::parse(TEXT).unwrap();
        let recorder = Recorder::new(&machine);
        let first = recorder.read("/a/b").unwrap();
        let _ = recorder.read("/a/c/d");
        recorder.space("/").unwrap();
        recorder.wait(Duration::ZERO);
        let second = recorder.read("/a/b").unwrap();
        let names = recorder.list("/a").unwrap();
        recorder.gaps(&[1], Duration::ZERO);
        let again = RecordedMachine::parse(&recorder.text()).unwrap();
        assert_eq!(again.read("/a/b").unwrap(), first);
        assert_eq!(again.list("/a").unwrap(), names);
        again.wait(Duration::ZERO);
        assert_eq!(again.read("/a/b").unwrap(), second);
        assert!(again.read("/a/c/d").is_err() && again.gaps(&[1], Duration::ZERO)[0].is_ok());
        assert_eq!(again.space("/").unwrap(), Space { total: 9, free: 4 });
    }

    #[test]
    fn recorded_machine_of_damaged_text_names_the_line() {
        for (text, line) in [
            ("x\n", 1),
            ("== y\n", 1),
            ("\n== space /\n1\n", 2),
            ("== gaps a\n1 2 3\n", 1),
        ] {
            assert_eq!(
                RecordedMachine::parse(text).unwrap_err().line,
                line,
                "{text}"
            );
        }
    }
}
