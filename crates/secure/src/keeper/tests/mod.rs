// SPDX-License-Identifier: Apache-2.0
mod floods;
mod links;
mod rotation;
mod services;
mod trust;

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
