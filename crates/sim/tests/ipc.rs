//! Streams within a host.

use std::time::Duration;

use taran_sim::{HostSpec, Publishing, Subscribing, World, seeded};

const SOON: Duration = Duration::from_secs(20);

seeded! {
    /// One publisher, one subscriber, messages of all lengths, terms that turn often.
    carries_a_stream, 40, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let (left, right) = (world.connect(host), world.connect(host));
        let subscriber = world.subscribe(left, Subscribing::new("aeron:ipc", 1001));
        let exclusive = world.random().bool();
        let publishing = Publishing::new("aeron:ipc", 1001).exclusive(exclusive);
        let publisher = world.publish(right, publishing.messages(400));
        world.run_until("all is delivered", SOON, |world| world.has_all(subscriber, publisher));
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors();
    }
}
