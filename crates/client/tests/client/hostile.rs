// SPDX-License-Identifier: Apache-2.0
//! Hostile input: nothing that another process writes into shared memory makes the client panic, hang or access other
//! memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use proptest::prelude::*;
use taran::{Action, ClientError, OfferError, Storage};
use taran_core::memory::CreateOptions;
use taran_protocol::log::{LogKind, LogSpec};
use taran_protocol::response::Response;

use crate::fake_driver::{DIRECTORY, Fixture, TERM_LENGTH};

/// Creates a fixture that counts errors.
fn error_counting_fixture() -> (Fixture, Arc<AtomicUsize>) {
    let errors = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&errors);
    let fixture = Fixture::with(|builder| {
        builder.on_error(move |_: &ClientError| {
            count.fetch_add(1, Ordering::Relaxed);
        })
    });
    (fixture, errors)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_response_bytes_are_skipped(
        messages in proptest::collection::vec((0x0F00i32..0x0F10, proptest::collection::vec(any::<u8>(), 0..100)), 1..50)
    ) {
        let (mut fixture, _) = error_counting_fixture();
        let mut subscription = fixture.subscription(10);
        let publication = fixture.publication(10);
        for (type_id, bytes) in &messages {
            fixture.driver.responses.transmit(*type_id, bytes).unwrap();
        }
        fixture.run_cycles();
        prop_assert_eq!(fixture.client.close_reason(), None);
        publication.offer(b"still here").unwrap();
        prop_assert_eq!(subscription.poll(|_, _| (), 1), Ok(1));
    }

    #[test]
    fn random_response_fields_do_not_close_client(
        words in proptest::collection::vec(prop_oneof![any::<i64>(), -2i64..600], 8),
        kind in 0usize..13,
        own in any::<bool>(),
    ) {
        let (mut fixture, _) = error_counting_fixture();
        fixture.driver.auto_respond = false;
        let requested = [
            fixture.client.async_add_publication("aeron:ipc", 1).map(|pending| pending.registration_id()),
            fixture.client.async_add_subscription("aeron:ipc", 1).map(|pending| pending.registration_id()),
        ];
        let id = if own { requested[kind % 2].clone().unwrap() } else { words[0] };
        let small = |index: usize| words[index] as i32;
        let log_name = "/fake/aeron/publications/1.logbuffer";
        let response = match kind {
            0 => Response::Error { correlation_id: id, error_code: small(1), message: &[0xFF, 0xFE] },
            1 => Response::AvailableImage {
                image_id: words[1], session_id: small(2), stream_id: small(3), subscription_id: id,
                position_counter_id: small(4), log_name, source_identity: "",
            },
            2 => Response::PublicationReady {
                correlation_id: id, registration_id: words[1], session_id: small(2), stream_id: small(3),
                limit_counter_id: small(4), status_counter_id: small(5), log_name,
            },
            3 => Response::OperationSuccess { correlation_id: id },
            4 => Response::UnavailableImage { image_id: words[1], subscription_id: id, stream_id: 0, channel: "" },
            5 => Response::ExclusivePublicationReady {
                correlation_id: id, registration_id: words[1], session_id: small(2), stream_id: small(3),
                limit_counter_id: small(4), status_counter_id: small(5), log_name,
            },
            6 => Response::SubscriptionReady { correlation_id: id, status_counter_id: small(1) },
            7 => Response::CounterReady { correlation_id: id, counter_id: small(1) },
            8 => Response::UnavailableCounter { registration_id: id, counter_id: small(1) },
            9 => Response::StaticCounter { correlation_id: id, counter_id: small(1) },
            10 => Response::NextAvailableSessionId { correlation_id: id, session_id: small(1) },
            11 => Response::ClientTimeout { client_id: words[0].min(0) },
            _ => Response::Error { correlation_id: small(1).into(), error_code: 4, message: b"" },
        };
        fixture.driver.respond(&response);
        fixture.run_cycles();
        prop_assert_eq!(fixture.client.close_reason(), None);
    }

    #[test]
    fn random_log_metadata_is_rejected_or_harmless(
        fields in proptest::collection::vec((0usize..1024, prop_oneof![any::<i32>(), Just(0), Just(1 << 16), Just(1 << 30)]), 1..20),
        frames in proptest::collection::vec((0usize..3 * TERM_LENGTH as usize / 32, any::<i32>()), 0..20),
        position in prop_oneof![any::<i64>(), 0i64..1 << 18, Just(-32i64), Just(1i64 << 62)],
        limit in any::<i64>(),
    ) {
        let (mut fixture, _) = error_counting_fixture();
        let mut subscription = fixture.subscription(10);
        let index = fixture.driver.create_stream(1, 77, 10, true);
        let region = fixture.driver.storage.open(fixture.driver.streams[index].log_name.as_ref()).unwrap();
        let metadata = region.len() - 4096;
        for (word, value) in fields {
            region.atomic_i32(metadata + word * 4).store(value, Ordering::Relaxed);
        }
        for (slot, length) in frames {
            region.atomic_i32(slot * 32).store(length, Ordering::Relaxed);
        }
        let counter = fixture.driver.add_position_counter(1, index, subscription.registration_id());
        counter.set(position);
        fixture.driver.announce_image(index, subscription.registration_id(), counter.id());
        fixture.driver.streams[index].limit.set(limit);
        let stream = &fixture.driver.streams[index];
        let (log_name, limit_counter_id) = (stream.log_name.clone(), stream.limit.id());
        fixture.driver.auto_respond = false;
        let mut shared = fixture.client.async_add_publication("aeron:ipc", 10).unwrap();
        let mut exclusive = fixture.client.async_add_exclusive_publication("aeron:ipc", 10).unwrap();
        let ids = [shared.registration_id(), exclusive.registration_id()];
        fixture.driver.respond(&Response::PublicationReady {
            correlation_id: ids[0], registration_id: 77, session_id: 1, stream_id: 10, limit_counter_id,
            status_counter_id: -1, log_name: &log_name,
        });
        fixture.driver.respond(&Response::ExclusivePublicationReady {
            correlation_id: ids[1], registration_id: 77, session_id: 1, stream_id: 10, limit_counter_id,
            status_counter_id: -1, log_name: &log_name,
        });
        for _ in 0..4 {
            fixture.client.do_work(fixture.clock.read());
        }
        for _ in 0..3 {
            subscription.poll(|_, _| (), 10).unwrap();
            subscription.controlled_poll(|_, _| Action::Commit, 10).unwrap();
            subscription.block_poll(|_| (), 4096).unwrap();
        }
        if let Some(image) = subscription.images().first_mut() {
            let _ = image.controlled_peek(image.position(), |_, _| Action::Continue, i64::MAX);
        }
        if let Some(Ok(publication)) = shared.poll() {
            for length in [0, 100, 5000] {
                let _ = publication.offer(&vec![0; length]);
            }
            let _ = publication.try_claim(10).map(drop);
            let _ = (publication.position(), publication.available_window(), publication.is_connected());
        }
        if let Some(Ok(mut publication)) = exclusive.poll() {
            for length in [0, 100, 5000] {
                let _ = publication.offer(&vec![0; length]);
            }
            let _ = publication.append_padding(100);
        }
        fixture.clock.advance(Duration::from_secs(1));
        fixture.driver.update_heartbeat();
        fixture.client.do_work(fixture.clock.read());
        prop_assert_eq!(fixture.client.close_reason(), None);
    }
}

