//! A client that was not scheduled while the driver said more than the broadcast holds.

use std::sync::Arc;

use taran::{AddError, ClientError};
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fake::Pair;
use crate::images::{Notes, note, taken};

fn noted() -> (Pair, Notes) {
    let notes = Notes::default();
    let [come, go, failed] = std::array::from_fn(|_| Arc::clone(&notes));
    let pair = Pair::with(|context| {
        context
            .on_available_image(move |image| {
                note(&come, format!("available {}", image.session_id()));
            })
            .on_unavailable_image(move |image| {
                note(&go, format!("unavailable {}", image.session_id()));
            })
            .on_error(move |error| {
                assert!(
                    matches!(error, ClientError::ResponsesOverwritten { .. }),
                    "{error}"
                );
                note(&failed, "overwritten");
            })
    });
    (pair, notes)
}

/// Fills the broadcast once over with responses to others.
fn overwrite(pair: &mut Pair) {
    for _ in 0..3000 {
        pair.driver.say(&Response::OperationSuccess {
            correlation_id: 987_654,
        });
    }
    let message = [b'x'; 1000];
    for _ in 0..70 {
        pair.driver.say(&Response::Error {
            correlation_id: 987_654,
            error_code: 11,
            message: &message,
        });
    }
}

#[test]
fn images_are_taken_from_the_counters_again() {
    let (mut pair, notes) = noted();
    let mut subscription = pair.subscription(10);
    let old = pair.exclusive_publication(10);
    pair.turns();
    let (old_session, old_id) = (old.session_id(), old.registration_id());
    assert_eq!(taken(&notes), [format!("available {old_session}")]);

    // Unseen: the old stream ends, a new one begins.
    pair.driver.turn();
    let index = pair
        .driver
        .streams
        .iter()
        .position(|stream| stream.registration_id == old_id)
        .unwrap();
    pair.driver.end_stream(index);
    let client_id = pair.client.client_id();
    let index = pair.driver.make_stream(client_id, 5000, 10, true);
    let position = pair
        .driver
        .make_position(client_id, index, subscription.registration_id());
    let new_session = pair.driver.streams[index].session_id;
    overwrite(&mut pair);
    pair.turns();
    assert_eq!(
        taken(&notes),
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

    // The announcement comes after all: it is known already.
    pair.driver
        .announce(index, subscription.registration_id(), position.id());
    pair.turns();
    assert_eq!(subscription.image_count(), 1);
    assert!(taken(&notes).is_empty());
    assert_eq!(pair.client.close_reason(), None);
}

#[test]
fn images_that_are_well_stay() {
    let (mut pair, notes) = noted();
    let mut subscription = pair.subscription(10);
    let publication = pair.publication(10);
    pair.turns();
    taken(&notes);
    publication.offer(b"before").unwrap();
    overwrite(&mut pair);
    pair.turns();
    assert_eq!(taken(&notes), ["overwritten"]);
    publication.offer(b"after").unwrap();
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(2));
}

#[test]
fn commands_in_flight_fail_and_are_given_back() {
    let (mut pair, notes) = noted();
    let mut pending = pair.client.async_add_publication("aeron:ipc", 10).unwrap();
    let registered = pending.registration_id();
    pair.driver.turn();
    overwrite(&mut pair);
    pair.driver.take_seen();
    pair.client.do_work(pair.clock.read());
    assert_eq!(
        pending.poll().unwrap().unwrap_err(),
        AddError::ResponseOverwritten
    );
    pair.turns();
    assert!(pair.driver.take_seen().iter().any(|seen| matches!(
        seen.command(),
        Command::RemovePublication { registration_id, .. } if registration_id == registered
    )));
    assert!(pair.driver.streams.is_empty());
    assert_eq!(taken(&notes), ["overwritten"]);
    let publication = pair.publication(10);
    assert!(!publication.is_closed());
}
