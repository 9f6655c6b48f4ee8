// SPDX-License-Identifier: Apache-2.0
//! Making, moving, renewing and losing links.

use super::*;

#[test]
fn announcement_leads_to_keys_of_both_directions() {
    let mut world = World::new();
    world.connect();
    assert_eq!(world.sender.announced, 1);
    assert_eq!(world.sender.keeper.link_count(), 1);
    assert_eq!(world.receiver.keeper.link_count(), 1);
    let mut sealed = vec![0; 76];
    let back = world
        .receiver
        .back_seal
        .as_mut()
        .expect("the sender confirmed the key");
    back.seal(&[5; 36], &mut sealed).unwrap();
    let id = KeyId(sealed[8..16].try_into().unwrap());
    let mut plain = vec![0; 36];
    let opened = world
        .sender
        .open
        .get_mut(&id)
        .unwrap()
        .open(&sealed, &mut plain);
    assert_eq!(opened, Ok(36));
}

#[test]
fn no_key_leaves_before_the_link_is_confirmed() {
    let mut world = World::new();
    world.announce();
    // INIT passes, and the confirmation does not.
    world.run(|to_sender, bytes| !to_sender || bytes[6] == 0x54);
    assert_eq!(world.sender.keeper.link_count(), 0);
    assert!(world.receiver.open.is_empty());
    let pairs = world.recorded[1].iter().filter(|bytes| bytes[6] == 0x57);
    assert_eq!(pairs.count(), 0);
}

#[test]
fn every_datagram_of_the_handshake_may_be_lost_once() {
    let mut complete = World::new();
    complete.connect();
    let total = complete.recorded[0].len() + complete.recorded[1].len();
    assert!(total >= 6, "{total} datagrams");
    for lost in 0..total {
        let mut world = World::new();
        world.announce();
        let mut number = 0;
        world.run(|_, _| {
            number += 1;
            number - 1 != lost
        });
        for _ in 0..20 {
            world.announce();
            world.pass_time(100 * MILLI, 50 * MILLI);
        }
        assert!(world.transfer().is_some(), "datagram {lost} lost");
        assert!(world.receiver.back_seal.is_some(), "datagram {lost} lost");
    }
}

#[test]
fn init_for_another_channel_is_refused() {
    let mut world = World::new();
    world.receiver.keeper.remove_receiver(1);
    world
        .receiver
        .keeper
        .add_receiver(1, receiver_config([2; 4]));
    world.receiver.keeper.add_subscription(1, None, STREAM.1);
    world.announce();
    world.run(|_, _| true);
    assert_eq!(world.sender.keeper.link_count(), 0);
    let refusal = |event: &Event| {
        matches!(
            event,
            Event::PeerRefused {
                why: Refusal::OtherChannel,
                ..
            }
        )
    };
    assert!(world.sender.events.iter().any(refusal));
}

#[test]
fn everything_replayed_changes_nothing() {
    let mut world = World::new();
    world.connect();
    let recorded = world.recorded.clone();
    let before = (world.sender.open.len(), world.receiver.open.len());
    for wait in [0, 10 * SECOND] {
        world.pass_time(wait, SECOND);
        for _ in 0..3 {
            for bytes in &recorded[0] {
                let (port, source) = (world.sender.port, world.receiver.address);
                world
                    .sender
                    .keeper
                    .on_datagram(world.now, port, source, bytes);
            }
            for bytes in &recorded[1] {
                let (port, source) = (world.receiver.port, world.sender.address);
                world
                    .receiver
                    .keeper
                    .on_datagram(world.now, port, source, bytes);
            }
            world.run(|_, _| true);
        }
        assert_eq!(world.sender.keeper.link_count(), 1);
        assert_eq!((world.sender.open.len(), world.receiver.open.len()), before);
        assert!(world.transfer().is_some());
    }
}

/// Both directions, each bit: no key is handed out for a changed datagram, and the true one still works.
#[test]
fn every_flipped_bit_of_every_datagram_is_survived() {
    let mut complete = World::new();
    complete.connect();
    let lengths: Vec<usize> = complete.recorded.iter().flatten().map(Vec::len).collect();
    let bits: usize = lengths.iter().max().unwrap() * 8;
    for bit in (0..bits).step_by(7) {
        let mut world = World::new();
        world.announce();
        for _ in 0..100 {
            let (to_receiver, to_sender) = (world.sender.drain(), world.receiver.drain());
            if to_receiver.is_empty() && to_sender.is_empty() {
                break;
            }
            for (datagrams, is_to_sender) in [(to_sender, true), (to_receiver, false)] {
                for (_, bytes) in datagrams {
                    let (node, source) = if is_to_sender {
                        (&mut world.sender, world.receiver.address)
                    } else {
                        (&mut world.receiver, world.sender.address)
                    };
                    if bit < bytes.len() * 8 {
                        let mut flipped = bytes.clone();
                        flipped[bit / 8] ^= 1 << (bit % 8);
                        node.keeper
                            .on_datagram(world.now, node.port, source, &flipped);
                    }
                    node.keeper
                        .on_datagram(world.now, node.port, source, &bytes);
                }
            }
        }
        assert!(world.transfer().is_some(), "bit {bit}");
        assert_eq!(world.receiver.open.len(), 1, "bit {bit}");
    }
}

