// SPDX-License-Identifier: Apache-2.0
//! Official readers on the directory of a Taran driver, and its responses to the official client.

use crate::drivers::Driver;
use crate::exchange::{connect, udp};
use crate::java::{self, argument};
use crate::require_java;

fn run(program: &str, driver: &Driver, more: &[String]) -> Vec<String> {
    let mut arguments = vec![argument("dir", driver.dir().display())];
    arguments.extend_from_slice(more);
    let mut said = java::start(program, &arguments).finish();
    // Skips warnings of newer virtual machines about the jar.
    said.retain(|line| !line.starts_with("stderr: "));
    said
}

#[test]
fn official_counters_reader_reads_taran_counters() {
    require_java!();
    let driver = Driver::taran("counters", &[]);
    let client = connect(driver.dir());
    let channel = udp("");
    let _subscription = client.add_subscription(&channel, 5).unwrap();
    let publication = client.add_publication(&channel, 5).unwrap();
    let session = publication.session_id();
    crate::exchange::await_true("connection", || publication.is_connected());

    let said = run("counters", &driver, &[]);
    for (id, label) in [
        (0, "Bytes sent"),
        (14, "Invalid packets"),
        (18, "Sender flow control limits, i.e. back-pressure events"),
        (22, "ControllableIdleStrategy status"),
        (45, "Failed offers to AsyncExecutorProxy"),
    ] {
        let line = said
            .iter()
            .find(|line| line.starts_with(&format!("COUNTER {id} 0 {id} -1 ")))
            .unwrap_or_else(|| panic!("no system counter {id} in {said:#?}"));
        assert!(line.ends_with(label), "{line}");
    }
    let registration = publication.registration_id();
    for (type_id, name) in [
        (1, "pub-lmt"),
        (2, "snd-pos"),
        (9, "snd-lmt"),
        (12, "pub-pos (concurrent)"),
        (13, "snd-bpe"),
        (19, "snd-naks-received"),
    ] {
        let label = format!("{name}: {registration} {session} 5 {channel}");
        assert!(
            said.iter().any(|line| {
                let fields: Vec<&str> = line.splitn(7, ' ').collect();
                fields[0] == "COUNTER" && fields[2] == type_id.to_string() && fields[6] == label
            }),
            "no {label:?} in {said:#?}"
        );
    }
    for name in [
        "sub-pos",
        "rcv-hwm",
        "rcv-pos",
        "rcv-naks-sent",
        "snd-channel",
        "rcv-channel",
    ] {
        assert!(
            said.iter().any(|line| line.contains(&format!(" {name}: "))),
            "no {name} in {said:#?}"
        );
    }
}

#[test]
fn official_liveness_check_accepts_taran_driver() {
    require_java!();
    let driver = Driver::taran("alive", &[]);
    let _client = connect(driver.dir());
    assert_eq!(run("alive", &driver, &[]), ["ALIVE true"]);
}

#[test]
fn official_error_reader_reads_taran_error_log() {
    require_java!();
    let driver = Driver::taran("errors", &[]);
    driver.expect_error("aeron:udp?endpoint=localhost:0");
    let client = connect(driver.dir());
    assert_eq!(run("errors", &driver, &[]), ["DISTINCT 0"]);
    for _ in 0..3 {
        let refused = client.add_publication("aeron:udp?endpoint=localhost:0", 1);
        assert!(refused.is_err());
    }
    let said = run("errors", &driver, &[]);
    assert_eq!(
        said.last().map(String::as_str),
        Some("DISTINCT 1"),
        "{said:#?}"
    );
    assert!(said[0].starts_with("ERROR 3 "), "{said:#?}");
}

