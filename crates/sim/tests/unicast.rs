//! Streams between hosts, on networks of all kinds.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_sim::{HostSpec, Publishing, Subscribing, World, seeded, weather};

const LONG: Duration = Duration::from_secs(600);

/// The host with this number listens here.
fn channel(host: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.{}:40123", host + 1)
}

seeded! {
    /// A good network loses nothing, and so nobody asks for anything again.
    fair_network, 40, |seed| {
        let mut world = World::new(seed);
        let faults = weather::fair(world.random());
        world.set_faults(faults);
        let hosts = [(); 2].map(|()| world.add_host(HostSpec::new()));
        let clients = hosts.map(|host| world.connect(host));
        let subscriber = world.subscribe(clients[1], Subscribing::new(channel(1), 1001));
        let exclusive = world.random().bool();
        let publishing = Publishing::new(channel(1), 1001).exclusive(exclusive);
        let publisher = world.publish(clients[0], publishing.messages(400));
        world.run_until("all is delivered", LONG, |world| world.has_all(subscriber, publisher));
        for host in hosts {
            for counter in [
                SystemCounter::InvalidPackets,
                SystemCounter::FlowControlOverRuns,
                SystemCounter::FlowControlUnderRuns,
                SystemCounter::NaksSent,
                SystemCounter::RetransmitsSent,
                SystemCounter::StatusMessagesRejected,
            ] {
                assert_eq!(world.system(host, counter), 0, "{counter:?} of {host:?}");
            }
        }
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors();
    }
}

seeded! {
    /// Streams in both directions at once, over a network that loses, repeats, reorders, shortens and refuses.
    foul_network, 60, |seed| {
        let mut world = World::new(seed);
        let faults = weather::foul(world.random());
        world.set_faults(faults);
        let hosts = [(); 2].map(|()| world.add_host(HostSpec::new()));
        let clients = hosts.map(|host| world.connect(host));
        let mut flows = Vec::new();
        for stream_id in 0..4 {
            let (from, to) = if stream_id % 2 == 0 { (0, 1) } else { (1, 0) };
            let subscriber = world.subscribe(clients[to], Subscribing::new(channel(to), stream_id));
            let publishing = Publishing::new(channel(to), stream_id).exclusive(stream_id < 2);
            flows.push((subscriber, world.publish(clients[from], publishing.messages(250))));
        }
        world.run_until("all is delivered", LONG, |world| {
            flows.iter().all(|(subscriber, publisher)| world.has_all(*subscriber, *publisher))
        });
        for host in hosts {
            let over_runs = world.system(host, SystemCounter::FlowControlOverRuns);
            assert_eq!(over_runs, 0, "{host:?} was sent more than it had room for");
        }
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors();
    }
}
