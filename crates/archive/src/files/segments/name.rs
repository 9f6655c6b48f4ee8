// SPDX-License-Identifier: Apache-2.0
//! Names of segment files (`docs/spec/archive.md` §3.1).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError, FileKind};

/// Suffix of segment files.
const SUFFIX: &str = ".rec";
/// Suffix that archives of old versions gave segment files before they deleted them.
const DELETED_SUFFIX: &str = ".del";

/// Suffix of a segment file that is reserved and not in use yet, behind [`SUFFIX`].
const RESERVED_SUFFIX: &str = ".next";

/// A segment file: recording and base position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    recording_id: i64,
    base: i64,
}

/// An entry of an archive's directory whose name is that of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFileName {
    /// A segment file.
    Segment(SegmentName),
    /// A segment file that was to be deleted, with the recording id.
    Deleted {
        /// The recording.
        recording_id: i64,
    },
    /// A name with the suffix of segment files, and other contents. No archive makes such names.
    Foreign,
}

impl SegmentName {
    /// Creates a name. Returns `None` if a value is negative.
    #[must_use]
    pub fn new(recording_id: i64, base: i64) -> Option<Self> {
        (recording_id >= 0 && base >= 0).then_some(Self { recording_id, base })
    }

    /// Returns the id of the recording.
    #[must_use]
    pub fn recording_id(self) -> i64 {
        self.recording_id
    }

    /// Returns the position of the first byte of the file.
    #[must_use]
    pub fn base(self) -> i64 {
        self.base
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{}-{}{SUFFIX}", self.recording_id, self.base)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.file_name())
    }

    /// Returns the path of the file before it is in use: a name that Aeron ignores, and recovery removes.
    pub(crate) fn reserved_path(self, directory: &Path) -> PathBuf {
        directory.join(format!("{}{RESERVED_SUFFIX}", self.file_name()))
    }
}

impl SegmentFileName {
    /// Parses the name of a file. Returns `None` if it is not that of a segment.
    #[must_use]
    pub fn parse(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        let (stem, is_deleted) = match name.strip_suffix(DELETED_SUFFIX) {
            Some(stem) => (stem.strip_suffix(SUFFIX).unwrap_or(stem), true),
            None => (name.strip_suffix(SUFFIX)?, false),
        };
        let parsed = stem
            .split_once('-')
            .and_then(|(id, base)| Some((decimal(id)?, decimal(base)?)));
        Some(match parsed {
            Some((recording_id, _)) if is_deleted => Self::Deleted { recording_id },
            Some((recording_id, base)) => Self::Segment(SegmentName { recording_id, base }),
            None if is_deleted => return None,
            None => Self::Foreign,
        })
    }
}

/// Parses a number as archives print it: no sign, no leading zero.
fn decimal(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then_some(number)
}

/// The names of segment files in an archive's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentDirectory {
    /// Segment files by recording, then base position.
    pub segments: Vec<SegmentName>,
    /// Files that were to be deleted, with their recordings.
    pub deleted: Vec<(i64, String)>,
    /// Names of segment files that were reserved and never used.
    pub reserved: Vec<String>,
    /// Names with the suffix of segment files that no archive makes.
    pub foreign: Vec<String>,
}

impl SegmentDirectory {
    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed.
    pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Self, DiskError> {
        let mut found = Self::default();
        for entry in disk.list(directory)? {
            if entry.kind == FileKind::Directory {
                continue;
            }
            let name = || entry.name.to_string_lossy().into_owned();
            match SegmentFileName::parse(&entry.name) {
                Some(SegmentFileName::Segment(segment)) => found.segments.push(segment),
                Some(SegmentFileName::Deleted { recording_id }) => {
                    found.deleted.push((recording_id, name()));
                }
                Some(SegmentFileName::Foreign) => found.foreign.push(name()),
                None if name().ends_with(&format!("{SUFFIX}{RESERVED_SUFFIX}")) => {
                    found.reserved.push(name());
                }
                None => (),
            }
        }
        found.segments.sort_unstable();
        Ok(found)
    }

    /// Returns the segment files of a recording, ascending.
    #[must_use]
    pub fn of(&self, recording_id: i64) -> &[SegmentName] {
        let first = self
            .segments
            .partition_point(|name| name.recording_id < recording_id);
        let rest = &self.segments[first..];
        let count = rest.partition_point(|name| name.recording_id == recording_id);
        &rest[..count]
    }

    /// Returns an id that is higher than those of all files.
    #[must_use]
    pub fn next_recording_id(&self) -> i64 {
        let deleted = self.deleted.iter().map(|(id, _)| *id);
        let ids = self
            .segments
            .iter()
            .map(|name| name.recording_id)
            .chain(deleted);
        ids.max().map_or(0, |id| id.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<SegmentFileName> {
        SegmentFileName::parse(OsStr::new(name))
    }

    #[test]
    fn parse_of_a_file_name_is_the_segment() {
        let name = SegmentName::new(7, 999_948_288).unwrap();
        assert_eq!("7-999948288.rec", name.file_name());
        assert_eq!(
            Some(SegmentFileName::Segment(name)),
            parse("7-999948288.rec")
        );
        let largest = SegmentName::new(i64::MAX, i64::MAX).unwrap();
        assert_eq!(
            Some(SegmentFileName::Segment(largest)),
            parse(&largest.file_name())
        );
        assert_eq!(None, SegmentName::new(-1, 0));
        assert_eq!(None, SegmentName::new(0, -1));
    }

    #[test]
    fn parse_of_other_names_tells_them_apart() {
        for name in [
            "archive.catalog",
            "0-0",
            "0-0.rec.tail-32",
            "",
            "notes.txt",
            "x.del",
        ] {
            assert_eq!(None, parse(name), "{name}");
        }
        for name in [
            "0.rec",
            "a-0.rec",
            "0-a.rec",
            "0--1.rec",
            "-1-0.rec",
            "00-0.rec",
            "0-+1.rec",
            ".rec",
            "0-99999999999999999999.rec",
        ] {
            assert_eq!(Some(SegmentFileName::Foreign), parse(name), "{name}");
        }
        assert_eq!(
            Some(SegmentFileName::Deleted { recording_id: 3 }),
            parse("3-64.rec.del")
        );
        assert_eq!(
            Some(SegmentFileName::Deleted { recording_id: 3 }),
            parse("3-64.del")
        );
    }
}
