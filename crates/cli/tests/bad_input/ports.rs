// SPDX-License-Identifier: Apache-2.0
//! Ports and addresses that cannot be bound.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use taran::ErrorCode;

use crate::attach::{connect, own_socket_address, wait_for, wait_until};
use crate::process::{Directory, Driver};
use crate::texts::assert_rejected;

/// Returns a UDP port of 127.0.0.1 that no other test of this process uses, below the ephemeral port range. The port is
/// not probed: the probing socket could survive for a moment in a child process that another test is spawning.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    10_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 20_000
}

#[test]
fn port_in_use_is_rejected() {
    let directory = Directory::new("port");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let address = own_socket_address();
    let (endpoint, port) = (address.to_string(), address.port());
    let holder = UdpSocket::bind(address).unwrap();
    let channel = format!("aeron:udp?endpoint={endpoint}");
    let says = [
        &channel,
        &endpoint,
        "Address already in use",
        "another port",
        &format!("ss -ulpn sport = :{port}"),
    ];
    for _ in 0..2 {
        assert_rejected(
            client.add_subscription(&channel, 10),
            ErrorCode::GenericError,
            &says,
        );
    }
    // A publication whose source port is in use.
    let other_holder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let sender = other_holder.local_addr().unwrap().to_string();
    let from = format!("aeron:udp?endpoint={endpoint}|interface={sender}");
    let says = [&from, &sender, "Address already in use", "another port"];
    assert_rejected(
        client.add_publication(&from, 10),
        ErrorCode::GenericError,
        &says,
    );

    // A port in use by another driver.
    drop(holder);
    // A child process that another test is spawning may hold the socket for a moment.
    let mut subscription = wait_for("the port", || client.add_subscription(&channel, 10).ok());
    let neighbors = Directory::new("port-neighbors");
    let second = Driver::start(neighbors.path(), &[]);
    let other = connect(neighbors.path());
    let says = [&channel, &endpoint, "Address already in use"];
    assert_rejected(
        other.add_subscription(&channel, 10),
        ErrorCode::GenericError,
        &says,
    );
    let publication = other.add_publication(&channel, 10).unwrap();
    wait_until("connected", || publication.offer(b"hello").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
    second.stop("TERM").assert_code(15).assert_silent();
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn unknown_interface_is_rejected() {
    let directory = Directory::new("interface");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    for (interface, what) in [
        (
            "203.0.113.1",
            "no interface with an address in 203.0.113.1/32",
        ),
        (
            "203.0.113.0/24",
            "no interface with an address in 203.0.113.0/24",
        ),
        ("{nosuch0}", "unknown interface nosuch0"),
    ] {
        let channel = format!("aeron:udp?endpoint=127.0.0.1:40123|interface={interface}");
        let says = [&channel, what, "lo 127.0.0.1/8"];
        let added = client.add_publication(&channel, 10);
        assert_rejected(added, ErrorCode::GenericError, &says);
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn foreign_address_is_rejected() {
    let directory = Directory::new("address");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    // Reserved for documentation (RFC 5737); no machine has it.
    let channel = "aeron:udp?endpoint=203.0.113.1:40123";
    assert_rejected(
        client.add_subscription(channel, 10),
        ErrorCode::GenericError,
        &[
            channel,
            "203.0.113.1:40123",
            "Cannot assign requested address",
            "this machine",
        ],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}
