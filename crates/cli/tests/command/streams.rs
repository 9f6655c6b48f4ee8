// SPDX-License-Identifier: Apache-2.0
//! `taran streams`, `backlog`, `loss`, `log` and `driver-info`, with a running driver and with the files of one that
//! has ended.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use taran::Client;
use taran_core::clock::{Clock, SystemClock};
use taran_core::loss_report::LossReport;
use taran_core::memory::{CreateOptions, FileStorage, Storage};

use crate::process::{Directory, Driver, Outcome, forge, run, taran};
use crate::traffic::{Traffic, await_true};

const IPC: &str = "aeron:ipc?term-length=64k";

const TOOLS: [&str; 4] = ["streams", "backlog", "loss", "driver-info"];

fn on(directory: &Directory, arguments: &[&str]) -> Outcome {
    run(taran(arguments).env("AERON_DIR", directory.path()))
}

#[track_caller]
fn json(outcome: &Outcome) -> Value {
    outcome.assert_silent();
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// Returns the only object of a list that belongs to the stream.
#[track_caller]
fn of_stream<'a>(list: &'a Value, traffic: &Traffic) -> &'a Value {
    list.as_array()
        .expect("a list")
        .iter()
        .find(|item| item["stream_id"] == traffic.stream_id)
        .expect("the stream is there")
}

