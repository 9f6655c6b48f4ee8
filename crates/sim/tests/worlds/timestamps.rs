// SPDX-License-Identifier: Apache-2.0
//! Timestamps in messages (docs/spec/wire.md §7.1).

use taran_sim::{Lengths, PublisherSpec, SubscriberSpec, seeded};

use super::common::{Pair, STREAM, channel};

seeded! {
    /// Timestamps in the reserved value leave every message intact, with any link faults, retransmissions included.
    timestamps_in_reserved_values_keep_messages_intact, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let receiving = format!("{}|channel-rcv-ts-offset=reserved", channel(1));
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(receiving, STREAM));
        let sending = format!("{}|channel-snd-ts-offset=reserved", channel(1));
        let publisher = pair.world.publish(pair.clients[0], PublisherSpec::new(sending, STREAM).messages(250));
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}

seeded! {
    /// Messages that are too short for a timestamp stay intact.
    messages_without_room_for_timestamps_stay_intact, 20, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let receiving = format!("{}|channel-rcv-ts-offset=100", channel(1));
        let subscriber = pair.world.subscribe(pair.clients[1], SubscriberSpec::new(receiving, STREAM));
        let sending = format!("{}|channel-snd-ts-offset=200", channel(1));
        let publication = PublisherSpec::new(sending, STREAM).lengths(Lengths::Small).messages(250);
        let publisher = pair.world.publish(pair.clients[0], publication);
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}
