// SPDX-License-Identifier: Apache-2.0
//! Tables of neighbours and routes, by scripts and with hostile peers.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use taran_ether::{
    MacAddress, NeighbourOutput, NeighbourTable, Prefix, Resolution, Route, RouteError, RouteTable,
};

const SECOND: i64 = 1_000_000_000;
const MAC_1: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const MAC_2: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn address(number: u32) -> IpAddr {
    Ipv4Addr::from(0x0A00_0000 + number).into()
}

fn outputs(table: &mut NeighbourTable<u32>, now: i64) -> Vec<NeighbourOutput<u32>> {
    std::iter::from_fn(|| table.poll(now)).collect()
}

fn solicit(target: IpAddr, known: Option<MacAddress>) -> NeighbourOutput<u32> {
    NeighbourOutput::Solicit { target, known }
}

/// A table that knows one neighbour since time 0.
fn with_neighbour(target: IpAddr) -> NeighbourTable<u32> {
    let mut table = NeighbourTable::new(8);
    assert_eq!(table.resolve(target, 0), Resolution::Pending);
    assert_eq!(outputs(&mut table, 0), [solicit(target, None)]);
    table.learn(target, MAC_1, true, 0);
    assert_eq!(outputs(&mut table, 0), []);
    assert_eq!(table.resolve(target, 0), Resolution::Known(MAC_1));
    table
}

#[test]
fn neighbour_that_answers_gets_what_waited_with_the_oldest_displaced() {
    let target = ip("fe80::2");
    let mut table = NeighbourTable::new(8);
    assert_eq!(table.hold(target, 0), Some(0));
    assert_eq!(table.resolve(target, 0), Resolution::Pending);
    let displaced: Vec<_> = (1..=5)
        .filter_map(|item| table.hold(target, item))
        .collect();
    assert_eq!(displaced, [1, 2]);
    assert_eq!(outputs(&mut table, 0), [solicit(target, None)]);
    table.learn(target, MAC_1, true, 10);
    let mac = MAC_1;
    let sent = [3, 4, 5].map(|item| NeighbourOutput::Send { target, mac, item });
    assert_eq!(outputs(&mut table, 10), sent);
    assert_eq!(table.hold(target, 6), Some(6));
    assert_eq!(table.counters().displaced, 2);
}

#[test]
fn neighbour_without_answer_is_asked_three_times_and_fails_for_three_seconds() {
    let target = ip("10.0.0.2");
    let mut table = NeighbourTable::new(8);
    table.resolve(target, 0);
    assert_eq!(table.hold(target, 7), None);
    for second in 0..3 {
        assert_eq!(
            outputs(&mut table, second * SECOND),
            [solicit(target, None)]
        );
        assert_eq!(table.next_deadline_ns(), Some((second + 1) * SECOND));
        assert_eq!(outputs(&mut table, (second + 1) * SECOND - 1), []);
    }
    let dropped = NeighbourOutput::Drop { target, item: 7 };
    assert_eq!(outputs(&mut table, 3 * SECOND), [dropped]);
    assert_eq!(table.counters().failed, 1);
    assert_eq!(table.next_deadline_ns(), None);
    assert_eq!(table.resolve(target, 6 * SECOND - 1), Resolution::Failed);
    assert_eq!(outputs(&mut table, 6 * SECOND - 1), []);
    assert_eq!(table.resolve(target, 6 * SECOND), Resolution::Pending);
    assert_eq!(outputs(&mut table, 6 * SECOND), [solicit(target, None)]);
}

#[test]
fn neighbour_in_use_is_confirmed_at_its_address_and_lost_if_it_is_silent() {
    let target = ip("10.0.0.2");
    let mut table = with_neighbour(target);
    assert_eq!(table.next_deadline_ns(), Some(30 * SECOND));
    assert_eq!(outputs(&mut table, 30 * SECOND), []);
    assert_eq!(table.next_deadline_ns(), None);
    // Sending goes on while it is being confirmed.
    assert_eq!(table.resolve(target, 40 * SECOND), Resolution::Known(MAC_1));
    assert_eq!(
        outputs(&mut table, 40 * SECOND),
        [solicit(target, Some(MAC_1))]
    );
    table.learn(target, MAC_1, true, 40 * SECOND);
    assert_eq!(table.next_deadline_ns(), Some(i64::MIN));
    assert_eq!(outputs(&mut table, 40 * SECOND), []);
    assert_eq!(table.next_deadline_ns(), Some(70 * SECOND));

    outputs(&mut table, 70 * SECOND);
    table.resolve(target, 80 * SECOND);
    let generation = table.generation();
    for second in 80..83 {
        let known = Some(MAC_1);
        assert_eq!(
            outputs(&mut table, second * SECOND),
            [solicit(target, known)]
        );
    }
    assert_eq!(outputs(&mut table, 83 * SECOND), []);
    assert_eq!(table.resolve(target, 83 * SECOND), Resolution::Failed);
    assert_ne!(table.generation(), generation);
}

