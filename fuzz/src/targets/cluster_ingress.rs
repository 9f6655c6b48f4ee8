// SPDX-License-Identifier: Apache-2.0
//! Messages of clients, taken by the sessions of a member, and the answers, taken by a client.

use taran_cluster::protocol::{
    EgressMessage, IngressMessage, SessionCloseEvent, SessionOpenEvent, split,
};
use taran_cluster::state::{
    AcceptAll, EgressState, Handle, Leadership, SessionIo, SessionLimits, Sessions,
};

use crate::script::Script;

/// Most sessions that wait or are open.
const MAX_SESSIONS: usize = 4;

/// Egress and log, which may be full.
#[derive(Default)]
struct Io {
    position: i64,
    is_full: bool,
    egress: u8,
    opened: u64,
    closed: u64,
}

impl Io {
    fn append(&mut self) -> Option<i64> {
        if self.is_full {
            return None;
        }
        self.position += 128;
        Some(self.position)
    }
}

impl SessionIo for Io {
    fn connect_egress(&mut self, _: Handle, _: &str, _: i32) {}

    fn close_egress(&mut self, _: Handle) {}

    fn egress(&mut self, _: Handle) -> EgressState {
        match self.egress % 4 {
            0 => EgressState::Connecting,
            1 => EgressState::Failed,
            _ => EgressState::Connected,
        }
    }

    fn send(&mut self, _: Handle, message: &EgressMessage<'_>) -> bool {
        let mut buffer = [0; 4096];
        if let Ok(length) = message.encode(&mut buffer) {
            assert_eq!(EgressMessage::decode(&buffer[..length]), Ok(*message));
        }
        !self.is_full
    }

    fn append_open(&mut self, _: &SessionOpenEvent<'_>) -> Option<i64> {
        let position = self.append();
        self.opened += u64::from(position.is_some());
        position
    }

    fn append_close(&mut self, _: &SessionCloseEvent) -> Option<i64> {
        let position = self.append();
        self.closed += u64::from(position.is_some());
        position
    }
}

/// Runs a script: messages of clients, time, a log that is full, commits, and changes of the leader.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut sessions = Sessions::new(SessionLimits {
        max_sessions: MAX_SESSIONS,
        timeout: 10_000_000_000,
    });
    let mut io = Io::default();
    let mut leadership = Leadership {
        now: 0,
        now_ms: 0,
        timestamp: 0,
        term: 0,
        leader: 1,
        ingress_endpoints: "0=localhost:1,1=localhost:2",
        heartbeat_timeout: 200_000_000,
    };
    let mut is_leader = true;
    while !script.is_over() {
        match script.u8() % 12 {
            0 => leadership.now += 1_000_000_000,
            1 => leadership.now += 11_000_000_000,
            2 => io.is_full = !io.is_full,
            3 => io.egress = script.u8(),
            4 => sessions.on_committed(io.position),
            5 => {
                is_leader = !is_leader;
                if is_leader {
                    leadership.term += 1;
                    sessions.begin_leadership(leadership.now, false, &mut io);
                } else {
                    sessions.end_leadership(&leadership, io.position, &mut AcceptAll, &mut io);
                }
            }
            6 => sessions.on_image_gone(i64::from(script.u8() % 4)),
            7 => sessions.close_by_service(i64::from(script.u8() % 8)),
            _ => {
                let image = i64::from(script.u8() % 4);
                let message = script.chunk();
                receive(
                    &mut sessions,
                    &leadership,
                    is_leader,
                    message,
                    image,
                    &mut io,
                );
            }
        }
        sessions.step(&leadership, is_leader, &mut AcceptAll, &mut io);
        assert!(io.closed <= io.opened, "{} of {}", io.closed, io.opened);
        let open = sessions.in_snapshot().len();
        assert!(open <= 2 * MAX_SESSIONS, "{open} sessions are open");
    }
}

fn receive(
    sessions: &mut Sessions,
    leadership: &Leadership<'_>,
    is_leader: bool,
    bytes: &[u8],
    image: i64,
    io: &mut Io,
) {
    if let Ok(message) = EgressMessage::decode(bytes) {
        let mut buffer = vec![0; bytes.len() + 512];
        let length = message.encode(&mut buffer).expect("there is room");
        assert_eq!(EgressMessage::decode(&buffer[..length]), Ok(message));
    }
    if let Ok((header, _)) = split(bytes) {
        let (term, id) = (header.leadership_term_id, header.cluster_session_id);
        if is_leader && sessions.accepts(leadership, term, id) {
            sessions.touch(leadership.now, id);
        }
        return;
    }
    let Ok(message) = IngressMessage::decode(bytes) else {
        return;
    };
    match message {
        IngressMessage::SessionConnectRequest(request) => {
            sessions.on_connect_request(leadership, is_leader, &request, image, &mut AcceptAll, io);
        }
        _ if !is_leader => {}
        IngressMessage::SessionKeepAlive(it) => sessions.on_keep_alive(
            leadership,
            it.leadership_term_id,
            it.cluster_session_id,
            image,
        ),
        IngressMessage::SessionCloseRequest(it) => {
            let (term, id) = (it.leadership_term_id, it.cluster_session_id);
            sessions.on_close_request(leadership, term, id, io);
        }
        IngressMessage::ChallengeResponse(it) => {
            sessions.on_challenge_response(leadership, &it, &mut AcceptAll);
        }
        IngressMessage::AdminRequest(it) => {
            let (term, id) = (it.leadership_term_id, it.cluster_session_id);
            let session = sessions.admin(leadership, term, id);
            assert!(session.is_none() || term == leadership.term);
        }
        IngressMessage::SessionMessageHeader(_) => {}
    }
}
