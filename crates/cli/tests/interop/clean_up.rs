//! Clients that die: noticed, cleaned up after, and nobody else is held up by what they left.

use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};
use crate::java::{Java, argument};
use crate::pattern::{self, Check};
use crate::require_java;

/// Liveness short enough for a test; unblocking has to be longer than it.
const VARIABLES: &[(&str, &str)] = &[
    ("AERON_CLIENT_LIVENESS_TIMEOUT", "2s"),
    ("AERON_PUBLICATION_UNBLOCK_TIMEOUT", "3s"),
    ("AERON_TIMER_INTERVAL", "100ms"),
    ("AERON_IMAGE_LIVENESS_TIMEOUT", "2s"),
    ("AERON_PUBLICATION_LINGER_TIMEOUT", "200ms"),
];
const PROPERTIES: &[(&str, &str)] = &[
    ("aeron.client.liveness.timeout", "2s"),
    ("aeron.publication.unblock.timeout", "3s"),
    ("aeron.timer.interval", "100ms"),
    ("aeron.image.liveness.timeout", "2s"),
    ("aeron.publication.linger.timeout", "200ms"),
];

/// Counter type of a client's heartbeat (spec/01 §5.7).
const CLIENT_HEARTBEAT: i32 = 11;

fn dying(driver: &Driver, channel: &str, more: &[String]) -> Java {
    let mut arguments = vec![
        argument("dir", driver.dir().display()),
        argument("channel", channel),
        argument("stream", 9),
        argument("lengths", 64),
    ];
    arguments.extend_from_slice(more);
    Java::start("die", &arguments)
}

/// `kill -9` of a Java client: its heartbeat counter goes, and the image it fed goes too.
fn a_killed_client_is_cleaned_up(driver: &Driver) {
    for channel in ["aeron:ipc".to_owned(), udp("")] {
        let client = connect(driver.dir());
        let mut subscription = client.add_subscription(&channel, 9).unwrap();
        let mut java = dying(driver, &channel, &[argument("count", 10)]);
        let said = java.expect("WAITING");
        let java_client: i64 = Java::value(&said, "client");
        let counters = client.counters();
        let has_heartbeat = || {
            counters
                .find_by_type_and_registration(CLIENT_HEARTBEAT, java_client)
                .is_some()
        };
        await_true("the client's heartbeat counter", has_heartbeat);
        let mut check = Check::new(&[64], 1, 0);
        await_true("ten messages", || {
            subscription
                .poll(|message, _| check.take(message), 10)
                .unwrap();
            check.received == 10
        });
        java.kill();
        await_true("the heartbeat counter to go", || !has_heartbeat());
        await_true("the image to go", || {
            subscription
                .poll(|message, _| check.take(message), 10)
                .unwrap();
            !subscription.is_connected()
        });
        assert_eq!(check.received, 10);
    }
}

/// A Java client dies between claim and commit: the driver pads the hole, and others' messages get through.
fn an_unfinished_claim_is_unblocked(driver: &Driver) {
    for channel in ["aeron:ipc".to_owned(), udp("")] {
        let client = connect(driver.dir());
        let mut subscription = client.add_subscription(&channel, 9).unwrap();
        let publication = client.add_publication(&channel, 9).unwrap();
        await_true("connection", || publication.is_connected());
        let mut java = dying(
            driver,
            &channel,
            &[argument("count", 10), argument("claim", true)],
        );
        java.expect("WAITING");
        java.kill();
        let mut message = [0; 64];
        pattern::fill(&mut message, 0, 10, false);
        await_true("room", || publication.offer(&message).is_ok());
        let mut check = Check::new(&[64], 1, 0);
        await_true("the message behind the hole", || {
            subscription
                .poll(|message, _| check.take(message), 10)
                .unwrap();
            check.received == 11
        });
    }
}

#[test]
fn our_driver_cleans_up_after_a_killed_client() {
    require_java!();
    a_killed_client_is_cleaned_up(&Driver::taran("killed", VARIABLES));
}

#[test]
fn the_official_driver_cleans_up_after_a_killed_client() {
    require_java!();
    a_killed_client_is_cleaned_up(&Driver::official("killed", PROPERTIES));
}

#[test]
fn our_driver_unblocks_an_unfinished_claim() {
    require_java!();
    an_unfinished_claim_is_unblocked(&Driver::taran("unblock", VARIABLES));
}

#[test]
fn the_official_driver_unblocks_an_unfinished_claim() {
    require_java!();
    an_unfinished_claim_is_unblocked(&Driver::official("unblock", PROPERTIES));
}
