// SPDX-License-Identifier: Apache-2.0
//! All kinds of offers, and all their errors.

use std::time::{Duration, Instant};

use taran::idle::IdleStrategy;
use taran::{BlockError, FragmentAssembler, OfferError, Publication, Subscription};

use crate::fake_driver::{Fixture, TERM_LENGTH};

fn receive(subscription: &mut Subscription) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut assembler = FragmentAssembler::new();
    while subscription
        .poll(
            assembler.wrap(|message, _| messages.push(message.to_vec())),
            100,
        )
        .unwrap()
        > 0
    {}
    messages
}

fn stream(fixture: &mut Fixture) -> (Publication, Subscription) {
    let found = (fixture.publication(10), fixture.subscription(10));
    fixture.run_cycles();
    found
}

#[test]
fn offer_without_subscriber_is_not_connected() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    assert_eq!(publication.offer(b"x"), Err(OfferError::NotConnected));
    assert_eq!(
        publication.try_claim(1).map(drop),
        Err(OfferError::NotConnected)
    );
    let mut exclusive = fixture.exclusive_publication(11);
    assert_eq!(exclusive.offer(b"x"), Err(OfferError::NotConnected));
    assert!(OfferError::NotConnected.is_retryable());
}

#[test]
fn offer_at_limit_is_back_pressured_until_subscriber_polls() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let window = publication.available_window();
    assert_eq!(window, i64::from(TERM_LENGTH) / 2);
    let mut offered = 0;
    let refused = loop {
        match publication.offer(&[0; 1000]) {
            Ok(position) => {
                offered += 1;
                assert_eq!(position, publication.position());
            }
            Err(error) => break error,
        }
    };
    assert_eq!(refused, OfferError::BackPressured);
    assert_eq!(offered, window / 1056 + 1);
    assert_eq!(publication.available_window(), 0);
    assert_eq!(receive(&mut subscription).len() as i64, offered);
    fixture.run_cycles();
    assert!(publication.offer(&[0; 1000]).is_ok());
}

#[test]
fn offer_at_end_of_term_is_admin_action_and_next_offer_succeeds() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let (mut turns, mut sent) = (0, 0);
    while publication.position() < 4 * i64::from(TERM_LENGTH) {
        match publication.offer(&[7; 999]) {
            Ok(_) => sent += 1,
            Err(OfferError::AdminAction) => {
                turns += 1;
                assert_eq!(publication.offer(&[7; 999]).map(|_| sent += 1), Ok(()));
            }
            Err(error) => panic!("{error}"),
        }
        sent -= receive(&mut subscription).len() as i32;
        fixture.driver.do_work();
    }
    // A poll that passes only padding delivers nothing, so the last message may still be unread.
    sent -= receive(&mut subscription).len() as i32;
    assert_eq!((turns, sent), (4, 0));
}

#[test]
fn messages_of_every_length_arrive_whole() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let mut exclusive = fixture.exclusive_publication(11);
    let mut other = fixture.subscription(11);
    fixture.run_cycles();
    let payload = publication.max_payload_length();
    for length in [
        0,
        1,
        31,
        32,
        33,
        payload - 1,
        payload,
        payload + 1,
        2 * payload,
        2 * payload + 1,
        8192,
    ] {
        let message: Vec<u8> = (0..length).map(|index| (index * 7) as u8).collect();
        while let Err(error) = publication.offer(&message) {
            assert_eq!(error, OfferError::AdminAction);
        }
        while let Err(error) = exclusive.offer(&message) {
            assert_eq!(error, OfferError::AdminAction);
        }
        assert_eq!(
            receive(&mut subscription),
            std::slice::from_ref(&message),
            "{length}"
        );
        assert_eq!(receive(&mut other), [message], "{length}");
        fixture.run_cycles();
    }
}

#[test]
fn offer_parts_sends_one_message() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let long = [3; 2000];
    publication.offer_parts(&[]).unwrap();
    publication
        .offer_parts(&[b"head", &long, b"", b"tail"])
        .unwrap();
    let expected = [&b"head"[..], &long, b"tail"].concat();
    assert_eq!(receive(&mut subscription), [Vec::new(), expected]);
}

