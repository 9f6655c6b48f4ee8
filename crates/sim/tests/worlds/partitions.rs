//! Networks that are cut, and mended.

use std::time::Duration;

use taran_sim::{Publishing, Subscribing, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

/// Less than the liveness timeout of an image.
const SHORT: Duration = Duration::from_millis(9_500);

/// Cuts the link in one direction or both.
fn cut(pair: &Pair, forth: bool, back: bool) {
    let [left, right] = pair.hosts.map(|host| pair.world.network_id(host));
    if forth {
        pair.world.network().cut(left, right);
    }
    if back {
        pair.world.network().cut(right, left);
    }
}

seeded! {
    /// A short cut, in one direction or both, costs time and no message.
    short, 40, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let (subscriber, publisher) = pair.flow(400);
        let before = pair.world.random().u64(0..200);
        await_offered(&mut pair.world, publisher, before.max(1));
        let (forth, back) = [(true, true), (true, false), (false, true)][seed as usize % 3];
        cut(&pair, forth, back);
        let pause = between(&mut pair.world, Duration::from_millis(100), SHORT);
        pair.world.run_for(pause);
        pair.world.network().heal_all();
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(ended.is_empty(), "an image was given up: {ended:?}");
        pair.end();
    }
}

seeded! {
    /// Status messages do not come through for long: the publisher is told, the image stays, and all goes on.
    deaf_sender, 30, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let (subscriber, publisher) = pair.flow(400);
        await_offered(&mut pair.world, publisher, 20);
        cut(&pair, false, true);
        let pause = between(&mut pair.world, Duration::from_secs(12), Duration::from_secs(60));
        pair.world.run_for(pause);
        assert!(!pair.world.publisher(publisher).is_connected());
        pair.world.network().heal_all();
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(ended.is_empty(), "an image was given up: {ended:?}");
        pair.end();
    }
}

seeded! {
    /// A cut for longer than image and publication wait one after the other: the image goes, and a new one comes.
    long, 40, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let (subscriber, publisher) = pair.flow(600);
        await_offered(&mut pair.world, publisher, 50);
        let back = pair.world.random().bool();
        cut(&pair, true, back);
        let pause = between(&mut pair.world, Duration::from_secs(17), Duration::from_secs(60));
        pair.world.run_for(pause);
        assert!(!pair.world.publisher(publisher).is_connected());
        assert_eq!(pair.world.subscriber(subscriber).images().count(), 0);
        pair.world.network().heal_all();
        pair.world.run_until("a new image", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        pair.world.publisher_mut(publisher).more(10);
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(matches!(ended, [image] if !image.at_end_of_stream), "{ended:?}");
        pair.end();
    }
}

seeded! {
    /// Links that come and go at random: whatever images there are in the end deliver to the last message.
    flapping, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let flows: Vec<_> = (0..2).map(|to| {
            let subscriber = world.subscribe(clients[to], Subscribing::new(channel(to), STREAM));
            let publishing = Publishing::new(channel(to), STREAM).messages(300);
            (subscriber, world.publish(clients[1 - to], publishing))
        }).collect();
        let ids = hosts.map(|host| world.network_id(host));
        for _ in 0..12 {
            let way = world.random().usize(0..2);
            world.network().cut(ids[way], ids[1 - way]);
            let pause = pause(&mut world);
            world.run_for(pause);
            if world.random().bool() {
                world.network().heal_all();
            }
        }
        world.network().heal_all();
        world.run_until("images are there", LONG, |world| {
            flows.iter().all(|(subscriber, publisher)| {
                world.publisher(*publisher).is_connected()
                    && world.subscriber(*subscriber).images().next().is_some()
            })
        });
        for (_, publisher) in &flows {
            world.publisher_mut(*publisher).more(10);
        }
        await_all(&mut world, &flows);
        super::common::end(world);
    }
}

fn pause(world: &mut World) -> Duration {
    let most = [10, 1_000, 15_000][world.random().usize(0..3)];
    between(world, Duration::ZERO, Duration::from_millis(most))
}
