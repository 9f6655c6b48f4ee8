// SPDX-License-Identifier: Apache-2.0
//! Runs the examples as `docs/cluster.md` does: with its commands, and with the output that it shows.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers
#![allow(clippy::duplicate_mod)] // each example includes what it uses

use std::fs;
use std::io::{BufReader, Cursor, PipeWriter, Write, pipe};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use taran_cluster::files::RecordingLog;

#[path = "../examples/key_value_store/main.rs"]
#[allow(dead_code, reason = "a program of its own")]
mod key_value_store;
#[path = "../examples/matching_engine/main.rs"]
#[allow(dead_code, reason = "a program of its own")]
mod matching_engine;
#[path = "../examples/sequencer/main.rs"]
#[allow(dead_code, reason = "a program of its own")]
mod sequencer;

/// A command of the page, and what it prints according to the page.
#[derive(Clone, Debug)]
struct Command {
    example: String,
    arguments: Vec<String>,
    input: String,
    output: String,
}

impl Command {
    /// Reads `printf '%s\n' 'LINE' 'LINE' | cargo run --release -p taran-cluster --example NAME [-- ARGUMENT...]`, with or without
    /// the input.
    fn read(line: &str, output: &str) -> Self {
        let (input, command) = match line.split_once(" | ") {
            Some((printf, command)) => {
                let lines = printf.strip_prefix(r"printf '%s\n' ").expect(printf);
                let lines = lines.split('\'').skip(1).step_by(2);
                (lines.map(|line| format!("{line}\n")).collect(), command)
            }
            None => (String::new(), line),
        };
        let rest = command
            .trim_start()
            .strip_prefix("cargo run --release -p taran-cluster --example ");
        let mut words = rest.unwrap_or_else(|| panic!("{line}")).split_whitespace();
        let example = words.next().expect("a name").to_owned();
        let arguments = words.filter(|word| *word != "--").map(str::to_owned);
        Self {
            example,
            arguments: arguments.collect(),
            input,
            output: output.to_owned(),
        }
    }

    /// The same command with a directory and a host of this test.
    fn at(&self, place: &Place) -> Self {
        let mut command = self.clone();
        let mut words = command.arguments.iter_mut();
        while let Some(word) = words.next() {
            if word == "--dir" {
                let dir = words.next().expect("a directory");
                command.output = command
                    .output
                    .replace(&**dir, &place.dir.display().to_string());
                *dir = place.dir.display().to_string();
            }
        }
        if !command.arguments.iter().any(|word| word == "--dir") {
            command
                .arguments
                .extend(["--dir".to_owned(), place.dir.display().to_string()]);
        }
        command
            .arguments
            .extend(["--hosts".to_owned(), place.host.clone()]);
        command
    }

    fn run(&self, input: impl std::io::Read + Send + 'static) -> String {
        let output = Output::default();
        let run = match self.example.as_str() {
            "key_value_store" => {
                key_value_store::run(&self.arguments, BufReader::new(input), output.clone())
            }
            "sequencer" => sequencer::run(&self.arguments, BufReader::new(input), output.clone()),
            "matching_engine" => {
                matching_engine::run(&self.arguments, BufReader::new(input), output.clone())
            }
            other => panic!("no example {other}"),
        };
        run.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let bytes = output.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Runs the command with its input, and compares its output with that of the page.
    fn assert_output(&self) {
        let printed = self.run(Cursor::new(self.input.clone()));
        // Member and client print at the same time.
        for is_trade in [false, true] {
            let of_one = |text: &str| -> Vec<String> {
                let lines = text.lines().map(str::to_owned);
                lines
                    .filter(|line| line.starts_with("trade ") == is_trade)
                    .collect()
            };
            assert_eq!(of_one(&printed), of_one(&self.output), "{self:?}");
        }
    }

    /// Runs the command until its input, which it returns, is closed.
    fn start(&self) -> (PipeWriter, JoinHandle<String>) {
        let (reader, writer) = pipe().unwrap();
        let command = self.clone();
        (writer, thread::spawn(move || command.run(reader)))
    }
}

/// Output that can be read afterwards.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A directory and a loopback address that only one test uses.
struct Place {
    dir: PathBuf,
    host: String,
}

impl Place {
    fn new(number: u8) -> Self {
        let pid = std::process::id();
        let [_, high, middle, low] = pid.to_be_bytes();
        let dir = PathBuf::from(format!("/dev/shm/taran-test-examples-{number}-{pid}"));
        let _ = fs::remove_dir_all(&dir);
        Self {
            dir,
            host: format!("127.{}.{middle}.{low}", second_octet(number, high)),
        }
    }
}

/// Returns the second octet of the loopback address of place `number`: 16 to 63, and different for each number. With the 16 bits
/// behind it, it has 19 bits of the process id, whose bits from the 17th on are `high`. Other tests use 127.0.0.1, and
/// 127.64.0.0/10 and 127.128.0.0/10 with their process ids.
fn second_octet(number: u8, high: u8) -> u8 {
    assert!(number < 6, "there is no address for place {number}");
    16 + (number << 3) + (high & 7)
}

#[test]
fn addresses_of_places_are_distinct_and_outside_the_ranges_of_other_tests() {
    let octets = (0..6).flat_map(|number| (0..8).map(move |high| second_octet(number, high)));
    assert_eq!(octets.collect::<Vec<_>>(), (16..64).collect::<Vec<_>>());
    // Only the lowest bits of a process id count.
    assert_eq!(second_octet(5, u8::MAX), 63);
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns the commands of a section of the page in order, with the text block behind each.
fn commands(title: &str) -> Vec<Command> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md");
    let page = fs::read_to_string(path).unwrap();
    let section = page.split(&format!("### {title}\n")).nth(1).expect(title);
    let section = section.split("\n##").next().unwrap();
    let mut found: Vec<Command> = Vec::new();
    for block in section.split("```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        match language {
            "sh" => {
                let text = text.replace("\\\n", " ");
                found.extend(text.lines().map(|line| Command::read(line, "")));
            }
            "text" => text.clone_into(&mut found.last_mut().expect("a command").output),
            _ => {}
        }
    }
    found
}

