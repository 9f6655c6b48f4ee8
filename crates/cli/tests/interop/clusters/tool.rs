// SPDX-License-Identifier: Apache-2.0
//! The official ClusterTool on members of Taran.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::java::{self, argument};
use crate::require_java;

/// Runs the official tool on the directory of a member. Returns whether it succeeded, and what it printed.
fn cluster_tool(dir: &Path, command: &str) -> (bool, String) {
    let class_path = java::jar().expect("require_java! comes first");
    let output = Command::new("java")
        .env_remove("JAVA_TOOL_OPTIONS")
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .arg("-Daeron.cluster.tool.timeout=60s")
        .args(["-cp", class_path, "io.aeron.cluster.ClusterTool"])
        .arg(dir.join("cluster"))
        .arg(command)
        .stdin(Stdio::null())
        .output()
        .expect("java runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.success(), format!("{text}{errors}"))
}

#[test]
fn official_tool_reads_counters_and_files_of_one_member() {
    require_java!();
    let driver = Driver::taran("cluster-tool", &[]);
    let mut cluster = TestCluster::new("cluster-tool", 1).start_all(Kind::Taran);
    let mut arguments = cluster.client(&driver);
    arguments.push(argument("count", 20));
    java::start("cluster-echo", &arguments).finish();
    let dir = cluster.dirs[0].clone();
    cluster.snapshot(0);
    for (command, expected) in [
        ("is-leader", ""),
        ("errors", "distinct errors observed"),
        ("describe", "componentType=CONSENSUS_MODULE"),
        ("recording-log", "type=SNAPSHOT"),
    ] {
        let (has_succeeded, text) = cluster_tool(&dir, command);
        assert!(
            has_succeeded && text.contains(expected),
            "{command}: {text}"
        );
    }
    cluster.end(0);
    cluster.start(0, Kind::Taran);
    java::start("cluster-echo", &arguments).finish();
    cluster.end_all();
}
