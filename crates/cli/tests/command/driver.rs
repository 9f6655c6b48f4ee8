// SPDX-License-Identifier: Apache-2.0
//! `taran driver`: start, shutdown, rejected configurations.

use std::path::Path;

use taran_protocol::cnc::Version;

use crate::process::{Directory, Driver, Outcome, forge, run, taran};

const SHUTDOWN_MESSAGE: &str = "Shutting down driver...\n";

/// Checks that standard output is the start line and the message of an orderly shutdown.
#[track_caller]
fn assert_starts_and_shuts_down(outcome: &Outcome, directory: &Path, mode: &str) {
    let (start, rest) = outcome.stdout.split_once('\n').expect("a line");
    assert!(start.starts_with("taran driver "), "{outcome:?}");
    let end = format!(
        ", directory {}, threading {mode}, profile balanced, security off",
        directory.display()
    );
    assert!(
        start.contains("): pid ") && start.ends_with(&end),
        "{outcome:?}"
    );
    assert_eq!(rest, SHUTDOWN_MESSAGE, "{mode}");
}

#[test]
fn signals_shut_the_driver_down_with_their_number_as_status() {
    for (signal, code) in [("TERM", 15), ("INT", 2)] {
        for mode in ["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"] {
            let directory = Directory::new("signal");
            let driver =
                Driver::start(directory.path(), &[&format!("aeron.threading.mode={mode}")]);
            let outcome = driver.stop(signal);
            outcome.assert_code(code).assert_silent();
            assert_starts_and_shuts_down(&outcome, directory.path(), mode);
            assert!(directory.path().join("cnc.dat").exists(), "{mode}");
        }
    }
}

#[test]
fn termination_request_when_allowed_shuts_the_driver_down() {
    for mode in ["DEDICATED", "INVOKER"] {
        let directory = Directory::new("terminate");
        let driver = Driver::start(
            directory.path(),
            &[
                "aeron.driver.termination.validator=allow",
                &format!("aeron.threading.mode={mode}"),
            ],
        );
        driver.request_termination(b"please");
        let outcome = driver.wait();
        outcome.assert_code(0).assert_silent();
        assert_starts_and_shuts_down(&outcome, directory.path(), mode);
    }
}

