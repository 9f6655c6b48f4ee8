// SPDX-License-Identifier: Apache-2.0
//! The event log: its events, its destination, and its options.

use std::path::Path;

use crate::process::{Directory, Driver, Outcome, run, taran};
use crate::traffic::{Traffic, await_true};

/// Runs a stream from start to end under a driver with these variables.
fn run_stream(directory: &Directory, variables: &[(&str, &str)]) -> Outcome {
    let mut command = taran(&["driver"]);
    command
        .env("AERON_DIR", directory.path())
        .env("AERON_TIMER_INTERVAL", "10ms")
        .env("AERON_PUBLICATION_LINGER_TIMEOUT", "20ms")
        .env("AERON_IMAGE_LIVENESS_TIMEOUT", "200ms")
        .envs(variables.iter().copied());
    let driver = Driver::start_with(&mut command, directory.path());
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    drop(traffic);
    await_no_streams(directory.path());
    let outcome = driver.stop("TERM");
    outcome.assert_code(15).assert_silent();
    outcome
}

/// Waits until no counter of a stream or a channel is left.
fn await_no_streams(directory: &Path) {
    await_true("the end of all streams", || {
        let stat = run(
            taran(&["stat", "-w", "false", "--type", "^(1|2|3|4|5|6|7|14)$"])
                .env("AERON_DIR", directory),
        );
        stat.assert_code(0);
        stat.stdout.lines().count() == 2
    });
}

fn names(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_once("] DRIVER: "))
        .map(|(_, event)| event.split(' ').next().unwrap_or(""))
        .collect()
}

#[track_caller]
fn assert_events(text: &str, wanted: &[&str], unwanted: &[&str]) {
    let names = names(text);
    for name in wanted {
        assert!(names.contains(name), "no {name} in {text}");
    }
    for name in unwanted {
        assert!(!names.contains(name), "{name} in {text}");
    }
}

#[test]
fn admin_events_of_a_stream_go_to_standard_output() {
    let directory = Directory::new("admin");
    let outcome = run_stream(&directory, &[("AERON_EVENT_LOG", "admin")]);
    assert!(
        outcome
            .stdout
            .lines()
            .next()
            .is_some_and(|line| line.starts_with('[') && line.contains("] log started ")),
        "{outcome:?}"
    );
    assert_events(
        &outcome.stdout,
        &[
            "CMD_IN_ADD_SUBSCRIPTION",
            "RECEIVE_CHANNEL_CREATION",
            "CMD_OUT_SUBSCRIPTION_READY",
            "CMD_IN_ADD_PUBLICATION",
            "SEND_CHANNEL_CREATION",
            "CMD_OUT_PUBLICATION_READY",
            "CMD_OUT_AVAILABLE_IMAGE",
            "CMD_OUT_COUNTER_READY",
            "REMOVE_SUBSCRIPTION_CLEANUP",
            "REMOVE_PUBLICATION_CLEANUP",
            "REMOVE_IMAGE_CLEANUP",
            "SEND_CHANNEL_CLOSE",
            "RECEIVE_CHANNEL_CLOSE",
        ],
        &["FRAME_IN", "FRAME_OUT"],
    );
    let added = outcome
        .stdout
        .lines()
        .find(|line| line.contains("CMD_IN_ADD_PUBLICATION"))
        .unwrap();
    assert!(
        added.contains(" stream_id=1001 channel=aeron:udp?endpoint=127."),
        "{added}"
    );
    // No event is lost at the end, and the shutdown message begins on its own line.
    assert!(
        outcome.stdout.contains("\nShutting down driver...\n"),
        "{outcome:?}"
    );
}

