// SPDX-License-Identifier: Apache-2.0
//! Our client on official members, directories of one implementation started by the other, and clusters of both.

use std::time::{Duration, Instant};

use taran_cluster_client::{ClusterClient, ClusterContext};

use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::exchange::connect;
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

/// Bounds a wait for what has to come; a machine that is busy may need most of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Our client, whose driver is that of the test.
pub(super) fn client_of(cluster: &TestCluster, driver: &Driver) -> ClusterClient {
    ClusterContext::new(&cluster.endpoints)
        .egress_channel("aeron:udp?endpoint=127.0.0.1:0")
        .message_timeout(PATIENCE)
        .connect(&connect(driver.dir()))
        .unwrap()
}

/// Sends a message until its echo is back.
fn echo(client: &mut ClusterClient, message: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    let mut resend = Instant::now();
    let mut is_echoed = false;
    while !is_echoed {
        assert!(Instant::now() < deadline, "no echo in time");
        if Instant::now() >= resend && client.offer(message).is_ok() {
            resend = Instant::now() + Duration::from_secs(5);
        }
        client
            .poll(|bytes, _| is_echoed |= bytes == message)
            .expect("the session stays open");
        std::thread::yield_now();
    }
}

#[test]
fn our_client_gets_its_echoes_from_one_official_member() {
    require_java!();
    let driver = Driver::taran("cluster-official-one", &[]);
    let cluster = TestCluster::new("cluster-official-one", 1).start_all(Kind::Official);
    let mut client = client_of(&cluster, &driver);
    for number in 0..50_usize {
        echo(&mut client, &vec![number as u8; 1 + number * 97]);
    }
    client.close();
    cluster.end_all();
}

#[test]
fn our_client_follows_three_official_members_when_their_leader_is_killed() {
    require_java!();
    let driver = Driver::taran("cluster-official-three", &[]);
    let mut cluster = TestCluster::new("cluster-official-three", 3).start_all(Kind::Official);
    let mut client = client_of(&cluster, &driver);
    for number in 0..20 {
        echo(&mut client, format!("before {number}").as_bytes());
    }
    let leader = client.leader();
    cluster.kill(leader as usize);
    for number in 0..20 {
        echo(&mut client, format!("after {number}").as_bytes());
    }
    assert_ne!(client.leader(), leader);
    client.close();
    cluster.end_all();
}

/// Starts the directory of one implementation with the other, and goes back.
fn exchange_directories(name: &str, first: Kind, second: Kind) {
    let driver = Driver::taran(name, &[]);
    let mut cluster = TestCluster::new(name, 1);
    for (round, kind) in [first, second, first].into_iter().enumerate() {
        cluster.start(0, kind);
        let mut client = client_of(&cluster, &driver);
        for number in 0..10 {
            echo(&mut client, format!("{round} {number}").as_bytes());
        }
        if round == 1 {
            // Answers OK, and the first implementation starts with the snapshot of the second.
            cluster.snapshot(0);
        }
        client.close();
        cluster.end(0);
    }
}

#[test]
fn directory_of_an_official_member_is_continued_by_taran_and_back() {
    require_java!();
    exchange_directories("cluster-dir-official", Kind::Official, Kind::Taran);
}

#[test]
fn directory_of_a_taran_member_is_continued_by_the_official_one_and_back() {
    require_java!();
    exchange_directories("cluster-dir-taran", Kind::Taran, Kind::Official);
}

/// Runs three members, of which one is of another kind, kills the leader, and starts it again.
fn mix(name: &str, kinds: [Kind; 3]) {
    let driver = Driver::taran(name, &[]);
    let mut cluster = TestCluster::new(name, 3);
    for (id, kind) in kinds.into_iter().enumerate() {
        cluster.start(id, kind);
    }
    let mut arguments = cluster.client(&driver);
    arguments.extend([
        argument("count", 300),
        argument("pause", 10),
        argument("progress", true),
    ]);
    let mut client = java::start("cluster-echo", &arguments);
    let connected = client.expect("CONNECTED");
    let leader: usize = Program::value(&connected, "leader");
    client.expect("PROGRESS 20 ");
    cluster.kill(leader);
    client.expect("NEWLEADER");
    client.expect("PROGRESS 100 ");
    if kinds[leader] == Kind::Taran {
        cluster.start(leader, kinds[leader]);
    }
    let said = client.finish();
    assert!(
        said.iter().any(|line| line.starts_with("ECHOED 300")),
        "{said:#?}"
    );
}

#[test]
fn cluster_of_one_official_and_two_taran_members_goes_on_without_its_leader() {
    require_java!();
    mix(
        "cluster-mixed-one",
        [Kind::Official, Kind::Taran, Kind::Taran],
    );
}

#[test]
fn cluster_of_two_official_and_one_taran_member_goes_on_without_its_leader() {
    require_java!();
    mix(
        "cluster-mixed-two",
        [Kind::Official, Kind::Taran, Kind::Official],
    );
}
