// SPDX-License-Identifier: Apache-2.0
//! Killed clients: the driver detects them and releases their resources, and other clients continue.

use crate::drivers::Driver;
use crate::exchange::{Party, await_true, connect, udp};
use crate::java::{self, argument};
use crate::pattern::{self, Check};
use crate::program::Program;
use crate::require_java;
use crate::victim;

/// Short liveness timeouts; the unblock timeout must be longer.
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

const STREAM: i32 = 9;

/// Counter type of a client's heartbeat (docs/spec/shared-memory.md §5.7).
const CLIENT_HEARTBEAT: i32 = 11;

/// Starts a client that publishes ten messages, claims one more if `claim`, and waits to be killed.
fn start_victim(party: Party, driver: &Driver, channel: &str, claim: bool) -> Program {
    match party {
        Party::Java => java::start(
            "die",
            &[
                argument("dir", driver.dir().display()),
                argument("channel", channel),
                argument("stream", STREAM),
                argument("lengths", 64),
                argument("count", 10),
                argument("claim", claim),
            ],
        ),
        Party::Rust => victim::start(driver.dir(), channel, STREAM, claim),
    }
}

fn for_each_victim(act: impl Fn(Party, &str)) {
    for party in [Party::Java, Party::Rust] {
        for channel in ["aeron:ipc".to_owned(), udp("")] {
            eprintln!("{party:?} dies on {channel}");
            act(party, &channel);
        }
    }
}

/// After `kill -9` of a client, its heartbeat counter and its image are removed.
fn check_resources_of_killed_client(driver: &Driver) {
    for_each_victim(|party, channel| {
        let client = connect(driver.dir());
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        let mut victim = start_victim(party, driver, channel, false);
        let said = victim.expect("WAITING");
        let victim_id: i64 = Program::value(&said, "client");
        let counters = client.counters();
        let has_heartbeat = || {
            counters
                .find_by_type_and_registration(CLIENT_HEARTBEAT, victim_id)
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
        victim.kill();
        await_true("the heartbeat counter to go", || !has_heartbeat());
        await_true("the image to go", || {
            subscription
                .poll(|message, _| check.take(message), 10)
                .unwrap();
            !subscription.is_connected()
        });
        assert_eq!(check.received, 10);
    });
}

/// A client dies between claim and commit: the driver pads the gap, and messages of others get through.
fn check_uncommitted_claim(driver: &Driver) {
    for_each_victim(|party, channel| {
        let client = connect(driver.dir());
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        await_true("connection", || publication.is_connected());
        let mut victim = start_victim(party, driver, channel, true);
        victim.expect("WAITING");
        victim.kill();
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
    });
}

#[test]
fn taran_driver_releases_resources_of_killed_client() {
    require_java!();
    check_resources_of_killed_client(&Driver::taran("killed", VARIABLES));
}

#[test]
fn official_driver_releases_resources_of_killed_client() {
    require_java!();
    check_resources_of_killed_client(&Driver::official("killed", PROPERTIES));
}

#[test]
fn taran_driver_unblocks_uncommitted_claim() {
    require_java!();
    check_uncommitted_claim(&Driver::taran("unblock", VARIABLES));
}

#[test]
fn official_driver_unblocks_uncommitted_claim() {
    require_java!();
    check_uncommitted_claim(&Driver::official("unblock", PROPERTIES));
}
