// SPDX-License-Identifier: Apache-2.0
//! Images: availability, all kinds of polls, and close.

use std::sync::{Arc, Mutex};

use taran::{
    Action, ImageHandlers, OfferError, PollError, PositionError, Publication, Subscription,
};
use taran_protocol::response::Response;

use crate::fake_driver::{Fixture, TERM_LENGTH};

/// Events that handlers have recorded.
pub(crate) type Events = Arc<Mutex<Vec<String>>>;

pub(crate) fn record(events: &Events, text: impl Into<String>) {
    events.lock().unwrap().push(text.into());
}

pub(crate) fn take_events(events: &Events) -> Vec<String> {
    std::mem::take(&mut *events.lock().unwrap())
}

/// Creates a connected publication and subscription.
fn stream(fixture: &mut Fixture) -> (Publication, Subscription) {
    let publication = fixture.publication(10);
    let subscription = fixture.subscription(10);
    fixture.run_cycles();
    assert!(publication.is_connected() && subscription.is_connected());
    (publication, subscription)
}

fn offer_numbers(publication: &Publication, numbers: std::ops::Range<u8>) {
    for number in numbers {
        publication.offer(&[number]).unwrap();
    }
}

#[test]
fn image_handlers_receive_image_properties() {
    let events = Events::default();
    let (available, unavailable) = (Arc::clone(&events), Arc::clone(&events));
    let mut fixture = Fixture::with(|builder| {
        builder
            .on_available_image(move |image| {
                record(
                    &available,
                    format!("{} {}", image.session_id(), image.source_identity()),
                );
            })
            .on_unavailable_image(move |image| {
                record(
                    &unavailable,
                    format!("{} ended at {}", image.session_id(), image.position()),
                );
            })
    });
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    let session = publication.session_id();
    assert_eq!(take_events(&events), [format!("{session} aeron:ipc")]);

    let image = subscription.image(session).unwrap();
    assert_eq!(
        (image.stream_id(), image.join_position(), image.position()),
        (10, 0, 0)
    );
    assert_eq!(image.correlation_id(), publication.registration_id());
    assert_eq!(
        image.subscription_registration_id(),
        subscription.registration_id()
    );
    assert_eq!(
        (image.initial_term_id(), image.term_length(), image.mtu()),
        (7, 65_536, 1408)
    );
    assert_eq!(image.end_of_stream_position(), i64::MAX);
    assert!(!image.is_closed() && !image.is_end_of_stream() && !image.is_publication_revoked());

    offer_numbers(&publication, 0..3);
    assert_eq!(subscription.poll(|_, _| (), 2), Ok(2));
    publication.close();
    fixture.run_cycles();
    assert_eq!(take_events(&events), [format!("{session} ended at 128")]);
    assert!(
        image.is_closed() && !image.is_end_of_stream(),
        "one message was not read"
    );
    assert_eq!(
        (image.position(), image.end_of_stream_position()),
        (128, 192)
    );
    assert_eq!(image.active_transport_count(), 0);
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(0));
    assert!(!subscription.is_connected());
}

#[test]
fn subscription_handlers_replace_client_handlers() {
    let events = Events::default();
    let (client, available, unavailable) = (
        Arc::clone(&events),
        Arc::clone(&events),
        Arc::clone(&events),
    );
    let mut fixture =
        Fixture::with(|builder| builder.on_available_image(move |_| record(&client, "client")));
    let handlers = ImageHandlers::new()
        .on_available(move |_| record(&available, "own"))
        .on_unavailable(move |_| record(&unavailable, "unavailable"));
    let pending = fixture
        .client
        .async_add_subscription_with("aeron:ipc", 10, handlers);
    let _own = fixture.complete(pending).unwrap();
    let _other = fixture.subscription(11);
    let (publication, _second) = (fixture.publication(10), fixture.publication(11));
    fixture.run_cycles();
    drop(publication);
    fixture.run_cycles();
    assert_eq!(take_events(&events), ["own", "client", "unavailable"]);
}

