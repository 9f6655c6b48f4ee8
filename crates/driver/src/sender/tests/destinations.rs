// SPDX-License-Identifier: Apache-2.0
//! Channels with several destinations (docs/spec/wire.md §2.9).

use std::net::SocketAddr;

use taran_protocol::frame::{Frame, Rttm};

use super::*;
use crate::boundary::SendDestination;

const SECOND: i64 = 1_000 * MS;

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, last], port))
}

fn fixture(destination: impl FnOnce(Counter) -> Destination) -> (SenderFixture, Counter) {
    let count = Counter::detached();
    let fixture =
        SenderFixture::sending_to(destination(count.clone()), |spec| spec.is_group = true);
    (fixture, count)
}

impl SenderFixture {
    fn add(&mut self, id: i64, address: Option<SocketAddr>, is_named: bool) {
        self.command(SenderCommand::AddDestination {
            endpoint: ENDPOINT,
            destination: SendDestination {
                id,
                address,
                is_named,
            },
        });
        self.sender.take_command(at(self.now_ns));
    }

    fn remove(&mut self, id: i64) {
        self.command(SenderCommand::RemoveDestination {
            endpoint: ENDPOINT,
            destination: id,
        });
        self.sender.take_command(at(self.now_ns));
    }

    fn status_from(&mut self, source: SocketAddr, receiver_id: i64, flags: u8, position: i64) {
        let message = self.status_message(receiver_id, flags, position, 32_768);
        self.socket.arrive_from(source, message.as_bytes());
    }

    /// Sends RTT requests of a receiver and returns the destinations of the replies.
    fn rtt_reply_destinations(
        &mut self,
        source: SocketAddr,
        receiver_id: i64,
        times: usize,
    ) -> Vec<SocketAddr> {
        let request = Rttm {
            header: Rttm::header(Rttm::REPLY),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            echo_timestamp: 1.into(),
            reception_delta: 0.into(),
            receiver_id: receiver_id.into(),
        };
        self.socket.sent();
        for _ in 0..times {
            self.socket.arrive_from(source, request.as_bytes());
            self.cycle();
        }
        let to = self.socket.destinations();
        let sent = self.socket.sent();
        let replies = to.into_iter().zip(sent);
        replies
            .filter(|(_, frame)| matches!(Frame::parse(frame), Ok(Frame::Rttm(_))))
            .filter_map(|(to, _)| to)
            .collect()
    }

    /// Publishes one frame and returns its destinations.
    fn frame_destinations(&mut self) -> Vec<SocketAddr> {
        self.socket.sent();
        self.publish(64);
        self.cycle();
        self.socket.destinations().into_iter().flatten().collect()
    }
}

#[test]
fn send_reaches_each_destination_in_rotating_order() {
    let (mut fixture, count) = fixture(Destination::Manual);
    let [a, b, c] = [1, 2, 3].map(|last| address(last, 4_040));
    for (id, address) in [(11, a), (12, b), (13, c)] {
        fixture.add(id, Some(address), false);
    }
    assert_eq!(count.get(), 3);
    fixture.status_from(a, 1, 0, START);
    fixture.cycle();
    fixture.cycle();
    let first = fixture.frame_destinations();
    let second = fixture.frame_destinations();
    let third = fixture.frame_destinations();
    for reached in [&first, &second, &third] {
        assert_eq!(reached.len(), 3);
    }
    let mut heads = [first[0], second[0], third[0]];
    heads.sort_unstable();
    assert_eq!(heads, [a, b, c]);
    fixture.remove(12);
    assert_eq!(count.get(), 2);
    let mut left = fixture.frame_destinations();
    left.sort_unstable();
    assert_eq!(left, [a, c]);
}

#[test]
fn send_without_destinations_counts_as_sent() {
    let (mut fixture, _) = fixture(Destination::Manual);
    fixture.status(START, 32_768);
    fixture.cycle();
    fixture.publish(64);
    assert!(fixture.cycle() > 0);
    assert_eq!(fixture.position.get(), START + 64);
    assert_eq!(fixture.counters.short_sends.get(), 0);
}

#[test]
fn short_send_to_one_destination_is_repeated_to_all() {
    let (mut fixture, _) = fixture(Destination::Manual);
    fixture.add(11, Some(address(1, 4_040)), false);
    fixture.add(12, Some(address(2, 4_040)), false);
    fixture.status(START, 32_768);
    fixture.cycle();
    fixture.cycle();
    fixture.publish(64);
    fixture.socket.room(Some(64));
    fixture.cycle();
    assert_eq!(fixture.position.get(), START);
    assert_eq!(fixture.counters.short_sends.get(), 1);
    fixture.socket.room(None);
    fixture.cycle();
    assert_eq!(fixture.position.get(), START + 64);
}

#[test]
fn unreachable_destination_does_not_delay_others() {
    let (mut fixture, _) = fixture(Destination::Manual);
    let (good, bad) = (address(1, 4_040), address(2, 4_040));
    fixture.add(11, Some(bad), false);
    fixture.add(12, Some(good), false);
    fixture.socket.make_unreachable(bad);
    fixture.status_from(good, 1, 0, START);
    fixture.cycle();
    for _ in 0..3 {
        assert_eq!(fixture.frame_destinations(), [good]);
    }
    assert_eq!(fixture.position.get(), START + 3 * 64);
    assert!(fixture.errors.count() > 0);
}

