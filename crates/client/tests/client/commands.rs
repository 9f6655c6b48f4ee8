//! Asking the driver for things: each answer, each refusal, and no answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake};
use std::time::Duration;

use taran::{AddError, ChannelStatus, ErrorCode, RegistrationError};
use taran_core::counters::CounterSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SocketKey, channel_status, type_id};
use taran_protocol::response::Response;

use crate::fake::{COUNTERS, Pair};

#[test]
fn a_publication_knows_what_the_driver_said() {
    let mut pair = Pair::new();
    let publication = pair.publication(10);
    let stream = pair.stream(publication.registration_id());
    assert_eq!(publication.stream_id(), 10);
    assert_eq!(publication.session_id(), stream.session_id);
    assert_eq!(publication.channel(), "aeron:ipc");
    assert_eq!(
        publication.original_registration_id(),
        publication.registration_id()
    );
    assert_eq!(publication.max_payload_length(), 1408 - 32);
    assert_eq!(publication.max_message_length(), 8192);
    assert_eq!(publication.term_length(), 65_536);
    assert_eq!(publication.initial_term_id(), 7);
    assert_eq!(publication.max_possible_position(), 65_536 << 31);
    assert_eq!(publication.position_limit_id(), stream.limit.id());
    assert_eq!(
        (
            publication.channel_status(),
            publication.channel_status_id()
        ),
        (ChannelStatus::NoIndicator, None)
    );
    assert!(publication.local_socket_addresses().is_empty());
    assert!(!publication.is_connected() && !publication.is_closed());
}

#[test]
fn shared_publications_of_one_stream_share_it_and_each_is_removed_for_itself() {
    let mut pair = Pair::new();
    let first = pair.publication(10);
    let second = pair.publication(10);
    assert_eq!(second.original_registration_id(), first.registration_id());
    assert_ne!(second.registration_id(), first.registration_id());
    assert_eq!(second.session_id(), first.session_id());
    pair.driver.take_seen();
    let removed = first.registration_id();
    drop(first);
    pair.turns();
    let seen = pair.driver.take_seen();
    assert_eq!(seen.len(), 1);
    assert!(matches!(
        seen[0].command(),
        Command::RemovePublication { registration_id, revoke: false, .. } if registration_id == removed
    ));
    assert!(!second.is_closed());
    assert_eq!(pair.driver.streams.len(), 1);
}

#[test]
fn clones_are_one_publication_that_is_closed_once() {
    let mut pair = Pair::new();
    let publication = pair.publication(10);
    let clone = publication.clone();
    drop(publication);
    pair.driver.take_seen();
    pair.turns();
    assert!(pair.driver.take_seen().is_empty(), "a clone is left");
    let found = pair
        .client
        .find_publication(clone.registration_id())
        .unwrap();
    clone.close();
    assert!(found.is_closed());
    assert!(
        pair.client
            .find_publication(clone.registration_id())
            .is_none()
    );
    drop((clone, found));
    pair.turns();
    assert_eq!(pair.driver.take_seen().len(), 1);
}

#[test]
fn revoking_says_so() {
    let mut pair = Pair::new();
    let (shared, exclusive) = (pair.publication(10), pair.exclusive_publication(11));
    pair.driver.take_seen();
    shared.revoke();
    exclusive.revoke();
    pair.turns();
    let seen = pair.driver.take_seen();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        assert!(matches!(
            seen.command(),
            Command::RemovePublication { revoke: true, .. }
        ));
    }
}

#[test]
fn exclusive_publications_have_a_session_each() {
    let mut pair = Pair::new();
    let (first, second) = (
        pair.exclusive_publication(10),
        pair.exclusive_publication(10),
    );
    assert_ne!(first.session_id(), second.session_id());
    assert!(
        pair.client
            .find_publication(first.registration_id())
            .is_none()
    );
    first.close();
    pair.turns();
    assert_eq!(pair.driver.streams.len(), 1);
}

#[test]
fn counters_are_allocated_written_found_and_freed() {
    let mut pair = Pair::new();
    let pending = pair.client.async_add_counter(1001, b"key", "label");
    let counter = pair.answer(pending).unwrap();
    counter.set(5);
    counter.increment();
    counter.add(4);
    assert!(counter.propose_max(12) && !counter.propose_max(11));
    let counters = pair.client.counters().clone();
    assert_eq!(counters.value(counter.id()), Some(12));
    assert_eq!(counter.label().as_deref(), Some("label"));
    let meta = counters.meta(counter.id()).unwrap();
    assert_eq!(
        (meta.type_id, &meta.key[..3], meta.owner_id),
        (1001, &b"key"[..], pair.client.client_id())
    );
    let found = pair.client.find_counter(counter.registration_id()).unwrap();
    assert_eq!(found.id(), counter.id());
    counter.close();
    assert!(
        found.is_closed()
            && pair
                .client
                .find_counter(counter.registration_id())
                .is_none()
    );
    counter.set(99);
    counter.increment();
    assert_eq!(
        counters.counter(counter.id()).map(|counter| counter.get()),
        Some(12),
        "a closed handle writes nothing"
    );
    pair.turns();
    assert_eq!(
        counters.label(counter.id()).is_none(),
        counters.value(counter.id()).is_none()
    );
    assert_eq!(counter.label(), None);
}

