// SPDX-License-Identifier: Apache-2.0
//! Claims that are held for long, and clients that die with one.

use std::time::Duration;

use taran::Publication;
use taran_protocol::counter::SystemCounter;
use taran_sim::traffic::{MessageState, StreamKey};
use taran_sim::{
    ClientId, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World, seeded,
};

use super::common::{LONG, STREAM, await_all, await_offered, between, channel, end};

/// Two clients of the first host share a publication, which is read on the same host or another.
struct Shared {
    world: World,
    clients: [ClientId; 2],
    publishers: [PublisherId; 2],
    subscriber: SubscriberId,
}

impl Shared {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let left = world.add_host(HostSpec::new());
        let (channel, right) = if world.random().bool() {
            ("aeron:ipc".to_owned(), left)
        } else {
            (channel(1), world.add_host(HostSpec::new()))
        };
        let clients = [(); 2].map(|()| world.connect(left));
        let reader = world.connect(right);
        let subscriber = world.subscribe(reader, SubscriberSpec::new(channel.as_str(), STREAM));
        let publishers = clients.map(|client| {
            world.publish(
                client,
                PublisherSpec::new(channel.as_str(), STREAM).messages(50),
            )
        });
        let mut shared = Self {
            world,
            clients,
            publishers,
            subscriber,
        };
        for publisher in publishers {
            await_offered(&mut shared.world, publisher, 10);
        }
        shared
    }

    fn key(&self) -> StreamKey {
        self.world.publisher(self.publishers[0]).key().unwrap()
    }

    /// Returns the first client's publication.
    fn publication(&mut self) -> Publication {
        self.world.run_until("there is room", LONG, |world| {
            let publisher = world.publisher(self.publishers[0]);
            publisher.position() < publisher.limit()
        });
        self.world.publisher(self.publishers[0]).shared().unwrap()
    }

    /// Claims a message of the pattern and records it as held; the second client publishes behind it.
    fn claim<'p>(&mut self, publication: &'p Publication) -> (taran::BufferClaim<'p>, usize) {
        let (key, length) = (self.key(), self.world.random().usize(0..1_000));
        let mut claim = loop {
            match publication.try_claim(length) {
                Ok(claim) => break claim,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            self.world.step();
        };
        let stream = self.world.ledger_mut().stream_mut(&key).unwrap();
        let index = stream.push(claim.position(), length, MessageState::Held);
        stream.fill(index, &mut claim);
        (claim, index)
    }

    fn set_state(&mut self, index: usize, fate: MessageState) {
        let key = self.key();
        self.world
            .ledger_mut()
            .stream_mut(&key)
            .unwrap()
            .set_state(index, fate);
    }

    fn unblocked(&self) -> i64 {
        let host = self.world.host_of(self.clients[0]);
        self.world
            .system(host, SystemCounter::UnblockedPublications)
    }
}

seeded! {
    /// A claim that is held for seconds delays what lies behind it until it is committed or aborted.
    held_claim, 30, |seed| {
        let mut shared = Shared::new(seed);
        let publication = shared.publication();
        let (claim, index) = shared.claim(&publication);
        let pause = between(&mut shared.world, Duration::ZERO, Duration::from_secs(12));
        shared.world.run_for(pause);
        if shared.world.random().bool() {
            claim.commit();
            shared.set_state(index, MessageState::Sent);
        } else {
            claim.abort();
            shared.set_state(index, MessageState::Aborted);
        }
        drop(publication);
        let flows = shared.publishers.map(|publisher| (shared.subscriber, publisher));
        await_all(&mut shared.world, &flows);
        assert_eq!(shared.unblocked(), 0);
        end(shared.world);
    }
}

seeded! {
    /// A client dies between claim and commit: the driver replaces the claim with padding, and the other client's
    /// messages arrive.
    dead_claim, 40, |seed| {
        let mut shared = Shared::new(seed);
        let publication = shared.publication();
        let (claim, index) = shared.claim(&publication);
        std::mem::forget(claim);
        std::mem::forget(publication);
        shared.world.kill_client(shared.clients[0]);
        shared.set_state(index, MessageState::Aborted);
        let survivor = shared.publishers[1];
        await_all(&mut shared.world, &[(shared.subscriber, survivor)]);
        assert_eq!(shared.unblocked(), 1);
        shared.world.publisher_mut(survivor).publish_more(50);
        await_all(&mut shared.world, &[(shared.subscriber, survivor)]);
        end(shared.world);
    }
}

seeded! {
    /// The only client of a publication dies between claim and commit: its stream ends with what it had committed.
    dead_claim_of_only_client, 30, |seed| {
        let mut shared = Shared::new(seed);
        shared.world.close_client(shared.clients[1]);
        let publication = shared.publication();
        let (claim, index) = shared.claim(&publication);
        std::mem::forget(claim);
        std::mem::forget(publication);
        shared.world.kill_client(shared.clients[0]);
        shared.set_state(index, MessageState::Aborted);
        let subscriber = shared.subscriber;
        shared.world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = shared.world.subscriber(subscriber).ended()[0];
        assert!(ended.at_end_of_stream && ended.is_complete, "{ended:?}");
        end(shared.world);
    }
}
