// SPDX-License-Identifier: Apache-2.0
//! `taran members`: a running member of its own cluster, and its files once it has ended.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::Value;

use crate::own_address::own_address;
use crate::process::{Directory, Outcome, Process, run, taran};
use crate::traffic::await_true;

struct Member {
    process: Option<Process>,
    root: Directory,
    address: Ipv4Addr,
    members: String,
}

/// First port of the members; below the ephemeral port range.
const PORT: usize = 9_600;

impl Member {
    /// Describes a member among `count`, of which no other one runs.
    fn new(name: &str, count: usize) -> Member {
        // The address is unique to this test, so the ports can be fixed.
        let address = own_address();
        let members = (0..count).map(|id| {
            let endpoints = (0..5).map(|part| format!(",{address}:{}", PORT + 10 * id + part));
            format!("{id}{}", endpoints.collect::<String>())
        });
        Member {
            process: None,
            root: Directory::new(name),
            address,
            members: members.collect::<Vec<_>>().join("|"),
        }
    }

    fn dir(&self) -> String {
        self.path("cluster")
    }

    fn path(&self, part: &str) -> String {
        self.root.path().join(part).display().to_string()
    }

    fn start(&mut self) {
        let archive = self.members.split(['|', ',']).nth(5).expect("an endpoint");
        let mut command = taran(&["cluster", "--driver", "--archive"]);
        command.args([
            format!("-Daeron.dir={}", self.path("driver")),
            format!("-Daeron.archive.dir={}", self.path("archive")),
            format!("-Daeron.cluster.dir={}", self.dir()),
            format!("-Daeron.cluster.members={}", self.members),
            format!("-Daeron.archive.control.channel=aeron:udp?endpoint={archive}"),
        ]);
        command.arg(format!(
            "-Daeron.archive.replication.channel=aeron:udp?endpoint={}:0",
            self.address
        ));
        command.args([
            "-Daeron.cluster.log.channel=aeron:udp?term-length=64k",
            "-Daeron.threading.mode=SHARED",
            "-Daeron.archive.threading.mode=SHARED",
            "-Daeron.archive.segment.file.length=64k",
            "-Daeron.archive.low.storage.space.threshold=1m",
            "-Daeron.term.buffer.sparse.file=true",
            "-Daeron.cluster.leader.heartbeat.timeout=4s",
        ]);
        self.process = Some(Process::start(&mut command));
    }

    fn verb(&self, verb: &str, options: &[&str]) -> Outcome {
        run(taran(&["members", verb, &self.dir()]).args(options))
    }

    fn json(&self, verb: &str) -> Value {
        let outcome = self.verb(verb, &["--json"]);
        outcome.assert_code(0).assert_silent();
        serde_json::from_str(&outcome.stdout).expect("JSON")
    }

    fn await_described(&self, text: &str) -> Outcome {
        let mut described = None;
        await_true(text, || {
            let outcome = self.verb("describe", &[]);
            let is_found = outcome.stdout.contains(text);
            described = Some(outcome);
            is_found
        });
        described.expect("it was described")
    }
}

#[test]
fn leader_is_described_suspended_resumed_and_shut_down_after_snapshots() {
    let mut member = Member::new("members-leader", 1);
    member
        .verb("describe", &[])
        .assert_code(1)
        .assert_stderr("no member has run in");
    member.start();
    let described = member.await_described("this member leads");
    described.assert_code(0).assert_silent();
    assert!(described.stdout.contains("ACTIVE, LEADER, term 0"));
    member.verb("is-leader", &[]).assert_code(0);
    let listed = member.json("list");
    assert_eq!(listed[0]["member_id"], 0);
    assert_eq!(listed[0]["is_leader"], true);
    assert_eq!(listed[0]["behind"], 0);
    assert!(listed[0]["log_position"].as_i64() > Some(0), "{listed}");
    let pid = member.json("pid")["pid"].as_i64();
    assert!(Path::new(&format!("/proc/{}", pid.expect("a pid"))).exists());

    assert_eq!(member.json("snapshot")["snapshots"], 1);
    member.verb("suspend", &[]).assert_code(0);
    assert_eq!(member.json("describe")["state"], "SUSPENDED");
    member.verb("snapshot", &[]).assert_code(1).assert_stderr(
        "unable to SNAPSHOT as the consensus module is SUSPENDED, but needs to be ACTIVE",
    );
    member.verb("resume", &[]).assert_code(0);
    member
        .verb("resume", &[])
        .assert_code(1)
        .assert_stderr("needs to be SUSPENDED");
    member.verb("validate-recording-log", &[]).assert_code(0);
    assert!(
        member
            .verb("errors", &[])
            .stdout
            .ends_with("\n0 distinct errors observed.\n")
    );
    member
        .verb("transfer", &["--to", "7"])
        .assert_code(1)
        .assert_stderr("7 is not the id of another member than the leader 0");
    member
        .verb("transfer", &[])
        .assert_code(1)
        .assert_stderr("member 0 leads on");
    assert!(
        member
            .verb("errors", &[])
            .stdout
            .contains("leadership is not handed over: the cluster has no other member")
    );
    let mut plan = Value::Null;
    await_true("an answer of the archive", || {
        let outcome = member.verb("recovery-plan", &["--json", "--timeout", "30s"]);
        outcome.assert_code(0).assert_silent();
        plan = serde_json::from_str(&outcome.stdout).expect("JSON");
        plan["appended_log_position"].is_i64()
    });
    assert_eq!(plan["last_leadership_term_id"], 0);
    assert_eq!(plan["snapshots"][0]["service_id"], -1);
    assert!(plan["appended_log_position"].as_i64() >= plan["replay_from"].as_i64());
    member
        .verb("invalidate-latest-snapshot", &[])
        .assert_code(1)
        .assert_stderr("a member runs in");

    member.verb("shutdown", &[]).assert_code(0);
    let ended = member.process.take().expect("a process").wait();
    ended.assert_code(0);
    member
        .verb("describe", &[])
        .assert_code(1)
        .assert_stderr("cannot be reached through its driver");
    let entries = member.json("recording-log");
    let kinds: Vec<_> = entries.as_array().expect("entries").iter().collect();
    assert_eq!(kinds[0]["kind"], "TERM");
    // Two snapshots, each of service and consensus module.
    assert_eq!(kinds.len(), 5, "{entries}");
    member.verb("sort-recording-log", &[]).assert_code(0);
    member
        .verb("invalidate-latest-snapshot", &[])
        .assert_code(0);
    let log = member.verb("recording-log", &[]).stdout;
    assert_eq!(log.matches("INVALID").count(), 2, "{log}");
}

#[test]
fn member_without_a_quorum_says_which_members_are_missing() {
    let mut member = Member::new("members-alone", 3);
    member.start();
    let described = member.await_described("2 of 3 members are needed");
    let missing = member.members.split('|').skip(1).map(|other| {
        let mut fields = other.split(',');
        let id = fields.next().expect("an id");
        format!("{id} at {}", fields.nth(1).expect("an endpoint"))
    });
    let missing = missing.collect::<Vec<_>>().join(", ");
    assert!(
        described
            .stdout
            .contains(&format!("no answer came from {missing}")),
        "{described:?}"
    );
    assert!(described.stdout.contains("this member is in CANVASS"));
    member.verb("is-leader", &[]).assert_code(1);
    member
        .verb("snapshot", &[])
        .assert_code(1)
        .assert_stderr("no member leads, unable to SNAPSHOT");
    let process = member.process.take().expect("a process");
    process.signal("TERM");
    process.wait().assert_code(0);
}
