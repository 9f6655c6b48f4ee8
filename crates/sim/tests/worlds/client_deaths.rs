// SPDX-License-Identifier: Apache-2.0
//! Clients that die.

use std::time::Duration;

use taran::{CloseReason, Lost, OfferError, PollError};
use taran_protocol::counter::SystemCounter;
use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

seeded! {
    /// A publisher dies: everything it had published is delivered, then its streams end.
    dead_publisher_loses_nothing_published, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(400);
        await_offered(&mut pair.world, publisher, 100);
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(50));
        pair.world.run_for(pause);
        let key = pair.world.publisher(publisher).key().unwrap();
        pair.world.kill_client(pair.clients[0]);
        pair.world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = pair.world.subscriber(subscriber).ended()[0];
        assert_eq!(ended.key, key);
        assert!(ended.is_complete, "{ended:?}");
        assert_eq!(pair.world.system(pair.hosts[0], SystemCounter::ClientTimeouts), 1);
        pair.end();
    }
}

seeded! {
    /// A subscriber dies: it blocks the publisher until the driver detects the death; other subscribers lose nothing.
    dead_subscriber_blocks_until_detected, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let dies = pair.world.connect(pair.hosts[1]);
        pair.world.subscribe(dies, SubscriberSpec::new(channel(1), STREAM));
        let (stays, publisher) = pair.flow(600);
        await_offered(&mut pair.world, publisher, 50);
        pair.world.kill_client(dies);
        pair.await_all((stays, publisher));
        pair.end();
    }
}

seeded! {
    /// Several clients with all their resources die at random times, even before the driver has responded to them.
    random_clients_killed, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::with_random_faults(seed);
        let survivor = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let stays = world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(300));
        for _ in 0..6 {
            let host = hosts[world.random().usize(0..2)];
            let client = world.connect(host);
            for _ in 0..world.random().u32(0..3) {
                let stream_id = STREAM + world.random().i32(0..2);
                let to = world.random().usize(0..2);
                let exclusive = world.random().bool();
                if to == host_number(host) {
                    world.subscribe(client, SubscriberSpec::new(channel(to), stream_id));
                    world.subscribe(client, SubscriberSpec::new("aeron:ipc", stream_id));
                } else {
                    let publication = PublisherSpec::new(channel(to), stream_id).exclusive(exclusive);
                    world.publish(client, publication.messages(50));
                }
            }
            let pause = between(&mut world, Duration::ZERO, Duration::from_millis(300));
            world.run_for(pause);
            world.kill_client(client);
        }
        await_all(&mut world, &[(survivor, stays)]);
        end(world);
    }
}

fn host_number(host: taran_sim::HostIndex) -> usize {
    host.number()
}

seeded! {
    /// A client that was paused beyond the liveness timeout ends with a typed reason, and its process can connect
    /// again.
    client_paused_beyond_its_timeout_reconnects, 30, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let client = world.connect(host);
        let subscriber = world.subscribe(client, SubscriberSpec::new("aeron:ipc", STREAM));
        let publication = PublisherSpec::new("aeron:ipc", STREAM).messages(1_000_000);
        let publisher = world.publish(client, publication);
        await_offered(&mut world, publisher, 10);
        let pause = between(&mut world, Duration::from_millis(10_100), Duration::from_secs(30));
        world.stall_client(client, pause);
        world.run_for(pause + Duration::from_secs(2));
        let end = world.client_end(client);
        let Some(CloseReason::Lost(lost)) = end else { panic!("{end:?}") };
        assert!(matches!(lost, Lost::ServiceInterval { .. } | Lost::ClientTimeout { .. }), "{lost:?}");
        assert_eq!(world.publisher(publisher).refusal(), Some(OfferError::DriverLost(lost)));
        assert_eq!(world.subscriber(subscriber).error(), Some(PollError::DriverLost(lost)));
        let again = world.connect(host);
        let subscriber = world.subscribe(again, SubscriberSpec::new("aeron:ipc", STREAM));
        let publisher = world.publish(again, PublisherSpec::new("aeron:ipc", STREAM).messages(20));
        await_all(&mut world, &[(subscriber, publisher)]);
        super::common::end(world);
    }
}

seeded! {
    /// Clients are paused beyond the liveness timeout and their counters are reused: after they resume they do not
    /// affect the new owners before they detect the timeout.
    paused_clients_resume, 40, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let publisher = world.connect(host);
        let publication = PublisherSpec::new("aeron:ipc", STREAM).messages(40);
        let publisher = world.publish(publisher, publication);
        let sleepers = [(); 3].map(|()| world.connect(host));
        let asleep = sleepers.map(|client| world.subscribe(client, SubscriberSpec::new("aeron:ipc", STREAM)));
        world.run_until("all subscribe", LONG, |world| {
            asleep.iter().all(|id| world.subscriber(*id).images().any(|image| image.delivered() > 10))
        });
        world.publisher_mut(publisher).publish_more(20);
        for client in sleepers {
            let pause = between(&mut world, Duration::from_secs(14), Duration::from_millis(14_500));
            world.stall_client(client, pause);
        }
        // The driver removes them after 10 s, and reuses their counters after 1 s more.
        world.run_for(Duration::from_millis(13_000));
        let awake = world.connect(host);
        let mut subscribers = Vec::new();
        for _ in 0..6 {
            subscribers.push(world.subscribe(awake, SubscriberSpec::new("aeron:ipc", STREAM)));
        }
        world.run_for(Duration::from_secs(4));
        for client in sleepers {
            assert!(matches!(world.client_end(client), Some(CloseReason::Lost(_))));
        }
        world.publisher_mut(publisher).publish_more(200);
        let flows: Vec<_> = subscribers.iter().map(|subscriber| (*subscriber, publisher)).collect();
        await_all(&mut world, &flows);
        world.close_all();
        world.expect_nothing_left();
    }
}
