// SPDX-License-Identifier: Apache-2.0
//! `taran doctor`: exit codes, output formats, recorded machines.

use serde_json::Value;

use crate::process::{Directory, run, taran};

const CONTAINER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../doctor/tests/machines/container.txt"
);

#[test]
fn doctor_of_a_container_fails_and_says_how_to_mend() {
    let outcome = run(&mut taran(&[
        "doctor",
        "--replay",
        CONTAINER,
        "-d",
        "/dev/shm/x",
    ]));
    outcome.assert_code(4).assert_silent();
    for text in [
        "profile container, CPUs 4-5, interface eth0\n",
        "fail    shm ",
        "        why:      on a disk each message waits for write-back",
        "        for good: /etc/fstab: size=",
    ] {
        assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
    }
    let script = run(&mut taran(&[
        "doctor",
        "--replay",
        CONTAINER,
        "--fix-script",
    ]));
    script.assert_code(4).assert_silent();
    assert!(script.stdout.starts_with("#!/bin/sh\n"), "{script:?}");
}

#[test]
fn doctor_of_this_machine_is_json_and_replays_what_it_recorded() {
    let directory = Directory::new("doctor");
    let file = directory.file("machine.txt", "");
    let file = file.to_str().expect("a path");
    let live = run(&mut taran(&[
        "doctor",
        "--probe",
        "0",
        "--json",
        "--record-to",
        file,
    ]));
    let report: Value = serde_json::from_str(&live.stdout).expect("JSON");
    assert_eq!(report["schema"], "taran-doctor/1");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(31));
    assert!(
        report["cpus"]
            .as_array()
            .is_some_and(|cpus| !cpus.is_empty())
    );
    let again = run(&mut taran(&[
        "doctor", "--probe", "0", "--json", "--replay", file,
    ]));
    let replayed: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(replayed, report);
}

#[test]
fn doctor_with_wrong_values_is_incorrect_usage() {
    for arguments in [
        ["doctor", "--cpus", "3-1"],
        ["doctor", "--interface", "../x"],
        ["doctor", "--fsync", "3"],
        ["doctor", "--profile", "fast"],
    ] {
        run(&mut taran(&arguments)).assert_code(2);
    }
    run(&mut taran(&["doctor", "--replay", "/not/there"]))
        .assert_code(1)
        .assert_stderr("/not/there");
}
