// SPDX-License-Identifier: Apache-2.0
//! Ends of streams whose publishers close them.

use std::time::Duration;

use taran_sim::{PublisherSpec, SubscriberId, SubscriberSpec, seeded};

use super::common::{LONG, Pair, STREAM, await_offered, between, channel, end};

seeded! {
    /// A publisher that closes right after its last message: everything is delivered, and the image ends there.
    closed_at_once, 60, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let messages = pair.world.random().u64(1..300);
        let (subscriber, publisher) = pair.flow(messages);
        await_offered(&mut pair.world, publisher, messages);
        pair.world.publisher_mut(publisher).close();
        pair.world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let key = pair.world.publisher(publisher).key().unwrap();
        let ended = pair.world.subscriber(subscriber).ended()[0];
        assert_eq!(ended.key, key);
        assert!(ended.at_end_of_stream && ended.is_complete, "{ended:?}");
        pair.end();
    }
}

seeded! {
    /// A publication is closed and opened again at once, several times: separate streams, each complete.
    reopened_publications_are_separate_streams, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let subscriber = pair.subscribe();
        for round in 0..5 {
            let exclusive = pair.world.random().bool();
            let publication = PublisherSpec::new(channel(1), STREAM).exclusive(exclusive).messages(40);
            let publisher = pair.world.publish(pair.clients[0], publication);
            await_offered(&mut pair.world, publisher, 40);
            pair.world.publisher_mut(publisher).close();
            if pair.world.random().bool() {
                pair.world.run_until("the stream has ended", LONG, |world| {
                    world.subscriber(subscriber).ended().len() == round + 1
                });
            }
        }
        pair.world.run_until("all streams have ended", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 5
        });
        for ended in pair.world.subscriber(subscriber).ended() {
            assert!(ended.is_complete, "{ended:?}");
        }
        pair.end();
    }
}

seeded! {
    /// A slow subscriber reads to the end of a stream whose publisher was closed long before.
    slow_subscriber, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let ipc = world.random().bool();
        let channel = if ipc { "aeron:ipc".to_owned() } else { channel(1) };
        let reader = if ipc { clients[0] } else { clients[1] };
        let subscriber = world.subscribe(reader, SubscriberSpec::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel, STREAM).messages(30));
        await_offered(&mut world, publisher, 10);
        world.subscriber_mut(subscriber).set_skip_rate(1.0);
        world.run_for(Duration::from_secs(1));
        world.publisher_mut(publisher).close();
        world.run_for(Duration::from_secs(8));
        world.subscriber_mut(subscriber).set_skip_rate(0.5);
        world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = world.subscriber(subscriber).ended()[0];
        assert!(ended.is_complete, "{ended:?}");
        end(world);
    }
}

seeded! {
    /// A revoked stream ends for its subscribers within seconds, consumed or not.
    revoked_stream_ends_for_subscribers, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(300);
        await_offered(&mut pair.world, publisher, 100);
        pair.world.publisher_mut(publisher).revoke();
        pair.world.run_until("the image has ended", Duration::from_secs(20), |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        pair.end();
    }
}

/// Revokes a stream and immediately applies a fault to the sides involved. The image must end in time, and a next
/// stream must be received.
fn revoked_when(seed: u64, trouble: impl Fn(&mut Pair, &mut SubscriberId)) {
    let mut pair = Pair::with_random_faults(seed);
    let (first, publisher) = pair.flow(300);
    await_offered(&mut pair.world, publisher, 100);
    pair.world.publisher_mut(publisher).revoke();
    let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(20));
    pair.world.run_for(pause);
    let mut subscriber = first;
    trouble(&mut pair, &mut subscriber);
    pair.world
        .run_until("the image has ended", Duration::from_secs(45), |world| {
            !world.subscriber(first).ended().is_empty()
        });
    let publication = PublisherSpec::new(channel(1), STREAM).messages(50);
    let next = pair.world.publish(pair.clients[0], publication);
    pair.await_all((subscriber, next));
    pair.end();
}

seeded! {
    /// The links are cut in one direction or both, for a short or a long time.
    revoked_and_partition, 20, |seed| revoked_when(seed, |pair, _| {
        let ids = pair.hosts.map(|host| pair.world.network_id(host));
        let (forward, back) = [(true, true), (true, false), (false, true)][seed as usize % 3];
        if forward {
            pair.world.network().cut(ids[0], ids[1]);
        }
        if back {
            pair.world.network().cut(ids[1], ids[0]);
        }
        let pause = between(&mut pair.world, Duration::from_millis(50), Duration::from_secs(30));
        pair.world.run_for(pause);
        pair.world.network().heal_all();
    })
}

seeded! {
    /// The publisher's driver restarts, or the receiver's with new subscribers.
    revoked_and_driver_restart, 15, |seed| revoked_when(seed, |pair, subscriber| {
        let host = seed as usize % 2;
        pair.world.kill_driver(pair.hosts[host]);
        pair.world.run_for(Duration::from_secs(15));
        pair.world.start_driver(pair.hosts[host]);
        pair.clients[host] = pair.world.connect(pair.hosts[host]);
        if host == 1 {
            *subscriber = pair.subscribe();
        }
    })
}

seeded! {
    /// The publisher's client dies.
    revoked_and_client_death, 15, |seed| revoked_when(seed, |pair, _| {
        pair.world.kill_client(pair.clients[0]);
        pair.clients[0] = pair.world.connect(pair.hosts[0]);
    })
}

seeded! {
    /// Several subscribers, one slow and one dead: all live ones see the end within seconds.
    revoked_with_several_subscribers, 20, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let victim = pair.world.connect(pair.hosts[1]);
        pair.world.subscribe(victim, SubscriberSpec::new(channel(1), STREAM));
        let slow = pair.subscribe();
        pair.world.subscriber_mut(slow).set_skip_rate(0.95);
        let (quick, publisher) = pair.flow(300);
        await_offered(&mut pair.world, publisher, 20);
        pair.world.kill_client(victim);
        pair.world.publisher_mut(publisher).revoke();
        pair.world.run_until("the images have ended", Duration::from_secs(20), |world| {
            [slow, quick].iter().all(|it| !world.subscriber(*it).ended().is_empty())
        });
        pair.end();
    }
}
