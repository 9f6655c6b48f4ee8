//! Streams to many receivers, between our driver and the official one.

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, port};
use crate::require_java;

/// A group on the loopback interface, at a port of this test's own.
fn multicast(parameters: &str) -> String {
    format!(
        "aeron:udp?endpoint=224.20.30.39:{}|interface=localhost{parameters}",
        port()
    )
}

fn pair() -> (Driver, Driver) {
    let linger = "1s";
    (
        Driver::taran(
            "group-ours",
            &[("AERON_PUBLICATION_LINGER_TIMEOUT", linger)],
        ),
        Driver::official(
            "group-theirs",
            &[("aeron.publication.linger.timeout", linger)],
        ),
    )
}

#[test]
fn multicast_reaches_the_official_driver() {
    require_java!();
    let (ours, theirs) = pair();
    for ttl in ["", "|ttl=3"] {
        for subscriber in [Party::Java, Party::Rust] {
            Exchange {
                lengths: vec![64, 1_000, 1_376, 20, 5_000],
                count: 2_000,
                ..Exchange::on(multicast(&format!("|term-length=64k{ttl}")))
            }
            .run((Party::Java, ours.dir()), (subscriber, theirs.dir()));
        }
    }
}
