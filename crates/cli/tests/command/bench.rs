// SPDX-License-Identifier: Apache-2.0
//! `taran bench`: roles, exit codes, output and files. Measured figures are not checked, because the machine may be
//! busy.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use taran::{Action, Client};

use crate::own_address::own_address;
use crate::process::{Directory, Driver, Outcome, Process, run, signal, taran};
use crate::traffic::PORT;

/// A rate that even a busy machine can hold, or nearly so.
const LOW_LOAD: &[&str] = &[
    "--rate",
    "500",
    "--duration",
    "400ms",
    "--warmup",
    "100ms",
    "--cpus",
    "none",
];
const CLIENT_TO_SERVER: i32 = 1_001;
const SERVER_TO_CLIENT: i32 = 1_002;

/// Returns two channels that no other process uses.
fn channels() -> [String; 2] {
    [(); 2].map(|()| format!("aeron:udp?endpoint={}:{PORT}|term-length=1m", own_address()))
}

/// Returns a `taran bench echo` command at a low rate, with its histogram in `directory`.
fn echo(directory: &Directory, channels: &[String; 2], arguments: &[&str]) -> Command {
    std::fs::create_dir_all(directory.path()).expect("the directory can be made");
    let mut command = taran(&["bench", "echo"]);
    command
        .current_dir(directory.path())
        .args(["--channel", &channels[0], "--reply-channel", &channels[1]])
        .args(LOW_LOAD)
        .args(arguments);
    command
}

