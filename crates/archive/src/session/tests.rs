// SPDX-License-Identifier: Apache-2.0
use taran_archive_client::protocol::Event;

use super::response_queue::testing::TestStream;
use super::*;
use crate::security::{AcceptAll, SimpleAuthenticator};

const SECOND: i64 = 1_000_000_000;
const TIMEOUTS: SessionTimeouts = SessionTimeouts {
    connect_ns: 5 * SECOND,
    ping_interval_ns: SECOND,
};

type TestSession = ControlSession<TestStream>;

fn identity() -> SessionIdentity {
    SessionIdentity {
        id: 40,
        correlation_id: 7,
        request_image: 3,
        unsupported_version: None,
    }
}

/// A session whose stream and counter are there, and whose client is subscribed.
fn connected(identity: SessionIdentity) -> TestSession {
    let mut session = TestSession::new(identity, TIMEOUTS, EventLog::default(), 0);
    session.on_stream(TestStream {
        is_connected: true,
        ..TestStream::default()
    });
    session.on_counter();
    session.poll(0, 0, &mut AcceptAll);
    session.poll(0, 0, &mut AcceptAll);
    session
}

fn active() -> TestSession {
    let mut session = connected(identity());
    session.poll(0, 0, &mut AcceptAll);
    assert!(session.activate(0));
    session.stream().sent.clear();
    session
}

impl TestSession {
    fn stream(&mut self) -> &mut TestStream {
        self.stream.as_mut().unwrap().stream_mut()
    }

    /// Returns code, correlation id and relevant id of the responses sent since the last call.
    fn responses(&mut self) -> Vec<(ControlResponseCode, i64, i64)> {
        let sent = std::mem::take(&mut self.stream().sent);
        sent.iter()
            .filter_map(|message| match Event::decode(message).unwrap() {
                Event::ControlResponse(response) => {
                    assert_eq!(response.control_session_id, 40);
                    Some((response.code, response.correlation_id, response.relevant_id))
                }
                _ => None,
            })
            .collect()
    }
}

#[test]
fn session_of_accepted_client_repeats_its_acceptance_until_the_first_request() {
    let mut session = connected(identity());
    session.poll(0, 0, &mut AcceptAll);
    let accepted = (ControlResponseCode::OK, 7, 40);
    assert_eq!(session.responses(), [accepted]);
    session.poll(SECOND / 10, 0, &mut AcceptAll);
    assert_eq!(session.responses(), []);
    session.poll(SECOND / 5, 0, &mut AcceptAll);
    assert_eq!(session.responses(), [accepted]);
    // Authentication has cleared the deadline.
    session.poll(6 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.responses(), [accepted]);
    assert!(session.activate(6 * SECOND) && session.is_active());
    session.poll(6 * SECOND + SECOND / 2, 0, &mut AcceptAll);
    assert_eq!(session.responses(), []);
}

#[test]
fn session_whose_acceptance_cannot_be_sent_asks_again() {
    let mut session = connected(identity());
    session.stream().room = Some(0);
    session.poll(0, 0, &mut AcceptAll);
    assert!(!session.activate(0));
    session.stream().room = None;
    session.poll(SECOND / 5, 0, &mut AcceptAll);
    assert!(session.activate(SECOND / 5));
}

#[test]
fn session_of_unsupported_version_is_told_and_never_active() {
    let mut session = connected(SessionIdentity {
        unsupported_version: Some(ProtocolVersion::new(2, 0, 0)),
        ..identity()
    });
    session.poll(0, 0, &mut AcceptAll);
    assert_eq!(session.responses(), [(ControlResponseCode::ERROR, 7, 40)]);
    assert!(!session.activate(0));
    session.poll(5 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.end(), Some(SessionEnd::NotAuthenticatedInTime));
}

#[test]
fn session_of_rejected_client_is_told_until_the_deadline() {
    let mut authenticator = SimpleAuthenticator::new();
    authenticator.on_connect_request(40, b"guess", 0);
    let mut session = connected(identity());
    session.poll(0, 0, &mut authenticator);
    let rejected = (ControlResponseCode::ERROR, 7, 10);
    assert_eq!(session.responses(), [rejected]);
    session.poll(SECOND / 5, 0, &mut authenticator);
    assert_eq!(session.responses(), [rejected]);
    assert!(!session.activate(SECOND));
    session.poll(5 * SECOND, 0, &mut authenticator);
    assert_eq!(session.end(), Some(SessionEnd::Rejected));
}

/// Challenges each client, and accepts the answer `yes`.
#[derive(Default)]
struct Challenger(Option<Vec<u8>>);

