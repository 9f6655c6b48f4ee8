//! NAKs for everything there is and everything there is not.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{IntoBytes, Nak};
use taran_sim::network::LinkFaults;
use taran_sim::{HostSpec, seeded};

use super::super::common::STREAM;
use super::{Scene, Stranger, TERM, expect_progress, listens, undisturbed};

/// A NAK of a session.
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

fn frame_offset(stranger: &mut Stranger) -> i32 {
    stranger.random.i32(0..(TERM / 32) as i32) * 32
}

seeded! {
    /// For terms that are long gone or yet to come, of no length, of impossible length, of unknown sessions: nothing is
    /// sent again for any of them.
    for_what_is_not_there, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sends_from(), scene.key());
        let took = scene.deliver(100, |stranger| {
            let offset = frame_offset(stranger);
            let rest = TERM as i32 - offset;
            let random = &mut stranger.random;
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
            stranger.say(to, &all[chosen]);
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
    /// For all that can be sent again, over and over, of a stream that stands: the sender repeats half a term in a
    /// second, or a mebibyte where that is more, as with these terms.
    of_a_stream_that_stands, 4, |seed| {
        let mut scene = Scene::open(seed);
        scene.deliver(0, |_| {});
        let (to, session_id) = (scene.sends_from(), scene.key().session_id);
        let (term_id, end) = scene.term();
        let before = scene.system(0, SystemCounter::RetransmittedBytes);
        const SECONDS: i64 = 3;
        scene.attack_for(Duration::from_secs(SECONDS as u64), 100, |stranger| {
            let offset = stranger.random.i32(0..=end / 32) * 32;
            stranger.say(to, &nak(session_id, term_id, offset, TERM as i32 - offset));
        });
        let repeated = scene.system(0, SystemCounter::RetransmittedBytes) - before;
        let most = (1 + SECONDS) * (1 << 20) + 2 * TERM;
        assert!(repeated <= most, "{repeated} bytes were sent again, {most} are allowed");
        // Of a stream that has just begun all is being sent again at any time, and nothing is news.
        let has_to_wait = i64::from(end) >= TERM / 4;
        let waited = scene.system(0, SystemCounter::RetransmitOverflow);
        assert!(waited > 0 || !has_to_wait, "what is not answered is counted");
        scene.end(&[], 0);
    }
}

/// Loses a hundredth of the stream, what is sent again included. What its receiver says arrives: whether a status message is
/// lost, which is said again after 200 ms, is luck, and a stream without such luck takes 70 ms.
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

/// In so many worlds a story of loss is told for each seed: where nothing follows what is lost, a heartbeat tells of it after
/// 100 ms, and that is luck, too.
const WORLDS: u64 = 9;

/// How many times as long half of the honest streams may take when their repairs wait for those that somebody else asked for.
const TIMES: f64 = 1.5;

/// How much longer than that any of them may take: three times what the last heartbeat tells of, and repairs that wait for
/// others once each.
const WORST: Duration = Duration::from_millis(3 * (100 + 80));

/// Checks that honest streams went on with their repairs.
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

/// Checks that no more was sent again than may be.
fn expect_repeats(scene: &Scene, took: Duration) {
    let sent = scene.system(0, SystemCounter::BytesSent);
    let repeated = scene.system(0, SystemCounter::RetransmittedBytes);
    let most = 4 * sent + ((1_000 + took.as_millis() as i64) * (1 << 20)) / 1_000 + 2 * TERM;
    assert!(
        repeated <= most,
        "{repeated} bytes were sent again, {most} are allowed"
    );
}

/// Tells a story of loss in several worlds, with an attack and without.
fn told(seed: u64, open: impl Fn(u64) -> Scene, attacked: impl Fn(Scene) -> Duration) {
    let seeds = seed * WORLDS..(seed + 1) * WORLDS;
    let expected = seeds.clone().map(|seed| undisturbed(lossy(open(seed))));
    let took = seeds.map(|seed| attacked(lossy(open(seed))));
    expect_repairs(took.collect(), expected.collect());
}

/// A stranger who knows where the stream is asks for what suits him, so many times in each millisecond, while the network
/// loses a hundredth.
fn in_the_name_of_the_receiver(mut scene: Scene, to: Option<SocketAddr>) -> Duration {
    let (to, key) = (to.unwrap_or(scene.sends_from()), scene.key());
    let publication = scene.world.publisher(scene.publisher).shared().unwrap();
    let took = scene.deliver(50, |stranger| {
        let random = &mut stranger.random;
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
        stranger.say_as(listens(), to, &nak);
    });
    expect_repeats(&scene, took);
    lossless(&scene);
    drop(publication);
    scene.end(&[], 0);
    took
}

seeded! {
    /// For any piece of what can still be sent again, by one who knows where the stream is: the receiver gets its own
    /// repairs all the same.
    of_one_who_knows_the_stream, 2, |seed| {
        told(seed, Scene::open, |scene| in_the_name_of_the_receiver(scene, None));
    }
}

seeded! {
    /// The same in a group, where several pieces are sent again at a time.
    of_one_who_knows_the_group, 2, |seed| {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        let control = SocketAddr::from(([10, 0, 0, 1], 40_456));
        let group = format!("aeron:udp?control={control}|control-mode=dynamic");
        let member = format!("{group}|endpoint={}", listens());
        let open = |seed| Scene::with(seed, &spec, &group, &member);
        told(seed, open, |scene| in_the_name_of_the_receiver(scene, Some(control)));
    }
}

seeded! {
    /// For what was just sent, while a network loses a hundredth: what is sent again stays in proportion to what is
    /// sent, and the stream goes on with its own repairs.
    of_a_stream_that_flows, 2, |seed| {
        told(seed, Scene::new, |mut scene| {
            let (to, key) = (scene.sends_from(), scene.key());
            let took = scene.deliver(50, |stranger| {
                let (offset, term) = (frame_offset(stranger), stranger.random.i32(0..64));
                let term_id = key.initial_term_id.wrapping_add(term);
                let nak = nak(key.session_id, term_id, offset, TERM as i32 - offset);
                stranger.say_as(listens(), to, &nak);
            });
            expect_repeats(&scene, took);
            lossless(&scene);
            scene.end(&[], 0);
            took
        });
    }
}
