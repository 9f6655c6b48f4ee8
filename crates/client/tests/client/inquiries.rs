//! What users can ask of their resources.

use taran::{AddError, Subscription};
use taran_core::counters::CounterSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SocketKey, channel_status, type_id};
use taran_protocol::response::Response;

use crate::fake::Pair;

/// A subscription whose channel is bound to some addresses.
fn bound(pair: &mut Pair, channel: &str, addresses: &[&str]) -> Subscription {
    pair.driver.answers = false;
    let status = pair.driver.allocate(&CounterSpec {
        type_id: type_id::RECEIVE_CHANNEL_STATUS,
        value: channel_status::ACTIVE,
        ..CounterSpec::default()
    });
    let pending = pair.client.async_add_subscription(channel, 1).unwrap();
    pair.driver.say(&Response::SubscriptionReady {
        correlation_id: pending.registration_id(),
        status_counter_id: status.id(),
    });
    for address in addresses {
        let key = SocketKey {
            channel_status_id: status.id(),
            address: (*address).into(),
        }
        .encode();
        pair.driver.allocate(&CounterSpec {
            type_id: type_id::LOCAL_SOCKET_ADDRESS,
            key: &key,
            value: channel_status::ACTIVE,
            ..CounterSpec::default()
        });
    }
    pair.answer(Ok(pending)).unwrap()
}

#[test]
fn an_open_port_is_resolved_as_soon_as_it_is_known() {
    let mut pair = Pair::new();
    let open = "aeron:udp?endpoint=localhost:0|alias=x";
    let subscription = bound(&mut pair, open, &["127.0.0.1:40999", "127.0.0.1:41000"]);
    assert_eq!(
        subscription.resolved_endpoint(),
        Some("127.0.0.1:40999".parse().unwrap())
    );
    assert_eq!(
        subscription.try_resolve_channel_endpoint_port().unwrap(),
        "aeron:udp?endpoint=localhost:40999|alias=x"
    );
    let unknown = bound(&mut pair, open, &[]);
    assert_eq!(unknown.resolved_endpoint(), None);
    assert_eq!(unknown.try_resolve_channel_endpoint_port(), None);
    for channel in [
        "aeron:udp?endpoint=localhost:4000",
        "aeron:udp?control-mode=manual|endpoint=localhost:0",
        "aeron:ipc",
        "no channel",
    ] {
        let subscription = bound(&mut pair, channel, &["127.0.0.1:40999"]);
        assert_eq!(
            subscription.try_resolve_channel_endpoint_port().as_deref(),
            Some(channel)
        );
    }
}

#[test]
fn images_are_found_by_session_and_by_correlation_id() {
    let mut pair = Pair::new();
    let mut subscription = pair.subscription(10);
    assert!(subscription.has_no_images());
    let publications = [
        pair.exclusive_publication(10),
        pair.exclusive_publication(10),
    ];
    pair.turns();
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
fn an_image_is_rejected_by_whoever_knows_it() {
    let mut pair = Pair::new();
    let subscription = pair.subscription(10);
    let publication = pair.publication(10);
    pair.turns();
    let image = subscription.image_views().remove(0);
    pair.driver.take_seen();
    let pending = image.async_reject("not wanted");
    assert_eq!(pair.answer(pending), Ok(()));
    assert!(matches!(
        pair.driver.take_seen()[0].command(),
        Command::RejectImage { image_id, position: 0, reason: b"not wanted", .. }
            if image_id == publication.registration_id()
    ));
    assert!(matches!(
        image.async_reject(&"x".repeat(1024)),
        Err(AddError::TooLong { max: 1023, .. })
    ));
    drop((publication, subscription));
    pair.client.close();
    assert!(matches!(image.async_reject("late"), Err(AddError::Closed)));
}

#[test]
fn publications_say_where_they_are() {
    let mut pair = Pair::new();
    let (first, second) = (pair.publication(10), pair.publication(10));
    assert!(first.is_original() && !second.is_original());
    let mut exclusive = pair.exclusive_publication(11);
    assert!(exclusive.is_original());
    let _subscription = pair.subscription(11);
    pair.turns();
    assert_eq!((exclusive.term_id(), exclusive.term_offset()), (7, 0));
    exclusive.offer(&[1; 100]).unwrap();
    assert_eq!((exclusive.term_id(), exclusive.term_offset()), (7, 160));
}

#[test]
fn a_revocation_can_be_decided_before_the_close() {
    let mut pair = Pair::new();
    let (shared, exclusive) = (pair.publication(10), pair.exclusive_publication(11));
    shared.revoke_on_close();
    exclusive.revoke_on_close();
    pair.driver.take_seen();
    drop((shared, exclusive));
    pair.turns();
    let seen = pair.driver.take_seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| matches!(
        seen.command(),
        Command::RemovePublication { revoke: true, .. }
    )));
}

#[test]
fn counters_are_swapped_compared_labelled_and_found() {
    let mut pair = Pair::new();
    let pending = pair.client.async_add_counter(1001, b"", "mine");
    let counter = pair.answer(pending).unwrap();
    assert_eq!((counter.add(5), counter.increment()), (0, 5));
    assert_eq!(counter.swap(9), 6);
    assert_eq!(counter.compare_exchange(8, 1), Err(9));
    assert_eq!(counter.compare_exchange(9, 1), Ok(9));
    assert!(counter.append_label(": more"));
    assert_eq!(counter.label().as_deref(), Some("mine: more"));
    assert!(counter.set_label("renamed") && counter.set_key(b"key"));
    assert_eq!(counter.label().as_deref(), Some("renamed"));
    let (counters, id) = (pair.client.counters(), counter.registration_id());
    assert_eq!(&counters.key(counter.id()).unwrap()[..4], b"key\0");
    assert_eq!(counters.find_by_registration(id), Some(counter.id()));
    assert_eq!(
        counters.find_by_type_and_registration(1001, id),
        Some(counter.id())
    );
    assert_eq!(counters.find_by_type_and_registration(1002, id), None);
    let mut printed = Vec::new();
    pair.client.print_counters(&mut printed).unwrap();
    let line = format!("{:3}: {:20} - renamed", counter.id(), 1);
    assert!(String::from_utf8(printed).unwrap().contains(&line));
    counter.close();
    assert_eq!((counter.add(5), counter.swap(7), counter.get()), (1, 1, 1));
    assert_eq!(counter.compare_exchange(1, 2), Err(1));
    assert!(!counter.append_label("late"));
}
