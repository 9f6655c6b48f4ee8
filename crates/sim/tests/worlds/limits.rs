// SPDX-License-Identifier: Apache-2.0
//! Limited resources: ports of a range, sessions of a stream (docs/spec/wire.md §2.13, §7.2).

use std::collections::BTreeSet;
use std::time::Duration;

use taran_sim::{
    HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World, link_profiles,
    seeded,
};

use super::common::{LONG, Pair, STREAM, await_all, between, channel};

/// Wildcard ports of receivers and of senders.
const LISTENING: std::ops::RangeInclusive<u16> = 20_001..=20_003;
const SENDING: std::ops::RangeInclusive<u16> = 21_001..=21_002;

/// Channel of a sender with dynamic destinations on a wildcard port.
const ANY_PORT: &str = "aeron:udp?control=10.0.0.1:0|control-mode=dynamic";

fn narrow() -> HostSpec {
    HostSpec::new()
        .option("aeron.receiver.wildcard.port.range", "20001 20003")
        .option("aeron.sender.wildcard.port.range", "21001 21002")
}

/// Creates two hosts with few ports and random link faults.
fn pair(seed: u64) -> Pair {
    let mut pair = Pair::of(seed, narrow(), narrow());
    let random = pair.world.random();
    let faults = if random.bool() {
        link_profiles::clean(random)
    } else {
        link_profiles::faulty(random)
    };
    pair.world.set_faults(faults);
    pair
}

/// Adds a subscription on a wildcard port; returns the port, or the error.
fn listen(pair: &mut Pair, stream_id: i32) -> Result<(SubscriberId, u16), String> {
    let anywhere = SubscriberSpec::new("aeron:udp?endpoint=10.0.0.2:0", stream_id);
    let id = pair.world.subscribe(pair.clients[1], anywhere);
    pair.world.run_until("an answer", LONG, |world| {
        world.subscriber(id).failure().is_some() || port(world, id).is_some()
    });
    match port(&pair.world, id) {
        Some(port) => Ok((id, port)),
        None => Err(pair.world.subscriber(id).failure().unwrap().to_string()),
    }
}

fn port(world: &World, subscriber: SubscriberId) -> Option<u16> {
    let subscription = world.subscriber(subscriber).subscription()?;
    Some(subscription.resolved_endpoint()?.port())
}

/// Adds a stream to a port of the second host.
fn send(pair: &mut Pair, port: u16, stream_id: i32) -> PublisherId {
    let to = PublisherSpec::new(format!("aeron:udp?endpoint=10.0.0.2:{port}"), stream_id);
    pair.world.publish(pair.clients[0], to.messages(40))
}

seeded! {
    /// Each port of the range is assigned once; when all are in use, the next subscription fails with an error that
    /// names the range; a released port is assigned again and works.
    ports_of_receivers, 20, |seed| {
        let mut pair = pair(seed);
        let mut open = Vec::new();
        for stream_id in 0..3 {
            open.push(listen(&mut pair, stream_id).unwrap());
        }
        let given: BTreeSet<u16> = open.iter().map(|(_, port)| *port).collect();
        assert_eq!(given, LISTENING.collect());
        for round in 0..3 {
            let error = listen(&mut pair, 10).unwrap_err();
            assert!(error.contains("no available ports in range 20001 20003"), "{error}");
            let index = pair.world.random().usize(0..open.len());
            let (closed, free) = open.swap_remove(index);
            pair.world.subscriber_mut(closed).close();
            let pause = between(&mut pair.world, Duration::from_secs(1), Duration::from_secs(3));
            pair.world.run_for(pause);
            let (subscriber, port) = listen(&mut pair, 20 + round).unwrap();
            assert_eq!(port, free, "the only one that is free");
            let publisher = send(&mut pair, port, 20 + round);
            pair.await_all((subscriber, publisher));
            pair.world.publisher_mut(publisher).close();
            pair.world.run_for(Duration::from_secs(15));
            open.push((subscriber, port));
        }
        pair.world.close_all();
        pair.world.expect_nothing_left();
        pair.world.expect_no_errors_but(&["no available ports in range"]);
    }
}

