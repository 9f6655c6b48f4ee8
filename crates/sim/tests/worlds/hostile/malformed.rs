// SPDX-License-Identifier: Apache-2.0
//! Malformed datagrams: too short, too long, with false lengths, nested frames, unknown types.

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes, StatusMessage};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::{Attacker, Scene, TERM, endpoint, expect_progress, undisturbed};

/// Part of the error of a plain channel that receives sealed frames.
const SECURED_PEER: &str = "sends frames of Taran transport security";
/// Sources that a driver names in this error within an hour.
const SECURED_PEERS_MAX: usize = 64;

/// Damages a valid frame: changes bytes, truncates or extends it.
fn damaged(attacker: &mut Attacker, sound: &[u8]) -> Vec<u8> {
    let random = &mut attacker.random;
    let mut bytes = sound.to_vec();
    match random.u32(0..5) {
        0 => bytes.truncate(random.usize(0..sound.len())),
        1 => bytes.resize(sound.len() + random.usize(1..40_000), 0),
        2 => bytes[..4]
            .copy_from_slice(&[0, -1, i32::MIN, i32::MAX, 33][random.usize(0..5)].to_le_bytes()),
        3 => bytes[random.usize(4..8)] ^= random.u8(1..),
        _ => random.fill(&mut bytes),
    }
    bytes
}

/// Sends to both ends of the honest stream, which must stay intact and within the allowed slowdown.
fn attack_both_ends(seed: u64, mut build: impl FnMut(&mut Attacker) -> Vec<u8>) {
    let expected = undisturbed(Scene::open(seed));
    let mut scene = Scene::open(seed);
    let sender = scene.sender_address();
    let took = scene.deliver(50, |attacker| {
        let bytes = build(attacker);
        let to = if attacker.random.bool() {
            sender
        } else {
            endpoint()
        };
        attacker.send(to, &bytes);
    });
    expect_progress(took, expected);
    scene.expect_amplification(0, 0.0);
    scene.expect_amplification(1, 0.0);
    let invalid = scene.system(0, SystemCounter::InvalidPackets)
        + scene.system(1, SystemCounter::InvalidPackets);
    assert!(
        invalid > 100,
        "{invalid} invalid datagrams: the attack had no effect"
    );
    // A random frame type can be one of transport security.
    scene.end(&["no image for SETUP", SECURED_PEER], 2 + SECURED_PEERS_MAX);
}

seeded! {
    /// Random bytes of all lengths, including zero.
    random_bytes, 4, |seed| {
        attack_both_ends(seed, |attacker| {
            let length = attacker.random.usize(0..3_000);
            let mut bytes = vec![0; length];
            attacker.random.fill(&mut bytes);
            bytes
        });
    }
}

seeded! {
    /// Status messages and heartbeats of unknown sessions, damaged in every way.
    damaged_frames, 4, |seed| {
        attack_both_ends(seed, |attacker| {
            let session_id = attacker.random.i32(..);
            let sound = if attacker.random.bool() {
                StatusMessage::header(0).as_bytes().iter().copied().chain([7; 28]).collect()
            } else {
                let offset = attacker.random.i32(0..(TERM / 32) as i32) * 32;
                DataHeader::heartbeat(0xC0, session_id, STREAM + 1, 5, offset).as_bytes().to_vec()
            };
            damaged(attacker, &sound)
        });
    }
}

seeded! {
    /// Datagrams of equal length with consecutive offsets, which GRO coalesces: a frame that is cut off in one datagram
    /// and would continue in the next is not accepted.
    coalesced_datagrams, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let key = scene.key();
        let took = scene.deliver(10, |attacker| {
            let source = attacker.address();
            let base = attacker.random.i32(0..8) * 8_192;
            for number in 0..8 {
                let offset = base + number * 128;
                let header = DataHeader::heartbeat(0xC0, key.session_id, STREAM, key.initial_term_id.wrapping_add(10_000), offset);
                let mut bytes = header.as_bytes().to_vec();
                // The length field covers all of them.
                bytes[..4].copy_from_slice(&1_024_i32.to_le_bytes());
                bytes.resize(128, 0xAA);
                attacker.send_as(source, endpoint(), &bytes);
            }
        });
        expect_progress(took, expected);
        scene.expect_amplification(1, 0.0);
        assert!(scene.system(1, SystemCounter::InvalidPackets) > 100);
        scene.end(&[], 0);
    }
}
