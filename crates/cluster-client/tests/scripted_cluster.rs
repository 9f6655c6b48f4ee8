// SPDX-License-Identifier: Apache-2.0
//! Clients of a cluster that does what a test says, over a real driver.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use taran::{
    Action, Client, Clock, ExclusivePublication, FragmentAssembler, Subscription, SystemClock,
};
use taran_cluster_client::protocol::{
    EgressMessage, EventCode, IngressMessage, NewLeaderEvent, PROTOCOL_VERSION, SessionEvent,
    SessionMessageHeader, split,
};
use taran_cluster_client::{
    AsyncCluster, ClosedReason, ClusterConnection, ClusterContext, ClusterEvent, ClusterOfferError,
    ClusterState, ConnectClusterError,
};
use taran_driver::{DriverContext, MediaDriver};

/// Time limit of each wait, for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);
const SESSION: i64 = 3;

fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come in time");
        std::thread::yield_now();
    }
}

fn launch() -> (MediaDriver, Client) {
    let context = DriverContext::new().ipc_term_buffer_length(65_536);
    let driver = MediaDriver::launch_embedded(context).unwrap();
    let client = Client::builder()
        .aeron_dir(driver.aeron_dir())
        .connect()
        .unwrap();
    (driver, client)
}

fn context() -> ClusterContext {
    ClusterContext::new("")
        .ingress_channel("aeron:ipc")
        .egress_channel("aeron:ipc")
        .message_timeout(PATIENCE)
        .credentials(b"secret".to_vec())
        .client_name("test")
}

/// The leader's end of the streams. It opens session 3, and echoes messages.
struct Leader {
    client: Client,
    term: i64,
    /// Absent between two leaders.
    ingress: Option<Subscription>,
    assembler: FragmentAssembler,
    egress: Option<ExclusivePublication>,
    seen: Vec<String>,
}

impl Leader {
    fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            term: 7,
            ingress: Some(client.add_subscription("aeron:ipc", 101).unwrap()),
            assembler: FragmentAssembler::new(),
            egress: None,
            seen: Vec::new(),
        }
    }

    fn poll(&mut self) {
        let mut answers: Vec<Vec<u8>> = Vec::new();
        let mut connect = None;
        let (seen, term) = (&mut self.seen, self.term);
        let on_message = |bytes: &[u8], _: &taran::Header<'_>| {
            if let Ok((header, payload)) = split(bytes) {
                seen.push(format!("message of term {}", header.leadership_term_id));
                assert_eq!(header.cluster_session_id, SESSION);
                answers.push(message(SESSION, term, payload));
                return;
            }
            match IngressMessage::decode(bytes).unwrap() {
                IngressMessage::SessionConnectRequest(request) => {
                    assert_eq!(request.encoded_credentials, b"secret");
                    assert!(request.client_info.starts_with("name=test version="));
                    connect = Some((request.response_stream_id, request.correlation_id));
                }
                IngressMessage::SessionKeepAlive(it) => {
                    seen.push(format!("keep-alive of term {}", it.leadership_term_id));
                }
                IngressMessage::SessionCloseRequest(_) => seen.push("close".to_owned()),
                _ => {}
            }
        };
        if let Some(ingress) = &mut self.ingress {
            ingress.poll(self.assembler.wrap(on_message), 100).unwrap();
        }
        if let Some((stream_id, correlation_id)) = connect {
            let egress = self
                .client
                .add_exclusive_publication("aeron:ipc", stream_id);
            self.egress = Some(egress.unwrap());
            self.send_event(correlation_id, EventCode::OK);
        }
        for answer in answers {
            self.send(&answer);
        }
    }

    fn send_event(&mut self, correlation_id: i64, code: EventCode) {
        let event = EgressMessage::SessionEvent(SessionEvent {
            cluster_session_id: SESSION,
            correlation_id,
            leadership_term_id: self.term,
            leader_member_id: 0,
            code,
            version: Some(PROTOCOL_VERSION),
            leader_heartbeat_timeout_ns: Some(1_000_000_000),
            detail: "SERVICE_ACTION",
        });
        let mut buffer = [0; 256];
        let length = event.encode(&mut buffer).unwrap();
        self.send(&buffer[..length]);
    }

    fn send(&mut self, bytes: &[u8]) {
        let egress = self.egress.as_mut().unwrap();
        await_true("room for an answer", || egress.offer(bytes).is_ok());
    }

    /// Ends the streams of the leader.
    fn fail_over(&mut self) {
        self.ingress = None;
        self.assembler = FragmentAssembler::new();
        self.term += 1;
        self.egress = None;
    }

    /// Begins the streams of the next leader. A subscription that exists earlier can join the stream to the leader before at a
    /// position that is older than what that leader has read.
    fn announce(&mut self) {
        self.ingress = Some(self.client.add_subscription("aeron:ipc", 101).unwrap());
        self.egress = Some(
            self.client
                .add_exclusive_publication("aeron:ipc", 102)
                .unwrap(),
        );
        let event = EgressMessage::NewLeaderEvent(NewLeaderEvent {
            leadership_term_id: self.term,
            cluster_session_id: SESSION,
            leader_member_id: 1,
            ingress_endpoints: "0=a:1,1=b:1",
        });
        let mut buffer = [0; 256];
        let length = event.encode(&mut buffer).unwrap();
        self.send(&buffer[..length]);
    }
}

