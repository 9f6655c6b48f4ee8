// SPDX-License-Identifier: Apache-2.0
//! Clusters of three members.

use crate::node::{Node, await_true, echo, members};

/// Returns the entries about messages of the state machine, which are the same on all members.
fn history(node: &Node) -> Vec<String> {
    let journal = node.journal();
    journal
        .into_iter()
        .filter(|entry| !entry.starts_with("start"))
        .collect()
}

#[test]
fn cluster_goes_on_without_its_leader_and_takes_it_back() {
    let members = members(3);
    let mut nodes: Vec<Node> = (0..3)
        .map(|id| Node::start(id, "three", &members, "4s"))
        .collect();
    // A client on the driver of a machine of its own.
    let outside = Node::driver("three-client");
    let client = outside.client();
    let mut session = nodes[0].connect(&client);
    for number in 0..20 {
        echo(&mut session, format!("before {number}").as_bytes());
    }
    let leader = session.leader() as usize;
    nodes[leader].stop();
    for number in 0..20 {
        echo(&mut session, format!("without {number}").as_bytes());
    }
    assert_ne!(session.leader() as usize, leader);
    nodes[leader].journal.lock().unwrap().clear();
    nodes[leader].launch();
    for number in 0..20 {
        echo(&mut session, format!("after {number}").as_bytes());
    }
    session.close();
    for node in &nodes {
        node.await_entry("close 1 ClientAction");
    }
    let expected = history(&nodes[(leader + 1) % 3]);
    for node in &nodes {
        await_true("the same history", || history(node) == expected);
    }
    client.close();
    for node in &mut nodes {
        node.stop();
    }
}
