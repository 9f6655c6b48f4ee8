// SPDX-License-Identifier: Apache-2.0
//! Attacks on sealed datagrams: each ends in a refusal, and leaves the key as it was.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use taran_protocol::frame::{
    DataHeader, FrameHeader, FrameType, IntoBytes, Nak, Rttm, Setup, StatusMessage,
};
use taran_secure::Secret;
use taran_secure::bounds::{OutOfBounds, check_back, check_forward};
use taran_secure::derive::{Fingerprint, KeyContext, KeyMaterial, Role};
use taran_secure::frame::{Announce, FromBytes, SEALED_OVERHEAD};
use taran_secure::limits::KeyLimits;
use taran_secure::provider::{DefaultProvider as Chosen, Suite};
use taran_secure::seal::{Direction, OpenKey, Refused, SealError, SealKey};

const CONTEXT: KeyContext = KeyContext {
    role: Role::Stream,
    suite: Suite::Aes256Gcm,
    identity: Fingerprint([1; 16]),
    session_id: 10,
    stream_id: 20,
    epoch: 1,
};

fn material(context: &KeyContext) -> KeyMaterial {
    KeyMaterial::derive::<Chosen>(&Secret::new([9; 32]), context)
}

fn pair_of(context: &KeyContext, direction: Direction) -> (SealKey<Chosen>, OpenKey<Chosen>) {
    let material = material(context);
    (
        SealKey::new(&material, direction),
        OpenKey::new(&material, direction, 0),
    )
}

fn keys() -> (SealKey<Chosen>, OpenKey<Chosen>) {
    pair_of(&CONTEXT, Direction::Forward)
}

fn sealed(key: &mut SealKey<Chosen>, plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0; plain.len() + SEALED_OVERHEAD];
    let length = key.seal(plain, &mut out).expect("the key is fresh");
    assert_eq!(length, out.len());
    out
}

fn opened(key: &mut OpenKey<Chosen>, datagram: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut out = vec![0xee; datagram.len()];
    let length = key.open(datagram, &mut out)?;
    out.truncate(length);
    Ok(out)
}

fn setup() -> Setup {
    Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: 10.into(),
        stream_id: 20.into(),
        initial_term_id: 1.into(),
        active_term_id: 1.into(),
        term_length: 65_536.into(),
        mtu: 1_408.into(),
        ttl: 0.into(),
    }
}

#[test]
fn sealed_datagrams_open_to_what_was_sealed() {
    for suite in Suite::ALL {
        let context = KeyContext { suite, ..CONTEXT };
        let (mut seal, mut open) = pair_of(&context, Direction::Forward);
        for length in [0, 1, 15, 16, 17, 32, 1_376, 65_440] {
            let plain: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let datagram = sealed(&mut seal, &plain);
            assert_eq!(opened(&mut open, &datagram), Ok(plain));
        }
    }
}

#[test]
fn sealed_datagram_with_any_bit_flipped_is_refused_and_gives_no_byte() {
    let (mut seal, mut open) = keys();
    let plain = [0x33; 48];
    let datagram = sealed(&mut seal, &plain);
    for bit in 0..datagram.len() * 8 {
        let mut flipped = datagram.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut out = [0xee; 64];
        assert!(open.open(&flipped, &mut out).is_err(), "bit {bit}");
        let leaked = out.iter().any(|byte| ![0xee, 0].contains(byte));
        assert!(!leaked, "bit {bit}: {out:?}");
    }
    assert_eq!(opened(&mut open, &datagram), Ok(plain.to_vec()));
}

#[test]
fn announcement_with_any_bit_flipped_is_refused() {
    let (mut seal, mut open) = keys();
    let announce = seal.announce(Fingerprint([1; 16]), 2, 3, &setup()).unwrap();
    for bit in 0..192 * 8 {
        let mut bytes = announce.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let flipped = Announce::read_from_bytes(&bytes).unwrap();
        assert!(open.open_announce(&flipped).is_err(), "bit {bit}");
    }
    assert_eq!(open.open_announce(&announce), Ok(setup()));
    assert!(matches!(
        open.open_announce(&announce),
        Err(Refused::Replayed(_))
    ));
}