fn message(session: i64, term: i64, payload: &[u8]) -> Vec<u8> {
    let header = SessionMessageHeader {
        leadership_term_id: term,
        cluster_session_id: session,
        timestamp: 55,
    };
    let mut bytes = vec![0; 32];
    header.encode(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

struct World {
    leader: Leader,
    connection: ClusterConnection,
    _driver: MediaDriver,
}

impl World {
    fn connected() -> Self {
        let (driver, client) = launch();
        let mut leader = Leader::new(&client);
        let mut connection = context().connecting(&client, 0).unwrap();
        assert_eq!(connection.state(), ClusterState::Connecting);
        assert_eq!(
            connection.offer(b"x"),
            Err(ClusterOfferError::AwaitingLeader)
        );
        await_true("the session", || {
            leader.poll();
            connection.poll(0, |_, _| ());
            connection.is_connected()
        });
        Self {
            leader,
            connection,
            _driver: driver,
        }
    }

    fn await_message(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        await_true("an answer", || {
            self.leader.poll();
            self.connection.poll(0, |message, info| {
                assert_eq!((info.session_id, info.timestamp), (SESSION, 55));
                received.push(message.to_vec());
            });
            !received.is_empty()
        });
        assert_eq!(received.len(), 1);
        received.remove(0)
    }
}

#[test]
fn session_sends_and_receives_messages_of_any_length() {
    let mut world = World::connected();
    assert_eq!(world.connection.session_id(), Some(SESSION));
    assert_eq!(world.connection.offer(b"one"), Ok(1));
    assert_eq!(world.await_message(), b"one");
    let long = vec![b'x'; 5_000];
    assert_eq!(world.connection.offer_parts(&[b"a", &long, b"b"]), Ok(2));
    let answer = world.await_message();
    assert_eq!((answer.len(), answer[5_001]), (5_002, b'b'));
    let mut claim = world.connection.try_claim(4).unwrap();
    claim.copy_from_slice(b"four");
    assert_eq!(claim.commit(), 3);
    assert_eq!(world.await_message(), b"four");
    world.connection.try_claim(4).unwrap().abort();
    assert_eq!(world.connection.sent(), 3);
    let too_long = vec![0; 1_000_000];
    let refused = world.connection.offer(&too_long).unwrap_err();
    assert!(!refused.is_retryable(), "{refused}");
    let World {
        mut leader,
        connection,
        ..
    } = world;
    connection.close();
    await_true("the close request", || {
        leader.poll();
        leader.seen.last().is_some_and(|it| it == "close")
    });
}

#[test]
fn message_of_another_session_is_not_passed_on() {
    let mut world = World::connected();
    world.leader.send(&message(SESSION + 1, 7, b"other"));
    world.leader.send(&[1, 2, 3]);
    world.leader.send(&message(SESSION, 7, b"own"));
    assert_eq!(world.await_message(), b"own");
}

#[test]
fn aborted_message_is_passed_again() {
    let mut world = World::connected();
    world.leader.send(&message(SESSION, 7, b"own"));
    let mut count = 0;
    await_true("the message", || {
        world.connection.controlled_poll(0, |_, _| {
            count += 1;
            Action::Abort
        });
        count == 3
    });
    assert_eq!(world.await_message(), b"own");
}

#[test]
fn session_goes_on_with_a_new_leader() {
    let mut world = World::connected();
    world.connection.offer(b"one").unwrap();
    world.await_message();
    world.leader.fail_over();
    await_true("the loss of the leader", || {
        world.connection.poll(0, |_, _| ());
        world.connection.state() == ClusterState::AwaitingLeader
    });
    assert_eq!(
        world.connection.offer(b"two"),
        Err(ClusterOfferError::AwaitingLeader)
    );
    world.leader.announce();
    await_true("the new leader", || {
        world.connection.poll(0, |_, _| ());
        world.connection.is_connected()
    });
    assert_eq!(world.connection.leader(), Some(1));
    assert_eq!(world.connection.offer(b"two"), Ok(2));
    assert_eq!(world.await_message(), b"two");
    assert_eq!(
        world.leader.seen,
        [
            "message of term 7",
            "keep-alive of term 8",
            "message of term 8"
        ]
    );
    let events: Vec<_> = std::iter::from_fn(|| world.connection.next_event()).collect();
    assert!(
        matches!(
            events[..],
            [
                ClusterEvent::Connected { session_id: 3, .. },
                ClusterEvent::LeaderLost { leader: 0 },
                ClusterEvent::NewLeader {
                    leader: 1,
                    term: 8,
                    maybe_lost: 1
                },
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn session_that_the_service_closes_is_closed_with_the_reason() {
    let mut world = World::connected();
    world.leader.send_event(0, EventCode::CLOSED);
    await_true("the end", || {
        world.connection.poll(0, |_, _| ());
        world.connection.closed_reason().is_some()
    });
    let reason = ClosedReason::Cluster {
        detail: "SERVICE_ACTION".to_owned(),
    };
    assert_eq!(
        world.connection.offer(b"x"),
        Err(ClusterOfferError::Closed(reason))
    );
}

#[test]
fn invalid_options_are_errors_that_name_them() {
    let (_driver, client) = launch();
    let error = |context: ClusterContext| context.connecting(&client, 0).unwrap_err().to_string();
    let text = error(context().client_name("x".repeat(101)));
    assert!(text.contains("aeron.cluster.client.name"), "{text}");
    let text = error(ClusterContext::new("0=a:1").ingress_channel("aeron:ipc"));
    assert!(text.contains("aeron.cluster.ingress.endpoints"), "{text}");
    let text = error(ClusterContext::new(""));
    assert!(text.contains("has no endpoint"), "{text}");
    let text = error(ClusterContext::new("0:a"));
    assert!(text.contains("0:a"), "{text}");
}

#[test]
fn blocking_client_times_out_without_a_cluster() {
    let (_driver, client) = launch();
    let context = context().message_timeout(Duration::from_millis(50));
    let error = context.connect(&client).unwrap_err();
    assert!(
        matches!(
            error,
            ConnectClusterError::Closed(ClosedReason::Timeout { .. })
        ),
        "{error}"
    );
}

/// Polls a future, and `work` meanwhile.
fn block_on<F: Future>(future: F, mut work: impl FnMut()) -> F::Output {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let mut future = pin!(future);
    let waker = Arc::new(Nothing).into();
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(Instant::now() < deadline, "a task did not end in time");
        work();
        std::thread::yield_now();
    }
}

#[test]
fn tasks_send_and_receive_while_a_thread_keeps_the_session() {
    let (_driver, client) = launch();
    let mut leader = Leader::new(&client);
    let now_ns = SystemClock::new().now().nanos;
    let connection = context().connecting(&client, now_ns).unwrap();
    let cluster = AsyncCluster::start(connection).unwrap();
    let sent = block_on(cluster.offer(b"one"), || leader.poll());
    assert_eq!(sent, Ok(1));
    let received = block_on(cluster.next_message(), || leader.poll());
    assert_eq!(received, Ok(b"one".to_vec()));
    let event = block_on(cluster.next_event(), || ());
    assert!(matches!(
        event,
        Some(ClusterEvent::Connected { session_id: 3, .. })
    ));
    drop(cluster);
    await_true("the close request", || {
        leader.poll();
        leader.seen.last().is_some_and(|it| it == "close")
    });
}
