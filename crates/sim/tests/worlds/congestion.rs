// SPDX-License-Identifier: Apache-2.0
//! Congestion control (docs/spec/wire.md §5.7).

use std::time::Duration;

use taran_protocol::counter::{SystemCounter, type_id};
use taran_sim::network::LinkFaults;
use taran_sim::{HostIndex, HostSpec, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

/// A host whose receivers measure round-trip times.
fn measuring(tcp_mode: bool) -> HostSpec {
    HostSpec::new()
        .option("aeron.CubicCongestionControl.measureRtt", "true")
        .option("aeron.CubicCongestionControl.tcpMode", tcp_mode.to_string())
}

/// Returns the value of the first counter with this name.
fn indicator(world: &World, host: HostIndex, name: &str) -> Option<i64> {
    let mut found = None;
    world.counters(host).for_each(|meta| {
        if meta.type_id == type_id::PER_IMAGE && meta.label.starts_with(name) {
            found = found.or(world.counters(host).value(meta.id));
        }
    });
    found
}

fn cubic(host: usize) -> String {
    format!("{}|cc=cubic", channel(host))
}

seeded! {
    /// The measured round-trip time is that of the network, and without loss the window opens fully.
    cubic_measures_and_opens, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(seed % 2 == 0));
        let delay = between(&mut pair.world, Duration::from_micros(200), Duration::from_millis(5));
        pair.world.set_faults(LinkFaults { delay, ..LinkFaults::default() });
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(cubic(1), STREAM));
        let publication = PublisherSpec::new(channel(1), STREAM).messages(100);
        let publisher = pair.world.publish(pair.clients[0], publication);
        await_all(&mut pair.world, &[(subscriber, publisher)]);
        pair.world.run_for(Duration::from_secs(3));
        let round_trip_ns = indicator(&pair.world, pair.hosts[1], "rcv-cc-cubic-rtt").unwrap();
        let least_ns = 2 * delay.as_nanos() as i64;
        assert!(round_trip_ns >= least_ns, "{round_trip_ns} < {least_ns}");
        let window = indicator(&pair.world, pair.hosts[1], "rcv-cc-cubic-wnd").unwrap();
        assert_eq!(window, 32_768 / 1_408 * 1_408);
        pair.end();
    }
}

seeded! {
    /// Streams in both directions over a faulty network, with a window that shrinks to a single datagram and opens
    /// again.
    cubic_on_faulty_network, 60, |seed| {
        let tcp_mode = seed % 2 == 0;
        let mut pair = Pair::of(seed, measuring(tcp_mode), measuring(!tcp_mode));
        let faults = link_profiles::faulty(pair.world.random());
        pair.world.set_faults(faults);
        let mut flows = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let subscriber = pair.world.subscribe(pair.clients[to], SubscriberSpec::new(cubic(to), STREAM));
            let publication = PublisherSpec::new(channel(to), STREAM).messages(250);
            flows.push((subscriber, pair.world.publish(pair.clients[from], publication)));
        }
        await_all(&mut pair.world, &flows);
        for host in pair.hosts {
            let over_runs = pair.world.system(host, SystemCounter::FlowControlOverRuns);
            assert_eq!(over_runs, 0, "{host:?} was sent more than it had room for");
        }
        pair.end();
    }
}

seeded! {
    /// Half of all datagrams are lost for a while: the window shrinks, and grows when the network is restored.
    cubic_window_shrinks_and_recovers, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(false));
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(cubic(1), STREAM));
        let publication = PublisherSpec::new(channel(1), STREAM).messages(600);
        let publisher = pair.world.publish(pair.clients[0], publication);
        await_offered(&mut pair.world, publisher, 50);
        pair.world.set_faults(LinkFaults::loss(0.5));
        pair.world.run_for(Duration::from_millis(200));
        let (window, host) = ("rcv-cc-cubic-wnd", pair.hosts[1]);
        let shrunk = |world: &World| indicator(world, host, window).is_some_and(|w| w < 10 * 1_408);
        pair.world.run_until("the window has shrunk, or all is there", LONG, |world| {
            shrunk(world) || world.has_all(subscriber, publisher)
        });
        pair.world.set_faults(LinkFaults::default());
        await_all(&mut pair.world, &[(subscriber, publisher)]);
        pair.world.run_for(Duration::from_secs(5));
        assert_eq!(indicator(&pair.world, host, window), Some(32_768 / 1_408 * 1_408));
        pair.end();
    }
}

seeded! {
    /// When a client dies, the counters of its images are freed in time.
    cubic_counters_freed, 20, |seed| {
        let mut pair = Pair::of(seed, measuring(false), measuring(true));
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(cubic(1), STREAM));
        let publication = PublisherSpec::new(channel(1), STREAM).messages(100);
        let publisher = pair.world.publish(pair.clients[0], publication);
        await_offered(&mut pair.world, publisher, 20);
        let victim = pair.clients[usize::from(pair.world.random().bool())];
        let _ = subscriber;
        pair.world.kill_client(victim);
        pair.world.run_for(Duration::from_secs(60));
        for host in pair.hosts {
            assert_eq!(indicator(&pair.world, host, "rcv-cc-cubic"), None);
        }
        pair.end();
    }
}

seeded! {
    /// The links are cut for a while, in one direction or both: this does not disturb the round-trip measurement, and
    /// the window opens fully again.
    round_trips_and_partitions, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(seed % 2 == 0));
        let delay = between(&mut pair.world, Duration::from_micros(200), Duration::from_millis(5));
        pair.world.set_faults(LinkFaults { delay, ..LinkFaults::default() });
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(cubic(1), STREAM));
        let publication = PublisherSpec::new(channel(1), STREAM).pause(Duration::from_millis(10));
        let publisher = pair.world.publish(pair.clients[0], publication.messages(200));
        await_offered(&mut pair.world, publisher, 50);
        let ids = pair.hosts.map(|host| pair.world.network_id(host));
        for _ in 0..3 {
            let (forward, back) = [(true, true), (true, false), (false, true)][pair.world.random().usize(0..3)];
            if forward {
                pair.world.network().cut(ids[0], ids[1]);
            }
            if back {
                pair.world.network().cut(ids[1], ids[0]);
            }
            let pause = between(&mut pair.world, Duration::from_millis(50), Duration::from_secs(9));
            pair.world.run_for(pause);
            pair.world.network().heal_all();
            pair.world.publisher_mut(publisher).publish_more(20);
            pair.world.run_for(Duration::from_secs(4));
            let measured = indicator(&pair.world, pair.hosts[1], "rcv-cc-cubic-rtt").unwrap();
            let trip_ns = 2 * delay.as_nanos() as i64;
            // Two agents with at most 10 ms between their duty cycles contribute.
            let most_ns = trip_ns + 40_000_000;
            assert!((trip_ns..most_ns).contains(&measured), "{measured} of {trip_ns}");
        }
        pair.await_all((subscriber, publisher));
        assert!(pair.world.subscriber(subscriber).ended().is_empty());
        pair.world.run_for(Duration::from_secs(5));
        let window = indicator(&pair.world, pair.hosts[1], "rcv-cc-cubic-wnd");
        assert_eq!(window, Some(32_768 / 1_408 * 1_408));
        pair.end();
    }
}
