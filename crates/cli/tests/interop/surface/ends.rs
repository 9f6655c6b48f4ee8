// SPDX-License-Identifier: Apache-2.0
//! Closing, removal, revocation and rejection.

use taran::{CommandError, ErrorCode, ImageHandlers};

use super::{EventLog, connect_with, receive, send, send_exclusive};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};

const STREAM: i32 = 2_002;

pub(super) fn close_and_removal_by_id_succeed(driver: &Driver) {
    let client = connect(driver.dir());
    for channel in ["aeron:ipc".to_owned(), udp("")] {
        let subscription = client.add_subscription(&channel, STREAM).unwrap();
        let shared = client.add_publication(&channel, STREAM).unwrap();
        let exclusive = client.add_exclusive_publication(&channel, STREAM).unwrap();
        let third = client.add_exclusive_publication(&channel, STREAM).unwrap();
        let counter = client.add_counter(1_500, b"", "mine").unwrap();
        await_true("images", || subscription.image_count() == 3);

        shared.async_close().unwrap().wait().unwrap();
        exclusive.async_close().unwrap().wait().unwrap();
        let (id, other) = (third.registration_id(), subscription.registration_id());
        let removal = client.async_remove_publication(id).unwrap();
        assert!(third.is_closed());
        removal.wait().unwrap();
        assert!(matches!(
            client.async_remove_publication(id),
            Err(CommandError::UnknownRegistration { .. })
        ));
        let removal = client.async_remove_counter(counter.registration_id());
        removal.unwrap().wait().unwrap();
        client
            .async_remove_subscription(other)
            .unwrap()
            .wait()
            .unwrap();
        assert!(subscription.is_closed());

        // Cancelled before the driver has responded.
        let pending = client.async_add_publication(&channel, STREAM).unwrap();
        match client.async_remove_publication(pending.registration_id()) {
            Ok(removal) => removal.wait().unwrap(),
            // The driver was faster, and the publication has not been claimed yet.
            Err(error) => panic!("{error}"),
        }
        await_true("answers", || !client.has_active_commands());
    }
}

pub(super) fn revoke_ends_the_stream_at_once(driver: &Driver) {
    let client = connect(driver.dir());
    for channel in ["aeron:ipc".to_owned(), udp("")] {
        let notes = EventLog::default();
        let gone = notes.clone();
        let handlers = ImageHandlers::new().on_unavailable(move |image| {
            gone.note(format!("revoked: {}", image.is_publication_revoked()));
        });
        let mut subscription = client
            .add_subscription_with(&channel, STREAM, handlers)
            .unwrap();
        let mut publication = client.add_exclusive_publication(&channel, STREAM).unwrap();
        await_true("connection", || publication.is_connected());
        send_exclusive(&mut publication, b"one");
        assert_eq!(receive(&mut subscription), b"one");
        let image = subscription.image(publication.session_id()).unwrap();
        publication.revoke();
        await_true("the end", || notes.has("revoked: true"));
        assert!(image.is_closed() && image.is_publication_revoked());
    }
}

pub(super) fn rejected_image_over_udp_is_reported_to_the_publisher(driver: &Driver) {
    rejected(driver, &udp(""), false);
}

pub(super) fn rejected_image_over_ipc_is_reported_to_the_publisher(driver: &Driver) {
    rejected(driver, "aeron:ipc", true);
}

fn rejected(driver: &Driver, channel: &str, is_ipc: bool) {
    driver.expect_error("errorMessage=not wanted");
    if is_ipc {
        driver.expect_error("errorMessage=again");
    }
    let notes = EventLog::default();
    let reported = notes.clone();
    let publisher = connect_with(driver.dir(), |context| {
        context.on_publication_error(move |error| {
            assert_eq!(error.code, ErrorCode::ImageRejected);
            reported.note(format!("{}: {}", error.registration_id, error.text));
        })
    });
    let gone = notes.clone();
    let handlers = ImageHandlers::new().on_unavailable(move |_| gone.note("gone"));
    let subscriber = connect(driver.dir());
    let mut subscription = subscriber
        .add_subscription_with(channel, STREAM, handlers)
        .unwrap();
    let publication = publisher.add_publication(channel, STREAM).unwrap();
    await_true("connection", || publication.is_connected());
    send(&publication, b"one");
    assert_eq!(receive(&mut subscription), b"one");

    let image = subscription.image(publication.session_id()).unwrap();
    image.reject("not wanted").unwrap();
    let expected = format!("{}: not wanted", publication.original_registration_id());
    await_true("the rejection", || notes.has(&expected));
    // Before the image times out: afterwards the subscription may join the stream again and connect it.
    await_true("no connection", || !publication.is_connected());
    await_true("the end of the image", || notes.has("gone"));
    assert!(image.is_closed());
    if is_ipc {
        // The image is unknown by now.
        let again = image.reject("again");
        assert!(
            matches!(again, Ok(()) | Err(CommandError::Registration(_))),
            "{again:?}"
        );
    }
}