#[test]
fn sealed_datagram_truncated_or_extended_is_refused() {
    let (mut seal, mut open) = keys();
    let datagram = sealed(&mut seal, &[7; 100]);
    for by in 1..=64 {
        let shorter = &datagram[..datagram.len() - by];
        assert_eq!(opened(&mut open, shorter), Err(Refused::Malformed));
        let mut fixed = shorter.to_vec();
        fixed[..4].copy_from_slice(&(shorter.len() as u32).to_le_bytes());
        assert_eq!(opened(&mut open, &fixed), Err(Refused::Unauthentic));
        let mut longer = datagram.clone();
        longer.resize(datagram.len() + by, 0);
        assert_eq!(opened(&mut open, &longer), Err(Refused::Malformed));
        let length = longer.len() as u32;
        longer[..4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(opened(&mut open, &longer), Err(Refused::Unauthentic));
    }
}

#[test]
fn sealed_datagrams_replayed_in_any_order_are_refused() {
    let (mut seal, mut open) = keys();
    let datagrams: Vec<Vec<u8>> = (0..5_000_u32)
        .map(|number| sealed(&mut seal, &number.to_le_bytes()))
        .collect();
    for datagram in &datagrams {
        assert!(opened(&mut open, datagram).is_ok());
    }
    for datagram in datagrams.iter().rev() {
        assert!(matches!(
            opened(&mut open, datagram),
            Err(Refused::Replayed(_))
        ));
    }
    assert_eq!(open.failures(), 0);
}

/// A forged datagram with a counter far ahead must not push honest ones out of the window.
#[test]
fn forged_counters_do_not_move_the_window() {
    let (mut seal, mut open) = keys();
    let honest = sealed(&mut seal, &[1; 32]);
    let mut forged = honest.clone();
    forged[16..24].copy_from_slice(&1_000_000_u64.to_le_bytes());
    assert_eq!(opened(&mut open, &forged), Err(Refused::Unauthentic));
    assert!(opened(&mut open, &honest).is_ok());
}

#[test]
fn datagrams_sealed_before_the_grant_are_refused() {
    let material = material(&CONTEXT);
    let mut seal = SealKey::<Chosen>::new(&material, Direction::Forward);
    let before: Vec<Vec<u8>> = (0..100).map(|_| sealed(&mut seal, &[1; 32])).collect();
    let mut open = OpenKey::new(&material, Direction::Forward, seal.next_counter());
    for datagram in &before {
        assert!(matches!(
            opened(&mut open, datagram),
            Err(Refused::Replayed(_))
        ));
    }
    assert!(opened(&mut open, &sealed(&mut seal, &[2; 32])).is_ok());
}

#[test]
fn datagrams_spliced_from_two_are_refused() {
    let (mut seal, mut open) = keys();
    let (one, other) = (sealed(&mut seal, &[1; 64]), sealed(&mut seal, &[2; 64]));
    for at in [8, 16, 24, 40, 88] {
        let spliced = [&one[..at], &other[at..]].concat();
        if spliced != one && spliced != other {
            assert_eq!(
                opened(&mut open, &spliced),
                Err(Refused::Unauthentic),
                "{at}"
            );
        }
    }
}

#[test]
fn datagrams_of_other_streams_epochs_roles_and_suites_are_refused() {
    let others = [
        KeyContext {
            session_id: 11,
            ..CONTEXT
        },
        KeyContext {
            stream_id: 21,
            ..CONTEXT
        },
        KeyContext {
            epoch: 2,
            ..CONTEXT
        },
        KeyContext {
            identity: Fingerprint([2; 16]),
            ..CONTEXT
        },
        KeyContext {
            role: Role::Back { receiver_id: 1 },
            ..CONTEXT
        },
        KeyContext {
            suite: Suite::ChaCha20Poly1305,
            ..CONTEXT
        },
    ];
    let (_, mut open) = keys();
    for other in others {
        let (mut seal, _) = pair_of(&other, Direction::Forward);
        let mut datagram = sealed(&mut seal, &[1; 64]);
        assert_eq!(opened(&mut open, &datagram), Err(Refused::Malformed));
        datagram[8..16].copy_from_slice(&open.id().0);
        assert_eq!(opened(&mut open, &datagram), Err(Refused::Unauthentic));
    }
}

/// The type is authenticated: what a sender sealed cannot come back to it as feedback, under the same key or another.
#[test]
fn datagrams_reflected_into_the_other_direction_are_refused() {
    let material = material(&CONTEXT);
    let mut seal = SealKey::<Chosen>::new(&material, Direction::Forward);
    let mut back = OpenKey::<Chosen>::new(&material, Direction::Back, 0);
    let mut datagram = sealed(&mut seal, &[1; 64]);
    assert_eq!(opened(&mut back, &datagram), Err(Refused::Malformed));
    datagram[6..8].copy_from_slice(&0x5451_u16.to_le_bytes());
    assert_eq!(opened(&mut back, &datagram), Err(Refused::Unauthentic));
}

#[test]
fn plain_frames_are_refused_under_every_key() {
    let (_, mut open) = keys();
    let heartbeat = DataHeader::heartbeat(0xc0, 10, 20, 1, 0);
    let mut datagram = heartbeat.as_bytes().to_vec();
    assert_eq!(opened(&mut open, &datagram), Err(Refused::Malformed));
    datagram.resize(96, 0);
    assert_eq!(opened(&mut open, &datagram), Err(Refused::Malformed));
}

#[test]
fn counters_beyond_the_limit_of_the_suite_are_refused() {
    let (mut seal, mut open) = keys();
    let datagram = sealed(&mut seal, &[1; 64]);
    for counter in [1 << 32, 1 << 63, u64::MAX] {
        let mut forged = datagram.clone();
        forged[16..24].copy_from_slice(&counter.to_le_bytes());
        assert_eq!(opened(&mut open, &forged), Err(Refused::Counter));
    }
}

fn tiny(suite: Suite) -> KeyLimits {
    KeyLimits {
        soft_datagrams: 3,
        hard_datagrams: 5,
        soft_failures: 2,
        hard_failures: 4,
        ..KeyLimits::of(suite)
    }
}

#[test]
fn key_at_its_limits_asks_for_rotation_and_then_seals_nothing() {
    let material = material(&CONTEXT);
    let limits = tiny(Suite::Aes256Gcm);
    let mut seal = SealKey::<Chosen>::with_limits(&material, Direction::Forward, limits);
    for number in 0..5 {
        assert_eq!(seal.wants_rotation(), number >= 3);
        sealed(&mut seal, &[1; 32]);
    }
    let mut out = [0; 100];
    assert_eq!(seal.seal(&[1; 32], &mut out), Err(SealError::Exhausted));
    assert_eq!(out, [0; 100]);
    let announce = seal.announce(Fingerprint([1; 16]), 1, 1, &setup());
    assert_eq!(announce.err(), Some(SealError::Exhausted));
    assert_eq!(seal.next_counter(), 5);
}

/// Authenticated header, plain bytes and the block of the tag count.
#[test]
fn blocks_are_counted_towards_the_limit() {
    let material = material(&CONTEXT);
    let limits = KeyLimits {
        soft_blocks: 5,
        hard_blocks: 12,
        ..KeyLimits::of(Suite::Aes256Gcm)
    };
    let mut seal = SealKey::<Chosen>::with_limits(&material, Direction::Forward, limits);
    sealed(&mut seal, &[1; 33]);
    assert!(seal.wants_rotation());
    sealed(&mut seal, &[1; 33]);
    let mut out = [0; 100];
    assert_eq!(seal.seal(&[], &mut out), Err(SealError::Exhausted));
}

#[test]
fn key_after_too_many_failures_opens_nothing() {
    let material = material(&CONTEXT);
    let mut seal = SealKey::<Chosen>::new(&material, Direction::Forward);
    let limits = KeyLimits {
        hard_datagrams: 1 << 32,
        ..tiny(Suite::Aes256Gcm)
    };
    let mut open = OpenKey::<Chosen>::with_limits(&material, Direction::Forward, 0, limits);
    let datagram = sealed(&mut seal, &[1; 64]);
    let mut forged = datagram.clone();
    forged[50] ^= 1;
    for number in 0..4 {
        assert_eq!(open.wants_rotation(), number >= 2);
        assert_eq!(opened(&mut open, &forged), Err(Refused::Unauthentic));
    }
    assert_eq!(opened(&mut open, &datagram), Err(Refused::Retired));
}

#[test]
fn counters_are_never_used_twice_whatever_becomes_of_the_datagrams() {
    let (mut seal, _) = keys();
    let mut out = [0; 200];
    let mut last = None;
    for attempt in 0..1_000_usize {
        let plain = &[7; 150][..attempt % 150];
        let room = &mut out[..attempt * 7 % 200];
        let before = seal.next_counter();
        match seal.seal(plain, room) {
            Ok(length) => {
                let counter = u64::from_le_bytes(room[16..24].try_into().unwrap());
                assert_eq!(length, plain.len() + 40);
                assert!(last.is_none_or(|last| counter == last + 1));
                last = Some(counter);
            }
            Err(error) => {
                assert!(matches!(error, SealError::Output { .. }));
                assert_eq!(seal.next_counter(), before);
            }
        }
    }
    assert!(last.is_some_and(|last| last > 100));
}

#[test]
fn too_long_datagrams_and_setups_under_back_keys_are_refused() {
    let (mut seal, _) = pair_of(&CONTEXT, Direction::Back);
    let mut out = vec![0; 70_000];
    assert_eq!(
        seal.seal(&vec![0; 65_441], &mut out),
        Err(SealError::TooLong { length: 65_441 })
    );
    assert_eq!(
        seal.announce(Fingerprint([1; 16]), 1, 1, &setup()).err(),
        Some(SealError::Direction)
    );
}

#[test]
fn key_debug_shows_no_secret() {
    let (seal, open) = keys();
    for text in [format!("{seal:?}"), format!("{open:?}")] {
        assert!(text.contains("<secret>"), "{text}");
        assert!(!text.contains("iv"), "{text}");
    }
}

/// A DATA datagram of frames with a session each.
fn data(sessions: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, session_id) in sessions.iter().enumerate() {
        let header = DataHeader {
            header: FrameHeader::new(40, DataHeader::UNFRAGMENTED, FrameType::DATA),
            term_offset: (index as i32 * 64).into(),
            session_id: (*session_id).into(),
            stream_id: 20.into(),
            term_id: 1.into(),
            reserved_value: 0.into(),
        };
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize((index + 1) * 64, 5);
    }
    bytes
}

