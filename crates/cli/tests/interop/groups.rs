// SPDX-License-Identifier: Apache-2.0
//! Streams with several receivers between a Taran driver and the official one, in both directions: multicast, manual
//! and dynamic destinations, with each flow control (docs/spec/wire.md §2.3 to §2.9, §4).

use std::path::Path;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, port};
use crate::require_java;

/// Returns a multicast channel on the loopback interface, on a port of its own.
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

fn exchange(channel: impl Into<String>) -> Exchange {
    Exchange {
        lengths: vec![64, 1_000, 1_376, 20, 5_000],
        count: 1_000,
        ..Exchange::on(channel)
    }
}

/// Runs an exchange from Taran to the official driver and back. The client is the Java one on a Taran driver and vice
/// versa.
fn in_both_directions(ours: &Driver, theirs: &Driver, exchange: impl Fn() -> Exchange) {
    let (ours, theirs): (&Path, &Path) = (ours.dir(), theirs.dir());
    exchange().run((Party::Java, ours), (Party::Rust, theirs));
    exchange().run((Party::Rust, theirs), (Party::Java, ours));
}

#[test]
fn multicast_between_drivers_succeeds() {
    require_java!();
    let (ours, theirs) = pair();
    for ttl in ["", "|ttl=3"] {
        for subscriber in [Party::Java, Party::Rust] {
            exchange(multicast(&format!("|term-length=64k{ttl}")))
                .run((Party::Java, ours.dir()), (subscriber, theirs.dir()));
        }
    }
}

#[test]
fn multicast_flow_controls_work_in_both_directions() {
    require_java!();
    let (ours, theirs) = pair();
    for (flow_control, tag) in [
        ("max", ""),
        ("min", ""),
        ("min,g:/1,t:2s", ""),
        ("tagged,g:7/1", "|gtag=7"),
    ] {
        in_both_directions(&ours, &theirs, || {
            let group = multicast("");
            Exchange {
                subscriber_channel: Some(format!("{group}{tag}")),
                ..exchange(format!("{group}|term-length=64k|fc={flow_control}"))
            }
        });
    }
}

#[test]
fn manual_destinations_work_in_both_directions() {
    require_java!();
    let (ours, theirs) = pair();
    for flow_control in ["", "|fc=min,g:/1"] {
        in_both_directions(&ours, &theirs, || {
            let subscriber_channel = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
            let channel = format!("aeron:udp?control-mode=manual|term-length=64k{flow_control}");
            Exchange {
                destinations: vec![subscriber_channel.clone()],
                subscriber_channel: Some(subscriber_channel),
                ..exchange(channel)
            }
        });
    }
}

#[test]
fn dynamic_destinations_work_in_both_directions() {
    require_java!();
    let (ours, theirs) = pair();
    for flow_control in ["", "|fc=min,g:/1"] {
        in_both_directions(&ours, &theirs, || {
            let control = format!("control=127.0.0.1:{}|control-mode=dynamic", port());
            Exchange {
                subscriber_channel: Some(format!(
                    "aeron:udp?endpoint=127.0.0.1:{}|{control}",
                    port()
                )),
                ..exchange(format!("aeron:udp?{control}|term-length=64k{flow_control}"))
            }
        });
    }
}
