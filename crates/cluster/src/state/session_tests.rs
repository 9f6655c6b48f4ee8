// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use super::*;
use crate::protocol::{
    ChallengeResponse, ClientSession, ClusterTimeUnit, EgressMessage, SessionCloseEvent,
    SessionConnectRequest, SessionOpenEvent,
};

const SECOND: i64 = 1_000_000_000;
const ENDPOINTS: &str = "0=a:1,1=b:1";

/// Egress and log in memory.
#[derive(Default)]
struct FakeIo {
    egress: HashMap<Handle, (EgressState, Vec<String>)>,
    log: Vec<String>,
    is_full: bool,
}

impl FakeIo {
    fn connect_all(&mut self) {
        for (state, _) in self.egress.values_mut() {
            *state = EgressState::Connected;
        }
    }

    fn sent(&self, handle: Handle) -> Vec<String> {
        let sent = self.egress.get(&handle).map(|(_, sent)| sent.clone());
        sent.unwrap_or_default()
    }

    fn append(&mut self, entry: String) -> Option<i64> {
        if self.is_full {
            return None;
        }
        self.log.push(entry);
        Some(self.log.len() as i64 * 96)
    }
}

impl SessionIo for FakeIo {
    fn connect_egress(&mut self, handle: Handle, _: &str, _: i32) {
        let (state, _) = self
            .egress
            .entry(handle)
            .or_insert((EgressState::Connecting, Vec::new()));
        *state = EgressState::Connecting;
    }

    fn close_egress(&mut self, handle: Handle) {
        if let Some((state, _)) = self.egress.get_mut(&handle) {
            *state = EgressState::Failed;
        }
    }

    fn egress(&mut self, handle: Handle) -> EgressState {
        self.egress
            .get(&handle)
            .map_or(EgressState::Connecting, |(state, _)| *state)
    }

    fn send(&mut self, handle: Handle, message: &EgressMessage<'_>) -> bool {
        let text = match message {
            EgressMessage::SessionEvent(event) => {
                format!(
                    "{} {} id={}",
                    event.code, event.detail, event.cluster_session_id
                )
            }
            EgressMessage::NewLeaderEvent(event) => {
                format!("new leader {}", event.ingress_endpoints)
            }
            EgressMessage::Challenge(challenge) => {
                format!("challenge {:?}", challenge.encoded_challenge)
            }
            other => format!("{other:?}"),
        };
        let Some((EgressState::Connected, sent)) = self.egress.get_mut(&handle) else {
            return false;
        };
        sent.push(text);
        true
    }

    fn append_open(&mut self, event: &SessionOpenEvent<'_>) -> Option<i64> {
        self.append(format!("open {}", event.cluster_session_id))
    }

    fn append_close(&mut self, event: &SessionCloseEvent) -> Option<i64> {
        self.append(format!(
            "close {} {}",
            event.cluster_session_id, event.close_reason
        ))
    }
}

/// Challenges clients without credentials, and accepts the answer "yes".
#[derive(Default)]
struct Challenging(HashMap<i64, Vec<u8>>);

impl Authenticator for Challenging {
    fn on_connect_request(&mut self, id: i64, credentials: &[u8], _: i64) {
        self.0.insert(id, credentials.to_vec());
    }

    fn on_challenge_response(&mut self, id: i64, credentials: &[u8], _: i64) {
        self.0.insert(id, credentials.to_vec());
    }

    fn decide(&mut self, id: i64, is_challenged: bool, _: i64) -> Authentication {
        match (&self.0[&id][..], is_challenged) {
            (b"yes", _) => Authentication::Accept(b"me".to_vec()),
            (b"", true) => Authentication::Undecided,
            (b"", false) => Authentication::Challenge(b"?".to_vec()),
            _ => Authentication::Reject,
        }
    }
}

struct Fixture {
    sessions: Sessions,
    io: FakeIo,
    authenticator: Box<dyn Authenticator>,
    now: i64,
}

