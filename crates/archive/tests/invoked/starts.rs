// SPDX-License-Identifier: Apache-2.0
//! Starts over the files of an archive before: what is kept, and what a refused start leaves as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use taran_archive::files::{CATALOG_FILE, MARK_FILE};
use taran_archive::{Archive, ArchiveConfig};
use taran_protocol::option::{OptionSet, Source};

use crate::fixture::Invoked;

/// Offset of the activity timestamp in the mark file (`docs/spec/archive.md` §3.7).
const ACTIVITY: usize = 16;
/// Bytes that tell an owner with a lock, which official archives leave zero.
const OWNER: std::ops::Range<usize> = 120..136;

/// The directory of an archive, which outlives it.
struct Files(PathBuf);

impl Files {
    /// Starts an archive that records a message, and ends it.
    fn of_an_archive(name: &str) -> Self {
        let directory = format!("taran-{}-starts-{name}", std::process::id());
        let files = Self(std::env::temp_dir().join(directory));
        let mut archive = files.launch(&[]).expect("the archive starts");
        let (mut publication, _) = archive.record(1);
        archive.run_until(|_| publication.offer(b"recorded").ok());
        drop(publication);
        drop(archive);
        files
    }

    fn launch(&self, properties: &[(&str, &str)]) -> Result<Invoked, String> {
        let directory = ("aeron.archive.dir", self.0.to_str().expect("ASCII"));
        let properties: Vec<_> = [&[directory], properties].concat();
        Invoked::launch("starts", &properties)
    }

    /// Returns names and contents.
    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.expect("it can be read");
            let name = entry.file_name().into_string().expect("ASCII");
            (name, fs::read(entry.path()).expect("it can be read"))
        };
        entries.map(read).collect()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.0.join(name);
        let mut bytes = fs::read(&path).expect("there is a file");
        change(&mut bytes);
        fs::write(&path, bytes).expect("it is ours");
    }

    /// Gives the mark file the heartbeat of an official archive.
    fn set_official_heartbeat(&self, age_ms: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.expect("it is after 1970").as_millis() as i64;
        self.change(MARK_FILE, |bytes| {
            bytes[OWNER].fill(0);
            let activity = (now_ms - age_ms).to_le_bytes();
            bytes[ACTIVITY..ACTIVITY + 8].copy_from_slice(&activity);
        });
    }

    /// Checks that a start fails with this text, and changes nothing.
    fn assert_refused(&self, properties: &[(&str, &str)], text: &str) {
        let before = self.contents();
        let error = self.launch(properties).err().expect("it is refused");
        assert!(error.contains(text), "{error}");
        let after = self.contents();
        let names =
            |contents: &BTreeMap<String, Vec<u8>>| contents.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after));
        for (name, bytes) in before {
            assert!(after[&name] == bytes, "{name} was changed");
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn errors_of_the_archive_before_are_in_a_file_after_the_next_start() {
    let files = Files::of_an_archive("errors");
    // Named in the error log of each archive that starts.
    fs::write(files.0.join("copy-of-0.rec"), b"").expect("there is room");
    drop(files.launch(&[]).expect("the archive starts"));
    let saved = || {
        let contents = files.contents();
        let saved = contents
            .into_iter()
            .filter(|(name, _)| name.starts_with("archive-2") && name.ends_with("-error.log"));
        saved
            .map(|(_, bytes)| String::from_utf8(bytes).expect("text"))
            .collect::<Vec<_>>()
    };
    assert_eq!(saved(), Vec::<String>::new());
    fs::remove_file(files.0.join("copy-of-0.rec")).expect("it is ours");
    drop(files.launch(&[]).expect("the archive starts"));
    let texts = saved();
    assert!(
        matches!(&texts[..], [text] if text.contains("copy-of-0.rec")),
        "{texts:?}"
    );
}

#[test]
fn start_with_a_catalog_that_cannot_be_used_changes_nothing() {
    let files = Files::of_an_archive("catalog");
    fs::write(files.0.join("copy-of-0.rec"), b"").expect("there is room");
    drop(files.launch(&[]).expect("the archive starts"));
    let version = |version: i32| {
        files.change(CATALOG_FILE, |bytes| {
            bytes[..4].copy_from_slice(&version.to_le_bytes());
        });
    };
    version(4 << 16);
    files.assert_refused(&[], "its version is 4.0.0");
    version(3 << 16 | 1 << 8);
    // The alignment of entries.
    files.change(CATALOG_FILE, |bytes| bytes[16] = 33);
    files.assert_refused(&[], "its header is damaged");
    files.change(CATALOG_FILE, |bytes| bytes[16] = 64);
    drop(files.launch(&[]).expect("the archive starts"));
}

#[test]
fn deletion_at_the_start_is_refused_while_an_official_archive_is_active() {
    let files = Files::of_an_archive("official");
    let delete = [("aeron.archive.dir.delete.on.start", "true")];
    // Of the future, so that the test may take any time.
    files.set_official_heartbeat(-3_600_000);
    files.assert_refused(&delete, "shows an active archive");
    assert!(files.contents().contains_key("0-0.rec"));
    files.set_official_heartbeat(60_000);
    drop(files.launch(&delete).expect("the archive starts"));
    assert!(!files.contents().contains_key("0-0.rec"));
}

#[test]
fn deletion_at_the_start_clears_a_directory_whose_mark_file_is_damaged() {
    let files = Files::of_an_archive("damaged-mark");
    files.change(MARK_FILE, |bytes| bytes.truncate(100));
    let delete = [("aeron.archive.dir.delete.on.start", "true")];
    drop(files.launch(&delete).expect("the archive starts"));
    assert!(!files.contents().contains_key("0-0.rec"));
}

#[test]
fn start_without_a_driver_deletes_nothing() {
    let files = Files::of_an_archive("driver");
    let before = files.contents();
    let mut options = OptionSet::archive();
    let missing = files.0.join("no-driver");
    let properties = [
        ("aeron.dir", missing.to_str().expect("ASCII")),
        ("aeron.archive.dir", files.0.to_str().expect("ASCII")),
        ("aeron.archive.control.channel.enabled", "false"),
        (
            "aeron.archive.replication.channel",
            "aeron:udp?endpoint=127.0.0.1:0",
        ),
        ("aeron.archive.dir.delete.on.start", "true"),
    ];
    let applied = options.apply(&Source::CommandLine, properties);
    applied.expect("the options are valid");
    let mut config = ArchiveConfig::new(&options).expect("the options are valid");
    config.aeron_dir = Some(missing);
    let refused = Archive::builder(config).launch();
    assert!(refused.is_err(), "there is no driver");
    assert!(files.contents() == before, "files were changed");
}
