//! How streams end when their publishers close them.

use std::time::Duration;

use taran_sim::{Publishing, Subscribing, seeded};

use super::common::{LONG, Pair, STREAM, await_offered, channel, end};

seeded! {
    /// A publisher that closes with its last message has that delivered, and the image ends there.
    closed_at_once, 60, |seed| {
        let mut pair = Pair::in_any_weather(seed);
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
    /// A publication is closed and opened again at once, several times: streams of their own, each complete.
    reopened, 40, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let subscriber = pair.subscribe();
        for round in 0..5 {
            let exclusive = pair.world.random().bool();
            let publishing = Publishing::new(channel(1), STREAM).exclusive(exclusive).messages(40);
            let publisher = pair.world.publish(pair.clients[0], publishing);
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
    /// A slow subscriber reads to the end of a stream whose publisher is long gone.
    read_to_the_end, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let ipc = world.random().bool();
        let channel = if ipc { "aeron:ipc".to_owned() } else { channel(1) };
        let reader = if ipc { clients[0] } else { clients[1] };
        let subscriber = world.subscribe(reader, Subscribing::new(channel.as_str(), STREAM));
        let publisher = world.publish(clients[0], Publishing::new(channel, STREAM).messages(30));
        await_offered(&mut world, publisher, 10);
        world.subscriber_mut(subscriber).set_laziness(1.0);
        world.run_for(Duration::from_secs(1));
        world.publisher_mut(publisher).close();
        world.run_for(Duration::from_secs(8));
        world.subscriber_mut(subscriber).set_laziness(0.5);
        world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = world.subscriber(subscriber).ended()[0];
        assert!(ended.is_complete, "{ended:?}");
        end(world);
    }
}

seeded! {
    /// A revoked stream ends for its subscribers within seconds, read or not.
    revoked, 30, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let (subscriber, publisher) = pair.flow(300);
        await_offered(&mut pair.world, publisher, 100);
        pair.world.publisher_mut(publisher).revoke();
        pair.world.run_until("the image has ended", Duration::from_secs(20), |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        pair.end();
    }
}
