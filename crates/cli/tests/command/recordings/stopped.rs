// SPDX-License-Identifier: Apache-2.0
//! Verbs on the directory of an archive that does not run.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::files::{Files, SEGMENT, message};
use crate::process::{Directory, Outcome, run, taran};

/// Length of the messages: 63 frames fill a term.
const LENGTH: usize = 1000;

fn recordings(arguments: &[&str]) -> Outcome {
    run(taran(&["recordings"]).args(arguments))
}

/// Runs a verb that has to succeed silently, and returns the JSON documents.
fn json(arguments: &[&str]) -> Vec<Value> {
    let outcome = run(taran(&["recordings"]).args(arguments).arg("--json"));
    outcome.assert_code(0).assert_silent();
    let lines = outcome.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn messages(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|index| message(index, LENGTH)).collect()
}

/// A stopped recording of 150 messages in three segments, and an active one.
fn two(name: &str) -> Files {
    let mut files = Files::new(name);
    files.record(10, &messages(150), true);
    files.record(11, &messages(3), false);
    files
}

#[test]
fn list_and_describe_show_the_catalog() {
    let files = two("list");
    let path = files.path();
    let listed = recordings(&["list", path]);
    listed.assert_code(0).assert_silent();
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{listed:?}");
    assert!(
        lines[0].contains("STOP POSITION") && lines[2].contains(" active "),
        "{listed:?}"
    );
    assert!(
        lines[1].ends_with("aeron:ipc?alias=stream-10"),
        "{listed:?}"
    );

    let all = &json(&["list", path])[0];
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert_eq!(
        (
            all[0]["recording_id"].as_i64(),
            all[1]["stop_position"].as_i64()
        ),
        (Some(0), Some(-1))
    );
    let one = &json(&["list", path, "--stream", "11"])[0];
    assert_eq!(
        (
            one.as_array().unwrap().len(),
            one[0]["recording_id"].as_i64()
        ),
        (1, Some(1))
    );
    assert_eq!(
        recordings(&["list", path, "--channel", "stream-10", "--count"]).stdout,
        "1\n"
    );
    assert_eq!(
        json(&["list", path, "--channel", "nowhere"])[0],
        serde_json::json!([])
    );

    let described = recordings(&["describe", path]);
    described.assert_code(0).assert_silent();
    for expected in [
        "next-recording-id=2",
        "segment_file_length  65536",
        "state                VALID",
    ] {
        assert!(
            described.stdout.contains(expected),
            "no {expected} in {described:?}"
        );
    }
    let second = &json(&["describe", path, "1"])[0];
    assert_eq!(
        (second[0]["state"].as_str(), second[0]["stream_id"].as_i64()),
        (Some("VALID"), Some(11))
    );
    recordings(&["describe", path, "7"])
        .assert_code(1)
        .assert_stderr("unknown recording 7");
}

#[test]
fn dump_shows_frames_from_a_position_on() {
    let files = two("dump");
    let path = files.path();
    let dumped = recordings(&["dump", path, "0", "--frames", "2", "--bytes", "8"]);
    dumped.assert_code(0).assert_silent();
    let lines: Vec<Vec<&str>> = dumped
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines[1..],
        [
            vec!["0", "1032", "c0", "0000000000000000"],
            vec!["1056", "1032", "c0", "0100000000000000"]
        ]
    );

    // The 62 frames of the first term and its padding; then into the second one, from inside a frame.
    let frames = json(&["dump", path, "0", "--position", "65472", "--frames", "3"]);
    let positions: Vec<i64> = frames
        .iter()
        .map(|frame| frame["position"].as_i64().unwrap())
        .collect();
    assert_eq!(positions, [65_472, 65_536, 66_592], "{frames:?}");
    assert_eq!(
        (
            frames[0]["padding"].as_bool(),
            frames[1]["padding"].as_bool()
        ),
        (Some(true), Some(false))
    );
    let frames = json(&["dump", path, "0", "--position", "66000", "--frames", "1"]);
    assert_eq!(frames[0]["position"].as_i64(), Some(65_536));
    // All data frames and two paddings.
    assert_eq!(json(&["dump", path, "0", "--frames", "1000"]).len(), 152);
    // Of the active recording, what is there.
    assert_eq!(json(&["dump", path, "1"]).len(), 3);
    recordings(&["dump", path, "0", "--position", "-32"]).assert_code(2);
    files.damage("0-65536.rec", 1056 + 8);
    let damaged = recordings(&["dump", path, "0", "--frames", "1000"]);
    damaged
        .assert_code(1)
        .assert_stderr("damaged at position 66592");
    assert_eq!(
        damaged.stdout.lines().count(),
        1 + 64,
        "frames before it are shown"
    );
}

