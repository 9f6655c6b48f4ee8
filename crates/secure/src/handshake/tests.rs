// SPDX-License-Identifier: Apache-2.0
use zerocopy::FromBytes;

use super::*;
use crate::frame::{PairFrames, SecureFrame};
use crate::provider::DefaultProvider;
use crate::seal::Refused;
use crate::test::{each_provider, hex};

const OFFER: Offer = Offer {
    suites: 0b1110,
    channel_tag: [1, 2, 3, 4],
    receiver_id: -5,
    incarnation: 6,
};
const ANSWER: Answer = Answer {
    suite: 1,
    incarnation: 7,
};
const PSK: Secret = Secret::new([0; 32]);

fn identity<P: Provider>(number: u8) -> Identity {
    Identity::from_private::<P>(Secret::new([number; 32]))
}

fn initiate<P: Provider>(offer: &Offer, psk: &Secret) -> Initiation<P> {
    let peer = *identity::<P>(2).public();
    Initiation::new(
        &identity::<P>(1),
        &peer,
        psk,
        100,
        offer,
        Secret::new([3; 32]),
    )
    .expect("the key is in order")
}

fn receive<P: Provider>(init: &Init) -> Result<Received<P>, HandshakeError> {
    Received::new(&identity::<P>(2), init, Secret::new([4; 32]))
}

fn pair(bytes: &[u8]) -> PairFrames<'_> {
    match SecureFrame::parse(bytes) {
        Ok(SecureFrame::Pair(frames)) => frames,
        other => panic!("{other:?}"),
    }
}

fn whole_handshake<P: Provider>() {
    let mut initiation = initiate::<P>(&OFFER, &PSK);
    let received = receive::<P>(initiation.init()).unwrap();
    assert_eq!(received.peer(), identity::<P>(1).public());
    assert_eq!(received.offer(), &OFFER);
    let (resp, mut responder) = received.answer(&PSK, 200, &ANSWER).unwrap();
    let (answer, mut initiator) = initiation.finish(&resp).unwrap();
    assert_eq!(answer, ANSWER);
    for items in [&b"one"[..], b"", b"three"] {
        let frame = initiator.seal(items).unwrap();
        let opened = responder.open(&pair(&frame).next().unwrap());
        assert_eq!(
            opened.map(|(content, _)| content.to_vec()),
            Ok(items.to_vec())
        );
        let frame = responder.seal(items).unwrap();
        let opened = initiator.open(&pair(&frame).next().unwrap());
        assert_eq!(
            opened.map(|(content, _)| content.to_vec()),
            Ok(items.to_vec())
        );
    }
}

each_provider!(handshake_gives_both_ends_the_same_keys => whole_handshake);

#[test]
fn init_with_any_bit_flipped_is_refused() {
    let init = *initiate::<DefaultProvider>(&OFFER, &PSK).init();
    // The cookie proves the address to another check; base header and length are those of the parser.
    for bit in 64..Init::COOKIE_AT * 8 {
        let mut bytes = init.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let flipped = Init::read_from_bytes(&bytes).unwrap();
        assert!(receive::<DefaultProvider>(&flipped).is_err(), "bit {bit}");
    }
}

