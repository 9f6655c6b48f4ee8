// SPDX-License-Identifier: Apache-2.0
//! NAKs for all existing and non-existing data.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{IntoBytes, Nak};
use taran_sim::network::LinkFaults;
use taran_sim::{HostSpec, seeded};

use super::super::common::STREAM;
use super::{Attacker, Scene, TERM, endpoint, expect_progress, undisturbed};

/// Builds a NAK.
fn nak(session_id: i32, term_id: i32, term_offset: i32, length: i32) -> Vec<u8> {
    let nak = Nak {
        header: Nak::header(),
        session_id: session_id.into(),
        stream_id: STREAM.into(),
        term_id: term_id.into(),
        term_offset: term_offset.into(),
        length: length.into(),
    };
    nak.as_bytes().to_vec()
}

fn frame_offset(attacker: &mut Attacker) -> i32 {
    attacker.random.i32(0..(TERM / 32) as i32) * 32
}

seeded! {
    /// For past and future terms, of zero or invalid length, of unknown sessions: nothing is retransmitted.
    for_missing_data, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sender_address(), scene.key());
        let took = scene.deliver(100, |attacker| {
            let offset = frame_offset(attacker);
            let rest = TERM as i32 - offset;
            let random = &mut attacker.random;
            let any = random.i32(..);
            let (term, session) = (key.initial_term_id, key.session_id);
            let far = nak(session, term.wrapping_add(random.i32(10_000..)), offset, rest);
            let past = nak(session, term.wrapping_sub(random.i32(1..i32::MAX)), offset, rest);
            let empty = nak(session, term, offset, 0);
            let unaligned = nak(session, term, offset + 1, 32);
            let negative = nak(session, term, offset, random.i32(i32::MIN..0));
            let outside = nak(session, term, offset, rest + 32);
            let beyond = nak(session, term, TERM as i32 + 32, 32);
            let unknown = nak(session.wrapping_add(random.i32(1..)), any, offset, rest);
            let all = [far, past, empty, unaligned, negative, outside, beyond, unknown];
            let chosen = random.usize(0..all.len());
            attacker.send(to, &all[chosen]);
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        assert_eq!(scene.system(0, SystemCounter::RetransmitsSent), 0);
        assert!(scene.system(0, SystemCounter::InvalidPackets) > 100);
        assert!(scene.system(0, SystemCounter::NaksReceived) > 100);
        scene.end(&[], 0);
    }
}

seeded! {
    /// For everything that can be retransmitted, repeatedly, on an idle stream: the sender retransmits at most half a
    /// term per second, or 1 MiB where that is more, as with these terms.
    of_an_idle_stream, 4, |seed| {
        let mut scene = Scene::open(seed);
        scene.deliver(0, |_| {});
        let (to, session_id) = (scene.sender_address(), scene.key().session_id);
        let (term_id, end) = scene.term();
        let before = scene.system(0, SystemCounter::RetransmittedBytes);
        const SECONDS: i64 = 3;
        scene.attack_for(Duration::from_secs(SECONDS as u64), 100, |attacker| {
            let offset = attacker.random.i32(0..=end / 32) * 32;
            attacker.send(to, &nak(session_id, term_id, offset, TERM as i32 - offset));
        });
        let repeated = scene.system(0, SystemCounter::RetransmittedBytes) - before;
        let most = (1 + SECONDS) * (1 << 20) + 2 * TERM;
        assert!(repeated <= most, "{repeated} bytes were sent again, {most} are allowed");
        // At the start of a stream everything is being retransmitted at any time, and no request is new.
        let has_to_wait = i64::from(end) >= TERM / 4;
        let waited = scene.system(0, SystemCounter::RetransmitOverflow);
        assert!(waited > 0 || !has_to_wait, "what is not answered is counted");
        scene.end(&[], 0);
    }
}

/// Loses 1 % of the stream, retransmissions included. Status messages of the receiver are not lost: a lost one is
/// repeated only after 200 ms, and a stream without such losses takes 70 ms in total.
fn lossy(scene: Scene) -> Scene {
    let [from, to] = scene.hosts.map(|host| scene.world.network_id(host));
    let faults = LinkFaults {
        loss: 0.01,
        delay: Duration::from_micros(50),
        ..Default::default()
    };
    scene
        .world
        .network()
        .set_link_faults(from, to, Some(faults));
    scene
}

fn lossless(scene: &Scene) {
    let [from, to] = scene.hosts.map(|host| scene.world.network_id(host));
    scene.world.network().set_link_faults(from, to, None);
}

/// Number of worlds per seed of a scenario with loss. The results vary because a loss at the end of a burst is detected
/// only by a heartbeat after 100 ms.
const WORLDS: u64 = 9;