#[test]
fn a_static_counter_is_found_again_and_never_removed() {
    let mut pair = Pair::new();
    let pending = pair
        .client
        .async_add_static_counter(1002, b"", "static", 77);
    let first = pair.answer(pending).unwrap();
    let pending = pair
        .client
        .async_add_static_counter(1002, b"", "static", 77);
    let second = pair.answer(pending).unwrap();
    assert_eq!((first.id(), first.registration_id()), (second.id(), 77));
    pair.driver.take_seen();
    drop(first);
    second.close();
    pair.turns();
    assert!(pair.driver.take_seen().is_empty());
}

#[test]
fn session_ids_and_destinations_are_asked_for() {
    let mut pair = Pair::new();
    let pending = pair.client.async_next_available_session_id(10);
    assert_eq!(pair.answer(pending), Ok(4242));
    let (publication, subscription) = (pair.publication(10), pair.subscription(10));
    pair.driver.take_seen();
    let pending = publication
        .async_add_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    let id = pending.registration_id();
    pair.answer(Ok(pending)).unwrap();
    let asked = [
        publication.async_remove_destination("aeron:udp?endpoint=a:1"),
        publication.async_remove_destination_by_id(id),
        subscription.async_add_destination("aeron:udp?endpoint=b:1"),
        subscription.async_remove_destination("aeron:udp?endpoint=b:1"),
    ];
    for pending in asked {
        pair.answer(pending).unwrap();
    }
    let seen = pair.driver.take_seen();
    let commands: Vec<_> = seen.iter().map(|seen| seen.command()).collect();
    let publication_id = publication.registration_id();
    assert!(matches!(
        commands[0],
        Command::AddDestination { registration_id, channel: "aeron:udp?endpoint=a:1", correlation_id, .. }
            if registration_id == publication_id && correlation_id == id
    ));
    assert!(matches!(commands[1], Command::RemoveDestination { .. }));
    assert!(
        matches!(commands[2], Command::RemoveDestinationById { destination_id, .. } if destination_id == id)
    );
    assert!(matches!(
        commands[3],
        Command::AddReceiveDestination { registration_id, .. } if registration_id == subscription.registration_id()
    ));
    assert!(matches!(
        commands[4],
        Command::RemoveReceiveDestination { .. }
    ));
}

#[test]
fn an_image_is_rejected_where_it_stands() {
    let mut pair = Pair::new();
    let (publication, subscription) = (pair.publication(10), pair.subscription(10));
    pair.turns();
    pair.driver.take_seen();
    let image = subscription.image(publication.session_id()).unwrap();
    let pending = subscription.async_reject_image(&image, "not wanted");
    pair.answer(pending).unwrap();
    let seen = pair.driver.take_seen();
    let image_id = image.correlation_id();
    assert!(matches!(
        seen[0].command(),
        Command::RejectImage { image_id: id, position: 0, reason: b"not wanted", .. } if id == image_id
    ));
    let error = subscription
        .async_reject_image(&image, &"x".repeat(1024))
        .unwrap_err();
    assert_eq!(
        error,
        AddError::TooLong {
            item: "reason",
            length: 1024,
            max: 1023
        }
    );
}

#[test]
fn a_refusal_has_the_code_and_the_text_of_the_driver() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let pending = pair
        .client
        .async_add_subscription("aeron:nonsense", 1)
        .unwrap();
    let correlation_id = pending.registration_id();
    pair.driver.say(&Response::Error {
        correlation_id,
        error_code: 1,
        message: b"no such medium",
    });
    let error = pair.answer(Ok(pending)).unwrap_err();
    let expected = RegistrationError {
        code: ErrorCode::InvalidChannel,
        text: "no such medium".to_owned(),
        correlation_id,
    };
    assert_eq!(error, AddError::Registration(expected));
    assert!(
        error.to_string().contains("no such medium")
            && error.to_string().contains("INVALID_CHANNEL"),
        "{error}"
    );
}

