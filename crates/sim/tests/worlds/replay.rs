//! The same seed gives the same history, to the last bit.

use std::time::Duration;

use taran_sim::{HostSpec, Publishing, Subscribing, World, seeded, weather};

use super::common::{STREAM, channel};

/// A story with a bit of everything; a hash of its history, and how many events that has.
fn story(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let faults = weather::corrupting(world.random());
    world.distrust_content();
    world.set_faults(faults);
    let hosts = [(); 3].map(|()| world.add_host(HostSpec::new()));
    let clients = hosts.map(|host| [(); 2].map(|()| world.connect(host)));
    for to in 0..3 {
        for stream_id in [STREAM, STREAM + 1] {
            world.subscribe(clients[to][0], Subscribing::new(channel(to), stream_id));
            world.subscribe(clients[to][1], Subscribing::new("aeron:ipc", stream_id));
            for (from, [_, client]) in clients.into_iter().enumerate() {
                let publishing = Publishing::new(channel(to), stream_id).exclusive(from == 0);
                world.publish(client, publishing.messages(30));
            }
            world.publish(
                clients[to][0],
                Publishing::new("aeron:ipc", stream_id).messages(30),
            );
        }
    }
    world.run_for(Duration::from_secs(2));
    world.set_faults(weather::foul(&mut fastrand::Rng::with_seed(seed)));
    world.kill_client(clients[0][1]);
    world.kill_driver(hosts[1]);
    world.run_for(Duration::from_secs(20));
    world.start_driver(hosts[1]);
    world.close_all();
    (world.fingerprint(), world.event_count())
}

seeded! {
    /// Each story twice.
    same_seed_same_history, 4, |seed| {
        let (first, second) = (story(seed), story(seed));
        assert_eq!(first, second);
        assert!(first.1 > 1_000, "{first:?}");
        assert_ne!(first.0, story(seed + 1_000).0);
    }
}
