// SPDX-License-Identifier: Apache-2.0
//! Sessions with a cluster that does what a test says.

use super::machine::LinkCommand;
use super::*;
use crate::protocol::{
    AdminRequestType, AdminResponse, AdminResponseCode, Challenge, EgressMessage, EventCode,
    IngressMessage, NewLeaderEvent, SessionEvent,
};

const MS: i64 = 1_000_000;
const MESSAGE_TIMEOUT: i64 = 5_000 * MS;
const HEARTBEAT: i64 = 3_000 * MS;
const ENDPOINTS: &str = "0=a:1,1=b:1,2=c:1";

struct Secret;

impl Credentials for Secret {
    fn credentials(&mut self) -> Vec<u8> {
        b"user".to_vec()
    }

    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8> {
        [b"answer to ", challenge].concat()
    }
}

/// A session, with the connections that it has opened.
struct World {
    session: Session<Secret>,
    links: Vec<(LinkId, Option<String>)>,
    now: i64,
    next_id: i64,
}

fn options() -> SessionOptions {
    SessionOptions {
        endpoints: parse_endpoints(ENDPOINTS).unwrap(),
        response_stream_id: 102,
        client_info: "name=test".to_owned(),
        message_timeout_ns: MESSAGE_TIMEOUT,
        keep_alive_ns: 1_000 * MS,
        new_leader_timeout_ns: 0,
        reconnect_timeout_ns: 60_000 * MS,
    }
}

impl World {
    fn new(options: SessionOptions) -> Self {
        let mut world = Self {
            session: Session::new(options, Secret, 0),
            links: Vec::new(),
            now: 0,
            next_id: 100,
        };
        world
            .session
            .on_egress("aeron:udp?endpoint=me:5".to_owned());
        world.execute();
        world
    }

    fn execute(&mut self) {
        while let Some(command) = self.session.next_command() {
            match command {
                LinkCommand::Open { link, endpoint } => self.links.push((link, endpoint)),
                LinkCommand::Close { link } => self.links.retain(|(id, _)| *id != link),
            }
        }
    }

    fn tick(&mut self, after_ms: i64) {
        self.now += after_ms * MS;
        let next_id = &mut self.next_id;
        self.session.tick(self.now, || {
            *next_id += 1;
            *next_id
        });
        self.execute();
    }

    fn endpoints(&self) -> Vec<&str> {
        let endpoints = self.links.iter();
        endpoints
            .map(|(_, endpoint)| endpoint.as_deref().unwrap_or("-"))
            .collect()
    }

    fn connect(&mut self, endpoint: &str) {
        let found = |it: &&(LinkId, Option<String>)| it.1.as_deref() == Some(endpoint);
        let link = self.links.iter().find(found).unwrap().0;
        self.session.set_connected(link, true);
    }

    /// Returns the endpoint and text of the request that is to be sent.
    fn request(&self) -> Option<(&str, String)> {
        let (link, message) = self.session.request()?;
        let endpoint = self.links.iter().find(|(id, _)| *id == link).unwrap();
        let text = match message {
            IngressMessage::SessionConnectRequest(it) => {
                let credentials = String::from_utf8_lossy(it.encoded_credentials);
                format!("connect {} {credentials}", it.correlation_id)
            }
            IngressMessage::ChallengeResponse(it) => {
                let credentials = String::from_utf8_lossy(it.encoded_credentials);
                format!("response {} {credentials}", it.cluster_session_id)
            }
            IngressMessage::SessionKeepAlive(it) => {
                format!(
                    "keep-alive {}@{}",
                    it.cluster_session_id, it.leadership_term_id
                )
            }
            IngressMessage::SessionCloseRequest(it) => format!("close {}", it.cluster_session_id),
            other => format!("{other:?}"),
        };
        Some((endpoint.1.as_deref().unwrap_or("-"), text))
    }

    fn asked(&self) -> &str {
        self.request().unwrap().0
    }

    fn sent(&mut self) {
        self.session.on_sent(self.now);
    }

    fn message(&mut self, message: &EgressMessage<'_>) {
        let next_id = &mut self.next_id;
        self.session.on_message(message, self.now, || {
            *next_id += 1;
            *next_id
        });
        self.execute();
    }

    fn event(&mut self, correlation_id: i64, session: i64, code: EventCode, detail: &str) {
        let leader = if code == EventCode::REDIRECT { 2 } else { 1 };
        self.redirect(correlation_id, session, code, detail, leader);
    }

