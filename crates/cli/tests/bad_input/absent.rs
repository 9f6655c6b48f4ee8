// SPDX-License-Identifier: Apache-2.0
//! A driver that is absent, dead, of another version, or started twice.

use std::time::Duration;

use taran::{CloseReason, ConnectError, Lost, OfferError, PollError, Version};

use crate::attach::{connect, connect_error, connect_within, wait_until};
use crate::process::{Directory, Driver, Process, forge, run, taran};
use crate::texts::assert_says;

/// Driver timeout of clients that are expected to fail.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
/// Driver timeout of clients of a running driver, which sends a heartbeat every second.
const LONG_TIMEOUT: Duration = Duration::from_secs(3);

fn text(directory: &Directory) -> String {
    directory.path().display().to_string()
}

#[test]
fn connect_without_driver_fails() {
    let directory = Directory::new("absent");
    let error = connect_error(directory.path(), SHORT_TIMEOUT);
    assert!(matches!(error, ConnectError::NoDriver { .. }), "{error:?}");
    assert_says(
        &error,
        &[
            &text(&directory),
            "300ms",
            "cnc.dat",
            "taran driver",
            "AERON_DIR",
            "aeron.dir",
        ],
    );
    let dir = text(&directory);
    for command in [
        &["stat", "-t", "50"][..],
        &["errors", "-t", "50"],
        &[
            "bench",
            "echo",
            "--aeron-dir",
            &dir,
            "--output",
            "/dev/null",
        ],
        &["bench", "stream", "--aeron-dir", &dir],
    ] {
        let outcome = run(taran(command)
            .env("AERON_DIR", &dir)
            .env("AERON_DRIVER_TIMEOUT", "50"));
        outcome
            .assert_code(1)
            .assert_stderr(&dir)
            .assert_stderr("taran driver")
            .assert_stderr("AERON_DIR");
    }
    assert!(!directory.path().exists(), "the tools create no files");
}

#[test]
fn killed_driver_is_lost_at_once() {
    let directory = Directory::new("killed");
    let driver = Driver::start(directory.path(), &[]);
    let pid = driver.pid().to_string();
    let client = connect(directory.path());
    let channel = "aeron:ipc?term-length=64k";
    let mut subscription = client.add_subscription(channel, 10).unwrap();
    let publication = client.add_publication(channel, 10).unwrap();
    wait_until("connected", || publication.offer(b"before").is_ok());
    driver.stop("KILL");

    // Every call on an attached client returns the loss of the driver.
    let lost = wait_lost(|| subscription.poll(|_, _| {}, 10));
    assert_eq!(lost, Lost::DriverProcessEnded);
    assert_says(
        &lost,
        &["ended", "killed", "start it again", "connect again"],
    );
    assert_eq!(
        publication.offer(b"after"),
        Err(OfferError::DriverLost(lost))
    );
    let rejected = client.add_publication("aeron:ipc", 11).unwrap_err();
    assert_eq!(rejected, lost.into());
    assert_eq!(client.close_reason(), Some(CloseReason::Lost(lost)));

    // A client that finds the files within the driver timeout waits for a new driver.
    let recent = connect_error(directory.path(), LONG_TIMEOUT);
    if let ConnectError::DriverProcessEnded { .. } = recent {
        assert_says(
            &recent,
            &[
                &text(&directory),
                &pid,
                "3s",
                "aeron.driver.timeout",
                "Start it again",
            ],
        );
    } else {
        // The heartbeat was older than the driver timeout at the last attempt.
        assert!(
            matches!(recent, ConnectError::DriverDied { .. }),
            "{recent:?}"
        );
    }
    let stat = run(taran(&["stat"])
        .env("AERON_DIR", directory.path())
        .env("AERON_DRIVER_TIMEOUT", "3600000"));
    stat.assert_code(1)
        .assert_stderr("ended without shutting down")
        .assert_stderr(&pid)
        .assert_stderr("taran driver");
    let next = Driver::start(directory.path(), &["aeron.driver.timeout=3600000"]);
    connect(directory.path())
        .add_publication("aeron:ipc", 10)
        .unwrap();
    next.stop("TERM").assert_code(15).assert_silent();
}

