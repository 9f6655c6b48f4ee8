// SPDX-License-Identifier: Apache-2.0
//! Spies: subscribers on the publisher's host that read what its driver sends (docs/spec/wire.md §2.12).

use std::time::Duration;

use taran::OfferError;
use taran_sim::{PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

/// Returns the channel of spies on the stream to the second host.
fn spied() -> String {
    format!("aeron-spy:{}", channel(1))
}

/// Returns a publication that spies alone connect.
fn spy_connected() -> PublisherSpec {
    PublisherSpec::new(format!("{}|ssc=true", channel(1)), STREAM)
}

/// Adds a spy that is slow or fast, depending on the seed.
fn spy(world: &mut World, client: taran_sim::ClientId) -> SubscriberId {
    let skip_rate = [0.1, 0.5, 0.9][world.random().usize(0..3)];
    world.subscribe(
        client,
        SubscriberSpec::new(spied(), STREAM).skip_rate(skip_rate),
    )
}

seeded! {
    /// Spies and receivers of one stream each get everything, whatever the network does.
    beside_receivers, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (receiver, publisher) = pair.flow(300);
        let mut flows = vec![(receiver, publisher)];
        for _ in 0..pair.world.random().usize(1..4) {
            flows.push((spy(&mut pair.world, pair.clients[0]), publisher));
            let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(100));
            pair.world.run_for(pause);
        }
        await_all(&mut pair.world, &flows);
        pair.end();
    }
}

seeded! {
    /// Without receivers spies connect the stream: the fastest moves it, the slowest limits its publisher, and each
    /// gets everything to the end.
    without_receivers, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let spies: Vec<_> = (0..3).map(|_| spy(&mut world, clients[0])).collect();
        let exclusive = world.random().bool();
        let publisher = world.publish(clients[0], spy_connected().exclusive(exclusive).messages(300));
        let flows: Vec<_> = spies.iter().map(|spy| (*spy, publisher)).collect();
        await_all(&mut world, &flows);
        world.publisher_mut(publisher).close();
        world.run_until("the stream has ended for all", LONG, |world| {
            spies.iter().all(|spy| !world.subscriber(*spy).ended().is_empty())
        });
        for spy in spies {
            let ended = world.subscriber(spy).ended()[0];
            assert!(ended.at_end_of_stream && ended.is_complete, "{ended:?}");
        }
        end(world);
    }
}

seeded! {
    /// Receivers are added and killed while spies read: the spies miss nothing, and a receiver gets everything from its
    /// join position.
    receivers_added_and_killed, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::with_random_faults(seed);
        let reader = spy(&mut world, clients[0]);
        let publication = spy_connected().pause(Duration::from_millis(20));
        let publisher = world.publish(clients[0], publication.messages(6_000));
        for _ in 0..3 {
            let client = world.connect(hosts[1]);
            world.subscribe(client, SubscriberSpec::new(channel(1), STREAM));
            let stay = between(&mut world, Duration::from_millis(10), Duration::from_secs(3));
            world.run_for(stay);
            world.kill_client(client);
            let pause = between(&mut world, Duration::ZERO, Duration::from_secs(25));
            world.run_for(pause);
        }
        let last = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        await_all(&mut world, &[(reader, publisher), (last, publisher)]);
        assert!(world.subscriber(reader).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A spy dies: the stream waits for it only until its driver has detected that.
    spy_death, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::with_random_faults(seed);
        let victim = world.connect(hosts[0]);
        let dead = world.subscribe(victim, SubscriberSpec::new(spied(), STREAM));
        let lives = spy(&mut world, clients[0]);
        let publisher = world.publish(clients[0], spy_connected().messages(400));
        await_offered(&mut world, publisher, 30);
        world.kill_client(victim);
        await_all(&mut world, &[(lives, publisher)]);
        assert!(world.subscriber(dead).ended().is_empty(), "a dead client has no subscriber to notify");
        end(world);
    }
}

seeded! {
    /// The last spy is closed: the publisher becomes disconnected, and the next spy gets what is published from then
    /// on.
    last_one_closed, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let first = spy(&mut world, clients[0]);
        let publisher = world.publish(clients[0], spy_connected().messages(600));
        await_offered(&mut world, publisher, 50);
        world.subscriber_mut(first).close();
        world.run_until("the publisher is disconnected", LONG, |world| is_refused_or_done(world, publisher));
        assert!(!world.publisher(publisher).is_done(), "published without a spy");
        let second = spy(&mut world, clients[0]);
        await_all(&mut world, &[(second, publisher)]);
        end(world);
    }
}

fn is_refused_or_done(world: &World, publisher: PublisherId) -> bool {
    let publisher = world.publisher(publisher);
    publisher.is_done() || publisher.refusal() == Some(OfferError::NotConnected)
}

seeded! {
    /// An untethered spy that stops reading limits the stream only for a short time, and gets a new image later.
    untethered_spy_that_stalls_rejoins, 20, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let untethered = SubscriberSpec::new(format!("{}|tether=false", spied()), STREAM);
        let untethered = world.subscribe(clients[0], untethered);
        let quick = world.subscribe(clients[0], SubscriberSpec::new(spied(), STREAM));
        let publication = spy_connected().pause(Duration::from_millis(5));
        let publisher = world.publish(clients[0], publication.messages(12_000));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(untethered).set_skip_rate(1.0);
        world.run_until("the image of the untethered spy has gone", LONG, |world| {
            world.subscriber(untethered).ended().len() == 1
        });
        assert!(!world.publisher(publisher).is_done());
        world.subscriber_mut(untethered).set_skip_rate(0.1);
        world.run_until("the untethered spy has a new image", LONG, |world| {
            world.subscriber(untethered).images().next().is_some()
        });
        await_all(&mut world, &[(quick, publisher), (untethered, publisher)]);
        assert!(world.subscriber(quick).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A revoked stream ends for spies and receivers within seconds, consumed or not.
    revoked_stream_ends_for_spies, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (receiver, publisher) = pair.flow(300);
        let spy = spy(&mut pair.world, pair.clients[0]);
        await_offered(&mut pair.world, publisher, 100);
        pair.world.publisher_mut(publisher).revoke();
        pair.world.run_until("all images have ended", Duration::from_secs(20), |world| {
            [receiver, spy].iter().all(|it| !world.subscriber(*it).ended().is_empty())
        });
        pair.end();
    }
}