#[test]
fn offer_with_sets_reserved_value_of_each_fragment() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let message: Vec<u8> = (0..3000u32).map(|index| index as u8).collect();
    let sum = |payload: &[u8]| {
        payload.iter().map(|byte| i64::from(*byte)).sum::<i64>() + payload.len() as i64
    };
    publication
        .offer_with(&[&message[..5], &message[5..]], sum)
        .unwrap();
    let mut fragments = 0;
    subscription
        .poll(
            |payload, header| {
                fragments += 1;
                assert_eq!(header.reserved_value(), sum(payload));
            },
            10,
        )
        .unwrap();
    assert_eq!(fragments, 3);
}

#[test]
fn too_long_message_error_has_maximum_length() {
    let mut fixture = Fixture::new();
    let (publication, _subscription) = stream(&mut fixture);
    let error = publication.offer(&[0; 8193]).unwrap_err();
    assert_eq!(
        error,
        OfferError::TooLong {
            length: 8193,
            max: 8192
        }
    );
    assert!(
        !error.is_retryable()
            && error.to_string().contains("8193")
            && error.to_string().contains("term-length")
    );
    assert_eq!(
        publication.try_claim(1377).map(drop),
        Err(OfferError::TooLong {
            length: 1377,
            max: 1376
        })
    );
    let mut exclusive = fixture.exclusive_publication(11);
    let _other = fixture.subscription(11);
    fixture.run_cycles();
    assert_eq!(
        exclusive.offer(&[0; 8193]),
        Err(OfferError::TooLong {
            length: 8193,
            max: 8192
        })
    );
    assert_eq!(
        exclusive.try_claim(1377).map(drop),
        Err(OfferError::TooLong {
            length: 1377,
            max: 1376
        })
    );
    let part = [0; 5000];
    assert_eq!(
        exclusive.offer_parts(&[&part, &part]),
        Err(OfferError::TooLong {
            length: 10_000,
            max: 8192
        })
    );
}

/// A retry would never succeed, so the error must not be a retryable one.
#[test]
fn too_long_message_is_rejected_also_without_subscriber_or_room() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(11);
    let too_long = |length, max| Err(OfferError::TooLong { length, max });
    let mut refuse = || {
        let part = [0; 5000];
        for result in [
            publication.offer(&[0; 8193]),
            exclusive.offer(&[0; 8193]),
            exclusive.append_padding(8193),
        ] {
            assert_eq!(result, too_long(8193, 8192));
        }
        for result in [
            publication.offer_parts(&[&part, &part]),
            publication.offer_with(&[&part, &part], |_| 0),
            exclusive.offer_parts(&[&part, &part]),
            exclusive.offer_with(&[&part, &part], |_| 0),
        ] {
            assert_eq!(result, too_long(10_000, 8192));
        }
        for length in [1377, usize::MAX] {
            for result in [
                publication.try_claim(length).map(|claim| claim.position()),
                exclusive.try_claim(length).map(|claim| claim.position()),
            ] {
                assert_eq!(result, too_long(length, 1376));
            }
        }
        // The maximum length is accepted.
        [publication.offer(&[0; 8192]), exclusive.offer(&[0; 8192])]
    };
    assert_eq!(refuse(), [Err(OfferError::NotConnected); 2]);
    let _subscriptions = (fixture.subscription(10), fixture.subscription(11));
    fixture.run_cycles();
    while refuse().iter().any(Result::is_ok) {}
    assert_eq!(refuse(), [Err(OfferError::BackPressured); 2]);
}