/// As with official drivers, which have no lock.
#[test]
fn killed_driver_without_lock_is_lost_after_the_driver_timeout() {
    let directory = Directory::new("killed-unlocked");
    let driver = Driver::start(directory.path(), &[]);
    let pid = driver.pid().to_string();
    std::fs::remove_file(directory.path().join("driver.lock")).unwrap();
    let client = connect_within(directory.path(), LONG_TIMEOUT).unwrap();
    let channel = "aeron:ipc?term-length=64k";
    let mut subscription = client.add_subscription(channel, 10).unwrap();
    let publication = client.add_publication(channel, 10).unwrap();
    wait_until("connected", || publication.offer(b"before").is_ok());
    driver.stop("KILL");

    // Every call on an attached client returns the loss of the driver.
    let lost = wait_lost(|| subscription.poll(|_, _| {}, 10));
    let Lost::DriverTimeout { age, timeout } = lost else {
        panic!("{lost:?}")
    };
    assert!(age > timeout && timeout == LONG_TIMEOUT, "{lost:?}");
    assert_says(
        &lost,
        &["3s", "aeron.driver.timeout", "killed", "connect again"],
    );
    assert_eq!(
        publication.offer(b"after"),
        Err(OfferError::DriverLost(lost))
    );
    let rejected = client.add_publication("aeron:ipc", 11).unwrap_err();
    assert_eq!(rejected, lost.into());
    assert_eq!(client.close_reason(), Some(CloseReason::Lost(lost)));

    // A new client reports the dead driver.
    let error = connect_error(directory.path(), SHORT_TIMEOUT);
    assert!(
        matches!(error, ConnectError::DriverDied { .. }),
        "{error:?}"
    );
    assert_says(
        &error,
        &[
            &text(&directory),
            "dead",
            "300ms",
            "aeron.driver.timeout",
            "Start it again",
        ],
    );
    let stat = run(taran(&["stat"])
        .env("AERON_DIR", directory.path())
        .env("AERON_DRIVER_TIMEOUT", "300"));
    stat.assert_code(1)
        .assert_stderr("last heartbeat")
        .assert_stderr(&pid)
        .assert_stderr("taran driver");

    // The next driver cannot distinguish a recent heartbeat from that of a live driver; its error states how to proceed.
    let hasty = run(taran(&["driver"])
        .env("AERON_DIR", directory.path())
        .env("AERON_DRIVER_TIMEOUT", "3600000"));
    hasty
        .assert_code(1)
        .assert_stderr("active media driver")
        .assert_stderr(&pid)
        .assert_stderr("killed")
        .assert_stderr("aeron.driver.timeout=3600000");
    let next = Driver::start(directory.path(), &["aeron.driver.timeout=300"]);
    connect(directory.path())
        .add_publication("aeron:ipc", 10)
        .unwrap();
    next.stop("TERM").assert_code(15).assert_silent();
}

/// Polls until the driver is reported as lost.
fn wait_lost(mut poll: impl FnMut() -> Result<usize, PollError>) -> Lost {
    let mut lost = None;
    wait_until("the loss of the driver", || match poll() {
        Ok(_) => false,
        Err(error) => {
            assert!(error.lost().is_some(), "{error}");
            lost = error.lost();
            true
        }
    });
    lost.unwrap()
}

#[test]
fn stopped_driver_is_reported_as_lost() {
    let directory = Directory::new("stopped");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    driver.stop("TERM").assert_code(15);
    let lost = wait_lost(|| subscription.poll(|_, _| {}, 10));
    assert_eq!(lost, Lost::DriverShutdown);
    assert_says(&lost, &["shut down", "start it again", "connect again"]);
    let error = connect_error(directory.path(), SHORT_TIMEOUT);
    assert!(
        matches!(error, ConnectError::DriverStopped { .. }),
        "{error:?}"
    );
    assert_says(
        &error,
        &[
            &text(&directory),
            "shut down",
            "start a driver",
            "AERON_DIR",
        ],
    );
}

