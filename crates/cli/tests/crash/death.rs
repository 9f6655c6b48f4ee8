// SPDX-License-Identifier: Apache-2.0
//! A driver that is killed is known to be dead at once, by its lock; one that is stopped is not dead.

use std::time::{Duration, Instant};

use taran::{CloseReason, ConnectionState, Lost, ReconnectingClient};

use crate::fixture::{await_true, builder};
use crate::observer::Observer;
use crate::process::{Directory, Driver, Process, run, signal, taran};

/// Driver timeout of processes that must not need it.
const NEVER: &str = "3600000";
/// Time limit for what needs milliseconds, or a keepalive interval, on an idle machine. Half of the default driver timeout:
/// whatever waited for the heartbeat to become old would exceed it.
const AT_ONCE: Duration = Duration::from_secs(5);
const STREAM: i32 = 79;

/// With a driver timeout of an hour, the tools, a client, a reconnecting client and the next driver see the death. The
/// simulator checks in virtual time that a client with the default keepalive interval does within a second.
#[test]
fn killed_driver_is_dead_for_tools_clients_and_successor_at_once() {
    let directory = Directory::new("death");
    let options = [&format!("aeron.driver.timeout={NEVER}")[..]];
    let driver = Driver::start(directory.path(), &options);
    let configure = |directory: &std::path::Path| {
        builder(directory)
            .keepalive_interval(Duration::from_millis(500))
            .driver_timeout(Duration::from_secs(3_600))
    };
    let client = configure(directory.path()).connect().unwrap();
    let path = directory.path().to_owned();
    let mut reconnecting = ReconnectingClient::new(move || configure(&path).on_error(|_| ()));
    let mut publication = reconnecting.add_publication("aeron:ipc?term-length=64k", STREAM);
    await_true("a publication", || {
        reconnecting.invoke().unwrap();
        publication.get().unwrap().is_some()
    });
    let info = || {
        run(taran(&["driver-info"])
            .env("AERON_DIR", directory.path())
            .env("AERON_DRIVER_TIMEOUT", NEVER))
    };
    info().assert_code(0);

    let pid = driver.pid().to_string();
    driver.stop("KILL");
    let killed = Instant::now();
    let dead = info();
    let by_tool = killed.elapsed();
    dead.assert_code(1)
        .assert_stderr("has ended without shutting down")
        .assert_stderr(&pid);
    assert!(dead.stdout.contains("   state: dead\n"), "{dead:?}");
    await_true("the client to lose its driver", || client.is_closed());
    let by_client = killed.elapsed();
    assert_eq!(
        client.close_reason(),
        Some(CloseReason::Lost(Lost::DriverProcessEnded))
    );
    await_true("the reconnecting client to lose its driver", || {
        reconnecting.invoke().unwrap();
        matches!(
            reconnecting.state(),
            ConnectionState::Reconnecting {
                lost: Some(Lost::DriverProcessEnded),
                ..
            }
        )
    });
    let by_reconnecting = killed.elapsed();

    let restarted = Instant::now();
    let next = Driver::start(directory.path(), &options);
    let start = restarted.elapsed();
    await_true("a publication on the next driver", || {
        reconnecting.invoke().unwrap();
        publication.get().unwrap().is_some() && publication.generation() == 2
    });
    let by_publication = restarted.elapsed();
    for (what, time) in [
        ("driver-info saw the death", by_tool),
        ("the client saw the death", by_client),
        ("the reconnecting client saw the death", by_reconnecting),
        ("the next driver started", start),
        ("the publication was on the next driver", by_publication),
    ] {
        println!("{what} after {time:.1?}");
        assert!(time < AT_ONCE, "{what} after {time:.1?}");
    }
    // A client of the next driver is not affected.
    info().assert_code(0);
    drop((client, publication, reconnecting));
    next.stop("TERM").assert_code(15).assert_silent();
}

/// A stopped driver is alive until its heartbeat is older than the driver timeout. A driver that takes the directory
/// over then keeps it when the first one continues and shuts down.
#[test]
fn stopped_driver_is_alive_for_the_driver_timeout_and_leaves_the_directory_to_its_successor() {
    let directory = Directory::new("death-stop");
    let options = ["aeron.dir.delete.on.shutdown=true"];
    let first = Driver::start(directory.path(), &options);
    let observer = Observer::of(directory.path(), first.pid());
    signal(first.pid(), "STOP");
    await_true("the heartbeat to stop", || {
        observer.heartbeat_age() > Duration::from_secs(2)
    });
    let with_timeout = |command: &str, timeout: &str| {
        run(taran(&[command])
            .env("AERON_DIR", directory.path())
            .env("AERON_DRIVER_TIMEOUT", timeout))
    };
    with_timeout("driver-info", NEVER).assert_code(0);
    with_timeout("driver", NEVER)
        .assert_code(1)
        .assert_stderr("active media driver");
    with_timeout("driver-info", "1000")
        .assert_code(1)
        .assert_stderr("last heartbeat");
    let second = Driver::start(directory.path(), &["aeron.driver.timeout=1000"]);
    signal(first.pid(), "CONT");
    first.stop("TERM").assert_code(15);
    with_timeout("driver-info", NEVER).assert_code(0);
    second.stop("TERM").assert_code(15).assert_silent();
}

/// A driver that is killed during its start leaves incomplete files; the next one does not wait for the driver timeout.
#[test]
fn driver_killed_during_startup_is_replaced_at_once() {
    let directory = Directory::new("death-start");
    for delay_ms in [1, 2, 4, 8, 12, 16, 20, 30] {
        let mut command = taran(&["driver"]);
        let process = Process::start(command.env("AERON_DIR", directory.path()));
        // The moment of the kill varies; the sleep waits for nothing.
        std::thread::sleep(Duration::from_millis(delay_ms));
        process.signal("KILL");
        process.wait();
    }
    let options = [&format!("aeron.driver.timeout={NEVER}")[..]];
    let started = Instant::now();
    let next = Driver::start(directory.path(), &options);
    let start = started.elapsed();
    assert!(start < AT_ONCE, "the next driver started after {start:.1?}");
    next.stop("TERM").assert_code(15).assert_silent();
}
