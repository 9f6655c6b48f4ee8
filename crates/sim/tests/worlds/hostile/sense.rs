//! Datagrams without sense: too short, too long, with lengths that lie, one frame in another, of no kind.

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes, StatusMessage};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::{Scene, Stranger, TERM, expect_progress, listens, undisturbed};

/// A sound frame whose bytes are changed here and there, or cut, or grown.
fn damaged(stranger: &mut Stranger, sound: &[u8]) -> Vec<u8> {
    let random = &mut stranger.random;
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

/// At both ends of the honest stream; it stays intact and loses little of its speed.
fn everywhere(seed: u64, mut build: impl FnMut(&mut Stranger) -> Vec<u8>) {
    let expected = undisturbed(Scene::open(seed));
    let mut scene = Scene::open(seed);
    let sender = scene.sends_from();
    let took = scene.deliver(50, |stranger| {
        let bytes = build(stranger);
        let to = if stranger.random.bool() {
            sender
        } else {
            listens()
        };
        stranger.say(to, &bytes);
    });
    expect_progress(took, expected);
    scene.expect_amplification(0, 0.0);
    scene.expect_amplification(1, 0.0);
    let invalid = scene.system(0, SystemCounter::InvalidPackets)
        + scene.system(1, SystemCounter::InvalidPackets);
    assert!(
        invalid > 100,
        "{invalid} invalid datagrams: the attack was none"
    );
    scene.end(&["no image for SETUP"], 2);
}

seeded! {
    /// Noise of all lengths, none included.
    noise, 4, |seed| {
        everywhere(seed, |stranger| {
            let length = stranger.random.usize(0..3_000);
            let mut bytes = vec![0; length];
            stranger.random.fill(&mut bytes);
            bytes
        });
    }
}

seeded! {
    /// Status messages and heartbeats of unknown sessions, damaged in every way.
    damaged_frames, 4, |seed| {
        everywhere(seed, |stranger| {
            let session_id = stranger.random.i32(..);
            let sound = if stranger.random.bool() {
                StatusMessage::header(0).as_bytes().iter().copied().chain([7; 28]).collect()
            } else {
                let offset = stranger.random.i32(0..(TERM / 32) as i32) * 32;
                DataHeader::heartbeat(0xC0, session_id, STREAM + 1, 5, offset).as_bytes().to_vec()
            };
            damaged(stranger, &sound)
        });
    }
}

seeded! {
    /// Datagrams of one length and offsets that follow on, as the kernel glues them together: frames that are cut off
    /// in one and would go on in the next are not taken.
    glued_together, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let key = scene.key();
        let took = scene.deliver(10, |stranger| {
            let source = stranger.address();
            let base = stranger.random.i32(0..8) * 8_192;
            for number in 0..8 {
                let offset = base + number * 128;
                let header = DataHeader::heartbeat(0xC0, key.session_id, STREAM, key.initial_term_id.wrapping_add(10_000), offset);
                let mut bytes = header.as_bytes().to_vec();
                // Says that it is as long as all of them.
                bytes[..4].copy_from_slice(&1_024_i32.to_le_bytes());
                bytes.resize(128, 0xAA);
                stranger.say_as(source, listens(), &bytes);
            }
        });
        expect_progress(took, expected);
        scene.expect_amplification(1, 0.0);
        assert!(scene.system(1, SystemCounter::InvalidPackets) > 100);
        scene.end(&[], 0);
    }
}