#[test]
fn sender_with_frames_of_another_session_is_out_of_bounds() {
    assert_eq!(check_forward(&data(&[10, 10, 10]), 10, 20), Ok(()));
    assert_eq!(
        check_forward(&data(&[10, 11]), 10, 20),
        Err(OutOfBounds::LaterFrame)
    );
    assert_eq!(
        check_forward(&data(&[11]), 10, 20),
        Err(OutOfBounds::Stream)
    );
    assert_eq!(
        check_forward(&data(&[10]), 10, 21),
        Err(OutOfBounds::Stream)
    );
    let heartbeat = DataHeader::heartbeat(0xc0, 10, 20, 1, 0);
    assert_eq!(check_forward(heartbeat.as_bytes(), 10, 20), Ok(()));
    let hidden = [heartbeat.as_bytes(), &data(&[11])].concat();
    assert_eq!(check_forward(&hidden, 10, 20), Err(OutOfBounds::Invalid));
    let mut other = data(&[10, 10]);
    other[64 + 20] ^= 1;
    assert_eq!(check_forward(&other, 10, 20), Err(OutOfBounds::LaterFrame));
}

#[test]
fn frames_of_the_wrong_direction_are_out_of_bounds() {
    let status = StatusMessage {
        header: StatusMessage::header(0),
        session_id: 10.into(),
        stream_id: 20.into(),
        consumption_term_id: 1.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        receiver_id: 5.into(),
    };
    let forward = |plain: &[u8]| check_forward(plain, 10, 20);
    let back = |plain: &[u8]| check_back(plain, 5, |session, stream| (session, stream) == (10, 20));
    assert_eq!(forward(status.as_bytes()), Err(OutOfBounds::Direction));
    assert_eq!(forward(setup().as_bytes()), Err(OutOfBounds::Direction));
    assert_eq!(back(&data(&[10])), Err(OutOfBounds::Direction));
    assert_eq!(back(setup().as_bytes()), Err(OutOfBounds::Direction));
    let (mut seal, _) = keys();
    let nested = sealed(&mut seal, &data(&[10]));
    assert_eq!(forward(&nested), Err(OutOfBounds::Invalid));
    assert_eq!(back(&nested), Err(OutOfBounds::Invalid));
}