#[test]
fn no_answer_is_a_timeout_and_what_comes_late_is_given_back() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let mut publication = pair.client.async_add_publication("aeron:ipc", 1).unwrap();
    let mut subscription = pair.client.async_add_subscription("aeron:ipc", 2).unwrap();
    let mut counter = pair.client.async_add_counter(1001, b"", "").unwrap();
    pair.turns();
    pair.pass(Duration::from_millis(9_900));
    assert!(
        publication.poll().is_none() && subscription.poll().is_none() && counter.poll().is_none()
    );
    pair.pass(Duration::from_millis(200));
    let late = AddError::Timeout {
        after: Duration::from_secs(10),
    };
    assert_eq!(publication.poll().unwrap().unwrap_err(), late);
    assert_eq!(subscription.poll().unwrap().unwrap_err(), late);
    assert_eq!(counter.poll().unwrap().unwrap_err(), late);
    let ids: Vec<i64> = pair
        .driver
        .take_seen()
        .iter()
        .map(|seen| match seen.command() {
            Command::RemovePublication {
                registration_id, ..
            }
            | Command::RemoveSubscription {
                registration_id, ..
            }
            | Command::RemoveCounter {
                registration_id, ..
            } => -registration_id,
            command => command.correlation_id(),
        })
        .collect();
    assert_eq!(ids[3..], [-ids[0], -ids[1], -ids[2]], "each is given back");
    assert_eq!(
        pair.client.close_reason(),
        None,
        "a timeout of one command does not end the client"
    );
}

#[test]
fn an_answer_nobody_waits_for_is_given_back() {
    let mut pair = Pair::new();
    drop(pair.client.async_add_publication("aeron:ipc", 1).unwrap());
    drop(
        pair.client
            .async_add_exclusive_publication("aeron:ipc", 1)
            .unwrap(),
    );
    drop(pair.client.async_add_subscription("aeron:ipc", 1).unwrap());
    drop(pair.client.async_add_counter(1001, b"", "").unwrap());
    pair.turns();
    pair.turns();
    assert!(pair.driver.streams.is_empty());
    let removed = pair
        .driver
        .take_seen()
        .iter()
        .skip(4)
        .map(|seen| seen.command().type_id())
        .collect::<Vec<_>>();
    assert_eq!(removed, [0x02, 0x02, 0x05, 0x0A]);
}

#[test]
fn an_answer_is_given_once() {
    let mut pair = Pair::new();
    let mut pending = pair.client.async_next_available_session_id(1).unwrap();
    pair.turns();
    assert_eq!(pending.poll(), Some(Ok(4242)));
    assert_eq!(pending.poll(), None);
}

#[test]
fn a_pending_answer_can_be_awaited() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let mut pair = Pair::new();
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Arc::clone(&woken).into();
    let mut context = TaskContext::from_waker(&waker);
    let mut pending = pair.client.async_next_available_session_id(1).unwrap();
    assert_eq!(
        Pin::new(&mut pending).as_mut().poll(&mut context),
        Poll::Pending
    );
    pair.turns();
    assert!(woken.0.load(Ordering::SeqCst));
    assert_eq!(
        Future::poll(Pin::new(&mut pending), &mut context),
        Poll::Ready(Ok(4242))
    );
}

#[test]
fn an_answer_of_another_kind_is_an_error() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let pending = pair.client.async_add_subscription("aeron:ipc", 1).unwrap();
    pair.driver.say(&Response::OperationSuccess {
        correlation_id: pending.registration_id(),
    });
    let error = pair.answer(Ok(pending)).unwrap_err();
    assert_eq!(
        error,
        AddError::UnexpectedResponse {
            expected: "ON_SUBSCRIPTION_READY"
        }
    );
}

#[test]
fn a_log_or_counter_that_is_not_there_is_an_error_and_given_back() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let ready = |correlation_id, log_name, limit_counter_id| Response::PublicationReady {
        correlation_id,
        registration_id: correlation_id,
        session_id: 1,
        stream_id: 1,
        limit_counter_id,
        status_counter_id: -1,
        log_name,
    };
    for name in [
        "/fake/aeron/publications/9.logbuffer",
        "/etc/passwd",
        "",
        "../../x.logbuffer",
        "/fake/aeron/cnc.dat",
    ] {
        let pending = pair.client.async_add_publication("aeron:ipc", 1).unwrap();
        let registered = pending.registration_id();
        pair.driver.turn();
        pair.driver.take_seen();
        pair.driver.say(&ready(registered, name, 0));
        let error = pair.answer(Ok(pending)).unwrap_err();
        assert!(matches!(error, AddError::Log { .. }), "{name}: {error:?}");
        pair.turns();
        assert!(matches!(
            pair.driver.take_seen()[0].command(),
            Command::RemovePublication { registration_id, .. } if registration_id == registered
        ));
    }
    let index = pair.driver.make_stream(1, 55, 1, true);
    let name = pair.driver.streams[index].log_name.clone();
    for counter_id in [-1, COUNTERS as i32 - 1, COUNTERS as i32, i32::MAX, i32::MIN] {
        let pending = pair.client.async_add_publication("aeron:ipc", 1).unwrap();
        pair.driver
            .say(&ready(pending.registration_id(), &name, counter_id));
        let error = pair.answer(Ok(pending)).unwrap_err();
        assert_eq!(error, AddError::NoSuchCounter { counter_id });
    }
}