    fn redirect(
        &mut self,
        correlation_id: i64,
        session: i64,
        code: EventCode,
        detail: &str,
        to: i32,
    ) {
        self.message(&EgressMessage::SessionEvent(SessionEvent {
            cluster_session_id: session,
            correlation_id,
            leadership_term_id: 7,
            leader_member_id: to,
            code,
            version: Some(crate::protocol::PROTOCOL_VERSION),
            leader_heartbeat_timeout_ns: Some(HEARTBEAT),
            detail,
        }));
    }

    fn new_leader(&mut self, session: i64, term: i64, leader: i32) {
        self.message(&EgressMessage::NewLeaderEvent(NewLeaderEvent {
            leadership_term_id: term,
            cluster_session_id: session,
            leader_member_id: leader,
            ingress_endpoints: ENDPOINTS,
        }));
    }

    fn events(&mut self) -> Vec<ClusterEvent> {
        std::iter::from_fn(|| self.session.next_event()).collect()
    }

    /// Opens session 3 at member 1.
    fn connected(options: SessionOptions) -> Self {
        let mut world = Self::new(options);
        world.connect("b:1");
        world.tick(0);
        assert_eq!(
            world.request().unwrap(),
            ("b:1", "connect 101 user".to_owned())
        );
        world.sent();
        world.event(101, 3, EventCode::OK, "");
        let connected = ClusterEvent::Connected {
            session_id: 3,
            leader: 1,
        };
        assert_eq!(world.events(), [connected]);
        assert_eq!(world.session.state(), ClusterState::Connected);
        assert_eq!(world.endpoints(), ["b:1"], "the others are closed");
        world
    }
}

#[test]
fn session_opens_at_the_first_member_that_is_connected() {
    let mut world = World::new(options());
    assert_eq!(world.endpoints(), ["a:1", "b:1", "c:1"]);
    world.tick(1);
    assert_eq!(world.request(), None);
    assert_eq!(world.session.state(), ClusterState::Connecting);
    World::connected(options());
}

#[test]
fn follower_redirects_to_the_leader_once_that_is_connected() {
    let mut world = World::new(options());
    world.connect("a:1");
    world.tick(0);
    world.sent();
    world.event(101, -1, EventCode::REDIRECT, ENDPOINTS);
    world.tick(1);
    assert_eq!(world.request(), None, "the leader is not connected");
    world.connect("c:1");
    world.tick(1);
    assert_eq!(world.asked(), "c:1");
}

#[test]
fn leader_that_cannot_be_reached_is_not_waited_for_longer_than_an_answer() {
    let mut world = World::new(options());
    world.connect("a:1");
    world.tick(0);
    world.sent();
    world.event(101, -1, EventCode::REDIRECT, "0=a:1,2=nowhere:1");
    assert_eq!(world.endpoints(), ["a:1", "nowhere:1"]);
    world.tick(999);
    assert_eq!(world.request(), None);
    world.tick(1);
    assert_eq!(world.asked(), "a:1");
}

#[test]
fn member_that_knows_no_leader_is_asked_again_after_a_pause() {
    for (leader, detail) in [(-1, ""), (0, ENDPOINTS), (2, "no list")] {
        let mut world = World::new(options());
        world.connect("a:1");
        world.tick(0);
        world.sent();
        world.redirect(101, -1, EventCode::REDIRECT, detail, leader);
        world.tick(19);
        assert_eq!(world.request(), None);
        world.tick(1);
        assert_eq!(world.asked(), "a:1");
        assert_eq!(world.endpoints().len(), 3);
    }
}

#[test]
fn member_that_does_not_answer_is_followed_by_the_next_one() {
    let mut world = World::new(options());
    world.connect("a:1");
    world.connect("c:1");
    world.tick(0);
    assert_eq!(world.asked(), "a:1");
    world.sent();
    world.tick(999);
    assert_eq!(world.request(), None);
    world.tick(1);
    assert_eq!(world.asked(), "c:1");
    // The first one answers late: its session is as good.
    world.event(101, 3, EventCode::OK, "");
    assert_eq!(world.session.state(), ClusterState::Connected);
    assert_eq!(world.endpoints(), ["a:1"]);
    // The second one has opened a session as well, which is closed.
    world.event(102, 4, EventCode::OK, "");
    world.tick(1);
    assert_eq!(world.request().unwrap().1, "close 4");
}