#[test]
fn late_subscriber_joins_at_current_position() {
    let mut fixture = Fixture::new();
    let (publication, mut early) = stream(&mut fixture);
    offer_numbers(&publication, 0..2);
    let mut late = fixture.subscription(10);
    fixture.run_cycles();
    offer_numbers(&publication, 2..3);
    let mut seen = Vec::new();
    late.poll(|message, _| seen.push(message[0]), 10).unwrap();
    assert_eq!(seen, [2]);
    assert_eq!(late.images()[0].join_position(), 128);
    seen.clear();
    early.poll(|message, _| seen.push(message[0]), 10).unwrap();
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn fragment_header_has_frame_fields() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    publication.offer(b"").unwrap();
    publication
        .offer_with(&[b"ab", b"", b"cde"], |payload| payload.len() as i64 + 1000)
        .unwrap();
    let mut headers = Vec::new();
    let polled = subscription.poll(
        |message, header| {
            headers.push((
                message.to_vec(),
                header.position(),
                header.term_offset(),
                header.frame_length(),
                header.reserved_value(),
            ));
            assert_eq!(
                (header.session_id(), header.stream_id()),
                (publication.session_id(), 10)
            );
            assert_eq!(
                (
                    header.term_id(),
                    header.initial_term_id(),
                    header.frame_type()
                ),
                (7, 7, taran::FrameType::DATA)
            );
            assert!(
                header.is_begin() && header.is_end() && header.is_whole() && header.flags() == 0xC0
            );
            assert_eq!(header.image().session_id(), publication.session_id());
            assert_eq!(i64::from(header.next_term_offset()), header.position());
        },
        10,
    );
    assert_eq!(polled, Ok(2));
    assert_eq!(
        headers,
        [
            (b"".to_vec(), 32, 0, 32, 0),
            (b"abcde".to_vec(), 96, 32, 37, 1005)
        ]
    );
}

#[test]
fn poll_stops_at_fragment_limit_and_resumes() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..5);
    let mut seen = Vec::new();
    for expected in [2, 2, 1, 0] {
        assert_eq!(
            subscription.poll(|message, _| seen.push(message[0]), 2),
            Ok(expected)
        );
    }
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert_eq!(subscription.poll(|_, _| (), 0), Ok(0));
}

#[test]
fn bounded_poll_stops_before_limit_position() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..5);
    assert_eq!(subscription.bounded_poll(|_, _| (), -1, 10), Ok(0));
    assert_eq!(subscription.bounded_poll(|_, _| (), 0, 10), Ok(0));
    assert_eq!(
        subscription.bounded_poll(|_, _| (), 65, 10),
        Ok(2),
        "a frame that starts before the limit counts"
    );
    assert_eq!(subscription.bounded_poll(|_, _| (), 128, 10), Ok(0));
    assert_eq!(subscription.bounded_poll(|_, _| (), i64::MAX, 10), Ok(3));
}

#[test]
fn bounded_poll_with_the_lowest_limit_delivers_nothing_in_a_later_term() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    while publication.position() <= i64::from(TERM_LENGTH) {
        let _ = publication.offer(&[0; 1_000]);
        fixture.run_cycles();
        subscription.poll(|_, _| (), 10).unwrap();
    }
    publication.offer(&[0; 1_000]).unwrap();
    assert_eq!(subscription.bounded_poll(|_, _| (), i64::MIN, 10), Ok(0));
    assert_eq!(subscription.bounded_poll(|_, _| (), i64::MAX, 10), Ok(1));
}

#[test]
fn controlled_poll_follows_actions() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..6);
    let mut seen = Vec::new();
    let counter = fixture
        .client
        .counters()
        .counter(subscription.images()[0].subscriber_position_id())
        .unwrap();
    let actions = [
        Action::Continue,
        Action::Commit,
        Action::Continue,
        Action::Abort,
    ];
    let polled = subscription.controlled_poll(
        |message, _| {
            // Runs before the action of this fragment takes effect, so only earlier commits are visible.
            seen.push((message[0], counter.get()));
            actions[message[0] as usize]
        },
        10,
    );
    assert_eq!(polled, Ok(3), "the aborted fragment does not count");
    assert_eq!(seen, [(0, 0), (1, 0), (2, 128), (3, 128)]);
    assert_eq!(counter.get(), 192);
    let mut seen = Vec::new();
    let polled = subscription.controlled_poll(
        |message, _| {
            seen.push(message[0]);
            if message[0] == 4 {
                Action::Break
            } else {
                Action::Continue
            }
        },
        10,
    );
    assert_eq!((polled, seen), (Ok(2), vec![3, 4]));
    assert_eq!(counter.get(), 320);
}

