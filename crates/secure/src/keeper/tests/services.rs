// SPDX-License-Identifier: Apache-2.0
//! Response channels, name resolution, and handshakes that another thread computes.

use super::*;
use crate::keeper::{Audience, Job};

/// Stream of the requests of the peer of [`World`].
const RESPONSE: (i32, i32) = (8, 2002);

#[test]
fn response_is_granted_to_the_peer_that_requested_it_and_to_no_other() {
    for (audience, is_granted) in [
        (Audience::Peer("receiver".to_owned()), true),
        (Audience::Peer("another".to_owned()), false),
        (Audience::Empty, false),
    ] {
        for has_link in [true, false] {
            let mut world = World::new();
            if !has_link {
                world.sender.keeper.remove_stream(1, STREAM.0, STREAM.1);
            }
            let keeper = &mut world.sender.keeper;
            keeper.add_stream_for(world.now, 1, RESPONSE, audience.clone());
            world.receiver.keeper.add_response(1, RESPONSE, "sender");
            if has_link {
                world.announce();
                world.run(|_, _| true);
            }
            let (port, sender) = (world.receiver.port, world.sender.address);
            let keeper = &mut world.receiver.keeper;
            keeper.on_setup_request(world.now, port, sender);
            world.run(|_, _| true);
            world.pass_time(3 * SECOND, 100 * MILLI);
            let owner = world.receiver.keeper.owner_of(1, RESPONSE.0, RESPONSE.1);
            let expected = is_granted.then_some("sender");
            assert_eq!(owner, expected, "{audience:?} {has_link}");
        }
    }
}

#[test]
fn response_of_another_peer_than_was_asked_is_refused() {
    let mut world = World::with(
        &[(2, "receiver publish=* subscribe=*")],
        &[
            (1, "sender publish=* subscribe=*"),
            (3, "asked publish=* subscribe=*"),
        ],
    );
    world.sender.keeper.add_stream(0, 1, RESPONSE.0, RESPONSE.1);
    let keeper = &mut world.receiver.keeper;
    assert!(keeper.add_response(1, RESPONSE, "asked"));
    assert!(!keeper.add_response(1, RESPONSE, "sender"), "one is asked");
    // The link of the other stream is there, and its peer pushes the key, asked or not.
    world.connect();
    let announce = Announce::hint(
        0,
        identity(1).fingerprint(),
        world.sender.keeper.incarnation(),
        RESPONSE.0,
        RESPONSE.1,
    );
    let (port, source) = (world.receiver.port, world.sender.address);
    let keeper = &mut world.receiver.keeper;
    keeper.on_datagram(world.now, port, source, announce.as_bytes());
    // Refusals are reported once in a second.
    world.now += 2 * SECOND;
    let id = world.sender.seal[&RESPONSE].id();
    let keeper = &mut world.receiver.keeper;
    keeper.on_unknown_key(world.now, 1, source, id, 1_448);
    world.run(|_, _| true);
    world.pass_time(3 * SECOND, 100 * MILLI);
    assert_eq!(
        world.receiver.keeper.owner_of(1, RESPONSE.0, RESPONSE.1),
        None
    );
    let is_refusal = |event: &Event| {
        matches!(
            event,
            Event::PeerRefused {
                why: Refusal::Owned,
                ..
            }
        )
    };
    assert!(world.receiver.events.iter().any(is_refusal));
}

#[test]
fn receiver_that_knows_the_key_to_expect_asks_no_question() {
    let mut world = World::new();
    world.receiver.keeper.add_response(1, RESPONSE, "sender");
    let (port, sender) = (world.receiver.port, world.sender.address);
    let keeper = &mut world.receiver.keeper;
    keeper.on_setup_request(world.now, port, sender);
    world.run(|_, _| true);
    assert!(world.recorded[0].iter().all(|bytes| bytes[6] != 0x53));
    assert_eq!(world.sender.keeper.link_count(), 1);
}

#[test]
fn announcement_forged_before_the_true_one_does_not_lead_the_handshake_away() {
    let mut world = World::new();
    let announce = Announce::hint(0, identity(1).fingerprint(), 5, STREAM.0, STREAM.1);
    let (port, forger) = (world.receiver.port, "10.6.6.6:6".parse().unwrap());
    let keeper = &mut world.receiver.keeper;
    keeper.on_datagram(world.now, port, forger, announce.as_bytes());
    // What is sent to the forger does not reach the sender.
    let genuine = world.sender.address;
    for _ in 0..20 {
        world.announce();
        world.now += 100 * MILLI;
        world.receiver.keeper.on_tick(world.now);
        for (to, bytes) in world.receiver.drain() {
            if to == genuine {
                let (port, source) = (world.sender.port, world.receiver.address);
                let keeper = &mut world.sender.keeper;
                keeper.on_datagram(world.now, port, source, &bytes);
            }
        }
        for (_, bytes) in world.sender.drain() {
            let keeper = &mut world.receiver.keeper;
            keeper.on_datagram(world.now, port, genuine, &bytes);
        }
    }
    assert!(world.transfer().is_some());
}