impl Fixture {
    fn new(max_sessions: usize) -> Self {
        let limits = SessionLimits {
            max_sessions,
            timeout: 10 * SECOND,
        };
        Self {
            sessions: Sessions::new(limits),
            io: FakeIo::default(),
            authenticator: Box::new(AcceptAll),
            now: 0,
        }
    }

    fn leadership(&self) -> Leadership<'static> {
        Leadership {
            now: self.now,
            now_ms: 0,
            timestamp: 1_000,
            term: 3,
            leader: 1,
            ingress_endpoints: ENDPOINTS,
            heartbeat_timeout: SECOND,
        }
    }

    fn connect_with(&mut self, is_leader: bool, version: i32, credentials: &[u8]) -> Handle {
        let request = SessionConnectRequest {
            correlation_id: 41,
            response_stream_id: 102,
            version: Some(version),
            response_channel: "aeron:udp?endpoint=localhost:9",
            encoded_credentials: credentials,
            client_info: "name=x",
        };
        let leadership = self.leadership();
        let authenticator = &mut *self.authenticator;
        self.sessions.on_connect_request(
            &leadership,
            is_leader,
            &request,
            77,
            authenticator,
            &mut self.io,
        )
    }

    fn connect(&mut self) -> Handle {
        self.connect_with(true, 768, b"")
    }

    fn step(&mut self, is_leader: bool) {
        let leadership = self.leadership();
        let authenticator = &mut *self.authenticator;
        self.sessions
            .step(&leadership, is_leader, authenticator, &mut self.io);
    }

    fn open(&mut self) -> Handle {
        let handle = self.connect();
        self.io.connect_all();
        self.step(true);
        handle
    }
}

#[test]
fn session_opens_once_its_egress_is_connected_and_the_log_has_room() {
    let mut it = Fixture::new(10);
    let handle = it.connect();
    it.step(true);
    assert!(it.io.log.is_empty(), "egress is not connected");
    it.io.connect_all();
    it.io.is_full = true;
    it.step(true);
    assert!(it.io.sent(handle).is_empty());
    it.io.is_full = false;
    it.step(true);
    assert_eq!(it.io.log, ["open 1"]);
    assert_eq!(it.io.sent(handle), ["OK  id=1"]);
    assert!(it.sessions.accepts(&it.leadership(), 3, 1));
    assert!(!it.sessions.accepts(&it.leadership(), 2, 1), "an old term");
    assert!(!it.sessions.accepts(&it.leadership(), 3, 2), "no session");
}

#[test]
fn follower_sends_clients_to_the_leader_without_a_session_id() {
    let mut it = Fixture::new(10);
    let handle = it.connect_with(false, 768, b"");
    it.io.connect_all();
    it.step(false);
    assert_eq!(it.io.sent(handle), [format!("REDIRECT {ENDPOINTS} id=-1")]);
    assert!(it.sessions.is_empty());
}

#[test]
fn session_beyond_the_limit_and_of_a_wrong_version_is_told_so() {
    let mut it = Fixture::new(1);
    it.open();
    let (second, third) = (it.connect(), it.connect_with(true, 0x01_0203, b""));
    it.io.connect_all();
    it.step(true);
    assert_eq!(it.io.sent(second), ["ERROR concurrent session limit id=2"]);
    assert_eq!(
        it.io.sent(third),
        ["ERROR invalid client version 1.2.3, cluster is 0.3.0 id=3"]
    );
    assert_eq!(it.sessions.len(), 1);
}

#[test]
fn challenged_client_is_accepted_or_rejected_by_its_answer() {
    for (answer, expected) in [(&b"yes"[..], "OK"), (b"no", "AuthenticationRejected")] {
        let mut it = Fixture::new(10);
        it.authenticator = Box::new(Challenging::default());
        let handle = it.connect();
        it.io.connect_all();
        it.step(true);
        it.step(true);
        assert_eq!(it.io.sent(handle), ["challenge [63]"]);
        let response = ChallengeResponse {
            correlation_id: 42,
            cluster_session_id: 1,
            encoded_credentials: answer,
        };
        let leadership = it.leadership();
        it.sessions
            .on_challenge_response(&leadership, &response, &mut *it.authenticator);
        it.step(true);
        let sent = it.io.sent(handle);
        assert!(sent[1].starts_with(expected), "{sent:?}");
        let rejected = match expected {
            "OK" => Vec::new(),
            _ => vec!["aeron:udp?endpoint=localhost:9".to_owned()],
        };
        assert_eq!(it.sessions.take_rejected(), rejected);
        assert!(it.sessions.take_rejected().is_empty());
    }
}

