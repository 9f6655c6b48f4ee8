// SPDX-License-Identifier: Apache-2.0
//! Response channels as the sender sees them (docs/spec/wire.md §2.10).

use super::*;
use crate::testing::peer;
use taran_protocol::frame::{IntoBytes, ResponseSetup, Rttm, StatusMessage};

fn response_setup(session_id: i32, stream_id: i32) -> ResponseSetup {
    ResponseSetup {
        header: ResponseSetup::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        response_session_id: 0x5E6F_7081.into(),
    }
}

#[test]
fn response_is_sent_to_source_of_setup_request() {
    let mut fixture = SenderFixture::sending_to(Destination::Learned, |_| ());
    fixture.cycle_after(101 * MS);
    assert!(fixture.socket.sent().is_empty(), "no peer yet");
    assert!(fixture.counters.short_sends.get() > 0);
    for session_id in [0, SESSION] {
        let elicit = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, StatusMessage::SEND_SETUP, START, 0)
        };
        fixture.socket.arrive(elicit.as_bytes());
        fixture.cycle_after(101 * MS);
        fixture.cycle_after(101 * MS);
        let destinations = fixture.socket.destinations();
        if session_id == 0 {
            assert!(destinations.is_empty(), "no destination yet");
        } else {
            assert!(!destinations.is_empty());
            assert!(destinations.iter().all(|to| *to == Some(peer())));
        }
    }
}

/// The publication may share the endpoint by a tag alone, without any response parameter.
#[test]
fn response_without_setup_request_is_not_sent() {
    let mut fixture = SenderFixture::sending_to(Destination::Learned, |_| ());
    let rttm = Rttm {
        header: Rttm::header(Rttm::REPLY),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        echo_timestamp: 0.into(),
        reception_delta: 0.into(),
        receiver_id: RECEIVER.into(),
    };
    fixture.socket.arrive(rttm.as_bytes());
    fixture.cycle();
    assert_eq!(fixture.socket.destinations(), [Some(peer())], "the answer");
    fixture.socket.sent();
    fixture.cycle_after(101 * MS);
    assert!(fixture.socket.sent().is_empty());
}

#[test]
fn response_setup_of_requester_is_forwarded() {
    let mut fixture =
        SenderFixture::sending_to(Destination::Connected, |spec| spec.wants_response = true);
    for (session_id, stream_id) in [(SESSION + 1, STREAM), (SESSION, STREAM + 1)] {
        let stray = response_setup(session_id, stream_id);
        fixture.socket.arrive(stray.as_bytes());
    }
    fixture.cycle();
    assert!(fixture.events.try_recv().is_none());
    fixture
        .socket
        .arrive(response_setup(SESSION, STREAM).as_bytes());
    fixture.cycle();
    let event = fixture.events.try_recv();
    assert!(matches!(
        event,
        Some(ConductorEvent::ResponseSetup {
            publication: PUBLICATION,
            session_id: 0x5E6F_7081,
        })
    ));
}

#[test]
fn response_setup_of_other_publication_is_ignored() {
    let mut fixture = SenderFixture::new();
    fixture
        .socket
        .arrive(response_setup(SESSION, STREAM).as_bytes());
    fixture.cycle();
    assert!(fixture.events.try_recv().is_none());
}