seeded! {
    /// The same for ports of senders with a control address; also when a client dies with all its ports.
    ports_of_senders, 20, |seed| {
        let mut pair = pair(seed);
        let victim = pair.world.connect(pair.hosts[0]);
        let mut publishers = Vec::new();
        for _ in 0..3 {
            publishers.push(pair.world.publish(victim, PublisherSpec::new(ANY_PORT, STREAM)));
            pair.world.run_for(Duration::from_millis(100));
        }
        let ports = publishers[..2].iter().map(|it| {
            let publication = pair.world.publisher(*it).shared().unwrap();
            publication.local_socket_addresses()[0].port()
        });
        assert_eq!(ports.collect::<BTreeSet<_>>(), SENDING.collect());
        let error = pair.world.publisher(publishers[2]).failure().unwrap().to_string();
        assert!(error.contains("no available ports in range 21001 21002"), "{error}");
        pair.world.kill_client(victim);
        pair.world.run_for(Duration::from_secs(20));
        let next = pair.world.publish(pair.clients[0], PublisherSpec::new(ANY_PORT, STREAM));
        pair.world.run_until("a port is free again", LONG, |world| world.publisher(next).is_open());
        pair.world.close_all();
        pair.world.expect_nothing_left();
        pair.world.expect_no_errors_but(&["no available ports in range"]);
    }
}

/// Checks that the second host can assign all ports of its sender range.
fn expect_ports_to_send_from(pair: &mut Pair) {
    let anywhere = ANY_PORT.replace("10.0.0.1", "10.0.0.2");
    let publishers = SENDING.map(|_| {
        let publication = PublisherSpec::new(anywhere.as_str(), STREAM + 1);
        pair.world.publish(pair.clients[1], publication)
    });
    let publishers: Vec<_> = publishers.collect();
    pair.world.run_until("all ports are given", LONG, |world| {
        publishers.iter().all(|it| world.publisher(*it).is_open())
    });
    let ports = publishers.iter().map(|it| {
        let publication = pair.world.publisher(*it).shared().unwrap();
        publication.local_socket_addresses()[0].port()
    });
    assert_eq!(ports.collect::<BTreeSet<_>>(), SENDING.collect());
}

seeded! {
    /// A driver dies with all its sender and receiver ports: its successor can assign all of them again.
    ports_after_restart, 15, |seed| {
        let mut pair = pair(seed);
        for round in 0..2 {
            expect_ports_to_send_from(&mut pair);
            let mut flows = Vec::new();
            for stream_id in 0..3 {
                let (subscriber, port) = listen(&mut pair, stream_id).unwrap();
                assert!(LISTENING.contains(&port));
                if stream_id == 0 {
                    flows.push((subscriber, send(&mut pair, port, stream_id)));
                }
            }
            await_all(&mut pair.world, &flows);
            if round == 0 {
                pair.world.kill_driver(pair.hosts[1]);
                pair.world.publisher_mut(flows[0].1).close();
                pair.world.run_for(Duration::from_secs(20));
                pair.world.start_driver(pair.hosts[1]);
                pair.clients[1] = pair.world.connect(pair.hosts[1]);
            }
        }
        pair.end();
    }
}

/// Three publishers of a stream, two of which are received because of the session limit.
struct SessionLimit {
    pair: Pair,
    subscriber: SubscriberId,
    received: Vec<PublisherId>,
    left_out: PublisherId,
}

impl SessionLimit {
    fn new(seed: u64) -> Self {
        let limited = HostSpec::new().option("aeron.driver.stream.session.limit", "2");
        let mut pair = Pair::of(seed, HostSpec::new(), limited);
        let random = pair.world.random();
        let faults = if random.bool() {
            link_profiles::clean(random)
        } else {
            link_profiles::faulty(random)
        };
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let mut publishers = Vec::new();
        for _ in 0..3 {
            let client = pair.world.connect(pair.hosts[0]);
            let publication = PublisherSpec::new(channel(1), STREAM).exclusive(true);
            publishers.push(pair.world.publish(client, publication.messages(100)));
        }
        pair.world.run_for(Duration::from_secs(5));
        let world = &pair.world;
        let (received, left_out): (Vec<_>, Vec<_>) = publishers.into_iter().partition(|id| {
            let key = world.publisher(*id).key().unwrap();
            world.subscriber(subscriber).image(&key).is_some()
        });
        assert_eq!((received.len(), left_out.len()), (2, 1));
        Self {
            pair,
            subscriber,
            received,
            left_out: left_out[0],
        }
    }

