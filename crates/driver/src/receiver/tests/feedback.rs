// SPDX-License-Identifier: Apache-2.0
//! Status messages and other feedback.

use super::*;

const STATUS: &str = "24 00 00 00 00 00 03 00  4d 3c 2b 1a e9 03 00 00
                      65 00 00 00 c0 00 00 00  00 80 00 00 88 77 66 55  44 33 22 11";

/// Returns the consumption position of a status message.
fn position(datagram: &[u8]) -> i64 {
    let field = |at: usize| i32::from_le_bytes(datagram[at..at + 4].try_into().unwrap());
    assert_eq!(datagram[6], 3);
    geometry().position(field(16), field(20))
}

#[test]
fn first_poll_sends_status_message_of_worked_example() {
    let mut fixture = ReceiverFixture::new();
    fixture.connect(|_| {});
    assert_eq!(fixture.socket.destinations(), [Some(peer())]);
    assert_eq!(fixture.socket.sent(), [hex(STATUS)]);
    assert_eq!(fixture.counters.status_messages_sent.get(), 1);
    assert_eq!(fixture.log.active_transport_count(), 1);
}

#[test]
fn status_message_with_group_tag_appends_tag() {
    let mut fixture = ReceiverFixture::with(|spec| spec.group_tag = Some(7));
    fixture.connect(|_| {});
    let mut expected = hex(STATUS);
    expected[0] = 0x2C;
    expected.extend(hex("07 00 00 00 00 00 00 00"));
    assert_eq!(fixture.socket.sent(), [expected]);
}

#[test]
fn status_message_is_repeated_after_200_ms() {
    let mut fixture = ReceiverFixture::connected();
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [hex(STATUS)]);
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [hex(STATUS)]);
}

#[test]
fn repeated_status_message_carries_current_position() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.socket.sent();
    fixture.subscriber.set(START + 64);
    assert_eq!(fixture.sent_after(199 * MS), NOTHING);
    let sent = fixture.sent_after(2 * MS);
    assert_eq!((sent.len(), position(&sent[0])), (1, START + 64));
}

#[test]
fn status_message_follows_slowest_subscriber_by_quarter_windows() {
    let mut fixture = ReceiverFixture::connected();
    let slow = Counter::detached();
    slow.set(START);
    let subscriber = SubscriberPosition {
        position: slow.clone(),
    };
    fixture.command(ReceiverCommand::AddSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        subscriber,
    });
    for index in 0..16 {
        fixture.arrive(&data(START + index * 1024, &[1024]));
    }
    fixture.socket.sent();
    fixture.subscriber.set(START + 16_384);
    assert_eq!(fixture.sent_after(1), NOTHING);
    slow.set(START + 8_192);
    assert_eq!(fixture.sent_after(1), NOTHING, "a quarter is not enough");
    slow.set(START + 8_224);
    let sent = fixture.sent_after(1);
    assert_eq!((sent.len(), position(&sent[0])), (1, START + 8_224));
    assert_eq!(fixture.shared.status_position(), START + 8_224);
    let counter_id = slow.id();
    fixture.command(ReceiverCommand::RemoveSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        counter_id,
    });
}

#[test]
fn status_position_is_limited_to_rebuild_position() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[12_288]));
    fixture.socket.sent();
    fixture.subscriber.set(i64::MAX);
    let sent = fixture.sent_after(1);
    assert_eq!(position(&sent[0]), START + 12_288);
    fixture.subscriber.set(i64::MIN);
    assert_eq!(fixture.sent_after(1), NOTHING);
}

#[test]
fn status_position_is_limited_by_free_memory() {
    let mut fixture = ReceiverFixture::connected();
    let mut end = START;
    // The conductor frees nothing, so the window must end two and a half terms after the join position.
    for _ in 0..40 {
        for _ in 0..8 {
            let room = (65_536 - (end & 65_535)).min(1024) as i32;
            fixture.arrive(&data(end, &[room]));
            end += i64::from(room);
        }
        fixture.subscriber.set(fixture.rebuild_position.get());
        fixture.cycle();
        end = fixture.rebuild_position.get();
    }
    let free = START + 5 * 32_768;
    assert!(fixture.shared.status_position() <= free);
    assert!(fixture.shared.status_position() > free - 8_192 - 1024);
    assert!(fixture.rebuild_position.get() <= free + 32_768);
    assert!(fixture.counters.over_runs.get() > 0);
    fixture
        .shared
        .conductor_free_position(fixture.shared.status_position() - 65_536);
    fixture.sent_after(1);
    assert!(fixture.shared.status_position() > free);
}

#[test]
fn full_socket_retries_status_message_in_next_poll() {
    let mut fixture = ReceiverFixture::connected();
    fixture.socket.room(Some(0));
    assert_eq!(fixture.sent_after(201 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), NOTHING);
    fixture.socket.room(None);
    assert_eq!(fixture.sent_after(1), [hex(STATUS)]);
    assert_eq!(
        (
            fixture.counters.short_sends.get(),
            fixture.counters.status_messages_sent.get()
        ),
        (2, 2)
    );
}

#[test]
fn failed_send_is_recorded_and_retried_at_next_deadline() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.socket.set_broken(true);
    let calls = fixture.socket.send_calls();
    for _ in 0..10 {
        fixture.sent_after(100 * MS);
    }
    assert_eq!(fixture.socket.send_calls() - calls, 3);
    assert_eq!(fixture.errors.count(), 1);
}

#[test]
fn rttm_request_is_answered_with_receiver_id() {
    let mut fixture = ReceiverFixture::connected();
    let mut request = hex("28 00 00 00 00 80 06 00  4d 3c 2b 1a e9 03 00 00
                           cb 04 fb 71 1f 01 00 00  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00");
    fixture.arrive(&request);
    let mut reply = request.clone();
    reply[5] = 0;
    reply[32..40].copy_from_slice(&RECEIVER.to_le_bytes());
    assert_eq!(fixture.socket.sent(), [reply.clone()]);
    request[32] = 1;
    fixture.arrive(&request);
    reply[8] = 0;
    fixture.arrive(&reply);
    assert_eq!(fixture.socket.sent(), NOTHING);
}

#[test]
fn rejected_image_sends_error_frame_of_worked_example() {
    let mut fixture = ReceiverFixture::with(|spec| spec.group_tag = Some(7));
    fixture.connect(|_| {});
    fixture.socket.sent();
    fixture.reject("rejected");
    let error = hex("30 00 00 00 00 08 04 00  4d 3c 2b 1a e9 03 00 00
                     88 77 66 55 44 33 22 11  07 00 00 00 00 00 00 00
                     0d 00 00 00 08 00 00 00  72 65 6a 65 63 74 65 64");
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), std::slice::from_ref(&error));
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.positions().0, 0, "data is dropped");
    assert_eq!(fixture.sent_after(201 * MS), [error]);
    assert_eq!(fixture.counters.error_frames_sent.get(), 2);
    fixture.sent_after(9_700 * MS);
    assert!(fixture.shared.is_timed_out());
}
