// SPDX-License-Identifier: Apache-2.0
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use super::*;
use crate::{MulticastSpec, ReceiveBatch, Transmit, conformance};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn settle() {
    thread::sleep(Duration::from_micros(50));
}

fn any() -> SocketAddr {
    SocketAddr::new(LOCALHOST, 0)
}

fn receive(transport: &mut dyn Transport, batch: &mut ReceiveBatch) -> usize {
    let mut poller = SocketNetwork::new().poller(AgentRole::Receiver).unwrap();
    poller.set_sources(&[transport.poll_source()]);
    poller.wait(Duration::from_secs(10));
    transport.receive(batch).unwrap()
}

/// Returns false on a machine without IPv6; the tests are skipped there.
fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

#[test]
fn conforms_over_ipv4() {
    conformance::run(&mut SocketNetwork::new(), LOCALHOST, &mut settle);
}

#[test]
fn conforms_over_ipv4_without_offload() {
    conformance::run(
        &mut SocketNetwork::without_offload(),
        LOCALHOST,
        &mut settle,
    );
}

#[test]
fn conforms_over_ipv6() {
    if has_ipv6() {
        conformance::run(
            &mut SocketNetwork::new(),
            Ipv6Addr::LOCALHOST.into(),
            &mut settle,
        );
        conformance::run(
            &mut SocketNetwork::without_offload(),
            Ipv6Addr::LOCALHOST.into(),
            &mut settle,
        );
    }
}

#[test]
fn overflowed_counts_datagrams_dropped_by_a_full_buffer() {
    let mut network = SocketNetwork::new();
    let spec = SocketSpec {
        receive_buffer: Some(4_096),
        ..SocketSpec::bound(any())
    };
    let receiver = network.open(&spec).unwrap();
    let mut sender = network.open(&SocketSpec::bound(any())).unwrap();
    assert_eq!(receiver.overflowed(), Some(0));
    let datagram = [Transmit::to(receiver.local_address(), &[7; 1_024])];
    for _ in 0..100 {
        sender.send(&datagram).unwrap();
    }
    // The buffer holds a few of them; the others are dropped.
    let overflowed = receiver.overflowed().unwrap();
    assert!((90..100).contains(&overflowed), "{overflowed}");
}

#[test]
fn batch_is_coalesced_if_the_kernel_supports_it() {
    let mut network = SocketNetwork::new();
    let mut receiver = network.open(&SocketSpec::bound(any())).unwrap();
    let peer = receiver.local_address();
    let mut sender = network
        .open(&SocketSpec::bound(any()).connected(peer))
        .unwrap();
    if sender.capabilities().max_segments == 1 || !receiver.capabilities().coalesces {
        return;
    }
    let payload = vec![7; 20 * 1_408 + 100];
    sender
        .send(&[Transmit::connected(&payload).segmented(1_408)])
        .unwrap();
    let mut batch = ReceiveBatch::new(4);
    assert_eq!(receive(&mut *receiver, &mut batch), 21);
    let run = batch.datagram_runs().next().unwrap();
    assert_eq!((run.payload.len(), run.stride), (payload.len(), 1_408));
}

#[test]
fn receiver_without_offload_gets_single_datagrams() {
    let mut network = SocketNetwork::new();
    let mut receiver = SocketNetwork::without_offload()
        .open(&SocketSpec::bound(any()))
        .unwrap();
    let peer = receiver.local_address();
    let mut sender = network
        .open(&SocketSpec::bound(any()).connected(peer))
        .unwrap();
    let payload = vec![7; 3 * 1_408 + 100];
    sender
        .send(&[Transmit::connected(&payload).segmented(1_408)])
        .unwrap();
    let mut batch = ReceiveBatch::new(8);
    let mut lengths = Vec::new();
    while lengths.len() < 4 {
        receive(&mut *receiver, &mut batch);
        lengths.extend(batch.datagram_runs().map(|run| run.payload.len()));
    }
    assert_eq!(lengths, [1_408, 1_408, 1_408, 100]);
}