#[test]
fn all_events_except_disabled_ones_go_to_the_file() {
    let directory = Directory::new("all");
    let logs = Directory::new("all-logs");
    let file = logs.file("events.log", "");
    let outcome = run_stream(
        &directory,
        &[
            ("AERON_EVENT_LOG", "all"),
            ("AERON_EVENT_LOG_DISABLE", "CMD_OUT_COUNTER_READY,FRAME_OUT"),
            ("AERON_EVENT_LOG_FILENAME", file.to_str().unwrap()),
            ("AERON_EVENT_BUFFER_LENGTH", "1m"),
        ],
    );
    let (start, rest) = outcome.stdout.split_once('\n').unwrap();
    assert!(start.starts_with("taran driver "), "{start}");
    assert_eq!(rest, "Shutting down driver...\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_events(
        &text,
        &["FRAME_IN", "CMD_OUT_AVAILABLE_IMAGE"],
        &["FRAME_OUT", "CMD_OUT_COUNTER_READY"],
    );
    for kind in ["type=SETUP ", "type=DATA ", "type=SM "] {
        assert!(
            text.lines()
                .any(|line| line.contains(" FRAME_IN ") && line.contains(kind)),
            "no {kind} in {text}"
        );
    }
}

#[test]
fn log_file_that_cannot_be_written_is_rejected_at_startup() {
    let directory = Directory::new("no-file");
    let outcome = run(taran(&["driver"])
        .env("AERON_DIR", directory.path())
        .env("AERON_EVENT_LOG", "admin")
        .env("AERON_EVENT_LOG_FILENAME", "/nowhere/events.log"));
    outcome
        .assert_code(1)
        .assert_stderr("ERROR: driver init")
        .assert_stderr("/nowhere/events.log")
        .assert_stderr("aeron.event.log.filename");
    assert!(!directory.path().exists());
}

#[test]
fn loss_untethered_revocation_and_lookup_events_are_logged() {
    let directory = Directory::new("rare");
    let mut command = taran(&["driver"]);
    command
        .env("AERON_DIR", directory.path())
        .env("AERON_EVENT_LOG", "admin")
        .env("AERON_TIMER_INTERVAL", "10ms")
        .env("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "20ms")
        .env("AERON_UNTETHERED_RESTING_TIMEOUT", "20ms")
        .env("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "fixed-loss")
        .env(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS",
            "term-id=7|term-offset=64|length=64",
        );
    let driver = Driver::start_with(&mut command, directory.path());
    // The second of these is lost, requested by a NAK, and retransmitted.
    let mut lossy = Traffic::over_udp_from_term(directory.path(), 1001, 7, 4);
    lossy.publication.revoke();
    await_true(
        "the end of the image that was revoked over the network",
        || {
            lossy.subscription.poll(|_, _| (), 10).unwrap();
            !lossy.subscription.is_connected()
        },
    );
    drop(lossy);

    let mut shared = Traffic::over_ipc(directory.path(), 1002, 1);
    let slow = shared
        .client
        .add_subscription("aeron:ipc?tether=false", 1002)
        .unwrap();
    await_true("its image", || slow.is_connected());
    let message = [0; 1024];
    await_true("the slow subscriber to be detached", || {
        let _ = shared.publication.offer(&message);
        shared.subscription.poll(|_, _| (), 10).unwrap();
        !slow.is_connected()
    });
    shared.publication.revoke();
    let rejected = shared
        .client
        .add_publication("aeron:udp?endpoint=nosuch.invalid:40001", 1);
    assert!(rejected.is_err());
    await_true("the end of the revoked image", || {
        shared.subscription.poll(|_, _| (), 10).unwrap();
        !shared.subscription.is_connected()
    });
    drop((slow, shared));
    let outcome = driver.stop("TERM");
    outcome.assert_code(15).assert_silent();
    assert_events(
        &outcome.stdout,
        &[
            "NAK_SENT",
            "NAK_RECEIVED",
            "RESEND",
            "UNTETHERED_SUBSCRIPTION_STATE_CHANGE",
            "PUBLICATION_REVOKE",
            "PUBLICATION_IMAGE_REVOKE",
            "NAME_RESOLUTION_LOOKUP",
            "NAME_RESOLUTION_RESOLVE",
            "CMD_OUT_ERROR",
        ],
        &[],
    );
    for text in [
        " RESEND [",
        " stream_id=1002 ",
        " from=ACTIVE to=LINGER\n",
        " resolver=default duration_ns=0 name=nosuch.invalid is_re_lookup=0 resolved_name=nosuch.invalid\n",
        " name=nosuch.invalid is_re_resolution=0 address=",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
}
