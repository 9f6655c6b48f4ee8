//! Ports and addresses that cannot be had.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use taran::ErrorCode;

use crate::attach::{connect, own_socket_address, wait_for, wait_until};
use crate::process::{Directory, Driver};
use crate::texts::assert_refused;

/// A UDP port of 127.0.0.1 that no other test of this process uses, and none of those that the system gives to sockets
/// that name none. It is not tried out: the socket of the trial may live on for a moment, in a process that another
/// test is just starting.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    10_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 20_000
}

#[test]
fn a_port_in_use() {
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
        assert_refused(
            client.add_subscription(&channel, 10),
            ErrorCode::GenericError,
            &says,
        );
    }
    // A publication that is to send from a port in use.
    let other_holder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let sender = other_holder.local_addr().unwrap().to_string();
    let from = format!("aeron:udp?endpoint={endpoint}|interface={sender}");
    let says = [&from, &sender, "Address already in use", "another port"];
    assert_refused(
        client.add_publication(&from, 10),
        ErrorCode::GenericError,
        &says,
    );

    // Another driver is as good a holder as any.
    drop(holder);
    // A process that another test is just starting may hold the socket for a moment longer.
    let mut subscription = wait_for("the port", || client.add_subscription(&channel, 10).ok());
    let neighbours = Directory::new("port-neighbours");
    let second = Driver::start(neighbours.path(), &[]);
    let other = connect(neighbours.path());
    let says = [&channel, &endpoint, "Address already in use"];
    assert_refused(
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
fn an_interface_of_another_machine() {
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
        assert_refused(added, ErrorCode::GenericError, &says);
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn an_address_of_another_machine() {
    let directory = Directory::new("address");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    // Kept for documentation: nobody has it.
    let channel = "aeron:udp?endpoint=203.0.113.1:40123";
    assert_refused(
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
