// SPDX-License-Identifier: Apache-2.0
//! Verbs on a running archive, found by its directory or reached by its channel.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::files::{SEGMENT, end_of};
use super::running::{Archive, CHANNEL, offer, take_messages};
use crate::process::signal;
use crate::traffic::await_true;

const LENGTH: usize = 1000;

fn json(archive: &Archive, verb: &str, place: &str, more: &[&str]) -> Value {
    let more: Vec<&str> = more.iter().copied().chain(["--json"]).collect();
    let outcome = archive.recordings(verb, place, &more);
    outcome.assert_code(0).assert_silent();
    serde_json::from_str(&outcome.stdout).expect("one JSON document")
}

#[test]
fn recordings_are_listed_dumped_and_exported_through_a_session_as_from_files() {
    let mut archive = Archive::start("live-read");
    let (id, end, _publication) = archive.record(7, 150, LENGTH, true);
    assert_eq!(end, end_of(150, LENGTH));
    let (active, active_end, _active) = archive.record(8, 3, LENGTH, false);
    let places = [
        archive.path().to_owned(),
        archive.control.clone(),
        "aeron:ipc".to_owned(),
    ];
    let mut dumps = Vec::new();
    for place in &places {
        let listed = json(&archive, "list", place, &[]);
        assert_eq!(listed.as_array().unwrap().len(), 2, "{place}: {listed}");
        assert_eq!(
            (
                listed[0]["stop_position"].as_i64(),
                listed[1]["stop_position"].as_i64()
            ),
            (Some(end), Some(-1))
        );
        assert_eq!(
            listed[0]["original_channel"]
                .as_str()
                .unwrap()
                .split('|')
                .next(),
            Some(CHANNEL)
        );
        assert_eq!(
            archive
                .recordings("list", place, &["--count", "--stream", "8"])
                .stdout,
            "1\n"
        );
        let described = archive.recordings("describe", place, &[&id.to_string()]);
        described.assert_code(0).assert_silent();
        assert!(
            described
                .stdout
                .contains(&format!("stop_position        {end}")),
            "{described:?}"
        );
        archive
            .recordings("describe", place, &["77"])
            .assert_code(1)
            .assert_stderr("unknown recording 77");
        let dump = archive.recordings(
            "dump",
            place,
            &["0", "--frames", "1000", "--position", "64416"],
        );
        dump.assert_code(0).assert_silent();
        dumps.push(dump.stdout);
        let dump = archive.recordings("dump", place, &[&active.to_string()]);
        dump.assert_code(0).assert_silent();
        assert_eq!(dump.stdout.lines().count(), 1 + 3, "{place}");
        archive
            .recordings("dump", place, &["77"])
            .assert_code(1)
            .assert_stderr("unknown recording 77");
    }
    assert!(dumps[0].lines().count() > 88, "{}", dumps[0]);
    // A replay passes padding over.
    let data = |dump: &str| -> Vec<String> {
        dump.lines()
            .filter(|line| !line.contains("(padding)"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(data(&dumps[0]), data(&dumps[1]));
    assert_eq!(data(&dumps[0]), data(&dumps[2]));

    let file = |name: &str| archive.aeron.path().join(name);
    for (index, place) in places.iter().enumerate() {
        for (id, end) in [(id, end), (active, active_end)] {
            let name = file(&format!("{index}-{id}"));
            let exported =
                archive.recordings("export", place, &[&id.to_string(), name.to_str().unwrap()]);
            exported.assert_code(0).assert_silent();
            assert!(
                exported
                    .stdout
                    .contains(&format!("from position 0 to {end}, ")),
                "{exported:?}"
            );
        }
    }
    let bytes = |index: usize, id: i64| {
        let bytes = fs::read(file(&format!("{index}-{id}"))).unwrap();
        // Without the description: a session does not tell who has extended the recording.
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        bytes[16 + length + 4..].to_vec()
    };
    for id in [id, active] {
        assert_eq!(bytes(0, id), bytes(1, id));
        assert_eq!(bytes(0, id), bytes(2, id));
    }
    // Files in use are not changed.
    for (verb, more) in [
        ("verify", &[][..]),
        ("compact", &[]),
        ("import", &["/dev/null"]),
    ] {
        archive
            .recordings(verb, archive.path(), more)
            .assert_code(1)
            .assert_stderr("a running archive uses the directory");
    }
    let mark = archive.recordings("mark", archive.path(), &["--json"]);
    let mark: Value = serde_json::from_str(&mark.stdout).unwrap();
    assert_eq!(mark["control_channel"].as_str(), Some(&*archive.control));
    assert!(
        archive
            .recordings("errors", archive.path(), &[])
            .stdout
            .contains("0 distinct errors")
    );
    archive.stop();
    let verified = archive.recordings("verify", archive.path(), &["--all"]);
    verified.assert_code(0).assert_silent();
}

#[test]
fn streams_are_recorded_and_stopped_by_command() {
    let archive = Archive::start("live-record");
    let client = &archive.client;
    // Not one of the streams of control sessions, which are 10 and 20.
    for (place, stream) in [(archive.path(), 1020), (&archive.control, 1120)] {
        let mut publication = client.add_exclusive_publication(CHANNEL, stream).unwrap();
        let stream = &*stream.to_string();
        let started = json(&archive, "record", place, &[CHANNEL, stream, "--wait"]);
        let id = started["recording_id"].as_i64().unwrap();
        offer(&mut publication, 0, LENGTH);
        let end = publication.position();
        let mut session = archive.connect();
        await_true("the message", || {
            session.max_recorded_position(id).unwrap() == end
        });
        archive
            .recordings("record", place, &[CHANNEL, stream])
            .assert_code(1)
            .assert_stderr("recording");
        let stopped = archive.recordings("stop", place, &[&id.to_string()]);
        stopped.assert_code(0).assert_silent();
        assert_eq!(stopped.stdout, format!("stopped recording {id}\n"));
        archive
            .recordings("stop", place, &[&id.to_string()])
            .assert_code(1)
            .assert_stderr("is not active");
        assert_eq!(session.stop_position(id).unwrap(), Some(end));
        drop(publication);

        // By subscription, and by channel and stream.
        let waiting = json(&archive, "record", place, &[CHANNEL, "1021"]);
        let subscription = waiting["subscription_id"].as_i64().unwrap().to_string();
        archive
            .recordings("stop", place, &["--subscription", &subscription])
            .assert_code(0);
        archive
            .recordings("stop", place, &["--subscription", &subscription])
            .assert_code(1)
            .assert_stderr("is not active");
        json(&archive, "record", place, &[CHANNEL, "1022"]);
        archive
            .recordings("stop", place, &["--channel", CHANNEL, "--stream", "1022"])
            .assert_code(0);
        archive
            .recordings("stop", place, &["--channel", CHANNEL, "--stream", "1022"])
            .assert_code(1);
        archive
            .recordings("record", place, &["aeron:nonsense", "1"])
            .assert_code(1)
            .assert_stderr("aeron:nonsense");
        // A recording goes on where it has stopped.
        let channel = format!("{CHANNEL}|init-term-id=0|term-id=0|term-offset=0");
        archive
            .recordings("record", place, &[&channel, stream, "--extend", "77"])
            .assert_code(1)
            .assert_stderr("77");
    }
    let listed = json(&archive, "list", &archive.control, &[]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[test]
fn tail_follows_a_recording_until_it_ends_or_a_signal_comes() {
    let archive = Archive::start("live-tail");
    let (id, end, mut publication) = archive.record(30, 100, LENGTH, false);
    let id = id.to_string();
    let mut next = 100;
    for (place, last) in [(archive.path().to_owned(), 4), (archive.control.clone(), 0)] {
        let more: &[&str] = if last == 0 {
            &[&id, "--json"]
        } else {
            &[&id, "--json", "-n", "4"]
        };
        let mut child = archive
            .command("tail", &place, more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut index_of = || -> u64 {
            let line = lines.next().expect("a line").unwrap();
            let frame: Value = serde_json::from_str(&line).unwrap();
            let hex = frame["payload_hex"].as_str().unwrap();
            u64::from(u8::from_str_radix(&hex[..2], 16).unwrap())
        };
        for index in next - last..next {
            assert_eq!(index_of(), index);
        }
        if last == 0 {
            // It begins where the recording is when it starts.
            await_true("a replay", || replays(&archive) == 1);
        }
        for _ in 0..3 {
            offer(&mut publication, next, LENGTH);
            assert_eq!(index_of(), next);
            next += 1;
        }
        signal(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "taran: interrupted\n"
        );
        await_true("the end of the replay", || replays(&archive) == 0);
    }
    // To a number of frames, and to what is there.
    for place in [archive.path(), &archive.control] {
        let counted = archive.recordings("tail", place, &[&id, "--start", "--frames", "5"]);
        counted.assert_code(0).assert_silent();
        assert_eq!(counted.stdout.lines().count(), 1 + 5);
        let end = end.to_string();
        let there = archive.recordings("tail", place, &[&id, "--position", &end, "--no-follow"]);
        there.assert_code(0).assert_silent();
        assert_eq!(there.stdout.lines().count(), 1 + 6);
        archive
            .recordings("tail", place, &["77"])
            .assert_code(1)
            .assert_stderr("unknown recording 77");
    }
    // The recording ends while it is followed.
    let child = archive
        .command("tail", archive.path(), &[&id])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    await_true("a replay", || replays(&archive) == 1);
    archive
        .recordings("stop", archive.path(), &[&id])
        .assert_code(0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &*output.stderr),
        (Some(0), &[][..]),
        "{output:?}"
    );
    let again = archive.recordings("tail", &archive.control, &[&id]);
    again.assert_code(0).assert_silent();
}

/// Returns the number of replays (docs/spec/archive.md §4.6).
fn replays(archive: &Archive) -> i64 {
    let counters = archive.client.counters();
    let counter = counters.find(|counter| counter.type_id == 112);
    counters.value(counter.unwrap().id).unwrap()
}

#[test]
fn recordings_are_replayed_to_a_channel() {
    let archive = Archive::start("live-replay");
    let (id, end, _publication) = archive.record(40, 20, LENGTH, true);
    let id = id.to_string();
    for (place, stream) in [(archive.path(), 50), (&*archive.control, 51)] {
        let started = json(
            &archive,
            "replay",
            place,
            &[&id, CHANNEL, &stream.to_string()],
        );
        let channel = started["subscription_channel"].as_str().unwrap();
        let mut subscription = archive.client.add_subscription(channel, stream).unwrap();
        take_messages(&mut subscription, 20, LENGTH);
        let replay = started["replay_id"].as_i64().unwrap().to_string();
        archive
            .recordings("stop-replay", place, &[&replay])
            .assert_code(0)
            .assert_silent();
    }
    for (more, expected) in [
        (&["77", CHANNEL, "60"][..], "77"),
        (&[&id, CHANNEL, "60", "--position", "5"], "position"),
        (
            &[&id, CHANNEL, "60", "--position", &(end + 32).to_string()],
            "position",
        ),
        (&[&id, "aeron:nonsense", "60"], "aeron:nonsense"),
    ] {
        archive
            .recordings("replay", archive.path(), more)
            .assert_code(1)
            .assert_stderr(expected);
    }
}

#[test]
fn purge_through_a_session_deletes_with_consent_only() {
    let archive = Archive::start("live-purge");
    let (id, _, _first) = archive.record(60, 150, LENGTH, true);
    let (active, _, _second) = archive.record(61, 1, LENGTH, false);
    let id = id.to_string();
    let segment = SEGMENT.to_string();
    let file = |base: i64| archive.directory.path().join(format!("{id}-{base}.rec"));
    archive
        .recordings("purge", archive.path(), &[&id])
        .assert_code(2)
        .assert_stderr("--yes");
    archive
        .recordings("purge", archive.path(), &[&id, "--before", "32", "--yes"])
        .assert_code(1);
    assert!(file(0).exists());
    let purged = json(
        &archive,
        "purge",
        archive.path(),
        &[&id, "--before", &segment, "--yes"],
    );
    assert_eq!(purged["segment_files"].as_i64(), Some(1));
    assert!(!file(0).exists() && file(SEGMENT).exists());
    archive
        .recordings("purge", &archive.control, &[&active.to_string(), "--yes"])
        .assert_code(1)
        .assert_stderr("active");
    let purged = json(&archive, "purge", &archive.control, &[&id, "--yes"]);
    assert_eq!(purged["segment_files"].as_i64(), Some(2));
    assert!(!file(SEGMENT).exists());
    archive
        .recordings("purge", &archive.control, &[&id, "--yes"])
        .assert_code(1)
        .assert_stderr("unknown recording");
}

#[test]
fn directory_of_a_killed_archive_is_read_and_recovered() {
    let mut archive = Archive::start("live-killed");
    let (id, end, _publication) = archive.record(70, 100, LENGTH, false);
    archive.kill();
    let id = id.to_string();
    for verb in ["stop", "stop-replay"] {
        archive
            .recordings(verb, archive.path(), &[&id])
            .assert_code(1)
            .assert_stderr("no archive runs in");
    }
    let tail = archive.recordings("tail", archive.path(), &[&id, "-n", "1"]);
    tail.assert_code(0).assert_silent();
    let name = archive.aeron.path().join("export");
    let exported = archive.recordings("export", archive.path(), &[&id, name.to_str().unwrap()]);
    exported.assert_code(0).assert_silent();
    assert!(
        exported.stdout.contains(&format!("to {end}, ")),
        "{exported:?}"
    );
    archive
        .recordings("verify", archive.path(), &["--all"])
        .assert_code(0)
        .assert_silent();
    let listed = json_of(&archive, "list");
    assert_eq!(listed[0]["stop_position"].as_i64(), Some(end));
}

fn json_of(archive: &Archive, verb: &str) -> Value {
    json(archive, verb, archive.path(), &[])
}

#[test]
fn nothing_that_answers_is_an_error_after_the_timeout() {
    let archive = Archive::start("live-nothing");
    for channel in [
        "aeron:udp?endpoint=127.0.0.1:9",
        "aeron:ipc?alias=other|term-length=64k",
    ] {
        let mut command = crate::process::taran(&["recordings", "list", channel]);
        let stream: &[&str] = &["--control-stream", "77", "--timeout", "300ms"];
        command.args(stream).env("AERON_DIR", archive.aeron.path());
        crate::process::run(&mut command)
            .assert_code(1)
            .assert_stderr("control channel");
    }
    let mut command = crate::process::taran(&["recordings", "list", "aeron:ipc"]);
    command.args(["--aeron-dir", "/dev/shm/taran-test-nothing-there"]);
    crate::process::run(&mut command).assert_code(1);
    // A source that does not answer.
    let source = ["aeron:udp?endpoint=127.0.0.1:9", "0"];
    archive
        .recordings("replicate", archive.path(), &source)
        .assert_code(1);
    archive
        .recordings("stop-replication", archive.path(), &["77"])
        .assert_code(1);
}