#[test]
fn silent_link_ends_with_its_keys() {
    let mut world = World::new();
    world.connect();
    for _ in 0..40 {
        world.now += SECOND;
        world.receiver.keeper.on_tick(world.now);
        world.sender.keeper.on_tick(world.now);
        // An insider may still seal; only PAIR frames keep a link.
        world.run(|_, _| false);
    }
    assert_eq!(world.receiver.keeper.link_count(), 0);
    assert_eq!(world.sender.keeper.link_count(), 0);
    assert!(world.receiver.open.is_empty() && world.sender.open.is_empty());
    world.connect();
}

#[test]
fn living_link_stays_and_is_renewed() {
    let mut world = World::new();
    world.connect();
    world.pass_time(60 * SECOND, SECOND);
    assert!(world.transfer().is_some());
    let handshakes = world.receiver.keeper.counts().handshakes;
    world.pass_time(3_700 * SECOND, 10 * SECOND);
    assert!(world.receiver.keeper.counts().handshakes > handshakes);
    assert_eq!(world.receiver.keeper.link_count(), 1);
    assert!(world.transfer().is_some());
    assert!(world.sender.keeper.counts().rotations > 0);
}

#[test]
fn receiver_that_restarts_gets_the_key_again() {
    let mut world = World::new();
    world.connect();
    let recorded = world.sealed();
    let trusts = [(1, "sender publish=* subscribe=*")];
    world.receiver = Node::new(receiver(33, &trusts), Port::Receiver(1), "10.0.0.9:40456");
    let source = world.sender.address;
    for _ in 0..3 {
        let sealed = world.sealed();
        let id = KeyId(sealed[8..16].try_into().unwrap());
        world
            .receiver
            .keeper
            .on_unknown_key(world.now, 1, source, id, sealed.len());
        world.run(|_, _| true);
        world.pass_time(200 * MILLI, 100 * MILLI);
    }
    world.announce();
    world.run(|_, _| true);
    assert!(world.transfer().is_some());
    assert!(world.open(&recorded).is_none(), "sealed before the grant");
}

#[test]
fn sender_that_restarts_is_found_again() {
    let mut world = World::new();
    world.connect();
    let mut sender = keeper(1, 44, trusting(&[(2, "receiver publish=* subscribe=*")]));
    sender.add_sender(
        1,
        SenderConfig {
            address: CHANNEL.parse().unwrap(),
            tags: vec![[1; 4]],
            group: None,
            peers: None,
        },
    );
    sender.add_stream(world.now, 1, STREAM.0, STREAM.1);
    world.sender = Node::new(sender, Port::Sender(1), "10.0.0.1:5000");
    world.run(|_, _| true);
    world.announce();
    world.run(|_, _| true);
    assert!(world.transfer().is_some());
    assert_eq!(
        world.receiver.open.len(),
        1,
        "the keys of the earlier run are closed"
    );
}

/// Only the address that a challenge was answered from gets what is led to the link.
#[test]
fn link_moves_only_to_an_address_that_answers() {
    let mut world = World::new();
    world.connect();
    world.pass_time(3 * SECOND, SECOND);
    world.now += 3 * SECOND;
    world.receiver.keeper.on_tick(world.now);
    let sent = world.receiver.drain();
    assert!(!sent.is_empty());
    let victim: SocketAddr = "10.9.9.9:1".parse().unwrap();
    let port = world.sender.port;
    for (_, bytes) in sent {
        world
            .sender
            .keeper
            .on_datagram(world.now, port, victim, &bytes);
    }
    let to_victim: Vec<usize> = world
        .sender
        .drain()
        .into_iter()
        .filter(|(to, _)| *to == victim)
        .map(|(_, bytes)| bytes.len())
        .collect();
    assert_eq!(to_victim, [52], "a challenge and nothing else");
    let keeper = &mut world.sender.keeper;
    keeper.rotate(world.now, 1, STREAM.0, STREAM.1, Rotation::Command);
    for (to, _) in world.sender.drain() {
        assert_eq!(to, world.receiver.address);
    }
}

#[test]
fn sender_of_a_group_answers_to_the_group_and_proves_no_address() {
    let group: SocketAddr = "224.20.30.39:40123".parse().unwrap();
    let mut world = World::new();
    let mut sender = keeper(1, 11, trusting(&[(2, "receiver publish=* subscribe=*")]));
    let config = SenderConfig {
        address: CHANNEL.parse().unwrap(),
        tags: vec![[1; 4]],
        group: Some(group),
        peers: None,
    };
    sender.add_sender(1, config);
    sender.add_stream(0, 1, STREAM.0, STREAM.1);
    world.sender = Node::new(sender, Port::Sender(1), "10.0.0.1:5000");
    world.announce();
    let mut answers = 0;
    for _ in 0..10 {
        let asked = world.receiver.drain();
        for (index, (_, bytes)) in asked.into_iter().enumerate() {
            // Each frame comes from another address.
            let source = SocketAddr::from(([10, 0, 9, index as u8], 40_123));
            let port = world.sender.port;
            world.sender.keeper.on_datagram(0, port, source, &bytes);
        }
        for (to, bytes) in world.sender.drain() {
            assert_eq!(to, group);
            answers += 1;
            let (port, source) = (world.receiver.port, world.sender.address);
            world.receiver.keeper.on_datagram(0, port, source, &bytes);
        }
    }
    assert!(answers >= 2, "{answers}");
    assert!(world.transfer().is_some());
}
