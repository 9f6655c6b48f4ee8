// SPDX-License-Identifier: Apache-2.0
//! Tools on files with arbitrary contents. The tools show or reject what other processes wrote there, on one line where
//! the format has lines, and never crash.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use taran_core::clock::{Clock, SystemClock};
use taran_core::memory::Region;
use taran_protocol::cnc::Cnc;

use crate::metrics::check;
use crate::process::{Directory, Driver, Outcome, forge, run, taran};
use crate::traffic::Traffic;

/// Cases per kind of file, unless `TARAN_HOSTILE_CASES` is set. Each case runs several processes.
const CASES: u64 = 8;
const METADATA_LENGTH: usize = 512;
const VALUES_LENGTH: usize = 128;

/// Numbers whose sums and differences overflow, and arbitrary ones.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(i64::MIN),
        Just(i64::MIN + 1),
        Just(-1),
        Just(0),
        Just(i64::MAX),
        any::<i64>(),
        -100_000..100_000_i64,
    ]
}

/// Valid lengths, lengths at the end of their field, and invalid lengths.
fn length() -> impl Strategy<Value = i32> {
    prop_oneof![
        0..64_i32,
        90..120_i32,
        370..400_i32,
        Just(i32::MAX),
        Just(i32::MIN),
        any::<i32>(),
    ]
}

/// Texts of ordinary users and of attackers.
fn text(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    const PARTS: [&[u8]; 12] = [
        b"aeron:udp?endpoint=localhost:1|alias=",
        b"sub-pos: 1 2 3 aeron:ipc",
        b"\x1b[2J",
        b"\r\n",
        b"\0",
        b"\x07\x7f\t",
        b"\xc2\x9b31m",
        b"\"\\,{}=",
        b"\xff\xfe\xc0",
        b"# EOF\n",
        b": ",
        "é→".as_bytes(),
    ];
    let parts = vec(
        (0..PARTS.len()).prop_map(|part| PARTS[part].to_vec()),
        0..12,
    );
    let mixed = parts.prop_map(|parts| parts.concat());
    prop_oneof![mixed, vec(any::<u8>(), 0..longest)].prop_map(move |mut text| {
        text.truncate(longest);
        text
    })
}

/// The contents of a counter's records.
#[derive(Clone, Debug)]
struct Counter {
    state: i32,
    type_id: i32,
    /// Registration id, session id, stream id and length of the text in keys of streams and channels.
    ids: (i64, i32, i32, i32),
    key: Vec<u8>,
    label_length: i32,
    label: Vec<u8>,
    values: [i64; 4],
}

fn counter() -> impl Strategy<Value = Counter> {
    let state = prop_oneof![8 => Just(1), 1 => any::<i32>()];
    // Few distinct streams, so that several counters belong to the same one.
    let ids = (0..3_i64, 0..2_i32, 0..2_i32, length());
    let numbers = [number(), number(), number(), number()];
    let type_id = prop_oneof![8 => 0..25_i32, 1 => any::<i32>()];
    (state, type_id, ids, text(96), length(), text(380), numbers).prop_map(
        |(state, type_id, ids, key, label_length, label, values)| Counter {
            state,
            type_id,
            ids,
            key,
            label_length,
            label,
            values,
        },
    )
}

impl Counter {
    fn write(&self, id: usize, cnc: &Cnc) {
        let (metadata, values) = (id * METADATA_LENGTH, id * VALUES_LENGTH);
        let put =
            |offset: usize, bytes: &[u8]| cnc.counters_metadata.write(metadata + offset, bytes);
        let (registration, session, stream, length) = self.ids;
        put(4, &self.type_id.to_le_bytes());
        put(16, &registration.to_le_bytes());
        put(24, &session.to_le_bytes());
        put(28, &stream.to_le_bytes());
        put(32, &length.to_le_bytes());
        put(36, &self.key[..self.key.len().min(92)]);
        put(128, &self.label_length.to_le_bytes());
        put(132, &self.label);
        put(0, &self.state.to_le_bytes());
        for (index, value) in self.values.iter().enumerate() {
            cnc.counters_values
                .write(values + index * 8, &value.to_le_bytes());
        }
    }
}

/// An entry of a list whose entries begin with their length, such as the error log. The loss report is made of the same
/// bytes.
fn entry() -> impl Strategy<Value = Vec<u8>> {
    (length(), number(), number(), number(), length(), text(200)).prop_map(
        |(length, one, two, three, inner, text)| {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend(1_i32.to_le_bytes());
            for number in [one, two, three] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(one.to_le_bytes());
            bytes.extend(inner.to_le_bytes());
            bytes.extend(text);
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            bytes
        },
    )
}

/// Returns a number from the environment, or the default.
fn env_number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number is needed"),
        Err(_) => default,
    }
}

