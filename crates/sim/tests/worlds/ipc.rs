//! Streams within a host.

use taran_sim::{HostSpec, Lengths, Publishing, Subscribing, World, seeded};

use super::common::{STREAM, await_all, end};

const IPC: &str = "aeron:ipc";

seeded! {
    /// One publisher, one subscriber, messages of all lengths, terms that turn often.
    carries_a_stream, 60, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let (left, right) = (world.connect(host), world.connect(host));
        let subscriber = world.subscribe(left, Subscribing::new(IPC, STREAM));
        let exclusive = world.random().bool();
        let publishing = Publishing::new(IPC, STREAM).exclusive(exclusive);
        let publisher = world.publish(right, publishing.messages(600));
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
            subscribers.push(world.subscribe(client, Subscribing::new(IPC, STREAM)));
        }
        for client in clients {
            let publishing = Publishing::new(IPC, STREAM).lengths(Lengths::Framed);
            publishers.push(world.publish(client, publishing.messages(150)));
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
    /// Exclusive publications of one stream id are streams of their own, all of which a subscription gets.
    merges_exclusive_streams, 30, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let clients = [(); 3].map(|()| world.connect(host));
        let subscriber = world.subscribe(clients[0], Subscribing::new(IPC, STREAM));
        let publishers = clients.map(|client| {
            let publishing = Publishing::new(IPC, STREAM).exclusive(true);
            world.publish(client, publishing.messages(200))
        });
        await_all(&mut world, &publishers.map(|publisher| (subscriber, publisher)));
        assert_eq!(world.subscriber(subscriber).images().count(), 3);
        end(world);
    }
}