#[test]
fn challenge_is_answered_with_a_new_correlation_id() {
    let mut world = World::new(options());
    world.connect("b:1");
    world.tick(0);
    world.sent();
    world.message(&EgressMessage::Challenge(Challenge {
        correlation_id: 101,
        cluster_session_id: 3,
        encoded_challenge: b"x",
    }));
    assert_eq!(world.request().unwrap().1, "response 3 answer to x");
    world.sent();
    world.event(102, 3, EventCode::OK, "");
    assert_eq!(world.session.state(), ClusterState::Connected);
}

#[test]
fn refusal_of_the_first_session_closes_with_the_text_of_the_cluster() {
    let refused = ClosedReason::Refused {
        detail: "concurrent session limit".to_owned(),
    };
    let rejected = ClosedReason::AuthenticationRejected {
        detail: "no".to_owned(),
    };
    for (code, detail, reason) in [
        (EventCode::ERROR, "concurrent session limit", refused),
        (EventCode::AuthenticationRejected, "no", rejected),
    ] {
        let mut world = World::new(options());
        world.connect("b:1");
        world.tick(0);
        world.event(101, 3, code, detail);
        assert_eq!(world.session.closed_reason(), Some(&reason));
        assert_eq!(world.events(), [ClusterEvent::Closed(reason)]);
        assert!(world.links.is_empty());
    }
}

#[test]
fn attempt_without_a_leader_ends_at_the_message_timeout_with_what_it_waits_for() {
    let text = |prepare: &dyn Fn(&mut World)| {
        let mut world = World::new(options());
        prepare(&mut world);
        world.tick(4_999);
        assert_eq!(world.session.state(), ClusterState::Connecting);
        world.tick(1);
        world.session.closed_reason().unwrap().to_string()
    };
    assert!(text(&|_| ()).contains("a connection to a member"));
    let asked = |world: &mut World| {
        world.connect("a:1");
        world.tick(0);
    };
    let unanswered = text(&asked);
    assert!(unanswered.contains("egress channel"), "{unanswered}");
}

#[test]
fn idle_session_sends_keep_alives_and_a_busy_one_does_not() {
    let mut world = World::connected(options());
    world.tick(999);
    assert_eq!(world.request(), None);
    world.tick(1);
    assert_eq!(world.request().unwrap().1, "keep-alive 3@7");
    world.sent();
    world.tick(500);
    assert_eq!(world.session.on_offered(world.now), 1);
    world.tick(999);
    assert_eq!(world.request(), None);
}

#[test]
fn new_leader_is_followed_over_a_new_connection_that_begins_with_a_keep_alive() {
    let mut world = World::connected(options());
    assert_eq!(world.session.on_offered(world.now), 1);
    world.session.on_leader_lost(world.now);
    assert_eq!(world.session.state(), ClusterState::AwaitingLeader);
    assert_eq!(world.session.leader(), None);
    world.tick(100);
    world.new_leader(3, 8, 2);
    assert_eq!(world.endpoints(), ["c:1"]);
    world.tick(1);
    assert_eq!(world.session.state(), ClusterState::AwaitingLeader);
    world.connect("c:1");
    world.tick(1);
    assert_eq!(world.session.state(), ClusterState::Connected);
    assert_eq!(
        world.request().unwrap(),
        ("c:1", "keep-alive 3@8".to_owned())
    );
    let lost = ClusterEvent::LeaderLost { leader: 1 };
    let new = ClusterEvent::NewLeader {
        leader: 2,
        term: 8,
        maybe_lost: 1,
    };
    assert_eq!(world.events(), [lost, new]);
}

#[test]
fn new_leader_event_of_another_session_or_of_an_older_term_is_ignored() {
    let mut world = World::connected(options());
    world.new_leader(4, 8, 2);
    world.new_leader(3, 6, 2);
    assert_eq!(world.events(), []);
    assert_eq!(world.session.state(), ClusterState::Connected);
}

#[test]
fn second_answer_of_a_new_leader_changes_nothing() {
    let mut world = World::connected(options());
    world.event(101, 3, EventCode::OK, "");
    assert_eq!(world.session.state(), ClusterState::Connected);
    assert_eq!(world.events(), []);
    world.tick(1);
    assert_eq!(world.request(), None);
}