#[test]
fn controlled_peek_consumes_nothing() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..3);
    publication.offer(&[9; 3000]).unwrap();
    let image = subscription.image_mut(publication.session_id()).unwrap();
    let mut seen = 0;
    let mut peek = |from, limit, last: Action| {
        seen = 0;
        let peeked = image.controlled_peek(
            from,
            |_, _| {
                seen += 1;
                if seen == 4 { last } else { Action::Continue }
            },
            limit,
        );
        (peeked, seen)
    };
    let whole = 192 + 2 * 1408 + 288;
    assert_eq!(peek(0, i64::MAX, Action::Continue), (Ok(whole), 6));
    assert_eq!(peek(64, 192, Action::Continue), (Ok(192), 2));
    assert_eq!(
        peek(0, i64::MAX, Action::Break),
        (Ok(192), 4),
        "only whole messages move the result"
    );
    assert_eq!(peek(0, i64::MAX, Action::Abort), (Ok(192), 4));
    for wrong in [-32, 16, i64::from(TERM_LENGTH) + 32] {
        assert!(matches!(
            peek(wrong, i64::MAX, Action::Continue).0,
            Err(PositionError::OutOfRange { .. })
        ));
    }
    assert_eq!(image.position(), 0);
}

#[test]
fn block_poll_delivers_whole_frames() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..4);
    let mut blocks = Vec::new();
    for limit in [63, 200, 1000] {
        let polled = subscription.block_poll(
            |block| {
                assert_eq!(
                    (block.session_id(), block.term_id()),
                    (publication.session_id(), 7)
                );
                blocks.push((block.term_offset(), block.bytes().len(), block.position()));
            },
            limit,
        );
        assert_eq!(polled.unwrap(), [0, 192, 64][blocks.len()]);
    }
    assert_eq!(blocks, [(0, 192, 192), (192, 64, 256)]);
}

#[test]
fn set_position_moves_forward_within_term() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..3);
    let image = subscription.image_mut(publication.session_id()).unwrap();
    assert_eq!(image.set_position(64), Ok(()));
    assert_eq!(image.position(), 64);
    let mut seen = Vec::new();
    image.poll(|message, _| seen.push(message[0]), 10);
    assert_eq!(seen, [1, 2]);
    let end = i64::from(TERM_LENGTH);
    for wrong in [64, 200, end + 32, i64::MAX, i64::MIN] {
        assert_eq!(
            image.set_position(wrong),
            Err(PositionError::OutOfRange {
                position: wrong,
                min: 192,
                max: end
            })
        );
    }
    assert_eq!(image.set_position(end), Ok(()));
    publication.close();
    fixture.run_cycles();
    let mut images = subscription.images().iter_mut();
    assert!(images.next().is_none());
}

#[test]
fn poll_crosses_terms_and_skips_padding() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let (mut sent, mut received) = (0u32, 0u32);
    while received < 5000 {
        let message = [sent.to_le_bytes(); 47].concat();
        match publication.offer(&message[..(4 + sent as usize % 180)]) {
            Ok(_) => sent += 1,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        subscription
            .poll(
                |message, _| {
                    assert_eq!(message.len(), 4 + received as usize % 180);
                    assert_eq!(message[..4], received.to_le_bytes());
                    received += 1;
                },
                3,
            )
            .unwrap();
        fixture.driver.do_work();
    }
    assert!(publication.position() > 6 * i64::from(TERM_LENGTH));
}

#[test]
fn poll_starts_with_images_in_rotation() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let mut publications: Vec<_> = (0..3).map(|_| fixture.exclusive_publication(10)).collect();
    fixture.run_cycles();
    let sessions: Vec<i32> = publications
        .iter()
        .map(taran::ExclusivePublication::session_id)
        .collect();
    let mut firsts = Vec::new();
    for _ in 0..4 {
        for publication in &mut publications {
            publication.offer(b"x").unwrap();
        }
        let mut order = Vec::new();
        subscription
            .poll(|_, header| order.push(header.session_id()), 10)
            .unwrap();
        assert_eq!(order.len(), 3);
        firsts.push(order[0]);
    }
    assert_eq!(firsts, [sessions[0], sessions[1], sessions[2], sessions[0]]);
    let mut order = Vec::new();
    for publication in &mut publications {
        publication.offer(b"x").unwrap();
    }
    assert_eq!(
        subscription.poll(|_, header| order.push(header.session_id()), 2),
        Ok(2),
        "the limit is shared"
    );
}

#[test]
fn taken_image_is_polled_by_its_owner_until_dropped() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let session = publication.session_id();
    offer_numbers(&publication, 0..2);
    let mut image = subscription.take_image(session).unwrap();
    assert!(subscription.take_image(session).is_none());
    assert_eq!(
        (subscription.image_count(), subscription.images().len()),
        (1, 0)
    );
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(0));
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(image.poll(|message, _| seen.push(message[0]), 1), 1));
    });
    drop(image);
    assert_eq!(
        subscription.poll(|message, _| seen.push(message[0]), 10),
        Ok(1)
    );
    assert_eq!(seen, [0, 1]);
}