#[test]
fn termination_request_by_default_is_ignored() {
    let directory = Directory::new("deny");
    let mut driver = Driver::start(directory.path(), &[]);
    driver.request_termination(b"please");
    driver.await_commands_taken();
    assert!(driver.is_running());
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn driver_is_configurable_by_environment_only() {
    let directory = Directory::new("environment");
    let mut command = taran(&["driver"]);
    command
        .env("AERON_DIR", directory.path())
        .env("AERON_THREADING_MODE", "SHARED")
        .env("AERON_DIR_DELETE_ON_SHUTDOWN", "1");
    Driver::start_with(&mut command, directory.path())
        .stop("TERM")
        .assert_code(15)
        .assert_silent();
    assert!(!directory.path().exists());
}

/// Variables set by a typical harness of official drivers: all options, most of them to their defaults.
const HARNESS: &[(&str, &str)] = &[
    ("AERON_CLIENT_LIVENESS_TIMEOUT", "10000000000"),
    ("AERON_IMAGE_LIVENESS_TIMEOUT", "10000000000"),
    ("AERON_DRIVER_TERMINATION_VALIDATOR", "allow"),
    ("AERON_DIR_DELETE_ON_START", "true"),
    ("AERON_DIR_DELETE_ON_SHUTDOWN", "false"),
    ("AERON_TERM_BUFFER_SPARSE_FILE", "true"),
    ("AERON_TERM_BUFFER_LENGTH", "65536"),
    ("AERON_IPC_TERM_BUFFER_LENGTH", "67108864"),
    ("AERON_FILE_PAGE_SIZE", "4096"),
    ("AERON_PUBLICATION_UNBLOCK_TIMEOUT", "15000000000"),
    ("AERON_PUBLICATION_CONNECTION_TIMEOUT", "5000000000"),
    ("AERON_PUBLICATION_LINGER_TIMEOUT", "5000000000"),
    ("AERON_SPIES_SIMULATE_CONNECTION", "false"),
    ("AERON_RCV_STATUS_MESSAGE_TIMEOUT", "200000000"),
    ("AERON_PERFORM_STORAGE_CHECKS", "true"),
    ("AERON_THREADING_MODE", "SHARED"),
    ("AERON_TIMER_INTERVAL", "1000000000"),
    ("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "5000000000"),
    ("AERON_UNTETHERED_LINGER_TIMEOUT", "5000000000"),
    ("AERON_UNTETHERED_RESTING_TIMEOUT", "10000000000"),
    ("AERON_RECEIVER_GROUP_TAG", "17"),
    ("AERON_FLOW_CONTROL_GROUP_TAG", "-1"),
    ("AERON_FLOW_CONTROL_GROUP_MIN_SIZE", "0"),
    ("AERON_PRINT_CONFIGURATION", "true"),
    ("AERON_SOCKET_SO_RCVBUF", "131072"),
    ("AERON_SOCKET_SO_SNDBUF", "0"),
    ("AERON_RCV_INITIAL_WINDOW_LENGTH", "131072"),
    ("AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD", "1000000000"),
    ("AERON_DRIVER_SENDER_CYCLE_THRESHOLD", "1000000000"),
    ("AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD", "1000000000"),
    ("AERON_DRIVER_NAME_RESOLVER_THRESHOLD", "5000000000"),
    ("AERON_DRIVER_ASYNC_EXECUTOR_ENABLED", "true"),
    ("AERON_SENDER_WILDCARD_PORT_RANGE", "20700 20710"),
    ("AERON_RECEIVER_WILDCARD_PORT_RANGE", "0 0"),
    ("AERON_ENABLE_EXPERIMENTAL_FEATURES", "false"),
    ("AERON_DRIVER_STREAM_SESSION_LIMIT", "2147483647"),
    ("AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT", "10000000000"),
    (
        "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL",
        "1000000000",
    ),
    (
        "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL",
        "2000000000",
    ),
    (
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL",
        "10000000000",
    ),
    (
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
        "aeron_max_multicast_flow_control_strategy_supplier",
    ),
    (
        "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
        "aeron_unicast_flow_control_strategy_supplier",
    ),
    ("AERON_NAK_UNICAST_DELAY", "0"),
    ("AERON_EVENT_LOG", "admin"),
    ("AERON_EVENT_LOG_DISABLE", ""),
];

#[test]
fn program_named_aeronmd_runs_as_driver() {
    let directory = Directory::new("aeronmd");
    let program = directory.path().join("aeronmd");
    std::fs::create_dir_all(directory.path()).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taran"), &program).unwrap();
    let aeron_dir = directory.path().join("driver");
    let mut command = std::process::Command::new(&program);
    command
        .env_clear()
        .env("AERON_DIR", &aeron_dir)
        .envs(HARNESS.iter().copied());
    let driver = Driver::start_with(&mut command, &aeron_dir);
    driver.request_termination(b"");
    let outcome = driver.wait();
    outcome.assert_code(0).assert_silent();
    for text in [
        "aeron_driver_context_t {",
        "] log started ",
        "] DRIVER: CMD_IN_TERMINATE_DRIVER ",
        SHUTDOWN_MESSAGE,
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }

    let version = run(std::process::Command::new(&program).arg("-v"));
    version.assert_code(0).assert_silent();
    assert!(version.stdout.contains("1.51.0"), "{version:?}");
    run(std::process::Command::new(&program).arg("-h")).assert_code(0);
    run(std::process::Command::new(&program).arg("-x")).assert_code(1);
}

#[test]
fn property_files_override_environment_and_yield_to_defines() {
    let directory = Directory::new("files");
    let files = Directory::new("files-config");
    let first = files.file(
        "first.properties",
        "# comment\naeron.mtu.length=2k\naeron.max.resend=7\n",
    );
    let second = files.file(
        "second.properties",
        "aeron.max.resend: 8\naeron.print.configuration=true",
    );
    let second = format!("file://{}", second.display());
    let mut command = taran(&[
        "driver",
        "-D",
        "aeron.term.buffer.length=1m",
        &first.display().to_string(),
        &second,
    ]);
    command
        .env("AERON_DIR", directory.path())
        .env("AERON_MTU_LENGTH", "4k")
        .env("AERON_TERM_BUFFER_LENGTH", "64k");
    let outcome = Driver::start_with(&mut command, directory.path()).stop("TERM");
    outcome.assert_code(15).assert_silent();
    let lines: Vec<&str> = outcome.stdout.lines().map(str::trim).collect();
    assert_eq!(
        lines.first(),
        Some(&"aeron_driver_context_t {"),
        "{outcome:?}"
    );
    for line in [
        "mtu_length=2048",
        "max_resend=8",
        "term_buffer_length=1048576",
    ] {
        assert!(lines.contains(&line), "no {line} in {outcome:?}");
    }
}

#[test]
fn invalid_configuration_is_rejected_with_the_reason() {
    let directory = Directory::new("refusals");
    let malformed = directory
        .file(
            "malformed.properties",
            "aeron.mtu.length=8k\nwhat is this\n",
        )
        .display()
        .to_string();
    let bad_value = directory
        .file("bad.properties", "aeron.timer.interval=soon\n")
        .display()
        .to_string();
    let below_a_file = format!("aeron.dir={malformed}/driver");
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["-Daeron.mtu.length=1400"],
            &["context init", "aeron.mtu.length=1400", "multiple of 32"],
        ),
        (
            &["-Daeron.max.resend=900"],
            &["aeron.max.resend=900", "1..256"],
        ),
        (
            &["-Daeron.threading.mode=shared"],
            &["aeron.threading.mode=shared", "SHARED_NETWORK"],
        ),
        (
            &["-Daeron.event.log=admin,NOPE"],
            &["aeron.event.log=admin,NOPE", "CMD_IN_ADD_PUBLICATION"],
        ),
        (
            &["-Daeron.conductor.idle.strategy=nap"],
            &["aeron.conductor.idle.strategy=nap", "backoff"],
        ),
        (&["-Dnothing"], &["malformed define: nothing"]),
        (
            &["-Daeron.client.liveness.timeout=20s"],
            &["aeron.publication.unblock.timeout", "20s"],
        ),
        (
            &["/nowhere/x.properties"],
            &["property file /nowhere/x.properties"],
        ),
        (
            &["http://localhost/x.properties"],
            &["http://localhost/x.properties", "not fetched"],
        ),
        (
            &[&malformed],
            &["malformed.properties", "line 2", "what is this"],
        ),
        (
            &[&bad_value],
            &["bad.properties", "aeron.timer.interval=soon", "100ms"],
        ),
        (&[&below_a_file], &["write -Daeron.dir="]),
    ];
    for (arguments, texts) in cases {
        let mut command = taran(&["driver"]);
        let outcome = run(command
            .args(*arguments)
            .env("AERON_DIR", directory.path().join("driver")));
        outcome.assert_code(1).assert_stderr("ERROR: ");
        for text in *texts {
            outcome.assert_stderr(text);
        }
        assert_eq!(outcome.stdout, "", "{outcome:?}");
    }
    assert!(!directory.path().join("driver").exists());
}

