// SPDX-License-Identifier: Apache-2.0
use super::*;

const WINDOW: i64 = 32_768;

fn publication(position: i64, limit: i64, sender: Option<(i64, i64)>) -> PublicationPosition {
    PublicationPosition {
        registration_id: 5,
        session_id: 7,
        stream_id: 1001,
        channel: "aeron:ipc".to_owned(),
        position,
        limit,
        sender,
        receivers: None,
    }
}

fn subscriber(registration_id: i64, position: i64, is_spy: bool) -> SubscriberPosition {
    SubscriberPosition {
        registration_id,
        client_id: 87,
        session_id: 7,
        stream_id: 1001,
        position,
        is_spy,
    }
}

fn positions(subscribers: &[SubscriberPosition], images: &[ImagePosition]) -> StreamPositions {
    let stream = (7, 1001);
    StreamPositions {
        subscribers: [(stream, subscribers.to_vec())].into(),
        images: images.iter().map(|image| (stream, image.clone())).collect(),
        client_names: [(87, "risk".to_owned())].into(),
        ..StreamPositions::default()
    }
}

fn connected() -> LogState {
    LogState {
        is_connected: Some(true),
        window: Some(WINDOW),
    }
}

fn image(high_water_mark: i64, congestion_window: Option<i64>) -> ImagePosition {
    ImagePosition {
        high_water_mark,
        congestion_window,
    }
}

#[track_caller]
fn assert_subscriber(limited: LimitedBy, registration_id: i64, backlog: i64) {
    match limited {
        LimitedBy::Subscriber(subscriber) => assert_eq!(
            (subscriber.registration_id, subscriber.backlog),
            (registration_id, backlog)
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ipc_publication_at_its_limit_is_limited_by_the_slowest_subscriber() {
    let streams = positions(
        &[subscriber(8, 40_000, false), subscriber(9, 10_000, false)],
        &[],
    );
    let full = publication(10_000 + WINDOW, 10_000 + WINDOW, None);
    let limited = streams.limited_by(&full, connected());
    assert_eq!(
        limited.to_string(),
        "limited by subscriber 9 (client 87 \"risk\"), 32,768 bytes behind"
    );
    assert_subscriber(limited, 9, WINDOW);
    // The log could not be read.
    assert_subscriber(streams.limited_by(&full, LogState::default()), 9, WINDOW);
}

#[test]
fn publication_with_room_is_limited_by_its_publisher() {
    let streams = positions(&[subscriber(9, 10_000, false)], &[]);
    let idle = publication(10_000, 10_000 + WINDOW, None);
    let limited = streams.limited_by(&idle, connected());
    assert_eq!(limited, LimitedBy::Publisher { window: WINDOW });
}

#[test]
fn publication_without_subscriber_has_no_receiver() {
    let streams = positions(&[], &[]);
    let ipc = publication(0, 0, None);
    assert_eq!(streams.limited_by(&ipc, connected()), LimitedBy::NoReceiver);
    let unconnected = LogState {
        is_connected: Some(false),
        ..connected()
    };
    let udp = publication(0, 0, Some((0, 0)));
    assert_eq!(streams.limited_by(&udp, unconnected), LimitedBy::NoReceiver);
}

#[test]
fn subscriber_that_the_driver_does_not_wait_for_limits_nothing() {
    let streams = positions(
        &[subscriber(8, 0, false), subscriber(9, 90_000, false)],
        &[],
    );
    let full = publication(90_000 + WINDOW, 90_000 + WINDOW, None);
    assert_subscriber(streams.limited_by(&full, connected()), 9, WINDOW);
}

#[test]
fn network_publication_names_the_spy_or_what_limits_the_sender() {
    let sent = 200_000;
    let full = publication(sent + WINDOW, sent + WINDOW, Some((sent, sent + 1_000)));
    // A spy is behind the sender.
    let behind = publication(sent + 1_000, sent, Some((sent, sent + 100_000)));
    let spied = positions(&[subscriber(9, sent - WINDOW, true)], &[]);
    assert_subscriber(spied.limited_by(&behind, connected()), 9, WINDOW);
    // Receivers elsewhere.
    let limited = positions(&[], &[]).limited_by(&full, connected());
    assert_eq!(limited, LimitedBy::FlowControl { receivers: None });
    // A subscriber in this driver has not read what has arrived.
    let unread = positions(
        &[subscriber(9, sent - 100_000, false)],
        &[image(sent, None)],
    );
    assert_subscriber(unread.limited_by(&full, connected()), 9, 100_000);
    // The subscriber has read everything: the congestion window limits.
    let read = positions(&[subscriber(9, sent, false)], &[image(sent, Some(1_408))]);
    let full = publication(sent + WINDOW, sent + WINDOW, Some((sent, sent)));
    let limited = read.limited_by(&full, connected());
    assert_eq!(limited, LimitedBy::CongestionWindow { window: 1_408 });
    // Flow control lets the sender send.
    let granted = publication(sent + WINDOW, sent + WINDOW, Some((sent, sent + 100_000)));
    let limited = positions(&[], &[]).limited_by(&granted, connected());
    assert_eq!(limited, LimitedBy::Sender { backlog: WINDOW });
}

#[test]
fn invalid_positions_saturate() {
    for position in [i64::MIN, i64::MAX] {
        let streams = positions(&[subscriber(9, position, false)], &[image(position, None)]);
        for sender in [None, Some((position, i64::MAX)), Some((i64::MAX, position))] {
            for limit in [i64::MIN, i64::MAX] {
                let publication = publication(position, limit, sender);
                let _ = streams.limited_by(&publication, connected()).to_string();
                let _ = streams.limited_by(&publication, LogState::default());
            }
        }
    }
}

#[test]
fn client_name_is_taken_from_the_label_of_its_heartbeat() {
    for (label, name) in [
        ("client-heartbeat: id=7", ""),
        ("client-heartbeat: id=7 name=", ""),
        (
            "client-heartbeat: id=7 name=risk engine version=1 commit=a",
            "risk engine",
        ),
    ] {
        assert_eq!(client_name(label), name);
    }
}
