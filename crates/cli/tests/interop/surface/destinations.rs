// SPDX-License-Identifier: Apache-2.0
//! Destinations of publications and sources of subscriptions, changed at run time.

use taran::{CommandError, Subscription};

use super::{receive, send};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};

const STREAM: i32 = 2_001;

/// Returns true if nothing is received for some cycles, in which a message would have arrived.
fn is_silent(subscription: &mut Subscription, mut wait: impl FnMut()) -> bool {
    (0..20).all(|_| {
        wait();
        subscription.poll(|_, _| (), 10).unwrap() == 0
    })
}

pub(super) fn publication_destinations_are_added_and_removed(driver: &Driver) {
    driver.expect_error("endpoint= has no value");
    driver.expect_error("spies are invalid as send destinations");
    driver.expect_error("does not allow manual control");
    let client = connect(driver.dir());
    let channels = [udp(""), udp("")];
    let mut subscriptions = channels
        .each_ref()
        .map(|channel| client.add_subscription(channel, STREAM).unwrap());
    let publication = client
        .add_publication("aeron:udp?control-mode=manual|control=127.0.0.1:0", STREAM)
        .unwrap();

    // Added, removed and added again by channel; the second one by the asynchronous calls and its id.
    publication.add_destination(&channels[0]).unwrap();
    await_true("connection", || publication.is_connected());
    send(&publication, b"one");
    assert_eq!(receive(&mut subscriptions[0]), b"one");

    let pending = publication.async_add_destination(&channels[1]).unwrap();
    let second = pending.registration_id();
    assert!(client.is_command_active(second) || !client.has_active_commands());
    pending.wait().unwrap();
    await_true("the second image", || subscriptions[1].is_connected());
    send(&publication, b"two");
    assert_eq!(receive(&mut subscriptions[0]), b"two");
    assert_eq!(receive(&mut subscriptions[1]), b"two");

    publication.remove_destination(&channels[0]).unwrap();
    send(&publication, b"three");
    assert_eq!(receive(&mut subscriptions[1]), b"three");
    assert!(is_silent(&mut subscriptions[0], || send(
        &publication,
        b"more"
    )));
    for _ in 0..20 {
        assert_eq!(receive(&mut subscriptions[1]), b"more");
    }

    publication.remove_destination_by_id(second).unwrap();
    let third = publication.add_destination(&channels[0]).unwrap();
    assert_ne!(third, second);
    publication
        .async_remove_destination_by_id(third)
        .unwrap()
        .wait()
        .unwrap();

    for refused in [
        publication.add_destination("aeron:udp?endpoint=").err(),
        publication
            .add_destination("aeron-spy:aeron:udp?endpoint=127.0.0.1:1")
            .err(),
    ] {
        assert!(matches!(refused, Some(CommandError::Registration(_))));
    }
    let plain = client.add_publication(&channels[0], STREAM + 1).unwrap();
    let refused = plain.add_destination(&channels[1]);
    assert!(matches!(refused, Err(CommandError::Registration(_))));
}

pub(super) fn subscription_sources_are_added_and_removed(driver: &Driver) {
    driver.expect_error("does not allow manual control");
    let client = connect(driver.dir());
    let channels = [udp(""), udp("")];
    let mut subscription = client
        .add_subscription("aeron:udp?control-mode=manual", STREAM)
        .unwrap();
    let publications = channels
        .each_ref()
        .map(|channel| client.add_publication(channel, STREAM).unwrap());

    subscription.add_destination(&channels[0]).unwrap();
    await_true("connection", || publications[0].is_connected());
    send(&publications[0], b"one");
    assert_eq!(receive(&mut subscription), b"one");
    assert!(!publications[1].is_connected());

    subscription
        .async_add_destination(&channels[1])
        .unwrap()
        .wait()
        .unwrap();
    await_true("the second connection", || publications[1].is_connected());
    send(&publications[1], b"two");
    assert_eq!(receive(&mut subscription), b"two");
    assert_eq!(subscription.local_socket_addresses().len(), 2);
    await_true("a transport each", || {
        let views = subscription.image_views();
        views
            .iter()
            .all(|image| image.active_transport_count() == 1)
    });

    subscription.remove_destination(&channels[0]).unwrap();
    subscription
        .async_remove_destination(&channels[1])
        .unwrap()
        .wait()
        .unwrap();
    await_true("no address", || {
        subscription.local_socket_addresses().is_empty()
    });

    let plain = client.add_subscription(udp(""), STREAM + 1).unwrap();
    let refused = plain.add_destination(&channels[0]);
    assert!(matches!(refused, Err(CommandError::Registration(_))));
}
