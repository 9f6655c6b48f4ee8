// SPDX-License-Identifier: Apache-2.0
mod services;

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::derive::{KeyContext, KeyMaterial, Role};
use crate::frame::{Announce, Hello, IntoBytes};
use crate::identity::public_key_text;
use crate::provider::DefaultProvider;
use crate::seal::{OpenKey, SealKey};

type P = DefaultProvider;

const STREAM: (i32, i32) = (7, 1001);
const CHANNEL: &str = "10.0.0.9:40456";

/// Random bytes of a seed.
struct Seeded(fastrand::Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

fn identity(number: u8) -> Identity {
    Identity::from_private::<P>(Secret::new([number; 32]))
}

fn trusting(lines: &[(u8, &str)]) -> TrustStore {
    let text: String = lines
        .iter()
        .map(|(number, rest)| {
            format!(
                "{} {rest}\n",
                public_key_text::<P>(identity(*number).public())
            )
        })
        .collect();
    TrustStore::parse::<P>(&text).expect("the lines are valid")
}

fn keeper(number: u8, seed: u64, trust: TrustStore) -> Keeper<P> {
    Keeper::new(
        identity(number),
        trust,
        KeeperOptions::default(),
        Box::new(Seeded(fastrand::Rng::with_seed(seed))),
    )
}

/// A driver with one send endpoint or one receive transport.
struct Node {
    keeper: Keeper<P>,
    port: Port,
    address: SocketAddr,
    seal: HashMap<(i32, i32), Box<SealKey<P>>>,
    open: HashMap<KeyId, Box<OpenKey<P>>>,
    back_seal: Option<Box<SealKey<P>>>,
    announced: usize,
    events: Vec<Event>,
}

impl Node {
    fn new(keeper: Keeper<P>, port: Port, address: &str) -> Node {
        Node {
            keeper,
            port,
            address: address.parse().unwrap(),
            seal: HashMap::new(),
            open: HashMap::new(),
            back_seal: None,
            announced: 0,
            events: Vec::new(),
        }
    }

    /// Applies all outputs, and returns the datagrams.
    fn drain(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut sent = Vec::new();
        while let Some(output) = self.keeper.next_output() {
            match output {
                Output::Send { to, bytes, port } => {
                    assert_eq!(port, self.port);
                    sent.push((to, bytes));
                }
                Output::SealStream {
                    session_id,
                    stream_id,
                    key,
                    ..
                } => {
                    self.seal.insert((session_id, stream_id), key);
                }
                Output::SealBack { key, .. } => self.back_seal = Some(key),
                Output::OpenStream { key, .. } | Output::OpenBack { key, .. } => {
                    assert!(
                        self.open.insert(key.id(), key).is_none(),
                        "a key comes back"
                    );
                }
                Output::Close { id, .. } => {
                    assert!(self.open.remove(&id).is_some(), "a key is closed twice");
                }
                Output::Announce { .. } => self.announced += 1,
                Output::Grant { .. }
                | Output::Revoke { .. }
                | Output::StreamLink { .. }
                | Output::Moved { .. }
                | Output::Link { .. }
                | Output::Unlink { .. }
                | Output::DropStream { .. } => {}
                Output::Job(job) => panic!("{job:?} was not run"),
                Output::Event(event) => self.events.push(event),
            }
        }
        sent
    }
}

/// A sender and a receiver, and the datagrams between them.
struct World {
    now: u64,
    sender: Node,
    receiver: Node,
    /// Everything sent: to the sender, and to the receiver.
    recorded: [Vec<Vec<u8>>; 2],
}

impl World {
    fn new() -> World {
        World::with(
            &[(2, "receiver publish=* subscribe=*")],
            &[(1, "sender publish=* subscribe=*")],
        )
    }

    fn with(sender_trusts: &[(u8, &str)], receiver_trusts: &[(u8, &str)]) -> World {
        let mut sender = keeper(1, 11, trusting(sender_trusts));
        sender.add_sender(
            1,
            SenderConfig {
                address: CHANNEL.parse().unwrap(),
                tags: vec![[1; 4]],
                group: None,
                peers: None,
            },
        );
        sender.add_stream(0, 1, STREAM.0, STREAM.1);
        let mut world = World {
            now: 0,
            sender: Node::new(sender, Port::Sender(1), "10.0.0.1:5000"),
            receiver: Node::new(
                receiver(22, receiver_trusts),
                Port::Receiver(1),
                "10.0.0.9:40456",
            ),
            recorded: [Vec::new(), Vec::new()],
        };
        world.run(|_, _| true);
        world
    }

    /// Announces the stream as the sender agent does.
    fn announce(&mut self) {
        let announce = Announce::hint(
            0,
            identity(1).fingerprint(),
            self.sender.keeper.incarnation(),
            STREAM.0,
            STREAM.1,
        );
        let source = self.sender.address;
        let port = self.receiver.port;
        self.receiver
            .keeper
            .on_datagram(self.now, port, source, announce.as_bytes());
    }

    /// Delivers datagrams until there are none; `pass` decides about each, by direction (true: to the sender) and bytes.
    fn run(&mut self, mut pass: impl FnMut(bool, &[u8]) -> bool) {
        for _ in 0..100 {
            let to_receiver = self.sender.drain();
            let to_sender = self.receiver.drain();
            if to_receiver.is_empty() && to_sender.is_empty() {
                return;
            }
            for (_, bytes) in to_sender {
                self.recorded[0].push(bytes.clone());
                if pass(true, &bytes) {
                    let (port, source) = (self.sender.port, self.receiver.address);
                    self.sender
                        .keeper
                        .on_datagram(self.now, port, source, &bytes);
                }
            }
            for (_, bytes) in to_receiver {
                self.recorded[1].push(bytes.clone());
                if pass(false, &bytes) {
                    let (port, source) = (self.receiver.port, self.sender.address);
                    self.receiver
                        .keeper
                        .on_datagram(self.now, port, source, &bytes);
                }
            }
        }
        panic!("the datagrams have no end");
    }

    /// Lets time pass in steps, with ticks on both sides.
    fn pass_time(&mut self, nanoseconds: u64, step: u64) {
        let end = self.now + nanoseconds;
        while self.now < end {
            self.now += step;
            self.sender.keeper.on_tick(self.now);
            self.receiver.keeper.on_tick(self.now);
            self.run(|_, _| true);
        }
    }

    /// Lets time pass while nothing arrives at the receiver.
    fn pass_time_losing(&mut self, nanoseconds: u64) {
        let end = self.now + nanoseconds;
        while self.now < end {
            self.now += 100 * MILLI;
            self.sender.keeper.on_tick(self.now);
            self.run(|to_sender, _| to_sender);
        }
    }

    /// Seals a datagram at the sender and returns what the receiver does with it.
    fn transfer(&mut self) -> Option<Vec<u8>> {
        let sealed = self.sealed();
        self.open(&sealed)
    }

    fn sealed(&mut self) -> Vec<u8> {
        let mut sealed = vec![0; 72];
        let key = self
            .sender
            .seal
            .get_mut(&STREAM)
            .expect("the stream has a key");
        key.seal(&[3; 32], &mut sealed).expect("the key is fresh");
        sealed
    }

    fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let id = KeyId(sealed[8..16].try_into().unwrap());
        let key = self.receiver.open.get_mut(&id)?;
        let mut plain = vec![0; 32];
        key.open(sealed, &mut plain).ok().map(|_| plain)
    }

    /// Sends a datagram under the present key: a receiver without it says so.
    fn send(&mut self) {
        let sealed = self.sealed();
        let id = KeyId(sealed[8..16].try_into().unwrap());
        let source = self.sender.address;
        if self.receiver.open.contains_key(&id) {
            self.receiver.keeper.on_first_open(self.now, 1, id);
        } else {
            let keeper = &mut self.receiver.keeper;
            keeper.on_unknown_key(self.now, 1, source, id, sealed.len());
        }
    }

    fn connect(&mut self) {
        self.announce();
        self.run(|_, _| true);
        assert!(self.transfer().is_some(), "{:?}", self.receiver.events);
    }
}

