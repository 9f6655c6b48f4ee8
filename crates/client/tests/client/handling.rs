//! Handlers that come and go.

use std::sync::{Arc, Mutex};

use taran::{AddError, Client, CloseReason, HandlerId};

use crate::fake::Pair;
use crate::images::{Notes, note, taken};

fn counter(pair: &mut Pair) {
    let pending = pair.client.async_add_counter(1001, b"", "mine");
    pair.answer(pending).unwrap().close();
    pair.turns();
}

#[test]
fn counter_handlers_run_in_order_until_they_are_removed() {
    let notes = Notes::default();
    let [first, second, third, gone] = std::array::from_fn(|_| Arc::clone(&notes));
    let mut pair =
        Pair::with(|context| context.on_available_counter(move |_, _, _| note(&first, "first")));
    // The first counter of a client is its own sign of life.
    counter(&mut pair);
    taken(&notes);
    let client = pair.client.clone();
    let second = client
        .add_available_counter_handler(move |_, _, _| note(&second, "second"))
        .unwrap();
    let third = client
        .add_available_counter_handler(move |counters, _, id| {
            note(&third, counters.label(id).unwrap().as_str());
        })
        .unwrap();
    let gone = client
        .add_unavailable_counter_handler(move |_, _, _| note(&gone, "gone"))
        .unwrap();
    counter(&mut pair);
    assert_eq!(taken(&notes), ["first", "second", "mine", "gone"]);

    assert!(client.remove_handler(second) && !client.remove_handler(second));
    assert!(client.remove_handler(gone));
    counter(&mut pair);
    assert_eq!(taken(&notes), ["first", "mine"]);
    client.close();
    assert!(!client.remove_handler(third));
    let late = client.add_available_counter_handler(|_, _, _| ());
    assert_eq!(late, Err(AddError::Closed));
}

#[test]
fn a_handler_may_remove_itself_and_add_another() {
    let notes = Notes::default();
    let (said, again) = (Arc::clone(&notes), Arc::clone(&notes));
    let mut pair = Pair::new();
    counter(&mut pair);
    let own: Arc<Mutex<Option<(Client, HandlerId)>>> = Arc::default();
    let mine = Arc::clone(&own);
    let id = pair
        .client
        .add_available_counter_handler(move |_, _, _| {
            note(&said, "once");
            let (client, id) = mine.lock().unwrap().take().unwrap();
            assert!(client.remove_handler(id));
            let again = Arc::clone(&again);
            client
                .add_available_counter_handler(move |_, _, _| note(&again, "another"))
                .unwrap();
        })
        .unwrap();
    *own.lock().unwrap() = Some((pair.client.clone(), id));
    counter(&mut pair);
    counter(&mut pair);
    assert_eq!(taken(&notes), ["once", "another"]);
}

#[test]
fn close_handlers_run_once_when_the_client_ends() {
    let notes = Notes::default();
    let [first, second, third] = std::array::from_fn(|_| Arc::clone(&notes));
    let pair = Pair::with(|context| context.on_close(move |_| note(&first, "first")));
    let end = move |end| {
        assert_eq!(end, CloseReason::Closed);
        note(&second, "second");
    };
    pair.client.add_close_handler(end).unwrap();
    let removed = pair
        .client
        .add_close_handler(move |_| note(&third, "third"));
    assert!(pair.client.remove_handler(removed.unwrap()));
    pair.client.close();
    pair.client.close();
    assert_eq!(taken(&notes), ["first", "second"]);
    assert_eq!(pair.client.add_close_handler(|_| ()), Err(AddError::Closed));
}
