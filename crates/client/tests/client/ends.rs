//! How clients end, and what is called back then and never again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran::{
    AddError, Client, ClientError, CloseReason, ImageHandlers, Lost, OfferError, PollError,
};
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fake::{FakeDriver, Pair, context};
use crate::images::{Notes, note, taken};

/// A client whose every callback is noted.
fn noted() -> (Pair, Notes) {
    let notes = Notes::default();
    let [come, go, failed, close] = std::array::from_fn(|_| Arc::clone(&notes));
    let pair = Pair::with(|context| {
        context
            .on_available_image(move |_| note(&come, "available"))
            .on_unavailable_image(move |_| note(&go, "unavailable"))
            .on_error(move |error| {
                note(
                    &failed,
                    match error {
                        ClientError::Lost(_) => "lost".to_owned(),
                        error => error.to_string(),
                    },
                );
            })
            .on_close(move |end| {
                note(
                    &close,
                    if end == CloseReason::Closed {
                        "closed"
                    } else {
                        "ended"
                    },
                );
            })
    });
    (pair, notes)
}

/// Checks that the client says how it ended, that users were told, and that nothing happens any more.
fn check_ended(pair: &mut Pair, end: CloseReason, notes: &Notes, expected: &[&str]) {
    let refused = match end {
        CloseReason::Closed => AddError::Closed,
        CloseReason::Lost(lost) => AddError::DriverLost(lost),
    };
    let client = pair.client.clone();
    assert_eq!(
        (client.close_reason(), client.is_closed()),
        (Some(end), true)
    );
    assert_eq!(taken(notes), expected);
    assert_eq!(
        client.async_add_publication("aeron:ipc", 1).unwrap_err(),
        refused
    );
    assert_eq!(
        client.add_subscription("aeron:ipc", 1).unwrap_err(),
        refused
    );
    pair.driver.say(&Response::UnavailableCounter {
        registration_id: 1,
        counter_id: 1,
    });
    pair.clock.advance(Duration::from_secs(60));
    assert_eq!(client.do_work(pair.clock.read()), 0);
    client.close();
    assert!(
        taken(notes).is_empty(),
        "nothing is called back after the end"
    );
}

/// Makes one of each, lets `end` happen, and checks that each is ended.
fn ends_with(
    expected_end: fn(&CloseReason) -> bool,
    end: impl FnOnce(&mut Pair),
    notes_expected: &[&str],
) {
    let (mut pair, notes) = noted();
    let publication = pair.publication(10);
    let mut exclusive = pair.exclusive_publication(11);
    let mut subscription = pair.subscription(10);
    let pending = pair.client.async_add_counter(1001, b"", "");
    let counter = pair.answer(pending).unwrap();
    pair.turns();
    assert_eq!(taken(&notes), ["available"]);
    let mut unanswered = pair.client.async_add_publication("aeron:ipc", 12).unwrap();
    end(&mut pair);
    let end = pair.client.close_reason().expect("ended");
    assert!(expected_end(&end), "{end:?}");
    match end {
        CloseReason::Closed => {
            assert_eq!(publication.offer(b"x"), Err(OfferError::Closed));
            assert_eq!(exclusive.offer(b"x"), Err(OfferError::Closed));
            assert_eq!(subscription.poll(|_, _| (), 1), Err(PollError::Closed));
            assert_eq!(unanswered.poll().unwrap().unwrap_err(), AddError::Closed);
        }
        CloseReason::Lost(lost) => {
            assert_eq!(publication.offer(b"x"), Err(OfferError::DriverLost(lost)));
            assert_eq!(
                publication.try_claim(1).map(drop),
                Err(OfferError::DriverLost(lost))
            );
            assert_eq!(
                exclusive.offer_parts(&[b"x"]),
                Err(OfferError::DriverLost(lost))
            );
            assert_eq!(
                subscription.poll(|_, _| (), 1),
                Err(PollError::DriverLost(lost))
            );
            assert_eq!(
                unanswered.poll().unwrap().unwrap_err(),
                AddError::DriverLost(lost)
            );
        }
    }
    assert!(
        publication.is_closed()
            && exclusive.is_closed()
            && subscription.is_closed()
            && counter.is_closed()
    );
    assert!(!publication.is_connected() && !subscription.is_connected());
    assert_eq!(publication.available_window(), 0);
    check_ended(&mut pair, end, &notes, notes_expected);
    pair.driver.take_seen();
    drop((publication, exclusive, subscription, counter));
    pair.driver.turn();
    assert!(
        pair.driver
            .take_seen()
            .iter()
            .all(|seen| matches!(seen.command(), Command::AddPublication { .. }))
    );
}

