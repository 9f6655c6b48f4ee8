// SPDX-License-Identifier: Apache-2.0
//! Commands to the driver: success, rejection and timeout.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake};
use std::time::Duration;

use taran::{ChannelStatus, CommandError, ErrorCode, RegistrationError};
use taran_core::counters::CounterSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SocketKey, channel_status, type_id};
use taran_protocol::response::Response;

use crate::fake_driver::{COUNTER_COUNT, Fixture};

#[test]
fn publication_has_properties_from_response() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let stream = fixture.stream(publication.registration_id());
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
fn shared_publications_use_one_stream_and_are_removed_separately() {
    let mut fixture = Fixture::new();
    let first = fixture.publication(10);
    let second = fixture.publication(10);
    assert_eq!(second.original_registration_id(), first.registration_id());
    assert_ne!(second.registration_id(), first.registration_id());
    assert_eq!(second.session_id(), first.session_id());
    fixture.driver.take_commands();
    let removed = first.registration_id();
    drop(first);
    fixture.run_cycles();
    let seen = fixture.driver.take_commands();
    assert_eq!(seen.len(), 1);
    assert!(matches!(
        seen[0].command(),
        Command::RemovePublication { registration_id, revoke: false, .. } if registration_id == removed
    ));
    assert!(!second.is_closed());
    assert_eq!(fixture.driver.streams.len(), 1);
}

#[test]
fn publication_clones_are_closed_and_removed_once() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let clone = publication.clone();
    drop(publication);
    fixture.driver.take_commands();
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().is_empty(), "a clone is left");
    let found = fixture
        .client
        .find_publication(clone.registration_id())
        .unwrap();
    clone.close();
    assert!(found.is_closed());
    assert!(
        fixture
            .client
            .find_publication(clone.registration_id())
            .is_none()
    );
    drop((clone, found));
    fixture.run_cycles();
    assert_eq!(fixture.driver.take_commands().len(), 1);
}

#[test]
fn revoke_sets_flag_in_remove_command() {
    let mut fixture = Fixture::new();
    let (shared, exclusive) = (fixture.publication(10), fixture.exclusive_publication(11));
    fixture.driver.take_commands();
    shared.revoke();
    exclusive.revoke();
    fixture.run_cycles();
    let seen = fixture.driver.take_commands();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        assert!(matches!(
            seen.command(),
            Command::RemovePublication { revoke: true, .. }
        ));
    }
}

#[test]
fn exclusive_publications_have_distinct_sessions() {
    let mut fixture = Fixture::new();
    let (first, second) = (
        fixture.exclusive_publication(10),
        fixture.exclusive_publication(10),
    );
    assert_ne!(first.session_id(), second.session_id());
    assert!(
        fixture
            .client
            .find_publication(first.registration_id())
            .is_none()
    );
    first.close();
    fixture.run_cycles();
    assert_eq!(fixture.driver.streams.len(), 1);
}

#[test]
fn counter_is_allocated_written_found_and_freed() {
    let mut fixture = Fixture::new();
    let pending = fixture.client.async_add_counter(1001, b"key", "label");
    let counter = fixture.complete(pending).unwrap();
    counter.set(5);
    counter.increment();
    counter.add(4);
    assert!(counter.propose_max(12) && !counter.propose_max(11));
    let counters = fixture.client.counters().clone();
    assert_eq!(counters.value(counter.id()), Some(12));
    assert_eq!(counter.label().as_deref(), Some("label"));
    let meta = counters.meta(counter.id()).unwrap();
    assert_eq!(
        (meta.type_id, &meta.key[..3], meta.owner_id),
        (1001, &b"key"[..], fixture.client.client_id())
    );
    let found = fixture
        .client
        .find_counter(counter.registration_id())
        .unwrap();
    assert_eq!(found.id(), counter.id());
    counter.close();
    assert!(
        found.is_closed()
            && fixture
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
    fixture.run_cycles();
    assert_eq!(
        counters.label(counter.id()).is_none(),
        counters.value(counter.id()).is_none()
    );
    assert_eq!(counter.label(), None);
}

#[test]
fn static_counter_is_found_again_and_never_removed() {
    let mut fixture = Fixture::new();
    let pending = fixture
        .client
        .async_add_static_counter(1002, b"", "static", 77);
    let first = fixture.complete(pending).unwrap();
    let pending = fixture
        .client
        .async_add_static_counter(1002, b"", "static", 77);
    let second = fixture.complete(pending).unwrap();
    assert_eq!((first.id(), first.registration_id()), (second.id(), 77));
    fixture.driver.take_commands();
    drop(first);
    second.close();
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().is_empty());
}