/// Never decides, and notes what it is told.
#[derive(Clone, Default)]
struct Waiting(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl Authenticator for Waiting {
    fn on_connect_request(&mut self, id: i64, _: &[u8], _: i64) {
        self.0.lock().unwrap().push(format!("request {id}"));
    }

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn decide(&mut self, _: i64, _: bool, _: i64) -> Authentication {
        Authentication::Undecided
    }

    fn on_session_gone(&mut self, id: i64) {
        self.0.lock().unwrap().push(format!("gone {id}"));
    }
}

#[test]
fn authenticator_is_told_of_clients_that_go_before_it_decides() {
    let mut it = Fixture::new(10);
    // One that it has accepted, one without egress, one that falls silent, one that the end of leadership closes.
    it.open();
    let notes = Waiting::default();
    it.authenticator = Box::new(notes.clone());
    let handle = it.connect();
    it.io.close_egress(handle);
    it.step(true);
    it.connect();
    it.now = 11 * SECOND;
    it.step(true);
    it.connect();
    let leadership = it.leadership();
    it.sessions
        .end_leadership(&leadership, 0, &mut *it.authenticator, &mut it.io);
    let noted = notes.0.lock().unwrap().clone();
    let expected = [
        "request 2",
        "gone 2",
        "request 3",
        "gone 3",
        "request 4",
        "gone 4",
    ];
    assert_eq!(noted, expected);
}

#[test]
fn client_that_cannot_be_served_is_told_the_reason() {
    for (is_leader, id) in [(true, 1), (false, -1)] {
        let mut it = Fixture::new(10);
        let request = SessionConnectRequest {
            correlation_id: 41,
            response_stream_id: 102,
            version: Some(768),
            response_channel: "aeron:udp?endpoint=localhost:9",
            encoded_credentials: b"",
            client_info: "",
        };
        let (leadership, reason) = (it.leadership(), "too long".to_owned());
        let handle = it.sessions.on_unservable_request(
            &leadership,
            is_leader,
            &request,
            77,
            reason,
            &mut it.io,
        );
        it.io.connect_all();
        it.step(is_leader);
        assert_eq!(it.io.sent(handle), [format!("ERROR too long id={id}")]);
        assert!(it.sessions.is_empty());
    }
}

#[test]
fn silent_session_times_out_and_an_active_one_does_not() {
    let mut it = Fixture::new(10);
    let silent = it.open();
    it.open();
    it.now = 8 * SECOND;
    let leadership = it.leadership();
    it.sessions.on_keep_alive(&leadership, 3, 2, 77);
    it.now = 11 * SECOND;
    it.io.is_full = true;
    it.step(true);
    assert_eq!(it.sessions.len(), 2, "the close event has no room");
    it.io.is_full = false;
    it.step(true);
    assert_eq!(it.io.log[2..], ["close 1 TIMEOUT"]);
    assert_eq!(it.io.sent(silent)[1], "CLOSED TIMEOUT id=1");
    assert_eq!((it.sessions.len(), it.sessions.timed_out()), (1, 1));
}

#[test]
fn close_request_gets_no_answer_and_a_close_by_the_service_does() {
    let mut it = Fixture::new(10);
    let (first, second) = (it.open(), it.open());
    let leadership = it.leadership();
    it.sessions.on_close_request(&leadership, 3, 1, &mut it.io);
    it.sessions.close_by_service(2);
    it.step(true);
    assert_eq!(
        it.io.log[2..],
        ["close 1 ClientAction", "close 2 ServiceAction"]
    );
    assert_eq!(it.io.sent(first).len(), 1);
    assert_eq!(it.io.sent(second)[1], "CLOSED SERVICE_ACTION id=2");
}

#[test]
fn sessions_of_a_lost_ingress_image_are_closed() {
    let mut it = Fixture::new(10);
    it.open();
    it.sessions.on_image_gone(78);
    it.sessions.on_image_gone(77);
    it.step(true);
    assert_eq!(it.io.log, ["open 1", "close 1 TIMEOUT"]);
}

#[test]
fn new_leader_tells_committed_sessions_and_closes_the_others() {
    let mut it = Fixture::new(10);
    let (committed, uncommitted, pending) = (it.open(), it.open(), it.connect());
    it.io.connect_all();
    it.sessions.on_committed(96);
    assert_eq!(it.sessions.committed_next_id(), 2);
    let leadership = it.leadership();
    it.sessions
        .end_leadership(&leadership, 96, &mut *it.authenticator, &mut it.io);
    for lost in [uncommitted, pending] {
        let sent = it.io.sent(lost);
        assert!(
            sent.last()
                .is_some_and(|text| text.starts_with("CLOSED election")),
            "{sent:?}"
        );
    }
    assert_eq!(it.sessions.len(), 1);
    it.now = 20 * SECOND;
    it.sessions.begin_leadership(it.now, false, &mut it.io);
    it.io.connect_all();
    it.step(true);
    assert_eq!(
        it.io.sent(committed)[1..],
        [format!("new leader {ENDPOINTS}")],
        "it got the OK of this leader before"
    );
}

#[test]
fn leader_that_knows_a_session_from_the_log_says_ok_once_more() {
    let mut it = Fixture::new(10);
    let event = SessionOpenEvent {
        leadership_term_id: 2,
        correlation_id: 41,
        cluster_session_id: 9,
        timestamp: 0,
        response_stream_id: 102,
        response_channel: "aeron:ipc",
        encoded_principal: b"me",
    };
    assert!(it.sessions.on_open_event(96, &event));
    assert!(!it.sessions.on_open_event(96, &event), "it is open");
    it.sessions.begin_leadership(0, false, &mut it.io);
    it.io.connect_all();
    it.step(true);
    let (handle, _) = it.sessions.get(9).unwrap();
    assert_eq!(
        it.io.sent(handle),
        ["OK  id=9".to_owned(), format!("new leader {ENDPOINTS}")]
    );
    assert_eq!(it.sessions.committed_next_id(), 10);
}

#[test]
fn leader_of_a_node_that_was_just_started_closes_all_sessions() {
    let mut it = Fixture::new(10);
    it.open();
    it.sessions.on_committed(96);
    let leadership = it.leadership();
    it.sessions
        .end_leadership(&leadership, 96, &mut *it.authenticator, &mut it.io);
    it.sessions.begin_leadership(0, true, &mut it.io);
    it.step(true);
    assert_eq!(it.io.log, ["open 1", "close 1 TIMEOUT"]);
}

#[test]
fn close_that_was_not_committed_is_made_again_by_the_next_leader() {
    let mut it = Fixture::new(10);
    it.open();
    it.sessions.on_committed(96);
    it.sessions.close_by_service(1);
    it.step(true);
    assert!(it.sessions.is_empty());
    let leadership = it.leadership();
    it.sessions
        .end_leadership(&leadership, 96, &mut *it.authenticator, &mut it.io);
    assert_eq!(it.sessions.in_snapshot().len(), 1);
    it.step(true);
    assert_eq!(it.io.log[2], "close 1 ServiceAction");
    it.sessions.on_committed(288);
    it.sessions
        .end_leadership(&leadership, 288, &mut *it.authenticator, &mut it.io);
    assert!(it.sessions.is_empty());
}

const IDENTITY: ModuleSnapshot = ModuleSnapshot {
    log_position: 960,
    term: 7,
    time_unit: ClusterTimeUnit::MILLIS,
    app_version: 1,
};

fn snapshot() -> (Fixture, Timers, PendingMessages) {
    let mut it = Fixture::new(10);
    it.open();
    it.open();
    it.sessions.on_committed(192);
    it.sessions.close_by_service(2);
    let mut timers = Timers::new();
    timers.schedule(7, 2_000);
    timers.schedule(8, 1_000);
    let mut pending = PendingMessages::new(0);
    pending.enqueue(b"first").unwrap();
    pending.enqueue(&[9; 1_000]).unwrap();
    pending.appended(96);
    pending.on_committed(96);
    (it, timers, pending)
}

#[test]
fn snapshot_that_is_read_again_is_the_same() {
    let (it, timers, pending) = snapshot();
    let services = [pending];
    let frames = IDENTITY.module_frames(&it.sessions, &timers, &services);
    assert_eq!(
        frames.len(),
        9,
        "begin, module, 2 sessions, 2 timers, tracker, message, end"
    );
    let (mut sessions, mut restored) = (Fixture::new(10).sessions, Timers::new());
    let mut reader = SnapshotReader::new(ClusterTimeUnit::MILLIS, 1);
    for (index, frame) in frames.iter().enumerate() {
        let is_done = reader
            .on_frame(frame, &mut sessions, &mut restored)
            .unwrap();
        assert_eq!(is_done, index + 1 == frames.len());
    }
    let (marker, again) = reader.finish(1).unwrap();
    assert_eq!((marker.log_position, marker.leadership_term_id), (960, 7));
    assert_eq!(again, services);
    assert_eq!(IDENTITY.module_frames(&sessions, &restored, &again), frames);
}

#[test]
fn snapshot_that_is_incomplete_or_of_another_cluster_is_refused() {
    let (it, timers, pending) = snapshot();
    let frames = IDENTITY.module_frames(&it.sessions, &timers, &[pending]);
    let read = |frames: &[Vec<u8>], unit, version| {
        let (mut sessions, mut timers) = (Fixture::new(10).sessions, Timers::new());
        let mut reader = SnapshotReader::new(unit, version);
        for frame in frames {
            reader.on_frame(frame, &mut sessions, &mut timers)?;
        }
        reader.finish(1).map(drop)
    };
    let millis = ClusterTimeUnit::MILLIS;
    assert_eq!(read(&frames, millis, 2), Ok(()), "the patch differs");
    for count in 0..frames.len() {
        assert!(read(&frames[..count], millis, 1).is_err(), "{count} frames");
    }
    assert!(read(&frames[1..], millis, 1).is_err(), "no begin");
    let twice = [&frames[..1], &frames[..]].concat();
    assert!(read(&twice, millis, 1).is_err(), "two begins");
    assert!(matches!(
        read(&frames, ClusterTimeUnit::NANOS, 1),
        Err(SnapshotError::TimeUnit { .. })
    ));
    assert!(matches!(
        read(&frames, millis, 0x01_0000),
        Err(SnapshotError::AppVersion { .. })
    ));
    let service = IDENTITY.service_frames([ClientSession {
        cluster_session_id: 1,
        response_stream_id: 102,
        response_channel: "aeron:ipc",
        encoded_principal: b"me",
    }]);
    assert_eq!(service.len(), 3);
    assert!(matches!(
        read(&service, millis, 1),
        Err(SnapshotError::WrongType { found: 2, .. })
    ));
    // Each frame cut, and each byte changed: an error or a snapshot, no panic.
    for (index, frame) in frames.iter().enumerate() {
        for at in 0..frame.len().min(64) {
            let mut changed = frames.clone();
            changed[index].truncate(at);
            // A pending message has a payload of any length.
            let is_payload = index == 7 && at >= 32;
            assert_eq!(
                read(&changed, millis, 1).is_err(),
                !is_payload,
                "{index}: {at}"
            );
            let mut changed = frames.clone();
            changed[index][at] ^= 0xff;
            let _ = read(&changed, millis, 1);
        }
    }
}
