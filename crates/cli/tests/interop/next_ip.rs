//! Groups, destinations and sources over IPv6, between our driver and the official one, in both directions.

use std::net::UdpSocket;
use std::process::Command;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, await_true, port};
use crate::machines::in_own_namespaces;
use crate::require_java;

fn endpoint() -> String {
    format!("endpoint=[::1]:{}", port())
}

/// Without an address of its own a publication would send over IPv4.
fn manual() -> String {
    format!("control=[::1]:{}|control-mode=manual", port())
}

/// Runs the body of a test where the loopback interface has an address of IPv6: here, or else on a machine of its own.
fn with_loopback(test: &str, body: impl FnOnce()) {
    if UdpSocket::bind("[::1]:0").is_ok() {
        body();
        return;
    }
    in_own_namespaces(test, || {
        succeed("ip", &["link", "set", "lo", "up"]);
        body();
    });
}

/// From our driver to the official one and back, with both clients at both ends.
fn both_ways(exchange: impl Fn() -> Exchange) {
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

/// Runs a program that has to succeed: its output.
fn succeed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// On a machine of its own with a cable: the loopback interface takes no part in groups of IPv6.
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
            succeed("ip", &command.split(' ').collect::<Vec<_>>());
        }
        // The kernel calls it so some time after both ends are up, and drivers refuse groups on it until then.
        let show = ["-oneline", "link", "show", "dev", "va"];
        await_true("the cable is up", || {
            succeed("ip", &show).contains(" state UP ")
        });
        for (group, interface) in [("ff02::2030:43", "[fd0a::1]"), ("ff05::2030:43", "{va}")] {
            both_ways(|| {
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
        both_ways(|| {
            let heard_on = format!("aeron:udp?{}", endpoint());
            Exchange {
                destinations: vec![heard_on.clone()],
                heard_on: Some(heard_on),
                ..Exchange::on(format!("aeron:udp?{}|term-length=64k|fc=min", manual()))
            }
        });
        both_ways(|| {
            let control = format!("control=[::1]:{}|control-mode=dynamic", port());
            Exchange {
                heard_on: Some(format!("aeron:udp?{}|{control}", endpoint())),
                ..Exchange::on(format!("aeron:udp?{control}|term-length=64k|fc=min"))
            }
        });
    });
}

#[test]
fn ipv6_multi_destination_subscriptions_work() {
    require_java!();
    with_loopback("next_ip::ipv6_multi_destination_subscriptions_work", || {
        both_ways(|| {
            let paths = [endpoint(), endpoint()].map(|endpoint| format!("aeron:udp?{endpoint}"));
            Exchange {
                destinations: paths.to_vec(),
                sources: paths.to_vec(),
                ..Exchange::on(format!("aeron:udp?{}|term-length=64k", manual()))
            }
        });
    });
}
