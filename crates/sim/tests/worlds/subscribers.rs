// SPDX-License-Identifier: Apache-2.0
//! Subscribers that are slow, late, or added and removed.

use std::time::Duration;

use taran::OfferError;
use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

/// Returns a world with one host or two, a client on each, and the channel between them.
fn world_of_one_or_two(seed: u64) -> (World, Vec<taran_sim::ClientId>, String) {
    let mut world = World::new(seed);
    let hosts = 1 + world.random().usize(0..2);
    let clients = (0..hosts).map(|_| {
        let host = world.add_host(HostSpec::new());
        world.connect(host)
    });
    let clients: Vec<_> = clients.collect();
    let channel = if hosts == 1 {
        "aeron:ipc".to_owned()
    } else {
        channel(1)
    };
    (world, clients, channel)
}

seeded! {
    /// A subscriber that rarely polls back-pressures its publisher and loses nothing.
    slow_subscriber_back_pressures_its_publisher, 30, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let subscription = SubscriberSpec::new(channel.as_str(), STREAM).skip_rate(0.95).limit(2);
        let slow = world.subscribe(right, subscription);
        let quick = world.subscribe(right, SubscriberSpec::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel, STREAM).messages(200));
        await_all(&mut world, &[(slow, publisher), (quick, publisher)]);
        assert!(world.publisher(publisher).was_back_pressured());
        end(world);
    }
}

seeded! {
    /// A subscriber that stalls for half a minute stops its publisher and resumes where it stopped.
    stalled_subscriber_resumes_where_it_stopped, 30, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let subscriber = world.subscribe(right, SubscriberSpec::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel, STREAM).messages(300));
        await_offered(&mut world, publisher, 50);
        world.subscriber_mut(subscriber).set_skip_rate(1.0);
        world.run_for(Duration::from_secs(30));
        let offered = world.publisher(publisher).offered();
        assert!(offered < 300, "a stalled subscriber did not back-pressure its publisher");
        world.run_for(Duration::from_secs(30));
        assert_eq!(world.publisher(publisher).offered(), offered);
        world.subscriber_mut(subscriber).set_skip_rate(0.1);
        await_all(&mut world, &[(subscriber, publisher)]);
        assert!(world.subscriber(subscriber).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A subscriber that is added later gets everything from its join position.
    late_subscriber_gets_all_from_its_join_position, 40, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let first = world.subscribe(right, SubscriberSpec::new(channel.as_str(), STREAM));
        let publication = PublisherSpec::new(channel.as_str(), STREAM);
        let publisher = world.publish(clients[0], publication.messages(400));
        await_offered(&mut world, publisher, 100);
        let late = world.subscribe(right, SubscriberSpec::new(channel, STREAM));
        await_all(&mut world, &[(first, publisher), (late, publisher)]);
        end(world);
    }
}

seeded! {
    /// The last subscriber is closed: the publisher becomes disconnected, and the next subscriber gets what is
    /// published from then on.
    last_one_closed, 40, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let first = world.subscribe(right, SubscriberSpec::new(channel.as_str(), STREAM));
        let publication = PublisherSpec::new(channel.as_str(), STREAM);
        let publisher = world.publish(clients[0], publication.messages(600));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(first).close();
        let is_short = world.random().bool();
        if is_short {
            let pause = between(&mut world, Duration::ZERO, Duration::from_secs(3));
            world.run_for(pause);
        } else {
            world.run_until("the publisher is disconnected", LONG, |world| {
                let publisher = world.publisher(publisher);
                publisher.is_done() || publisher.refusal() == Some(OfferError::NotConnected)
            });
            assert!(!world.publisher(publisher).is_done(), "published without a subscriber");
        }
        let second = world.subscribe(right, SubscriberSpec::new(channel, STREAM));
        await_all(&mut world, &[(second, publisher)]);
        end(world);
    }
}

seeded! {
    /// Subscribers are added and removed at any time while one stays.
    added_and_removed, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (stays, publisher) = pair.flow(400);
        let mut added = Vec::new();
        for _ in 0..8 {
            added.push(pair.subscribe());
            let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(200));
            pair.world.run_for(pause);
            if pair.world.random().bool() {
                let index = pair.world.random().usize(0..added.len());
                let removed = added.swap_remove(index);
                pair.world.subscriber_mut(removed).close();
            }
        }
        let flows: Vec<_> = added.iter().chain([&stays]).map(|it| (*it, publisher)).collect();
        pair.world.publisher_mut(publisher).publish_more(20);
        await_all(&mut pair.world, &flows);
        pair.end();
    }
}