#[test]
fn session_without_a_new_leader_is_replaced_by_a_new_one() {
    let mut world = World::connected(options());
    for _ in 0..5 {
        world.session.on_offered(world.now);
    }
    world.session.on_leader_lost(world.now);
    world.tick(2 * HEARTBEAT / MS - 1);
    assert_eq!(world.session.state(), ClusterState::AwaitingLeader);
    world.tick(1);
    assert_eq!(world.session.state(), ClusterState::Reconnecting);
    assert_eq!(world.endpoints().len(), 3);
    world.connect("a:1");
    world.tick(1);
    // The cluster still has the lost session.
    world.event(102, -1, EventCode::ERROR, "concurrent session limit");
    assert_eq!(world.session.state(), ClusterState::Reconnecting);
    world.tick(20);
    world.event(103, 9, EventCode::OK, "");
    let new = ClusterEvent::NewSession {
        old: 3,
        session_id: 9,
        leader: 1,
        maybe_lost: 5,
    };
    assert_eq!(world.events().last(), Some(&new));
    assert_eq!(world.session.state(), ClusterState::Connected);
}

#[test]
fn lost_session_whose_leader_comes_late_is_resumed() {
    let mut world = World::connected(options());
    world.session.on_leader_lost(world.now);
    world.tick(2 * HEARTBEAT / MS);
    world.connect("a:1");
    world.tick(1);
    assert_eq!(world.asked(), "a:1");
    world.new_leader(3, 8, 0);
    world.connect("a:1");
    world.tick(1);
    assert_eq!(world.request().unwrap().1, "keep-alive 3@8");
    world.sent();
    // The request of the attempt opens a session that nothing uses.
    world.event(102, 9, EventCode::OK, "");
    world.tick(1);
    assert_eq!(world.request().unwrap().1, "close 9");
}

#[test]
fn lost_session_is_closed_if_no_new_one_is_wanted() {
    let mut options = options();
    options.reconnect_timeout_ns = 0;
    let mut world = World::connected(options);
    world.session.on_leader_lost(world.now);
    world.tick(2 * HEARTBEAT / MS);
    let reason = world.session.closed_reason().unwrap();
    assert!(matches!(reason, ClosedReason::NoLeader { after } if after.as_secs() == 6));
}

#[test]
fn search_for_a_new_session_ends_at_its_timeout_with_the_last_refusal() {
    let mut world = World::connected(options());
    world.event(0, 3, EventCode::CLOSED, "TIMEOUT");
    assert_eq!(world.session.state(), ClusterState::Reconnecting);
    world.connect("a:1");
    world.tick(0);
    world.event(102, -1, EventCode::ERROR, "concurrent session limit");
    world.tick(60_000);
    let text = world.session.closed_reason().unwrap().to_string();
    assert!(text.contains("concurrent session limit"), "{text}");
}

#[test]
fn session_that_its_service_closes_stays_closed() {
    let mut world = World::connected(options());
    world.event(0, 3, EventCode::CLOSED, "SERVICE_ACTION");
    let reason = ClosedReason::Cluster {
        detail: "SERVICE_ACTION".to_owned(),
    };
    assert_eq!(world.session.state(), ClusterState::Closed(reason));
    world.new_leader(3, 8, 2);
    world.session.on_leader_lost(world.now);
    world.tick(1);
    assert!(world.session.closed_reason().is_some());
    assert_eq!(world.request(), None);
}

#[test]
fn answers_to_administrative_requests_of_the_session_are_events() {
    let mut world = World::connected(options());
    let response = |session| {
        EgressMessage::AdminResponse(AdminResponse {
            cluster_session_id: session,
            correlation_id: 50,
            request_type: AdminRequestType::SNAPSHOT,
            response_code: AdminResponseCode::OK,
            message: "",
            payload: &[],
        })
    };
    world.message(&response(4));
    assert_eq!(world.events(), []);
    world.message(&response(3));
    assert!(matches!(
        world.events()[..],
        [ClusterEvent::AdminResponse {
            correlation_id: 50,
            ..
        }]
    ));
}

#[test]
fn client_of_one_channel_follows_leaders_on_that_channel() {
    let mut options = options();
    options.endpoints.clear();
    let mut world = World::new(options);
    assert_eq!(world.endpoints(), ["-"]);
    let link = world.links[0].0;
    world.session.set_connected(link, true);
    world.tick(0);
    world.event(101, 3, EventCode::OK, "");
    world.new_leader(3, 8, 2);
    assert_eq!(world.endpoints(), ["-"]);
    assert_ne!(world.links[0].0, link);
}