#[test]
fn cnc_of_another_version_is_rejected() {
    let directory = Directory::new("version");
    let (region, _cnc) = forge(directory.path(), i64::MAX);
    region.write(0, &Version::new(1, 2, 3).0.to_le_bytes());
    let cnc = directory.path().join("cnc.dat").display().to_string();
    let error = connect_error(directory.path(), SHORT_TIMEOUT);
    assert!(matches!(error, ConnectError::Version { .. }), "{error:?}");
    assert_says(&error, &[&cnc, "1.2.3", "0.2.0", "Aeron 1.51"]);
    let driver = run(taran(&["driver"]).env("AERON_DIR", directory.path()));
    driver.assert_code(1);
    assert_says(
        &driver.stderr,
        &[
            &text(&directory),
            "1.2.3",
            "0.2.0",
            "remove it",
            "aeron.dir",
        ],
    );
    for tool in ["stat", "errors"] {
        let outcome = run(taran(&[tool]).env("AERON_DIR", directory.path()));
        outcome.assert_code(1);
        assert_says(&outcome.stderr, &[&cnc, "1.2.3", "0.2.0"]);
    }
}

#[test]
fn invalid_cnc_file_is_rejected() {
    let directory = Directory::new("garbage");
    let cnc = directory.path().join("cnc.dat").display().to_string();
    // In the order of the header's fields: a version, the lengths of five sections, and so on.
    let contradictory = [&[0, 2, 0, 0], &[0xff; 200][..]].concat();
    type Expected = fn(&ConnectError) -> bool;
    let cases: [(&[u8], Expected, &str); 5] = [
        (
            b"",
            |e| matches!(e, ConnectError::TooShort { .. }),
            "Remove",
        ),
        (
            b"short",
            |e| matches!(e, ConnectError::TooShort { .. }),
            "Remove",
        ),
        (
            &[0; 4096],
            |e| matches!(e, ConnectError::NotReady { .. }),
            "300ms",
        ),
        (
            &[b'x'; 4096],
            |e| matches!(e, ConnectError::Version { .. }),
            "0.2.0",
        ),
        (
            &contradictory,
            |e| matches!(e, ConnectError::Damaged { .. }),
            "Start the driver again",
        ),
    ];
    for (content, is_expected, remedy) in cases {
        std::fs::create_dir_all(directory.path()).unwrap();
        std::fs::write(&cnc, content).unwrap();
        let error = connect_error(directory.path(), SHORT_TIMEOUT);
        assert!(is_expected(&error), "{error:?}");
        assert_says(&error, &[&cnc, remedy]);
    }
}

#[test]
fn second_driver_is_rejected_without_harm() {
    let directory = Directory::new("second");
    let first = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    let publication = client.add_publication("aeron:ipc", 10).unwrap();
    let outcome = run(taran(&["driver", "-Daeron.dir.delete.on.shutdown=true"])
        .env("AERON_DIR", directory.path()));
    outcome.assert_code(1);
    assert_says(
        &outcome.stderr,
        &[
            "active media driver",
            &text(&directory),
            &first.pid().to_string(),
            "stop it",
            "aeron.dir",
        ],
    );
    wait_until("connected", || publication.offer(b"still here").is_ok());
    wait_until("received", || {
        subscription.poll(|message, _| assert_eq!(message, b"still here"), 1) == Ok(1)
    });
    first.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn drivers_started_at_once_leave_one_running() {
    for _ in 0..5 {
        let directory = Directory::new("at-once");
        let mut starting: Vec<Process> = (0..3)
            .map(|_| Process::start(taran(&["driver"]).env("AERON_DIR", directory.path())))
            .collect();
        let client = connect(directory.path());
        let mut losers = Vec::new();
        wait_until("one is left", || {
            losers.extend(starting.extract_if(.., Process::has_ended));
            losers.len() == 2
        });
        for loser in losers {
            let outcome = loser.wait();
            outcome
                .assert_code(1)
                .assert_stderr("active media driver")
                .assert_stderr(&text(&directory));
        }
        // The files of the remaining driver exist, and it serves clients.
        let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
        let publication = client.add_publication("aeron:ipc", 10).unwrap();
        wait_until("connected", || publication.offer(b"served").is_ok());
        wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
        let winner = starting.pop().unwrap();
        winner.signal("TERM");
        winner.wait().assert_code(15).assert_silent();
    }
}