#[test]
fn corrupt_frame_stops_image_and_is_reported_once_per_poll() {
    let (mut fixture, errors) = error_counting_fixture();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    publication.offer(b"good").unwrap();
    publication.offer(b"bad").unwrap();
    let log = &fixture.stream(publication.registration_id()).log;
    log.term(0)
        .atomic_i32(64)
        .store(TERM_LENGTH, Ordering::Release);
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(1));
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(0));
    fixture.advance(Duration::from_millis(600));
    assert_eq!(errors.load(Ordering::Relaxed), 1);
    fixture.advance(Duration::from_secs(1));
    assert_eq!(errors.load(Ordering::Relaxed), 1, "no poll since");
}

#[test]
fn corrupt_frame_error_names_log() {
    let (sender, errors) = mpsc::channel();
    let mut fixture =
        Fixture::with(|builder| builder.on_error(move |error| sender.send(error.clone()).unwrap()));
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    publication.offer(b"good").unwrap();
    publication.offer(b"bad").unwrap();
    let log = &fixture.stream(publication.registration_id()).log;
    log.term(0)
        .atomic_i32(64)
        .store(TERM_LENGTH, Ordering::Release);
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(1));
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(0));
    fixture.advance(Duration::from_millis(600));
    let expected = subscription.images()[0].log_path().to_path_buf();
    assert!(expected.starts_with(DIRECTORY), "{}", expected.display());
    let reported = errors.try_recv().unwrap();
    assert!(
        matches!(&reported, ClientError::Image { path, .. } if *path == expected),
        "{reported}"
    );
    assert!(
        reported
            .to_string()
            .contains(&expected.display().to_string())
    );
}

