// SPDX-License-Identifier: Apache-2.0
//! Counters: owned, static, and those of other clients.

use taran::CommandError;

use super::{EventLog, connect_with};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect};

const TYPE: i32 = 1_500;

pub(super) fn owned_and_static_counters_are_shared(driver: &Driver) {
    let notes = EventLog::default();
    let (come, go) = (notes.clone(), notes.clone());
    let watcher = connect_with(driver.dir(), |context| {
        context
            .on_available_counter(move |_, registration_id, _| {
                come.note(format!("come {registration_id}"));
            })
            .on_unavailable_counter(move |_, registration_id, _| {
                go.note(format!("gone {registration_id}"));
            })
    });
    let owner = connect(driver.dir());

    let counter = owner.add_counter(TYPE, &[1, 2, 3], "own counter").unwrap();
    let id = counter.registration_id();
    counter.set(42);
    await_true("word of the counter", || notes.has(&format!("come {id}")));
    let counters = watcher.counters();
    let found = counters.find_by_type_and_registration(TYPE, id).unwrap();
    assert_eq!(found, counter.id());
    assert_eq!(counters.value(found), Some(42));
    assert_eq!(counters.owner_id(found), Some(owner.client_id()));
    assert_eq!(&counters.key(found).unwrap()[..4], [1, 2, 3, 0]);
    assert_eq!(counters.label(found).unwrap().as_str(), "own counter");

    counter.async_close().unwrap().unwrap().wait().unwrap();
    await_true("word of its end", || notes.has(&format!("gone {id}")));
    // The official driver tells clients before it frees the counter.
    await_true("end of the counter", || {
        counters.find_by_type_and_registration(TYPE, id).is_none()
    });

    let first = owner.add_static_counter(TYPE, b"", "static", 77).unwrap();
    let second = watcher.add_static_counter(TYPE, b"", "static", 77).unwrap();
    assert_eq!((first.id(), second.registration_id()), (second.id(), 77));
    first.set(7);
    first.close();
    owner.close();
    assert_eq!(second.get(), 7, "it outlives the client that made it");
    assert_eq!(counters.owner_id(second.id()), Some(-1));
    assert_eq!(
        counters.find_by_type_and_registration(TYPE, 77),
        Some(second.id())
    );
}

pub(super) fn invalid_counters_are_rejected(driver: &Driver) {
    driver.expect_error("a non-static counter exists");
    let client = connect(driver.dir());
    let own = client.add_counter(TYPE, b"", "own").unwrap();
    // Its type and registration id belong to a client, so no static counter can use them.
    let refused = client.add_static_counter(TYPE, b"", "static", own.registration_id());
    let Err(CommandError::Registration(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refused.code.code(), 11, "{refused}");
    let long = "x".repeat(381);
    assert!(matches!(
        client.add_counter(TYPE, b"", &long),
        Err(CommandError::TooLong { max: 380, .. })
    ));
}
