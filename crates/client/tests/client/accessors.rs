// SPDX-License-Identifier: Apache-2.0
//! Accessors of publications, subscriptions, images and counters.

use taran::{CommandError, Subscription};
use taran_core::counters::CounterSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SocketKey, channel_status, type_id};
use taran_protocol::response::Response;

use crate::fake_driver::Fixture;

/// Adds a subscription whose channel is bound to the given addresses.
fn bound(fixture: &mut Fixture, channel: &str, addresses: &[&str]) -> Subscription {
    fixture.driver.auto_respond = false;
    let status = fixture.driver.allocate(&CounterSpec {
        type_id: type_id::RECEIVE_CHANNEL_STATUS,
        value: channel_status::ACTIVE,
        ..CounterSpec::default()
    });
    let pending = fixture.client.async_add_subscription(channel, 1).unwrap();
    fixture.driver.respond(&Response::SubscriptionReady {
        correlation_id: pending.registration_id(),
        status_counter_id: status.id(),
    });
    for address in addresses {
        let key = SocketKey {
            channel_status_id: status.id(),
            address: (*address).into(),
        }
        .encode();
        fixture.driver.allocate(&CounterSpec {
            type_id: type_id::LOCAL_SOCKET_ADDRESS,
            key: &key,
            value: channel_status::ACTIVE,
            ..CounterSpec::default()
        });
    }
    fixture.complete(Ok(pending)).unwrap()
}

#[test]
fn wildcard_port_is_resolved_once_bound() {
    let mut fixture = Fixture::new();
    let open = "aeron:udp?endpoint=localhost:0|alias=x";
    let subscription = bound(&mut fixture, open, &["127.0.0.1:40999", "127.0.0.1:41000"]);
    assert_eq!(
        subscription.resolved_endpoint(),
        Some("127.0.0.1:40999".parse().unwrap())
    );
    assert_eq!(
        subscription.try_resolve_channel_endpoint_port().unwrap(),
        "aeron:udp?endpoint=localhost:40999|alias=x"
    );
    let unknown = bound(&mut fixture, open, &[]);
    assert_eq!(unknown.resolved_endpoint(), None);
    assert_eq!(unknown.try_resolve_channel_endpoint_port(), None);
    for channel in [
        "aeron:udp?endpoint=localhost:4000",
        "aeron:udp?control-mode=manual|endpoint=localhost:0",
        "aeron:ipc",
        "no channel",
    ] {
        let subscription = bound(&mut fixture, channel, &["127.0.0.1:40999"]);
        assert_eq!(
            subscription.try_resolve_channel_endpoint_port().as_deref(),
            Some(channel)
        );
    }
}

#[test]
fn images_are_found_by_session_and_correlation_id() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    assert!(subscription.has_no_images());
    let publications = [
        fixture.exclusive_publication(10),
        fixture.exclusive_publication(10),
    ];
    fixture.run_cycles();
    assert_eq!(subscription.image_count(), 2);
    for (index, publication) in publications.iter().enumerate() {
        let (session, id) = (publication.session_id(), publication.registration_id());
        let views = [
            subscription.image(session).unwrap(),
            subscription.image_by_correlation_id(id).unwrap(),
            subscription.image_views()[index].clone(),
            subscription
                .image_mut_by_correlation_id(id)
                .unwrap()
                .view()
                .clone(),
        ];
        for view in views {
            assert_eq!((view.session_id(), view.correlation_id()), (session, id));
        }
    }
    let id = publications[1].registration_id();
    let taken = subscription.take_image_by_correlation_id(id).unwrap();
    assert_eq!(taken.correlation_id(), id);
    assert!(subscription.image_mut_by_correlation_id(id).is_none());
    assert!(subscription.image_by_correlation_id(id).is_some());
    assert!(subscription.image_by_correlation_id(id + 1000).is_none());
}

#[test]
fn image_view_rejects_its_image() {
    let mut fixture = Fixture::new();
    let subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    let image = subscription.image_views().remove(0);
    fixture.driver.take_commands();
    let pending = image.async_reject("not wanted");
    assert_eq!(fixture.complete(pending), Ok(()));
    assert!(matches!(
        fixture.driver.take_commands()[0].command(),
        Command::RejectImage { image_id, position: 0, reason: b"not wanted", .. }
            if image_id == publication.registration_id()
    ));
    assert!(matches!(
        image.async_reject(&"x".repeat(1024)),
        Err(CommandError::TooLong { max: 1023, .. })
    ));
    drop((publication, subscription));
    fixture.client.close();
    assert!(matches!(
        image.async_reject("late"),
        Err(CommandError::Closed)
    ));
}

#[test]
fn publication_reports_originality_and_term_position() {
    let mut fixture = Fixture::new();
    let (first, second) = (fixture.publication(10), fixture.publication(10));
    assert!(first.is_original() && !second.is_original());
    let mut exclusive = fixture.exclusive_publication(11);
    assert!(exclusive.is_original());
    let _subscription = fixture.subscription(11);
    fixture.run_cycles();
    assert_eq!((exclusive.term_id(), exclusive.term_offset()), (7, 0));
    exclusive.offer(&[1; 100]).unwrap();
    assert_eq!((exclusive.term_id(), exclusive.term_offset()), (7, 160));
}

#[test]
fn revoke_on_close_applies_to_drop() {
    let mut fixture = Fixture::new();
    let (shared, exclusive) = (fixture.publication(10), fixture.exclusive_publication(11));
    shared.revoke_on_close();
    exclusive.revoke_on_close();
    fixture.driver.take_commands();
    drop((shared, exclusive));
    fixture.run_cycles();
    let seen = fixture.driver.take_commands();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| matches!(
        seen.command(),
        Command::RemovePublication { revoke: true, .. }
    )));
}

#[test]
fn counter_operations_return_previous_values_and_change_labels() {
    let mut fixture = Fixture::new();
    let pending = fixture.client.async_add_counter(1001, b"", "mine");
    let counter = fixture.complete(pending).unwrap();
    assert_eq!((counter.add(5), counter.increment()), (0, 5));
    assert_eq!(counter.swap(9), 6);
    assert_eq!(counter.compare_exchange(8, 1), Err(9));
    assert_eq!(counter.compare_exchange(9, 1), Ok(9));
    assert!(counter.append_label(": more"));
    assert_eq!(counter.label().as_deref(), Some("mine: more"));
    assert!(counter.set_label("renamed") && counter.set_key(b"key"));
    assert_eq!(counter.label().as_deref(), Some("renamed"));
    let (counters, id) = (fixture.client.counters(), counter.registration_id());
    assert_eq!(&counters.key(counter.id()).unwrap()[..4], b"key\0");
    assert_eq!(counters.find_by_registration(id), Some(counter.id()));
    assert_eq!(
        counters.find_by_type_and_registration(1001, id),
        Some(counter.id())
    );
    assert_eq!(counters.find_by_type_and_registration(1002, id), None);
    let mut printed = Vec::new();
    fixture.client.print_counters(&mut printed).unwrap();
    let line = format!("{:3}: {:20} - renamed", counter.id(), 1);
    assert!(String::from_utf8(printed).unwrap().contains(&line));
    counter.close();
    assert_eq!((counter.add(5), counter.swap(7), counter.get()), (1, 1, 1));
    assert_eq!(counter.compare_exchange(1, 2), Err(1));
    assert!(!counter.append_label("late"));
}