#[test]
fn streams_lists_streams_with_their_counters() {
    let directory = Directory::new("streams");
    let driver = Driver::start(directory.path(), &[]);
    let network = Traffic::over_udp(directory.path(), 1001, 3);
    let shared = Traffic::over_ipc(directory.path(), 1002, 3);
    let outcome = on(&directory, &["streams"]);
    outcome.assert_code(0).assert_silent();
    let line = outcome
        .stdout
        .lines()
        .find(|line| line.contains(" streamId=1001 "))
        .unwrap();
    assert!(line.starts_with("sessionId="), "{line}");
    assert!(
        line.contains(&format!(" channel={} : ", network.channel)),
        "{line}"
    );
    let registration = network.publication.registration_id();
    for counter in ["pub-lmt", "snd-pos", "snd-lmt", "snd-bpe"] {
        assert!(
            line.contains(&format!(" {counter}:{registration}:")),
            "{line}"
        );
    }
    for counter in ["rcv-hwm", "rcv-pos", "sub-pos"] {
        assert!(line.contains(&format!(" {counter}:")), "{line}");
    }

    let list = json(&on(&directory, &["streams", "--json"]));
    let stream = of_stream(&list, &shared);
    assert_eq!(stream["channel"], "aeron:ipc?term-length=64k");
    let position = shared.publication.position();
    let read = stream["counters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|counter| counter["name"] == "sub-pos")
        .unwrap();
    assert_eq!(read["value"], position);
    drop((network, shared));
    driver.stop("TERM").assert_code(15);
}

#[test]
fn backlog_counts_unread_bytes() {
    let directory = Directory::new("backlog");
    let driver = Driver::start(directory.path(), &["aeron.timer.interval=10ms"]);
    let mut traffic = Traffic::over_udp(directory.path(), 1001, 1);
    traffic.offer(&[7; 100]);
    await_true("the message to arrive", || {
        let list = json(&on(&directory, &["backlog", "--json"]));
        let stream = of_stream(&list, &traffic);
        stream["subscribers"][0]["backlog"] == 160 && stream["sender"]["backlog"] == 0
    });
    let outcome = on(&directory, &["backlog"]);
    outcome.assert_code(0).assert_silent();
    for text in [
        "┌─publisher ",
        " bytes before back-pressure)",
        "├─sender ",
        "├─receiver ",
        "└─subscriber ",
        " has 160 backlog bytes\n",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
    drop(traffic);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn backlog_names_the_subscriber_that_limits_a_publication() {
    let directory = Directory::new("limited");
    let driver = Driver::start(directory.path(), &["aeron.timer.interval=10ms"]);
    let client = Client::builder()
        .aeron_dir(directory.path())
        .client_name("risk-engine")
        .connect()
        .unwrap();
    let subscription = client.add_subscription(IPC, 1001).unwrap();
    let publication = client.add_publication(IPC, 1001).unwrap();
    await_true("a subscriber", || publication.is_connected());
    while publication.offer(&[0; 1_000]).is_ok() {}
    // One without a subscriber, and one that may write.
    let unread = client.add_publication(IPC, 1002).unwrap();
    let _idle = (
        client.add_subscription(IPC, 1003).unwrap(),
        client.add_publication(IPC, 1003).unwrap(),
    );
    let verdict = format!(
        "limited by subscriber {} (client {} \"risk-engine\"), ",
        subscription.registration_id(),
        client.client_id()
    );
    await_true("the verdict", || {
        let outcome = on(&directory, &["backlog", "--sample", "50"]);
        outcome.assert_code(0).assert_silent();
        let line = outcome
            .stdout
            .lines()
            .find(|line| line.starts_with(&verdict));
        line.is_some_and(|line| line.contains(" bytes behind, not read for 0."))
            && outcome
                .stdout
                .contains("no receiver: no subscriber is connected")
            && outcome
                .stdout
                .contains("not limited: the publisher may write 32,768 bytes")
    });
    assert_eq!(publication.limited_by().kind(), "subscriber");
    assert_eq!(unread.limited_by().kind(), "no_receiver");
    let metrics = on(&directory, &["stat", "--openmetrics"]).stdout;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("aeron_publication_limited{") && line.contains("=\"1001\""))
        .expect("the metric");
    for text in [
        "limited_by=\"subscriber\"",
        "limiting_client_name=\"risk-engine\"} 1",
    ] {
        assert!(line.contains(text), "no {text} in {line}");
    }
    assert!(metrics.contains("client_name=\"risk-engine\""), "{metrics}");

    // Live, each refresh knows for how long the subscriber has not read.
    let mut live = taran(&["backlog", "-w", "-u", "20ms", "--json"])
        .env("AERON_DIR", directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(live.stdout.take().unwrap()).lines();
    let still: Vec<u64> = lines
        .take(3)
        .filter_map(|line| {
            let list: Value = serde_json::from_str(&line.unwrap()).expect("JSON");
            let stream = list
                .as_array()
                .unwrap()
                .iter()
                .find(|s| s["stream_id"] == 1001);
            stream.unwrap()["limited_by"]["still_ms"].as_u64()
        })
        .collect();
    assert!(
        still.len() == 2 && still[0] >= 20 && still[1] >= still[0] + 20,
        "{still:?}"
    );
    let _ = live.kill();
    let _ = live.wait();
    drop(client);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stream_tools_say_when_there_are_no_streams() {
    let directory = Directory::new("none");
    let driver = Driver::start(directory.path(), &[]);
    for tool in ["streams", "backlog"] {
        let outcome = on(&directory, &[tool]);
        outcome.assert_code(0).assert_silent();
        assert_eq!(outcome.stdout, "no streams\n");
    }
    driver.stop("TERM").assert_code(15);
}

#[test]
fn intervals_of_zero_are_refused() {
    for arguments in [
        ["stat", "-w", "true", "-u", "0"],
        ["backlog", "-w", "-u", "0", "--json"],
    ] {
        run(&mut taran(&arguments))
            .assert_code(2)
            .assert_stderr("needs an interval above 0");
    }
}

#[test]
fn loss_lists_entries() {
    let directory = Directory::new("loss");
    let driver = Driver::start(directory.path(), &[]);
    let nothing = on(&directory, &["loss"]);
    nothing.assert_code(0).assert_silent();
    assert!(nothing.stdout.ends_with("0 loss entries\n"), "{nothing:?}");
    assert_eq!(
        json(&on(&directory, &["loss", "--json"])),
        serde_json::json!([])
    );
    driver.stop("TERM").assert_code(15);

    let file = directory.path().join("other-report.dat");
    let region = FileStorage
        .create(&file, 4096, CreateOptions::SPARSE)
        .unwrap();
    let mut report = LossReport::open(region);
    let entry = report.create_entry(
        1408,
        1_700_000_000_000,
        -5,
        1001,
        "aeron:udp?endpoint=localhost:1",
        "127.0.0.1:5",
    );
    entry.unwrap().record(32, 1_700_000_000_500);
    let file = file.display().to_string();
    let outcome = run(&mut taran(&["loss", "-f", &file]));
    outcome.assert_code(0).assert_silent();
    assert!(outcome.stdout.contains("\n2,1440,2023-11-1"), "{outcome:?}");
    assert!(
        outcome
            .stdout
            .contains(",-5,1001,aeron:udp?endpoint=localhost:1,127.0.0.1:5\n1 loss entries\n"),
        "{outcome:?}"
    );
    let list = json(&run(&mut taran(&["loss", "-f", &file, "--json"])));
    assert_eq!(list[0]["bytes_lost"], 1440);
    assert_eq!(list[0]["last_observation_ms"], 1_700_000_000_500_i64);
    run(&mut taran(&["loss", "-f", "/nowhere"]))
        .assert_code(1)
        .assert_stderr("/nowhere");
}

/// Returns the path of a publication's log buffer.
fn log_of(directory: &Path, traffic: &Traffic) -> PathBuf {
    directory.join("publications").join(format!(
        "{}.logbuffer",
        traffic.publication.registration_id()
    ))
}

#[test]
fn log_prints_metadata_and_frames() {
    let directory = Directory::new("log");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_ipc(directory.path(), 1003, 3);
    let file = log_of(directory.path(), &traffic).display().to_string();
    let outcome = run(&mut taran(&["log", &file, "--format", "ascii"]));
    outcome.assert_code(0).assert_silent();
    for text in [
        "            Kind: concurrent publication\n",
        "    Is connected: true\n",
        "     Term length: 65536\n",
        "      MTU length: 1408\n",
        "    EOS position: none yet\n",
        " streamId=1003 ",
        "\n0: type=DATA flags=11000000 frameLength=41 ",
        "\nmessage 0\n",
        "\nmessage 2\n",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
    let shortened = run(&mut taran(&["log", &file, "-b", "2"]));
    assert!(shortened.stdout.contains("\n6d65\n"), "{shortened:?}");
    let headers = run(&mut taran(&["log", &file, "-b", "0"]));
    assert!(!headers.stdout.contains("6d65"), "{headers:?}");

    let document = json(&run(&mut taran(&["log", &file, "--json"])));
    assert_eq!(document["stream_id"], 1003);
    assert_eq!(document["term_length"], 65_536);
    assert_eq!(document["terms"].as_array().unwrap().len(), 3);
    let frames = document["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 3);
    assert_eq!(frames[1]["offset"], 64);
    assert_eq!(frames[1]["payload_length"], 9);
    assert_eq!(frames[1]["payload"], "6d6573736167652031");
    drop(traffic);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn log_rejects_files_that_are_no_log_buffers() {
    let directory = Directory::new("no-log");
    run(&mut taran(&["log", "/nowhere/7.logbuffer"]))
        .assert_code(1)
        .assert_stderr("/nowhere/7.logbuffer")
        .assert_stderr("publications or images");
    for garbage in [
        "".to_owned(),
        "short".to_owned(),
        "x".repeat(200_000),
        "\u{1}".repeat(3 * 65_536 + 4_096),
    ] {
        let file = directory.file("7.logbuffer", &garbage);
        let outcome = run(&mut taran(&["log", &file.display().to_string()]));
        outcome.assert_code(1).assert_stderr("7.logbuffer");
        assert_eq!(outcome.stdout, "");
    }
    run(&mut taran(&["log"])).assert_code(2);
}

#[test]
fn driver_info_prints_identity_and_state() {
    let directory = Directory::new("info");
    let driver = Driver::start(directory.path(), &[]);
    let outcome = on(&directory, &["driver-info"]);
    outcome.assert_code(0).assert_silent();
    for text in [
        &format!("     pid: {}\n", driver.pid()),
        " version: 0.2.0\n",
        "   state: alive\n",
        "software: version=1.51.0 commit=",
        "cnc.dat\n",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
    let pid = on(&directory, &["driver-info", "-P"]);
    pid.assert_code(0);
    assert_eq!(pid.stdout, format!("{}\n", driver.pid()));
    let info = json(&on(&directory, &["driver-info", "--json"]));
    assert_eq!(info["pid"], driver.pid());
    assert_eq!(info["state"], "alive");
    assert!(info["heartbeat_age_ms"].as_i64().is_some());
    driver.stop("TERM").assert_code(15);

    let gone = on(&directory, &["driver-info", "--json"]);
    gone.assert_code(1).assert_stderr("has shut down");
    let info: Value = serde_json::from_str(&gone.stdout).unwrap();
    assert_eq!(info["state"], "shut down");
    assert_eq!(info["heartbeat_ms"], Value::Null);
}

#[test]
fn driver_info_terminates_the_driver_when_allowed() {
    let directory = Directory::new("end");
    let driver = Driver::start(
        directory.path(),
        &["aeron.driver.termination.validator=allow"],
    );
    let pid = driver.pid();
    let outcome = on(
        &directory,
        &["driver-info", "--terminate", "--token", "please"],
    );
    outcome.assert_code(0).assert_silent();
    assert_eq!(
        outcome.stdout,
        format!("the driver with pid {pid} has ended\n")
    );
    driver.wait().assert_code(0).assert_silent();
    on(&directory, &["driver-info", "--terminate"])
        .assert_code(1)
        .assert_stderr("has shut down");
}

#[test]
fn driver_info_reports_a_driver_that_does_not_terminate() {
    let directory = Directory::new("no-end");
    let driver = Driver::start(directory.path(), &[]);
    on(&directory, &["driver-info", "--terminate", "--wait", "50"])
        .assert_code(1)
        .assert_stderr("aeron.driver.termination.validator=allow")
        .assert_stderr(&driver.pid().to_string());
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stream_tools_show_files_of_an_ended_driver() {
    let directory = Directory::new("leftovers");
    Driver::start(directory.path(), &[])
        .stop("TERM")
        .assert_code(15);
    for tool in TOOLS {
        on(&directory, &[tool])
            .assert_code(1)
            .assert_stderr("has shut down");
        on(&directory, &[tool, "--json"]).assert_code(1);
    }
    let directory = Directory::new("no-report");
    let (_region, _cnc) = forge(directory.path(), SystemClock::new().now().epoch_millis);
    on(&directory, &["loss"])
        .assert_code(1)
        .assert_stderr("loss-report.dat");
    for tool in ["streams", "backlog", "driver-info"] {
        on(&directory, &[tool]).assert_code(0).assert_silent();
    }
}

#[test]
fn stream_tools_without_driver_fail() {
    let directory = Directory::new("no-driver");
    for tool in TOOLS {
        on(&directory, &[tool, "-t", "1"])
            .assert_code(1)
            .assert_stderr("no driver is running");
        on(&directory, &[tool, "--nonsense"]).assert_code(2);
        on(&directory, &[tool, "--help"])
            .assert_code(0)
            .assert_silent();
    }
}
