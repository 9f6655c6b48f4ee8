// SPDX-License-Identifier: Apache-2.0
//! Liveness of receivers, spies, and removal of publications and endpoints.

use taran_protocol::log::ExclusiveAppender;

use super::*;

#[test]
fn silent_receiver_is_removed_after_five_seconds() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.cycle_after(4_999 * MS);
    assert!(fixture.shared.has_receivers());
    fixture.cycle_after(MS);
    assert!(!fixture.shared.has_receivers());
    assert_eq!(fixture.sent().len(), 0, "heartbeats continue at their load");
    fixture.cycle_after(101 * MS);
    fixture.status(START, 32_768);
    fixture.cycle();
    assert!(fixture.shared.has_receivers());
}

#[test]
fn end_of_stream_status_of_unicast_receiver_is_recorded() {
    let mut fixture = SenderFixture::connected(32_768);
    assert!(!fixture.shared.is_unicast_end_of_stream_received());
    fixture.status_of(RECEIVER, StatusMessage::EOS, START, 32_768);
    fixture.cycle();
    assert!(fixture.shared.is_unicast_end_of_stream_received());
    assert!(!fixture.shared.has_receivers());
}

#[test]
fn end_of_stream_of_receiver_is_reset_by_its_successor() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.status_of(RECEIVER, StatusMessage::EOS, START, 32_768);
    fixture.status_of(RECEIVER + 1, 0, START, 32_768);
    fixture.cycle();
    assert!(!fixture.shared.is_unicast_end_of_stream_received());
    assert!(fixture.shared.has_receivers());
}

#[test]
fn end_of_stream_of_group_member_is_not_recorded() {
    let mut fixture = SenderFixture::with(|spec| spec.is_group = true);
    fixture.connect(32_768);
    fixture.status_of(7, 0, START, 32_768);
    fixture.status_of(RECEIVER, StatusMessage::EOS, START, 32_768);
    fixture.cycle();
    assert!(!fixture.shared.is_unicast_end_of_stream_received());
    assert!(fixture.shared.has_receivers());
}

#[test]
fn spies_advance_stream_without_receivers() {
    let mut fixture = SenderFixture::with(|spec| spec.spies_simulate_connection = true);
    let mut appender = ExclusiveAppender::new(fixture.log.clone()).unwrap();
    for _ in 0..10 {
        appender.append(&[0xAB; 64], None).unwrap();
    }
    let spies = [Counter::detached(), Counter::detached()];
    for spy in &spies {
        spy.set(START);
        let (endpoint, publication) = (ENDPOINT, PUBLICATION);
        fixture.command(SenderCommand::AddSpy {
            endpoint,
            publication,
            position: spy.clone(),
        });
    }
    spies[0].set(START + 640);
    spies[1].set(START + 320);
    fixture.cycle();
    fixture.cycle();
    fixture.cycle();
    assert_eq!(
        (fixture.position.get(), fixture.limit.get()),
        (START + 640, START + 640)
    );
    for lie in [i64::MAX, appender.position() + 32, START + 640 + 31] {
        spies[1].set(lie);
        fixture.cycle();
        assert_eq!(
            fixture.position.get(),
            START + 640,
            "an impossible status message is ignored: {lie}"
        );
    }
    fixture.status(START + 640, 32_768);
    fixture.cycle();
    spies[0].set(START + 960);
    fixture.cycle();
    assert_eq!(
        fixture.position.get(),
        START + 640,
        "a receiver counts, spies do not"
    );
}

#[test]
fn removed_publication_is_returned_to_conductor() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.command(SenderCommand::RemovePublication {
        endpoint: ENDPOINT,
        publication: PUBLICATION,
    });
    fixture.cycle();
    let Some(ConductorEvent::PublicationReleased(publication)) = fixture.events.try_recv() else {
        panic!("no event");
    };
    assert_eq!(
        (publication.id(), publication.endpoint()),
        (PUBLICATION, ENDPOINT)
    );
    fixture.cycle_after(1_000 * MS);
    assert_eq!(fixture.socket.sent(), [[0; 0]; 0]);
}

