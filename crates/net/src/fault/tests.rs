// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use super::*;
use crate::{
    LayeredNetwork, Network, ReceiveBatch, SocketNetwork, Transmit, Transport, conformance,
};

const SEGMENT: usize = 8;

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Sends numbered datagrams in batches through a network with those faults; returns the numbers that arrive.
fn exchange(spec: FaultSpec, count: u64) -> (Vec<u64>, FaultCounts) {
    let layer = FaultLayer::new(spec);
    let control = layer.control();
    let mut network = LayeredNetwork::with_layer(SocketNetwork::new(), layer);
    let mut receiver = network.open(&SocketSpec::bound(any())).unwrap();
    let peer = receiver.local_address();
    let mut sender = network
        .open(&SocketSpec::bound(any()).connected(peer))
        .unwrap();
    let mut batch = ReceiveBatch::new(4);
    let mut arrived = Vec::new();
    let mut numbers: VecDeque<u64> = (0..count).collect();
    while !numbers.is_empty() {
        let payload: Vec<u8> = numbers
            .iter()
            .take(50)
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let accepted = sender
            .send(&[Transmit::connected(&payload).segmented(SEGMENT)])
            .unwrap();
        numbers.drain(..accepted / SEGMENT);
        take(&mut *receiver, &mut batch, &mut arrived);
    }
    // Enough calls for all delayed datagrams.
    for _ in 0..200 {
        sender.send(&[]).unwrap();
        take(&mut *receiver, &mut batch, &mut arrived);
    }
    (arrived, control.counts())
}

fn take(receiver: &mut dyn Transport, batch: &mut ReceiveBatch, arrived: &mut Vec<u64>) {
    while receiver.receive(batch).unwrap() > 0 {
        arrived.extend(
            batch
                .datagrams()
                .map(|datagram| u64::from_le_bytes(datagram.payload.try_into().unwrap())),
        );
    }
}

fn spec(incoming: FaultRates, outgoing: FaultRates) -> FaultSpec {
    FaultSpec {
        incoming,
        outgoing,
        seed: 42,
    }
}

#[test]
fn network_without_faults_conforms() {
    let settle = &mut || {
        thread::sleep(Duration::from_micros(50));
    };
    let localhost = IpAddr::from(Ipv4Addr::LOCALHOST);
    for network in [SocketNetwork::new(), SocketNetwork::without_offload()] {
        let layer = FaultLayer::new(FaultSpec::default());
        let mut network = LayeredNetwork::with_layer(network, layer);
        conformance::run(&mut network, localhost, settle);
    }
}

#[test]
fn loss_rate_applies_in_either_direction() {
    for spec in [
        spec(FaultRates::loss(0.1), FaultRates::NONE),
        spec(FaultRates::NONE, FaultRates::loss(0.1)),
    ] {
        let (arrived, counts) = exchange(spec, 5_000);
        assert!((400..600).contains(&counts.lost), "{counts:?}");
        assert_eq!(arrived.len() as u64, 5_000 - counts.lost);
        assert!(arrived.is_sorted_by(|left, right| left < right));
    }
}

#[test]
fn duplicate_rate_applies_in_either_direction() {
    let rates = FaultRates {
        duplicate: 0.1,
        ..FaultRates::NONE
    };
    for spec in [spec(rates, FaultRates::NONE), spec(FaultRates::NONE, rates)] {
        let (arrived, counts) = exchange(spec, 5_000);
        assert!((400..600).contains(&counts.duplicated), "{counts:?}");
        assert_eq!(arrived.len() as u64, 5_000 + counts.duplicated);
        let mut distinct = arrived;
        distinct.dedup();
        assert!(distinct.into_iter().eq(0..5_000));
    }
}

#[test]
fn reorder_rate_applies_in_either_direction_and_loses_nothing() {
    let rates = FaultRates {
        reorder: 0.1,
        ..FaultRates::NONE
    };
    for spec in [spec(rates, FaultRates::NONE), spec(FaultRates::NONE, rates)] {
        let (mut arrived, counts) = exchange(spec, 5_000);
        assert!((400..600).contains(&counts.reordered), "{counts:?}");
        let late = arrived.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(late > 100, "{late} were overtaken");
        arrived.sort_unstable();
        assert!(arrived.into_iter().eq(0..5_000));
    }
}

#[test]
fn same_seed_gives_same_faults() {
    let rates = FaultRates {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.05,
    };
    let run = |seed| {
        exchange(
            FaultSpec {
                outgoing: rates,
                incoming: FaultRates::NONE,
                seed,
            },
            2_000,
        )
        .0
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn rates_can_change_at_run_time() {
    let layer = FaultLayer::new(FaultSpec::default());
    let control = layer.control();
    let mut network = LayeredNetwork::with_layer(SocketNetwork::new(), layer);
    let mut receiver = network.open(&SocketSpec::bound(any())).unwrap();
    let peer = receiver.local_address();
    let mut sender = network
        .open(&SocketSpec::bound(any()).connected(peer))
        .unwrap();
    let mut arrived = Vec::new();
    for (number, rate) in [(0_u64, 0.0), (1, 1.0), (2, 0.0)] {
        control.set_outgoing(FaultRates::loss(rate));
        sender
            .send(&[Transmit::connected(&number.to_le_bytes())])
            .unwrap();
        take(&mut *receiver, &mut ReceiveBatch::new(1), &mut arrived);
    }
    assert_eq!(arrived, [0, 2]);
    assert_eq!(control.counts().lost(), 1);
}