/// With a correct first authenticator, which only takes the public key, the transcript protects the rest.
#[test]
fn init_changed_under_a_fresh_mac1_is_refused() {
    let init = *initiate::<DefaultProvider>(&OFFER, &PSK).init();
    for bit in 64..Init::MAC1_AT * 8 {
        let mut bytes = init.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut flipped = Init::read_from_bytes(&bytes).unwrap();
        flipped.mac1 =
            mac1::<DefaultProvider>(identity::<DefaultProvider>(2).public(), &bytes[..152]);
        assert!(receive::<DefaultProvider>(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn resp_with_any_bit_flipped_changes_nothing() {
    let mut initiation = initiate::<DefaultProvider>(&OFFER, &PSK);
    let received = receive::<DefaultProvider>(initiation.init()).unwrap();
    let (resp, _) = received.answer(&PSK, 200, &ANSWER).unwrap();
    let own = *identity::<DefaultProvider>(1).public();
    for bit in 64..112 * 8 {
        let mut bytes = resp.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut flipped = Resp::read_from_bytes(&bytes).unwrap();
        assert!(initiation.finish(&flipped).is_err(), "bit {bit}");
        flipped.mac1 = mac1::<DefaultProvider>(&own, &bytes[..Resp::MAC1_AT]);
        if bit < Resp::MAC1_AT * 8 {
            assert!(initiation.finish(&flipped).is_err(), "bit {bit} with mac1");
        }
    }
    assert!(initiation.finish(&resp).is_ok());
}

#[test]
fn init_for_another_identity_is_refused() {
    let init = *initiate::<DefaultProvider>(&OFFER, &PSK).init();
    let other = identity::<DefaultProvider>(9);
    let received = Received::<DefaultProvider>::new(&other, &init, Secret::new([4; 32]));
    assert_eq!(received.err(), Some(HandshakeError::Mac));
}

#[test]
fn resp_under_another_psk_is_refused() {
    let mut initiation = initiate::<DefaultProvider>(&OFFER, &PSK);
    let received = receive::<DefaultProvider>(initiation.init()).unwrap();
    let (resp, _) = received
        .answer(&Secret::new([1; 32]), 200, &ANSWER)
        .unwrap();
    assert_eq!(initiation.finish(&resp).err(), Some(HandshakeError::Noise));
}

#[test]
fn resp_with_a_suite_that_was_not_offered_is_refused() {
    for (offered, chosen) in [(0b0100, 1), (0b1110, 4), (0b1110, 0), (0, 1)] {
        let offer = Offer {
            suites: offered,
            ..OFFER
        };
        let mut initiation = initiate::<DefaultProvider>(&offer, &PSK);
        let received = receive::<DefaultProvider>(initiation.init()).unwrap();
        let answer = Answer {
            suite: chosen,
            ..ANSWER
        };
        let (resp, _) = received.answer(&PSK, 200, &answer).unwrap();
        assert_eq!(
            initiation.finish(&resp).err(),
            Some(HandshakeError::Suite(chosen))
        );
    }
}

#[test]
fn resp_of_another_handshake_is_refused() {
    let mut first = initiate::<DefaultProvider>(&OFFER, &PSK);
    let peer = *identity::<DefaultProvider>(2).public();
    let second = Initiation::<DefaultProvider>::new(
        &identity::<DefaultProvider>(1),
        &peer,
        &PSK,
        100,
        &OFFER,
        Secret::new([5; 32]),
    )
    .unwrap();
    let received = receive::<DefaultProvider>(second.init()).unwrap();
    let (resp, _) = received.answer(&PSK, 200, &ANSWER).unwrap();
    assert_eq!(first.finish(&resp).err(), Some(HandshakeError::Noise));
}

fn small_order_points<P: Provider>() {
    for point in [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ] {
        let point = hex(point).try_into().unwrap();
        let result = Initiation::<P>::new(
            &identity::<P>(1),
            &PublicKey(point),
            &PSK,
            1,
            &OFFER,
            Secret::new([3; 32]),
        );
        assert!(result.is_err());
        assert!(x25519::<P>(&Secret::new([3; 32]), &point).is_err());
    }
}

each_provider!(public_keys_of_small_order_are_refused => small_order_points);

#[test]
fn pair_frames_flipped_replayed_or_reflected_are_refused() {
    let mut initiation = initiate::<DefaultProvider>(&OFFER, &PSK);
    let received = receive::<DefaultProvider>(initiation.init()).unwrap();
    let (resp, mut responder) = received.answer(&PSK, 200, &ANSWER).unwrap();
    let (_, mut initiator) = initiation.finish(&resp).unwrap();
    let frame = initiator.seal(b"items").unwrap();
    for bit in 64..frame.len() * 8 {
        let mut flipped = frame.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let opened = responder.open(&pair(&flipped).next().unwrap());
        assert!(opened.is_err(), "bit {bit}");
    }
    assert!(responder.open(&pair(&frame).next().unwrap()).is_ok());
    assert!(matches!(
        responder.open(&pair(&frame).next().unwrap()),
        Err(Refused::Replayed(_))
    ));
    let mut reflected = frame;
    reflected[8..16].copy_from_slice(&initiator.own_id().to_le_bytes());
    assert_eq!(
        initiator.open(&pair(&reflected).next().unwrap()).err(),
        Some(Refused::Unauthentic)
    );
}

#[test]
fn handshake_debug_shows_no_secret() {
    let mut initiation = initiate::<DefaultProvider>(&OFFER, &PSK);
    let received = receive::<DefaultProvider>(initiation.init()).unwrap();
    let mut texts = vec![format!("{initiation:?}"), format!("{received:?}")];
    let (resp, keys) = received.answer(&PSK, 200, &ANSWER).unwrap();
    let (_, others) = initiation.finish(&resp).unwrap();
    texts.push(format!("{keys:?}{others:?}"));
    assert!(texts[2].contains("<secret>"));
    for text in texts {
        assert!(
            !text.contains("3, 3, 3") && !text.contains("4, 4, 4"),
            "{text}"
        );
    }
}