#[test]
fn unresolved_name_is_resolved_again_every_five_seconds() {
    let (mut fixture, count) = fixture(Destination::Manual);
    let (named, literal) = (address(1, 4_040), address(2, 4_040));
    fixture.add(11, None, true);
    fixture.add(12, Some(literal), false);
    fixture.status_from(literal, 2, 0, START);
    fixture.cycle();
    fixture.cycle();
    assert_eq!(count.get(), 2);
    assert_eq!(fixture.frame_destinations(), [literal]);
    fixture.cycle_after(5 * SECOND);
    assert!(fixture.events.try_recv().is_none());
    for _ in 0..2 {
        fixture.cycle_after(MS);
        assert!(matches!(
            fixture.events.try_recv(),
            Some(ConductorEvent::ReResolveDestination {
                endpoint: ENDPOINT,
                destination: 11
            })
        ));
        assert!(
            fixture.events.try_recv().is_none(),
            "an address never moves"
        );
        fixture.now_ns += 5 * SECOND;
    }
    fixture.command(SenderCommand::ChangeDestination {
        endpoint: ENDPOINT,
        destination: Some(11),
        address: named,
    });
    fixture.cycle();
    fixture.status_from(literal, 2, 0, fixture.tail);
    fixture.cycle();
    let mut reached = fixture.frame_destinations();
    reached.sort_unstable();
    assert_eq!(reached, [named, literal]);
    // The name of a receiver that sends status messages is not resolved again.
    for _ in 0..8 {
        fixture.status_from(named, 1, 0, fixture.tail);
        fixture.cycle_after(SECOND);
        fixture.cycle();
    }
    assert!(fixture.events.try_recv().is_none());
}

#[test]
fn named_destination_with_status_from_other_address_is_resolved_again() {
    let (mut fixture, _) = fixture(Destination::Manual);
    let (first, elsewhere) = (address(1, 4_040), address(2, 4_040));
    fixture.add(11, Some(first), true);
    fixture.status_from(first, 1, 0, START);
    fixture.cycle();
    // It has moved, and lives on: its image there waits for what is still sent to the old address.
    for _ in 0..6 {
        fixture.status_from(elsewhere, 1, 0, fixture.tail);
        fixture.cycle_after(SECOND);
        fixture.cycle();
    }
    let silent_named = |fixture: &mut SenderFixture| {
        let event = fixture.events.try_recv();
        matches!(
            event,
            Some(ConductorEvent::ReResolveDestination {
                destination: 11,
                ..
            })
        )
    };
    assert!(silent_named(&mut fixture));
    // Names follow late: as long as this one means the old address it is asked for again, not oftener than before.
    let mut asked = 0;
    for _ in 0..12 {
        fixture.status_from(elsewhere, 1, 0, fixture.tail);
        fixture.cycle_after(SECOND);
        fixture.cycle();
        asked += i32::from(silent_named(&mut fixture));
    }
    assert_eq!(asked, 2);
    fixture.command(SenderCommand::ChangeDestination {
        endpoint: ENDPOINT,
        destination: Some(11),
        address: elsewhere,
    });
    fixture.cycle();
    // Another driver answers there, whose receiver has an id of its own.
    for _ in 0..8 {
        fixture.status_from(elsewhere, 2, 0, fixture.tail);
        fixture.cycle_after(SECOND);
        fixture.cycle();
    }
    assert!(
        !silent_named(&mut fixture),
        "status message from the resolved address"
    );
}

#[test]
fn rtt_reply_goes_to_known_receiver_only() {
    let (mut fixture, _) = fixture(Destination::Manual);
    let (known, other) = (address(1, 4_040), address(2, 4_040));
    let group = SocketAddr::from(([224, 0, 1, 9], 4_040));
    for (id, address) in [(11, known), (12, other), (13, group)] {
        fixture.add(id, Some(address), false);
    }
    fixture.status_from(known, 1, 0, START);
    fixture.cycle();
    assert_eq!(fixture.rtt_reply_destinations(known, 1, 1), [known]);
    // The receiver is identified by id and port, whatever its address.
    assert_eq!(
        fixture.rtt_reply_destinations(address(7, 4_040), 1, 1),
        [known]
    );
}

#[test]
fn rtt_reply_goes_through_group_or_router() {
    let (mut fixture, _) = fixture(Destination::Manual);
    let (known, router) = (address(1, 4_040), address(2, 4_040));
    let group = |port| SocketAddr::from(([224, 0, 1, 9], port));
    for (id, address) in [
        (11, known),
        (12, router),
        (13, group(4_040)),
        (14, group(4_042)),
    ] {
        fixture.add(id, Some(address), false);
    }
    fixture.status_from(known, 1, 0, START);
    fixture.cycle();
    assert_eq!(
        fixture.rtt_reply_destinations(address(7, 4_040), 7, 1),
        [group(4_040)]
    );
    assert_eq!(
        fixture.rtt_reply_destinations(address(7, 4_042), 7, 1),
        [group(4_042)]
    );
    assert_eq!(
        fixture.rtt_reply_destinations(address(2, 61_000), 8, 1),
        [router]
    );
    // Unknown receivers: one at no destination, one at the destination of another receiver.
    assert_eq!(fixture.rtt_reply_destinations(address(7, 61_000), 9, 1), []);
    assert_eq!(fixture.rtt_reply_destinations(address(1, 61_000), 9, 1), []);
}

