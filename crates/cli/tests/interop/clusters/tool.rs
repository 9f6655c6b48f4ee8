// SPDX-License-Identifier: Apache-2.0
//! The official ClusterTool on members of Taran, and on official ones: what it prints, and its exit status.

use std::path::Path;
use std::process::{Command, Stdio};

use taran_cluster::files::{EntryKind, RecordingLog};

use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect};
use crate::java::{self, argument};
use crate::require_java;

/// Exit status of a command that has failed.
const FAILURE: i32 = 255;

/// Counter with the state of the consensus module, and its value while it is suspended.
const MODULE_STATE: i32 = 200;
const SUSPENDED: i64 = 2;

/// Runs the official tool on the directory of a member. Returns its exit status, and what it printed.
fn cluster_tool(dir: &Path, command: &[&str]) -> (i32, String) {
    let class_path = java::jar().expect("require_java! comes first");
    let output = Command::new("java")
        .env_remove("JAVA_TOOL_OPTIONS")
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .arg("-Daeron.cluster.tool.timeout=60s")
        .arg(format!("-Daeron.dir={}", dir.join("driver").display()))
        .arg("-Daeron.archive.control.channel=aeron:ipc")
        .arg("-Daeron.archive.control.response.channel=aeron:ipc")
        .args(["-cp", class_path, "io.aeron.cluster.ClusterTool"])
        .arg(dir.join("cluster"))
        .args(command)
        .stdin(Stdio::null())
        .output()
        .expect("java runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let status = output.status.code().expect("no signal has ended it");
    (status, format!("{text}{errors}"))
}

/// Runs the tool, and checks its exit status and parts of its output. Returns the output.
fn assert_prints(dir: &Path, command: &[&str], status: i32, expected: &[&str]) -> String {
    let (found, text) = cluster_tool(dir, command);
    assert_eq!(found, status, "{command:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{command:?}: no {part:?} in {text}");
    }
    text
}

#[test]
fn official_tool_shows_and_controls_a_member_of_taran() {
    use_tool(Kind::Taran);
}

#[test]
fn official_tool_shows_and_controls_an_official_member_in_the_same_way() {
    use_tool(Kind::Official);
}

/// Runs each command of the tool that does something on a member. What is expected does not depend on the kind of the member.
fn use_tool(kind: Kind) {
    require_java!();
    let name = format!("cluster-tool-{kind:?}").to_lowercase();
    let driver = Driver::taran(&name, &[]);
    let mut cluster = TestCluster::new(&name, 1).start_all(kind);
    let mut arguments = cluster.client(&driver);
    arguments.push(argument("count", 20));
    java::start("cluster-echo", &arguments).finish();
    let dir = cluster.dirs[0].clone();

    let module = "componentType=CONSENSUS_MODULE";
    assert_prints(&dir, &["describe"], 0, &[module, "memberId=0"]);
    let pid = assert_prints(&dir, &["pid"], 0, &[]);
    assert_eq!(pid.trim(), cluster.program(0).id().to_string());
    assert_prints(&dir, &["is-leader"], 0, &[]);
    assert_prints(&dir, &["errors"], 0, &["O distinct errors observed"]);
    let members = "leaderMemberId=0, memberId=0, activeMembers=[ClusterMember{";
    assert_prints(&dir, &["list-members"], 0, &[members, "isLeader=true"]);
    let backup = "not a cluster backup node";
    assert_prints(&dir, &["backup-query"], FAILURE, &[backup]);
    assert_prints(&dir, &["no-such-command"], FAILURE, &["Unknown command"]);
    assert_prints(
        &dir,
        &["describe-latest-cm-snapshot"],
        FAILURE,
        &["Snapshot not found"],
    );

    let suspended = "Member [0]: SUSPEND applied successfully";
    assert_prints(&dir, &["suspend"], 0, &[suspended]);
    await_state(&dir, SUSPENDED);
    let refused = "Unable to SNAPSHOT as the state of the consensus module is SUSPENDED, but needs to be ACTIVE";
    assert_prints(&dir, &["snapshot"], FAILURE, &[refused]);
    let resumed = "Member [0]: RESUME applied successfully";
    assert_prints(&dir, &["resume"], 0, &[resumed]);
    let taken = "Member [0]: SNAPSHOT applied successfully";
    assert_prints(&dir, &["snapshot"], 0, &[taken]);
    let log = assert_prints(&dir, &["recording-log"], 0, &["type=TERM"]);
    assert_eq!(valid_snapshots(&log), 2, "{log}");
    let plan = [
        "lastLeadershipTermId=0",
        "snapshots=[Snapshot[",
        "serviceId=0",
    ];
    assert_prints(&dir, &["recovery-plan", "1"], 0, &plan);
    assert_prints(
        &dir,
        &["describe-latest-cm-snapshot"],
        0,
        &["Consensus Module Snapshot End: memberId=0"],
    );
    let validated = "Member [0]: VALIDATE_RECORDING_LOG applied successfully";
    assert_prints(&dir, &["validate-recording-log"], 0, &[validated]);
    assert_prints(&dir, &["sort-recording-log"], FAILURE, &[]);
    // A snapshot is taken before the end.
    let ended = "Member [0]: SHUTDOWN applied successfully";
    assert_prints(&dir, &["shutdown"], 0, &[ended]);
    await_true("the snapshot", || stored_snapshots(&dir) == 4);
    cluster.end(0);

    assert_prints(&dir, &["describe"], 0, &[module, "memberId=0"]);
    assert_prints(&dir, &["pid"], 0, &[pid.trim()]);
    let log = assert_prints(&dir, &["recording-log"], 0, &["type=TERM"]);
    assert_eq!(valid_snapshots(&log), 4, "{log}");
    for (status, result, left) in [(0, "true", 2), (0, "true", 0), (FAILURE, "false", 0)] {
        let result = format!("invalidate latest snapshot: {result}");
        assert_prints(&dir, &["invalidate-latest-snapshot"], status, &[&result]);
        let log = assert_prints(&dir, &["recording-log"], 0, &[]);
        assert_eq!(valid_snapshots(&log), left, "{log}");
    }
    // It starts from the whole log.
    cluster.start(0, kind);
    java::start("cluster-echo", &arguments).finish();
    cluster.end_all();
}

/// Returns the number of snapshots in the recording log of a member.
fn stored_snapshots(dir: &Path) -> usize {
    let bytes =
        std::fs::read(dir.join("cluster/recording.log")).expect("the member has written it");
    // The member may be writing it.
    let Ok(log) = RecordingLog::decode(&bytes) else {
        return 0;
    };
    log.entries()
        .filter(|entry| entry.kind == EntryKind::Snapshot)
        .count()
}

/// Returns the number of valid snapshots in a recording log that the tool has printed.
fn valid_snapshots(log: &str) -> usize {
    let entries = log.split("Entry{").skip(1);
    entries
        .filter(|entry| entry.contains("type=SNAPSHOT") && entry.contains("isValid=true"))
        .count()
}

fn await_state(dir: &Path, expected: i64) {
    let client = connect(&dir.join("driver"));
    let counters = client.counters();
    let state = counters.find(|meta| meta.type_id == MODULE_STATE);
    let state = state.expect("the consensus module runs").id;
    await_true("the state", || counters.value(state) == Some(expected));
}