#[test]
fn tail_shows_the_last_frames() {
    let files = two("tail");
    let path = files.path();
    let positions = |arguments: &[&str]| -> Vec<i64> {
        let frames = json(&[&["tail", path], arguments].concat());
        frames
            .iter()
            .map(|frame| frame["position"].as_i64().unwrap())
            .collect()
    };
    let last = positions(&["0"]);
    assert_eq!((last.len(), last[9] - last[0]), (10, 9 * 1056));
    // Back into earlier segments.
    assert_eq!(positions(&["0", "-n", "60"]).len(), 60);
    assert_eq!(positions(&["0", "-n", "1000"]).len(), 152);
    assert_eq!(positions(&["1", "-n", "2"]), [1056, 2112]);
    assert_eq!(positions(&["1", "--start", "--frames", "1"]), [0]);
    assert_eq!(positions(&["1", "--position", "1056"]), [1056, 2112]);
    assert!(positions(&["1", "-n", "0"]).is_empty());
    recordings(&["tail", path, "1", "--start", "--position", "0"]).assert_code(2);
    recordings(&["tail", path, "9"])
        .assert_code(1)
        .assert_stderr("unknown recording 9");
}

const SCHEMA: &str = r#"<messageSchema package="shop" id="7" version="0">
<types>
<composite name="messageHeader">
  <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
  <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
</composite>
</types>
<message name="Order" id="1"><field name="price" id="1" type="uint32"/></message>
</messageSchema>
"#;

fn order(price: u32) -> Vec<u8> {
    let mut message = vec![4, 0, 1, 0, 7, 0, 0, 0];
    message.extend(price.to_le_bytes());
    message
}

#[test]
fn schema_decodes_the_messages() {
    let mut files = Files::new("decode");
    let schema = files.directory.file("shop.xml", SCHEMA);
    let schema = schema.to_str().unwrap();
    files.record(1, &[order(17), order(18), order(19)], true);
    let path = files.path();
    for verb in ["dump", "tail"] {
        let shown = recordings(&[verb, path, "0", "--schema", schema]);
        shown.assert_code(0).assert_silent();
        assert_eq!(
            shown.stdout,
            "0: Order (template 1), version 0, 12 bytes\n  price: 17\n\
             64: Order (template 1), version 0, 12 bytes\n  price: 18\n\
             128: Order (template 1), version 0, 12 bytes\n  price: 19\n"
        );
    }
    let decoded = json(&["dump", path, "0", "--schema", schema, "--frames", "2"]);
    assert_eq!(decoded.len(), 2);
    assert_eq!(
        (
            decoded[1]["position"].as_i64(),
            decoded[1]["message"]["fields"]["price"].as_i64()
        ),
        (Some(64), Some(18))
    );

    let mut other = Files::new("decode-other");
    other.record(1, &[order(17), b"nonsense".to_vec(), order(19)], true);
    let shown = recordings(&["dump", other.path(), "0", "--schema", schema]);
    shown.assert_code(1).assert_silent();
    assert!(
        shown.stdout.contains("64: 8 bytes cannot be decoded: ")
            && shown.stdout.contains("price: 19"),
        "{shown:?}"
    );
    let skipped = recordings(&["dump", path, "0", "--schema", schema, "--skip", "13"]);
    skipped.assert_code(1);
    assert!(
        skipped.stdout.contains("shorter than --skip 13"),
        "{skipped:?}"
    );
    recordings(&["dump", path, "0", "--skip", "1"]).assert_code(2);
    recordings(&["dump", path, "0", "--schema", "/nowhere/schema.xml"]).assert_code(1);
}

#[test]
fn verify_finds_damage_and_ends() {
    let files = two("verify");
    let path = files.path();
    let dry = json(&["verify", path, "--dry-run", "--all"]);
    assert_eq!(dry[0][1]["stop_position"].as_i64(), Some(3 * 1056));
    assert_eq!(
        json(&["list", path])[0][1]["stop_position"].as_i64(),
        Some(-1)
    );
    let verified = recordings(&["verify", path, "--all", "--progress"]);
    verified
        .assert_code(0)
        .assert_stderr("verified 2 recordings, ");
    assert!(
        verified
            .stdout
            .contains("recording 0: VALID (152 frames read)"),
        "{verified:?}"
    );
    assert_eq!(
        json(&["list", path])[0][1]["stop_position"].as_i64(),
        Some(3 * 1056)
    );

    files.damage("0-0.rec", 1056 + 16);
    let last = recordings(&["verify", path]);
    last.assert_code(0).assert_silent();
    let all = recordings(&["verify", path, "--all"]);
    all.assert_code(1).assert_silent();
    assert!(all.stdout.contains("recording 0: INVALID"), "{all:?}");
    assert_eq!(json(&["list", path])[0].as_array().unwrap().len(), 1);
    recordings(&["verify", path, "7"])
        .assert_code(1)
        .assert_stderr("unknown recording 7");
    recordings(&["verify", path, "--checksum", "MD5"])
        .assert_code(2)
        .assert_stderr("unknown checksum");
}