/// Two neighbours of name resolution, the first with the smaller fingerprint.
struct Neighbors {
    now: u64,
    nodes: [Node; 2],
}

impl Neighbors {
    fn new(fields: [&str; 2]) -> Neighbors {
        let mut numbers = [1, 2];
        numbers.sort_by_key(|number| identity(*number).fingerprint().0);
        let node = |index: usize| {
            let other = format!("neighbor {}", fields[index]);
            let trust = trusting(&[(numbers[1 - index], other.as_str())]);
            let mut keeper = keeper(numbers[index], numbers[index].into(), trust);
            keeper.set_resolver(receiver_config([9; 4]));
            let address = format!("10.0.0.{}:8050", index + 1);
            Node::new(keeper, Port::Resolver, &address)
        };
        Neighbors {
            now: 0,
            nodes: [node(0), node(1)],
        }
    }

    fn run(&mut self) {
        for _ in 0..100 {
            let sent = self.nodes.each_mut().map(Node::drain);
            if sent.iter().all(Vec::is_empty) {
                return;
            }
            for (index, sent) in sent.into_iter().enumerate() {
                let source = self.nodes[index].address;
                for (to, bytes) in sent {
                    assert_eq!(to, self.nodes[1 - index].address);
                    let keeper = &mut self.nodes[1 - index].keeper;
                    keeper.on_datagram(self.now, Port::Resolver, source, &bytes);
                }
            }
        }
        panic!("the datagrams have no end");
    }

    /// One neighbour has something for the other.
    fn contact(&mut self, from: usize) {
        let to = self.nodes[1 - from].address;
        let keeper = &mut self.nodes[from].keeper;
        keeper.on_setup_request(self.now, Port::Resolver, to);
        self.run();
    }

    /// Returns true if what one neighbour seals is opened by the other.
    fn transfers(&mut self, from: usize) -> bool {
        let mut sealed = vec![0; 72];
        let Some(key) = self.nodes[from].back_seal.as_mut() else {
            return false;
        };
        key.seal(&[3; 32], &mut sealed).unwrap();
        let id = KeyId(sealed[8..16].try_into().unwrap());
        let opens = self.nodes[1 - from].open.get_mut(&id);
        opens.is_some_and(|key| key.open(&sealed, &mut [0; 32]).is_ok())
    }
}

#[test]
fn neighbors_agree_on_keys_of_both_directions_if_either_begins() {
    for first in [0, 1] {
        let mut neighbors = Neighbors::new(["publish=* subscribe=*"; 2]);
        neighbors.contact(first);
        for node in &neighbors.nodes {
            assert_eq!(node.keeper.link_count(), 1);
        }
        assert!(neighbors.transfers(0) && neighbors.transfers(1));
        // Another question, also from the other side, changes nothing.
        neighbors.contact(1 - first);
        for node in &neighbors.nodes {
            assert_eq!(node.keeper.link_count(), 1);
        }
        // Keys are rotated at both ends.
        for index in [0, 1] {
            neighbors.nodes[index].keeper.rotate_all(neighbors.now);
            neighbors.run();
        }
        assert!(neighbors.transfers(0) && neighbors.transfers(1));
    }
}

#[test]
fn neighbor_is_heard_and_told_as_its_patterns_say() {
    for (fields, expected) in [
        (["publish=* subscribe=*"; 2], [true, true]),
        // The first does not take what the second sends, and the other way round.
        (["subscribe=*", "publish=* subscribe=*"], [true, false]),
        (["publish=*", "publish=* subscribe=*"], [false, true]),
        (["publish=*", "publish=*"], [false, false]),
        (
            ["publish=10.9.0.0/16", "publish=* subscribe=*"],
            [false, false],
        ),
    ] {
        let mut neighbors = Neighbors::new(fields);
        neighbors.contact(0);
        neighbors.contact(1);
        let found = [neighbors.transfers(0), neighbors.transfers(1)];
        assert_eq!(found, expected, "{fields:?}");
    }
}

#[test]
fn neighbor_grants_nothing_and_asks_for_nothing() {
    let mut neighbors = Neighbors::new(["publish=* subscribe=*"; 2]);
    neighbors.contact(0);
    let outputs = neighbors.nodes.iter().map(|node| node.seal.len());
    assert_eq!(outputs.sum::<usize>(), 0);
    // A neighbour that is trusted no longer loses its keys at once.
    let none = trusting(&[]);
    neighbors.nodes[0].keeper.set_trust(neighbors.now, none);
    neighbors.run();
    assert!(neighbors.nodes[0].open.is_empty());
    assert_eq!(neighbors.nodes[0].keeper.link_count(), 0);
    assert_eq!(neighbors.nodes[1].keeper.link_count(), 0);
}

