// SPDX-License-Identifier: Apache-2.0
//! The errors of a driver that was killed: where the next one saves them, how many it keeps, and how they are shown.

use std::fs;
use std::path::Path;

use crate::process::{Directory, Driver, run, taran};

/// Starts a driver that logs an error, and kills it.
fn leave_errors(directory: &Path, options: &[&str]) {
    let driver = Driver::start(directory, options);
    let client = taran::Client::builder()
        .aeron_dir(directory)
        .connect()
        .expect("the driver takes clients");
    client
        .add_subscription("aeron:udp?endpoint=", 1)
        .expect_err("the channel is malformed");
    drop(client);
    driver.stop("KILL");
}

#[test]
fn next_driver_says_where_the_errors_went_and_previous_shows_them() {
    let directory = Directory::new("previous");
    let saved = Directory::new("previous-errors");
    let to = format!("taran.errors.dir={}", saved.path().display());
    let options = [to.as_str(), "taran.errors.kept=2"];
    for _ in 0..4 {
        leave_errors(directory.path(), &options);
    }
    let outcome = Driver::start(directory.path(), &options).stop("TERM");
    outcome
        .assert_code(15)
        .assert_stderr("has ended and left 1 distinct errors, which are saved in ")
        .assert_stderr("'taran errors --previous' shows them");
    let files: Vec<String> = fs::read_dir(saved.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(
        files.iter().all(|file| !file.contains([' ', ':'])),
        "{files:?}"
    );
    let named = files.iter().any(|file| outcome.stderr.contains(file));
    assert!(named, "{outcome:?}");

    let shown = run(taran(&["errors", "--previous"])
        .env("AERON_DIR", directory.path())
        .env("TARAN_ERRORS_DIR", saved.path()));
    shown.assert_code(0).assert_silent();
    for text in ["endpoint= has no value", "1 distinct errors observed."] {
        assert!(shown.stdout.contains(text), "no {text:?} in {shown:?}");
    }
    run(taran(&["errors", "--previous"]).env("AERON_DIR", directory.path()))
        .assert_code(1)
        .assert_stderr("--errors-dir");
}