#[test]
fn segments_above_the_limit_are_sent_unsegmented() {
    // The loopback MTU of 65,536 bytes is never exceeded, so the test sets the limit as a rejected size would.
    let mut network = SocketNetwork::new();
    let receiver = network.open(&SocketSpec::bound(any())).unwrap();
    let spec = SocketSpec::bound(any()).connected(receiver.local_address());
    let mut sender = open::open(&spec, true).unwrap();
    sender.limiter = sender
        .limiter
        .after_rejection(1_000, libc::EMSGSIZE)
        .unwrap();
    let payload = vec![0; 4_000];
    assert_eq!(
        sender
            .send(&[Transmit::connected(&payload).segmented(1_000)])
            .unwrap(),
        4_000
    );
    let before = sender.limiter;
    assert_eq!(
        sender
            .send(&[Transmit::connected(&payload).segmented(999)])
            .unwrap(),
        4_000
    );
    assert_eq!(sender.limiter, before);
}

#[test]
fn error_unrelated_to_segmentation_keeps_the_limit() {
    let mut sender = open::open(&SocketSpec::bound(any()), true).unwrap();
    let before = sender.limiter;
    let nowhere = SocketAddr::new(LOCALHOST, 0);
    let refused = sender.send(&[Transmit::to(nowhere, &[0; 64]).segmented(32)]);
    assert!(
        matches!(refused, Err(NetError::Send { length: 32, .. })),
        "{refused:?}"
    );
    assert_eq!(sender.limiter, before);
}

#[test]
fn wildcard_transport_can_change_routes() {
    let Ok(interfaces) = SocketNetwork::new().interfaces() else {
        return;
    };
    let outside = interfaces
        .iter()
        .find(|entry| entry.up && !entry.loopback && entry.address.is_ipv4());
    let Some(outside) = outside else { return };
    let mut network = SocketNetwork::new();
    let mut far = network
        .open(&SocketSpec::bound(SocketAddr::new(outside.address, 0)))
        .unwrap();
    let near = network.open(&SocketSpec::bound(any())).unwrap();
    for bind_port in [0, 0, far.local_address().port().wrapping_add(1).max(1_024)] {
        let spec = SocketSpec::bound(SocketAddr::from((Ipv4Addr::UNSPECIFIED, bind_port)));
        let Ok(mut client) = network.open(&spec.connected(near.local_address())) else {
            continue;
        };
        let port = client.local_address().port();
        client.connect(far.local_address()).unwrap();
        assert_eq!(client.local_address().port(), port);
        client.send(&[Transmit::connected(b"hello")]).unwrap();
        let mut batch = ReceiveBatch::new(1);
        assert_eq!(receive(&mut *far, &mut batch), 1);
        assert_eq!(
            batch.datagrams().next().unwrap().source,
            client.local_address()
        );
    }
}

#[test]
fn transport_sends_to_explicit_destinations_after_a_failed_connect() {
    let mut network = SocketNetwork::new();
    let mut old = network
        .open(&SocketSpec::bound((Ipv4Addr::LOCALHOST, 0).into()))
        .unwrap();
    let mut client = network
        .open(&SocketSpec::bound(any()).connected(old.local_address()))
        .unwrap();
    // Connecting to the broadcast address fails without `SO_BROADCAST`.
    let broadcast = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
    client.connect(broadcast).unwrap_err();
    let sent = client.send(&[Transmit::to(old.local_address(), b"hello")]);
    assert_eq!(sent.unwrap(), 5);
    let mut batch = ReceiveBatch::new(1);
    assert_eq!(receive(&mut *old, &mut batch), 1);
}