#[test]
fn neighbour_that_changes_its_address_is_confirmed_and_changes_once_a_second() {
    let target = ip("10.0.0.2");
    let mut table = with_neighbour(target);
    let generation = table.generation();
    table.learn(target, MAC_2, false, SECOND);
    assert_ne!(table.generation(), generation);
    assert_eq!(table.resolve(target, SECOND), Resolution::Known(MAC_2));
    assert_eq!(outputs(&mut table, SECOND), [solicit(target, Some(MAC_2))]);
    table.learn(target, MAC_1, true, 2 * SECOND - 1);
    assert_eq!(
        table.resolve(target, 2 * SECOND - 1),
        Resolution::Known(MAC_2)
    );
    assert_eq!(table.counters().refused, 1);
    table.learn(target, MAC_1, true, 2 * SECOND);
    assert_eq!(table.resolve(target, 2 * SECOND), Resolution::Known(MAC_1));
    assert_eq!(table.counters().changed, 2);
    // Neither a group nor a zero address belongs to a neighbour.
    table.learn(target, MacAddress::BROADCAST, true, 9 * SECOND);
    table.learn(target, MacAddress([0; 6]), true, 9 * SECOND);
    assert_eq!(table.resolve(target, 9 * SECOND), Resolution::Known(MAC_1));
}

#[test]
fn messages_about_addresses_that_are_not_asked_for_make_no_entry() {
    let target = ip("10.0.0.2");
    let mut table = with_neighbour(target);
    for number in 0..10_000 {
        table.learn(address(1000 + number), MAC_2, number % 2 == 0, 0);
    }
    assert_eq!((table.len(), table.counters().unasked), (1, 10_000));
    assert_eq!(outputs(&mut table, 0), []);
}

#[test]
fn addresses_that_do_not_exist_never_displace_those_that_answer() {
    let mut table = NeighbourTable::new(8);
    for number in 0..4 {
        table.resolve(address(number), 0);
        table.learn(address(number), MAC_1, true, 0);
    }
    outputs(&mut table, 0);
    let mut dropped = 0;
    for number in 0..1000 {
        let now = i64::from(number) * SECOND;
        table.resolve(address(100 + number), now);
        assert_eq!(table.hold(address(100 + number), number), None);
        let all = outputs(&mut table, now);
        let is_drop =
            |output: &&NeighbourOutput<u32>| matches!(output, NeighbourOutput::Drop { .. });
        dropped += all.iter().filter(is_drop).count();
        assert!(table.len() <= 8);
        for known in 0..4 {
            // Answers keep them alive, as ARP does.
            table.learn(address(known), MAC_1, true, now);
            assert_eq!(table.resolve(address(known), now), Resolution::Known(MAC_1));
        }
    }
    // Each item is given back, except those of the addresses that are still pending.
    assert!((990..=1000).contains(&dropped), "{dropped}");
}

#[test]
fn table_full_of_neighbours_in_use_takes_another_one_after_a_minute_without_use() {
    let mut table = NeighbourTable::new(4);
    for number in 0..4 {
        assert_eq!(table.resolve(address(number), 0), Resolution::Pending);
        table.learn(address(number), MAC_1, true, 0);
        outputs(&mut table, 0);
    }
    let late = address(9);
    assert_eq!(table.resolve(late, 59 * SECOND), Resolution::TableFull);
    assert_eq!(table.counters().full, 1);
    table.resolve(address(0), 59 * SECOND);
    assert_eq!(table.resolve(late, 60 * SECOND), Resolution::Pending);
    assert_eq!(
        table.resolve(address(0), 60 * SECOND),
        Resolution::Known(MAC_1)
    );
    assert_eq!(table.len(), 4);
}

proptest! {
    #[test]
    fn table_is_bounded_and_gives_each_item_back_once(steps in prop::collection::vec((0u8..5, 0u32..12, 0i64..20 * SECOND, any::<bool>()), 1..400)) {
        let mut table = NeighbourTable::new(6);
        let (mut now, mut given, mut returned) = (0, 0u32, Vec::new());
        for (what, number, wait, flag) in steps {
            let target = address(number);
            match what {
                0 | 1 => { table.resolve(target, now); }
                2 => {
                    returned.extend(table.hold(target, given));
                    given += 1;
                }
                3 => table.learn(target, if flag { MAC_1 } else { MAC_2 }, wait % 2 == 0, now),
                _ => now += wait,
            }
            let mut polls = 0;
            while let Some(output) = table.poll(now) {
                polls += 1;
                prop_assert!(polls < 100);
                match output {
                    NeighbourOutput::Send { item, .. } | NeighbourOutput::Drop { item, .. } => returned.push(item),
                    NeighbourOutput::Solicit { .. } => {}
                }
            }
            prop_assert!(table.len() <= 6);
            if let Some(deadline) = table.next_deadline_ns() {
                prop_assert!(deadline > now);
            }
        }
        // Silence for long enough ends everything that waits.
        for _ in 0..10 {
            now += 5 * SECOND;
            while let Some(output) = table.poll(now) {
                if let NeighbourOutput::Send { item, .. } | NeighbourOutput::Drop { item, .. } = output {
                    returned.push(item);
                }
            }
        }
        returned.sort_unstable();
        prop_assert_eq!(returned, (0..given).collect::<Vec<_>>());
    }
}