#[test]
fn session_id_and_destination_commands_are_sent() {
    let mut fixture = Fixture::new();
    let pending = fixture.client.async_next_available_session_id(10);
    assert_eq!(fixture.complete(pending), Ok(4242));
    let (publication, subscription) = (fixture.publication(10), fixture.subscription(10));
    fixture.driver.take_commands();
    let pending = publication
        .async_add_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    let id = pending.registration_id();
    fixture.complete(Ok(pending)).unwrap();
    let requested = [
        publication.async_remove_destination("aeron:udp?endpoint=a:1"),
        publication.async_remove_destination_by_id(id),
        subscription.async_add_destination("aeron:udp?endpoint=b:1"),
        subscription.async_remove_destination("aeron:udp?endpoint=b:1"),
    ];
    for pending in requested {
        fixture.complete(pending).unwrap();
    }
    let seen = fixture.driver.take_commands();
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
fn reject_image_sends_current_position() {
    let mut fixture = Fixture::new();
    let (publication, subscription) = (fixture.publication(10), fixture.subscription(10));
    fixture.run_cycles();
    fixture.driver.take_commands();
    let image = subscription.image(publication.session_id()).unwrap();
    let pending = subscription.async_reject_image(&image, "not wanted");
    fixture.complete(pending).unwrap();
    let seen = fixture.driver.take_commands();
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
        CommandError::TooLong {
            item: "reason",
            length: 1024,
            max: 1023
        }
    );
}

#[test]
fn rejected_command_returns_code_and_text_of_driver() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
    let pending = fixture
        .client
        .async_add_subscription("aeron:nonsense", 1)
        .unwrap();
    let correlation_id = pending.registration_id();
    fixture.driver.respond(&Response::Error {
        correlation_id,
        error_code: 1,
        message: b"no such medium",
    });
    let error = fixture.complete(Ok(pending)).unwrap_err();
    let CommandError::Registration(RegistrationError {
        code,
        text,
        correlation_id: rejected,
        ..
    }) = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (*code, text.as_str(), *rejected),
        (ErrorCode::InvalidChannel, "no such medium", correlation_id)
    );
    assert!(
        error.to_string().contains("no such medium")
            && error.to_string().contains("INVALID_CHANNEL"),
        "{error}"
    );
}

#[test]
fn command_timeout_removes_resource_created_late() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
    let mut publication = fixture
        .client
        .async_add_publication("aeron:ipc", 1)
        .unwrap();
    let mut subscription = fixture
        .client
        .async_add_subscription("aeron:ipc", 2)
        .unwrap();
    let mut counter = fixture.client.async_add_counter(1001, b"", "").unwrap();
    fixture.run_cycles();
    fixture.advance(Duration::from_millis(9_900));
    assert!(
        publication.poll().is_none() && subscription.poll().is_none() && counter.poll().is_none()
    );
    fixture.advance(Duration::from_millis(200));
    let late = CommandError::Timeout {
        after: Duration::from_secs(10),
    };
    assert_eq!(publication.poll().unwrap().unwrap_err(), late);
    assert_eq!(subscription.poll().unwrap().unwrap_err(), late);
    assert_eq!(counter.poll().unwrap().unwrap_err(), late);
    let ids: Vec<i64> = fixture
        .driver
        .take_commands()
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
    assert_eq!(ids[3..], [-ids[0], -ids[1], -ids[2]], "each is removed");
    assert_eq!(
        fixture.client.close_reason(),
        None,
        "a timeout of one command does not end the client"
    );
}

#[test]
fn dropped_pending_removes_created_resource() {
    let mut fixture = Fixture::new();
    drop(
        fixture
            .client
            .async_add_publication("aeron:ipc", 1)
            .unwrap(),
    );
    drop(
        fixture
            .client
            .async_add_exclusive_publication("aeron:ipc", 1)
            .unwrap(),
    );
    drop(
        fixture
            .client
            .async_add_subscription("aeron:ipc", 1)
            .unwrap(),
    );
    drop(fixture.client.async_add_counter(1001, b"", "").unwrap());
    fixture.run_cycles();
    fixture.run_cycles();
    assert!(fixture.driver.streams.is_empty());
    let removed = fixture
        .driver
        .take_commands()
        .iter()
        .skip(4)
        .map(|seen| seen.command().type_id())
        .collect::<Vec<_>>();
    assert_eq!(removed, [0x02, 0x02, 0x05, 0x0A]);
}

#[test]
fn pending_returns_result_once() {
    let mut fixture = Fixture::new();
    let mut pending = fixture.client.async_next_available_session_id(1).unwrap();
    fixture.run_cycles();
    assert_eq!(pending.poll(), Some(Ok(4242)));
    assert_eq!(pending.poll(), None);
}

#[test]
fn pending_wakes_future() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let mut fixture = Fixture::new();
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Arc::clone(&woken).into();
    let mut context = TaskContext::from_waker(&waker);
    let mut pending = fixture.client.async_next_available_session_id(1).unwrap();
    assert_eq!(
        Pin::new(&mut pending).as_mut().poll(&mut context),
        Poll::Pending
    );
    fixture.run_cycles();
    assert!(woken.0.load(Ordering::SeqCst));
    assert_eq!(
        Future::poll(Pin::new(&mut pending), &mut context),
        Poll::Ready(Ok(4242))
    );
}

#[test]
fn mismatched_response_is_an_error() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
    let pending = fixture
        .client
        .async_add_subscription("aeron:ipc", 1)
        .unwrap();
    fixture.driver.respond(&Response::OperationSuccess {
        correlation_id: pending.registration_id(),
    });
    let error = fixture.complete(Ok(pending)).unwrap_err();
    assert_eq!(
        error,
        CommandError::UnexpectedResponse {
            expected: "ON_SUBSCRIPTION_READY"
        }
    );
}

