//! Timestamps in messages (docs/spec/wire.md §7.1).

use taran_sim::{Lengths, Publishing, Subscribing, seeded};

use super::common::{Pair, STREAM, channel};

seeded! {
    /// Times in the reserved value leave every message as it is, in any weather, also when it is sent again.
    reserved, 40, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let receiving = format!("{}|channel-rcv-ts-offset=reserved", channel(1));
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(receiving, STREAM));
        let sending = format!("{}|channel-snd-ts-offset=reserved", channel(1));
        let publisher = pair.world.publish(pair.clients[0], Publishing::new(sending, STREAM).messages(250));
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}

seeded! {
    /// Messages without room for a time keep all their bytes.
    no_room, 20, |seed| {
        let mut pair = Pair::in_any_weather(seed);
        let receiving = format!("{}|channel-rcv-ts-offset=100", channel(1));
        let subscriber = pair.world.subscribe(pair.clients[1], Subscribing::new(receiving, STREAM));
        let sending = format!("{}|channel-snd-ts-offset=200", channel(1));
        let publishing = Publishing::new(sending, STREAM).lengths(Lengths::Small).messages(250);
        let publisher = pair.world.publish(pair.clients[0], publishing);
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}
