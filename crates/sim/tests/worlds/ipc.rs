// SPDX-License-Identifier: Apache-2.0
//! Streams within a host.

use std::time::Duration;

use taran::CloseReason;
use taran_sim::{HostSpec, Lengths, PublisherSpec, SubscriberSpec, World, seeded};

use super::common::{STREAM, await_all, await_offered, end};

const IPC: &str = "aeron:ipc";

seeded! {
    /// One publisher, one subscriber, messages of all lengths, frequent term rotation.
    carries_a_stream, 60, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let (left, right) = (world.connect(host), world.connect(host));
        let subscriber = world.subscribe(left, SubscriberSpec::new(IPC, STREAM));
        let exclusive = world.random().bool();
        let publication = PublisherSpec::new(IPC, STREAM).exclusive(exclusive);
        let publisher = world.publish(right, publication.messages(600));
        await_all(&mut world, &[(subscriber, publisher)]);
        end(world);
    }
}

seeded! {
    /// Several clients share a publication, and several subscribe to it.
    shares_a_stream, 40, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let clients = [(); 4].map(|()| world.connect(host));
        let mut subscribers = Vec::new();
        let mut publishers = Vec::new();
        for client in clients {
            subscribers.push(world.subscribe(client, SubscriberSpec::new(IPC, STREAM)));
        }
        for client in clients {
            let publication = PublisherSpec::new(IPC, STREAM).lengths(Lengths::Framed);
            publishers.push(world.publish(client, publication.messages(150)));
        }
        let mut flows = Vec::new();
        for subscriber in &subscribers {
            flows.extend(publishers.iter().map(|publisher| (*subscriber, *publisher)));
        }
        await_all(&mut world, &flows);
        let streams = world.ledger().streams().count();
        assert_eq!(streams, 1, "four clients share one stream");
        end(world);
    }
}

seeded! {
    /// Exclusive publications with the same stream id are separate streams; a subscription gets all of them.
    merges_exclusive_streams, 30, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let clients = [(); 3].map(|()| world.connect(host));
        let subscriber = world.subscribe(clients[0], SubscriberSpec::new(IPC, STREAM));
        let publishers = clients.map(|client| {
            let publication = PublisherSpec::new(IPC, STREAM).exclusive(true);
            world.publish(client, publication.messages(200))
        });
        await_all(&mut world, &publishers.map(|publisher| (subscriber, publisher)));
        assert_eq!(world.subscriber(subscriber).images().count(), 3);
        end(world);
    }
}

seeded! {
    /// One of several readers is slow and one dies: the others and the slow one get everything.
    one_slow_one_dead, 20, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let clients = [(); 4].map(|()| world.connect(host));
        let readers = clients.map(|client| world.subscribe(client, SubscriberSpec::new(IPC, STREAM)));
        world.subscriber_mut(readers[0]).set_skip_rate(0.95);
        let writer = world.connect(host);
        let publisher = world.publish(writer, PublisherSpec::new(IPC, STREAM).messages(300));
        await_offered(&mut world, publisher, 50);
        world.kill_client(clients[1]);
        let flows: Vec<_> = [0, 2, 3].iter().map(|index| (readers[*index], publisher)).collect();
        await_all(&mut world, &flows);
        end(world);
    }
}

seeded! {
    /// The driver dies; new clients use its successor.
    driver_restart, 20, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        for _ in 0..2 {
            let (left, right) = (world.connect(host), world.connect(host));
            let subscriber = world.subscribe(left, SubscriberSpec::new(IPC, STREAM));
            let publisher = world.publish(right, PublisherSpec::new(IPC, STREAM).messages(100));
            await_all(&mut world, &[(subscriber, publisher)]);
            world.kill_driver(host);
            world.run_for(Duration::from_secs(15));
            for client in [left, right] {
                assert!(matches!(world.client_end(client), Some(CloseReason::Lost(_))));
            }
            world.start_driver(host);
        }
        end(world);
    }
}
