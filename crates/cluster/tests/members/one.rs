// SPDX-License-Identifier: Apache-2.0
//! Clusters of one member.

use std::sync::atomic::Ordering;

use taran_cluster::module::type_id;
use taran_cluster_client::protocol::AdminResponseCode;
use taran_cluster_client::{ClosedReason, ClusterClient, ClusterEvent, ClusterState};

use crate::node::{Node, await_true, echo};

#[test]
fn member_echoes_messages_of_any_length_and_keeps_its_state_over_restarts() {
    keep_state(Node::single("restart"));
}

#[test]
fn container_echoes_messages_of_any_length_and_keeps_its_state_over_restarts() {
    keep_state(Node::single_with_container("container-restart"));
}

fn keep_state(mut node: Node) {
    let client = node.client();
    let mut session = node.connect(&client);
    assert_eq!((session.session_id(), session.leader()), (1, 0));
    echo(&mut session, b"one");
    echo(&mut session, &[b'x'; 5_000]);
    Node::toggle(&client, 4);
    echo(&mut session, b"two");
    session.close();
    node.await_entry("close 1 ClientAction");
    client.close();
    node.stop();
    node.journal.lock().unwrap().clear();

    // Loads the snapshot, and replays what came after it.
    node.launch();
    node.await_entry("close 1 ClientAction");
    let journal = node.journal();
    assert!(
        journal[0].starts_with("start [\"one\", \"xxx"),
        "{}",
        &journal[0][..40]
    );
    assert!(journal[0].ends_with("sessions=1"));
    let client = node.client();
    let mut session = node.connect(&client);
    assert_eq!(session.session_id(), 2);
    echo(&mut session, b"three");
    Node::toggle(&client, 4);
    session.close();
    client.close();
    node.stop();
    node.journal.lock().unwrap().clear();
    node.launch();
    await_true("the start", || !node.journal().is_empty());
    let start = node.journal()[0].clone();
    assert!(start.contains("\"two\", \"three\"]"), "state is kept");
    node.stop();
}

#[test]
fn member_goes_on_while_its_snapshot_is_recorded() {
    let mut node = Node::single("long-snapshot");
    let client = node.client();
    let mut session = node.connect(&client);
    echo(&mut session, b"before");
    node.holds_snapshots.store(true, Ordering::Release);
    let toggle = Node::begin_action(&client, 4);
    await_true("the recording of the snapshot", || {
        node.records_snapshot.load(Ordering::Acquire)
    });
    // The snapshot ends only when the test says so.
    for _ in 0..20 {
        echo(&mut session, b"during");
    }
    assert_eq!(toggle.get(), 4, "the snapshot has ended");
    node.holds_snapshots.store(false, Ordering::Release);
    Node::await_action(&toggle);
    drop(session);
    client.close();
    node.stop();
    node.journal.lock().unwrap().clear();

    node.launch();
    await_true("all messages, from the snapshot and the log", || {
        let journal = node.journal();
        journal.concat().matches("during").count() == 20
    });
    let journal = node.journal();
    assert!(journal[0].starts_with("start [\"before\""), "{journal:?}");
    assert!(journal.contains(&"message during".to_owned()));
    node.stop();
}

#[test]
fn container_that_is_lost_comes_back_with_the_state_of_snapshot_and_log() {
    let mut node = Node::single_with_container("container-lost");
    let client = node.client();
    let mut session = node.connect(&client);
    echo(&mut session, b"one");
    Node::toggle(&client, 4);
    echo(&mut session, b"two");
    node.lose_container();
    node.journal.lock().unwrap().clear();
    node.launch_module();
    node.await_entry("start [\"one\"] sessions=1");
    node.await_entry("message two");
    let mut session = node.connect(&client);
    echo(&mut session, b"three");
    client.close();
    node.stop();
}

#[test]
fn service_gets_its_timers_in_order_its_own_messages_once_and_closes_sessions() {
    act_on_its_own(Node::single("service"));
}

#[test]
fn container_gets_its_timers_in_order_its_own_messages_once_and_closes_sessions() {
    act_on_its_own(Node::single_with_container("container-service"));
}

fn act_on_its_own(mut node: Node) {
    let client = node.client();
    let mut session = node.connect(&client);
    // Sent by the background work: no other entry of the log comes meanwhile.
    echo(&mut session, b"later");
    echo(&mut session, b"timer");
    echo(&mut session, b"offer");
    node.await_entry("timer 2");
    node.await_entry("service message from the service");
    echo(&mut session, b"leave");
    await_true("the close event", || {
        // A closed session is an error once everything was received.
        let _ = session.poll(|_, _| ());
        matches!(
            session.state(),
            ClusterState::Closed(ClosedReason::Cluster { detail }) if detail == "SERVICE_ACTION"
        )
    });
    node.await_entry("close 1 ServiceAction");
    let journal: Vec<String> = node.journal().into_iter().skip(1).collect();
    assert_eq!(journal[0], "open 1");
    let timers: Vec<_> = journal
        .iter()
        .filter(|entry| entry.starts_with("timer"))
        .collect();
    assert_eq!(timers, ["timer 1", "timer 2"]);
    let messages = journal
        .iter()
        .filter(|entry| entry.starts_with("service message"));
    assert_eq!(messages.count(), 1);
    client.close();
    node.stop();
}

#[test]
fn client_needs_the_credentials_of_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let mut node = Node::single("credentials");
    let file = node.file("clients", "# clients\nbob:secret\nops:other\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let path = file.display().to_string();
    node.relaunch_with("taran.cluster.credentials.file", &path);
    node.relaunch_with("taran.cluster.admins", "ops");
    let client = node.client();
    for wrong in [&b""[..], b"bob", b"bob:wrong"] {
        let context = node.context().credentials(wrong.to_vec());
        let refused = context.connect(&client).map(|_| ()).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("does not accept the credentials"), "{text}");
    }
    let errors = client
        .counters()
        .find(|meta| meta.type_id == type_id::ERRORS);
    let errors = client.counters().counter(errors.unwrap().id).unwrap();
    await_true("the count of rejected clients", || errors.get() >= 3);
    let context = node.context().credentials(b"bob:secret".to_vec());
    let mut session = context.connect(&client).unwrap();
    echo(&mut session, b"hello");
    assert_eq!(
        snapshot_answer(&mut session),
        AdminResponseCode::UnauthorisedAccess
    );
    session.close();
    let context = node.context().credentials(b"ops:other".to_vec());
    let mut session = context.connect(&client).unwrap();
    assert_eq!(snapshot_answer(&mut session), AdminResponseCode::OK);
    session.close();
    client.close();
    node.stop();
}

/// Asks for a snapshot, and returns the cluster's answer.
fn snapshot_answer(session: &mut ClusterClient) -> AdminResponseCode {
    let mut requested = None;
    let mut answer = None;
    await_true("the answer to the request for a snapshot", || {
        if requested.is_none() {
            requested = session.request_snapshot().ok();
        }
        session.poll(|_, _| ()).unwrap();
        while let Some(event) = session.next_event() {
            if let ClusterEvent::AdminResponse {
                correlation_id,
                code,
                ..
            } = event
                && Some(correlation_id) == requested
            {
                answer = Some(code);
            }
        }
        answer.is_some()
    });
    answer.unwrap()
}
