// SPDX-License-Identifier: Apache-2.0
//! Official clients on clusters of Taran.

use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

fn has_line(said: &[String], start: &str) -> bool {
    said.iter().any(|line| line.starts_with(start))
}

#[test]
fn official_client_gets_its_echoes_from_one_member_and_after_its_restart() {
    require_java!();
    let driver = Driver::taran("cluster-one", &[]);
    let mut cluster = TestCluster::new("cluster-one", 1).start_all(Kind::Taran);
    for round in 0..2 {
        if round > 0 {
            cluster.end(0);
            cluster.start(0, Kind::Taran);
        }
        let mut arguments = cluster.client(&driver);
        arguments.push(argument("count", 300));
        let said = java::start("cluster-echo", &arguments).finish();
        assert!(has_line(&said, "ECHOED 300"), "{said:#?}");
    }
    cluster.end_all();
}

#[test]
fn official_client_of_one_member_gets_the_official_answers_to_bad_requests() {
    require_java!();
    let driver = Driver::taran("cluster-bad", &[]);
    let cluster = TestCluster::new("cluster-bad", 1)
        .with("aeron.cluster.max.sessions", "3")
        .with("aeron.cluster.session.timeout", "2s")
        .start_all(Kind::Taran);
    let mut arguments = cluster.client(&driver);
    arguments.push(argument("limit", 3));
    let said = java::start("cluster-requests", &arguments).finish();
    for line in [
        "LIMIT 3 ERROR - concurrent session limit",
        "ADMIN 77 SNAPSHOT UNAUTHORISED_ACCESS Execution of the SNAPSHOT request was not authorised",
        "EVENT CLOSED TIMEOUT",
        "CLOSED true",
    ] {
        assert!(has_line(&said, line), "no {line} in {said:#?}");
    }
    cluster.end_all();
}

#[test]
fn official_client_follows_three_members_when_its_leader_is_killed_and_comes_back() {
    require_java!();
    let driver = Driver::taran("cluster-three", &[]);
    let mut cluster = TestCluster::new("cluster-three", 3).start_all(Kind::Taran);
    let mut arguments = cluster.client(&driver);
    arguments.extend([
        argument("count", 400),
        argument("pause", 10),
        argument("progress", true),
    ]);
    let mut client = java::start("cluster-echo", &arguments);
    let connected = client.expect("CONNECTED");
    let leader: usize = Program::value(&connected, "leader");
    client.expect("PROGRESS 20 ");
    cluster.kill(leader);
    let followed = client.expect("NEWLEADER");
    assert_ne!(Program::value::<usize>(&followed, "leader"), leader);
    client.expect("PROGRESS 60 ");
    cluster.start(leader, Kind::Taran);
    let said = client.finish();
    assert!(has_line(&said, "ECHOED 400"), "{said:#?}");
    cluster.end_all();
}