/// Maximum slowdown of the median honest stream when its repairs compete with forged requests.
const TIMES: f64 = 1.5;

/// Maximum additional delay of any stream: three times the detection by a heartbeat and the wait of repairs for others.
const WORST: Duration = Duration::from_millis(3 * (100 + 80));

/// Checks the times of honest streams under attack.
fn expect_repairs(mut took: Vec<Duration>, mut undisturbed: Vec<Duration>) {
    took.sort();
    undisturbed.sort();
    let half = took.len() / 2;
    let factor = took[half].as_secs_f64() / undisturbed[half].as_secs_f64();
    assert!(
        factor <= TIMES,
        "{factor:.2} times as long: {took:?} instead of {undisturbed:?}"
    );
    let most = undisturbed[half].mul_f64(TIMES) + WORST;
    assert!(took[took.len() - 1] <= most, "{took:?}, {most:?} is most");
}

/// Checks the volume of retransmissions.
fn expect_repeats(scene: &Scene, took: Duration) {
    let sent = scene.system(0, SystemCounter::BytesSent);
    let repeated = scene.system(0, SystemCounter::RetransmittedBytes);
    let most = 4 * sent + ((1_000 + took.as_millis() as i64) * (1 << 20)) / 1_000 + 2 * TERM;
    assert!(
        repeated <= most,
        "{repeated} bytes were sent again, {most} are allowed"
    );
}

/// Runs a scenario with loss in several worlds, with an attack and without.
fn compare_runs(seed: u64, open: impl Fn(u64) -> Scene, attacked: impl Fn(Scene) -> Duration) {
    let seeds = seed * WORLDS..(seed + 1) * WORLDS;
    let expected = seeds.clone().map(|seed| undisturbed(lossy(open(seed))));
    let took = seeds.map(|seed| attacked(lossy(open(seed))));
    expect_repairs(took.collect(), expected.collect());
}

/// Runs an attack that knows the stream position and sends NAKs for random retransmittable ranges, 50 per millisecond,
/// while the network loses 1 %.
fn attack_as_receiver(mut scene: Scene, to: Option<SocketAddr>) -> Duration {
    let (to, key) = (to.unwrap_or(scene.sender_address()), scene.key());
    let publication = scene.world.publisher(scene.publisher).shared().unwrap();
    let took = scene.deliver(50, |attacker| {
        let random = &mut attacker.random;
        let back = random.i64(0..TERM / 64) * 32;
        let position = (publication.position() - back).max(0) & !31;
        let (term, offset) = ((position / TERM) as i32, (position % TERM) as i32);
        let rest = TERM as i32 - offset;
        let length = match random.u8(0..3) {
            0 => 32,
            1 => random.i32(1..=rest / 32) * 32,
            _ => rest,
        };
        let term_id = key.initial_term_id.wrapping_add(term);
        let nak = nak(key.session_id, term_id, offset, length);
        attacker.send_as(endpoint(), to, &nak);
    });
    expect_repeats(&scene, took);
    lossless(&scene);
    drop(publication);
    scene.end(&[], 0);
    took
}

seeded! {
    /// For any retransmittable range, forged with the receiver's address: the receiver gets its own repairs.
    with_known_position, 2, |seed| {
        compare_runs(seed, Scene::open, |scene| attack_as_receiver(scene, None));
    }
}

seeded! {
    /// The same in a group, where several ranges are retransmitted at a time.
    with_known_position_in_a_group, 2, |seed| {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        let control = SocketAddr::from(([10, 0, 0, 1], 40_456));
        let group = format!("aeron:udp?control={control}|control-mode=dynamic");
        let member = format!("{group}|endpoint={}", endpoint());
        let open = |seed| Scene::with(seed, &spec, &group, &member);
        compare_runs(seed, open, |scene| attack_as_receiver(scene, Some(control)));
    }
}

seeded! {
    /// For recently sent data, while the network loses 1 %: retransmissions stay in proportion to what is sent, and the
    /// stream gets its own repairs.
    of_a_busy_stream, 2, |seed| {
        compare_runs(seed, Scene::new, |mut scene| {
            let (to, key) = (scene.sender_address(), scene.key());
            let took = scene.deliver(50, |attacker| {
                let (offset, term) = (frame_offset(attacker), attacker.random.i32(0..64));
                let term_id = key.initial_term_id.wrapping_add(term);
                let nak = nak(key.session_id, term_id, offset, TERM as i32 - offset);
                attacker.send_as(endpoint(), to, &nak);
            });
            expect_repeats(&scene, took);
            lossless(&scene);
            scene.end(&[], 0);
            took
        });
    }
}
