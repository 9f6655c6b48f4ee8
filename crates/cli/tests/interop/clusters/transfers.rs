// SPDX-License-Identifier: Apache-2.0
//! Orderly transfer of leadership under load, by command and at the end of the leader.

use std::process::{Command, Output};

use serde_json::Value;

use super::kills::Load;
use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::exchange::await_true;
use crate::require_java;

fn transfer(cluster: &TestCluster, leader: usize, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taran"))
        .args(["members", "transfer", "--json"])
        .arg(cluster.dirs[leader].join("cluster"))
        .args(options)
        .output()
        .unwrap()
}

fn leader(cluster: &TestCluster) -> usize {
    let mut found = None;
    await_true("a leader", || {
        found = (0..3).find(|id| cluster.nodes[*id].is_some() && cluster.is_leader(*id));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn leadership_is_handed_over_by_command_and_at_an_orderly_end_without_loss() {
    let driver = Driver::taran("cluster-transfer", &[]);
    let mut cluster = TestCluster::new("cluster-transfer", 3)
        .with("aeron.cluster.max.sessions", "1000")
        .with_service("count")
        .start_all(Kind::Taran);
    let load = Load::start(&driver, &cluster);
    load.await_answers(20);
    for _ in 0..3 {
        let to = (leader(&cluster) + 1) % 3;
        let mut attempts = 0;
        loop {
            // The named member is the first to stand. On a busy machine another one may win, and is asked in turn.
            attempts += 1;
            assert!(
                attempts <= 10,
                "member {to} leads after none of 10 transfers"
            );
            let from = leader(&cluster);
            let output = transfer(&cluster, from, &["--to", &to.to_string()]);
            assert!(output.status.success(), "{output:?}");
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["member_id"], from);
            load.await_answers(20);
            if document["leader_member_id"] == to {
                break;
            }
        }
    }
    let last = leader(&cluster);
    let refused = transfer(&cluster, (last + 1) % 3, &[]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("is not the leader"), "{text}");
    // SIGTERM.
    cluster.end(last);
    load.await_answers(20);
    assert_ne!(leader(&cluster), last);
    assert_eq!(load.end().violation(), None);
    cluster.end_all();
}

#[test]
fn member_beside_official_ones_hands_over_to_none_that_is_named() {
    require_java!();
    let mut cluster = TestCluster::new("cluster-transfer-mixed", 3);
    for (id, kind) in [Kind::Official, Kind::Taran, Kind::Taran]
        .into_iter()
        .enumerate()
    {
        cluster.start(id, kind);
    }
    let mut first = leader(&cluster);
    if first == 0 {
        let refused = transfer(&cluster, first, &[]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("is one of Aeron"), "{text}");
        cluster.end(0);
        first = leader(&cluster);
        cluster.start(0, Kind::Official);
        let client = crate::exchange::connect(&cluster.dirs[0].join("driver"));
        let counters = client.counters();
        await_true("a follower", || {
            let found = counters.find(|meta| meta.type_id == 207);
            found.is_some_and(|meta| counters.value(meta.id) == Some(17))
        });
    }
    let other = if first == 1 { "2" } else { "1" };
    let refused = transfer(&cluster, first, &["--to", other]);
    assert!(!refused.status.success(), "{refused:?}");
    let errors = Command::new(env!("CARGO_BIN_EXE_taran"))
        .args(["members", "errors"])
        .arg(cluster.dirs[first].join("cluster"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&errors.stdout).into_owned();
    assert!(
        text.contains("member 0 runs Aeron, and cannot be told to wait"),
        "{text}"
    );
    cluster.end_all();
}
