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
    let mut rig = Rig::new();
    rig.connect(|_| {});
    assert_eq!(rig.socket.destinations(), [Some(peer())]);
    assert_eq!(rig.socket.sent(), [hex(STATUS)]);
    assert_eq!(rig.counters.status_messages_sent.get(), 1);
    assert_eq!(rig.log.active_transport_count(), 1);
}

#[test]
fn a_group_tag_follows() {
    let mut rig = Rig::with(|spec| spec.group_tag = Some(7));
    rig.connect(|_| {});
    let mut expected = hex(STATUS);
    expected[0] = 0x2C;
    expected.extend(hex("07 00 00 00 00 00 00 00"));
    assert_eq!(rig.socket.sent(), [expected]);
}

#[test]
fn the_last_one_is_repeated_after_200_ms() {
    let mut rig = Rig::connected();
    assert_eq!(rig.sent_after(200 * MS), NOTHING);
    assert_eq!(rig.sent_after(1), [hex(STATUS)]);
    assert_eq!(rig.sent_after(200 * MS), NOTHING);
    assert_eq!(rig.sent_after(1), [hex(STATUS)]);
}

#[test]
fn what_is_repeated_tells_how_far_the_subscribers_have_come() {
    let mut rig = Rig::connected();
    rig.arrive(&data(START, &[64]));
    rig.socket.sent();
    rig.subscriber.set(START + 64);
    assert_eq!(rig.sent_after(199 * MS), NOTHING);
    let sent = rig.sent_after(2 * MS);
    assert_eq!((sent.len(), position(&sent[0])), (1, START + 64));
}

#[test]
fn it_follows_the_slowest_subscriber_by_quarters_of_the_window() {
    let mut rig = Rig::connected();
    let slow = Counter::detached();
    slow.set(START);
    let subscriber = SubscriberPosition {
        position: slow.clone(),
    };
    rig.command(ReceiverCommand::AddSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        subscriber,
    });
    for index in 0..16 {
        rig.arrive(&data(START + index * 1024, &[1024]));
    }
    rig.socket.sent();
    rig.subscriber.set(START + 16_384);
    assert_eq!(rig.sent_after(1), NOTHING);
    slow.set(START + 8_192);
    assert_eq!(rig.sent_after(1), NOTHING, "a quarter is not enough");
    slow.set(START + 8_224);
    let sent = rig.sent_after(1);
    assert_eq!((sent.len(), position(&sent[0])), (1, START + 8_224));
    assert_eq!(rig.shared.status_position(), START + 8_224);
    let counter_id = slow.id();
    rig.command(ReceiverCommand::RemoveSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        counter_id,
    });
}

#[test]
fn a_subscriber_cannot_be_ahead_of_what_arrived() {
    let mut rig = Rig::connected();
    rig.arrive(&data(START, &[12_288]));
    rig.socket.sent();
    rig.subscriber.set(i64::MAX);
    let sent = rig.sent_after(1);
    assert_eq!(position(&sent[0]), START + 12_288);
    rig.subscriber.set(i64::MIN);
    assert_eq!(rig.sent_after(1), NOTHING);
}

#[test]
fn it_never_invites_the_sender_into_memory_that_is_not_free() {
    let mut rig = Rig::connected();
    let mut end = START;
    // The conductor frees nothing: two and a half terms after the join position it must end.
    for _ in 0..40 {
        for _ in 0..8 {
            let room = (65_536 - (end & 65_535)).min(1024) as i32;
            rig.arrive(&data(end, &[room]));
            end += i64::from(room);
        }
        rig.subscriber.set(rig.rebuilt.get());
        rig.cycle();
        end = rig.rebuilt.get();
    }
    let free = START + 5 * 32_768;
    assert!(rig.shared.status_position() <= free);
    assert!(rig.shared.status_position() > free - 8_192 - 1024);
    assert!(rig.rebuilt.get() <= free + 32_768);
    assert!(rig.counters.over_runs.get() > 0);
    rig.shared
        .conductor_free_position(rig.shared.status_position() - 65_536);
    rig.sent_after(1);
    assert!(rig.shared.status_position() > free);
}

#[test]
fn a_full_socket_is_tried_again_in_the_next_turn() {
    let mut rig = Rig::connected();
    rig.socket.room(Some(0));
    assert_eq!(rig.sent_after(201 * MS), NOTHING);
    assert_eq!(rig.sent_after(1), NOTHING);
    rig.socket.room(None);
    assert_eq!(rig.sent_after(1), [hex(STATUS)]);
    assert_eq!(
        (
            rig.counters.short_sends.get(),
            rig.counters.status_messages_sent.get()
        ),
        (2, 2)
    );
}

#[test]
fn a_broken_network_is_tried_at_the_next_deadline_and_recorded() {
    let mut rig = Rig::connected();
    rig.arrive(&data(START, &[64]));
    rig.socket.set_broken(true);
    let calls = rig.socket.send_calls();
    for _ in 0..10 {
        rig.sent_after(100 * MS);
    }
    assert_eq!(rig.socket.send_calls() - calls, 3);
    assert_eq!(rig.errors.count(), 1);
}

#[test]
fn round_trip_requests_are_answered_in_the_endpoints_name() {
    let mut rig = Rig::connected();
    let mut request = hex("28 00 00 00 00 80 06 00  4d 3c 2b 1a e9 03 00 00
                           cb 04 fb 71 1f 01 00 00  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00");
    rig.arrive(&request);
    let mut reply = request.clone();
    reply[5] = 0;
    reply[32..40].copy_from_slice(&RECEIVER.to_le_bytes());
    assert_eq!(rig.socket.sent(), [reply.clone()]);
    request[32] = 1;
    rig.arrive(&request);
    reply[8] = 0;
    rig.arrive(&reply);
    assert_eq!(rig.socket.sent(), NOTHING);
}

#[test]
fn a_rejected_image_answers_with_the_error_frame_of_the_worked_example() {
    let mut rig = Rig::with(|spec| spec.group_tag = Some(7));
    rig.connect(|_| {});
    rig.socket.sent();
    rig.reject("rejected");
    let error = hex("30 00 00 00 00 08 04 00  4d 3c 2b 1a e9 03 00 00
                     88 77 66 55 44 33 22 11  07 00 00 00 00 00 00 00
                     0d 00 00 00 08 00 00 00  72 65 6a 65 63 74 65 64");
    assert_eq!(rig.sent_after(200 * MS), NOTHING);
    assert_eq!(rig.sent_after(1), std::slice::from_ref(&error));
    rig.arrive(&data(START, &[64]));
    assert_eq!(rig.positions().0, 0, "nothing is taken any more");
    assert_eq!(rig.sent_after(201 * MS), [error]);
    assert_eq!(rig.counters.error_frames_sent.get(), 2);
    rig.sent_after(9_700 * MS);
    assert!(rig.shared.is_timed_out());
}
