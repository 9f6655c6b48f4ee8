// SPDX-License-Identifier: Apache-2.0
//! Status messages of receivers that do not exist.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{IntoBytes, StatusMessage};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::{Scene, TERM, endpoint, expect_progress, undisturbed};

/// Content of a status message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) flags: u8,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) term_id: i32,
    pub(super) term_offset: i32,
    pub(super) window: i32,
    pub(super) receiver_id: i64,
}

impl Status {
    pub(super) fn bytes(self) -> Vec<u8> {
        let message = StatusMessage {
            header: StatusMessage::header(self.flags),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            consumption_term_id: self.term_id.into(),
            consumption_term_offset: self.term_offset.into(),
            receiver_window: self.window.into(),
            receiver_id: self.receiver_id.into(),
        };
        message.as_bytes().to_vec()
    }
}

/// Returns the status message of a receiver of the honest stream that has consumed nothing.
pub(super) fn status(scene: &Scene) -> Status {
    let key = scene.key();
    Status {
        flags: 0,
        session_id: key.session_id,
        stream_id: STREAM,
        term_id: key.initial_term_id,
        term_offset: 0,
        window: 32 * 1024,
        receiver_id: 7,
    }
}

seeded! {
    /// For unknown sessions, with any flags: no reply, and no slowdown.
    of_unknown_sessions, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sender_address(), status(&scene));
        let took = scene.deliver(100, |attacker| {
            let flags = [0, StatusMessage::SEND_SETUP, StatusMessage::EOS][attacker.random.usize(0..3)];
            let session_id = of.session_id.wrapping_add(attacker.random.i32(1..));
            let status = Status { flags, session_id, receiver_id: attacker.random.i64(..), ..of };
            attacker.send(to, &status.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// With impossible windows and positions: counted, with no other effect.
    impossible_values, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sender_address(), status(&scene));
        let took = scene.deliver(100, |attacker| {
            let random = &mut attacker.random;
            let impossible = match random.u32(0..3) {
                0 => Status { window: [-1, i32::MIN, (TERM / 2) as i32 + 32, i32::MAX][random.usize(0..4)], ..of },
                1 => Status { term_id: of.term_id.wrapping_sub(random.i32(2..i32::MAX)), ..of },
                _ => Status { term_id: of.term_id.wrapping_add(random.i32(1_000..)), ..of },
            };
            attacker.send(to, &impossible.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        assert!(scene.system(0, SystemCounter::InvalidPackets) > 100);
        assert!(scene.system(0, SystemCounter::StatusMessagesRejected) > 100);
        scene.end(&[], 0);
    }
}

seeded! {
    /// With repeated requests for the SETUP of a stream: at most ten per second are answered.
    setup_requests, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sender_address(), status(&scene));
        let request_channel = Status { flags: StatusMessage::SEND_SETUP, ..of }.bytes();
        let took = scene.deliver(100, |attacker| attacker.send(to, &request_channel));
        expect_progress(took, expected);
        let receiver = scene.world.network_id(scene.hosts[1]);
        let sender = scene.world.network_id(scene.hosts[0]);
        let before = scene.world.network().link_counts(sender, receiver);
        scene.attack_for(Duration::from_secs(2), 100, |attacker| attacker.send(to, &request_channel));
        let after = scene.world.network().link_counts(sender, receiver);
        // Twenty SETUPs and twenty heartbeats, and one more of each at the boundaries.
        let datagrams = after.datagrams - before.datagrams;
        assert!((30..=42).contains(&datagrams), "{before:?} {after:?}");
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Forged with the receiver's address they can make the sender run ahead of it: the subscriber gets what was sent,
    /// from its new join position, and the stream is received again afterwards.
    forged_as_the_receiver, 12, |seed| {
        let mut scene = Scene::new(seed);
        let to = scene.sender_address();
        scene.world.publisher_mut(scene.publisher).publish_more(4_000);
        for _ in 0..50 {
            let (term_id, term_offset) = scene.term();
            let of = Status { term_id, term_offset, ..status(&scene) };
            scene.attack_for(Duration::from_millis(20), 20, |attacker| {
                attacker.send_as(endpoint(), to, &of.bytes());
            });
        }
        scene.world.run_for(Duration::from_secs(30));
        let fresh = |scene: &Scene| scene.world.subscriber(scene.subscriber).images().next().is_some();
        assert!(fresh(&scene), "the stream is received again");
        scene.end(&[], 0);
    }
}