#[test]
fn checksum_is_stored_and_verified() {
    let files = two("checksum");
    let path = files.path();
    recordings(&[
        "verify",
        path,
        "0",
        "--all",
        "--checksum",
        "CRC-32C",
        "--dry-run",
    ])
    .assert_code(1);
    let stored = &json(&[
        "checksum",
        path,
        "0",
        "--all",
        "--checksum",
        "io.aeron.archive.checksum.Crc32c",
    ])[0];
    assert_eq!(
        (stored[0]["frames"].as_i64(), stored[0]["segments"].as_i64()),
        (Some(150), Some(3))
    );
    recordings(&["verify", path, "0", "--all", "--checksum", "CRC-32C"]).assert_code(0);
    files.damage("0-65536.rec", 500);
    recordings(&["verify", path, "0", "--all"]).assert_code(0);
    recordings(&["verify", path, "0", "--all", "--checksum", "CRC-32C"]).assert_code(1);
    recordings(&["checksum", path])
        .assert_code(2)
        .assert_stderr("--checksum");
}

#[test]
fn marked_recordings_are_compacted() {
    let files = two("compact");
    let path = files.path();
    recordings(&["mark-invalid", path, "0"])
        .assert_code(0)
        .assert_silent();
    assert_eq!(recordings(&["list", path, "--count"]).stdout, "1\n");
    recordings(&["mark-valid", path, "0"])
        .assert_code(0)
        .assert_silent();
    assert_eq!(recordings(&["list", path, "--count"]).stdout, "2\n");
    recordings(&["mark-invalid", path, "0"]).assert_code(0);
    let compacted = &json(&["compact", path])[0];
    assert_eq!(compacted["removed"], serde_json::json!([0]));
    assert_eq!(compacted["files"].as_array().unwrap().len(), 3);
    assert!(!files.directory.path().join("0-0.rec").exists());
    for verb in ["mark-valid", "mark-invalid"] {
        recordings(&[verb, path, "0"])
            .assert_code(1)
            .assert_stderr("unknown recording 0");
        recordings(&[verb, path]).assert_code(2);
    }
}

#[test]
fn orphans_are_shown_and_deleted_when_asked_for() {
    let files = two("orphans");
    let path = files.path();
    let orphan = files.directory.file("9-0.rec", "left");
    let found = &json(&["orphans", path])[0];
    assert_eq!(
        (found.as_array().unwrap().len(), found[0]["file"].as_str()),
        (1, Some("9-0.rec"))
    );
    assert!(orphan.exists());
    let deleted = recordings(&["orphans", path, "--delete"]);
    deleted.assert_code(0).assert_silent();
    assert!(
        deleted.stdout.contains("9-0.rec") && deleted.stdout.contains("(deleted)"),
        "{deleted:?}"
    );
    assert!(!orphan.exists());
    assert_eq!(recordings(&["orphans", path]).stdout, "0 files\n");
}

#[test]
fn migrate_tells_the_version_and_refuses_older_ones() {
    let files = two("migrate");
    let path = files.path();
    let current = recordings(&["migrate", path]);
    current.assert_code(0).assert_silent();
    assert_eq!(
        current.stdout,
        "nothing to migrate: the files have version 3.1.0\n"
    );
    let shown = &json(&["migrate", path])[0];
    assert_eq!(
        (
            shown["version"].as_str(),
            shown["needs_migration"].as_bool()
        ),
        (Some("3.1.0"), Some(false))
    );
    let catalog = files.directory.path().join("archive.catalog");
    let mut bytes = fs::read(&catalog).unwrap();
    bytes[..4].copy_from_slice(&(2_i32 << 16).to_le_bytes());
    fs::write(&catalog, &bytes).unwrap();
    recordings(&["migrate", path])
        .assert_code(1)
        .assert_stderr("files of version 2.0.0")
        .assert_stderr("ArchiveTool migrate");
    assert_eq!(fs::read(&catalog).unwrap(), bytes);
    bytes[..4].copy_from_slice(&(4_i32 << 16).to_le_bytes());
    fs::write(&catalog, &bytes).unwrap();
    recordings(&["migrate", path])
        .assert_code(1)
        .assert_stderr("version is 4.0.0");
    fs::write(&catalog, b"no").unwrap();
    recordings(&["migrate", path])
        .assert_code(1)
        .assert_stderr("no catalog");
}

