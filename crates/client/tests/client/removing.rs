//! Giving things back and hearing of it: by handle, by registration id, before the driver has answered.

use taran::{AddError, Pending};
use taran_protocol::command::Command;

use crate::fake::Pair;

fn done(pair: &mut Pair, pending: Result<Pending<()>, AddError>) {
    assert_eq!(pair.answer(pending), Ok(()));
}

#[test]
fn a_close_can_be_waited_for() {
    let mut pair = Pair::new();
    let (shared, exclusive) = (pair.publication(10), pair.exclusive_publication(11));
    let subscription = pair.subscription(12);
    let pending = pair.client.async_add_counter(1001, b"", "mine");
    let counter = pair.answer(pending).unwrap();
    pair.driver.take_seen();

    let again = shared.clone();
    let pending = shared.async_close();
    assert!(again.is_closed(), "closed before the driver knows");
    assert!(pair.driver.take_seen().is_empty());
    done(&mut pair, pending);
    assert!(matches!(again.async_close(), Err(AddError::Closed)));
    done(&mut pair, exclusive.async_close());
    done(&mut pair, subscription.async_close());
    let pending = counter.async_close().map(Option::unwrap);
    done(&mut pair, pending);

    let seen = pair.driver.take_seen();
    assert_eq!(seen.len(), 4);
    assert!(matches!(
        seen[0].command(),
        Command::RemovePublication { revoke: false, .. }
    ));
    assert!(matches!(
        seen[2].command(),
        Command::RemoveSubscription { .. }
    ));
    assert!(matches!(seen[3].command(), Command::RemoveCounter { .. }));
}

#[test]
fn a_static_counter_is_closed_without_a_word_to_the_driver() {
    let mut pair = Pair::new();
    let pending = pair.client.async_add_static_counter(1002, b"", "static", 7);
    let counter = pair.answer(pending).unwrap();
    pair.driver.take_seen();
    assert!(counter.async_close().unwrap().is_none());
    assert!(counter.is_closed());
    pair.turns();
    assert!(pair.driver.take_seen().is_empty());
}

#[test]
fn everything_can_be_removed_by_its_id() {
    let mut pair = Pair::new();
    let (shared, exclusive) = (pair.publication(10), pair.exclusive_publication(11));
    let mut subscription = pair.subscription(10);
    let pending = pair.client.async_add_counter(1001, b"", "mine");
    let counter = pair.answer(pending).unwrap();
    pair.turns();
    exclusive.revoke_on_close();
    pair.driver.take_seen();

    let (image, client) = (subscription.image_views().remove(0), pair.client.clone());
    done(
        &mut pair,
        client.async_remove_subscription(subscription.registration_id()),
    );
    done(
        &mut pair,
        client.async_remove_publication(shared.registration_id()),
    );
    done(
        &mut pair,
        client.async_remove_publication(exclusive.registration_id()),
    );
    done(
        &mut pair,
        client.async_remove_counter(counter.registration_id()),
    );
    assert!(shared.is_closed() && exclusive.is_closed() && counter.is_closed());
    assert!(subscription.is_closed() && image.is_closed());
    assert!(subscription.poll(|_, _| (), 10).is_err());
    let seen = pair.driver.take_seen();
    assert_eq!(seen.len(), 4);
    assert!(matches!(
        seen[2].command(),
        Command::RemovePublication { revoke: true, .. }
    ));

    drop((shared, exclusive, subscription, counter));
    pair.turns();
    assert!(pair.driver.take_seen().is_empty(), "each is removed once");
}

#[test]
fn an_unknown_id_is_an_error_and_nothing_is_sent() {
    let mut pair = Pair::new();
    let publication = pair.publication(10);
    pair.driver.take_seen();
    let id = publication.registration_id();
    for refused in [
        pair.client.async_remove_subscription(id),
        pair.client.async_remove_counter(id),
        pair.client.async_remove_publication(id + 1000),
    ] {
        assert!(matches!(refused, Err(AddError::UnknownRegistration { .. })));
    }
    pair.turns();
    assert!(pair.driver.take_seen().is_empty());
    pair.client.close();
    let closed = pair.client.async_remove_publication(id);
    assert!(matches!(closed, Err(AddError::Closed)));
}

#[test]
fn what_is_not_there_yet_is_withdrawn() {
    let mut pair = Pair::new();
    let client = pair.client.clone();
    let mut publication = client.async_add_publication("aeron:ipc", 10).unwrap();
    let mut subscription = client.async_add_subscription("aeron:ipc", 10).unwrap();
    let mut counter = client.async_add_counter(1001, b"", "mine").unwrap();
    let removals = [
        client.async_remove_publication(publication.registration_id()),
        client.async_remove_subscription(subscription.registration_id()),
        client.async_remove_counter(counter.registration_id()),
    ];
    assert_eq!(publication.poll().unwrap().err(), Some(AddError::Withdrawn));
    assert_eq!(
        subscription.poll().unwrap().err(),
        Some(AddError::Withdrawn)
    );
    assert_eq!(counter.poll().unwrap().err(), Some(AddError::Withdrawn));
    for removal in removals {
        done(&mut pair, removal);
    }
    assert!(pair.driver.streams.is_empty(), "given up by the driver");
}

#[test]
fn a_command_is_active_until_it_is_answered() {
    let mut pair = Pair::new();
    let client = pair.client.clone();
    assert!(!client.has_active_commands());
    let pending = client.async_add_publication("aeron:ipc", 10).unwrap();
    let id = pending.registration_id();
    assert!(client.is_command_active(id) && client.has_active_commands());
    let publication = pair.answer(Ok(pending)).unwrap();
    assert!(!client.is_command_active(id));
    drop(publication);
    assert!(client.has_active_commands(), "a close is a command too");
    pair.turns();
    assert!(!client.has_active_commands());
}
