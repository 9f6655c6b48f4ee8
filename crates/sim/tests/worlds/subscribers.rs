//! Subscribers that are slow, late, or come and go.

use std::time::Duration;

use taran::OfferError;
use taran_sim::{HostSpec, Publishing, Subscribing, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

/// What a stream travels on, if the seed says so within one host.
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
    /// A subscriber that hardly ever polls holds its publisher back, and loses nothing.
    slow, 30, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let subscribing = Subscribing::new(channel.as_str(), STREAM).laziness(0.95).limit(2);
        let slow = world.subscribe(right, subscribing);
        let quick = world.subscribe(right, Subscribing::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], Publishing::new(channel, STREAM).messages(200));
        await_all(&mut world, &[(slow, publisher), (quick, publisher)]);
        assert!(world.publisher(publisher).was_back_pressured());
        end(world);
    }
}

seeded! {
    /// A subscriber that stops for half a minute stops its publisher, and goes on where it stopped.
    stalled, 30, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let subscriber = world.subscribe(right, Subscribing::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], Publishing::new(channel, STREAM).messages(300));
        await_offered(&mut world, publisher, 50);
        world.subscriber_mut(subscriber).set_laziness(1.0);
        world.run_for(Duration::from_secs(30));
        let offered = world.publisher(publisher).offered();
        assert!(offered < 300, "a stalled subscriber did not hold its publisher back");
        world.run_for(Duration::from_secs(30));
        assert_eq!(world.publisher(publisher).offered(), offered);
        world.subscriber_mut(subscriber).set_laziness(0.1);
        await_all(&mut world, &[(subscriber, publisher)]);
        assert!(world.subscriber(subscriber).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A subscriber that comes later gets all from where it joined.
    late, 40, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let first = world.subscribe(right, Subscribing::new(channel.as_str(), STREAM));
        let publishing = Publishing::new(channel.as_str(), STREAM);
        let publisher = world.publish(clients[0], publishing.messages(400));
        await_offered(&mut world, publisher, 100);
        let late = world.subscribe(right, Subscribing::new(channel, STREAM));
        await_all(&mut world, &[(first, publisher), (late, publisher)]);
        end(world);
    }
}

seeded! {
    /// The last subscriber leaves: the publisher is told, and the next subscriber gets what is published from then on.
    gone_and_back, 40, |seed| {
        let (mut world, clients, channel) = world_of_one_or_two(seed);
        let right = clients[clients.len() - 1];
        let first = world.subscribe(right, Subscribing::new(channel.as_str(), STREAM));
        let publishing = Publishing::new(channel.as_str(), STREAM);
        let publisher = world.publish(clients[0], publishing.messages(600));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(first).close();
        let is_short = world.random().bool();
        if is_short {
            let pause = between(&mut world, Duration::ZERO, Duration::from_secs(3));
            world.run_for(pause);
        } else {
            world.run_until("the publisher is told", LONG, |world| {
                let publisher = world.publisher(publisher);
                publisher.is_done() || publisher.refusal() == Some(OfferError::NotConnected)
            });
            assert!(!world.publisher(publisher).is_done(), "published without a subscriber");
        }
        let second = world.subscribe(right, Subscribing::new(channel, STREAM));
        await_all(&mut world, &[(second, publisher)]);
        end(world);
    }
}

seeded! {
    /// Subscribers come and go at any moment, while one stays.
    turnstile, 30, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let (stays, publisher) = pair.flow(400);
        let mut guests = Vec::new();
        for _ in 0..8 {
            guests.push(pair.subscribe());
            let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(200));
            pair.world.run_for(pause);
            if pair.world.random().bool() {
                let index = pair.world.random().usize(0..guests.len());
                let guest = guests.swap_remove(index);
                pair.world.subscriber_mut(guest).close();
            }
        }
        let flows: Vec<_> = guests.iter().chain([&stays]).map(|it| (*it, publisher)).collect();
        pair.world.publisher_mut(publisher).more(20);
        await_all(&mut pair.world, &flows);
        pair.end();
    }
}
