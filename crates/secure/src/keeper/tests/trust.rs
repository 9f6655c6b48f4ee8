// SPDX-License-Identifier: Apache-2.0
//! Peers that may not have or send something, and owners of streams.

use super::*;

#[test]
fn unknown_and_forbidden_peers_get_no_key() {
    let all = "receiver publish=* subscribe=*";
    let sender = "sender publish=* subscribe=*";
    for (sender_trusts, receiver_trusts) in [
        (vec![], vec![(1, sender)]),
        (vec![(2, "receiver publish=*")], vec![(1, sender)]),
        (vec![(2, "receiver subscribe=*#5")], vec![(1, sender)]),
        (
            vec![(2, "receiver subscribe=10.9.0.0/16")],
            vec![(1, sender)],
        ),
        (vec![(3, all)], vec![(1, sender)]),
        (vec![(2, all)], vec![]),
        (vec![(2, all)], vec![(1, "sender subscribe=*")]),
        (vec![(2, all)], vec![(1, "sender publish=*#5")]),
    ] {
        let mut world = World::with(&sender_trusts, &receiver_trusts);
        world.announce();
        world.run(|_, _| true);
        world.pass_time(3 * SECOND, 100 * MILLI);
        assert!(
            world.receiver.open.is_empty(),
            "{sender_trusts:?} {receiver_trusts:?}"
        );
        assert_eq!(world.sender.keeper.link_count(), 0);
        let refused = world.sender.keeper.counts().refused + world.receiver.keeper.counts().refused;
        assert!(refused > 0);
    }
}

#[test]
fn untrusted_receiver_loses_the_key_at_once() {
    let mut world = World::new();
    world.connect();
    let old = world.sealed();
    world.sender.keeper.set_trust(world.now, trusting(&[]));
    world.run(|_, _| true);
    assert_eq!(world.sender.keeper.link_count(), 0);
    assert!(world.sender.open.is_empty());
    let new = world.sealed();
    assert_ne!(old[8..16], new[8..16]);
    assert!(world.open(&new).is_none());
    world.announce();
    world.run(|_, _| true);
    world.pass_time(3 * SECOND, 100 * MILLI);
    assert!(world.transfer().is_none());
}

/// Nothing more is sealed under a key that a peer has lost, although another receiver has not said that it has the next one.
#[test]
fn untrusted_receiver_loses_the_key_although_another_one_is_silent() {
    let both = [
        (2, "receiver publish=* subscribe=*"),
        (5, "other publish=* subscribe=*"),
    ];
    let trusts = [(1, "sender publish=* subscribe=*")];
    let mut world = World::with(&both, &trusts);
    world.connect();
    let mut other = keeper(5, 77, trusting(&trusts));
    let config = ReceiverConfig {
        receiver_id: 98,
        ..receiver_config([1; 4])
    };
    other.add_receiver(1, config);
    other.add_subscription(1, None, STREAM.1);
    let other = Node::new(other, Port::Receiver(1), "10.0.0.10:40456");
    let silent = std::mem::replace(&mut world.receiver, other);
    world.now += SECOND;
    world.connect();
    assert_eq!(world.sender.keeper.link_count(), 2);
    let before = world.sender.seal[&STREAM].id();
    world
        .sender
        .keeper
        .set_trust(world.now, trusting(&both[..1]));
    world.sender.drain();
    assert_ne!(world.sender.seal[&STREAM].id(), before);
    drop(silent);
}

#[test]
fn narrowed_patterns_take_the_key_away() {
    let mut world = World::new();
    world.connect();
    let narrowed = trusting(&[(2, "receiver publish=* subscribe=*#5")]);
    world.sender.keeper.set_trust(world.now, narrowed);
    world.run(|_, _| true);
    assert!(world.transfer().is_none());
    let narrowed = trusting(&[(1, "sender publish=*#5 subscribe=*")]);
    world.receiver.keeper.set_trust(world.now, narrowed);
    world.run(|_, _| true);
    assert!(world.receiver.open.is_empty());
}

#[test]
fn untrusted_sender_is_opened_no_longer() {
    let mut world = World::new();
    world.connect();
    world.receiver.keeper.set_trust(world.now, trusting(&[]));
    world.run(|_, _| true);
    assert!(world.receiver.open.is_empty());
    assert!(world.transfer().is_none());
    assert_eq!(world.receiver.keeper.link_count(), 0);
}