#[test]
fn taken_image_closes_with_its_subscription() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..1);
    let mut image = subscription.take_image(publication.session_id()).unwrap();
    drop(subscription);
    assert!(image.is_closed());
    assert_eq!(image.poll(|_, _| (), 10), 0);
    assert_eq!(image.set_position(64), Err(PositionError::Closed));
    assert_eq!(image.block_poll(|_| (), 1000), 0);
}

#[test]
fn log_stays_mapped_while_a_view_exists() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..1);
    let mut view = None;
    subscription
        .poll(|_, header| view = Some(header.image().clone()), 1)
        .unwrap();
    drop(publication);
    fixture.run_cycles();
    drop(subscription);
    fixture.client.close();
    let view = view.unwrap();
    assert_eq!(
        (view.position(), view.mtu(), view.is_end_of_stream()),
        (64, 1408, true)
    );
}

#[test]
fn pre_touched_logs_are_usable() {
    let mut fixture = Fixture::with(|builder| builder.pre_touch_mapped_memory(true));
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..3);
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(3));
}

#[test]
fn revoked_stream_closes_image_as_revoked() {
    let mut fixture = Fixture::new();
    let (publication, subscription) = stream(&mut fixture);
    let image = subscription.image(publication.session_id()).unwrap();
    publication.revoke();
    fixture.run_cycles();
    assert!(image.is_closed() && image.is_publication_revoked());
}

#[test]
fn panicking_handler_consumes_its_fragment() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    offer_numbers(&publication, 0..3);
    let poll = std::panic::AssertUnwindSafe(|| {
        subscription.poll(|message, _| assert_ne!(message[0], 1), 10)
    });
    assert!(std::panic::catch_unwind(poll).is_err());
    let mut seen = Vec::new();
    subscription
        .poll(|message, _| seen.push(message[0]), 10)
        .unwrap();
    assert_eq!(seen, [2]);
}

#[test]
fn foreign_and_duplicate_images_are_ignored() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture);
    let counter_id = subscription.images()[0].subscriber_position_id();
    let index = 0;
    fixture
        .driver
        .announce_image(index, subscription.registration_id(), counter_id);
    fixture.driver.announce_image(index, 987_654, counter_id);
    let (image_id, channel) = (publication.registration_id(), "aeron:ipc");
    fixture.driver.respond(&Response::UnavailableImage {
        image_id,
        subscription_id: 987_654,
        stream_id: 10,
        channel,
    });
    fixture.driver.respond(&Response::UnavailableImage {
        image_id: 987_654,
        subscription_id: subscription.registration_id(),
        stream_id: 10,
        channel,
    });
    fixture.run_cycles();
    assert_eq!(subscription.image_count(), 1);
}

#[test]
fn polling_a_closed_client_is_an_error() {
    let mut fixture = Fixture::new();
    let (_publication, mut subscription) = stream(&mut fixture);
    fixture.client.close();
    for _ in 0..2 {
        assert_eq!(subscription.poll(|_, _| (), 1), Err(PollError::Closed));
        assert_eq!(
            subscription.bounded_poll(|_, _| (), i64::MAX, 1),
            Err(PollError::Closed)
        );
        assert_eq!(
            subscription.controlled_poll(|_, _| Action::Continue, 1),
            Err(PollError::Closed)
        );
        assert_eq!(subscription.block_poll(|_| (), 1), Err(PollError::Closed));
    }
    assert!(subscription.images().is_empty() && subscription.is_closed());
}

#[test]
fn try_poll_with_failing_handler_consumes_only_fragments_before() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    for message in [b"a", b"b", b"c"] {
        publication.offer(message).unwrap();
    }
    let mut seen = Vec::new();
    let mut handler = |message: &[u8], _: &taran::Header<'_>| {
        seen.push(message[0]);
        // Fails for the second message, once.
        if seen == *b"ab" {
            Err(taran::Error::from(OfferError::BackPressured))
        } else {
            Ok(())
        }
    };
    let failed = subscription.try_poll(&mut handler, 10);
    assert_eq!(failed, Err(taran::Error::Offer(OfferError::BackPressured)));
    assert_eq!(subscription.images()[0].position(), 64);
    assert_eq!(subscription.try_poll(&mut handler, 10), Ok(2));
    assert_eq!(seen, b"abbc");
    assert_eq!(subscription.images()[0].position(), 3 * 64);
}

#[test]
fn try_poll_of_closed_client_returns_poll_error() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    fixture.client.close();
    let refused = subscription.try_poll(|_, _| Ok::<_, taran::Error>(()), 10);
    assert_eq!(refused, Err(taran::Error::Poll(taran::PollError::Closed)));
}
