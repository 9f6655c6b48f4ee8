// SPDX-License-Identifier: Apache-2.0
//! Spies, session-specific subscriptions and initial positions, with both clients on both drivers and between them.

use std::path::Path;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, connect, port, udp};
use crate::require_java;

use Party::{Java as JavaClient, Rust as RustClient};

const PAIRS: [(Party, Party); 2] = [(JavaClient, RustClient), (RustClient, JavaClient)];

fn ours() -> Driver {
    Driver::taran("local-ours", &[("AERON_PUBLICATION_LINGER_TIMEOUT", "1s")])
}

fn theirs() -> Driver {
    Driver::official(
        "local-theirs",
        &[("aeron.publication.linger.timeout", "1s")],
    )
}

/// Returns an exchange that fills the log several times.
fn exchange(publish: String, subscribe: String) -> Exchange {
    Exchange {
        subscriber_channel: Some(subscribe),
        lengths: vec![64, 1_000, 1_376, 20, 5_000],
        count: 2_000,
        ..Exchange::on(publish)
    }
}

/// Spies alone connect the publication and receive everything.
fn spies(driver: &Driver) {
    for (publisher, subscriber) in PAIRS {
        let channel = udp("");
        let publish = format!("{channel}|ssc=true|term-length=64k");
        exchange(publish, format!("aeron-spy:{channel}"))
            .run((publisher, driver.dir()), (subscriber, driver.dir()));
    }
}

#[test]
fn spies_on_taran_driver_receive_everything() {
    require_java!();
    spies(&ours());
}

#[test]
fn taran_spy_on_official_driver_receives_everything() {
    require_java!();
    spies(&theirs());
}

/// Calls `act` with the publisher's client and driver, and the subscriber's client and driver.
fn for_each_direction(act: impl Fn((Party, &Path), (Party, &Path))) {
    let (ours, theirs) = (ours(), theirs());
    act((JavaClient, ours.dir()), (RustClient, theirs.dir()));
    act((RustClient, theirs.dir()), (JavaClient, ours.dir()));
    act((JavaClient, ours.dir()), (JavaClient, ours.dir()));
}

#[test]
fn session_specific_subscription_receives_its_session_only() {
    require_java!();
    for_each_direction(|publisher, subscriber| {
        let channel = udp("");
        // Another session, which must not be received.
        let client = connect(publisher.1);
        let other = format!("{channel}|session-id=78");
        let other = client.add_exclusive_publication(&other, 1_001).unwrap();
        let channel = format!("{channel}|session-id=-77");
        exchange(format!("{channel}|term-length=64k"), channel).run(publisher, subscriber);
        assert!(!other.is_connected());
    });
}

#[test]
fn stream_with_initial_position_starts_there() {
    require_java!();
    for_each_direction(|publisher, subscriber| {
        let channel = udp("");
        let publish = format!(
            "{channel}|term-length=64k|init-term-id=2147483646|term-id=-2147483647|term-offset=65504"
        );
        Exchange {
            // The fourth term, except for its last 32 bytes.
            joins_at: Some(3 * 65_536 + 65_504),
            ..exchange(publish, channel)
        }
        .run(publisher, subscriber);
    });
}

#[test]
fn session_id_by_tag_selects_the_tagged_publication() {
    require_java!();
    for_each_direction(|publisher, subscriber| {
        let client = connect(publisher.1);
        let tag = port();
        let first = client
            .add_exclusive_publication(
                udp(&format!("|tags={},{tag}|term-length=64k", port())),
                1_001,
            )
            .unwrap();
        let channel = udp("");
        let publish = format!("{channel}|session-id=tag:{tag}|term-length=64k");
        // No other session would be received.
        let subscribe = format!("{channel}|session-id={}", first.session_id());
        exchange(publish, subscribe).run(publisher, subscriber);
        assert!(!first.is_connected());
    });
}
