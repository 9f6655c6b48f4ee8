// SPDX-License-Identifier: Apache-2.0
//! Handlers that are added and removed while the client is open.

use std::sync::{Arc, Mutex};

use taran::{Client, CloseReason, CommandError, HandlerId};

use crate::fake_driver::Fixture;
use crate::images::{Events, record, take_events};

fn counter(fixture: &mut Fixture) {
    let pending = fixture.client.async_add_counter(1001, b"", "mine");
    fixture.complete(pending).unwrap().close();
    fixture.run_cycles();
}

#[test]
fn counter_handlers_run_in_order_until_removed() {
    let events = Events::default();
    let [first, second, third, gone] = std::array::from_fn(|_| Arc::clone(&events));
    let mut fixture = Fixture::with(|builder| {
        builder.on_available_counter(move |_, _, _| record(&first, "first"))
    });
    // The first counter of a client is its own heartbeat.
    counter(&mut fixture);
    take_events(&events);
    let client = fixture.client.clone();
    let second = client
        .add_available_counter_handler(move |_, _, _| record(&second, "second"))
        .unwrap();
    let third = client
        .add_available_counter_handler(move |counters, _, id| {
            record(&third, counters.label(id).unwrap().as_str());
        })
        .unwrap();
    let gone = client
        .add_unavailable_counter_handler(move |_, _, _| record(&gone, "gone"))
        .unwrap();
    counter(&mut fixture);
    assert_eq!(take_events(&events), ["first", "second", "mine", "gone"]);

    assert!(client.remove_handler(second) && !client.remove_handler(second));
    assert!(client.remove_handler(gone));
    counter(&mut fixture);
    assert_eq!(take_events(&events), ["first", "mine"]);
    client.close();
    assert!(!client.remove_handler(third));
    let late = client.add_available_counter_handler(|_, _, _| ());
    assert_eq!(late, Err(CommandError::Closed));
}

#[test]
fn handler_may_remove_itself_and_add_another() {
    let events = Events::default();
    let (said, again) = (Arc::clone(&events), Arc::clone(&events));
    let mut fixture = Fixture::new();
    counter(&mut fixture);
    let own: Arc<Mutex<Option<(Client, HandlerId)>>> = Arc::default();
    let mine = Arc::clone(&own);
    let id = fixture
        .client
        .add_available_counter_handler(move |_, _, _| {
            record(&said, "once");
            let (client, id) = mine.lock().unwrap().take().unwrap();
            assert!(client.remove_handler(id));
            let again = Arc::clone(&again);
            client
                .add_available_counter_handler(move |_, _, _| record(&again, "another"))
                .unwrap();
        })
        .unwrap();
    *own.lock().unwrap() = Some((fixture.client.clone(), id));
    counter(&mut fixture);
    counter(&mut fixture);
    assert_eq!(take_events(&events), ["once", "another"]);
}

#[test]
fn close_handlers_run_once() {
    let events = Events::default();
    let [first, second, third] = std::array::from_fn(|_| Arc::clone(&events));
    let fixture = Fixture::with(|builder| builder.on_close(move |_| record(&first, "first")));
    let end = move |end| {
        assert_eq!(end, CloseReason::Closed);
        record(&second, "second");
    };
    fixture.client.add_close_handler(end).unwrap();
    let removed = fixture
        .client
        .add_close_handler(move |_| record(&third, "third"));
    assert!(fixture.client.remove_handler(removed.unwrap()));
    fixture.client.close();
    fixture.client.close();
    assert_eq!(take_events(&events), ["first", "second"]);
    assert_eq!(
        fixture.client.add_close_handler(|_| ()),
        Err(CommandError::Closed)
    );
}
