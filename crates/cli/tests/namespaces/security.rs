// SPDX-License-Identifier: Apache-2.0
//! The walk-through of docs/security.md, "Two hosts in five minutes", run as it is written.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use taran::Client;
use taran_core::counters::CountersReader;
use taran_protocol::counter::SecureCounter;

use crate::machine_driver::wait_until;
use crate::machines::{Machine, in_own_namespaces};
use crate::process::{Directory, Driver};
use crate::stream::{Reader, Writer, exchange};

const PAGE: &str = include_str!("../../../../docs/security.md");
const SECTION: &str = "## Two hosts in five minutes";

/// A host of the walk-through.
struct Host {
    name: &'static str,
    machine: Machine,
    directory: Directory,
    /// Line that `taran keys generate` printed.
    line: String,
    driver: Option<Driver>,
}

impl Host {
    fn new(name: &'static str) -> Host {
        Host {
            name,
            machine: Machine::new(name),
            directory: Directory::new(name),
            line: String::new(),
            driver: None,
        }
    }

    /// Runs a command line of the page. `peer` is the line of the other host.
    fn run(&mut self, line: &str, peer: &str) {
        let (command, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        assert_eq!(words.remove(0), "taran", "{line}");
        // The comment tells what differs on the other host.
        if let Some(other) = comment.trim().strip_prefix("on the other host: ")
            && self.name == "beta"
        {
            let (option, value) = other.split_once(' ').unwrap();
            let at = words.iter().position(|word| word == option).unwrap();
            value.clone_into(&mut words[at + 1]);
        }
        // The page shortens keys: `taran-pub-1:...of beta...`.
        if let Some(at) = words
            .iter()
            .position(|word| word.starts_with("taran-pub-1:..."))
        {
            let key = peer.split_whitespace().next().unwrap();
            let end = (at..words.len())
                .find(|end| words[*end].ends_with("..."))
                .unwrap();
            words.splice(at..=end, [key.to_owned()]);
        }
        let mut command = self.machine.command(env!("CARGO_BIN_EXE_taran"));
        command
            .args(&words)
            .env("AERON_DIR", self.directory.path().join("driver"))
            .env("TARAN_SECURE_KEYS_DIR", self.directory.path().join("keys"));
        if words[0] == "driver" {
            let directory = self.directory.path().join("driver");
            self.driver = Some(Driver::start_with(&mut command, &directory));
            return;
        }
        let output = answered(&mut command, "yes\n");
        if words[1] == "generate" {
            output.lines().next().unwrap().clone_into(&mut self.line);
        }
    }

    fn count(&self, client: &Client, which: SecureCounter) -> i64 {
        let counters: &CountersReader = client.counters();
        let found = counters.find(|meta| meta.type_id == which.type_id());
        let found = found.unwrap_or_else(|| panic!("{} has no {which:?}", self.name));
        counters.value(found.id).unwrap()
    }

    fn client(&self) -> Client {
        let directory = self.directory.path().join("driver");
        Client::builder().aeron_dir(directory).connect().unwrap()
    }
}

/// Runs a command that has to succeed, with this input. Returns its output.
fn answered(command: &mut Command, input: &str) -> String {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that asks nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the command lines of the section, in order.
fn command_lines() -> Vec<&'static str> {
    let section = PAGE.split(SECTION).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    blocks
        .flat_map(str::lines)
        .filter(|line| !line.trim().is_empty())
        .collect()
}

#[test]
fn two_hosts_of_the_walk_through_exchange_sealed_streams() {
    in_own_namespaces(
        "security::two_hosts_of_the_walk_through_exchange_sealed_streams",
        || {
            let (mut alpha, mut beta) = (Host::new("alpha"), Host::new("beta"));
            let addresses = ["10.9.1.1/24", "10.9.1.2/24"];
            alpha
                .machine
                .join(addresses[0], &beta.machine, addresses[1], "lan");
            name_hosts(alpha.directory.path());
            for line in command_lines() {
                let on = |name: &str| line.strip_prefix(&format!("{name}$ "));
                match (on("alpha"), on("beta")) {
                    (Some(line), _) => alpha.run(line, &beta.line),
                    (_, Some(line)) => beta.run(line, &alpha.line),
                    (None, None) => {
                        alpha.run(line, &beta.line);
                        beta.run(line, &alpha.line);
                    }
                }
            }
            let clients = [alpha.client(), beta.client()];
            // The channel of the page.
            let channel = "aeron:udp?endpoint=beta:40123";
            assert!(PAGE.contains(channel));
            let channel = format!("{channel}|term-length=64k");
            let subscription = clients[1].add_subscription(&channel, 10).unwrap();
            let publication = clients[0].add_publication(&channel, 10).unwrap();
            let mut reader = Reader::new(subscription);
            let mut writer = Writer::new(publication);
            writer.await_connected();
            exchange(&mut writer, &mut [&mut reader], 1_000);
            for (host, client) in [&alpha, &beta].into_iter().zip(&clients) {
                let count = |which| host.count(client, which);
                wait_until("one link up on each side", || {
                    count(SecureCounter::Links) == 1
                });
                for moved in [SecureCounter::BytesSealed, SecureCounter::BytesOpened] {
                    assert!(count(moved) > 0, "{}: {moved:?}", host.name);
                }
                assert_eq!(count(SecureCounter::PlainRefused), 0, "{}", host.name);
            }
            drop((reader, writer));
            drop(clients);
            for host in [alpha, beta] {
                let outcome = host.driver.unwrap().stop("TERM");
                outcome.assert_code(15);
                // The walk-through leaves the modes of the directory to its reader; the driver says so.
                let mut lines = outcome.stderr.lines();
                assert!(
                    lines.all(|line| line.contains("set taran.dir.mode=0700")),
                    "{outcome:?}"
                );
            }
        },
    );
}

/// Names the hosts, in the mount namespace of the test.
fn name_hosts(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let hosts = directory.join("hosts");
    fs::write(
        &hosts,
        "127.0.0.1 localhost\n10.9.1.1 alpha\n10.9.1.2 beta\n",
    )
    .unwrap();
    let status = Command::new("mount")
        .arg("--bind")
        .args([hosts.as_path(), Path::new("/etc/hosts")])
        .status();
    assert!(status.unwrap().success());
}