impl Authenticator for Challenger {
    fn on_connect_request(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_challenge_response(&mut self, _: i64, credentials: &[u8], _: i64) {
        self.0 = Some(credentials.to_vec());
    }

    fn on_connected_session(&mut self, session: &mut SessionProxy, _: i64) {
        session.challenge("who");
    }

    fn on_challenged_session(&mut self, session: &mut SessionProxy, _: i64) {
        match self.0.as_deref() {
            Some(b"yes") => session.authenticate("desk"),
            Some(_) => session.reject(),
            None => {}
        }
    }
}

#[test]
fn session_with_challenge_answers_the_response_to_it() {
    for (answer, code, relevant_id) in [
        (&b"yes"[..], ControlResponseCode::OK, 40),
        (b"no", ControlResponseCode::ERROR, 10),
    ] {
        let mut authenticator = Challenger::default();
        let mut session = connected(identity());
        session.poll(0, 0, &mut authenticator);
        let challenge = session.stream().sent.pop().unwrap();
        let Event::Challenge(challenge) = Event::decode(&challenge).unwrap() else {
            panic!("no challenge")
        };
        assert_eq!(
            (challenge.correlation_id, challenge.encoded_challenge),
            (7, &b"who"[..])
        );
        session.poll(1, 0, &mut authenticator);
        assert_eq!(session.responses(), []);
        session.on_challenge_response(8, answer, &mut authenticator, 0);
        session.poll(2, 0, &mut authenticator);
        assert_eq!(session.responses(), [(code, 8, relevant_id)]);
        assert_eq!(session.activate(3), code == ControlResponseCode::OK);
    }
}

#[test]
fn session_without_client_ends_at_the_deadline() {
    let mut session = TestSession::new(identity(), TIMEOUTS, EventLog::default(), 0);
    session.poll(5 * SECOND - 1, 0, &mut AcceptAll);
    assert_eq!(session.end(), None);
    session.poll(5 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.end(), Some(SessionEnd::NotConnectedInTime));
    // The stream renews the deadline.
    let mut session = TestSession::new(identity(), TIMEOUTS, EventLog::default(), 0);
    session.on_stream(TestStream::default());
    session.on_counter();
    session.poll(4 * SECOND, 0, &mut AcceptAll);
    session.poll(8 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.end(), None);
    session.poll(9 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.end(), Some(SessionEnd::NotConnectedInTime));
}

#[test]
fn active_session_pings_and_ends_when_pings_are_blocked() {
    let mut session = active();
    session.poll(SECOND, 0, &mut AcceptAll);
    let ping = session.stream().sent.pop().unwrap();
    assert!(matches!(Event::decode(&ping), Ok(Event::Ping(_))));
    session.stream().room = Some(0);
    for second in 2..7 {
        session.poll(second * SECOND, 0, &mut AcceptAll);
        assert_eq!(session.end(), None);
    }
    session.poll(7 * SECOND, 0, &mut AcceptAll);
    assert_eq!(session.end(), Some(SessionEnd::ResponsesBlocked));
}

#[test]
fn active_session_sends_queued_responses_in_order() {
    let mut session = active();
    session.stream().room = Some(0);
    for correlation_id in 0..3 {
        let response = Response {
            correlation_id,
            relevant_id: 0,
            code: ControlResponseCode::OK,
            text: "",
        };
        session.respond(&response, 0);
    }
    assert!(!session.is_drained());
    session.stream().room = None;
    session.poll(1, 0, &mut AcceptAll);
    let sent: Vec<_> = session
        .responses()
        .iter()
        .map(|response| response.1)
        .collect();
    assert_eq!(sent, [0, 1, 2]);
    assert!(session.is_drained());
}

#[test]
fn active_session_whose_client_is_gone_ends_without_abort() {
    let mut session = active();
    session.stream().is_connected = false;
    session.poll(1, 0, &mut AcceptAll);
    let end = session.end().unwrap();
    assert_eq!(end, SessionEnd::ResponsesNotConnected);
    assert_eq!(end.abort_reason(), None);
    // The first end counts.
    session.close(SessionEnd::Closed);
    assert_eq!(session.end(), Some(SessionEnd::ResponsesNotConnected));
}

#[test]
fn active_session_whose_stream_ended_is_aborted() {
    let mut session = active();
    session.stream().is_closed = true;
    session.poll(SECOND, 0, &mut AcceptAll);
    let end = session.end().unwrap();
    assert_eq!(end, SessionEnd::ResponsesEnded);
    assert!(end.abort_reason().is_some());
}