#[test]
fn the_owner_closes() {
    ends_with(
        |end| *end == CloseReason::Closed,
        |pair| {
            pair.driver.turn();
            pair.driver.take_seen();
            pair.client.close();
            pair.driver.turn();
            let seen = pair.driver.take_seen();
            assert_eq!(seen.len(), 1);
            let client_id = pair.client.client_id();
            assert_eq!(
                seen[0].command(),
                Command::ClientClose {
                    client_id,
                    correlation_id: -1
                }
            );
        },
        &["closed"],
    );
}

#[test]
fn the_driver_shuts_down() {
    ends_with(
        |end| *end == CloseReason::Lost(Lost::DriverShutdown),
        |pair| {
            pair.driver.set_heartbeat_ms(-1);
            pair.clock.advance(Duration::from_millis(500));
            pair.client.do_work(pair.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn the_driver_dies() {
    ends_with(
        |end| {
            matches!(end, CloseReason::Lost(Lost::DriverTimeout { age, timeout })
            if *timeout == Duration::from_secs(10) && *age > *timeout && *age < Duration::from_secs(11))
        },
        |pair| {
            for step in 0..22 {
                assert_eq!(pair.client.close_reason(), None, "step {step}");
                pair.clock.advance(Duration::from_millis(500));
                pair.client.do_work(pair.clock.read());
                if pair.client.is_closed() {
                    return;
                }
            }
        },
        // The command in flight was given up at the same time.
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn the_driver_gives_the_client_up() {
    ends_with(
        |end| matches!(end, CloseReason::Lost(Lost::ClientTimeout { liveness }) if *liveness == Duration::from_secs(10)),
        |pair| {
            pair.driver
                .say(&Response::ClientTimeout { client_id: 987_654 });
            let client_id = pair.client.client_id();
            pair.driver.say(&Response::ClientTimeout { client_id });
            pair.client.do_work(pair.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn the_heartbeat_counter_is_taken_away() {
    ends_with(
        |end| matches!(end, CloseReason::Lost(Lost::ClientTimeout { .. })),
        |pair| {
            pair.driver.answers = false;
            pair.pass(Duration::from_millis(500));
            let id = pair.driver.heartbeat_of(pair.client.client_id()).unwrap();
            let now = pair.clock.read().epoch_millis;
            pair.driver.counters.free(id, now);
            pair.pass(Duration::from_millis(500));
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn the_conductor_does_not_run_for_too_long() {
    ends_with(
        |end| {
            matches!(end, CloseReason::Lost(Lost::ServiceInterval { interval, limit })
            if interval.as_millis() == 10_001 && limit.as_secs() == 10)
        },
        |pair| {
            pair.clock.advance(Duration::from_millis(10_001));
            pair.driver.show_heartbeat();
            pair.client.do_work(pair.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn the_client_shows_signs_of_life_once_the_driver_knows_it() {
    let mut pair = Pair::with(|context| context.client_name("tester"));
    pair.pass(Duration::from_secs(2));
    let _subscription = pair.subscription(10);
    pair.pass(Duration::from_secs(2));
    let id = pair.driver.heartbeat_of(pair.client.client_id()).unwrap();
    let counters = pair.client.counters().clone();
    let age = pair.clock.read().epoch_millis - counters.value(id).unwrap();
    assert!((0..=500).contains(&age), "{age} ms");
    let label = counters.label(id).unwrap();
    assert!(
        label.as_str().contains(" name=tester version="),
        "{}",
        label.as_str()
    );
    pair.pass(Duration::from_secs(30));
    assert_eq!(
        counters.label(id).unwrap().as_str(),
        label.as_str(),
        "appended once"
    );
    assert_eq!(pair.client.close_reason(), None);
}

#[test]
fn an_idle_client_lives_as_long_as_the_driver() {
    let (mut pair, notes) = noted();
    pair.pass(Duration::from_secs(120));
    assert_eq!(pair.client.close_reason(), None);
    assert!(taken(&notes).is_empty());
}

#[test]
fn clocks_that_are_set_end_nothing() {
    let mut pair = Pair::new();
    let _subscription = pair.subscription(10);
    for jump in [3_600_000, -7_200_000] {
        pair.clock
            .set_epoch_millis(pair.clock.read().epoch_millis + jump);
        // The driver shows itself once a second only.
        pair.clock.advance(Duration::from_millis(500));
        pair.client.do_work(pair.clock.read());
        assert_eq!(pair.client.close_reason(), None);
        pair.pass(Duration::from_secs(12));
        assert_eq!(pair.client.close_reason(), None);
    }
}

#[test]
fn dropping_the_last_clone_closes() {
    let (mut pair, notes) = noted();
    let publication = pair.publication(10);
    let clone = pair.client.clone();
    let Pair {
        client, mut driver, ..
    } = pair;
    drop(client);
    assert!(!publication.is_closed());
    drop(clone);
    assert_eq!(publication.offer(b""), Err(OfferError::Closed));
    assert_eq!(taken(&notes), ["closed"]);
    driver.take_seen();
    driver.turn();
    assert!(matches!(
        driver.take_seen()[0].command(),
        Command::ClientClose { .. }
    ));
}

#[test]
fn closing_a_subscription_ends_its_callbacks() {
    let (mut pair, notes) = noted();
    let subscription = pair.subscription(10);
    let _pending = pair
        .client
        .async_add_exclusive_publication("aeron:ipc", 10)
        .unwrap();
    // The announcement is on its way.
    pair.driver.turn();
    subscription.close();
    pair.turns();
    assert!(taken(&notes).is_empty());
}

#[test]
fn a_callback_may_close_what_it_is_called_for() {
    let notes = Notes::default();
    let mut pair = Pair::new();
    let closing: Arc<Mutex<Option<taran::Subscription>>> = Arc::default();
    let (target, told) = (Arc::clone(&closing), Arc::clone(&notes));
    let handlers = ImageHandlers::new().on_available(move |_| {
        note(&told, "available");
        drop(target.lock().unwrap().take());
    });
    let pending = pair
        .client
        .async_add_subscription_with("aeron:ipc", 10, handlers);
    *closing.lock().unwrap() = Some(pair.answer(pending).unwrap());
    let _publications = [
        pair.exclusive_publication(10),
        pair.exclusive_publication(10),
    ];
    pair.turns();
    assert_eq!(taken(&notes), ["available"]);
    assert_eq!(Arc::strong_count(&closing), 1, "the handler was dropped");
}

#[test]
fn a_callback_may_close_the_client_and_is_the_last_but_the_close_handler() {
    let notes = Notes::default();
    let client: Arc<Mutex<Option<Client>>> = Arc::default();
    let (own, available, closed) = (Arc::clone(&client), Arc::clone(&notes), Arc::clone(&notes));
    let mut pair = Pair::with(|context| {
        context
            .on_available_image(move |_| {
                note(&available, "available");
                let client = own.lock().unwrap().take();
                client.iter().for_each(Client::close);
                note(&available, "still here");
            })
            .on_close(move |_| note(&closed, "closed"))
    });
    let subscription = pair.subscription(10);
    *client.lock().unwrap() = Some(pair.client.clone());
    let index = pair.driver.make_stream(1, 500, 10, true);
    for _ in 0..2 {
        let subscription_id = subscription.registration_id();
        let position = pair.driver.make_position(1, index, subscription_id);
        pair.driver.announce(index, subscription_id, position.id());
    }
    pair.turns();
    assert_eq!(taken(&notes), ["available", "closed", "still here"]);
    assert_eq!(pair.client.close_reason(), Some(CloseReason::Closed));
}

#[test]
fn a_callback_can_not_wait_but_can_ask() {
    let notes = Notes::default();
    let client: Arc<Mutex<Option<Client>>> = Arc::default();
    let asked: Arc<Mutex<Option<taran::Pending<taran::Publication>>>> = Arc::default();
    let (own, told, ask) = (Arc::clone(&client), Arc::clone(&notes), Arc::clone(&asked));
    let mut pair = Pair::with(|context| {
        context.on_available_image(move |_| {
            let client = own.lock().unwrap().take().unwrap();
            let error = client.add_publication("aeron:ipc", 20).unwrap_err();
            note(&told, error.to_string());
            *ask.lock().unwrap() = Some(client.async_add_publication("aeron:ipc", 21).unwrap());
            assert_eq!(client.invoke(), 0, "a turn inside a turn does nothing");
        })
    });
    *client.lock().unwrap() = Some(pair.client.clone());
    let _subscription = pair.subscription(10);
    let _publication = pair.publication(10);
    pair.turns();
    assert_eq!(taken(&notes), [AddError::CalledFromCallback.to_string()]);
    let pending = asked.lock().unwrap().take().unwrap();
    assert_eq!(pair.answer(Ok(pending)).unwrap().stream_id(), 21);
}

#[test]
fn a_callback_that_panics_is_reported_and_called_again() {
    let notes = Notes::default();
    let told = Arc::clone(&notes);
    let mut pair = Pair::with(|context| {
        context
            .on_available_image(|_| panic!("no more images"))
            .on_error(move |error| note(&told, error.to_string()))
    });
    let _subscription = pair.subscription(10);
    let _publications = [
        pair.exclusive_publication(10),
        pair.exclusive_publication(10),
    ];
    pair.turns();
    let reports = taken(&notes);
    assert_eq!(reports.len(), 2);
    assert!(
        reports
            .iter()
            .all(|report| report.contains("available image") && report.contains("no more images"))
    );
    assert_eq!(pair.client.close_reason(), None);
}

#[test]
fn a_blocking_add_invokes_the_conductor_and_times_out_by_the_clients_clock() {
    let clock = taran::ManualClock::new(crate::fake::START);
    let mut driver = FakeDriver::start(clock.clone());
    let context = context(&driver.storage, &clock).clock(taran::SystemClock::new());
    let context = context.driver_timeout(Duration::from_millis(30));
    let client = crate::fake::connect(context, &clock);
    // The driver's heartbeat is years old by the system's clock.
    driver.set_heartbeat_ms(
        taran::Clock::now(&mut taran::SystemClock::new()).epoch_millis + 3_600_000,
    );
    let error = client.add_publication("aeron:ipc", 1).unwrap_err();
    assert_eq!(
        error,
        AddError::Timeout {
            after: Duration::from_millis(30)
        }
    );
    driver.turn();
}

#[test]
fn complaints_of_receivers_reach_the_handler_while_the_publication_is_open() {
    let notes = Notes::default();
    let told = Arc::clone(&notes);
    let mut pair = Pair::with(|context| {
        context.on_publication_error(move |error| {
            note(
                &told,
                format!(
                    "{} {:?} {} {}",
                    error.registration_id, error.code, error.source, error.text
                ),
            );
            assert_eq!(
                (error.destination_registration_id, error.group_tag),
                (None, Some(5))
            );
        })
    });
    let publication = pair.publication(10);
    let registration_id = publication.registration_id();
    let complaint = Response::PublicationError {
        registration_id,
        destination_id: -1,
        session_id: publication.session_id(),
        stream_id: 10,
        receiver_id: 3,
        group_tag: 5,
        source: "10.0.0.1:4000".parse().unwrap(),
        error_code: 13,
        message: b"not wanted",
    };
    pair.driver.say(&complaint);
    pair.turns();
    assert_eq!(
        taken(&notes),
        [format!(
            "{registration_id} ImageRejected 10.0.0.1:4000 not wanted"
        )]
    );
    drop(publication);
    pair.driver.say(&complaint);
    pair.turns();
    assert!(taken(&notes).is_empty());
}

#[test]
fn a_failed_channel_is_reported_with_the_resources_that_use_it() {
    let (mut pair, notes) = noted();
    pair.driver.answers = false;
    let pending = pair
        .client
        .async_add_subscription("aeron:udp?endpoint=x:1", 1)
        .unwrap();
    let registration_id = pending.registration_id();
    pair.driver.say(&Response::SubscriptionReady {
        correlation_id: registration_id,
        status_counter_id: 9,
    });
    let _subscription = pair.answer(Ok(pending)).unwrap();
    pair.driver.say(&Response::Error {
        correlation_id: 9,
        error_code: 4,
        message: b"unplugged",
    });
    pair.driver.say(&Response::Error {
        correlation_id: 8,
        error_code: 4,
        message: b"another's",
    });
    pair.turns();
    let reports = taken(&notes);
    assert_eq!(reports.len(), 1);
    assert!(
        reports[0].contains("unplugged") && reports[0].contains(&registration_id.to_string()),
        "{reports:?}"
    );
}
