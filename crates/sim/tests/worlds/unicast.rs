// SPDX-License-Identifier: Apache-2.0
//! Streams between hosts, on networks with all kinds of faults.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_sim::{HostSpec, Lengths, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{Pair, STREAM, await_all, channel, end};

seeded! {
    /// A network without loss causes no NAKs and no retransmissions.
    clean_network, 60, |seed| {
        let mut pair = Pair::new(seed);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let flow = pair.flow(500);
        pair.await_all(flow);
        for host in pair.hosts {
            for counter in [
                SystemCounter::InvalidPackets,
                SystemCounter::FlowControlOverRuns,
                SystemCounter::FlowControlUnderRuns,
                SystemCounter::NaksSent,
                SystemCounter::RetransmitsSent,
                SystemCounter::StatusMessagesRejected,
            ] {
                assert_eq!(pair.world.system(host, counter), 0, "{counter:?} of {host:?}");
            }
        }
        pair.end();
    }
}

seeded! {
    /// Streams in both directions at once, over a network with loss, duplication, reordering, truncation and refused
    /// sends.
    faulty_network, 60, |seed| {
        let Pair { mut world, hosts, clients } = Pair::new(seed);
        let faults = link_profiles::faulty(world.random());
        world.set_faults(faults);
        let mut flows = Vec::new();
        for stream_id in 0..4 {
            let (from, to) = if stream_id % 2 == 0 { (0, 1) } else { (1, 0) };
            let subscriber = world.subscribe(clients[to], SubscriberSpec::new(channel(to), stream_id));
            let publication = PublisherSpec::new(channel(to), stream_id).exclusive(stream_id < 2);
            flows.push((subscriber, world.publish(clients[from], publication.messages(250))));
        }
        await_all(&mut world, &flows);
        for host in hosts {
            let over_runs = world.system(host, SystemCounter::FlowControlOverRuns);
            assert_eq!(over_runs, 0, "{host:?} was sent more than it had room for");
        }
        end(world);
    }
}

seeded! {
    /// Many streams on one channel with few messages each, whose datagrams may be coalesced, over a network that loses
    /// some and refuses others.
    coalesced_streams, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::new(seed);
        let faults = link_profiles::faulty(world.random());
        world.set_faults(faults);
        let mut flows = Vec::new();
        for stream_id in 0..12 {
            let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), stream_id));
            // Some streams have datagrams of equal length, others do not.
            let lengths = if stream_id < 8 { Lengths::Fixed(288) } else { Lengths::Framed };
            let publication = PublisherSpec::new(channel(1), stream_id)
                .exclusive(stream_id % 2 == 0)
                .lengths(lengths)
                .pause(Duration::from_micros(200))
                .burst(1);
            flows.push((subscriber, world.publish(clients[0], publication.messages(150))));
        }
        await_all(&mut world, &flows);
        end(world);
    }
}

/// Sends several streams to one socket at full speed while the receiving host stalls repeatedly, for `times` periods of
/// 0.4 s. Returns the number of datagrams dropped by the full socket in each period.
fn lost_at_a_busy_receiver(seed: u64, right: HostSpec, times: usize) -> Vec<u64> {
    let Pair {
        mut world,
        hosts,
        clients,
    } = Pair::of(
        seed,
        HostSpec::new().option("aeron.mtu.length", "1408"),
        right,
    );
    let flows: Vec<_> = (0..20)
        .map(|stream_id| {
            let subscriber =
                world.subscribe(clients[1], SubscriberSpec::new(channel(1), stream_id));
            let publication = PublisherSpec::new(channel(1), stream_id)
                .exclusive(true)
                .lengths(Lengths::Fixed(1_344))
                .burst(50);
            (
                subscriber,
                world.publish(clients[0], publication.messages(400 * times as u64)),
            )
        })
        .collect();
    let mut lost = Vec::new();
    for _ in 0..times {
        let before = world.network().counts().overflowed;
        for _ in 0..40 {
            world.run_for(Duration::from_millis(5));
            world.stall_host(hosts[1], Duration::from_millis(5));
        }
        lost.push(world.network().counts().overflowed - before);
    }
    await_all(&mut world, &flows);
    end(world);
    lost
}

/// A host with a socket buffer that does not hold the windows of that many streams.
fn short_buffer() -> HostSpec {
    HostSpec::new().option("aeron.socket.so_rcvbuf", "128k")
}

seeded! {
    /// The default socket buffer has room for everything that may be in flight; a configured smaller one has not.
    default_buffer_has_room, 20, |seed| {
        assert_eq!(lost_at_a_busy_receiver(seed, HostSpec::new(), 1), [0]);
        assert!(lost_at_a_busy_receiver(seed, short_buffer(), 1)[0] > 0);
    }
}

seeded! {
    /// If the buffer is too small, windows are reduced until it has room.
    window_throttle, 10, |seed| {
        let lost = lost_at_a_busy_receiver(seed, short_buffer(), 10);
        // Without the reduction, 1,700 to 2,900 datagrams are lost in the second half.
        assert!(lost[5..].iter().sum::<u64>() < 900, "{lost:?}");
    }
}

seeded! {
    /// Each direction of each link has its own faults; several clients share a publication; all hosts send to all.
    mesh_of_hosts_delivers_on_all_links, 30, |seed| {
        let mut world = World::new(seed);
        let hosts = [(); 3].map(|()| world.add_host(HostSpec::new()));
        for from in hosts {
            for to in hosts {
                let faults = link_profiles::faulty(world.random());
                let (from, to) = (world.network_id(from), world.network_id(to));
                world.network().set_link_faults(from, to, Some(faults));
            }
        }
        let clients = hosts.map(|host| [world.connect(host), world.connect(host)]);
        let mut flows = Vec::new();
        for to in 0..3 {
            let subscriber = world.subscribe(clients[to][0], SubscriberSpec::new(channel(to), STREAM));
            for from in clients {
                for client in from {
                    let publication = PublisherSpec::new(channel(to), STREAM).lengths(Lengths::Framed);
                    flows.push((subscriber, world.publish(client, publication.messages(40))));
                }
            }
        }
        await_all(&mut world, &flows);
        assert_eq!(world.ledger().streams().count(), 9);
        end(world);
    }
}

seeded! {
    /// Datagrams, windows and terms of all sizes.
    all_sizes_are_delivered, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let world = &mut pair.world;
        let mtu = [96, 1_408, 8_192, 65_504][world.random().usize(0..4)];
        let term_length = ["64k", "128k", "1m"][world.random().usize(0..3)];
        let window = [2_048, 16_384, 131_072][world.random().usize(0..3)].max(mtu);
        let mtu = if term_length == "64k" { mtu.min(8_192) } else { mtu.min(16_384) };
        let subscription = SubscriberSpec::new(format!("{}|rcv-wnd={window}", channel(1)), STREAM);
        let subscriber = world.subscribe(pair.clients[1], subscription);
        let channel = format!("{}|mtu={mtu}|term-length={term_length}", channel(1));
        let publication = PublisherSpec::new(channel, STREAM).messages(150);
        let publisher = world.publish(pair.clients[0], publication);
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}
