// SPDX-License-Identifier: Apache-2.0
//! Close and loss of clients, and the callbacks that run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran::{
    Client, ClientError, CloseReason, CommandError, ImageHandlers, Lost, ManualClock, OfferError,
    PollError,
};
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fake_driver::{FakeDriver, Fixture, START, builder, connect};
use crate::images::{Events, record, take_events};

/// Creates a fixture that records all callbacks.
fn recording_fixture() -> (Fixture, Events) {
    let events = Events::default();
    let [available, unavailable, failed, close] = std::array::from_fn(|_| Arc::clone(&events));
    let fixture = Fixture::with(|builder| {
        builder
            .on_available_image(move |_| record(&available, "available"))
            .on_unavailable_image(move |_| record(&unavailable, "unavailable"))
            .on_error(move |error| {
                record(
                    &failed,
                    match error {
                        ClientError::Lost(_) => "lost".to_owned(),
                        error => error.to_string(),
                    },
                );
            })
            .on_close(move |end| {
                record(
                    &close,
                    if end == CloseReason::Closed {
                        "closed"
                    } else {
                        "ended"
                    },
                );
            })
    });
    (fixture, events)
}

/// Checks the reason of the close, the recorded events, and that nothing happens afterwards.
fn check_closed(fixture: &mut Fixture, end: CloseReason, events: &Events, expected: &[&str]) {
    let refused = match end {
        CloseReason::Closed => CommandError::Closed,
        CloseReason::Lost(lost) => CommandError::DriverLost(lost),
        other => panic!("unexpected: {other}"),
    };
    let client = fixture.client.clone();
    assert_eq!(
        (client.close_reason(), client.is_closed()),
        (Some(end), true)
    );
    assert_eq!(take_events(events), expected);
    assert_eq!(
        client.async_add_publication("aeron:ipc", 1).unwrap_err(),
        refused
    );
    assert_eq!(
        client.add_subscription("aeron:ipc", 1).unwrap_err(),
        refused
    );
    fixture.driver.respond(&Response::UnavailableCounter {
        registration_id: 1,
        counter_id: 1,
    });
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(client.do_work(fixture.clock.read()), 0);
    client.close();
    assert!(
        take_events(events).is_empty(),
        "nothing is called back after the end"
    );
}

/// Creates one resource of each kind, runs `end`, and checks that all are closed.
fn check_close(
    expected_end: fn(&CloseReason) -> bool,
    end: impl FnOnce(&mut Fixture),
    notes_expected: &[&str],
) {
    let (mut fixture, events) = recording_fixture();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(11);
    let mut subscription = fixture.subscription(10);
    let pending = fixture.client.async_add_counter(1001, b"", "");
    let counter = fixture.complete(pending).unwrap();
    fixture.run_cycles();
    assert_eq!(take_events(&events), ["available"]);
    let mut unanswered = fixture
        .client
        .async_add_publication("aeron:ipc", 12)
        .unwrap();
    end(&mut fixture);
    let end = fixture.client.close_reason().expect("ended");
    assert!(expected_end(&end), "{end:?}");
    match end {
        CloseReason::Closed => {
            assert_eq!(publication.offer(b"x"), Err(OfferError::Closed));
            assert_eq!(exclusive.offer(b"x"), Err(OfferError::Closed));
            assert_eq!(subscription.poll(|_, _| (), 1), Err(PollError::Closed));
            assert_eq!(
                unanswered.poll().unwrap().unwrap_err(),
                CommandError::Closed
            );
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
                CommandError::DriverLost(lost)
            );
        }
        other => panic!("unexpected: {other}"),
    }
    assert!(
        publication.is_closed()
            && exclusive.is_closed()
            && subscription.is_closed()
            && counter.is_closed()
    );
    assert!(!publication.is_connected() && !subscription.is_connected());
    assert_eq!(publication.available_window(), 0);
    check_closed(&mut fixture, end, &events, notes_expected);
    fixture.driver.take_commands();
    drop((publication, exclusive, subscription, counter));
    fixture.driver.do_work();
    assert!(
        fixture
            .driver
            .take_commands()
            .iter()
            .all(|seen| matches!(seen.command(), Command::AddPublication { .. }))
    );
}