#[test]
fn key_value_store_answers_and_recovers_as_the_page_shows() {
    let place = Place::new(0);
    let commands = commands("Run it");
    assert_eq!(commands.len(), 2);
    for command in commands {
        command.at(&place).assert_output();
    }
}

#[test]
fn key_value_store_on_three_members_goes_on_without_one_of_them() {
    let place = Place::new(1);
    let commands = commands("Three members");
    let commands: Vec<Command> = commands.iter().map(|command| command.at(&place)).collect();
    let [members @ .., first, second] = &commands[..] else {
        panic!("{commands:?}");
    };
    let mut running: Vec<_> = members.iter().map(Command::start).collect();
    assert_eq!(running.len(), 3);
    first.assert_output();
    // The page says to end one.
    let (input, ended) = running.remove(0);
    drop(input);
    let printed = ended.join().unwrap();
    assert!(
        printed.starts_with("member 0 of 3, directory "),
        "{printed}"
    );
    second.assert_output();
    for (input, ended) in running {
        drop(input);
        ended.join().unwrap();
    }
}

#[test]
fn sequencer_numbers_messages_sends_them_again_and_heartbeats() {
    let place = Place::new(2);
    for command in commands("A sequencer") {
        command.at(&place).assert_output();
    }
}

#[test]
fn matching_engine_prints_trades_and_recovers_its_book() {
    let place = Place::new(3);
    for command in commands("A matching engine") {
        command.at(&place).assert_output();
    }
}

#[test]
fn member_whose_service_refuses_its_snapshot_does_not_start() {
    let place = Place::new(4);
    let store = Command::read(
        "cargo run --release -p taran-cluster --example key_value_store",
        "",
    )
    .at(&place);
    let (mut input, ended) = store.start();
    input.write_all(b"put a 1\nsnapshot\n").unwrap();
    let log = place.dir.join("member-0/cluster/recording.log");
    let has_snapshot = || {
        let log = fs::read(&log)
            .ok()
            .map(|bytes| RecordingLog::decode(&bytes));
        log.is_some_and(|log| log.is_ok_and(|log| log.latest_snapshot(1).is_some()))
    };
    while !has_snapshot() {
        assert!(!ended.is_finished(), "it has ended before the snapshot");
        thread::yield_now();
    }
    drop(input);
    ended.join().unwrap();
    let input = Cursor::new(Vec::new());
    let error = sequencer::run(&store.arguments, input, Output::default()).unwrap_err();
    let error = error.to_string();
    let expected = "the service refuses its snapshot in recording ";
    assert!(error.starts_with(expected), "{error}");
    let expected = ": it is one of \"kv-store\", not of \"sequencr\"; start the version of the service that wrote it, or";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn example_that_is_given_nonsense_says_how_it_is_used() {
    for (arguments, expected) in [
        (&["no"][..], "no is no argument"),
        (&["member"], "member needs a value"),
        (&["member", "3"], "member needs 0, 1 or 2"),
        (&["--hosts", "a,b"], "--hosts needs 1 or 1 hosts, not 2"),
    ] {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let input = Cursor::new(Vec::new());
        let error = key_value_store::run(&arguments, input, Output::default()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
