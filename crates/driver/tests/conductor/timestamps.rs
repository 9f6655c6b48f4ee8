//! Timestamps in messages, from a publication to a subscription of one driver (docs/spec/wire.md §7.1).

use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_protocol::log::{ExclusiveAppender, poll};

use crate::bench::Bench;

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SECOND: Duration = Duration::from_secs(1);

/// Payload and reserved value of a message of 24 bytes as its subscriber gets it.
fn carried(published: &str, subscribed: &str) -> ([i64; 3], i64) {
    let mut bench = Bench::new();
    let client = bench.client();
    let publication = bench
        .add_exclusive(client, &format!("{UDP}{published}"), 10)
        .unwrap();
    bench
        .add_subscription(client, &format!("{UDP}{subscribed}"), 10)
        .unwrap();
    bench.run_for(SECOND);
    let mut appender = ExclusiveAppender::new(bench.log(&publication.log)).unwrap();
    appender.append(&[1; 24], None).unwrap();
    bench.settle();
    let counters = bench.counters();
    let image = counters
        .iter()
        .find(|meta| meta.type_id == type_id::RECEIVER_POSITION)
        .unwrap()
        .registration_id;
    let log = bench.log(&format!("/aeron/images/{image}.logbuffer"));
    let mut found = None;
    poll(log.term_at(0), 0, usize::MAX, |frame| {
        let word = |at: usize| i64::from_le_bytes(frame.payload()[at..at + 8].try_into().unwrap());
        found = Some((
            [word(0), word(8), word(16)],
            frame.header().reserved_value.get(),
        ));
    })
    .unwrap();
    found.unwrap()
}

const ONES: i64 = 0x0101_0101_0101_0101;

/// The bench's clocks are told apart: the one for messages stands still.
const THEN: i64 = 1_700_000_000_000_000_000;

#[test]
fn the_time_of_sending_and_of_receiving_is_in_the_message() {
    assert_eq!(carried("", ""), ([ONES; 3], 0));
    assert_eq!(
        carried("|channel-snd-ts-offset=8", ""),
        ([ONES, THEN, ONES], 0)
    );
    assert_eq!(
        carried(
            "|channel-snd-ts-offset=0",
            "|channel-rcv-ts-offset=reserved"
        ),
        ([THEN, ONES, ONES], THEN)
    );
    assert_eq!(
        carried(
            "|channel-snd-ts-offset=reserved",
            "|channel-rcv-ts-offset=16"
        ),
        ([ONES, ONES, THEN], THEN)
    );
}

#[test]
fn a_message_without_room_goes_without_a_timestamp() {
    assert_eq!(
        carried("|channel-snd-ts-offset=17", "|channel-rcv-ts-offset=-5"),
        ([ONES; 3], 0)
    );
}

#[test]
fn the_socket_is_asked_for_the_time_of_arrival_only_where_it_is_wanted() {
    for (subscribed, expected) in [("", false), ("|media-rcv-ts-offset=0", true)] {
        let mut bench = Bench::new();
        let client = bench.client();
        bench
            .add_subscription(client, &format!("{UDP}{subscribed}"), 10)
            .unwrap();
        assert_eq!(bench.wires.opened()[0].receive_timestamps, expected);
    }
}