#[test]
fn client_close_closes_all_resources() {
    check_close(
        |end| *end == CloseReason::Closed,
        |fixture| {
            fixture.driver.do_work();
            fixture.driver.take_commands();
            fixture.client.close();
            fixture.driver.do_work();
            let seen = fixture.driver.take_commands();
            assert_eq!(seen.len(), 1);
            let client_id = fixture.client.client_id();
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
fn driver_shutdown_closes_client() {
    check_close(
        |end| *end == CloseReason::Lost(Lost::DriverShutdown),
        |fixture| {
            fixture.driver.set_heartbeat_ms(-1);
            fixture.clock.advance(Duration::from_millis(500));
            fixture.client.do_work(fixture.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn resource_that_application_has_closed_stays_closed_when_driver_is_lost() {
    let mut fixture = Fixture::new();
    let (shared, open) = (fixture.publication(10), fixture.publication(11));
    let mut subscription = fixture.subscription(12);
    let counter = fixture.client.async_add_counter(1001, b"", "closed");
    let counter = fixture.complete(counter).unwrap();
    let kept = fixture.client.async_add_counter(1001, b"", "open");
    let kept = fixture.complete(kept).unwrap();
    let fixed = fixture
        .client
        .async_add_static_counter(1002, b"", "static", 7);
    let fixed = fixture.complete(fixed).unwrap();
    assert_eq!(counter.close_reason(), None);

    shared.clone().close();
    counter.close();
    fixed.close();
    let removal = fixture
        .client
        .async_remove_subscription(subscription.registration_id());
    assert_eq!(fixture.complete(removal), Ok(()));
    fixture.driver.set_heartbeat_ms(-1);
    fixture.clock.advance(Duration::from_millis(500));
    fixture.client.do_work(fixture.clock.read());
    let lost = Lost::DriverShutdown;
    assert_eq!(fixture.client.close_reason(), Some(CloseReason::Lost(lost)));

    assert_eq!(shared.offer(b"x"), Err(OfferError::Closed));
    assert_eq!(shared.async_close().unwrap_err(), CommandError::Closed);
    assert_eq!(subscription.poll(|_, _| (), 1), Err(PollError::Closed));
    assert_eq!(
        subscription.async_close().unwrap_err(),
        CommandError::Closed
    );
    assert_eq!(counter.close_reason(), Some(CloseReason::Closed));
    assert_eq!(fixed.close_reason(), Some(CloseReason::Closed));
    assert_eq!(counter.async_close().unwrap_err(), CommandError::Closed);
    assert_eq!(open.offer(b"x"), Err(OfferError::DriverLost(lost)));
    assert_eq!(kept.close_reason(), Some(CloseReason::Lost(lost)));
    assert_eq!(
        kept.async_close().unwrap_err(),
        CommandError::DriverLost(lost)
    );
}

#[test]
fn driver_death_closes_client_within_half_a_second() {
    let clock = ManualClock::new(START);
    let mut driver = FakeDriver::start(clock.clone());
    driver.take_lock();
    // The check does not depend on the keepalive interval.
    let slow = builder(&driver.storage, &clock).keepalive_interval(Duration::from_secs(5));
    let client = connect(slow, &clock);
    for _ in 0..8 {
        clock.advance(Duration::from_millis(500));
        client.do_work(clock.read());
    }
    assert_eq!(client.close_reason(), None);
    driver.lock = None;
    for _ in 0..5 {
        clock.advance(Duration::from_millis(100));
        client.do_work(clock.read());
    }
    let lost = CloseReason::Lost(Lost::DriverProcessEnded);
    assert_eq!(client.close_reason(), Some(lost));
}

#[test]
fn driver_that_releases_its_lock_after_shutdown_is_reported_as_shut_down() {
    let clock = ManualClock::new(START);
    let mut driver = FakeDriver::start(clock.clone());
    driver.take_lock();
    let client = connect(builder(&driver.storage, &clock), &clock);
    driver.set_heartbeat_ms(-1);
    driver.lock = None;
    clock.advance(Duration::from_millis(500));
    client.do_work(clock.read());
    let lost = CloseReason::Lost(Lost::DriverShutdown);
    assert_eq!(client.close_reason(), Some(lost));
}

#[test]
fn driver_heartbeat_timeout_closes_client() {
    check_close(
        |end| {
            matches!(end, CloseReason::Lost(Lost::DriverTimeout { age, timeout })
            if *timeout == Duration::from_secs(10) && *age > *timeout && *age < Duration::from_secs(11))
        },
        |fixture| {
            for step in 0..22 {
                assert_eq!(fixture.client.close_reason(), None, "step {step}");
                fixture.clock.advance(Duration::from_millis(500));
                fixture.client.do_work(fixture.clock.read());
                if fixture.client.is_closed() {
                    return;
                }
            }
        },
        // The command in flight has failed at the same time.
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn client_timeout_response_closes_client() {
    check_close(
        |end| matches!(end, CloseReason::Lost(Lost::ClientTimeout { liveness }) if *liveness == Duration::from_secs(10)),
        |fixture| {
            fixture
                .driver
                .respond(&Response::ClientTimeout { client_id: 987_654 });
            let client_id = fixture.client.client_id();
            fixture
                .driver
                .respond(&Response::ClientTimeout { client_id });
            fixture.client.do_work(fixture.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn freed_heartbeat_counter_closes_client() {
    check_close(
        |end| matches!(end, CloseReason::Lost(Lost::ClientTimeout { .. })),
        |fixture| {
            fixture.driver.auto_respond = false;
            fixture.advance(Duration::from_millis(500));
            let id = fixture
                .driver
                .heartbeat_of(fixture.client.client_id())
                .unwrap();
            let now = fixture.clock.read().epoch_millis;
            fixture.driver.counters.free(id, now);
            fixture.advance(Duration::from_millis(500));
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn exceeded_service_interval_closes_client() {
    check_close(
        |end| {
            matches!(end, CloseReason::Lost(Lost::ServiceInterval { interval, limit })
            if interval.as_millis() == 10_001 && limit.as_secs() == 10)
        },
        |fixture| {
            fixture.clock.advance(Duration::from_millis(10_001));
            fixture.driver.update_heartbeat();
            fixture.client.do_work(fixture.clock.read());
        },
        &["unavailable", "lost", "ended"],
    );
}

#[test]
fn client_updates_heartbeat_counter_once_driver_created_it() {
    let mut fixture = Fixture::with(|builder| builder.client_name("tester"));
    fixture.advance(Duration::from_secs(2));
    let _subscription = fixture.subscription(10);
    fixture.advance(Duration::from_secs(2));
    let id = fixture
        .driver
        .heartbeat_of(fixture.client.client_id())
        .unwrap();
    let counters = fixture.client.counters().clone();
    let age = fixture.clock.read().epoch_millis - counters.value(id).unwrap();
    assert!((0..=500).contains(&age), "{age} ms");
    let label = counters.label(id).unwrap();
    assert!(
        label.as_str().contains(" name=tester version="),
        "{}",
        label.as_str()
    );
    fixture.advance(Duration::from_secs(30));
    assert_eq!(
        counters.label(id).unwrap().as_str(),
        label.as_str(),
        "appended once"
    );
    assert_eq!(fixture.client.close_reason(), None);
}

#[test]
fn idle_client_stays_open() {
    let (mut fixture, events) = recording_fixture();
    fixture.advance(Duration::from_secs(120));
    assert_eq!(fixture.client.close_reason(), None);
    assert!(take_events(&events).is_empty());
}

#[test]
fn wall_clock_jumps_do_not_close_client() {
    let mut fixture = Fixture::new();
    let _subscription = fixture.subscription(10);
    for jump in [3_600_000, -7_200_000] {
        fixture
            .clock
            .set_epoch_millis(fixture.clock.read().epoch_millis + jump);
        // The driver's heartbeat may be up to 1 s old.
        fixture.clock.advance(Duration::from_millis(500));
        fixture.client.do_work(fixture.clock.read());
        assert_eq!(fixture.client.close_reason(), None);
        fixture.advance(Duration::from_secs(12));
        assert_eq!(fixture.client.close_reason(), None);
    }
}

#[test]
fn dropping_last_clone_closes_client() {
    let (mut fixture, events) = recording_fixture();
    let publication = fixture.publication(10);
    let clone = fixture.client.clone();
    let Fixture {
        client, mut driver, ..
    } = fixture;
    drop(client);
    assert!(!publication.is_closed());
    drop(clone);
    assert_eq!(publication.offer(b""), Err(OfferError::Closed));
    assert_eq!(take_events(&events), ["closed"]);
    driver.take_commands();
    driver.do_work();
    assert!(matches!(
        driver.take_commands()[0].command(),
        Command::ClientClose { .. }
    ));
}

#[test]
fn subscription_close_ends_its_callbacks() {
    let (mut fixture, events) = recording_fixture();
    let subscription = fixture.subscription(10);
    let _pending = fixture
        .client
        .async_add_exclusive_publication("aeron:ipc", 10)
        .unwrap();
    // The image was announced but not processed.
    fixture.driver.do_work();
    subscription.close();
    fixture.run_cycles();
    assert!(take_events(&events).is_empty());
}

#[test]
fn callback_may_close_its_own_subscription() {
    let events = Events::default();
    let mut fixture = Fixture::new();
    let closing: Arc<Mutex<Option<taran::Subscription>>> = Arc::default();
    let (target, recorder) = (Arc::clone(&closing), Arc::clone(&events));
    let handlers = ImageHandlers::new().on_available(move |_| {
        record(&recorder, "available");
        drop(target.lock().unwrap().take());
    });
    let pending = fixture
        .client
        .async_add_subscription_with("aeron:ipc", 10, handlers);
    *closing.lock().unwrap() = Some(fixture.complete(pending).unwrap());
    let _publications = [
        fixture.exclusive_publication(10),
        fixture.exclusive_publication(10),
    ];
    fixture.run_cycles();
    assert_eq!(take_events(&events), ["available"]);
    assert_eq!(Arc::strong_count(&closing), 1, "the handler was dropped");
}

#[test]
fn close_inside_callback_runs_only_close_handler_afterwards() {
    let events = Events::default();
    let client: Arc<Mutex<Option<Client>>> = Arc::default();
    let (shared_client, available, closed) = (
        Arc::clone(&client),
        Arc::clone(&events),
        Arc::clone(&events),
    );
    let mut fixture = Fixture::with(|builder| {
        builder
            .on_available_image(move |_| {
                record(&available, "available");
                let client = shared_client.lock().unwrap().take();
                client.iter().for_each(Client::close);
                record(&available, "callback continues");
            })
            .on_close(move |_| record(&closed, "closed"))
    });
    let subscription = fixture.subscription(10);
    *client.lock().unwrap() = Some(fixture.client.clone());
    let index = fixture.driver.create_stream(1, 500, 10, true);
    for _ in 0..2 {
        let subscription_id = subscription.registration_id();
        let position = fixture
            .driver
            .add_position_counter(1, index, subscription_id);
        fixture
            .driver
            .announce_image(index, subscription_id, position.id());
    }
    fixture.run_cycles();
    assert_eq!(
        take_events(&events),
        ["available", "closed", "callback continues"]
    );
    assert_eq!(fixture.client.close_reason(), Some(CloseReason::Closed));
}

#[test]
fn blocking_call_inside_callback_fails_and_async_call_works() {
    let events = Events::default();
    let client: Arc<Mutex<Option<Client>>> = Arc::default();
    let asked: Arc<Mutex<Option<taran::Pending<taran::Publication>>>> = Arc::default();
    let (shared_client, recorder, ask) =
        (Arc::clone(&client), Arc::clone(&events), Arc::clone(&asked));
    let mut fixture = Fixture::with(|builder| {
        builder.on_available_image(move |_| {
            let client = shared_client.lock().unwrap().take().unwrap();
            let error = client.add_publication("aeron:ipc", 20).unwrap_err();
            record(&recorder, error.to_string());
            *ask.lock().unwrap() = Some(client.async_add_publication("aeron:ipc", 21).unwrap());
            assert_eq!(client.invoke(), 0, "a nested duty cycle does nothing");
        })
    });
    *client.lock().unwrap() = Some(fixture.client.clone());
    let _subscription = fixture.subscription(10);
    let _publication = fixture.publication(10);
    fixture.run_cycles();
    assert_eq!(
        take_events(&events),
        [CommandError::CalledFromCallback.to_string()]
    );
    let pending = asked.lock().unwrap().take().unwrap();
    assert_eq!(fixture.complete(Ok(pending)).unwrap().stream_id(), 21);
}

#[test]
fn panic_in_callback_is_reported_and_callback_stays() {
    let events = Events::default();
    let recorder = Arc::clone(&events);
    let mut fixture = Fixture::with(|builder| {
        builder
            .on_available_image(|_| panic!("no more images"))
            .on_error(move |error| record(&recorder, error.to_string()))
    });
    let _subscription = fixture.subscription(10);
    let _publications = [
        fixture.exclusive_publication(10),
        fixture.exclusive_publication(10),
    ];
    fixture.run_cycles();
    let reports = take_events(&events);
    assert_eq!(reports.len(), 2);
    assert!(
        reports
            .iter()
            .all(|report| report.contains("available image") && report.contains("no more images"))
    );
    assert_eq!(fixture.client.close_reason(), None);
}

#[test]
fn blocking_add_invokes_conductor_and_times_out_by_client_clock() {
    let clock = taran::ManualClock::new(crate::fake_driver::START);
    let mut driver = FakeDriver::start(clock.clone());
    let builder = builder(&driver.storage, &clock).clock(taran::SystemClock::new());
    let builder = builder.driver_timeout(Duration::from_millis(30));
    let client = crate::fake_driver::connect(builder, &clock);
    // By the system clock the driver's heartbeat would be years old.
    driver.set_heartbeat_ms(
        taran::Clock::now(&mut taran::SystemClock::new()).epoch_millis + 3_600_000,
    );
    let error = client.add_publication("aeron:ipc", 1).unwrap_err();
    assert_eq!(
        error,
        CommandError::Timeout {
            after: Duration::from_millis(30)
        }
    );
    driver.do_work();
}

#[test]
fn publication_errors_reach_handler_while_publication_is_open() {
    let events = Events::default();
    let recorder = Arc::clone(&events);
    let mut fixture = Fixture::with(|builder| {
        builder.on_publication_error(move |error| {
            record(
                &recorder,
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
    let publication = fixture.publication(10);
    let registration_id = publication.registration_id();
    let rejection = Response::PublicationError {
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
    fixture.driver.respond(&rejection);
    fixture.run_cycles();
    assert_eq!(
        take_events(&events),
        [format!(
            "{registration_id} ImageRejected 10.0.0.1:4000 not wanted"
        )]
    );
    drop(publication);
    fixture.driver.respond(&rejection);
    fixture.run_cycles();
    assert!(take_events(&events).is_empty());
}

#[test]
fn channel_error_is_reported_with_registration_ids() {
    let (mut fixture, events) = recording_fixture();
    fixture.driver.auto_respond = false;
    let pending = fixture
        .client
        .async_add_subscription("aeron:udp?endpoint=x:1", 1)
        .unwrap();
    let registration_id = pending.registration_id();
    fixture.driver.respond(&Response::SubscriptionReady {
        correlation_id: registration_id,
        status_counter_id: 9,
    });
    let _subscription = fixture.complete(Ok(pending)).unwrap();
    fixture.driver.respond(&Response::Error {
        correlation_id: 9,
        error_code: 4,
        message: b"unplugged",
    });
    fixture.driver.respond(&Response::Error {
        correlation_id: 8,
        error_code: 4,
        message: b"another's",
    });
    fixture.run_cycles();
    let reports = take_events(&events);
    assert_eq!(reports.len(), 1);
    assert!(
        reports[0].contains("unplugged") && reports[0].contains(&registration_id.to_string()),
        "{reports:?}"
    );
}
