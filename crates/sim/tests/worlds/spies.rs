//! Spies: subscribers on the publisher's host that read what its driver sends (docs/spec/wire.md §2.12).

use std::time::Duration;

use taran::OfferError;
use taran_sim::{PublisherId, Publishing, SubscriberId, Subscribing, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

/// The channel of spies on what goes to the second host.
fn spied() -> String {
    format!("aeron-spy:{}", channel(1))
}

/// A publication that spies alone connect.
fn simulating() -> Publishing {
    Publishing::new(format!("{}|ssc=true", channel(1)), STREAM)
}

/// A spy that is slow or quick, as the seed says.
fn spy(world: &mut World, client: taran_sim::ClientId) -> SubscriberId {
    let laziness = [0.1, 0.5, 0.9][world.random().usize(0..3)];
    world.subscribe(client, Subscribing::new(spied(), STREAM).laziness(laziness))
}

seeded! {
    /// Spies and receivers of one stream each get all of it, whatever the network does.
    beside_receivers, 40, |seed| {
        let mut pair = Pair::in_any_weather(seed);
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
    /// Nobody receives the stream: spies connect it, the furthest moves it, the slowest holds its publisher back, and
    /// each gets all of it to its end.
    alone, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let spies: Vec<_> = (0..3).map(|_| spy(&mut world, clients[0])).collect();
        let exclusive = world.random().bool();
        let publisher = world.publish(clients[0], simulating().exclusive(exclusive).messages(300));
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
    /// Receivers come and die while spies read on: the spies miss nothing, and a receiver gets all from where it joined.
    receivers_come_and_go, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let reader = spy(&mut world, clients[0]);
        let publishing = simulating().pause(Duration::from_millis(20));
        let publisher = world.publish(clients[0], publishing.messages(6_000));
        for _ in 0..3 {
            let client = world.connect(hosts[1]);
            world.subscribe(client, Subscribing::new(channel(1), STREAM));
            let stay = between(&mut world, Duration::from_millis(10), Duration::from_secs(3));
            world.run_for(stay);
            world.kill_client(client);
            let pause = between(&mut world, Duration::ZERO, Duration::from_secs(25));
            world.run_for(pause);
        }
        let last = world.subscribe(clients[1], Subscribing::new(channel(1), STREAM));
        await_all(&mut world, &[(reader, publisher), (last, publisher)]);
        assert!(world.subscriber(reader).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A spy dies: the stream waits for it until its driver has noticed, and no longer.
    dies, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let doomed = world.connect(hosts[0]);
        let dead = world.subscribe(doomed, Subscribing::new(spied(), STREAM));
        let lives = spy(&mut world, clients[0]);
        let publisher = world.publish(clients[0], simulating().messages(400));
        await_offered(&mut world, publisher, 30);
        world.kill_client(doomed);
        await_all(&mut world, &[(lives, publisher)]);
        assert!(world.subscriber(dead).ended().is_empty(), "nobody is left to be told");
        end(world);
    }
}

seeded! {
    /// The last spy leaves: the publisher is told, and the next one gets what is published from then on.
    gone_and_back, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let first = spy(&mut world, clients[0]);
        let publisher = world.publish(clients[0], simulating().messages(600));
        await_offered(&mut world, publisher, 50);
        world.subscriber_mut(first).close();
        world.run_until("the publisher is told", LONG, |world| told(world, publisher));
        assert!(!world.publisher(publisher).is_done(), "published without a spy");
        let second = spy(&mut world, clients[0]);
        await_all(&mut world, &[(second, publisher)]);
        end(world);
    }
}

fn told(world: &World, publisher: PublisherId) -> bool {
    let publisher = world.publisher(publisher);
    publisher.is_done() || publisher.refusal() == Some(OfferError::NotConnected)
}

seeded! {
    /// An untethered spy that stops reading holds nobody back for long, and gets a new image in time.
    untethered, 20, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let loose = Subscribing::new(format!("{}|tether=false", spied()), STREAM);
        let loose = world.subscribe(clients[0], loose);
        let quick = world.subscribe(clients[0], Subscribing::new(spied(), STREAM));
        let publishing = simulating().pause(Duration::from_millis(5));
        let publisher = world.publish(clients[0], publishing.messages(12_000));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(loose).set_laziness(1.0);
        world.run_until("the image of the loose spy has gone", LONG, |world| {
            world.subscriber(loose).ended().len() == 1
        });
        assert!(!world.publisher(publisher).is_done());
        world.subscriber_mut(loose).set_laziness(0.1);
        world.run_until("the loose spy has a new image", LONG, |world| {
            world.subscriber(loose).images().next().is_some()
        });
        await_all(&mut world, &[(quick, publisher), (loose, publisher)]);
        assert!(world.subscriber(quick).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// A revoked stream ends for spies and receivers within seconds, read or not.
    revoked, 30, |seed| {
        let mut pair = Pair::in_any_weather(seed);
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
