// SPDX-License-Identifier: Apache-2.0
//! Channel parameters.

use std::time::Duration;

use taran::OfferError;
use taran_protocol::counter::SystemCounter;
use taran_sim::network::LinkFaults;
use taran_sim::{Lengths, PublisherSpec, SubscriberSpec, link_profiles, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, channel, end};

seeded! {
    /// Without repair messages are missing, and the stream continues.
    unreliable_stream_skips_lost_messages, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::new(seed);
        let faults = LinkFaults { loss: 0.05, ..link_profiles::faulty(world.random()) };
        world.set_faults(faults);
        let subscription = SubscriberSpec::new(format!("{}|reliable=false", channel(1)), STREAM).lossy();
        let subscriber = world.subscribe(clients[1], subscription);
        let publication = PublisherSpec::new(channel(1), STREAM).messages(500);
        let publisher = world.publish(clients[0], publication);
        await_all(&mut world, &[(subscriber, publisher)]);
        assert!(world.system(hosts[1], SystemCounter::LossGapFills) > 0);
        assert_eq!(world.system(hosts[1], SystemCounter::NaksSent), 0);
        end(world);
    }
}

seeded! {
    /// An untethered subscriber that stops reading limits the stream only for a short time, and gets a new image later.
    untethered_subscriber_that_stalls_rejoins, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let ipc = world.random().bool();
        let (reader, channel) = if ipc { (clients[0], "aeron:ipc?".to_owned()) } else { (clients[1], channel(1) + "|") };
        let untethered = world.subscribe(reader, SubscriberSpec::new(format!("{channel}tether=false"), STREAM));
        let quick = world.subscribe(reader, SubscriberSpec::new(format!("{channel}tether=true"), STREAM));
        let publication = PublisherSpec::new(channel.trim_end_matches(['|', '?']), STREAM)
            .pause(Duration::from_millis(5));
        let publisher = world.publish(clients[0], publication.messages(12_000));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(untethered).set_skip_rate(1.0);
        world.run_until("the image of the untethered subscriber has gone", LONG, |world| {
            world.subscriber(untethered).ended().len() == 1
        });
        assert!(!world.publisher(publisher).is_done());
        world.subscriber_mut(untethered).set_skip_rate(0.1);
        world.run_until("the untethered subscriber has a new image", LONG, |world| {
            world.subscriber(untethered).images().next().is_some()
        });
        await_all(&mut world, &[(quick, publisher), (untethered, publisher)]);
        assert!(world.subscriber(quick).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// Streams start at the position in their channel, across the wrap of term ids, and end at the maximum position.
    streams_start_at_their_position_and_end_at_the_maximum, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let ipc = world.random().bool();
        let (reader, channel) = if ipc { (clients[0], "aeron:ipc?".to_owned()) } else { (clients[1], channel(1) + "|") };
        // The last of the 2^31 terms of 64 KiB is the one before this.
        let initial_term_id = i32::MAX - world.random().i32(0..20);
        let terms_left = world.random().i32(1..8);
        let term_id = initial_term_id.wrapping_add(i32::MAX - terms_left + 1);
        let offset = 32 * world.random().i32(0..2_000);
        let parameters = format!("init-term-id={initial_term_id}|term-id={term_id}|term-offset={offset}");
        let subscriber = world.subscribe(reader, SubscriberSpec::new(channel.trim_end_matches(['|', '?']), STREAM));
        let exclusive = world.random().bool();
        let publication = PublisherSpec::new(format!("{channel}{parameters}"), STREAM)
            .exclusive(exclusive)
            .lengths(Lengths::Framed);
        let publisher = world.publish(clients[0], publication.messages(10_000));
        world.run_until("the position space is used up", LONG, |world| {
            matches!(world.publisher(publisher).refusal(), Some(OfferError::MaxPositionExceeded { .. }))
        });
        world.publisher_mut(publisher).close();
        world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = world.subscriber(subscriber).ended()[0];
        assert!(ended.is_complete, "{ended:?}");
        assert!(ended.position > (i64::from(i32::MAX) - 1) * 65_536, "{ended:?}");
        end(world);
    }
}

seeded! {
    /// A stream whose term ids wrap around.
    wrapping_term_ids, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let first = i32::MAX - world.random().i32(0..4);
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let from = format!("{}|init-term-id={first}|term-id={first}|term-offset=0", channel(1));
        let publisher = world.publish(clients[0], PublisherSpec::new(from, STREAM).messages(500));
        await_all(&mut world, &[(subscriber, publisher)]);
        end(world);
    }
}

seeded! {
    /// Subscriptions to one session each, of two publishers on two hosts.
    subscriptions_get_one_session_each, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::with_random_faults(seed);
        let mut flows = Vec::new();
        for session in [-7, 11] {
            let named = format!("{}|session-id={session}", channel(1));
            let subscriber = world.subscribe(clients[1], SubscriberSpec::new(named.as_str(), STREAM));
            let from = usize::from(session > 0);
            let publication = PublisherSpec::new(named, STREAM).messages(200);
            flows.push((subscriber, world.publish(clients[from], publication)));
        }
        await_all(&mut world, &flows);
        for (subscriber, _) in flows {
            assert_eq!(world.subscriber(subscriber).images().count(), 1);
        }
        end(world);
    }
}

seeded! {
    /// A few messages per second over a network with severe faults: the last one is repaired as well, and in time.
    last_of_few_messages_is_repaired_in_time, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::new(seed);
        let faults = link_profiles::faulty(world.random());
        world.set_faults(faults);
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let publication = PublisherSpec::new(channel(1), STREAM)
            .pause(Duration::from_millis(200))
            .burst(2);
        let publisher = world.publish(clients[0], publication);
        for _ in 0..40 {
            world.publisher_mut(publisher).publish_more(2);
            world.run_until("some messages are published", LONG, |world| world.publisher(publisher).is_done());
            // A lost message is detected by the next heartbeat; several heartbeats and NAKs may be lost too.
            world.run_until("they are delivered", Duration::from_secs(3), |world| {
                world.has_all(subscriber, publisher)
            });
        }
        end(world);
    }
}
