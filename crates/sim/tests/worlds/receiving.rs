// SPDX-License-Identifier: Apache-2.0
//! One subscription, several sources: a stream over two paths, sources added and removed, multicast (docs/spec/wire.md
//! §2.11).

use std::time::Duration;

use taran_sim::network::LinkFaults;
use taran_sim::{
    HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World, link_profiles,
    seeded,
};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, end};

const MANUAL: &str = "aeron:udp?control-mode=manual";

/// The two ports of the second host.
const PORTS: [u16; 2] = [40_123, 40_124];

fn path(index: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.2:{}", PORTS[index])
}

/// A stream that is sent to both ports of the second host, where one subscription receives it on both.
struct TwoPaths {
    pair: Pair,
    subscriber: SubscriberId,
    publisher: PublisherId,
}

impl TwoPaths {
    fn new(seed: u64, messages: u64) -> Self {
        let mut pair = Pair::new(seed);
        let subscription = SubscriberSpec::new(MANUAL, STREAM);
        let subscriber = pair.world.subscribe(
            pair.clients[1],
            subscription.source(path(0)).source(path(1)),
        );
        let exclusive = pair.world.random().bool();
        let publication = PublisherSpec::new(MANUAL, STREAM)
            .exclusive(exclusive)
            .destination(path(0))
            .destination(path(1));
        let publisher = pair
            .world
            .publish(pair.clients[0], publication.messages(messages));
        Self {
            pair,
            subscriber,
            publisher,
        }
    }

    fn set_path(&mut self, index: usize, faults: Option<LinkFaults>) {
        let host = self.pair.world.network_id(self.pair.hosts[1]);
        let network = self.pair.world.network();
        network.set_port_faults(host, PORTS[index], faults);
    }

    fn await_all(&mut self) {
        self.pair.await_all((self.subscriber, self.publisher));
    }

    /// Checks that one image delivered everything and ends when its publisher closes.
    fn end(mut self) {
        let world = &mut self.pair.world;
        let subscriber = world.subscriber(self.subscriber);
        assert!(subscriber.ended().is_empty(), "{:?}", subscriber.ended());
        world.publisher_mut(self.publisher).close();
        let id = self.subscriber;
        world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(id).ended().is_empty()
        });
        let ended = world.subscriber(id).ended();
        assert!(ended.len() == 1 && ended[0].is_complete, "{ended:?}");
        self.pair.end();
    }
}

seeded! {
    /// Two paths with faults of their own: each message is delivered once, in one image.
    two_paths, 40, |seed| {
        let mut two_paths = TwoPaths::new(seed, 400);
        for index in 0..2 {
            let faults = link_profiles::faulty(two_paths.pair.world.random());
            two_paths.set_path(index, Some(faults));
        }
        two_paths.await_all();
        two_paths.end();
    }
}

seeded! {
    /// One of two paths fails for a while or for good, at any time; the other one suffices.
    one_path_lost, 40, |seed| {
        let mut two_paths = TwoPaths::new(seed, 600);
        let lost = two_paths.pair.world.random().usize(0..2);
        let faults = link_profiles::faulty(two_paths.pair.world.random());
        two_paths.set_path(1 - lost, Some(faults));
        let offered = two_paths.pair.world.random().u64(20..300);
        await_offered(&mut two_paths.pair.world, two_paths.publisher, offered);
        two_paths.set_path(lost, Some(LinkFaults::loss(1.0)));
        let pause = between(&mut two_paths.pair.world, Duration::ZERO, Duration::from_secs(15));
        two_paths.pair.world.run_for(pause);
        if two_paths.pair.world.random().bool() {
            two_paths.set_path(lost, None);
        }
        two_paths.pair.world.publisher_mut(two_paths.publisher).publish_more(100);
        two_paths.await_all();
        two_paths.end();
    }
}

