// SPDX-License-Identifier: Apache-2.0
//! Epochs: hand-over, grace, age, and keys that are drawn anew.

use super::*;

#[test]
fn rotation_hands_over_without_a_gap() {
    let mut world = World::new();
    world.connect();
    let before = world.sealed();
    let keeper = &mut world.sender.keeper;
    keeper.rotate(world.now, 1, STREAM.0, STREAM.1, Rotation::Command);
    world.run(|_, _| true);
    assert_ne!(world.sealed()[8..16], before[8..16]);
    assert!(world.transfer().is_some());
    assert!(
        world.open(&before).is_some(),
        "the old epoch is still opened"
    );
    let id = KeyId(world.sealed()[8..16].try_into().unwrap());
    let old = world.sender.seal[&STREAM].id();
    assert_eq!(id, old);
    world.receiver.keeper.on_first_open(world.now, 1, id);
    world.pass_time(11 * SECOND, SECOND);
    assert_eq!(world.receiver.open.len(), 1);
    assert!(world.transfer().is_some());
}

#[test]
fn rotation_waits_for_a_receiver_at_most_a_second() {
    let mut world = World::new();
    world.connect();
    let before = world.sealed();
    world
        .sender
        .keeper
        .rotate(world.now, 1, STREAM.0, STREAM.1, Rotation::Command);
    world.run(|to_sender, _| to_sender);
    assert_eq!(world.sealed()[8..16], before[8..16]);
    world.now += SECOND;
    world.sender.keeper.on_tick(world.now);
    world.run(|to_sender, _| to_sender);
    let unknown = world.sealed();
    assert_ne!(unknown[8..16], before[8..16]);
    // The receiver missed the grant: it asks by key id.
    assert!(world.open(&unknown).is_none());
    let id = KeyId(unknown[8..16].try_into().unwrap());
    let source = world.sender.address;
    world
        .receiver
        .keeper
        .on_unknown_key(world.now, 1, source, id, 72);
    world.run(|_, _| true);
    assert!(world.transfer().is_some());
    assert!(world.open(&unknown).is_none(), "sealed before the grant");
}

/// A grant that was held back must not bring a retired key back with an empty window.
#[test]
fn grant_held_back_installs_nothing() {
    let mut world = World::new();
    world.connect();
    let rotate = |world: &mut World| {
        let keeper = &mut world.sender.keeper;
        keeper.rotate(world.now, 1, STREAM.0, STREAM.1, Rotation::Command);
    };
    rotate(&mut world);
    let held: Vec<_> = world.sender.drain();
    world.now += SECOND;
    world.sender.keeper.on_tick(world.now);
    world.run(|_, _| true);
    rotate(&mut world);
    world.run(|_, _| true);
    let id = world.sender.seal[&STREAM].id();
    world.receiver.keeper.on_first_open(world.now, 1, id);
    world.pass_time(11 * SECOND, SECOND);
    assert_eq!(world.receiver.open.len(), 1);
    let (port, source) = (world.receiver.port, world.sender.address);
    for (_, bytes) in held {
        world
            .receiver
            .keeper
            .on_datagram(world.now, port, source, &bytes);
    }
    world.run(|_, _| true);
    let open: Vec<&KeyId> = world.receiver.open.keys().collect();
    assert_eq!(open, [&id]);
}

/// The agent that seals holds the hard age of a key by itself, so that a keeper that does not run extends no key.
#[test]
fn sealing_keys_carry_their_hard_age() {
    const DAY: u64 = 24 * 3_600 * SECOND;
    let mut world = World::new();
    world.connect();
    let back = world.receiver.back_seal.as_ref().unwrap();
    for key in [&world.sender.seal[&STREAM], back] {
        assert!(!key.is_expired(DAY - 1) && key.is_expired(DAY));
    }
    world.pass_time(7 * SECOND, SECOND);
    world.sender.keeper.rotate_all(world.now);
    world.receiver.keeper.rotate_all(world.now);
    world.run(|_, _| true);
    let back = world.receiver.back_seal.as_ref().unwrap();
    for key in [&world.sender.seal[&STREAM], back] {
        let end = 7 * SECOND + DAY;
        assert!(!key.is_expired(end - 1) && key.is_expired(end));
    }
}

#[test]
fn other_identity_keeps_links_and_draws_keys_anew() {
    let trusts = [
        (1, "sender publish=* subscribe=*"),
        (3, "sender publish=* subscribe=*"),
    ];
    let mut world = World::with(&[(2, "receiver publish=* subscribe=*")], &trusts);
    world.connect();
    let before = world.sealed();
    world.sender.keeper.set_identity(world.now, identity(3));
    world.pass_time(2 * SECOND, SECOND / 4);
    let after = world.sealed();
    assert_ne!(before[8..16], after[8..16]);
    assert!(world.open(&after).is_some());
    assert_eq!(world.sender.keeper.link_count(), 1);
    assert_eq!(world.receiver.keeper.link_count(), 1);
    assert_eq!(world.sender.keeper.fingerprint(), identity(3).fingerprint());
}

#[test]
fn redrawn_keeper_seals_nothing_under_keys_of_before_and_connects_anew() {
    for is_sender in [true, false] {
        let mut world = World::new();
        world.connect();
        let before = world.sealed();
        let now = world.now;
        let node = if is_sender {
            &mut world.sender
        } else {
            &mut world.receiver
        };
        node.keeper.redraw(now);
        let sent = node.drain();
        assert_eq!(node.keeper.link_count(), 0);
        assert!(!sent.is_empty());
        for (_, bytes) in sent {
            assert_ne!(bytes[6], 0x57, "a frame of a link is sealed");
            let (to, from) = if is_sender {
                (&mut world.receiver, world.sender.address)
            } else {
                (&mut world.sender, world.receiver.address)
            };
            to.keeper.on_datagram(now, to.port, from, &bytes);
        }
        world.run(|_, _| true);
        // A receiver without the key of a datagram asks the sender for it.
        for _ in 0..8 {
            world.send();
            world.pass_time(SECOND, SECOND / 4);
        }
        let after = world.sealed();
        assert!(world.open(&after).is_some(), "sender: {is_sender}");
        assert_eq!(is_sender, before[8..16] != after[8..16]);
        assert!(world.open(&before).is_none());
    }
}

/// A key that was closed with its subscription does not come back: the receiver wishes another epoch, and gets that.
#[test]
fn stream_that_is_subscribed_again_gets_another_key() {
    let mut world = World::new();
    world.connect();
    let before = world.sealed();
    let receiver = &mut world.receiver.keeper;
    receiver.remove_subscription(1, None, STREAM.1);
    world.run(|_, _| true);
    assert!(world.receiver.open.is_empty());
    world.receiver.keeper.add_subscription(1, None, STREAM.1);
    for _ in 0..20 {
        world.announce();
        world.pass_time(100 * MILLI, 50 * MILLI);
    }
    let after = world.sealed();
    assert_ne!(before[8..16], after[8..16]);
    assert!(world.open(&after).is_some());
    assert!(world.open(&before).is_none());
    assert_eq!(world.sender.keeper.counts().rotations, 1);
}