#[test]
fn claims_are_sent_when_committed_and_skipped_when_aborted() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let mut claim = publication.try_claim(5).unwrap();
    claim.copy_from_slice(b"first");
    claim.set_reserved_value(77);
    let mut second = publication.try_claim(6).unwrap();
    second.copy_from_slice(b"second");
    assert_eq!(second.commit(), 128);
    assert!(
        receive(&mut subscription).is_empty(),
        "the second waits for the first"
    );
    assert_eq!(claim.commit(), 64);
    drop(publication.try_claim(100).unwrap());
    publication.try_claim(100).unwrap().abort();
    let mut padding = publication.try_claim(10).unwrap();
    padding.set_frame_type(taran::FrameType::PAD);
    padding.commit();
    let mut reserved = Vec::new();
    let mut messages = Vec::new();
    let poll = subscription.poll(
        |message, header| {
            reserved.push(header.reserved_value());
            messages.push(message.to_vec());
        },
        10,
    );
    assert_eq!(poll, Ok(2));
    assert_eq!(
        (messages, reserved),
        (vec![b"first".to_vec(), b"second".to_vec()], vec![77, 0])
    );
    assert_eq!(subscription.images()[0].position(), publication.position());

    let mut exclusive = fixture.exclusive_publication(11);
    let mut other = fixture.subscription(11);
    fixture.run_cycles();
    let mut claim = exclusive.try_claim(3).unwrap();
    claim[..].copy_from_slice(b"abc");
    claim.commit();
    drop(exclusive.try_claim(3).unwrap());
    assert_eq!(receive(&mut other), [b"abc".to_vec()]);
}

#[test]
fn claim_may_outlive_client() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let mut claim = publication.try_claim(5).unwrap();
    fixture.client.close();
    claim.copy_from_slice(b"never");
    claim.commit();
    assert!(subscription.poll(|_, _| (), 1).is_err());
    assert_eq!(publication.offer(b"x"), Err(OfferError::Closed));
}

#[test]
fn append_padding_advances_stream_and_is_skipped() {
    let mut fixture = Fixture::new();
    let mut exclusive = fixture.exclusive_publication(11);
    let mut subscription = fixture.subscription(11);
    fixture.run_cycles();
    exclusive.offer(b"before").unwrap();
    assert_eq!(exclusive.append_padding(100), Ok(64 + 160));
    exclusive.offer(b"after").unwrap();
    assert_eq!(
        receive(&mut subscription),
        [b"before".to_vec(), b"after".to_vec()]
    );
    assert_eq!(subscription.images()[0].position(), exclusive.position());
    assert!(matches!(
        exclusive.append_padding(8193),
        Err(OfferError::TooLong { length: 8193, .. })
    ));
}

#[test]
fn offer_block_accepts_only_blocks_that_continue_the_stream() {
    let mut fixture = Fixture::new();
    let mut exclusive = fixture.exclusive_publication(11);
    let mut subscription = fixture.subscription(11);
    fixture.run_cycles();
    exclusive.offer(b"one").unwrap();
    exclusive.offer(b"two").unwrap();
    let mut block = Vec::new();
    subscription
        .block_poll(|polled| block.extend_from_slice(polled.bytes()), 1000)
        .unwrap();
    assert_eq!(block.len(), 128);
    // The block has term offset 0, but the publication is at 128.
    let error = exclusive.offer_block(&block).unwrap_err();
    let expected = BlockError::Misplaced {
        field: "term offset",
        found: 0,
        expected: 128,
    };
    assert_eq!(error, OfferError::InvalidBlock(expected));
    for (index, frame) in block.chunks_mut(64).enumerate() {
        frame[8..12].copy_from_slice(&(128 + 64 * index as i32).to_le_bytes());
    }
    assert_eq!(exclusive.offer_block(&block), Ok(256));
    assert_eq!(
        receive(&mut subscription),
        [b"one".to_vec(), b"two".to_vec()]
    );
    for wrong in [&block[..0], &block[..100], &[0; 64][..]] {
        assert!(matches!(
            exclusive.offer_block(wrong),
            Err(OfferError::InvalidBlock(_))
        ));
    }
}

#[test]
fn offer_at_end_of_position_space_fails() {
    let mut fixture = Fixture::new();
    let (publication, _subscription) = stream(&mut fixture);
    // State of the log after 2^31 - 1 terms.
    let stream = fixture.stream(publication.registration_id());
    let last = stream.log.geometry().max_position() - 64;
    let term_id = stream.log.geometry().term_id(last);
    let metadata = stream.log.metadata();
    let count = i32::MAX;
    let tail = (i64::from(term_id) << 32) | i64::from(TERM_LENGTH - 64);
    metadata.tails[count as usize % 3].store(tail, taran_core::sync::Ordering::Release);
    metadata
        .active_term_count
        .store(count, taran_core::sync::Ordering::Release);
    stream.limit.set(i64::MAX);
    let max_position = publication.max_possible_position();
    assert_eq!(publication.position(), last);
    assert_eq!(
        publication.offer(&[0; 100]),
        Err(OfferError::MaxPositionExceeded { max_position })
    );
    assert_eq!(
        publication.offer(b"x"),
        Err(OfferError::MaxPositionExceeded { max_position })
    );
    fixture.stream(publication.registration_id()).limit.set(0);
    assert_eq!(
        publication.offer(b"x"),
        Err(OfferError::MaxPositionExceeded { max_position })
    );
}

