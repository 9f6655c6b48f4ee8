// SPDX-License-Identifier: Apache-2.0
//! The event log of an archive.

use std::fs;

use taran_archive_client::ReplayParams;

use super::running::{Archive, take_messages};
use crate::process::{Directory, run, taran};

/// Returns the names of the events in a log.
fn names(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_once("] ARCHIVE: "))
        .filter_map(|(_, event)| event.split(' ').next())
        .collect()
}

#[test]
fn archive_logs_requests_responses_signals_and_states_with_their_official_names() {
    let directory = Directory::new("archive-events-log");
    let path = directory.file("events.log", "");
    let mut archive = Archive::start_with(
        "archive-events",
        &[
            "-Daeron.event.archive.log=all",
            "-Daeron.event.archive.log.disable=CMD_IN_KEEP_ALIVE,RECORDING_SIGNAL",
            &format!("-Daeron.event.log.filename={}", path.display()),
        ],
    );
    let (id, _, publication) = archive.record(7, 20, 100, true);
    let mut client = archive.connect();
    let params = ReplayParams::new();
    let (replay, mut subscription) = client.replay(id, "aeron:ipc", 8, &params).unwrap();
    take_messages(&mut subscription, 20, 100);
    client.stop_replay(replay).unwrap();
    let refused = client.stop_position(id + 1).unwrap_err();
    assert!(refused.code().is_some(), "{refused}");
    drop((client, publication));
    archive.stop();
    let log = fs::read_to_string(&path).unwrap();
    let first = log.lines().next().unwrap();
    assert!(
        first.contains("] log started ") && first.contains("{ARCHIVE: version="),
        "{first}"
    );
    let found = names(&log);
    for name in [
        "CMD_IN_AUTH_CONNECT",
        "CONTROL_SESSION_STATE_CHANGE",
        "CMD_OUT_RESPONSE",
        "CMD_IN_START_RECORDING2",
        "RECORDING_SESSION_STATE_CHANGE",
        "CMD_IN_MAX_RECORDED_POSITION",
        "CMD_IN_STOP_RECORDING_BY_IDENTITY",
        "CMD_IN_REPLAY",
        "REPLAY_SESSION_STATE_CHANGE",
        "CMD_IN_STOP_REPLAY",
        "CMD_IN_STOP_POSITION",
    ] {
        assert!(found.contains(&name), "no {name} in {log}");
    }
    for name in ["CMD_IN_KEEP_ALIVE", "RECORDING_SIGNAL"] {
        assert!(!found.contains(&name), "{name} in {log}");
    }
    for text in [
        format!("recordingId={id}, INIT -> RECORDING, position=0"),
        format!("recordingId={id}, RECORDING -> STOPPED, position="),
        "AUTHENTICATED -> ACTIVE".to_owned(),
        format!("recordingId={}", id + 1),
        "code=ERROR".to_owned(),
    ] {
        assert!(log.contains(&text), "no {text} in {log}");
    }
}

#[test]
fn archive_event_that_is_unknown_is_refused_at_the_start() {
    let directory = Directory::new("archive-unknown-event");
    let mut command = taran(&["archive", "-Daeron.event.archive.log=CMD_IN_NOPE"]);
    command.env("AERON_ARCHIVE_DIR", directory.path());
    let outcome = run(&mut command);
    assert_ne!(outcome.code, Some(0));
    assert!(
        outcome.stderr.contains("aeron.event.archive.log")
            && outcome.stderr.contains("names such as CMD_IN_REPLAY"),
        "{outcome:?}"
    );
    assert!(!directory.path().join("archive.catalog").exists());
}
