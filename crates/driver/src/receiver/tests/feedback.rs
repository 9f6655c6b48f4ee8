//! Status messages: how far the subscribers are.

use super::*;

const STATUS: &str = "24 00 00 00 00 00 03 00  4d 3c 2b 1a e9 03 00 00
                      65 00 00 00 c0 00 00 00  00 80 00 00 88 77 66 55  44 33 22 11";

/// Consumption position of a status message.
fn position(datagram: &[u8]) -> i64 {
    let field = |at: usize| i32::from_le_bytes(datagram[at..at + 4].try_into().unwrap());
    assert_eq!(datagram[6], 3);
    geometry().position(field(16), field(20))
}

#[test]
fn the_first_turn_sends_the_status_message_of_the_worked_example() {
    let mut fixture = ReceiverFixture::new();
    fixture.connect(|_| {});
    assert_eq!(fixture.socket.destinations(), [Some(peer())]);
    assert_eq!(fixture.socket.sent(), [hex(STATUS)]);
    assert_eq!(fixture.counters.status_messages_sent.get(), 1);
    assert_eq!(fixture.log.active_transport_count(), 1);
}

#[test]
fn a_group_tag_follows() {
    let mut fixture = ReceiverFixture::with(|spec| spec.group_tag = Some(7));
    fixture.connect(|_| {});
    let mut expected = hex(STATUS);
    expected[0] = 0x2C;
    expected.extend(hex("07 00 00 00 00 00 00 00"));
    assert_eq!(fixture.socket.sent(), [expected]);
}

#[test]
fn the_last_one_is_repeated_after_200_ms() {
    let mut fixture = ReceiverFixture::connected();
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [hex(STATUS)]);
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [hex(STATUS)]);
}

#[test]
fn what_is_repeated_tells_how_far_the_subscribers_have_come() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.socket.sent();
    fixture.subscriber.set(START + 64);
    assert_eq!(fixture.sent_after(199 * MS), NOTHING);
    let sent = fixture.sent_after(2 * MS);
    assert_eq!((sent.len(), position(&sent[0])), (1, START + 64));
}

#[test]
fn it_follows_the_slowest_subscriber_by_quarters_of_the_window() {
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
fn a_subscriber_cannot_be_ahead_of_what_arrived() {
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
fn it_never_invites_the_sender_into_memory_that_is_not_free() {
    let mut fixture = ReceiverFixture::connected();
    let mut end = START;
    // The conductor frees nothing: two and a half terms after the join position it must end.
    for _ in 0..40 {
        for _ in 0..8 {
            let room = (65_536 - (end & 65_535)).min(1024) as i32;
            fixture.arrive(&data(end, &[room]));
            end += i64::from(room);
        }
        fixture.subscriber.set(fixture.rebuilt.get());
        fixture.cycle();
        end = fixture.rebuilt.get();
    }
    let free = START + 5 * 32_768;
    assert!(fixture.shared.status_position() <= free);
    assert!(fixture.shared.status_position() > free - 8_192 - 1024);
    assert!(fixture.rebuilt.get() <= free + 32_768);
    assert!(fixture.counters.over_runs.get() > 0);
    fixture
        .shared
        .conductor_free_position(fixture.shared.status_position() - 65_536);
    fixture.sent_after(1);
    assert!(fixture.shared.status_position() > free);
}

#[test]
fn a_full_socket_is_tried_again_in_the_next_turn() {
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
fn a_broken_network_is_tried_at_the_next_deadline_and_recorded() {
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
fn round_trip_requests_are_answered_in_the_endpoints_name() {
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
fn a_rejected_image_answers_with_the_error_frame_of_the_worked_example() {
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
    assert_eq!(fixture.positions().0, 0, "nothing is taken any more");
    assert_eq!(fixture.sent_after(201 * MS), [error]);
    assert_eq!(fixture.counters.error_frames_sent.get(), 2);
    fixture.sent_after(9_700 * MS);
    assert!(fixture.shared.is_timed_out());
}
