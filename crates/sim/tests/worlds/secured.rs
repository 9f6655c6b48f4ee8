// SPDX-License-Identifier: Apache-2.0
//! Secured channels between hosts, with real ciphers.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::{SecureCounter, type_id};
use taran_sim::network::{LinkFaults, Recorded};
use taran_sim::{HostIndex, HostSpec, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{LONG, Pair, STREAM, await_all, channel, end};

/// Returns the value of a counter of transport security.
pub(crate) fn count(world: &World, host: HostIndex, which: SecureCounter) -> i64 {
    value_of(world, host, which.type_id()).expect("a secured driver has these counters")
}

/// Returns the value of the last counter of a type.
fn value_of(world: &World, host: HostIndex, type_id: i32) -> Option<i64> {
    let counters = world.counters(host);
    let mut value = None;
    counters.for_each(|counter| {
        if counter.type_id == type_id {
            value = counters.value(counter.id);
        }
    });
    value
}

/// Everything is allowed.
pub(crate) const ALL: &str = "publish=* subscribe=*";

/// Returns a host that trusts hosts 0 to 3.
pub(crate) fn trusting_all() -> HostSpec {
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
        // The receiver tells its operator which end is plain.
        let text = if seed % 2 == 0 {
            "sends frames of Taran transport security, and this channel is plain here"
        } else {
            "is secured, and 10.0.0.1"
        };
        let errors = pair.world.error_log(pair.hosts[1]);
        assert!(errors.iter().any(|error| error.contains(text)), "{errors:?}");
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

/// Sends what was recorded again: as it was, from another address, to the other end, or with a flipped bit.
fn replay(world: &mut World, attacker: HostIndex, recorded: &[Recorded]) {
    let from = world.network_id(attacker);
    for datagram in recorded {
        let kind = world.random().u8(0..4);
        let bit = world.random().usize(0..datagram.bytes.len() * 8);
        let (mut source, mut destination) = (datagram.source, datagram.destination);
        let mut bytes = datagram.bytes.clone();
        match kind {
            0 => {}
            1 => source = SocketAddr::from(([10, 0, 0, 3], 999)),
            2 => std::mem::swap(&mut source, &mut destination),
            _ => bytes[bit / 8] ^= 1 << (bit % 8),
        }
        world.network().forge(from, source, destination, &bytes);
    }
}

seeded! {
    /// An attacker records everything and sends it again, changed or not: at once, after keys were rotated, and after the
    /// receiver was restarted. The streams are exact, and no plain frame leaves.
    replaying_attacker, 8, |seed| {
        let mut world = World::new(seed);
        let hosts = [0; 3].map(|_| world.add_host(trusting_all()));
        let faults = link_profiles::clean(world.random());
        world.set_faults(faults);
        world.network().record(3_000);
        let mut clients = hosts.map(|host| world.connect(host));
        let flow = |world: &mut World, clients: &[taran_sim::ClientId; 3]| {
            let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
            let publication = PublisherSpec::new(channel(1), STREAM)
                .pause(Duration::from_millis(2))
                .burst(4);
            let publisher = world.publish(clients[0], publication.messages(400));
            (subscriber, publisher)
        };
        let first = flow(&mut world, &clients);
        for _ in 0..10 {
            world.run_for(Duration::from_millis(30));
            let recorded = world.network().recorded();
            replay(&mut world, hosts[2], &recorded);
            let host = hosts[world.random().usize(0..2)];
            world.rotate_keys(host);
        }
        await_all(&mut world, &[first]);
        let links = count(&world, hosts[0], SecureCounter::Links);
        assert_eq!(links, 1, "replayed handshakes make no link");
        let replayed: i64 = hosts[..2]
            .iter()
            .map(|host| count(&world, *host, SecureCounter::Replayed))
            .sum();
        assert!(replayed > 0);
        // The receiver is restarted: nothing of before is opened by the new one.
        for client in clients {
            world.close_client(client);
        }
        world.run_for(Duration::from_millis(1));
        world.kill_driver(hosts[1]);
        world.run_for(Duration::from_secs(11));
        world.start_driver(hosts[1]);
        clients = hosts.map(|host| world.connect(host));
        let recorded = world.network().recorded();
        let second = flow(&mut world, &clients);
        for _ in 0..5 {
            replay(&mut world, hosts[2], &recorded);
            world.run_for(Duration::from_millis(50));
        }
        await_all(&mut world, &[second]);
        world.close_all();
    }
}

seeded! {
    /// Either driver is killed after each single datagram of the handshake in turn, and the stream flows with its successor.
    restart_at_every_step_of_the_handshake, 14, |seed| {
        let mut world = World::new(seed);
        let hosts = [0; 2].map(|_| world.add_host(trusting_all()));
        let faults = link_profiles::clean(world.random());
        world.set_faults(faults);
        let clients = hosts.map(|host| world.connect(host));
        world.run_for(Duration::from_millis(100));
        let before = world.network().counts().sent;
        world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(20));
        // The first contact takes about six datagrams: ANNOUNCE, INIT, RESP, PAIR, PAIR and the feedback.
        let step = seed / 2 % 7 + 1;
        world.run_until("the step is reached", Duration::from_secs(60), |world| {
            world.network().counts().sent >= before + step
        });
        let victim = hosts[(seed % 2) as usize];
        world.kill_driver(victim);
        for client in clients {
            world.close_client(client);
        }
        world.run_for(Duration::from_secs(11));
        world.start_driver(victim);
        let clients = hosts.map(|host| world.connect(host));
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(50));
        await_all(&mut world, &[(subscriber, publisher)]);
        world.close_all();
    }
}

