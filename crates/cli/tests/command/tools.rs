// SPDX-License-Identifier: Apache-2.0
//! `taran stat`, `taran errors` and `taran version`, with drivers that run, have shut down, died, or never existed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use taran_core::clock::{Clock, SystemClock};
use taran_core::error_log::ErrorLog;
use taran_protocol::cnc::Version;

use crate::process::{Directory, Driver, Outcome, forge, run, taran};

fn on(directory: &Directory, arguments: &[&str]) -> Outcome {
    run(taran(arguments).env("AERON_DIR", directory.path()))
}

#[test]
fn stat_prints_a_header_and_a_line_for_each_counter() {
    let directory = Directory::new("stat");
    let driver = Driver::start(directory.path(), &[]);
    let outcome = on(&directory, &["stat", "--watch", "false"]);
    outcome.assert_code(0).assert_silent();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let header = format!(
        " - Taran Stat (CnC v0.2.0), pid {}, heartbeat age ",
        driver.pid()
    );
    assert!(
        lines[0].contains(&header) && lines[0].ends_with("ms"),
        "{outcome:?}"
    );
    assert_eq!(lines[1], "=".repeat(70));
    assert_eq!(lines[2], " 0:                          0 - Bytes sent");
    let ids: Vec<usize> = lines[2..]
        .iter()
        .map(|line| line.split(':').next().unwrap().trim().parse().unwrap())
        .collect();
    assert!(ids.len() >= 46 && ids.is_sorted(), "{outcome:?}");

    let filtered = on(
        &directory,
        &[
            "stat",
            "-w",
            "false",
            "--type",
            "^0$",
            "--identity",
            "^1[0-2]$",
        ],
    );
    filtered.assert_code(0);
    assert_eq!(filtered.stdout.lines().count(), 5, "{filtered:?}");
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_once_prints_rates_of_counters_that_are_not_zero() {
    let directory = Directory::new("rates");
    let driver = Driver::start(directory.path(), &[]);
    let _traffic = crate::traffic::Traffic::over_udp(directory.path(), 1001, 3);
    let once = ["stat", "--once", "--rates", "--nonzero", "-u", "20"];
    let outcome = run(taran(&once).env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    // The first refresh has no rates, the second one has.
    let refreshes: Vec<&str> = outcome.stdout.split("\n\n").collect();
    assert_eq!(refreshes.len(), 2, "{outcome:?}");
    let columns = |refresh: &str| -> Vec<(String, String)> {
        let lines = refresh.lines().skip(2);
        lines
            .map(|line| {
                let mut words = line.split_whitespace().skip(1).map(str::to_owned);
                (words.next().unwrap(), words.next().unwrap())
            })
            .collect()
    };
    for (value, rate) in columns(refreshes[0]) {
        assert_ne!(value, "0");
        assert_eq!(rate, "-/s");
    }
    let second = columns(refreshes[1]);
    assert!(second.iter().any(|(_, rate)| rate == "0/s"), "{outcome:?}");
    assert!(second.iter().all(|(value, _)| value != "0"), "{outcome:?}");
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_watch_ends_when_its_output_is_closed() {
    let directory = Directory::new("watch");
    let driver = Driver::start(directory.path(), &[]);
    let mut stat = taran(&["stat", "-u", "1"])
        .env("AERON_DIR", directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut headers = 0;
    let mut lines = BufReader::new(stat.stdout.take().unwrap()).lines();
    while headers < 3 {
        headers += usize::from(lines.next().unwrap().unwrap().contains("Taran Stat"));
    }
    drop(lines);
    let output = stat.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &[][..])
    );
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_and_errors_show_files_of_an_ended_driver() {
    let directory = Directory::new("left");
    let driver = Driver::start(directory.path(), &[]);
    let pid = driver.pid().to_string();
    driver.stop("TERM").assert_code(15);
    for tool in ["stat", "errors"] {
        let outcome = on(&directory, &[tool]);
        outcome
            .assert_code(1)
            .assert_stderr("has shut down")
            .assert_stderr(&pid);
        assert!(!outcome.stdout.is_empty());
    }
}

#[test]
fn killed_driver_is_reported_and_its_errors_are_kept() {
    let directory = Directory::new("died");
    let (_region, cnc) = forge(directory.path(), 1_000);
    let mut log = ErrorLog::open(cnc.error_log.clone());
    log.record(1_000, 0, "last words").unwrap();
    for tool in ["stat", "errors"] {
        let outcome = on(&directory, &[tool]);
        outcome
            .assert_code(1)
            .assert_stderr("last heartbeat")
            .assert_stderr("pid 4711");
    }
    assert!(on(&directory, &["errors"]).stdout.contains("last words"));
    // The next driver saves the errors beside the directory.
    Driver::start(directory.path(), &[])
        .stop("TERM")
        .assert_code(15)
        .assert_stderr("'taran errors --previous' shows them");
    let name = directory
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
        + "-";
    let saved: Vec<_> = std::fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|file| file.starts_with(&name))
        })
        .collect();
    assert_eq!(saved.len(), 1);
    let text = std::fs::read_to_string(saved[0].path()).unwrap();
    std::fs::remove_file(saved[0].path()).unwrap();
    assert!(text.contains("last words"), "{text}");
}

