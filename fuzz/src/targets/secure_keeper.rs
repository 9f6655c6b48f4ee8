// SPDX-License-Identifier: Apache-2.0
//! The keeper of a sender and the keeper of a receiver, with datagrams that are passed on, lost, changed, repeated or made up,
//! and with time: bounded memory, bounded answers, no key that comes back, and in the end a stream that flows.

use std::collections::HashMap;
use std::net::SocketAddr;

use taran_secure::Secret;
use taran_secure::derive::KeyId;
use taran_secure::frame::{Announce, IntoBytes};
use taran_secure::identity::{Identity, public_key_text};
use taran_secure::keeper::{
    Entropy, Keeper, KeeperOptions, Output, Port, ReceiverConfig, Rotation, SenderConfig,
};
use taran_secure::provider::DefaultProvider;
use taran_secure::seal::{OpenKey, SealKey};
use taran_secure::trust::TrustStore;

use crate::script::Script;

type P = DefaultProvider;

const SESSION: i32 = 7;
const STREAM: i32 = 1001;
const SECOND: u64 = 1_000_000_000;

/// Different bytes for each call.
struct Numbers(u64);

impl Entropy for Numbers {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            chunk.copy_from_slice(&self.0.to_le_bytes()[..chunk.len()]);
        }
    }
}

struct Node {
    keeper: Keeper<P>,
    port: Port,
    address: SocketAddr,
    seal: Option<Box<SealKey<P>>>,
    open: HashMap<KeyId, Box<OpenKey<P>>>,
    sent: Vec<Vec<u8>>,
}

impl Node {
    fn new(number: u8, other: u8, port: Port) -> Node {
        let identity = |number| Identity::from_private::<P>(Secret::new([number; 32]));
        let trust = format!(
            "{} peer publish=* subscribe=*\n",
            public_key_text::<P>(identity(other).public())
        );
        let trust = TrustStore::parse::<P>(&trust).expect("the line is valid");
        let entropy = Box::new(Numbers(number.into()));
        Node {
            keeper: Keeper::new(identity(number), trust, KeeperOptions::default(), entropy),
            port,
            address: SocketAddr::from(([10, 0, 0, number], 40_456)),
            seal: None,
            open: HashMap::new(),
            sent: Vec::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.keeper.next_output() {
            match output {
                Output::Send { bytes, .. } => self.sent.push(bytes),
                Output::SealStream { key, .. } => self.seal = Some(key),
                Output::OpenStream { key, .. } | Output::OpenBack { key, .. } => {
                    assert!(
                        self.open.insert(key.id(), key).is_none(),
                        "a key comes back"
                    );
                }
                Output::Close { id, .. } => {
                    assert!(self.open.remove(&id).is_some(), "a key is closed twice");
                }
                _ => {}
            }
        }
        assert!(self.open.len() <= 8, "{} open keys", self.open.len());
        assert!(self.sent.len() <= 10_000);
    }
}

/// Reads a story.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let (mut sender, mut receiver) = (
        Node::new(1, 2, Port::Sender(1)),
        Node::new(2, 1, Port::Receiver(1)),
    );
    let channel = SocketAddr::from(([10, 0, 0, 2], 40_456));
    sender.keeper.add_sender(
        1,
        SenderConfig {
            address: channel,
            tags: vec![[1; 4]],
            group: None,
            peers: None,
        },
    );
    sender.keeper.add_stream(0, 1, SESSION, STREAM);
    receiver.keeper.add_receiver(
        1,
        ReceiverConfig {
            address: channel,
            group: 1,
            tag: [1; 4],
            receiver_id: 3,
            control: None,
            is_group: false,
            peers: None,
        },
    );
    receiver.keeper.add_subscription(1, None, STREAM);
    let mut now = 0;
    for _ in 0..200 {
        if script.is_over() {
            break;
        }
        step(&mut script, &mut now, &mut sender, &mut receiver);
    }
    for _ in 0..120 {
        now += SECOND / 2;
        announce(now, &mut sender, &mut receiver);
        sender.keeper.on_tick(now);
        receiver.keeper.on_tick(now);
        exchange(now, &mut sender, &mut receiver);
    }
    let mut sealed = [0; 72];
    let key = sender.seal.as_mut().expect("the stream has a key");
    key.seal(&[3; 32], &mut sealed).expect("the key is fresh");
    let id = KeyId(sealed[8..16].try_into().expect("eight bytes"));
    let key = receiver.open.get_mut(&id).expect("the stream flows");
    assert_eq!(key.open(&sealed, &mut [0; 32]), Ok(32));
}

