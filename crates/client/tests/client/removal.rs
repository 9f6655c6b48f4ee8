// SPDX-License-Identifier: Apache-2.0
//! Removal of resources: by handle, by registration id, and before the driver has answered.

use taran::{CommandError, Pending};
use taran_protocol::command::Command;

use crate::fake_driver::Fixture;

fn await_ok(fixture: &mut Fixture, pending: Result<Pending<()>, CommandError>) {
    assert_eq!(fixture.complete(pending), Ok(()));
}

#[test]
fn async_close_completes_when_driver_answers() {
    let mut fixture = Fixture::new();
    let (shared, exclusive) = (fixture.publication(10), fixture.exclusive_publication(11));
    let subscription = fixture.subscription(12);
    let pending = fixture.client.async_add_counter(1001, b"", "mine");
    let counter = fixture.complete(pending).unwrap();
    fixture.driver.take_commands();

    let clone = shared.clone();
    let pending = shared.async_close();
    assert!(clone.is_closed(), "closed before the driver answers");
    assert!(fixture.driver.take_commands().is_empty());
    await_ok(&mut fixture, pending);
    assert!(matches!(clone.async_close(), Err(CommandError::Closed)));
    await_ok(&mut fixture, exclusive.async_close());
    await_ok(&mut fixture, subscription.async_close());
    let pending = counter.async_close().map(Option::unwrap);
    await_ok(&mut fixture, pending);

    let seen = fixture.driver.take_commands();
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
fn static_counter_close_sends_no_command() {
    let mut fixture = Fixture::new();
    let pending = fixture
        .client
        .async_add_static_counter(1002, b"", "static", 7);
    let counter = fixture.complete(pending).unwrap();
    fixture.driver.take_commands();
    assert!(counter.async_close().unwrap().is_none());
    assert!(counter.is_closed());
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().is_empty());
}

#[test]
fn resources_are_removed_by_registration_id() {
    let mut fixture = Fixture::new();
    let (shared, exclusive) = (fixture.publication(10), fixture.exclusive_publication(11));
    let mut subscription = fixture.subscription(10);
    let pending = fixture.client.async_add_counter(1001, b"", "mine");
    let counter = fixture.complete(pending).unwrap();
    fixture.run_cycles();
    exclusive.revoke_on_close();
    fixture.driver.take_commands();

    let (image, client) = (subscription.image_views().remove(0), fixture.client.clone());
    await_ok(
        &mut fixture,
        client.async_remove_subscription(subscription.registration_id()),
    );
    await_ok(
        &mut fixture,
        client.async_remove_publication(shared.registration_id()),
    );
    await_ok(
        &mut fixture,
        client.async_remove_publication(exclusive.registration_id()),
    );
    await_ok(
        &mut fixture,
        client.async_remove_counter(counter.registration_id()),
    );
    assert!(shared.is_closed() && exclusive.is_closed() && counter.is_closed());
    assert!(subscription.is_closed() && image.is_closed());
    assert!(subscription.poll(|_, _| (), 10).is_err());
    let seen = fixture.driver.take_commands();
    assert_eq!(seen.len(), 4);
    assert!(matches!(
        seen[2].command(),
        Command::RemovePublication { revoke: true, .. }
    ));

    drop((shared, exclusive, subscription, counter));
    fixture.run_cycles();
    assert!(
        fixture.driver.take_commands().is_empty(),
        "each is removed once"
    );
}

#[test]
fn unknown_registration_id_is_an_error_and_sends_nothing() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    fixture.driver.take_commands();
    let id = publication.registration_id();
    for refused in [
        fixture.client.async_remove_subscription(id),
        fixture.client.async_remove_counter(id),
        fixture.client.async_remove_publication(id + 1000),
    ] {
        assert!(matches!(
            refused,
            Err(CommandError::UnknownRegistration { .. })
        ));
    }
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().is_empty());
    fixture.client.close();
    let closed = fixture.client.async_remove_publication(id);
    assert!(matches!(closed, Err(CommandError::Closed)));
}

#[test]
fn removal_of_pending_add_withdraws_it() {
    let mut fixture = Fixture::new();
    let client = fixture.client.clone();
    let mut publication = client.async_add_publication("aeron:ipc", 10).unwrap();
    let mut subscription = client.async_add_subscription("aeron:ipc", 10).unwrap();
    let mut counter = client.async_add_counter(1001, b"", "mine").unwrap();
    let removals = [
        client.async_remove_publication(publication.registration_id()),
        client.async_remove_subscription(subscription.registration_id()),
        client.async_remove_counter(counter.registration_id()),
    ];
    assert_eq!(
        publication.poll().unwrap().err(),
        Some(CommandError::Withdrawn)
    );
    assert_eq!(
        subscription.poll().unwrap().err(),
        Some(CommandError::Withdrawn)
    );
    assert_eq!(counter.poll().unwrap().err(), Some(CommandError::Withdrawn));
    for removal in removals {
        await_ok(&mut fixture, removal);
    }
    assert!(fixture.driver.streams.is_empty(), "removed by the driver");
}

#[test]
fn command_is_active_until_answered() {
    let mut fixture = Fixture::new();
    let client = fixture.client.clone();
    assert!(!client.has_active_commands());
    let pending = client.async_add_publication("aeron:ipc", 10).unwrap();
    let id = pending.registration_id();
    assert!(client.is_command_active(id) && client.has_active_commands());
    let publication = fixture.complete(Ok(pending)).unwrap();
    assert!(!client.is_command_active(id));
    drop(publication);
    assert!(client.has_active_commands(), "a close is a command too");
    fixture.run_cycles();
    assert!(!client.has_active_commands());
}