/// Calls a function in place of waiting.
struct OnIdle<F>(F);

impl<F> std::fmt::Debug for OnIdle<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnIdle")
    }
}

impl<F: FnMut() + Send> IdleStrategy for OnIdle<F> {
    fn idle(&mut self, _: usize, _: &mut dyn FnMut(Duration)) {
        (self.0)();
    }
}

#[test]
fn offer_until_past_deadline_returns_error_of_its_only_attempt() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(11);
    for id in [
        publication.position_limit_id(),
        exclusive.position_limit_id(),
    ] {
        fixture.client.counters().counter(id).unwrap().set(0);
    }
    let mut never = OnIdle(|| panic!("the deadline has passed"));
    let deadline = Instant::now();
    let shared = publication.offer_until(b"x", deadline, &mut never);
    assert!(shared.is_err_and(|error| error.is_retryable()));
    let exclusive = exclusive.offer_until(b"x", deadline, &mut never);
    assert!(exclusive.is_err_and(|error| error.is_retryable()));
}

#[test]
fn offer_until_before_deadline_waits_until_message_is_accepted() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let counters = fixture.client.counters();
    let limit = counters.counter(publication.position_limit_id()).unwrap();
    limit.set(0);
    let mut waits = 0;
    let deadline = Instant::now() + Duration::from_secs(3_600);
    let mut idle = OnIdle(|| {
        waits += 1;
        assert!(waits <= 3, "there is room");
        if waits == 3 {
            limit.set(1_024);
        }
    });
    assert_eq!(publication.offer_until(b"x", deadline, &mut idle), Ok(64));
    assert_eq!(waits, 3);
}

#[test]
fn offer_until_with_permanent_error_does_not_wait() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    publication.close();
    let deadline = Instant::now() + Duration::from_secs(3_600);
    let mut never = OnIdle(|| panic!("the publication is closed"));
    let refused = publication.offer_until(b"x", deadline, &mut never);
    assert_eq!(refused, Err(OfferError::Closed));
}

#[test]
fn retry_until_before_deadline_returns_claim_once_there_is_room() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(11);
    let counters = fixture.client.counters();
    let limits = [
        publication.position_limit_id(),
        exclusive.position_limit_id(),
    ]
    .map(|id| counters.counter(id).unwrap());
    for limit in &limits {
        limit.set(0);
    }
    let deadline = Instant::now() + Duration::from_secs(3_600);
    let mut waits = 0;
    let mut idle = OnIdle(|| {
        waits += 1;
        assert!(waits <= 2, "there is room");
        limits[waits - 1].set(1_024);
    });

    let claim =
        publication.retry_until(deadline, &mut idle, |publication| publication.try_claim(3));
    claim.unwrap().commit();
    let parts = exclusive.retry_until(deadline, &mut idle, |exclusive| {
        exclusive.offer_parts(&[b"a", b"b"])
    });
    assert_eq!(parts, Ok(64));
    assert_eq!(waits, 2);
    assert_eq!(publication.position(), 64);
}

#[test]
fn retry_until_past_deadline_or_with_permanent_error_makes_one_attempt() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(11);
    let now = Instant::now();
    let later = now + Duration::from_secs(3_600);
    for (deadline, error) in [
        (now, OfferError::BackPressured),
        (later, OfferError::Closed),
    ] {
        let mut attempts = 0;
        let mut never = OnIdle(|| panic!("no attempt follows"));
        let shared = publication.retry_until(deadline, &mut never, |_| {
            attempts += 1;
            Err::<(), _>(error)
        });
        let single = exclusive.retry_until(deadline, &mut never, |_| {
            attempts += 1;
            Err::<(), _>(error)
        });
        assert_eq!((shared, single, attempts), (Err(error), Err(error), 2));
    }
}
