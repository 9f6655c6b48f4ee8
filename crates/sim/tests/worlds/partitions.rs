// SPDX-License-Identifier: Apache-2.0
//! Networks that are cut and restored.

use std::time::Duration;

use taran_sim::{PublisherSpec, SubscriberSpec, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

/// Less than the liveness timeout of an image.
const SHORT: Duration = Duration::from_millis(9_500);

/// Cuts the link in one direction or both.
fn cut(pair: &Pair, forward: bool, back: bool) {
    let [left, right] = pair.hosts.map(|host| pair.world.network_id(host));
    if forward {
        pair.world.network().cut(left, right);
    }
    if back {
        pair.world.network().cut(right, left);
    }
}

seeded! {
    /// A short cut, in one direction or both, delays messages but loses none.
    short_cut_loses_nothing, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(400);
        let before = pair.world.random().u64(0..200);
        await_offered(&mut pair.world, publisher, before.max(1));
        let (forward, back) = [(true, true), (true, false), (false, true)][seed as usize % 3];
        cut(&pair, forward, back);
        let pause = between(&mut pair.world, Duration::from_millis(100), SHORT);
        pair.world.run_for(pause);
        pair.world.network().heal_all();
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(ended.is_empty(), "an image ended: {ended:?}");
        pair.end();
    }
}

seeded! {
    /// Status messages are lost for long: the publisher becomes disconnected, the image stays, and the stream
    /// continues.
    status_messages_lost, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(400);
        await_offered(&mut pair.world, publisher, 20);
        cut(&pair, false, true);
        let pause = between(&mut pair.world, Duration::from_secs(12), Duration::from_secs(60));
        pair.world.run_for(pause);
        assert!(!pair.world.publisher(publisher).is_connected());
        pair.world.network().heal_all();
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(ended.is_empty(), "an image ended: {ended:?}");
        pair.end();
    }
}

seeded! {
    /// A cut longer than the timeouts of image and publication together: the image ends, and a new one is created.
    long_cut_replaces_the_image, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
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
        pair.world.publisher_mut(publisher).publish_more(10);
        pair.await_all((subscriber, publisher));
        let ended = pair.world.subscriber(subscriber).ended();
        assert!(matches!(ended, [image] if !image.at_end_of_stream), "{ended:?}");
        pair.end();
    }
}

seeded! {
    /// Links that are cut and restored at random: the images that exist in the end deliver the last message.
    flapping_links_end_with_delivery, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::with_random_faults(seed);
        let flows: Vec<_> = (0..2).map(|to| {
            let subscriber = world.subscribe(clients[to], SubscriberSpec::new(channel(to), STREAM));
            let publication = PublisherSpec::new(channel(to), STREAM).messages(300);
            (subscriber, world.publish(clients[1 - to], publication))
        }).collect();
        let ids = hosts.map(|host| world.network_id(host));
        for _ in 0..12 {
            let from = world.random().usize(0..2);
            world.network().cut(ids[from], ids[1 - from]);
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
            world.publisher_mut(*publisher).publish_more(10);
        }
        await_all(&mut world, &flows);
        super::common::end(world);
    }
}

fn pause(world: &mut World) -> Duration {
    let most = [10, 1_000, 15_000][world.random().usize(0..3)];
    between(world, Duration::ZERO, Duration::from_millis(most))
}