fn route(destinations: &str, length: u8, gateway: Option<&str>, metric: u32) -> Route {
    Route {
        destinations: Prefix::new(ip(destinations), length).unwrap(),
        gateway: gateway.map(ip),
        interface: 2,
        source: if destinations.contains(':') {
            ip("fd00::1")
        } else {
            ip("10.0.0.1")
        },
        mtu: 1500,
        metric,
    }
}

#[test]
fn hop_is_that_of_the_longest_prefix_and_the_lowest_metric() {
    let mut table = RouteTable::new(10, 10);
    for route in [
        route("0.0.0.0", 0, Some("10.0.0.254"), 5),
        route("0.0.0.0", 0, Some("10.0.0.253"), 4),
        route("10.0.0.0", 24, None, 0),
        route("10.0.0.128", 25, Some("10.0.0.3"), 9),
        route("::", 0, Some("fd00::ffff"), 0),
        route("fd00::", 64, None, 0),
    ] {
        table.add(route).unwrap();
    }
    let next = |table: &RouteTable, to: &str| table.hop(ip(to)).map(|hop| hop.next);
    assert_eq!(next(&table, "192.0.2.1"), Some(ip("10.0.0.253")));
    assert_eq!(next(&table, "10.0.0.2"), Some(ip("10.0.0.2")));
    assert_eq!(next(&table, "10.0.0.129"), Some(ip("10.0.0.3")));
    assert_eq!(next(&table, "fd00::2"), Some(ip("fd00::2")));
    assert_eq!(next(&table, "2001:db8::1"), Some(ip("fd00::ffff")));
    let generation = table.generation();
    assert!(table.remove(Prefix::new(ip("0.0.0.0"), 0).unwrap(), 2));
    assert!(!table.remove(Prefix::new(ip("0.0.0.0"), 0).unwrap(), 2));
    assert_eq!(table.generation(), generation + 1);
    assert_eq!(next(&table, "192.0.2.1"), None);
}

#[test]
fn add_beyond_the_capacity_or_of_mixed_versions_is_refused() {
    let mut table = RouteTable::new(2, 0);
    table.add(route("10.0.0.0", 24, None, 0)).unwrap();
    table.add(route("10.0.1.0", 24, None, 0)).unwrap();
    let full = table.add(route("10.0.2.0", 24, None, 0));
    assert_eq!(full, Err(RouteError::Full { most: 2 }));
    let mut same = route("10.0.1.0", 24, None, 0);
    same.mtu = 9000;
    assert_eq!(table.add(same), Ok(()));
    assert_eq!(table.hop(ip("10.0.1.7")).unwrap().mtu, 9000);
    let mixed = route("10.0.0.0", 24, Some("fd00::1"), 0);
    assert_eq!(table.add(mixed), Err(RouteError::Versions));
    assert_eq!(Prefix::new(ip("10.0.0.0"), 33), None);
    assert_eq!(Prefix::new(ip("::"), 129), None);
}

#[test]
fn mtu_of_a_path_is_bounded_and_ends_after_ten_minutes() {
    let mut table = RouteTable::new(4, 2);
    table
        .add(route("0.0.0.0", 0, Some("10.0.0.254"), 0))
        .unwrap();
    table.add(route("::", 0, Some("fd00::ffff"), 0)).unwrap();
    let (far, far6) = (ip("192.0.2.1"), ip("2001:db8::1"));
    assert!(!table.packet_too_big(far, 1500, 0));
    assert!(table.packet_too_big(far, 1400, 0));
    assert!(table.packet_too_big(far, 0, 0));
    assert_eq!(table.hop(far).unwrap().mtu, 576);
    // A later error never makes it larger.
    assert!(!table.packet_too_big(far, 1400, SECOND));
    assert!(!table.packet_too_big(far6, 1279, SECOND));
    assert!(table.packet_too_big(far6, 1280, SECOND));
    assert_eq!(table.next_deadline_ns(), Some(600 * SECOND));
    // A third path displaces the one that ends first.
    assert!(table.packet_too_big(ip("192.0.2.2"), 1000, 2 * SECOND));
    assert_eq!(table.hop(far).unwrap().mtu, 1500);
    table.expire(601 * SECOND);
    assert_eq!(table.hop(far6).unwrap().mtu, 1500);
    assert_eq!(table.hop(ip("192.0.2.2")).unwrap().mtu, 1000);
    table.expire(602 * SECOND);
    assert_eq!(table.next_deadline_ns(), None);
}