#[test]
fn unusable_image_is_reported_and_not_added() {
    let (mut fixture, errors) = error_counting_fixture();
    let mut subscription = fixture.subscription(10);
    let spec = LogSpec {
        mtu: 1408,
        ..LogSpec::new(LogKind::Image, 1, 10, 0, TERM_LENGTH)
    };
    let good = format!("{DIRECTORY}/images/1.logbuffer");
    fixture.driver.create_log(&good, &spec);
    let short = format!("{DIRECTORY}/images/2.logbuffer");
    fixture
        .driver
        .storage
        .create(short.as_ref(), 8192, CreateOptions::SPARSE)
        .unwrap();
    let position = fixture
        .driver
        .allocate(&taran_core::counters::CounterSpec::default());
    let announcements = [
        (good.as_str(), -1, 0),
        (&good, i32::MAX, 0),
        (&good, position.id(), -32),
        (&good, position.id(), 33),
        (&good, position.id(), i64::MAX),
        (&short, position.id(), 0),
        ("/fake/aeron/images/3.logbuffer", position.id(), 0),
        ("", position.id(), 0),
    ];
    for (index, (log_name, position_counter_id, at)) in announcements.into_iter().enumerate() {
        position.set(at);
        fixture.driver.respond(&Response::AvailableImage {
            image_id: 100 + index as i64,
            session_id: 1,
            stream_id: 10,
            subscription_id: subscription.registration_id(),
            position_counter_id,
            log_name,
            source_identity: "",
        });
        fixture.run_cycles();
        assert_eq!(
            errors.load(Ordering::Relaxed),
            index + 1,
            "{log_name} {position_counter_id} {at}"
        );
    }
    assert_eq!(subscription.image_count(), 0);
    assert_eq!(subscription.poll(|_, _| (), 1), Ok(0));
}

#[test]
fn overwritten_position_counter_does_not_affect_polls() {
    let (mut fixture, _) = error_counting_fixture();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    publication.offer(b"one").unwrap();
    publication.offer(b"two").unwrap();
    assert_eq!(subscription.poll(|_, _| (), 1), Ok(1));
    let id = subscription.images()[0].subscriber_position_id();
    fixture.client.counters().counter(id).unwrap().set(-17);
    let mut seen = Vec::new();
    subscription
        .poll(|message, _| seen.push(message.to_vec()), 10)
        .unwrap();
    assert_eq!(seen, [b"two".to_vec()]);
}

/// An application would take a negative position for a temporary error.
#[test]
fn negative_position_is_reported_as_damaged() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let _subscription = fixture.subscription(10);
    fixture.run_cycles();
    let stream = fixture.stream(publication.registration_id());
    let metadata = stream.log.metadata();
    let before = metadata.tails[0].load(Ordering::Relaxed);
    metadata.active_term_count.store(-1, Ordering::Relaxed);
    metadata.tails[0].store(before - (1 << 32), Ordering::Relaxed);
    for refused in [
        publication.offer(b"x").err(),
        publication.try_claim(1).map(drop).err(),
        publication.offer(&[0; 1 << 20]).err(),
    ] {
        assert_eq!(refused, Some(OfferError::Damaged));
    }
}
