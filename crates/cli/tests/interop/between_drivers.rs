// SPDX-License-Identifier: Apache-2.0
//! A Taran driver and an official one over UDP, in both directions, while the Taran side loses datagrams.

use std::net::UdpSocket;
use std::path::Path;

use taran_driver::{DriverContext, MediaDriver};
use taran_net::{FaultLayer, FaultRates, FaultSpec, LayeredNetwork, SocketNetwork};
use taran_protocol::option::ThreadingMode;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, port, udp};
use crate::java::directory;
use crate::require_java;

/// Term length and MTU of the stream. The maximum MTU requires terms of at least eight times its size.
const SHAPES: &[(&str, &str)] = &[
    ("64k", "1408"),
    ("1m", "8192"),
    ("16m", "1408"),
    ("16m", "65504"),
];

/// Runs every shape in both directions, with the fraction `loss` of datagrams lost in each direction on the Taran side.
fn exchange_with_loss(loss: f64, count: u64) {
    require_java!();
    let official = Driver::official(
        "peer",
        &[
            ("aeron.publication.linger.timeout", "1s"),
            ("aeron.socket.so_sndbuf", "2m"),
            ("aeron.socket.so_rcvbuf", "2m"),
        ],
    );
    let dir = directory("lossy");
    let rates = FaultRates {
        loss,
        ..FaultRates::default()
    };
    let faults = FaultSpec {
        incoming: rates,
        outgoing: rates,
        seed: 0x7a72_616e,
    };
    let network = LayeredNetwork::with_layer(SocketNetwork::new(), FaultLayer::new(faults));
    let ours = MediaDriver::launch(
        DriverContext::new()
            .aeron_dir(&dir)
            .delete_dir_on_shutdown(true)
            .threading_mode(ThreadingMode::Shared)
            .network(network),
    )
    .expect("our driver starts");
    for (term_length, mtu) in SHAPES {
        for from_us in [true, false] {
            let ends: [&Path; 2] = [&dir, official.dir()];
            let (publisher, subscriber) = if from_us {
                (ends[0], ends[1])
            } else {
                (ends[1], ends[0])
            };
            let longest = if *term_length == "64k" {
                8_192
            } else {
                100_000
            };
            Exchange {
                lengths: vec![64, 1_000, 1_376, 20, longest],
                count,
                ..Exchange::on(udp(&format!("|term-length={term_length}|mtu={mtu}")))
            }
            .run((Party::Rust, publisher), (Party::Rust, subscriber));
        }
    }
    drop(ours);
}

#[test]
fn exchange_between_drivers_without_loss_succeeds() {
    exchange_with_loss(0.0, 5_000);
}

#[test]
fn exchange_between_drivers_with_one_percent_loss_succeeds() {
    exchange_with_loss(0.01, 1_000);
}

#[test]
fn exchange_between_drivers_with_ten_percent_loss_succeeds() {
    exchange_with_loss(0.10, 300);
}

#[test]
fn exchange_between_drivers_over_ipv6_succeeds() {
    require_java!();
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: this machine has no IPv6 on its loopback");
        return;
    }
    let official = Driver::official("peer-six", &[("aeron.publication.linger.timeout", "1s")]);
    let ours = Driver::taran("six", &[]);
    for (publisher, subscriber) in [(&ours, &official), (&official, &ours)] {
        for party in [Party::Rust, Party::Java] {
            Exchange {
                lengths: vec![64, 1_376, 20_000],
                count: 300,
                ..Exchange::on(format!(
                    "aeron:udp?endpoint=[::1]:{}|term-length=256k",
                    port()
                ))
            }
            .run((party, publisher.dir()), (party, subscriber.dir()));
        }
    }
}
