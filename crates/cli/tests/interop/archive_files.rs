// SPDX-License-Identifier: Apache-2.0
//! Directories of archives: written by the official archive and used by ours, and the other way round.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use taran_archive::files::{
    CatalogFile, CatalogOptions, Checksum, EntryState, MarkFileInfo, NewRecording, RecordingLayout,
    SegmentCreator, SegmentName, SyncLevel,
};
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType};
use taran_protocol::position::align32;
use taran_storage::{Disk, OpenOptions, OsDisk};

use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

const TERM: i32 = 64 * 1024;

/// Options for the virtual machine: Agrona's checksums call private methods of the library.
fn options() -> [String; 2] {
    ["--add-opens", "java.base/java.util.zip=ALL-UNNAMED"].map(str::to_owned)
}

/// Directories of a test, removed at its end.
struct Directories {
    aeron: PathBuf,
    archive: PathBuf,
}

impl Directories {
    fn new(name: &str) -> Self {
        let aeron = java::directory(name);
        let archive = java::directory(&format!("{name}-archive"));
        fs::create_dir_all(&archive).unwrap();
        Self { aeron, archive }
    }

    fn arguments(&self) -> Vec<String> {
        vec![
            argument("dir", self.aeron.display()),
            argument("archive-dir", self.archive.display()),
        ]
    }

    /// Runs `taran recordings`, and returns its JSON.
    fn taran(&self, verb: &str, more: &[&str]) -> serde_json::Value {
        let output = Command::new(env!("CARGO_BIN_EXE_taran"))
            .args(["recordings", verb])
            .arg(&self.archive)
            .arg("--json")
            .args(more)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "taran recordings {verb}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap_or(serde_json::Value::Null)
    }

    /// Waits until the heartbeat in the mark file is too old to count: an archive that was killed did not remove it.
    fn age_mark_file(&self) {
        let path = self.archive.join("archive-mark.dat");
        let file = fs::File::options().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &1_i64.to_le_bytes(), 16).unwrap();
    }

    /// Verifies the directory with the official tool, and replays all recordings with the official archive. Returns id, stop
    /// position and payload bytes of each.
    fn official_check(&self, checksum: &str) -> Vec<(i64, i64, u64)> {
        let mut arguments = self.arguments();
        arguments.push(argument("checksum", checksum));
        let said = java::start_with("archive-check", &options(), &arguments).finish();
        let verified = said.iter().find(|line| line.starts_with("VERIFIED"));
        assert!(
            verified.is_some_and(|line| line.contains("ok=true")),
            "{said:#?}"
        );
        let recordings = said.iter().filter(|line| line.starts_with("RECORDING id="));
        recordings
            .map(|line| {
                let id = Program::value(line, "id");
                (
                    id,
                    Program::value(line, "stop"),
                    Program::value(line, "payload"),
                )
            })
            .collect()
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        // What remains is found by the next look into the directory of temporary files.
        let _ = fs::remove_dir_all(&self.aeron);
        let _ = fs::remove_dir_all(&self.archive);
    }
}

#[test]
fn directory_of_a_killed_official_archive_is_recovered_by_ours_and_accepted_by_the_official_tool() {
    require_java!();
    for (checksum, algorithm) in [("", None), ("org.agrona.checksum.Crc32c", Some("CRC-32C"))] {
        let directories = Directories::new("official-files");
        let mut arguments = directories.arguments();
        arguments.push(argument("count", 700));
        arguments.push(argument("checksum", checksum));
        let mut official = java::start_with("archive-record", &options(), &arguments);
        let recorded = official.expect("RECORDED");
        let (first, second): (i64, i64) = (
            Program::value(&recorded, "first"),
            Program::value(&recorded, "second"),
        );

        // The official archive takes no lock; its heartbeat keeps tools away.
        let output = Command::new(env!("CARGO_BIN_EXE_taran"))
            .args(["recordings", "verify"])
            .arg(&directories.archive)
            .output()
            .unwrap();
        let refusal = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && refusal.contains("shows an active archive"),
            "{refusal}"
        );
        let (_, info, _) = MarkFileInfo::read(&OsDisk, &directories.archive).unwrap();
        assert_eq!(
            (Some(i64::from(official.id())), "aeron:ipc?term-length=64k"),
            (Some(info.pid), info.local_control_channel.as_str())
        );
        official.kill();
        directories.age_mark_file();

        let list = directories.taran("list", &[]);
        let stops: Vec<i64> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["stop_position"].as_i64().unwrap())
            .collect();
        assert_eq!([first, -1], *stops);
        assert_eq!(
            "aeron:ipc?term-length=64k|alias=stream-1",
            list[1]["original_channel"]
        );
        let mut options = vec!["--all"];
        if let Some(algorithm) = algorithm {
            options.extend(["--checksum", algorithm]);
        }
        let verified = directories.taran("verify", &options);
        for recording in verified.as_array().unwrap() {
            assert_eq!(
                ("VALID", 0),
                (
                    recording["after"].as_str().unwrap(),
                    recording["problems"].as_array().unwrap().len()
                ),
                "{verified}"
            );
        }
        assert_eq!(second, verified[1]["stop_position"]);
        let payload: u64 = (0..700).map(|n| 100 + n % 900).sum();
        assert_eq!(
            [(0, first, payload), (1, second, payload)],
            *directories.official_check(checksum)
        );

        directories.taran("mark-invalid", &["0"]);
        let compacted = directories.taran("compact", &[]);
        assert_eq!(serde_json::json!([0]), compacted["removed"]);
        assert_eq!(
            [(1, second, payload)],
            *directories.official_check(checksum)
        );
    }
}