/// Checks the property with a fixed seed, unless `TARAN_HOSTILE_SEED` is set.
fn check_property<S: Strategy>(strategy: &S, property: impl Fn(S::Value)) {
    let config = Config {
        cases: env_number("TARAN_HOSTILE_CASES", CASES) as u32,
        // Each shrink step runs several processes.
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = env_number("TARAN_HOSTILE_SEED", 0);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(strategy, |value| {
        property(value);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("TARAN_HOSTILE_SEED={seed}: {error}"));
}

/// Checks that the tool succeeded or failed regularly, and that its output contains no control characters.
fn assert_clean_output(outcome: &Outcome, what: &[&str]) {
    assert!(matches!(outcome.code, Some(0 | 1)), "{what:?}: {outcome:?}");
    let unfit = |c: char| c.is_control() && c != '\n' && (c != '\t' || what[0] != "errors");
    for output in [&outcome.stdout, &outcome.stderr] {
        assert!(!output.contains(unfit), "{what:?}: {output:?}");
    }
    assert_eq!(
        outcome.code == Some(1),
        !outcome.stderr.is_empty(),
        "{what:?}: {outcome:?}"
    );
    if outcome.stdout.is_empty() {
        return;
    }
    if what.contains(&"--json") {
        let document: Result<Value, _> = serde_json::from_str(&outcome.stdout);
        assert!(
            document.is_ok(),
            "{what:?}: {document:?}: {}",
            outcome.stdout
        );
    }
    if what.contains(&"--openmetrics") {
        check(&outcome.stdout);
    }
}

fn show(directory: &Path, tools: &[&[&str]]) {
    for tool in tools {
        let on = |arguments: &[&str]| {
            let outcome = run(taran(arguments).env("AERON_DIR", directory));
            assert_clean_output(&outcome, arguments);
        };
        on(tool);
        if !tool.contains(&"--openmetrics") {
            on(&[tool, &["--json"][..]].concat());
        }
    }
}

fn now_ms() -> i64 {
    SystemClock::new().now().epoch_millis
}

#[test]
fn tools_with_hostile_counters_stay_clean() {
    check_property(&vec(counter(), 1..40), |counters| {
        let directory = Directory::new("hostile-counters");
        let (_region, cnc) = forge(directory.path(), now_ms());
        for (id, counter) in counters.iter().enumerate() {
            counter.write(id, &cnc);
        }
        let stat: &[&str] = &["stat", "-w", "false"];
        show(
            directory.path(),
            &[
                stat,
                &["stat", "--openmetrics"],
                &["streams"],
                &["backlog"],
                &["driver-info"],
            ],
        );
    });
}

#[test]
fn tools_with_random_counters_stay_clean() {
    check_property(&vec(any::<u8>(), 1..20_000), |noise| {
        let directory = Directory::new("hostile-noise");
        let (_region, cnc) = forge(directory.path(), now_ms());
        let fill = |region: &Region| region.write(0, &noise[..noise.len().min(region.len())]);
        for region in [&cnc.counters_metadata, &cnc.counters_values, &cnc.error_log] {
            fill(region);
        }
        let stat: &[&str] = &["stat", "-w", "false"];
        show(
            directory.path(),
            &[
                stat,
                &["stat", "--openmetrics"],
                &["streams"],
                &["backlog"],
                &["errors"],
            ],
        );
    });
}

#[test]
fn tools_with_hostile_error_and_loss_entries_stay_clean() {
    check_property(&vec(entry(), 0..8), |entries| {
        let directory = Directory::new("hostile-lists");
        let (_region, cnc) = forge(directory.path(), now_ms());
        let bytes = entries.concat();
        cnc.error_log
            .write(0, &bytes[..bytes.len().min(cnc.error_log.len())]);
        let losses = directory.path().join("loss-report.dat");
        fs::write(&losses, &bytes).unwrap();
        show(directory.path(), &[&["errors"], &["loss"]]);
        let file = losses.to_str().unwrap();
        show(
            directory.path(),
            &[&["loss", "-f", file], &["errors", "-f", file]],
        );
    });
}

/// Returns a valid log buffer, in the directory of a driver that has ended.
fn log() -> (Directory, Vec<u8>) {
    let directory = Directory::new("hostile-log");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_ipc(directory.path(), 1_004, 20);
    let name = format!("{}.logbuffer", traffic.publication.registration_id());
    let bytes = fs::read(directory.path().join("publications").join(name))
        .expect("the log of a publication that was just added");
    drop(traffic);
    driver.stop("TERM").assert_code(15);
    (directory, bytes)
}

#[test]
fn log_with_hostile_buffers_stays_clean() {
    let (directory, log) = log();
    let metadata = log.len() - 4_096;
    // Overwritten ranges lie anywhere, in the first frames, or in the metadata.
    let place = prop_oneof![0..log.len(), 0..4_096_usize, metadata..log.len()];
    let bytes = prop_oneof![
        number().prop_map(|number| number.to_le_bytes().to_vec()),
        length().prop_map(|length| length.to_le_bytes().to_vec()),
        text(64),
    ];
    let length = prop_oneof![4 => Just(log.len()), 1 => 0..log.len()];
    check_property(
        &(vec((place, bytes), 1..30), length),
        |(changes, length)| {
            let mut log = log.clone();
            for (place, bytes) in changes {
                let place = place / 4 * 4;
                let length = bytes.len().min(log.len() - place);
                log[place..place + length].copy_from_slice(&bytes[..length]);
            }
            let file: PathBuf = directory.path().join("some.logbuffer");
            fs::write(&file, &log[..length]).unwrap();
            let file = file.to_str().unwrap();
            let tools: [&[&str]; 2] = [
                &["log", file],
                &["log", file, "--scan-over-zeroes", "--format", "ascii"],
            ];
            show(directory.path(), &tools);
        },
    );
}

#[test]
fn tools_reject_files_that_are_not_regular() {
    let directory = Directory::new("hostile-files");
    let pipe = directory.file("x", "").with_file_name("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let places = [
        pipe.to_str().unwrap(),
        directory.path().to_str().unwrap(),
        "/dev/zero",
    ];
    for place in places {
        for tool in [
            &["loss", "-f", place][..],
            &["errors", "-f", place],
            &["log", place],
        ] {
            let outcome = run(&mut taran(tool));
            outcome.assert_code(1).assert_stderr(place);
            assert!(outcome.stderr.contains("not a regular file"), "{outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        }
    }
}