#[test]
fn receiver_that_speaks_for_another_is_out_of_bounds() {
    let back = |plain: &[u8]| check_back(plain, 5, |session, stream| (session, stream) == (10, 20));
    let status = |session: i32, receiver: i64, flags| StatusMessage {
        header: StatusMessage::header(flags),
        session_id: session.into(),
        stream_id: if session == 0 { 0 } else { 20 }.into(),
        consumption_term_id: 1.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        receiver_id: receiver.into(),
    };
    assert_eq!(back(status(10, 5, 0).as_bytes()), Ok(()));
    assert_eq!(
        back(status(10, 6, 0).as_bytes()),
        Err(OutOfBounds::ReceiverId)
    );
    assert_eq!(back(status(11, 5, 0).as_bytes()), Err(OutOfBounds::Stream));
    let asks = StatusMessage::SEND_SETUP;
    assert_eq!(back(status(0, 5, asks).as_bytes()), Ok(()));
    assert_eq!(back(status(0, 5, 0).as_bytes()), Err(OutOfBounds::Stream));
    assert_eq!(
        back(status(0, 6, asks).as_bytes()),
        Err(OutOfBounds::ReceiverId)
    );
    let rttm = Rttm {
        header: Rttm::header(0),
        session_id: 10.into(),
        stream_id: 20.into(),
        echo_timestamp: 0.into(),
        reception_delta: 0.into(),
        receiver_id: 6.into(),
    };
    assert_eq!(back(rttm.as_bytes()), Err(OutOfBounds::ReceiverId));
    let nak = Nak {
        header: FrameHeader::new(28, 0, FrameType::NAK),
        session_id: 11.into(),
        stream_id: 20.into(),
        term_id: 1.into(),
        term_offset: 0.into(),
        length: 64.into(),
    };
    assert_eq!(back(nak.as_bytes()), Err(OutOfBounds::Stream));
}
