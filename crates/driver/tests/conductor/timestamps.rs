// SPDX-License-Identifier: Apache-2.0
//! Timestamps in messages, from a publication to a subscription of one driver (docs/spec/wire.md §7.1).

use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_protocol::log::{ExclusiveAppender, poll};

use crate::fixture::DriverFixture;

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SECOND: Duration = Duration::from_secs(1);

/// Sends a message of 24 bytes and returns payload and reserved value as received.
fn carried(published: &str, subscribed: &str) -> ([i64; 3], i64) {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let publication = driver
        .add_exclusive(client, &format!("{UDP}{published}"), 10)
        .unwrap();
    driver
        .add_subscription(client, &format!("{UDP}{subscribed}"), 10)
        .unwrap();
    driver.run_for(SECOND);
    let mut appender = ExclusiveAppender::new(driver.log(&publication.log)).unwrap();
    appender.append(&[1; 24], None).unwrap();
    driver.settle();
    let counters = driver.counters();
    let image = counters
        .iter()
        .find(|meta| meta.type_id == type_id::RECEIVER_POSITION)
        .unwrap()
        .registration_id;
    let log = driver.log(&format!("/aeron/images/{image}.logbuffer"));
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

/// The fixture's clocks differ: the wall clock used for messages does not advance.
const THEN: i64 = 1_700_000_000_000_000_000;

#[test]
fn send_and_receive_timestamps_are_written_to_message() {
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
fn short_message_has_no_timestamp() {
    assert_eq!(
        carried("|channel-snd-ts-offset=17", "|channel-rcv-ts-offset=-5"),
        ([ONES; 3], 0)
    );
}

#[test]
fn socket_timestamps_are_enabled_on_request_only() {
    for (subscribed, expected) in [("", false), ("|media-rcv-ts-offset=0", true)] {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        driver
            .add_subscription(client, &format!("{UDP}{subscribed}"), 10)
            .unwrap();
        assert_eq!(driver.network.opened()[0].receive_timestamps, expected);
    }
}