/// Writes the frames of a recording: messages of `length` bytes, padding at the ends of terms.
fn write_recording(
    directory: &Path,
    layout: RecordingLayout,
    id: i64,
    stream: i32,
    stop: i64,
    checksum: Option<Checksum>,
) -> u64 {
    let creator = SegmentCreator {
        disk: &OsDisk,
        directory,
        sync: SyncLevel::None,
    };
    let (mut position, mut payload, mut open) = (layout.start_position(), 0, None);
    while position < stop {
        let base = layout.base_of(position);
        if !matches!(&open, Some((at, _)) if *at == base) {
            let name = SegmentName::new(id, base).unwrap();
            open = Some((base, creator.create(name, layout.segment_length()).unwrap()));
        }
        let terms = layout.terms();
        let left = (terms.term_length() - terms.term_offset(position))
            .min(i32::try_from(stop - position).unwrap_or(i32::MAX));
        let (length, frame_type) = match left {
            1056.. => (1024 + 17, FrameType::DATA),
            _ if position + i64::from(left) < stop => (left, FrameType::PAD),
            _ => (left, FrameType::DATA),
        };
        let header = DataHeader {
            header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, frame_type),
            term_offset: terms.term_offset(position).into(),
            session_id: 42.into(),
            stream_id: stream.into(),
            term_id: terms.term_id(position).into(),
            reserved_value: 0.into(),
        };
        let mut bytes = zerocopy::IntoBytes::as_bytes(&header).to_vec();
        if frame_type == FrameType::DATA {
            payload += u64::from(length.unsigned_abs() - 32);
            bytes.resize(length.unsigned_abs() as usize, 9);
            bytes.resize(align32(length).unsigned_abs() as usize, 0);
            if let Some(checksum) = checksum {
                checksum.stamp_frame(&mut bytes);
            }
        }
        if let Some((_, file)) = &open {
            file.write_at(&bytes, layout.offset_of(position)).unwrap();
        }
        position += i64::from(align32(length));
    }
    assert_eq!(stop, position);
    payload
}

#[test]
fn directory_written_by_ours_is_verified_and_replayed_by_the_official_archive() {
    require_java!();
    let directories = Directories::new("our-files");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let options = CatalogOptions {
        checksum: Some(Checksum::Crc32),
        capacity: 1024,
        ..CatalogOptions::default()
    };
    let (mut file, mut catalog, _) =
        CatalogFile::open(&disk, &directories.archive, options).unwrap();
    let segment = i64::from(2 * TERM);
    let recordings = [
        (0, 96 * 100),
        (1_000_000_032, 1_000_000_032 + 3 * segment),
        (0, 0),
        (0, 64 * 1024),
        (segment, 2 * segment),
    ];
    let mut expected = Vec::new();
    for (index, (start, stop)) in recordings.into_iter().enumerate() {
        let stream = 5 + i32::try_from(index).unwrap();
        let channel = format!("aeron:ipc?alias={}", "long".repeat(index * 20));
        let new = NewRecording {
            start_timestamp: 1_700_000_000_000,
            start_position: start,
            initial_term_id: 7,
            segment_file_length: 2 * TERM,
            term_buffer_length: TERM,
            mtu_length: 1408,
            session_id: 42,
            stream_id: stream,
            stripped_channel: "aeron:ipc",
            original_channel: &channel,
            source_identity: "aeron:ipc",
        };
        let (id, change) = catalog.add(&new).unwrap();
        file.apply(&change).unwrap();
        let layout = RecordingLayout::new(start, 7, TERM, 2 * TERM).unwrap();
        let payload = write_recording(
            &directories.archive,
            layout,
            id,
            stream,
            stop,
            options.checksum,
        );
        file.apply(&catalog.stop(id, stop, 1_700_000_000_001).unwrap())
            .unwrap();
        expected.push((id, stop, payload));
    }
    // Purged recordings and a longer channel before them.
    file.apply(&catalog.set_state(4, EntryState::Deleted).unwrap())
        .unwrap();
    fs::remove_file(directories.archive.join(format!("4-{segment}.rec"))).unwrap();
    file.apply(
        &catalog
            .set_channels(
                3,
                "aeron:ipc",
                &format!("aeron:ipc?alias={}", "x".repeat(900)),
            )
            .unwrap(),
    )
    .unwrap();
    expected.pop();
    file.close().unwrap();
    drop(
        disk.open(
            &directories.archive.join("archive.catalog"),
            OpenOptions::read(),
        )
        .unwrap(),
    );
    assert_eq!(expected, directories.official_check("CRC-32"));
}