#[test]
fn directory_that_cannot_be_created_is_rejected() {
    let directory = Directory::new("unwritable");
    let file = directory.file("file", "");
    let inside = file.join("driver");
    let outcome = run(taran(&["driver"]).env("AERON_DIR", &inside));
    outcome
        .assert_code(1)
        .assert_stderr("ERROR: driver init")
        .assert_stderr("aeron.dir must name a directory")
        .assert_stderr(&file.display().to_string());
}

#[test]
fn unknown_argument_prints_the_usage() {
    let outcome = run(&mut taran(&["driver", "--fast"]));
    outcome.assert_code(2).assert_stderr("Usage: taran driver");
    assert_eq!(outcome.stdout, "");
}

#[test]
fn misspelt_option_name_is_reported_once() {
    let directory = Directory::new("mistake");
    let outcome = Driver::start(
        directory.path(),
        &["aeron.mtu.lenght=8k", "aeron.archive.dir=x", "user.home=y"],
    )
    .stop("TERM");
    outcome.assert_code(15);
    assert_eq!(
        outcome.stderr,
        "WARNING: unknown option aeron.mtu.lenght (command line), did you mean aeron.mtu.length?\n"
    );
}

#[test]
fn second_driver_in_the_same_directory_is_rejected_without_harm() {
    let directory = Directory::new("second");
    let mut first = Driver::start(directory.path(), &[]);
    let mut command = taran(&["driver", "-Daeron.dir.delete.on.shutdown=true"]);
    let outcome = run(command.env("AERON_DIR", directory.path()));
    outcome
        .assert_code(1)
        .assert_stderr("ERROR: driver init")
        .assert_stderr("active")
        .assert_stderr(&first.pid().to_string());
    assert!(first.is_running());
    assert!(directory.path().join("cnc.dat").exists());
    first.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn directory_of_another_cnc_version_is_rejected() {
    let directory = Directory::new("foreign");
    let (region, _cnc) = forge(directory.path(), 1_000);
    region.write(0, &Version::new(1, 0, 0).0.to_le_bytes());
    let outcome = run(taran(&["driver"]).env("AERON_DIR", directory.path()));
    outcome
        .assert_code(1)
        .assert_stderr("1.0.0")
        .assert_stderr("0.2.0")
        .assert_stderr("aeron.dir");
}

#[test]
fn restarted_driver_reuses_the_directory() {
    let directory = Directory::new("again");
    Driver::start(directory.path(), &[])
        .stop("TERM")
        .assert_code(15);
    let outcome =
        Driver::start(directory.path(), &["aeron.dir.delete.on.shutdown=true"]).stop("INT");
    outcome.assert_code(2).assert_silent();
    assert!(!directory.path().exists());
}

#[test]
fn version_argument_prints_the_version_line() {
    let outcome = run(&mut taran(&["driver", "-v"]));
    outcome.assert_code(0).assert_silent();
    assert!(
        outcome.stdout.contains("<aeron version=1.51.0 "),
        "{outcome:?}"
    );
    assert!(
        outcome.stdout.contains(" major 1 minor 51 patch 0 git "),
        "{outcome:?}"
    );
    assert_eq!(outcome.stdout.lines().count(), 1);
}
