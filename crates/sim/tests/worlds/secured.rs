//! Secured channels between hosts, with real ciphers.

use std::time::Duration;

use taran_protocol::counter::SecureCounter;
use taran_sim::{HostIndex, HostSpec, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{Pair, STREAM, await_all, channel, end};

/// Returns the value of a counter of transport security.
fn count(world: &World, host: HostIndex, which: SecureCounter) -> i64 {
    let counters = world.counters(host);
    let mut value = None;
    counters.for_each(|counter| {
        if counter.type_id == which.type_id() {
            value = counters.value(counter.id);
        }
    });
    value.expect("a secured driver has these counters")
}

/// Everything is allowed.
const ALL: &str = "publish=* subscribe=*";

/// Returns a host that trusts hosts 0 to 3.
fn trusting_all() -> HostSpec {
    HostSpec::new().secured(&[(0, ALL), (1, ALL), (2, ALL), (3, ALL)])
}

fn pair(seed: u64) -> Pair {
    Pair::of(seed, trusting_all(), trusting_all())
}

seeded! {
    /// A stream arrives exactly, nothing plain is on the wire, and the link has one handshake.
    unicast_on_a_clean_network, 10, |seed| {
        let mut pair = pair(seed);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let flow = pair.flow(300);
        pair.await_all(flow);
        for host in pair.hosts {
            for (counter, expected) in [
                (SecureCounter::Handshakes, 1),
                (SecureCounter::FailedOpens, 0),
                (SecureCounter::OutOfBounds, 0),
                (SecureCounter::PlainRefused, 0),
                (SecureCounter::Links, 1),
            ] {
                assert_eq!(count(&pair.world, host, counter), expected, "{counter:?}");
            }
        }
        pair.end();
    }
}

seeded! {
    /// Streams in both directions over a network with loss, duplication, reordering and refused sends.
    unicast_on_a_faulty_network, 12, |seed| {
        let Pair { mut world, clients, .. } = pair(seed);
        let faults = link_profiles::faulty(world.random());
        world.set_faults(faults);
        let mut flows = Vec::new();
        for stream_id in 0..4 {
            let (from, to) = if stream_id % 2 == 0 { (0, 1) } else { (1, 0) };
            let subscriber = world.subscribe(clients[to], SubscriberSpec::new(channel(to), stream_id));
            let publication = PublisherSpec::new(channel(to), stream_id).exclusive(stream_id < 2);
            flows.push((subscriber, world.publish(clients[from], publication.messages(150))));
        }
        await_all(&mut world, &flows);
        end(world);
    }
}

seeded! {
    /// A receiver that the sender does not trust, or that may not subscribe, gets nothing.
    untrusted_receiver, 6, |seed| {
        let sender = if seed % 2 == 0 {
            HostSpec::new().secured(&[(2, ALL)])
        } else {
            HostSpec::new().secured(&[(1, "publish=*")])
        };
        let mut pair = Pair::of(seed, sender, trusting_all());
        let (_, publisher) = pair.flow(10);
        pair.world.run_for(Duration::from_secs(20));
        assert_eq!(pair.world.publisher(publisher).offered(), 0);
        assert_eq!(pair.world.delivered_on(pair.hosts[1]), 0);
        assert!(count(&pair.world, pair.hosts[0], SecureCounter::HandshakesRefused) > 0);
        assert_eq!(count(&pair.world, pair.hosts[0], SecureCounter::Links), 0);
        pair.world.close_all();
    }
}

seeded! {
    /// A plain driver and a secured one exchange nothing, in either direction.
    plain_peer, 4, |seed| {
        let (left, right) = if seed % 2 == 0 {
            (trusting_all(), HostSpec::new())
        } else {
            (HostSpec::new(), trusting_all())
        };
        let mut pair = Pair::of(seed, left, right);
        let (_, publisher) = pair.flow(10);
        pair.world.run_for(Duration::from_secs(20));
        assert_eq!(pair.world.publisher(publisher).offered(), 0);
        assert_eq!(pair.world.delivered_on(pair.hosts[1]), 0);
        pair.world.close_all();
    }
}

seeded! {
    /// Either driver is killed and restarted at any time, also in the middle of a handshake.
    restarts, 12, |seed| {
        let mut world = World::new(seed);
        let hosts = [world.add_host(trusting_all()), world.add_host(trusting_all())];
        let faults = link_profiles::clean(world.random());
        world.set_faults(faults);
        for round in 0..3 {
            let clients = hosts.map(|host| world.connect(host));
            let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
            let publisher = world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(50));
            if round == 2 {
                await_all(&mut world, &[(subscriber, publisher)]);
                break;
            }
            let pause = world.random().u64(0..5_000);
            world.run_for(Duration::from_micros(pause));
            let victim = hosts[world.random().usize(0..2)];
            for client in clients {
                world.close_client(client);
            }
            world.run_for(Duration::from_millis(1));
            world.kill_driver(victim);
            world.run_for(Duration::from_secs(11));
            world.start_driver(victim);
        }
        world.close_all();
    }
}

seeded! {
    /// A stream is exact although bits are flipped in one of ten datagrams: none of them is opened.
    corrupting_network, 10, |seed| {
        let mut pair = pair(seed);
        let faults = link_profiles::corrupting(pair.world.random());
        pair.world.set_faults(faults);
        let flow = pair.flow(300);
        pair.await_all(flow);
        assert!(count(&pair.world, pair.hosts[1], SecureCounter::FailedOpens) > 0);
        pair.world.close_all();
    }
}