/// The codes are those of the C driver (docs/spec/uri-and-configuration.md §1.14).
#[test]
fn official_client_receives_codes_of_rejected_channels() {
    require_java!();
    let driver = Driver::taran("refused", &[]);
    driver.expect_error("channel=aeron:");
    let channels = [
        ("aeron:udp?endpoint=localhost:0", "11"),
        ("aeron:udp", "1"),
        ("aeron:udp?endpoint=localhost", "11"),
        ("aeron:udp?endpoint=localhost:40001|mtu=1400", "11"),
        ("aeron:udp?endpoint=localhost:40001|term-length=100k", "11"),
        ("aeron:udp?endpoint=nosuch.invalid:40001", "9"),
        ("aeron:ipc?session-id=abc", "11"),
    ];
    let list: Vec<&str> = channels.iter().map(|(channel, _)| *channel).collect();
    let said = run("fails", &driver, &[argument("channels", list.join(" "))]);
    for ((channel, code), line) in channels.iter().zip(&said) {
        assert!(
            line.starts_with(&format!("REFUSED {code} {channel} ")),
            "{channel} should be refused with code {code}: {line}"
        );
    }
    assert_eq!(said.len(), channels.len(), "{said:#?}");
}

#[test]
fn official_client_terminates_taran_driver_when_allowed() {
    require_java!();
    // Set for every Taran driver in these tests.
    let driver = Driver::taran("terminate", &[]);
    drop(connect(driver.dir()));
    driver.expect_end();
    assert_eq!(run("terminate", &driver, &[]), ["REQUESTED true"]);
    let dir = driver.dir().to_owned();
    crate::exchange::await_true("the driver to remove its directory", || !dir.exists());
}

/// The reverse: Taran tools on the directory of the official driver.
#[test]
fn taran_tools_read_official_driver() {
    require_java!();
    let driver = Driver::official("readers", &[]);
    let client = connect(driver.dir());
    let channel = udp("");
    let mut subscription = client.add_subscription(&channel, 5).unwrap();
    let publication = client.add_publication(&channel, 5).unwrap();
    crate::exchange::await_true("connection", || publication.is_connected());
    crate::exchange::await_true("room", || publication.offer(b"a message").is_ok());
    crate::exchange::await_true("a message", || {
        subscription.poll(|_, _| (), 1).unwrap() == 1
    });
    let counters = client.counters();
    assert_eq!(counters.label(0).as_deref(), Some("Bytes sent"));
    assert!(counters.value(0).unwrap() > 0);
    assert!(
        counters
            .find_by_type_and_registration(1, publication.registration_id())
            .is_some(),
        "no publisher limit"
    );
    let _ = client
        .add_publication("aeron:udp?endpoint=localhost:0", 1)
        .unwrap_err();
    let tool = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_taran"))
            .args(arguments)
            .arg("--aeron-dir")
            .arg(driver.dir())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(tool(&["stat", "--watch", "false"]).contains("Bytes sent"));
    assert!(tool(&["errors"]).contains("1 observations"));
    let streams = tool(&["streams"]);
    for name in ["pub-lmt", "snd-pos", "rcv-hwm", "sub-pos"] {
        assert!(
            streams.contains(&format!(" {name}:")),
            "no {name} in {streams}"
        );
    }
    assert!(
        streams.contains(&format!(" channel={channel} : ")),
        "{streams}"
    );
    let backlog = tool(&["backlog"]);
    assert!(backlog.contains("└─subscriber "), "{backlog}");
    assert!(tool(&["loss"]).ends_with("0 loss entries\n"));
    let info = tool(&["driver-info"]);
    assert!(
        info.contains("   state: alive\n") && info.contains("software: version=1.51.0"),
        "{info}"
    );
    let metrics = tool(&["stat", "--openmetrics"]);
    assert!(metrics.contains("\naeron_driver_alive 1\n"), "{metrics}");
    let logs = driver.dir().join("publications");
    let log = logs.join(format!("{}.logbuffer", publication.registration_id()));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_taran"))
        .args(["log", "--format", "ascii"])
        .arg(log)
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("\na message\n"), "{shown}");
}