#[test]
fn stat_and_errors_without_driver_explain_what_to_do() {
    let directory = Directory::new("none");
    for tool in ["stat", "errors"] {
        let outcome = on(&directory, &[tool, "-t", "1"]);
        outcome
            .assert_code(1)
            .assert_stderr("no driver is running")
            .assert_stderr("taran driver")
            .assert_stderr(&directory.path().display().to_string());
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn invalid_cnc_files_are_rejected() {
    let directory = Directory::new("version");
    let (region, _cnc) = forge(directory.path(), 1_000);
    region.write(0, &Version::new(1, 0, 0).0.to_le_bytes());
    for tool in ["stat", "errors"] {
        on(&directory, &[tool])
            .assert_code(1)
            .assert_stderr("version 1.0.0")
            .assert_stderr("0.2.0");
    }
    drop(region);
    for garbage in ["", "short", &"x".repeat(200), &"\u{1}\0\0\0".repeat(100)] {
        directory.file("cnc.dat", garbage);
        for tool in ["stat", "errors"] {
            let outcome = on(&directory, &[tool, "-t", "1"]);
            outcome.assert_code(1).assert_stderr("cnc.dat");
        }
    }
}

#[test]
fn errors_lists_times_and_counts() {
    let directory = Directory::new("errors");
    let now = SystemClock::new().now().epoch_millis;
    let (_region, cnc) = forge(directory.path(), now);
    let mut log = ErrorLog::open(cnc.error_log.clone());
    for text in ["first", "second", "first"] {
        log.record(now, 0, text).unwrap();
    }
    let outcome = on(&directory, &["errors"]);
    outcome.assert_code(0).assert_silent();
    assert!(
        outcome.stdout.starts_with("***\n2 observations from "),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains(" for:\nfirst"), "{outcome:?}");
    assert!(
        outcome
            .stdout
            .ends_with("\n\n2 distinct errors observed.\n"),
        "{outcome:?}"
    );

    let file = directory.path().join("cnc.dat").display().to_string();
    let before = [
        &cnc.to_driver,
        &cnc.to_clients,
        &cnc.counters_metadata,
        &cnc.counters_values,
    ];
    let offset = 128 + before.iter().map(|section| section.len()).sum::<usize>();
    let from_file = run(&mut taran(&[
        "errors",
        "-f",
        &file,
        "-o",
        &offset.to_string(),
    ]));
    from_file.assert_code(0).assert_silent();
    assert_eq!(from_file.stdout, outcome.stdout);

    run(&mut taran(&["errors", "-f", &file, "-o", "999999999999"]))
        .assert_code(1)
        .assert_stderr("offset 999999999999");
    run(&mut taran(&["errors", "-f", "/nowhere"]))
        .assert_code(1)
        .assert_stderr("/nowhere");
}

#[test]
fn version_prints_the_versions() {
    for arguments in [&["version"][..], &["--version"]] {
        let outcome = run(&mut taran(arguments));
        outcome.assert_code(0).assert_silent();
        assert!(
            outcome.stdout.contains(env!("CARGO_PKG_VERSION")),
            "{outcome:?}"
        );
    }
    assert!(
        run(&mut taran(&["version"]))
            .stdout
            .contains("Aeron 1.51.0")
    );
}

#[test]
fn incorrect_usage_exits_with_status_2() {
    for arguments in [
        &["stat", "--type", "("][..],
        &["stat", "--watch", "perhaps"],
        &["stat", "-u", "soon"],
        &["errors", "-o", "5"],
        &["nonsense"],
        &[],
    ] {
        let outcome = run(&mut taran(arguments));
        outcome.assert_code(2);
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn every_command_prints_help() {
    for arguments in [
        &["--help"][..],
        &["driver", "--help"],
        &["stat", "--help"],
        &["errors", "-h"],
        &["version", "-h"],
    ] {
        let outcome = run(&mut taran(arguments));
        outcome.assert_code(0).assert_silent();
        assert!(outcome.stdout.contains("Usage: taran"), "{outcome:?}");
    }
}