fn announce(now: u64, sender: &mut Node, receiver: &mut Node) {
    let fingerprint = Identity::from_private::<P>(Secret::new([1; 32])).fingerprint();
    let incarnation = sender.keeper.incarnation();
    let announce = Announce::hint(0, fingerprint, incarnation, SESSION, STREAM);
    let port = receiver.port;
    receiver
        .keeper
        .on_datagram(now, port, sender.address, announce.as_bytes());
}

/// Passes on all datagrams until there are none.
fn exchange(now: u64, sender: &mut Node, receiver: &mut Node) {
    for _ in 0..100 {
        sender.drain();
        receiver.drain();
        if sender.sent.is_empty() && receiver.sent.is_empty() {
            return;
        }
        for bytes in std::mem::take(&mut sender.sent) {
            receiver
                .keeper
                .on_datagram(now, receiver.port, sender.address, &bytes);
        }
        for bytes in std::mem::take(&mut receiver.sent) {
            sender
                .keeper
                .on_datagram(now, sender.port, receiver.address, &bytes);
        }
    }
    panic!("the datagrams have no end");
}

fn step(script: &mut Script<'_>, now: &mut u64, sender: &mut Node, receiver: &mut Node) {
    sender.drain();
    receiver.drain();
    match script.u8() % 8 {
        0 => announce(*now, sender, receiver),
        1 => {
            *now += u64::from(script.u8()) * SECOND / 16;
            sender.keeper.on_tick(*now);
            receiver.keeper.on_tick(*now);
        }
        2 => exchange(*now, sender, receiver),
        // Any bytes, as a frame of each type.
        3 => {
            let kind = script.u8() % 8;
            let mut bytes = vec![0; 8];
            bytes.extend_from_slice(script.chunk());
            let length = (bytes.len() as i32).to_le_bytes();
            bytes[..4].copy_from_slice(&length);
            bytes[4..8].copy_from_slice(&[0, 0, 0x50 + kind, 0x54]);
            for node in [sender, receiver] {
                node.keeper
                    .on_datagram(*now, node.port, node.address, &bytes);
            }
        }
        // A datagram is lost, changed or repeated.
        4 => {
            let to_sender = script.u8().is_multiple_of(2);
            let (from, to) = if to_sender {
                (receiver, sender)
            } else {
                (sender, receiver)
            };
            let what = script.u8();
            let at = usize::from(script.u8());
            let Some(mut bytes) = from.sent.pop() else {
                return;
            };
            match what % 3 {
                0 => {}
                1 => {
                    let index = at % bytes.len();
                    bytes[index] ^= what | 1;
                    to.keeper.on_datagram(*now, to.port, from.address, &bytes);
                }
                _ => {
                    for _ in 0..3 {
                        to.keeper.on_datagram(*now, to.port, from.address, &bytes);
                    }
                }
            }
        }
        5 => sender
            .keeper
            .rotate(*now, 1, SESSION, STREAM, Rotation::Command),
        6 => {
            let id = KeyId(script.i64().to_le_bytes());
            receiver
                .keeper
                .on_unknown_key(*now, 1, sender.address, id, 1_448);
        }
        _ => {
            if let Some(key) = &sender.seal {
                receiver.keeper.on_first_open(*now, 1, key.id());
            }
        }
    }
}