#[test]
fn removed_endpoint_is_returned_with_its_publications_despite_full_queue() {
    let mut fixture = SenderFixture::connected(32_768);
    for id in 3..10 {
        let spec = SenderPublicationSpec {
            id: PublicationId(id),
            session_id: id as i32,
            ..fixture.publication_spec()
        };
        fixture.command(SenderCommand::AddPublication(Box::new(
            SenderPublication::new(spec),
        )));
        fixture.cycle();
    }
    fixture.command(SenderCommand::RemoveEndpoint(ENDPOINT));
    let mut publications = 0;
    let mut endpoints = 0;
    for _ in 0..10 {
        fixture.cycle();
        while let Some(event) = fixture.events.try_recv() {
            match event {
                ConductorEvent::PublicationReleased(_) => publications += 1,
                ConductorEvent::SendEndpointReleased(endpoint) => {
                    assert_eq!(
                        (endpoint.id(), publications),
                        (ENDPOINT, 8),
                        "the endpoint comes last"
                    );
                    endpoints += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((publications, endpoints), (8, 1));
    assert!(fixture.counters.failed_offers_to_conductor.get() > 0);
}

#[test]
fn publication_for_unknown_endpoint_is_returned() {
    let mut fixture = SenderFixture::connected(32_768);
    let spec = SenderPublicationSpec {
        endpoint: EndpointId(99),
        ..fixture.publication_spec()
    };
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle();
    assert!(matches!(
        fixture.events.try_recv(),
        Some(ConductorEvent::PublicationReleased(_))
    ));
}

/// Adds publications with these sessions, by the ids 10, 11 and so on. Returns what counts the NAKs of each.
fn add_with_sessions(fixture: &mut SenderFixture, sessions: &[i32]) -> Vec<Counter> {
    let mut counts = Vec::new();
    for (id, &session_id) in (10..).zip(sessions) {
        let naks_received = Counter::detached();
        counts.push(naks_received.clone());
        let publication = SenderPublication::new(SenderPublicationSpec {
            id: PublicationId(id),
            session_id,
            naks_received,
            shared: Arc::new(PublicationShared::new(START)),
            ..fixture.publication_spec()
        });
        fixture.command(SenderCommand::AddPublication(Box::new(publication)));
        fixture.cycle();
    }
    counts
}

fn remove(fixture: &mut SenderFixture, id: i64) {
    fixture.command(SenderCommand::RemovePublication {
        endpoint: ENDPOINT,
        publication: PublicationId(id),
    });
    fixture.cycle();
}

fn send_naks(fixture: &mut SenderFixture, sessions: std::ops::Range<i32>) {
    for session_id in sessions {
        fixture
            .socket
            .arrive(nak(session_id, STREAM, 0, 64).as_bytes());
    }
    fixture.cycle();
}

#[test]
fn control_frames_reach_publication_after_others_are_removed() {
    for (removed, reached) in [(10, [0, 1, 1, 1]), (11, [1, 0, 1, 1]), (13, [1, 1, 1, 0])] {
        let mut fixture = SenderFixture::new();
        let counts = add_with_sessions(&mut fixture, &[10, 11, 12, 13]);
        remove(&mut fixture, removed);
        send_naks(&mut fixture, 10..14);
        let received: Vec<i64> = counts.iter().map(Counter::get).collect();
        assert_eq!(received, reached, "without {removed}");
    }
}

#[test]
fn control_frames_of_shared_session_go_to_oldest_publication() {
    let mut fixture = SenderFixture::new();
    let counts = add_with_sessions(&mut fixture, &[7, 5, 6, 5, 5]);
    let received = |fixture: &mut SenderFixture| -> Vec<i64> {
        send_naks(fixture, 5..8);
        counts.iter().map(Counter::get).collect()
    };
    assert_eq!(received(&mut fixture), [1, 1, 1, 0, 0]);
    // Removing a younger publication changes nothing; removing the oldest reroutes to the next.
    remove(&mut fixture, 14);
    assert_eq!(received(&mut fixture), [2, 2, 2, 0, 0]);
    remove(&mut fixture, 11);
    assert_eq!(received(&mut fixture), [3, 2, 3, 1, 0]);
    remove(&mut fixture, 13);
    assert_eq!(received(&mut fixture), [4, 2, 4, 1, 0]);
}