#[test]
fn rtt_replies_through_several_groups_count_each() {
    let (mut fixture, _) = fixture(Destination::Manual);
    for last in [8, 9] {
        let group = SocketAddr::from(([224, 0, 1, last], 4_040));
        fixture.add(i64::from(last), Some(group), false);
    }
    assert_eq!(
        fixture
            .rtt_reply_destinations(address(7, 4_040), 7, 300)
            .len(),
        100
    );
}

#[test]
fn dynamic_destination_is_added_by_status_and_removed_after_five_seconds() {
    let (mut fixture, count) = fixture(Destination::Dynamic);
    let [a, b] = [1, 2].map(|last| address(last, 4_040));
    // Neither session nor stream: it only announces.
    let hello = StatusMessage {
        session_id: 0.into(),
        stream_id: 0.into(),
        consumption_term_id: 0.into(),
        consumption_term_offset: 0.into(),
        ..fixture.status_message(1, StatusMessage::SEND_SETUP, START, 0)
    };
    fixture.socket.arrive_from(a, hello.as_bytes());
    fixture.cycle();
    assert_eq!(count.get(), 1);
    fixture.status_from(b, 2, 0, START);
    fixture.cycle();
    assert_eq!(count.get(), 2);
    fixture.cycle();
    let mut reached = fixture.frame_destinations();
    reached.sort_unstable();
    assert_eq!(reached, [a, b]);

    fixture.now_ns += 4 * SECOND;
    fixture.status_from(b, 2, 0, fixture.tail);
    fixture.cycle();
    fixture.now_ns += SECOND;
    assert_eq!(fixture.frame_destinations().len(), 2);
    fixture.now_ns += 1;
    assert_eq!(fixture.frame_destinations(), [b]);
    assert_eq!(count.get(), 1);
}

#[test]
fn dynamic_destination_follows_receiver_to_new_address() {
    let (mut fixture, count) = fixture(Destination::Dynamic);
    let (a, elsewhere) = (address(1, 4_040), address(9, 4_040));
    fixture.status_from(a, 1, 0, START);
    fixture.cycle();
    fixture.cycle();
    assert_eq!(fixture.frame_destinations(), [a]);
    fixture.status_from(elsewhere, 1, 0, START);
    fixture.cycle();
    assert_eq!(count.get(), 1);
    assert_eq!(fixture.frame_destinations(), [elsewhere]);
    fixture.status_from(address(1, 4_041), 1, 0, START);
    fixture.status_from(address(1, 4_040), 2, 0, START);
    fixture.cycle();
    assert_eq!(count.get(), 3);
}

#[test]
fn rejected_status_message_adds_no_destination() {
    let (mut fixture, count) = fixture(Destination::Dynamic);
    fixture.status_from(address(1, 4_040), 1, 0, START + 65_536);
    fixture.cycle();
    assert_eq!(fixture.counters.status_messages_rejected.get(), 1);
    assert_eq!(count.get(), 0);
}

#[test]
fn forged_receivers_are_bounded_and_evict_none() {
    let (mut fixture, count) = fixture(Destination::Dynamic);
    let first = address(1, 4_040);
    fixture.status_from(first, 0, 0, START);
    fixture.cycle();
    for id in 1..2_000 {
        fixture.status_from(address(2, 5_000), id, 0, START);
        if id % 8 == 0 {
            fixture.cycle();
        }
    }
    assert_eq!(count.get(), 1_024);
    assert_eq!(fixture.errors.count(), 1);
    assert!(fixture.frame_destinations().contains(&first));
}

#[test]
fn error_frame_reports_its_destination() {
    let (mut fixture, _) = fixture(Destination::Manual);
    let a = address(1, 4_040);
    fixture.add(11, Some(a), false);
    for (source, expected) in [(a, 11), (address(2, 4_040), -1)] {
        fixture.status_from(source, RECEIVER, 0, START);
        fixture.cycle();
        let frame = hex("30 00 00 00 00 00 04 00  4d 3c 2b 1a e9 03 00 00
                         88 77 66 55 44 33 22 11  00 00 00 00 00 00 00 00
                         0d 00 00 00 08 00 00 00  72 65 6a 65 63 74 65 64");
        fixture.socket.arrive_from(source, &frame);
        fixture.cycle();
        let Some(ConductorEvent::PublicationError(error)) = fixture.events.try_recv() else {
            panic!("no event");
        };
        assert_eq!(error.destination_id, expected);
        // The next round meets a destination that has no receiver yet.
        fixture.remove(11);
        fixture.add(11, Some(a), false);
    }
}