seeded! {
    /// Sources and destinations are added and removed while one path stays.
    paths_added_and_removed, 40, |seed| {
        let mut two_paths = TwoPaths::new(seed, 200);
        let faults = link_profiles::faulty(two_paths.pair.world.random());
        two_paths.pair.world.set_faults(faults);
        let (subscriber, publisher) = (two_paths.subscriber, two_paths.publisher);
        let offered = two_paths.pair.world.random().u64(1..100);
        await_offered(&mut two_paths.pair.world, publisher, offered);
        for _ in 0..10 {
            let world = &mut two_paths.pair.world;
            match world.random().u32(0..4) {
                0 => world.subscriber_mut(subscriber).add_source(&path(1)),
                1 => world.subscriber_mut(subscriber).remove_source(&path(1)),
                2 => world.publisher_mut(publisher).add_destination(&path(1)),
                _ => world.publisher_mut(publisher).remove_destination(&path(1)),
            }
            let pause = between(world, Duration::ZERO, Duration::from_secs(3));
            world.run_for(pause);
            world.publisher_mut(publisher).publish_more(20);
        }
        two_paths.await_all();
        // A source that exists cannot be added twice; the driver reports an error without side effects.
        let TwoPaths { mut pair, .. } = two_paths;
        pair.world.close_all();
        pair.world.expect_nothing_left();
        pair.world.expect_no_errors_but(&["another socket has it"]);
    }
}

seeded! {
    /// A subscription with a network source, an IPC source and a spy source.
    network_ipc_and_spy_sources, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let sent = "aeron:udp?endpoint=10.0.0.1:40125";
        let subscription = SubscriberSpec::new(MANUAL, STREAM)
            .source(path(0))
            .source("aeron:ipc")
            .source(format!("aeron-spy:{sent}"));
        let all = pair.world.subscribe(pair.clients[1], subscription);
        let other = pair.world.subscribe(pair.clients[0], SubscriberSpec::new(sent, STREAM));
        let mut flows = Vec::new();
        for (client, channel) in [(0, path(0)), (1, "aeron:ipc".to_owned()), (1, sent.to_owned())] {
            let publication = PublisherSpec::new(channel, STREAM).messages(100);
            flows.push((all, pair.world.publish(pair.clients[client], publication)));
        }
        flows.push((other, flows[2].1));
        await_all(&mut pair.world, &flows);
        // One source is removed: its image ends, the others stay.
        pair.world.subscriber_mut(all).remove_source("aeron:ipc");
        pair.world.run_until("the image is gone", LONG, |world| {
            world.subscriber(all).ended().len() == 1
        });
        flows.remove(1);
        for (_, publisher) in &flows[..2] {
            pair.world.publisher_mut(*publisher).publish_more(50);
        }
        await_all(&mut pair.world, &flows);
        assert_eq!(pair.world.subscriber(all).ended().len(), 1);
        pair.end();
    }
}

seeded! {
    /// Several receivers of a group, one of which dies and restarts: the others miss nothing.
    group_receiver_restart, 30, |seed| {
        const GROUP: &str = "aeron:udp?endpoint=224.20.30.39:40123";
        let mut world = World::new(seed);
        let hosts: Vec<_> = (0..4).map(|_| world.add_host(HostSpec::new())).collect();
        let clients: Vec<_> = hosts.iter().map(|host| world.connect(*host)).collect();
        let fair = link_profiles::clean(world.random());
        let loss = world.random().f64() * 0.02;
        world.set_faults(LinkFaults { loss, ..fair });
        let receivers = clients[1..].iter();
        let receivers: Vec<_> = receivers
            .map(|client| world.subscribe(*client, SubscriberSpec::new(GROUP, STREAM)))
            .collect();
        let open = receivers.clone();
        world.run_until("all are there", LONG, |world| {
            open.iter().all(|receiver| world.subscriber(*receiver).is_open())
        });
        let publication = PublisherSpec::new(GROUP, STREAM)
            .pause(Duration::from_millis(20))
            .messages(600);
        let publisher = world.publish(clients[0], publication);
        await_offered(&mut world, publisher, 100);
        let victim = hosts[3];
        world.kill_client(clients[3]);
        world.kill_driver(victim);
        let pause = between(&mut world, Duration::ZERO, Duration::from_secs(3));
        world.run_for(pause);
        world.remove_files(victim);
        world.start_driver(victim);
        let client = world.connect(victim);
        let back = world.subscribe(client, SubscriberSpec::new(GROUP, STREAM));
        world.publisher_mut(publisher).publish_more(100);
        let flows = [receivers[0], receivers[1], back].map(|receiver| (receiver, publisher));
        await_all(&mut world, &flows);
        end(world);
    }
}