fn receiver(seed: u64, trusts: &[(u8, &str)]) -> Keeper<P> {
    let mut receiver = keeper(2, seed, trusting(trusts));
    receiver.add_receiver(1, receiver_config([1; 4]));
    receiver.add_subscription(1, None, STREAM.1);
    receiver
}

fn receiver_config(tag: [u8; 4]) -> ReceiverConfig {
    ReceiverConfig {
        address: CHANNEL.parse().unwrap(),
        group: 1,
        tag,
        receiver_id: 99,
        control: None,
        is_group: false,
        peers: None,
    }
}

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

#[test]
fn keeper_debug_shows_no_secret() {
    let mut world = World::new();
    world.connect();
    let text = format!("{:?}", world.sender.keeper);
    assert!(text.contains("<secret>"), "{text}");
    assert!(!text.contains("1, 1, 1"), "{text}");
}

#[test]
fn secrets_of_grants_do_not_appear_on_the_wire() {
    let mut world = World::new();
    world.connect();
    let key = world.sender.seal[&STREAM].id();
    let context = KeyContext {
        role: Role::Stream,
        suite: Suite::Aes256Gcm,
        identity: identity(1).fingerprint(),
        session_id: STREAM.0,
        stream_id: STREAM.1,
        epoch: 1,
    };
    for bytes in world.recorded.iter().flatten() {
        for window in bytes.windows(32) {
            let secret = Secret::new(window.try_into().unwrap());
            let material = KeyMaterial::derive::<P>(&secret, &context);
            assert_ne!(material.id(), key);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Loss, duplicates, arbitrary bytes and jumps of time end, when they are over, with a stream that flows.
    #[test]
    fn stream_flows_after_any_disturbance(
        seed in any::<u64>(),
        loss in 0..90_u8,
        junk in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
    ) {
        let mut world = World::new();
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..40 {
            world.now += random.u64(0..SECOND);
            world.announce();
            world.sender.keeper.on_tick(world.now);
            world.receiver.keeper.on_tick(world.now);
            if let Some(bytes) = junk.get(step % 8) {
                let mut bytes = bytes.clone();
                if bytes.len() >= 8 {
                    let length = (bytes.len() as i32).to_le_bytes();
                    bytes[..4].copy_from_slice(&length);
                    bytes[4..8].copy_from_slice(&[0, 0, 0x50 + (step % 8) as u8, 0x54]);
                }
                for node in [&mut world.sender, &mut world.receiver] {
                    node.keeper.on_datagram(world.now, node.port, node.address, &bytes);
                }
            }
            if step % 10 == 9 {
                let keeper = &mut world.sender.keeper;
                keeper.rotate(world.now, 1, STREAM.0, STREAM.1, Rotation::Command);
            }
            world.run(|_, _| random.u8(0..100) >= loss);
        }
        for _ in 0..80 {
            world.announce();
            world.send();
            world.pass_time(SECOND, 500 * MILLI);
        }
        prop_assert!(world.transfer().is_some());
        prop_assert!(world.receiver.open.len() <= 3);
    }
}
