// SPDX-License-Identifier: Apache-2.0
//! A layer that expands and verifies datagrams conforms on sockets and on a backend with frames of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/network.rs"]
mod network;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/queue.rs"]
mod queue;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "shared/sealer.rs"]
mod sealer;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/transport.rs"]
mod transport;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use network::{RingNetwork, Wire};
use sealer::{EXPANSION, SealerLayer};
use taran_net::{
    LayeredNetwork, Network, ReceiveBatch, SocketNetwork, SocketSpec, Transmit, conformance,
};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

#[test]
fn expanding_layer_on_sockets_conforms() {
    for network in [SocketNetwork::new(), SocketNetwork::without_offload()] {
        let mut network = LayeredNetwork::with_layer(network, SealerLayer);
        conformance::run(&mut network, LOCALHOST, &mut || {
            thread::sleep(Duration::from_micros(50));
        });
    }
}

#[test]
fn expanding_layers_on_top_of_each_other_conform() {
    let layers = vec![Box::new(SealerLayer) as _, Box::new(SealerLayer) as _];
    let mut network = LayeredNetwork::new(SocketNetwork::new(), layers);
    conformance::run(&mut network, LOCALHOST, &mut || {
        thread::sleep(Duration::from_micros(50));
    });
}

#[test]
fn expanding_layer_on_rings_conforms() {
    let wire = Wire::default();
    let sealed =
        |address| LayeredNetwork::with_layer(RingNetwork::new(&wire, address), SealerLayer);
    conformance::run_between(&mut sealed(NEAR), &mut sealed(FAR), [NEAR, FAR], &mut || {});
    assert!(wire.is_clean(), "all frames are free again");
}

#[test]
fn datagrams_that_fail_verification_are_dropped() {
    let wire = Wire::default();
    let mut plain = RingNetwork::new(&wire, NEAR);
    let mut sealed = LayeredNetwork::with_layer(RingNetwork::new(&wire, FAR), SealerLayer);
    let mut receiver = sealed
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)))
        .unwrap();
    let mut forger = plain
        .open(&SocketSpec::bound(SocketAddr::new(NEAR, 0)).connected(receiver.local_address()))
        .unwrap();
    for length in [1, EXPANSION - 1, EXPANSION, 100] {
        forger
            .send(&[Transmit::connected(&vec![7; length])])
            .unwrap();
    }
    let mut sender = sealed
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)).connected(receiver.local_address()))
        .unwrap();
    sender.send(&[Transmit::connected(b"valid")]).unwrap();
    let mut batch = ReceiveBatch::new(8);
    receiver.receive(&mut batch).unwrap();
    let arrived: Vec<_> = batch.datagrams().map(|datagram| datagram.payload).collect();
    assert_eq!(arrived, [b"valid"]);
    assert_eq!(
        sender.capabilities().max_datagram,
        forger.capabilities().max_datagram - EXPANSION
    );
}
