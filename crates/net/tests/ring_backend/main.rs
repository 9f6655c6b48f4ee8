//! A backend with one queue for many sockets and frames of its own, as AF_XDP and DPDK have, passes the conformance
//! suite.
//!
//! Each agent of a host has one receive ring and one transmit ring, whatever the number of its sockets. A sent datagram
//! is copied into a transmit frame of the backend and leaves when the agent's poller flushes, polls or waits. A poll
//! sorts the receive ring into mailboxes, which hold descriptors of frames; `receive` copies from the frames and frees
//! them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod queue;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use network::{RingNetwork, Wire};
use taran_net::{
    AgentRole, FaultLayer, FaultSpec, LayeredNetwork, Network, ReceiveBatch, SocketSpec, Transmit,
    conformance,
};

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

#[test]
fn sockets_that_share_a_ring_conform() {
    let wire = Wire::default();
    conformance::run(&mut RingNetwork::new(&wire, NEAR), NEAR, &mut || {});
    assert!(wire.is_clean(), "all frames are free again");
}

#[test]
fn two_hosts_with_rings_conform() {
    let wire = Wire::default();
    conformance::run_between(
        &mut RingNetwork::new(&wire, NEAR),
        &mut RingNetwork::new(&wire, FAR),
        [NEAR, FAR],
        &mut || {},
    );
    assert!(wire.is_clean(), "all frames are free again");
}

#[test]
fn layers_on_rings_conform() {
    let wire = Wire::default();
    let layered = |address| {
        let layer = FaultLayer::new(FaultSpec::default());
        LayeredNetwork::with_layer(RingNetwork::new(&wire, address), layer)
    };
    conformance::run_between(
        &mut layered(NEAR),
        &mut layered(FAR),
        [NEAR, FAR],
        &mut || {},
    );
}

#[test]
fn sent_datagrams_leave_with_one_flush_of_the_agent() {
    let wire = Wire::default();
    let mut near = RingNetwork::new(&wire, NEAR);
    let mut far = RingNetwork::new(&wire, FAR);
    let mut poller = near.poller(AgentRole::Sender).unwrap();
    let mut receiver = far
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)))
        .unwrap();
    let to = receiver.local_address();
    let spec = SocketSpec::bound(SocketAddr::new(NEAR, 0)).used_by(AgentRole::Sender);
    let mut batch = ReceiveBatch::new(8);
    let transmissions = wire.transmissions();
    for _ in 0..100 {
        let mut socket = near.open(&spec).unwrap();
        assert_eq!(socket.send(&[Transmit::to(to, b"lone")]).unwrap(), 4);
    }
    assert_eq!(receiver.receive(&mut batch).unwrap(), 0);
    poller.flush();
    assert_eq!(wire.transmissions() - transmissions, 1);
    let mut arrived = 0;
    while receiver.receive(&mut batch).unwrap() > 0 {
        arrived += batch.datagram_count();
    }
    assert_eq!(arrived, 100);
}

#[test]
fn flooded_socket_leaves_frames_to_the_other_sockets_of_its_ring() {
    let wire = Wire::default();
    let mut near = RingNetwork::new(&wire, NEAR);
    let mut far = RingNetwork::new(&wire, FAR);
    let any = SocketSpec::bound(SocketAddr::new(FAR, 0)).used_by(AgentRole::Receiver);
    let mut poller = far.poller(AgentRole::Receiver).unwrap();
    let mut flooded = far.open(&any).unwrap();
    let mut honest = far.open(&any).unwrap();
    poller.set_sources(&[flooded.poll_source(), honest.poll_source()]);
    let mut sender = near
        .open(&SocketSpec::bound(SocketAddr::new(NEAR, 0)))
        .unwrap();
    let flood = Transmit::to(flooded.local_address(), &[1; 100 * 64]).segmented(64);
    for _ in 0..100 {
        sender.send(&[flood]).unwrap();
        assert_eq!(poller.poll(&mut |index| usize::from(index == 0)), 1);
    }
    assert!(flooded.overflowed().unwrap() > 0);
    sender
        .send(&[Transmit::to(honest.local_address(), b"honest")])
        .unwrap();
    let mut batch = ReceiveBatch::new(1);
    let received = poller.poll(&mut |index| match index {
        1 => honest.receive(&mut batch).unwrap(),
        _ => 0,
    });
    assert_eq!(received, 1);
    assert_eq!(honest.overflowed(), Some(0));
    while flooded.receive(&mut batch).unwrap() > 0 {}
    assert!(wire.is_clean(), "all frames are free again");
}

#[test]
fn wait_ends_when_a_ring_receives_a_datagram() {
    let wire = Wire::default();
    let mut far = RingNetwork::new(&wire, FAR);
    let mut poller = far.poller(AgentRole::Receiver).unwrap();
    poller.start();
    let any = SocketSpec::bound(SocketAddr::new(FAR, 0)).used_by(AgentRole::Receiver);
    let receiver = far.open(&any).unwrap();
    poller.set_sources(&[receiver.poll_source()]);
    let mut near = RingNetwork::new(&wire, NEAR);
    let to = receiver.local_address();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut sender = near
                .open(&SocketSpec::bound(SocketAddr::new(NEAR, 0)))
                .unwrap();
            sender.send(&[Transmit::to(to, b"wake up")]).unwrap();
        });
        // A wait may end early, but does not outlast the arrival.
        let start = std::time::Instant::now();
        while poller.poll(&mut |_| 1) == 0 {
            poller.wait(Duration::from_secs(60));
        }
        assert!(start.elapsed() < Duration::from_secs(60));
    });
}
