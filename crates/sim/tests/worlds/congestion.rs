//! Congestion control (docs/spec/wire.md §5.7).

use std::time::Duration;

use taran_protocol::counter::{SystemCounter, type_id};
use taran_sim::network::LinkFaults;
use taran_sim::{HostIndex, HostSpec, Publishing, Subscribing, World, seeded, weather};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

/// A host whose receivers measure round trips.
fn measuring(tcp_mode: bool) -> HostSpec {
    HostSpec::new()
        .option("aeron.CubicCongestionControl.measureRtt", "true")
        .option("aeron.CubicCongestionControl.tcpMode", tcp_mode.to_string())
}

/// The value of the first counter with this name.
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
    /// A round trip takes what the network takes, and a network without loss gets the whole window.
    cubic_measures_and_opens, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(seed % 2 == 0));
        let delay = between(&mut pair.world, Duration::from_micros(200), Duration::from_millis(5));
        pair.world.set_faults(LinkFaults { delay, ..LinkFaults::default() });
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(cubic(1), STREAM));
        let publishing = Publishing::new(channel(1), STREAM).messages(100);
        let publisher = pair.world.publish(pair.clients[0], publishing);
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
    /// Streams in both directions over a foul network, with a window that shrinks to a single datagram and opens again.
    cubic_in_foul_weather, 60, |seed| {
        let tcp_mode = seed % 2 == 0;
        let mut pair = Pair::of(seed, measuring(tcp_mode), measuring(!tcp_mode));
        let faults = weather::foul(pair.world.random());
        pair.world.set_faults(faults);
        let mut flows = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let subscriber = pair.world.subscribe(pair.clients[to], Subscribing::new(cubic(to), STREAM));
            let publishing = Publishing::new(channel(to), STREAM).messages(250);
            flows.push((subscriber, pair.world.publish(pair.clients[from], publishing)));
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
    /// Half of all is lost for a while: the window is small afterwards, and grows when all is well again.
    cubic_recovers, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(false));
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(cubic(1), STREAM));
        let publishing = Publishing::new(channel(1), STREAM).messages(600);
        let publisher = pair.world.publish(pair.clients[0], publishing);
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
    /// A client that dies takes the counters of its images along, in time.
    cubic_dies_with_its_client, 20, |seed| {
        let mut pair = Pair::of(seed, measuring(false), measuring(true));
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(cubic(1), STREAM));
        let publishing = Publishing::new(channel(1), STREAM).messages(100);
        let publisher = pair.world.publish(pair.clients[0], publishing);
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
    /// The links are cut for a while, in one direction or both: that is not taken for a round trip, and the window is as
    /// wide as before when all is well again.
    round_trips_and_cuts, 30, |seed| {
        let mut pair = Pair::of(seed, HostSpec::new(), measuring(seed % 2 == 0));
        let delay = between(&mut pair.world, Duration::from_micros(200), Duration::from_millis(5));
        pair.world.set_faults(LinkFaults { delay, ..LinkFaults::default() });
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(cubic(1), STREAM));
        let publishing = Publishing::new(channel(1), STREAM).pause(Duration::from_millis(10));
        let publisher = pair.world.publish(pair.clients[0], publishing.messages(200));
        await_offered(&mut pair.world, publisher, 50);
        let ids = pair.hosts.map(|host| pair.world.network_id(host));
        for _ in 0..3 {
            let (forth, back) = [(true, true), (true, false), (false, true)][pair.world.random().usize(0..3)];
            if forth {
                pair.world.network().cut(ids[0], ids[1]);
            }
            if back {
                pair.world.network().cut(ids[1], ids[0]);
            }
            let pause = between(&mut pair.world, Duration::from_millis(50), Duration::from_secs(9));
            pair.world.run_for(pause);
            pair.world.network().heal_all();
            pair.world.publisher_mut(publisher).more(20);
            pair.world.run_for(Duration::from_secs(4));
            let measured = indicator(&pair.world, pair.hosts[1], "rcv-cc-cubic-rtt").unwrap();
            let trip_ns = 2 * delay.as_nanos() as i64;
            // Agents take their turns at most 10 ms apart, and two of them have a part in it.
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
