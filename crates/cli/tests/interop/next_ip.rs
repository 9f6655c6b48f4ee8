// SPDX-License-Identifier: Apache-2.0
//! Multicast, destinations and sources over IPv6, between a Taran driver and the official one, in both directions.

use std::net::UdpSocket;
use std::process::Command;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, await_true, port};
use crate::machines::in_own_namespaces;
use crate::require_java;

fn endpoint() -> String {
    format!("endpoint=[::1]:{}", port())
}

/// Without an address of its own, the publication would send over IPv4.
fn manual() -> String {
    format!("control=[::1]:{}|control-mode=manual", port())
}

/// Runs the body of a test where the loopback interface has an IPv6 address: here, or in a network namespace.
fn with_loopback(test: &str, body: impl FnOnce()) {
    if UdpSocket::bind("[::1]:0").is_ok() {
        body();
        return;
    }
    in_own_namespaces(test, || {
        run_program("ip", &["link", "set", "lo", "up"]);
        body();
    });
}

/// Runs an exchange from Taran to the official driver and back, with both clients on each side.
fn in_both_directions(exchange: impl Fn() -> Exchange) {
    let linger = "1s";
    let ours = Driver::taran("six", &[("AERON_PUBLICATION_LINGER_TIMEOUT", linger)]);
    let theirs = Driver::official("peer-six", &[("aeron.publication.linger.timeout", linger)]);
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        for (publisher, subscriber) in [(Party::Java, Party::Rust), (Party::Rust, Party::Java)] {
            Exchange {
                lengths: vec![64, 1_000, 1_376, 20, 5_000],
                count: 500,
                ..exchange()
            }
            .run((publisher, from.dir()), (subscriber, to.dir()));
        }
    }
}

/// Runs a program that has to succeed; returns its output.
fn run_program(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// On linked machines, because the loopback interface does not support IPv6 multicast.
#[test]
fn ipv6_link_and_site_multicast_succeeds() {
    require_java!();
    in_own_namespaces("next_ip::ipv6_link_and_site_multicast_succeeds", || {
        let ends = "link add name va type veth peer name vb";
        let address = "-6 addr add fd0a::1/64 dev va nodad";
        for command in [
            "link set lo up",
            ends,
            "link set vb up",
            "link set va up",
            address,
        ] {
            run_program("ip", &command.split(' ').collect::<Vec<_>>());
        }
        // The kernel reports the link as up some time after both ends are; until then, drivers reject groups on it.
        let show = ["-oneline", "link", "show", "dev", "va"];
        await_true("the cable is up", || {
            run_program("ip", &show).contains(" state UP ")
        });
        for (group, interface) in [("ff02::2030:43", "[fd0a::1]"), ("ff05::2030:43", "{va}")] {
            in_both_directions(|| {
                Exchange::on(format!(
                    "aeron:udp?endpoint=[{group}]:{}|interface={interface}|term-length=64k|fc=min",
                    port()
                ))
            });
        }
    });
}

#[test]
fn ipv6_manual_and_dynamic_destinations_work() {
    require_java!();
    with_loopback("next_ip::ipv6_manual_and_dynamic_destinations_work", || {
        in_both_directions(|| {
            let subscriber_channel = format!("aeron:udp?{}", endpoint());
            Exchange {
                destinations: vec![subscriber_channel.clone()],
                subscriber_channel: Some(subscriber_channel),
                ..Exchange::on(format!("aeron:udp?{}|term-length=64k|fc=min", manual()))
            }
        });
        in_both_directions(|| {
            let control = format!("control=[::1]:{}|control-mode=dynamic", port());
            Exchange {
                subscriber_channel: Some(format!("aeron:udp?{}|{control}", endpoint())),
                ..Exchange::on(format!("aeron:udp?{control}|term-length=64k|fc=min"))
            }
        });
    });
}

#[test]
fn ipv6_multi_destination_subscriptions_work() {
    require_java!();
    with_loopback("next_ip::ipv6_multi_destination_subscriptions_work", || {
        in_both_directions(|| {
            let paths = [endpoint(), endpoint()].map(|endpoint| format!("aeron:udp?{endpoint}"));
            Exchange {
                destinations: paths.to_vec(),
                sources: paths.to_vec(),
                ..Exchange::on(format!("aeron:udp?{}|term-length=64k", manual()))
            }
        });
    });
}