#[test]
fn purge_deletes_with_consent_only() {
    let files = two("purge");
    let path = files.path();
    let refused = recordings(&["purge", path, "0"]);
    refused
        .assert_code(2)
        .assert_stderr("recording 0 (3 files, 196608 bytes)")
        .assert_stderr("--yes");
    recordings(&["purge", path, "0", "--before", "100", "--yes"])
        .assert_code(1)
        .assert_stderr("65536, 131072");
    recordings(&["purge", path, "0", "--before", "65536"])
        .assert_code(2)
        .assert_stderr("before position 65536 (1 files");
    assert!(files.directory.path().join("0-0.rec").exists());
    let purged = recordings(&["purge", path, "0", "--before", "65536", "--yes"]);
    purged.assert_code(0).assert_silent();
    assert_eq!(
        purged.stdout,
        "recording 0 now starts at position 65536; 1 segment files deleted\n"
    );
    assert!(!files.directory.path().join("0-0.rec").exists());
    recordings(&["verify", path, "0", "--all"]).assert_code(0);
    let purged = &json(&["purge", path, "0", "--yes"])[0];
    assert_eq!(
        (purged["segment_files"].as_i64(), purged["bytes"].as_i64()),
        (Some(2), Some(2 * SEGMENT))
    );
    recordings(&["purge", path, "7", "--yes"])
        .assert_code(1)
        .assert_stderr("unknown recording 7");
    assert_eq!(recordings(&["list", path, "--count"]).stdout, "1\n");
}

#[test]
fn export_and_import_carry_a_recording_to_another_archive() {
    let files = two("export");
    let path = files.path();
    let other = Files::new("import");
    let file = other.directory.path().join("recording");
    let file = file.to_str().unwrap();
    let exported = recordings(&["export", path, "0", file, "--progress"]);
    exported.assert_code(0).assert_stderr("MiB");
    assert_eq!(
        exported.stdout,
        "exported recording 0 from position 0 to 158528, 152 frames\n"
    );
    recordings(&["export", path, "0", file])
        .assert_code(1)
        .assert_stderr("cannot create");
    let imported = &json(&["import", other.path(), file])[0];
    assert_eq!(
        (
            imported["recording_id"].as_i64(),
            imported["source_recording_id"].as_i64(),
            imported["frames"].as_i64()
        ),
        (Some(0), Some(0), Some(152))
    );
    recordings(&["verify", other.path(), "--all"]).assert_code(0);
    for name in ["0-0.rec", "0-65536.rec", "0-131072.rec"] {
        let copy = fs::read(other.directory.path().join(name)).unwrap();
        assert_eq!(
            copy,
            fs::read(files.directory.path().join(name)).unwrap(),
            "{name}"
        );
    }

    // Through pipes, the active one; and a part of the first one.
    for (arguments, end) in [
        (&["1"][..], 3 * 1056),
        (&["0", "--from", "65600", "--until", "70000"], 70_816),
    ] {
        let export = run(taran(&["recordings", "export", path])
            .args([arguments[0], "-"])
            .args(&arguments[1..])
            .stdout(Stdio::piped()));
        // The bytes are no text.
        assert_eq!(export.code, Some(0), "{}", export.stderr);
        export.assert_stderr(&format!("to {end}, "));
    }
    let piped = std::process::Command::new("sh")
        .arg("-c")
        .arg("\"$0\" recordings export \"$1\" 0 - --from 65600 --until 70000 | \"$0\" recordings import \"$2\" -")
        .args([env!("CARGO_BIN_EXE_taran"), path, other.path()])
        .output()
        .unwrap();
    assert!(piped.status.success(), "{piped:?}");
    let copy = &json(&["describe", other.path(), "1"])[0];
    assert_eq!(
        (
            copy[0]["start_position"].as_i64(),
            copy[0]["stop_position"].as_i64()
        ),
        (Some(65_536), Some(70_816))
    );
    recordings(&["verify", other.path(), "--all"]).assert_code(0);
}