    /// Checks that the remaining publisher is received after one of the others has left.
    fn end(mut self, left: PublisherId) {
        let left_out = [(self.subscriber, self.left_out)];
        let stays = self.received.iter().filter(|it| **it != left);
        let stays: Vec<_> = stays.map(|it| (self.subscriber, *it)).collect();
        await_all(&mut self.pair.world, &left_out);
        await_all(&mut self.pair.world, &stays);
        self.pair.world.close_all();
        self.pair.world.expect_nothing_left();
        self.pair
            .world
            .expect_no_errors_but(&["session limit reached"]);
    }
}

seeded! {
    /// More publishers than sessions: the received ones are not affected, and the remaining one is received when one of
    /// them has closed.
    sessions_beyond_the_limit_wait, 20, |seed| {
        let mut limited = SessionLimit::new(seed);
        let flows: Vec<_> = limited.received.iter().map(|it| (limited.subscriber, *it)).collect();
        await_all(&mut limited.pair.world, &flows);
        assert!(!limited.pair.world.publisher(limited.left_out).is_connected());
        let leaves = limited.received[0];
        limited.pair.world.publisher_mut(leaves).close();
        limited.end(leaves);
    }
}

seeded! {
    /// The same when a client dies, or all are cut off for long: no session of the limit stays occupied.
    sessions_after_client_death, 15, |seed| {
        let mut limited = SessionLimit::new(seed);
        if seed % 2 == 0 {
            let leaves = limited.received[0];
            let dead = limited.pair.world.client_of(leaves);
            limited.pair.world.kill_client(dead);
            limited.end(leaves);
            return;
        }
        let ids = limited.pair.hosts.map(|host| limited.pair.world.network_id(host));
        limited.pair.world.network().separate(ids[0], ids[1]);
        limited.pair.world.run_for(Duration::from_secs(25));
        limited.pair.world.network().heal_all();
        let SessionLimit { mut pair, subscriber, received, left_out } = limited;
        let all: Vec<_> = received.into_iter().chain([left_out]).collect();
        pair.world.run_until("two are received again", LONG, |world| {
            world.subscriber(subscriber).images().count() == 2
        });
        let (back, out): (Vec<_>, Vec<_>) = all.into_iter().partition(|id| {
            let key = pair.world.publisher(*id).key().unwrap();
            pair.world.subscriber(subscriber).image(&key).is_some()
        });
        assert_eq!(out.len(), 1);
        for id in &back {
            pair.world.publisher_mut(*id).publish_more(20);
        }
        let leaves = back[0];
        pair.world.publisher_mut(leaves).close();
        SessionLimit { pair, subscriber, received: back, left_out: out[0] }.end(leaves);
    }
}

seeded! {
    /// The receiver's driver dies: its successor accepts up to the limit as well.
    sessions_after_restart, 15, |seed| {
        let SessionLimit { mut pair, received, left_out, .. } = SessionLimit::new(seed);
        pair.world.kill_driver(pair.hosts[1]);
        pair.world.run_for(Duration::from_secs(20));
        pair.world.start_driver(pair.hosts[1]);
        pair.clients[1] = pair.world.connect(pair.hosts[1]);
        let subscriber = pair.subscribe();
        pair.world.run_for(Duration::from_secs(5));
        let all: Vec<_> = received.into_iter().chain([left_out]).collect();
        let (received, out): (Vec<_>, Vec<_>) = all.into_iter().partition(|id| {
            let key = pair.world.publisher(*id).key().unwrap();
            pair.world.subscriber(subscriber).image(&key).is_some()
        });
        assert_eq!((received.len(), out.len()), (2, 1));
        let leaves = received[0];
        pair.world.publisher_mut(leaves).close();
        SessionLimit { pair, subscriber, received, left_out: out[0] }.end(leaves);
    }
}