/// Applies the outputs of a keeper whose jobs others run; returns jobs and datagrams.
fn deferred(node: &mut Node) -> (Vec<Job<P>>, Vec<Vec<u8>>) {
    let (mut jobs, mut sent) = (Vec::new(), Vec::new());
    while let Some(output) = node.keeper.next_output() {
        match output {
            Output::Job(job) => jobs.push(job),
            Output::Send { bytes, .. } => sent.push(bytes),
            _ => {}
        }
    }
    (jobs, sent)
}

#[test]
fn keeper_that_defers_jobs_computes_nothing_itself() {
    let mut world = World::new();
    world.sender.keeper.defer_jobs();
    world.receiver.keeper.defer_jobs();
    world.announce();
    let (mut jobs, sent) = deferred(&mut world.receiver);
    assert_eq!((jobs.len(), sent.len()), (1, 0));
    let result = jobs.remove(0).run();
    world.receiver.keeper.on_job_done(world.now, result);
    let (_, sent) = deferred(&mut world.receiver);
    let (port, source) = (world.sender.port, world.receiver.address);
    for _ in 0..3 {
        // The same INIT again starts no other computation.
        let keeper = &mut world.sender.keeper;
        keeper.on_datagram(world.now, port, source, &sent[0]);
    }
    let (mut jobs, resps) = deferred(&mut world.sender);
    assert_eq!((jobs.len(), resps.len()), (1, 0));
    let result = jobs.remove(0).run();
    // A peer that lost its trust meanwhile gets no answer, and its INIT is computed anew.
    let trust = trusting(&[(2, "receiver publish=* subscribe=*")]);
    world.sender.keeper.set_trust(world.now, trust);
    world.sender.keeper.on_job_done(world.now, result);
    let (jobs, resps) = deferred(&mut world.sender);
    assert_eq!((jobs.len(), resps.len()), (0, 0));
    let keeper = &mut world.sender.keeper;
    keeper.on_datagram(world.now, port, source, &sent[0]);
    let (mut jobs, _) = deferred(&mut world.sender);
    world
        .sender
        .keeper
        .on_job_done(world.now, jobs.remove(0).run());
    let (_, resps) = deferred(&mut world.sender);
    let (port, source) = (world.receiver.port, world.sender.address);
    // A forged RESP costs a computation and does not end the handshake.
    let mut forged = resps[0].clone();
    forged[30] ^= 1;
    for resp in [&forged, &resps[0]] {
        let keeper = &mut world.receiver.keeper;
        keeper.on_datagram(world.now, port, source, resp);
    }
    let (mut jobs, _) = deferred(&mut world.receiver);
    while let Some(job) = jobs.pop() {
        world.receiver.keeper.on_job_done(world.now, job.run());
        jobs.extend(deferred(&mut world.receiver).0);
    }
    assert_eq!(world.receiver.keeper.peers(port).len(), 0);
    assert_eq!(world.receiver.keeper.counts().refused, 1);
}

#[test]
fn flood_of_inits_waits_for_a_bounded_number_of_computations() {
    let mut world = World::new();
    let options = KeeperOptions {
        handshake_rate: 10_000,
        ..KeeperOptions::default()
    };
    let trust = trusting(&[(2, "receiver publish=* subscribe=*")]);
    let entropy = Box::new(Seeded(fastrand::Rng::with_seed(5)));
    let mut flooded = Keeper::<P>::new(identity(1), trust, options, entropy);
    flooded.defer_jobs();
    flooded.add_sender(
        1,
        SenderConfig {
            address: CHANNEL.parse().unwrap(),
            tags: vec![[1; 4]],
            group: None,
            peers: None,
        },
    );
    flooded.add_stream(0, 1, STREAM.0, STREAM.1);
    world.sender.keeper = flooded;
    deferred(&mut world.sender);
    let port = world.sender.port;
    let (mut jobs, mut answers) = (0, 0);
    for number in 0..200_u64 {
        let mut flooder = keeper(2, number, trusting(&[(1, "sender publish=* subscribe=*")]));
        flooder.add_receiver(1, receiver_config([1; 4]));
        flooder.add_subscription(1, None, STREAM.1);
        let source = SocketAddr::from(([10, 1, (number / 250) as u8, number as u8], 9));
        let announce = Announce::hint(0, identity(1).fingerprint(), 1, STREAM.0, STREAM.1);
        flooder.on_datagram(0, Port::Receiver(1), source, announce.as_bytes());
        while let Some(output) = flooder.next_output() {
            if let Output::Send { bytes, .. } = output {
                // Half of them come later: the rate would allow more, and nothing is computed meanwhile.
                let now = if number < 100 { 0 } else { SECOND };
                let keeper = &mut world.sender.keeper;
                keeper.on_datagram(now, port, source, &bytes);
            }
        }
        let (waiting, sent) = deferred(&mut world.sender);
        jobs += waiting.len();
        answers += sent.len();
    }
    // The rest is answered with cookies.
    assert_eq!((jobs, answers), (32, 168));
    assert_eq!(world.sender.keeper.counts().cookies, 168);
}