#[test]
fn receiver_id_of_another_peer_is_refused() {
    let trusts = [
        (2, "receiver publish=* subscribe=*"),
        (3, "insider publish=* subscribe=*"),
    ];
    let mut world = World::with(&trusts, &[(1, "sender publish=* subscribe=*")]);
    world.connect();
    let mut insider = keeper(3, 55, trusting(&[(1, "sender publish=* subscribe=*")]));
    insider.add_receiver(1, receiver_config([1; 4]));
    insider.add_subscription(1, None, STREAM.1);
    let insider = Node::new(insider, Port::Receiver(1), "10.0.0.10:40456");
    let receiver = std::mem::replace(&mut world.receiver, insider);
    world.announce();
    world.run(|_, _| true);
    assert!(world.receiver.open.is_empty());
    let refusal = |event: &Event| {
        matches!(
            event,
            Event::PeerRefused {
                why: Refusal::ReceiverId,
                ..
            }
        )
    };
    assert!(world.sender.events.iter().any(refusal));
    world.receiver = receiver;
    assert!(world.transfer().is_some());
}

/// Another trusted publisher must not write into an image by granting its session, not even between two epochs.
#[test]
fn stream_of_another_owner_is_refused_until_its_image_is_gone() {
    let both = [
        (1, "sender publish=* subscribe=*"),
        (4, "other publish=* subscribe=*"),
    ];
    let mut world = World::with(&[(2, "receiver publish=* subscribe=*")], &both);
    world.connect();
    let receiver = &mut world.receiver.keeper;
    assert!(receiver.on_image_begun(1, STREAM.0, STREAM.1));
    let mut other = keeper(4, 66, trusting(&[(2, "receiver publish=* subscribe=*")]));
    let config = SenderConfig {
        address: CHANNEL.parse().unwrap(),
        tags: vec![[1; 4]],
        group: None,
        peers: None,
    };
    other.add_sender(1, config);
    other.add_stream(0, 1, STREAM.0, STREAM.1);
    let incarnation = other.incarnation();
    let other = Node::new(other, Port::Sender(1), "10.0.0.4:5000");
    let sender = std::mem::replace(&mut world.sender, other);
    let announce = |world: &mut World| {
        let hint = Announce::hint(
            0,
            identity(4).fingerprint(),
            incarnation,
            STREAM.0,
            STREAM.1,
        );
        let (port, source) = (world.receiver.port, world.sender.address);
        let keeper = &mut world.receiver.keeper;
        keeper.on_datagram(world.now, port, source, hint.as_bytes());
        world.run(|_, _| true);
    };
    announce(&mut world);
    assert!(world.transfer().is_none());
    let refusal = |event: &Event| {
        matches!(
            event,
            Event::PeerRefused {
                why: Refusal::Owned,
                ..
            }
        )
    };
    assert!(world.receiver.events.iter().any(refusal));
    // The owner's keys are closed, and its image is still there.
    world
        .receiver
        .keeper
        .set_trust(world.now, trusting(&both[1..]));
    world.run(|_, _| true);
    assert!(world.receiver.open.is_empty());
    // As long as the image is there, however long that is.
    for _ in 0..20 {
        world.now += SECOND;
        world.receiver.keeper.on_tick(world.now);
    }
    announce(&mut world);
    assert!(world.transfer().is_none());
    world.receiver.keeper.on_image_gone(1, STREAM.0, STREAM.1);
    world.now += SECOND;
    announce(&mut world);
    assert!(world.transfer().is_some());
    drop(sender);
}