#[test]
fn datagrams_carry_receive_timestamps_if_requested() {
    let mut network = SocketNetwork::new();
    let spec = SocketSpec {
        receive_timestamps: true,
        ..SocketSpec::bound(any())
    };
    let mut receiver = network.open(&spec).unwrap();
    let peer = receiver.local_address();
    let mut sender = network
        .open(&SocketSpec::bound(any()).connected(peer))
        .unwrap();
    sender
        .send(&[Transmit::connected(&[0; 300]).segmented(100)])
        .unwrap();
    let mut batch = ReceiveBatch::new(4);
    receive(&mut *receiver, &mut batch);
    let stamp = batch.datagrams().next().unwrap().timestamp_ns.unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    // Checks epoch and unit only; the test may take any time.
    let age = Duration::from_nanos((now.as_nanos() as u64).abs_diff(stamp as u64));
    assert!(age < Duration::from_secs(24 * 3600), "{age:?}");
}

#[test]
fn dual_stack_socket_exchanges_datagrams_with_ipv4() {
    if !has_ipv6() {
        return;
    }
    let mut network = SocketNetwork::new();
    let mut dual = network
        .open(&SocketSpec::bound(SocketAddr::from((
            Ipv6Addr::UNSPECIFIED,
            0,
        ))))
        .unwrap();
    let mut v4 = network.open(&SocketSpec::bound(any())).unwrap();
    let there = v4.local_address();
    let payload = [1; 40];
    for transmit in [
        Transmit::to(there, &payload),
        Transmit::to(there, &payload).segmented(20),
    ] {
        assert_eq!(dual.send(&[transmit]).unwrap(), 40);
        assert_eq!(dual.send(&[transmit; 2]).unwrap(), 80);
    }
    let mut batch = ReceiveBatch::new(16);
    assert!(receive(&mut *v4, &mut batch) > 0);
    let here = SocketAddr::new(LOCALHOST, dual.local_address().port());
    v4.send(&[Transmit::to(here, b"back")]).unwrap();
    assert_eq!(receive(&mut *dual, &mut batch), 1);
    assert_eq!(batch.datagrams().next().unwrap().source, there);
}

#[test]
fn multicast_datagram_reaches_members_of_the_group_only() {
    let mut network = SocketNetwork::new();
    let interfaces = network.interfaces().unwrap();
    let local = interfaces.iter().find(|it| it.address == LOCALHOST);
    let interface = local.expect("the machine has a loopback interface");
    let role = |join, ttl| {
        Some(MulticastSpec {
            join,
            interface: interface.address,
            interface_index: interface.index,
            ttl,
        })
    };
    let group = Ipv4Addr::new(224, 20, 30, 39);
    let other_group = IpAddr::from([224, 20, 30, 41]);
    let mut open = |port: u16, join: IpAddr| {
        let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let spec = SocketSpec {
            multicast: role(Some(join), None),
            reuse_address: true,
            ..SocketSpec::bound(bind)
        };
        network.open(&spec).unwrap()
    };
    let mut first = open(0, group.into());
    let port = first.local_address().port();
    let mut second = open(port, group.into());
    let mut other = open(port, other_group);

    let spec = SocketSpec {
        multicast: role(None, Some(4)),
        ..SocketSpec::bound(any())
    };
    let mut sender = network
        .open(&spec.connected(SocketAddr::from((group, port))))
        .unwrap();
    assert_eq!(sender.multicast_ttl(), 4);
    assert_eq!(sender.send(&[Transmit::connected(b"to all")]).unwrap(), 6);
    let mut batch = ReceiveBatch::new(4);
    for receiver in [&mut first, &mut second] {
        assert_eq!(receive(&mut **receiver, &mut batch), 1);
        assert_eq!(batch.datagrams().next().unwrap().payload, b"to all");
    }
    assert_eq!(
        other.receive(&mut batch).unwrap(),
        0,
        "no datagrams of a group that was not joined"
    );

    let refused = network.open(&SocketSpec {
        multicast: role(Some(IpAddr::from([10, 0, 0, 1])), None),
        ..SocketSpec::bound(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    });
    assert!(matches!(refused, Err(NetError::Join { .. })));
}