#[test]
fn missing_log_or_counter_fails_add_and_removes_publication() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
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
        let pending = fixture
            .client
            .async_add_publication("aeron:ipc", 1)
            .unwrap();
        let registered = pending.registration_id();
        fixture.driver.do_work();
        fixture.driver.take_commands();
        fixture.driver.respond(&ready(registered, name, 0));
        let error = fixture.complete(Ok(pending)).unwrap_err();
        assert!(
            matches!(error, CommandError::Log { .. }),
            "{name}: {error:?}"
        );
        fixture.run_cycles();
        assert!(matches!(
            fixture.driver.take_commands()[0].command(),
            Command::RemovePublication { registration_id, .. } if registration_id == registered
        ));
    }
    let index = fixture.driver.create_stream(1, 55, 1, true);
    let name = fixture.driver.streams[index].log_name.clone();
    for counter_id in [
        -1,
        COUNTER_COUNT as i32 - 1,
        COUNTER_COUNT as i32,
        i32::MAX,
        i32::MIN,
    ] {
        let pending = fixture
            .client
            .async_add_publication("aeron:ipc", 1)
            .unwrap();
        fixture
            .driver
            .respond(&ready(pending.registration_id(), &name, counter_id));
        let error = fixture.complete(Ok(pending)).unwrap_err();
        assert_eq!(error, CommandError::NoSuchCounter { counter_id });
    }
}

#[test]
fn log_is_found_in_directory_as_seen_by_client() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
    let index = fixture.driver.create_stream(1, 55, 1, true);
    let limit_counter_id = fixture.driver.streams[index].limit.id();
    for log_name in [
        "/seen/by/the/driver/publications/55.logbuffer",
        "publications/55.logbuffer",
    ] {
        let pending = fixture
            .client
            .async_add_publication("aeron:ipc", 1)
            .unwrap();
        fixture.driver.respond(&Response::PublicationReady {
            correlation_id: pending.registration_id(),
            registration_id: 55,
            session_id: 1,
            stream_id: 1,
            limit_counter_id,
            status_counter_id: -1,
            log_name,
        });
        fixture.complete(Ok(pending)).unwrap();
    }
}

#[test]
fn too_long_arguments_are_rejected_before_sending() {
    let mut fixture = Fixture::new();
    let channel = format!("aeron:udp?endpoint={}", "x".repeat(4090));
    let error = fixture
        .client
        .async_add_publication(&channel, 1)
        .unwrap_err();
    assert_eq!(
        error,
        CommandError::TooLong {
            item: "channel",
            length: channel.len(),
            max: 4095
        }
    );
    let error = fixture
        .client
        .async_add_counter(1001, &[0; 113], "")
        .unwrap_err();
    assert_eq!(
        error,
        CommandError::TooLong {
            item: "key",
            length: 113,
            max: 112
        }
    );
    let error = fixture
        .client
        .async_add_counter(1001, &[], &"l".repeat(381))
        .unwrap_err();
    assert_eq!(
        error,
        CommandError::TooLong {
            item: "label",
            length: 381,
            max: 380
        }
    );
    fixture.run_cycles();
    assert!(fixture.driver.take_commands().is_empty());
}

#[test]
fn full_command_buffer_fails_adds_and_queues_removals() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let subscription = fixture.subscription(10);
    let channel = format!("aeron:ipc?alias={}", "x".repeat(4000));
    let full = loop {
        match fixture.client.async_add_publication(&channel, 1) {
            Ok(pending) => drop(pending),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(full, CommandError::DriverBufferFull { .. }),
        "{full:?}"
    );
    while fixture.client.async_next_available_session_id(1).is_ok() {}
    drop(publication);
    drop(subscription);
    fixture.driver.take_commands();
    fixture.driver.do_work();
    let before = fixture.driver.take_commands().len();
    assert!(before > 10);
    fixture.run_cycles();
    let after = fixture.driver.take_commands();
    assert!(
        after
            .iter()
            .any(|seen| matches!(seen.command(), Command::RemoveSubscription { .. }))
    );
}

#[test]
fn channel_status_and_addresses_are_read_from_counters() {
    let mut fixture = Fixture::new();
    fixture.driver.auto_respond = false;
    let status = fixture.driver.allocate(&CounterSpec {
        type_id: type_id::RECEIVE_CHANNEL_STATUS,
        ..CounterSpec::default()
    });
    let pending = fixture
        .client
        .async_add_subscription("aeron:udp?endpoint=localhost:0", 1)
        .unwrap();
    fixture.driver.respond(&Response::SubscriptionReady {
        correlation_id: pending.registration_id(),
        status_counter_id: status.id(),
    });
    let subscription = fixture.complete(Ok(pending)).unwrap();
    let key = SocketKey {
        channel_status_id: status.id(),
        address: "127.0.0.1:40999".into(),
    }
    .encode();
    let address = fixture.driver.allocate(&CounterSpec {
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
