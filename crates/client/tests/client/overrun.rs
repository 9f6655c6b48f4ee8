// SPDX-License-Identifier: Apache-2.0
//! Recovery of a client that has lost responses because the broadcast buffer was overrun.

use std::sync::Arc;

use taran::{ClientError, CommandError};
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fake_driver::Fixture;
use crate::images::{Events, record, take_events};

fn recording_fixture() -> (Fixture, Events) {
    let events = Events::default();
    let [available, unavailable, failed] = std::array::from_fn(|_| Arc::clone(&events));
    let fixture = Fixture::with(|builder| {
        builder
            .on_available_image(move |image| {
                record(&available, format!("available {}", image.session_id()));
            })
            .on_unavailable_image(move |image| {
                record(&unavailable, format!("unavailable {}", image.session_id()));
            })
            .on_error(move |error| {
                assert!(
                    matches!(error, ClientError::ResponsesOverwritten { .. }),
                    "{error}"
                );
                record(&failed, "overwritten");
            })
    });
    (fixture, events)
}

/// Overruns the broadcast buffer with responses to other clients.
fn overwrite(fixture: &mut Fixture) {
    for _ in 0..3000 {
        fixture.driver.respond(&Response::OperationSuccess {
            correlation_id: 987_654,
        });
    }
    let message = [b'x'; 1000];
    for _ in 0..70 {
        fixture.driver.respond(&Response::Error {
            correlation_id: 987_654,
            error_code: 11,
            message: &message,
        });
    }
}

#[test]
fn overrun_recovers_images_from_counters() {
    let (mut fixture, events) = recording_fixture();
    let mut subscription = fixture.subscription(10);
    let old = fixture.exclusive_publication(10);
    fixture.run_cycles();
    let (old_session, old_id) = (old.session_id(), old.registration_id());
    assert_eq!(take_events(&events), [format!("available {old_session}")]);

    // Without the client noticing, the old stream ends and a new one starts.
    fixture.driver.do_work();
    let index = fixture
        .driver
        .streams
        .iter()
        .position(|stream| stream.registration_id == old_id)
        .unwrap();
    fixture.driver.end_stream(index);
    let client_id = fixture.client.client_id();
    let index = fixture.driver.create_stream(client_id, 5000, 10, true);
    let position =
        fixture
            .driver
            .add_position_counter(client_id, index, subscription.registration_id());
    let new_session = fixture.driver.streams[index].session_id;
    overwrite(&mut fixture);
    fixture.run_cycles();
    assert_eq!(
        take_events(&events),
        [
            "overwritten".to_owned(),
            format!("unavailable {old_session}"),
            format!("available {new_session}")
        ]
    );
    let image = &subscription.images()[0];
    assert_eq!(
        (image.correlation_id(), image.subscriber_position_id()),
        (5000, position.id())
    );
    assert_eq!((image.session_id(), image.stream_id()), (new_session, 10));

    // A late announcement of a known image is ignored.
    fixture
        .driver
        .announce_image(index, subscription.registration_id(), position.id());
    fixture.run_cycles();
    assert_eq!(subscription.image_count(), 1);
    assert!(take_events(&events).is_empty());
    assert_eq!(fixture.client.close_reason(), None);
}

#[test]
fn overrun_keeps_current_images() {
    let (mut fixture, events) = recording_fixture();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    take_events(&events);
    publication.offer(b"before").unwrap();
    overwrite(&mut fixture);
    fixture.run_cycles();
    assert_eq!(take_events(&events), ["overwritten"]);
    publication.offer(b"after").unwrap();
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(2));
}

#[test]
fn overrun_fails_and_removes_commands_in_flight() {
    let (mut fixture, events) = recording_fixture();
    let mut pending = fixture
        .client
        .async_add_publication("aeron:ipc", 10)
        .unwrap();
    let registered = pending.registration_id();
    fixture.driver.do_work();
    overwrite(&mut fixture);
    fixture.driver.take_commands();
    fixture.client.do_work(fixture.clock.read());
    assert_eq!(
        pending.poll().unwrap().unwrap_err(),
        CommandError::ResponseOverwritten
    );
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().iter().any(|seen| matches!(
        seen.command(),
        Command::RemovePublication { registration_id, .. } if registration_id == registered
    )));
    assert!(fixture.driver.streams.is_empty());
    assert_eq!(take_events(&events), ["overwritten"]);
    let publication = fixture.publication(10);
    assert!(!publication.is_closed());
}