/// A peer that may publish one stream of a channel grants another one, whose key was asked for by its id.
#[test]
fn grant_of_a_stream_that_its_author_may_not_publish_is_refused() {
    const ALLOWED: (i32, i32) = (8, 1002);
    let mut world = World::with(
        &[(2, "receiver publish=* subscribe=*")],
        &[(1, "sender publish=*#1002 subscribe=*")],
    );
    world.receiver.keeper.add_subscription(1, None, ALLOWED.1);
    let sender = &mut world.sender.keeper;
    sender.add_stream(world.now, 1, ALLOWED.0, ALLOWED.1);
    let hint = Announce::hint(
        0,
        identity(1).fingerprint(),
        sender.incarnation(),
        ALLOWED.0,
        ALLOWED.1,
    );
    let (port, source) = (world.receiver.port, world.sender.address);
    let receiver = &mut world.receiver.keeper;
    receiver.on_datagram(world.now, port, source, hint.as_bytes());
    world.run(|_, _| true);
    assert_eq!(
        world.receiver.open.len(),
        1,
        "the key of the allowed stream"
    );
    world.now += SECOND;
    world.send();
    world.run(|_, _| true);
    assert!(world.transfer().is_none());
    assert_eq!(world.receiver.open.len(), 1);
    let refusal = |event: &Event| {
        matches!(
            event,
            Event::PeerRefused {
                why: Refusal::Publish(Some(1001)),
                ..
            }
        )
    };
    let events = &world.receiver.events;
    assert!(events.iter().any(refusal), "{events:?}");
}

/// A publisher that changes its session forever, and whose streams never become images, fills no memory; and none of its
/// streams changes hands while a SETUP that its last key opened may be on the way.
#[test]
fn owner_without_keys_and_image_is_forgotten_after_a_grace() {
    let mut world = World::new();
    for session in 0..50 {
        let stream = (100 + session, STREAM.1);
        world
            .sender
            .keeper
            .add_stream(world.now, 1, stream.0, stream.1);
        let hint = Announce::hint(
            0,
            identity(1).fingerprint(),
            world.sender.keeper.incarnation(),
            stream.0,
            stream.1,
        );
        let (port, source) = (world.receiver.port, world.sender.address);
        let receiver = &mut world.receiver.keeper;
        receiver.on_datagram(world.now, port, source, hint.as_bytes());
        world.run(|_, _| true);
        assert!(owner(&world, stream).is_some(), "{stream:?}");
        world.sender.keeper.remove_stream(1, stream.0, stream.1);
        world.run(|_, _| true);
        world.pass_time(SECOND, SECOND / 4);
        assert!(owner(&world, stream).is_some(), "the grace of {stream:?}");
        let receiver = &mut world.receiver.keeper;
        if session % 2 == 0 {
            // A SETUP that came through asks for an image, which is not made after all.
            assert!(receiver.on_image_begun(1, stream.0, stream.1));
            receiver.on_image_gone(1, stream.0, stream.1);
            assert!(owner(&world, stream).is_none(), "{stream:?}");
        }
        assert!(world.receiver.keeper.shared.owners.len() <= 10, "{session}");
    }
    world.pass_time(12 * SECOND, SECOND / 4);
    assert_eq!(world.receiver.keeper.shared.owners.len(), 0);
    // The SETUP of a stream without key and owner becomes no image.
    let receiver = &mut world.receiver.keeper;
    assert!(!receiver.on_image_begun(1, 149, STREAM.1));
}

fn owner(world: &World, (session_id, stream_id): (i32, i32)) -> Option<&str> {
    world
        .receiver
        .keeper
        .shared
        .owners
        .of((1, (session_id, stream_id)))
}

/// A publisher that changes its session for ever does not fill the receiver with records of closed keys: they go when no link
/// lives any more that a grant could have been held back on.
#[test]
fn records_of_closed_keys_are_forgotten_with_the_links_of_their_time() {
    let mut world = World::new();
    world.connect();
    world.pass_time(SECOND, SECOND / 4);
    for session in 0..50 {
        let stream = (100 + session, STREAM.1);
        let sender = &mut world.sender.keeper;
        sender.add_stream(world.now, 1, stream.0, stream.1);
        let (run, own) = (sender.incarnation(), identity(1).fingerprint());
        let hint = Announce::hint(0, own, run, stream.0, stream.1);
        let (port, source) = (world.receiver.port, world.sender.address);
        let receiver = &mut world.receiver.keeper;
        receiver.on_datagram(world.now, port, source, hint.as_bytes());
        world.run(|_, _| true);
        world.sender.keeper.remove_stream(1, stream.0, stream.1);
        world.run(|_, _| true);
        world.pass_time(SECOND, SECOND / 4);
    }
    let records = |world: &World| world.receiver.keeper.receivers[&1].record_count();
    assert_eq!(records(&world), 51);
    // The link is renewed after an hour.
    world.pass_time(3_700 * SECOND, 10 * SECOND);
    assert_eq!(records(&world), 1);
    assert!(world.transfer().is_some());
}