#[test]
fn bad_exports_are_not_imported() {
    let files = two("export-bad");
    let path = files.path();
    let file = files.directory.path().join("recording");
    let name = file.to_str().unwrap();
    recordings(&["export", path, "0", name]).assert_code(0);
    let good = fs::read(&file).unwrap();
    let mut bad = good.clone();
    bad[100_000] ^= 1;
    for (bytes, expected) in [
        (&good[..good.len() - 1], "the export is cut off"),
        (&bad[..], "the export is damaged at byte"),
        (&b"no export"[..], "does not begin with TARANREC"),
        (&[][..], "does not begin with TARANREC"),
    ] {
        fs::write(&file, bytes).unwrap();
        recordings(&["import", path, name])
            .assert_code(1)
            .assert_stderr(expected);
    }
    assert_eq!(recordings(&["list", path, "--count"]).stdout, "2\n");
    assert_eq!(recordings(&["orphans", path]).stdout, "0 files\n");
    recordings(&["import", path, "/nowhere/file"])
        .assert_code(1)
        .assert_stderr("cannot read /nowhere/file");
    recordings(&["import", path, "/tmp"])
        .assert_code(1)
        .assert_stderr("cannot read /tmp");
    recordings(&["import", "/nowhere", name])
        .assert_code(1)
        .assert_stderr("there is no archive in /nowhere");
    recordings(&["export", path, "0", "x", "--from", "9", "--until", "9"]).assert_code(2);
    recordings(&["export", path, "0", "x", "--from", "999999"])
        .assert_code(2)
        .assert_stderr("positions 0 to 158528");
    recordings(&["export", path, "7", "x"])
        .assert_code(1)
        .assert_stderr("unknown recording 7");
    // A damaged recording leaves no file.
    files.damage("0-65536.rec", 8);
    fs::remove_file(&file).unwrap();
    recordings(&["export", path, "0", name])
        .assert_code(1)
        .assert_stderr("damaged at position 65536");
    assert!(!file.exists());
}

#[test]
fn closed_standard_output_and_input_are_no_panic() {
    let files = two("closed");
    let path = files.path();
    let mut child = taran(&["recordings", "import", path, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"TARANREC").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cut off"));
    for verb in [
        &["dump", path, "0", "--frames", "1000"][..],
        &["export", path, "0", "-"],
    ] {
        let mut child = taran(&["recordings"])
            .args(verb)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_ne!(output.status.code(), Some(101), "{output:?}");
    }
}

#[test]
fn wrong_usage_is_told_with_exit_code_2() {
    let channel = "aeron:udp?endpoint=127.0.0.1:8010";
    for arguments in [
        &[][..],
        &["list"],
        &["unknown", "/tmp"],
        &["verify", channel],
        &["checksum", channel, "--checksum", "CRC-32"],
        &["compact", channel],
        &["orphans", channel],
        &["mark", channel],
        &["errors", channel],
        &["migrate", channel],
        &["import", channel, "file"],
        &["mark-valid", channel, "0"],
        &["list", "aeron:udp?endpoint=nonsense"],
        &["list", "aeron:tcp?endpoint=127.0.0.1:1"],
        &["list", channel, "--response", "nonsense"],
        &["list", channel, "--timeout", "never"],
        &["stop", channel],
        &["stop", channel, "1", "--subscription", "2"],
        &["stop", channel, "--channel", "aeron:ipc"],
        &["record", channel, "aeron:ipc"],
        &["replay", channel, "0", "aeron:ipc", "stream"],
        &[
            "replay",
            channel,
            "0",
            "aeron:ipc",
            "1",
            "--length",
            "1",
            "--until-now",
        ],
        &["replicate", channel, channel],
        &["stop-replay", channel],
        &["stop-replication", channel],
        &["purge", channel],
    ] {
        let outcome = recordings(arguments);
        outcome.assert_code(2);
        assert!(
            outcome.stdout.is_empty() && !outcome.stderr.is_empty(),
            "{arguments:?}: {outcome:?}"
        );
    }
}

#[test]
fn directories_without_an_archive_are_told_as_such() {
    let directory = Directory::new("no-archive");
    fs::create_dir_all(directory.path()).unwrap();
    let path = directory.path().to_str().unwrap();
    for verb in [
        "list", "describe", "verify", "compact", "orphans", "migrate", "mark", "errors",
    ] {
        for place in [path, "/nowhere"] {
            recordings(&[verb, place]).assert_code(1);
        }
    }
    let files = two("not-running");
    for arguments in [
        &["record", files.path(), "aeron:ipc", "1"][..],
        &["stop", files.path(), "0"],
        &["replay", files.path(), "0", "aeron:ipc", "1"],
        &["stop-replay", files.path(), "0"],
        &["stop-replication", files.path(), "0"],
        &["replicate", files.path(), "aeron:ipc", "0"],
    ] {
        recordings(arguments).assert_code(1);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
