// SPDX-License-Identifier: Apache-2.0
//! A backend with one queue for many sockets and frames of its own, as AF_XDP and DPDK have, passes the conformance
//! suite.
//!
//! Each agent of a host has one receive ring and one transmit ring, whatever the number of its sockets, and uses them
//! alone. A sent datagram is copied, or written, into a frame of the backend and leaves when the agent's poller flushes,
//! polls or waits. The frame comes back later, through a completion ring that all agents of the host share; without free
//! frames sends are back-pressured. A poll sorts the receive ring into mailboxes; `receive` copies from the frames and
//! returns them to the fill ring.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod queue;
mod transport;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use network::{RingNetwork, Wire};
use queue::FRAMES;
use taran_net::{
    AgentRole, FaultLayer, FaultSpec, LayeredNetwork, Network, ReceiveBatch, SocketSpec, Transmit,
    TransmitLayout, TransmitScratch, Transport, conformance,
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

/// Receives until nothing is left; returns the first bytes of the datagrams.
fn receive_all(transport: &mut dyn Transport) -> Vec<u8> {
    let mut batch = ReceiveBatch::new(8);
    let mut arrived = Vec::new();
    while transport.receive(&mut batch).unwrap() > 0 {
        arrived.extend(batch.datagrams().map(|datagram| datagram.payload[0]));
    }
    arrived
}

#[test]
fn send_without_free_frames_is_back_pressured_until_frames_are_completed() {
    let wire = Wire::default();
    let mut near = RingNetwork::new(&wire, NEAR);
    let mut far = RingNetwork::new(&wire, FAR);
    let mut receiver = far
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)))
        .unwrap();
    let mut sender = near
        .open(&SocketSpec::bound(SocketAddr::new(NEAR, 0)).connected(receiver.local_address()))
        .unwrap();
    wire.hold_completions(true);
    let numbers: Vec<u8> = (0..FRAMES + 100).map(|number| number as u8).collect();
    let mut offered = &numbers[..];
    let mut arrived = Vec::new();
    loop {
        let batch = Transmit::connected(&offered[..offered.len().min(100)]).segmented(1);
        let accepted = sender.send(&[batch]).unwrap();
        offered = &offered[accepted..];
        arrived.extend(receive_all(&mut *receiver));
        if accepted < 100 {
            break;
        }
    }
    assert_eq!(offered.len(), 100, "one frame for each datagram");
    for _ in 0..3 {
        let batch = Transmit::connected(offered).segmented(1);
        assert_eq!(sender.send(&[batch]).unwrap(), 0);
    }
    wire.hold_completions(false);
    let batch = Transmit::connected(offered).segmented(1);
    assert_eq!(sender.send(&[batch]).unwrap(), 100);
    arrived.extend(receive_all(&mut *receiver));
    assert_eq!(arrived, numbers, "each datagram arrives once, in order");
    assert!(wire.is_clean());
}

#[test]
fn written_datagrams_are_written_into_the_frames_that_are_sent() {
    let wire = Wire::default();
    let mut near = RingNetwork::new(&wire, NEAR);
    let mut far = RingNetwork::new(&wire, FAR);
    let _poller = near.poller(AgentRole::Sender).unwrap();
    let receiver = far
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)))
        .unwrap();
    let spec = SocketSpec::bound(SocketAddr::new(NEAR, 0)).used_by(AgentRole::Sender);
    let mut sender = near.open(&spec).unwrap();
    let layout = TransmitLayout {
        destination: Some(receiver.local_address()),
        length: 250,
        segment_size: 100,
    };
    let mut addresses = Vec::new();
    let sent = sender.send_with(layout, &mut TransmitScratch::new(), &mut |index, memory| {
        memory.fill(index as u8);
        addresses.push(memory.as_ptr().addr());
    });
    assert_eq!(sent.unwrap(), 250);
    assert_eq!(near.queued_frames(AgentRole::Sender), addresses);
}

/// Sends datagrams in windows and waits for the echo of each window.
fn exchange(network: &mut RingNetwork, agent: AgentRole, echo: SocketAddr, deadline: Instant) {
    let spec = SocketSpec::bound(SocketAddr::new(NEAR, 0)).used_by(agent);
    let mut socket = network.open(&spec.connected(echo)).unwrap();
    for window in 0..200_u8 {
        let bytes = [window; 32];
        assert_eq!(
            socket
                .send(&[Transmit::connected(&bytes).segmented(1)])
                .unwrap(),
            32
        );
        let mut echoed = Vec::new();
        while echoed.len() < 32 {
            assert!(Instant::now() < deadline, "{} of 32", echoed.len());
            echoed.extend(receive_all(&mut *socket));
            std::thread::yield_now();
        }
        assert_eq!(echoed, bytes);
    }
}

#[test]
fn agents_on_different_threads_share_completions_and_no_queue() {
    let wire = Wire::default();
    let mut far = RingNetwork::new(&wire, FAR);
    let mut echo = far
        .open(&SocketSpec::bound(SocketAddr::new(FAR, 0)))
        .unwrap();
    let to = echo.local_address();
    let mut near = RingNetwork::new(&wire, NEAR);
    let mut same = near.clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_done = &is_done;
        let echoing = scope.spawn(move || {
            let mut batch = ReceiveBatch::new(8);
            while !is_done.load(Ordering::Relaxed) && Instant::now() < deadline {
                echo.receive(&mut batch).unwrap();
                for datagram in batch.datagrams() {
                    let back = Transmit::to(datagram.source, datagram.payload);
                    assert_eq!(echo.send(&[back]).unwrap(), datagram.payload.len());
                }
                std::thread::yield_now();
            }
        });
        let agents = [
            scope.spawn(move || exchange(&mut near, AgentRole::Sender, to, deadline)),
            scope.spawn(move || exchange(&mut same, AgentRole::Receiver, to, deadline)),
        ];
        let results = agents.map(std::thread::ScopedJoinHandle::join);
        is_done.store(true, Ordering::Relaxed);
        echoing.join().unwrap();
        for result in results {
            result.unwrap();
        }
    });
    assert!(wire.is_clean(), "no frame is lost between the agents");
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
