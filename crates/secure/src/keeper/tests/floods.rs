// SPDX-License-Identifier: Apache-2.0
//! Floods: bounded answers, and a receiver that connects all the same.

use super::*;

/// A flood of unknown key ids with the sender's address always comes first: the receiver that missed the grants of a rotation
/// gets the next key all the same, and announcements are acted on.
#[test]
fn flood_of_unknown_keys_keeps_no_grant_from_a_receiver() {
    let mut world = World::new();
    world.connect();
    world.sender.keeper.rotate_all(world.now);
    // The receiver gets nothing of the rotation.
    world.run(|to_sender, _| to_sender);
    world.pass_time_losing(2 * SECOND);
    assert!(
        world.transfer().is_none(),
        "the key is in use, and the receiver has not got it"
    );
    let mut flood = 0_u64;
    let mut asked = 0;
    for _ in 0..20 {
        world.now += 50 * MILLI;
        flood += 1;
        let id = KeyId(flood.to_le_bytes());
        let source = world.sender.address;
        let receiver = &mut world.receiver.keeper;
        receiver.on_unknown_key(world.now, 1, source, id, 192);
        // The datagram under the true key comes right behind.
        world.send();
        world.sender.keeper.on_tick(world.now);
        world.receiver.keeper.on_tick(world.now);
        world.run(|to_sender, _| {
            asked += usize::from(to_sender);
            true
        });
    }
    assert!(world.transfer().is_some());
    assert!(asked <= 60, "{asked} datagrams to the sender in a second");
}

#[test]
fn flood_of_inits_is_answered_at_a_bounded_rate_and_no_longer_than_asked() {
    let mut world = World::new();
    let (mut answers, mut bytes) = (0, 0);
    for number in 0..2_000_u64 {
        let offer = crate::handshake::Offer {
            suites: 2,
            channel_tag: [1; 4],
            receiver_id: 1,
            incarnation: 1,
        };
        let initiation = crate::handshake::Initiation::<P>::new(
            &identity(9),
            identity(1).public(),
            &Secret::new([0; 32]),
            number + 1,
            &offer,
            Secret::new([number as u8; 32]),
        )
        .unwrap();
        let source = SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 5000));
        let port = world.sender.port;
        world
            .sender
            .keeper
            .on_datagram(0, port, source, initiation.init().as_bytes());
        for (_, sent) in world.sender.drain() {
            assert!(sent.len() <= 192);
            answers += 1;
            bytes += sent.len();
        }
        if number == 99 {
            break;
        }
    }
    // An unknown key gets nothing; beyond the allowance there are cookies only.
    assert_eq!(answers, 100 - 32);
    assert_eq!(bytes, answers * 56);
    assert_eq!(world.sender.keeper.counts().cookies as usize, answers);
    assert!(world.sender.events.len() <= 1, "{:?}", world.sender.events);
}

#[test]
fn receiver_under_a_flood_proves_its_address_and_connects() {
    let mut world = World::new();
    for _ in 0..64 {
        world.sender.keeper.gate.exhaust(world.now);
    }
    world.announce();
    world.run(|_, _| true);
    assert!(world.sender.keeper.counts().cookies > 0);
    assert!(world.transfer().is_some());
}

#[test]
fn flood_of_hellos_and_announcements_is_answered_at_a_bounded_rate() {
    let mut world = World::new();
    let hello = Hello::new(KeyId([1; 8]), [2; 16], 0, 0);
    let mut answers = 0;
    for number in 0..10_000_u32 {
        let source = SocketAddr::from((number.to_be_bytes(), 5000));
        let (port, now) = (world.sender.port, world.now);
        world
            .sender
            .keeper
            .on_datagram(now, port, source, hello.as_bytes());
        answers += world.sender.drain().len();
    }
    assert_eq!(answers, 64);
    let mut answers = 0;
    for number in 0..10_000_u32 {
        let mut fingerprint = identity(1).fingerprint();
        if number > 0 {
            fingerprint.0[..4].copy_from_slice(&number.to_be_bytes());
        }
        let hint = Announce::hint(0, fingerprint, u64::from(number), STREAM.0, STREAM.1);
        let source = SocketAddr::from((number.to_be_bytes(), 5000));
        let (port, now) = (world.receiver.port, world.now);
        world
            .receiver
            .keeper
            .on_datagram(now, port, source, hint.as_bytes());
        answers += world.receiver.drain().len();
    }
    assert_eq!(answers, 1);
    assert!(world.receiver.events.len() <= 1);
}

/// Sources that know the public key and prove many addresses use up what is for proved addresses: a receiver that had a link gets
/// another one all the same.
#[test]
fn receiver_that_had_a_link_gets_another_under_a_flood_of_proved_addresses() {
    let mut world = World::new();
    world.connect();
    for _ in 0..64 {
        world.sender.keeper.gate.exhaust(world.now);
    }
    let port = world.sender.port;
    for number in 0..100_u8 {
        let offer = crate::handshake::Offer {
            suites: 2,
            channel_tag: [1; 4],
            receiver_id: 1,
            incarnation: 1,
        };
        let mut initiation = crate::handshake::Initiation::<P>::new(
            &identity(9),
            identity(1).public(),
            &Secret::new([0; 32]),
            u64::from(number) + 1,
            &offer,
            Secret::new([number; 32]),
        )
        .unwrap();
        let source = SocketAddr::from(([10, 1, 0, number], 5000));
        let keeper = &mut world.sender.keeper;
        keeper.on_datagram(world.now, port, source, initiation.init().as_bytes());
        for (_, bytes) in world.sender.drain() {
            if let Ok(SecureFrame::Cookie(cookie)) = SecureFrame::parse(&bytes) {
                initiation.set_cookie(cookie.cookie);
            }
        }
        assert_ne!(initiation.init().cookie, [0; 24]);
        let keeper = &mut world.sender.keeper;
        keeper.on_datagram(world.now, port, source, initiation.init().as_bytes());
        assert!(world.sender.drain().is_empty(), "an unknown key");
    }
    // A receiver that never had a link waits; one that restarts at an address of the last day does not.
    let trusts = [(1, "sender publish=* subscribe=*")];
    for (address, is_known) in [("10.0.0.77:40456", false), ("10.0.0.9:40456", true)] {
        world.receiver = Node::new(receiver(33, &trusts), Port::Receiver(1), address);
        world.announce();
        world.run(|_, _| true);
        assert_eq!(!world.receiver.open.is_empty(), is_known, "{address}");
    }
}