#[test]
fn a_log_is_found_where_this_process_sees_the_directory() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let index = pair.driver.make_stream(1, 55, 1, true);
    let limit_counter_id = pair.driver.streams[index].limit.id();
    for log_name in [
        "/seen/by/the/driver/publications/55.logbuffer",
        "publications/55.logbuffer",
    ] {
        let pending = pair.client.async_add_publication("aeron:ipc", 1).unwrap();
        pair.driver.say(&Response::PublicationReady {
            correlation_id: pending.registration_id(),
            registration_id: 55,
            session_id: 1,
            stream_id: 1,
            limit_counter_id,
            status_counter_id: -1,
            log_name,
        });
        pair.answer(Ok(pending)).unwrap();
    }
}

#[test]
fn what_is_too_long_is_refused_before_it_is_sent() {
    let mut pair = Pair::new();
    let channel = format!("aeron:udp?endpoint={}", "x".repeat(4090));
    let error = pair.client.async_add_publication(&channel, 1).unwrap_err();
    assert_eq!(
        error,
        AddError::TooLong {
            item: "channel",
            length: channel.len(),
            max: 4095
        }
    );
    let error = pair
        .client
        .async_add_counter(1001, &[0; 113], "")
        .unwrap_err();
    assert_eq!(
        error,
        AddError::TooLong {
            item: "key",
            length: 113,
            max: 112
        }
    );
    let error = pair
        .client
        .async_add_counter(1001, &[], &"l".repeat(381))
        .unwrap_err();
    assert_eq!(
        error,
        AddError::TooLong {
            item: "label",
            length: 381,
            max: 380
        }
    );
    pair.turns();
    assert!(pair.driver.take_seen().is_empty());
}

#[test]
fn a_full_command_buffer_is_an_error_for_adds_and_a_delay_for_removals() {
    let mut pair = Pair::new();
    let publication = pair.publication(10);
    let subscription = pair.subscription(10);
    let channel = format!("aeron:ipc?alias={}", "x".repeat(4000));
    let full = loop {
        match pair.client.async_add_publication(&channel, 1) {
            Ok(pending) => drop(pending),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(full, AddError::DriverBufferFull { .. }),
        "{full:?}"
    );
    while pair.client.async_next_available_session_id(1).is_ok() {}
    drop(publication);
    drop(subscription);
    pair.driver.take_seen();
    pair.driver.turn();
    let before = pair.driver.take_seen().len();
    assert!(before > 10);
    pair.turns();
    let after = pair.driver.take_seen();
    assert!(
        after
            .iter()
            .any(|seen| matches!(seen.command(), Command::RemoveSubscription { .. }))
    );
}

#[test]
fn the_channel_status_and_its_addresses_are_read_from_the_counters() {
    let mut pair = Pair::new();
    pair.driver.answers = false;
    let status = pair.driver.allocate(&CounterSpec {
        type_id: type_id::RECEIVE_CHANNEL_STATUS,
        ..CounterSpec::default()
    });
    let pending = pair
        .client
        .async_add_subscription("aeron:udp?endpoint=localhost:0", 1)
        .unwrap();
    pair.driver.say(&Response::SubscriptionReady {
        correlation_id: pending.registration_id(),
        status_counter_id: status.id(),
    });
    let subscription = pair.answer(Ok(pending)).unwrap();
    let key = SocketKey {
        channel_status_id: status.id(),
        address: "127.0.0.1:40999".into(),
    }
    .encode();
    let address = pair.driver.allocate(&CounterSpec {
        type_id: type_id::LOCAL_SOCKET_ADDRESS,
        key: &key,
        value: channel_status::ACTIVE,
        ..CounterSpec::default()
    });
    let states = [
        (channel_status::INITIALIZING, ChannelStatus::Initializing),
        (channel_status::ERRORED, ChannelStatus::Errored),
        (channel_status::CLOSING, ChannelStatus::Closing),
        (9, ChannelStatus::Unknown(9)),
    ];
    for (value, expected) in states {
        status.set(value);
        assert_eq!(subscription.channel_status(), expected);
        assert!(subscription.local_socket_addresses().is_empty());
    }
    status.set(channel_status::ACTIVE);
    assert_eq!(subscription.channel_status(), ChannelStatus::Active);
    assert_eq!(subscription.channel_status_id(), Some(status.id()));
    assert_eq!(
        subscription.local_socket_addresses(),
        ["127.0.0.1:40999".parse().unwrap()]
    );
    address.set(channel_status::CLOSING);
    assert!(subscription.local_socket_addresses().is_empty());
}