const ONE_WAY: Duration = Duration::from_millis(1);

/// Parks of idle agents: longer than everything else that the first message waits for.
const PARK: Duration = Duration::from_millis(20);

/// Returns the time from the driver's answer to a publication on a new channel to the first status message that the sender takes,
/// between drivers whose agents park for [`PARK`] after each duty cycle without work.
fn time_to_first_status(seed: u64, host: HostSpec) -> Duration {
    let host = host.parks(PARK);
    let mut pair = Pair::of(seed, host.clone(), host);
    pair.world.set_faults(LinkFaults {
        delay: ONE_WAY,
        ..LinkFaults::default()
    });
    pair.world.set_time_steps(Duration::from_micros(10), 1_000);
    let subscriber = pair.subscribe();
    pair.world.run_for(Duration::from_millis(50));
    let publication = PublisherSpec::new(channel(1), STREAM).messages(1);
    let publisher = pair.world.publish(pair.clients[0], publication);
    pair.world.run_until("the driver answers", LONG, |world| {
        !world.publisher(publisher).is_pending()
    });
    let since = pair.world.elapsed();
    let sender = pair.hosts[0];
    pair.world.run_until("the sender may send", LONG, |world| {
        value_of(world, sender, type_id::SENDER_LIMIT).is_some_and(|limit| limit > 0)
    });
    let time = pair.world.elapsed() - since;
    pair.await_all((subscriber, publisher));
    time
}

/// In no world does the sender of a new channel wait for two round trips and 2 ms longer than on a plain one, where the image waits for
/// the end of a park: if frames of a handshake or link do not wake the conductor, some worlds wait for another park.
#[test]
fn first_status_of_a_new_channel() {
    for seed in 0..8 {
        let plain = time_to_first_status(seed, HostSpec::new());
        let secured = time_to_first_status(seed, trusting_all());
        assert!(
            secured <= plain + 4 * ONE_WAY + Duration::from_millis(2),
            "seed {seed}: {secured:?}, and {plain:?} on a plain channel"
        );
    }
}

seeded! {
    /// Cuts of either direction, longer than links live in silence: the stream goes on when the network does.
    partitions, 8, |seed| {
        let mut pair = pair(seed);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let publication = PublisherSpec::new(channel(1), STREAM)
            .pause(Duration::from_millis(2))
            .burst(2);
        let publisher = pair.world.publish(pair.clients[0], publication.messages(2_000));
        pair.world.run_for(Duration::from_millis(300));
        let [left, right] = pair.hosts.map(|host| pair.world.network_id(host));
        if seed % 4 != 1 {
            pair.world.network().cut(left, right);
        }
        if seed % 4 != 2 {
            pair.world.network().cut(right, left);
        }
        let seconds = if seed % 2 == 0 { 3 } else { 45 };
        pair.world.run_for(Duration::from_secs(seconds));
        pair.world.network().heal_all();
        if seconds == 3 {
            pair.await_all((subscriber, publisher));
        } else {
            // Image and link have ended; another stream makes new ones.
            let subscription = SubscriberSpec::new(channel(1), STREAM + 1);
            let subscriber = pair.world.subscribe(pair.clients[1], subscription);
            let publication = PublisherSpec::new(channel(1), STREAM + 1);
            let publisher = pair.world.publish(pair.clients[0], publication.messages(50));
            pair.await_all((subscriber, publisher));
        }
        pair.world.close_all();
    }
}