seeded! {
    /// Groups of two receivers: multicast, manual and dynamic destinations. What is sealed once is opened by both.
    groups, 12, |seed| {
        let mut world = World::new(seed);
        let hosts = [0; 3].map(|_| world.add_host(trusting_all()));
        let faults = if seed % 2 == 0 {
            link_profiles::clean(world.random())
        } else {
            link_profiles::faulty(world.random())
        };
        world.set_faults(faults);
        let clients = hosts.map(|host| world.connect(host));
        let (to, from): (PublisherSpec, fn(usize) -> String) = match seed % 3 {
            0 => (
                PublisherSpec::new(format!("{GROUP}|fc=min,g:/2"), STREAM),
                |_| GROUP.to_owned(),
            ),
            1 => (
                PublisherSpec::new("aeron:udp?control-mode=manual|fc=min,g:/2", STREAM)
                    .destination(channel(1))
                    .destination(channel(2)),
                channel,
            ),
            _ => (
                PublisherSpec::new(
                    "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic|fc=min,g:/2",
                    STREAM,
                ),
                |host| format!("{}|control=10.0.0.1:40200", channel(host)),
            ),
        };
        let subscribers =
            [1, 2].map(|host| world.subscribe(clients[host], SubscriberSpec::new(from(host), STREAM)));
        let publisher = world.publish(clients[0], to.messages(150));
        await_all(&mut world, &subscribers.map(|subscriber| (subscriber, publisher)));
        assert_eq!(count(&world, hosts[0], SecureCounter::PlainRefused), 0);
        end(world);
    }
}

const GROUP: &str = "aeron:udp?endpoint=224.20.30.39:40123";

seeded! {
    /// One subscription receives a stream on two sockets: a link and a replay window each, one owner.
    two_paths, 8, |seed| {
        let Pair { mut world, clients, .. } = pair(seed);
        let faults = link_profiles::faulty(world.random());
        world.set_faults(faults);
        let paths = [40_123, 40_124].map(|port| format!("aeron:udp?endpoint=10.0.0.2:{port}"));
        let manual = "aeron:udp?control-mode=manual";
        let subscription = SubscriberSpec::new(manual, STREAM)
            .source(paths[0].as_str())
            .source(paths[1].as_str());
        let subscriber = world.subscribe(clients[1], subscription);
        let publication = PublisherSpec::new(manual, STREAM)
            .destination(paths[0].as_str())
            .destination(paths[1].as_str());
        let publisher = world.publish(clients[0], publication.messages(200));
        await_all(&mut world, &[(subscriber, publisher)]);
        end(world);
    }
}

seeded! {
    /// Keys are rotated at either end while messages flow, over a network with faults: no message is lost.
    rotation_under_load, 10, |seed| {
        let mut pair = pair(seed);
        let faults = if seed % 2 == 0 {
            link_profiles::clean(pair.world.random())
        } else {
            link_profiles::faulty(pair.world.random())
        };
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let publication = PublisherSpec::new(channel(1), STREAM)
            .pause(Duration::from_millis(2))
            .burst(4);
        let publisher = pair.world.publish(pair.clients[0], publication.messages(800));
        for _ in 0..12 {
            let host = pair.hosts[pair.world.random().usize(0..2)];
            pair.world.rotate_keys(host);
            let pause = pair.world.random().u64(1..60);
            pair.world.run_for(Duration::from_millis(pause));
        }
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}

seeded! {
    /// The wall clock of either host is set while messages flow: everything is drawn anew, and the stream goes on.
    clock_jumps, 8, |seed| {
        let mut pair = pair(seed);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let publication = PublisherSpec::new(channel(1), STREAM)
            .pause(Duration::from_millis(2))
            .burst(4);
        let publisher = pair.world.publish(pair.clients[0], publication.messages(600));
        pair.world.run_for(Duration::from_millis(50));
        let host = pair.hosts[usize::from(seed % 2 == 0)];
        let by_ms = if seed % 4 < 2 { 30_000 } else { -30_000 };
        pair.world.step_clock(host, by_ms);
        pair.await_all((subscriber, publisher));
        pair.world.close_all();
        pair.world.expect_no_errors_but(&["the wall clock was set"]);
    }
}

seeded! {
    /// A peer that is trusted no longer loses the stream at once, while messages flow.
    untrusting_under_load, 8, |seed| {
        let mut pair = pair(seed);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let publication = PublisherSpec::new(channel(1), STREAM)
            .pause(Duration::from_millis(2))
            .burst(4);
        pair.world.publish(pair.clients[0], publication.messages(1_000_000));
        pair.world.run_for(Duration::from_millis(200));
        assert!(pair.world.delivered_on(pair.hosts[1]) > 0);
        // Either end may stop trusting the other.
        let (host, trusted) = (pair.hosts[usize::from(seed % 2 == 0)], [(3, ALL)]);
        pair.world.set_trust(host, &trusted);
        // What arrived before is read.
        pair.world.run_for(Duration::from_millis(100));
        let before = pair.world.delivered_on(pair.hosts[1]);
        pair.world.run_for(Duration::from_secs(3));
        assert_eq!(pair.world.delivered_on(pair.hosts[1]), before);
        assert_eq!(count(&pair.world, host, SecureCounter::Links), 0);
        pair.world.run_for(Duration::from_secs(20));
        assert_eq!(pair.world.subscriber(subscriber).images().count(), 0);
        pair.world.close_all();
    }
}