/// Checks that every message was received. Whether the rate was held depends on the load of the machine.
#[track_caller]
fn assert_complete(outcome: &Outcome) {
    assert!(matches!(outcome.code, Some(0 | 4)), "{outcome:?}");
    for text in [
        "messages sent                   200",
        "messages received               200",
        "p99.99",
        "verdict: ",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
}

#[test]
fn echo_prints_a_table_and_writes_a_histogram() {
    let directory = Directory::new("echo");
    let outcome = run(&mut echo(&directory, &channels(), &[]));
    assert_complete(&outcome);
    assert!(
        outcome.stdout.starts_with("echo of 288 bytes at 500/s"),
        "{outcome:?}"
    );
    assert!(
        outcome.stdout.contains("histogram: taran-echo.hgrm"),
        "{outcome:?}"
    );
    let histogram = std::fs::read_to_string(directory.path().join("taran-echo.hgrm")).unwrap();
    let columns: Vec<&str> = histogram
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(
        columns,
        ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    );
    assert!(
        histogram.contains("Total count    =          200]"),
        "{histogram}"
    );
}

#[test]
fn echo_runs_in_every_threading_mode() {
    for mode in ["shared", "SHARED_NETWORK", "DEDICATED"] {
        let directory = Directory::new("modes");
        let outcome = run(&mut echo(
            &directory,
            &channels(),
            &[
                "--threading",
                mode,
                "--quiet",
                "--driver-option",
                "aeron.term.buffer.length=1m",
            ],
        ));
        assert_complete(&outcome);
        outcome.assert_silent();
        assert!(outcome.stdout.contains(&mode.to_uppercase()), "{outcome:?}");
    }
}

#[test]
fn echo_over_ipc_with_batches_of_long_messages_completes() {
    let directory = Directory::new("ipc");
    std::fs::create_dir_all(directory.path()).unwrap();
    let mut command = taran(&[
        "bench",
        "echo",
        "--channel",
        "aeron:ipc?term-length=1m",
        "--length",
        "8k",
    ]);
    command.args([
        "--batch",
        "4",
        "--iterations",
        "2",
        "--output",
        "my.hgrm",
        "-q",
    ]);
    command.args([
        "--rate",
        "250",
        "--duration",
        "400ms",
        "--warmup",
        "0",
        "--cpus",
        "none",
    ]);
    let outcome = run(command.current_dir(directory.path()));
    assert_complete(&outcome);
    assert!(directory.path().join("my.hgrm").exists());
}

#[test]
fn echo_between_two_processes_on_a_running_driver_completes() {
    let home = Directory::new("two-driver");
    let driver = Driver::start(home.path(), &[]);
    let dir = home.path().display().to_string();
    let directory = Directory::new("two");
    let channels = channels();
    let server = Process::start(&mut echo(
        &directory,
        &channels,
        &["--role", "server", "--aeron-dir", &dir],
    ));
    let client = run(&mut echo(
        &directory,
        &channels,
        &["--role", "client", "--aeron-dir", &dir],
    ));
    assert_complete(&client);
    server.signal("INT");
    let server = server.wait();
    server.assert_code(0).assert_silent();
    assert!(server.stdout.contains("echoing"), "{server:?}");
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Returns true if the server has to send back the message with this number.
type EchoFilter = fn(u64) -> bool;

/// An echo server that sends back only the messages selected by a filter.
struct FilteringServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FilteringServer {
    fn start(dir: PathBuf, channels: &[String; 2], echoes: EchoFilter) -> FilteringServer {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, channels) = (Arc::clone(&stop), channels.clone());
        let thread = thread::spawn(move || {
            let client = Client::builder()
                .aeron_dir(dir)
                .connect()
                .expect("the driver runs");
            let mut replies = client
                .add_exclusive_publication(&channels[1], SERVER_TO_CLIENT)
                .expect("a publication is added");
            let mut requests = client
                .add_subscription(&channels[0], CLIENT_TO_SERVER)
                .expect("a subscription is added");
            let mut count = 0;
            while !stopped.load(Ordering::Relaxed) {
                let fragments = requests
                    .controlled_poll(
                        |message, _| {
                            if echoes(count)
                                && replies
                                    .offer(message)
                                    .is_err_and(|error| error.is_retryable())
                            {
                                return Action::Abort;
                            }
                            count += 1;
                            Action::Continue
                        },
                        10,
                    )
                    .expect("the client lives");
                if fragments == 0 {
                    thread::yield_now();
                }
            }
        });
        FilteringServer {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for FilteringServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn echo_with_losses_or_no_replies_has_distinct_exit_codes() {
    let home = Directory::new("picky-driver");
    let driver = Driver::start(home.path(), &[]);
    let dir = home.path().display().to_string();
    let cases: [(EchoFilter, i32, &str); 2] = [
        (|index| index % 2 == 0, 3, "lost or damaged"),
        (|_| false, 5, "no reply was received"),
    ];
    for (echoes, code, text) in cases {
        let channels = channels();
        let _server = FilteringServer::start(home.path().to_path_buf(), &channels, echoes);
        let directory = Directory::new("picky");
        let arguments = [
            "--role",
            "client",
            "--aeron-dir",
            &dir,
            "--patience",
            "10s",
            "--warmup",
            "0",
        ];
        let mut command = taran(&[
            "bench",
            "echo",
            "--rate",
            "500",
            "--duration",
            "400ms",
            "--cpus",
            "none",
            "-q",
        ]);
        std::fs::create_dir_all(directory.path()).unwrap();
        command.current_dir(directory.path()).args([
            "--channel",
            &channels[0],
            "--reply-channel",
            &channels[1],
        ]);
        let outcome = run(command.args(arguments));
        outcome.assert_code(code).assert_silent();
        assert!(outcome.stdout.contains(text), "{outcome:?}");
    }
    driver.stop("TERM").assert_code(15);
}

#[test]
fn echo_that_cannot_run_reports_the_reason() {
    let directory = Directory::new("cannot");
    let channels = channels();
    let cases: &[(&[&str], &str)] = &[
        (&["--role", "client", "--patience", "50ms"], "timed out"),
        (
            &["--aeron-dir", "/nowhere/at/all", "--patience", "50ms"],
            "/nowhere/at/all",
        ),
        (&["--output", "/nowhere/x.hgrm"], "/nowhere/x.hgrm"),
        (
            &["--driver-option", "aeron.mtu.length=1400"],
            "aeron.mtu.length=1400",
        ),
        (
            &["--driver-option", "aeron.mtu.lenght=8k"],
            "did you mean aeron.mtu.length",
        ),
        (&["--length", "100m"], "term-length"),
        (&["--cpus", "1000,1001"], "1000"),
    ];
    for (arguments, text) in cases {
        let mut command = echo(&directory, &channels, arguments);
        if arguments.contains(&"--aeron-dir") {
            // No driver ever starts in this directory.
            command.env("AERON_DRIVER_TIMEOUT", "200");
        }
        let outcome = run(&mut command);
        outcome
            .assert_code(1)
            .assert_stderr("taran: ")
            .assert_stderr(text);
        assert!(
            !directory.path().join("taran-echo.hgrm").exists(),
            "{arguments:?}"
        );
    }
}

#[test]
fn incorrect_usage_exits_with_status_2() {
    for arguments in [
        &["bench"][..],
        &["bench", "echo", "--rate", "0"],
        &["bench", "echo", "--duration", "5"],
        &["bench", "echo", "--duration", "0"],
        &["bench", "echo", "--length", "8"],
        &["bench", "echo", "--batch", "0"],
        &["bench", "echo", "--threading", "FAST"],
        &[
            "bench",
            "echo",
            "--channel",
            "aeron:udp?endpoint=localhost:1",
        ],
        &["bench", "echo", "--aeron-dir", "x", "--threading", "SHARED"],
        &["bench", "echo", "--driver-option", "x"],
        &["bench", "stream", "--length", "15"],
        &["bench", "stream", "--duration", "0"],
        &["bench", "stream", "--role", "client"],
    ] {
        let outcome = run(&mut taran(arguments));
        outcome.assert_code(2);
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn interrupted_benchmark_removes_its_driver_directories() {
    // Directories of embedded drivers contain the user name.
    let user = format!("taran-test-{}-interrupted", std::process::id());
    let left = || {
        std::fs::read_dir("/dev/shm")
            .expect("there is shared memory")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().contains(&user))
            .count()
    };
    for benchmark in ["echo", "stream"] {
        let mut command = taran(&[
            "bench",
            benchmark,
            "--channel",
            "aeron:ipc",
            "--cpus",
            "none",
            "--duration",
            "100s",
        ]);
        let process = Process::start(command.env("USER", &user).current_dir(std::env::temp_dir()));
        while left() == 0 {
            thread::yield_now();
        }
        process.signal("INT");
        process.wait().assert_code(130).assert_stderr("interrupted");
        assert_eq!(left(), 0);
    }
}

#[test]
fn interrupted_benchmark_prints_and_writes_what_was_measured() {
    let directory = Directory::new("partial");
    let mut command = echo(
        &directory,
        &channels(),
        &[
            "--duration",
            "100s",
            "--warmup",
            "0s",
            "--output",
            "partial.hgrm",
        ],
    );
    let mut echo = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress tells that messages were sent, and some have been received.
    let mut progress = BufReader::new(echo.stderr.take().unwrap()).lines();
    progress.next().expect("progress").expect("a text");
    signal(echo.id(), "INT");
    progress.for_each(drop);
    let mut text = String::new();
    echo.stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(echo.wait().unwrap().code(), Some(130), "{text}");
    for expected in [
        "messages received",
        "p99.99",
        "interrupted: the figures are",
    ] {
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
    let histogram = std::fs::metadata(directory.path().join("partial.hgrm"));
    assert!(histogram.unwrap().len() > 0);
}

#[test]
fn stream_between_two_processes_loses_nothing() {
    let [udp, _] = channels();
    for arguments in [
        &["--channel", "aeron:ipc?term-length=1m"][..],
        &["--channel", &udp, "--length", "1344"],
        &[
            "--channel",
            "aeron:ipc?term-length=1m",
            "--threading",
            "SHARED",
            "--length",
            "32",
        ],
    ] {
        let mut command = taran(&[
            "bench",
            "stream",
            "--duration",
            "200ms",
            "--warmup",
            "50ms",
            "--cpus",
            "none",
        ]);
        let outcome = run(command.args(arguments));
        outcome.assert_code(0).assert_silent();
        for text in [
            "sent, msg/s",
            "messages received",
            "missing or damaged                0",
            "received, MiB/s",
        ] {
            assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
        }
    }
}

#[test]
fn stream_through_a_running_driver_loses_nothing() {
    let home = Directory::new("stream-driver");
    let driver = Driver::start(home.path(), &[]);
    let dir = home.path().display().to_string();
    let [udp, _] = channels();
    for channel in ["aeron:ipc?term-length=1m", &udp] {
        let mut command = taran(&[
            "bench",
            "stream",
            "--duration",
            "200ms",
            "--warmup",
            "50ms",
            "--cpus",
            "none",
        ]);
        let outcome = run(command.args(["--channel", channel, "--aeron-dir", &dir]));
        outcome.assert_code(0).assert_silent();
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn stream_with_invalid_length_in_the_subscriber_fails() {
    let outcome = run(&mut taran(&[
        "bench",
        "stream",
        "--channel",
        "aeron:ipc?term-length=64k",
        "--length",
        "5000",
        "--cpus",
        "none",
    ]));
    outcome.assert_code(1).assert_stderr("increase its mtu");
}
