// SPDX-License-Identifier: Apache-2.0
//! Vectors: those of `interop/secure/ts1.py`, a second implementation of docs/spec/transport-security.md, and those of
//! Wycheproof and the RFCs for the primitives; for each provider in the build.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use taran_protocol::frame::{FromBytes, IntoBytes, Setup};
use taran_secure::Secret;
use taran_secure::derive::{
    Fingerprint, KeyContext, KeyId, KeyMaterial, PublicKey, Role, channel_tag,
};
use taran_secure::frame::{
    Announce, GRANT_CURRENT, Grant, Hello, Init, Item, ItemWriter, Items, RequestedKey, SecureFrame,
};
use taran_secure::handshake::{Answer, Initiation, Offer, Received};
use taran_secure::identity::{Identity, parse_public_key, public_key_text};
use taran_secure::provider::{Aead, Provider, Suite, x25519};
use taran_secure::seal::{Direction, OpenKey, SealKey};

/// Makes a test for each provider in the build.
macro_rules! each_provider {
    ($($name:ident => $check:ident),+ $(,)?) => { $(
        #[test]
        fn $name() {
            #[cfg(feature = "aws-lc")]
            $check::<taran_secure::provider::AwsLc>();
            #[cfg(feature = "graviola")]
            $check::<taran_secure::provider::Graviola>();
        }
    )+ };
}

each_provider! {
    identities_of_the_second_implementation_are_the_same => identities,
    keys_of_the_second_implementation_are_the_same => keys,
    frames_of_the_second_implementation_are_the_same => frames,
    handshakes_of_the_second_implementation_are_the_same => handshakes,
    aead_of_wycheproof_inputs_gives_its_outputs => aead,
    x25519_of_wycheproof_inputs_gives_its_outputs => wycheproof_x25519,
    hmac_of_wycheproof_inputs_gives_its_outputs => wycheproof_hmac,
    x25519_of_rfc_7748_inputs_gives_its_outputs => rfc7748,
    chacha20_poly1305_of_rfc_8439_inputs_gives_its_outputs => rfc8439,
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/ts1.json")).expect("the file is JSON")
}

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Field access to a vector.
trait Fields {
    fn bytes(&self, field: &str) -> Vec<u8>;
    fn array<const N: usize>(&self, field: &str) -> [u8; N] {
        self.bytes(field)
            .try_into()
            .expect("the field has this length")
    }
    fn secret(&self, field: &str) -> Secret {
        Secret::new(self.array(field))
    }
    fn signed(&self, field: &str) -> i64;
    fn unsigned(&self, field: &str) -> u64;
    fn list(&self, field: &str) -> &Vec<Value>;
}

impl Fields for Value {
    fn bytes(&self, field: &str) -> Vec<u8> {
        hex(self[field].as_str().expect("a text"))
    }

    fn signed(&self, field: &str) -> i64 {
        self[field].as_i64().expect("a number")
    }

    fn unsigned(&self, field: &str) -> u64 {
        self[field].as_u64().expect("a number")
    }

    fn list(&self, field: &str) -> &Vec<Value> {
        self[field].as_array().expect("a list")
    }
}

fn identities<P: Provider>() {
    let vectors = vectors();
    for vector in vectors.list("identities") {
        let identity = Identity::from_private::<P>(vector.secret("private"));
        assert_eq!(identity.public().0, vector.array("public"));
        assert_eq!(identity.fingerprint().0, vector.array("fingerprint"));
    }
    for vector in vectors.list("channel_tags") {
        let label = vector["label"].as_str().unwrap();
        assert_eq!(channel_tag::<P>(label), vector.array("tag"));
    }
    let public = &vectors.list("text_checks")[1];
    let key = PublicKey(public.array("key"));
    let text = public_key_text::<P>(&key);
    assert_eq!(parse_public_key::<P>(&text), Ok(key));
    // 36 bytes of base64url; the last four are the check value.
    let encoded = data_encoding::BASE64URL_NOPAD
        .decode(text.strip_prefix("taran-pub-1:").unwrap().as_bytes())
        .unwrap();
    assert_eq!(encoded[32..], public.bytes("check"));
}

fn context(vector: &Value) -> KeyContext {
    KeyContext {
        role: if vector["role"] == "stream" {
            Role::Stream
        } else {
            Role::Back {
                receiver_id: vector.signed("receiver"),
            }
        },
        suite: Suite::from_id(vector.unsigned("suite") as u16).unwrap(),
        identity: Fingerprint(vector.array("identity")),
        session_id: vector.signed("session") as i32,
        stream_id: vector.signed("stream") as i32,
        epoch: vector.unsigned("epoch") as u32,
    }
}

/// The id proves the derivation up to the context; key and IV are proved by the sealed frames.
fn keys<P: Provider>() {
    let vectors = vectors();
    assert_eq!(vectors.list("keys").len(), 6);
    for vector in vectors.list("keys") {
        let material = KeyMaterial::derive::<P>(&vector.secret("secret"), &context(vector));
        assert_eq!(material.id().0, vector.array("id"));
    }
}

fn frames<P: Provider>() {
    let vectors = vectors();
    for vector in vectors.list("sealed") {
        let context = context(vector);
        let material = KeyMaterial::derive::<P>(&vector.secret("secret"), &context);
        let direction = match context.role {
            Role::Stream => Direction::Forward,
            Role::Back { .. } => Direction::Back,
        };
        let mut seal = SealKey::<P>::new(&material, direction);
        let mut open = OpenKey::<P>::new(&material, direction, 0);
        let frames = vector.list("frames");
        for (counter, (length, frame)) in
            vector.list("plain_lengths").iter().zip(frames).enumerate()
        {
            let length = length.as_u64().unwrap() as usize;
            let plain: Vec<u8> = (0..length).map(|index| (counter + index) as u8).collect();
            let frame = hex(frame.as_str().unwrap());
            let mut out = vec![0; length + 40];
            assert_eq!(seal.seal(&plain, &mut out), Ok(out.len()));
            assert_eq!(out, frame);
            assert_eq!(open.open(&frame, &mut out), Ok(length));
            assert_eq!(out[..length], plain);
        }
    }
    for vector in vectors.list("announcements") {
        let context = context(vector);
        let material = KeyMaterial::derive::<P>(&vector.secret("secret"), &context);
        let mut seal = SealKey::<P>::new(&material, Direction::Forward);
        let setup = Setup::read_from_bytes(&vector.bytes("setup")).unwrap();
        let incarnation = vector.unsigned("incarnation");
        let announce = seal
            .announce(context.identity, incarnation, context.epoch, &setup)
            .unwrap();
        assert_eq!(announce.as_bytes(), vector.bytes("frame"));
        let mut open = OpenKey::<P>::new(&material, Direction::Forward, 0);
        assert_eq!(open.open_announce(&announce), Ok(setup));
    }
    let hint = &vectors["hint"];
    let built = Announce::hint(
        hint.unsigned("flags") as u8,
        Fingerprint(hint.array("identity")),
        hint.unsigned("incarnation"),
        hint.signed("session") as i32,
        hint.signed("stream") as i32,
    );
    assert_eq!(built.as_bytes(), hint.bytes("frame"));
    let hello = &vectors["hello"];
    let built = Hello::new(
        KeyId(hello.array("key_id")),
        hello.array("random"),
        hello.signed("session") as i32,
        hello.signed("stream") as i32,
    );
    assert_eq!(built.as_bytes(), hello.bytes("frame"));
}

fn handshakes<P: Provider>() {
    let vectors = vectors();
    for vector in vectors.list("handshakes") {
        let initiator = Identity::from_private::<P>(vector.secret("initiator"));
        let responder = Identity::from_private::<P>(vector.secret("responder"));
        let psk = vector.secret("psk");
        let offer = Offer {
            suites: vector.unsigned("suites") as u16,
            channel_tag: vector.array("channel_tag"),
            receiver_id: vector.signed("receiver"),
            incarnation: vector.unsigned("initiator_incarnation"),
        };
        let mut initiation = Initiation::<P>::new(
            &initiator,
            responder.public(),
            &psk,
            vector.unsigned("initiator_link"),
            &offer,
            vector.secret("initiator_ephemeral"),
        )
        .unwrap();
        assert_eq!(initiation.init().as_bytes(), vector.bytes("init"));
        let init = Init::read_from_bytes(&vector.bytes("init")).unwrap();
        let received =
            Received::<P>::new(&responder, &init, vector.secret("responder_ephemeral")).unwrap();
        assert_eq!(received.offer(), &offer);
        let answer = Answer {
            suite: vector.unsigned("suite") as u16,
            incarnation: vector.unsigned("responder_incarnation"),
        };
        let (resp, mut responder) = received
            .answer(&psk, vector.unsigned("responder_link"), &answer)
            .unwrap();
        assert_eq!(resp.as_bytes(), vector.bytes("resp"));
        let (_, mut initiator) = initiation.finish(&resp).unwrap();

        let mut writer = ItemWriter::new();
        writer.push(&Item::BackKey {
            epoch: 8,
            suite: 1,
            secret: Secret::new(std::array::from_fn(|index| index as u8 + 3)),
        });
        writer.push(&Item::Request {
            request: 1,
            key: RequestedKey::Stream {
                session_id: -7,
                stream_id: 1001,
            },
        });
        assert_eq!(writer.bytes(), vector.bytes("request_items"));
        let request = initiator.seal(writer.bytes()).unwrap();
        assert_eq!(request, vector.bytes("request"));
        let Ok(SecureFrame::Pair(mut frames)) = SecureFrame::parse(&request) else {
            panic!("the request is a PAIR frame");
        };
        let (content, _) = responder.open(&frames.next().unwrap()).unwrap();
        assert_eq!(Items::parse(&content).unwrap().count(), 2);

        writer.clear();
        writer.push(&Item::Grant(Grant {
            request: 1,
            session_id: -7,
            stream_id: 1001,
            epoch: 9,
            suite: 1,
            flags: GRANT_CURRENT,
            first_counter: 10,
            life_seconds: 3_660,
            identity: Fingerprint(vectors.list("keys")[0].array("identity")),
            secret: Secret::new(std::array::from_fn(|index| index as u8 + 5)),
        }));
        writer.push(&Item::Got(KeyId(std::array::from_fn(|index| {
            index as u8 + 6
        }))));
        assert_eq!(writer.bytes(), vector.bytes("grant_items"));
        assert_eq!(
            responder.seal(writer.bytes()).unwrap(),
            vector.bytes("grant")
        );
    }
}

fn aead<P: Provider>() {
    use wycheproof::TestResult;
    use wycheproof::aead::{TestName, TestSet};
    let mut count = 0;
    for name in [TestName::AesGcm, TestName::ChaCha20Poly1305] {
        for group in TestSet::load(name).expect("the set is there").test_groups {
            let suite = match (name, group.key_size) {
                (TestName::AesGcm, 128) => Suite::Aes128Gcm,
                (TestName::AesGcm, 256) => Suite::Aes256Gcm,
                (TestName::ChaCha20Poly1305, 256) => Suite::ChaCha20Poly1305,
                _ => continue,
            };
            if group.nonce_size != 96 || group.tag_size != 128 {
                continue;
            }
            for test in group.tests {
                let key = P::aead(suite, &test.key);
                let nonce = test.nonce.as_slice().try_into().unwrap();
                let expected = [test.ct.as_slice(), test.tag.as_slice()].concat();
                let mut plain = vec![0xee; test.ct.len()];
                let opened = key.open(&nonce, &test.aad, &expected, &mut plain);
                let is_valid = test.result != TestResult::Invalid;
                assert_eq!(opened.is_ok(), is_valid, "{suite:?} {}", test.tc_id);
                if is_valid {
                    assert_eq!(plain, test.pt.as_slice());
                    let mut sealed = vec![0; expected.len()];
                    key.seal(&nonce, &test.aad, &test.pt, &mut sealed);
                    assert_eq!(sealed, expected, "{suite:?} {}", test.tc_id);
                } else {
                    assert!(plain.iter().all(|byte| *byte == 0));
                }
                count += 1;
            }
        }
    }
    assert!(count > 300, "{count} vectors");
}

fn wycheproof_x25519<P: Provider>() {
    use wycheproof::xdh::{TestFlag, TestName, TestSet};
    let mut count = 0;
    for group in TestSet::load(TestName::X25519)
        .expect("the set is there")
        .test_groups
    {
        for test in group.tests {
            let private = Secret::new(test.private_key.as_slice().try_into().unwrap());
            let public = test.public_key.as_slice().try_into().unwrap();
            let shared = x25519::<P>(&private, &public);
            let is_zero = test.shared_secret.iter().all(|byte| *byte == 0);
            let expected = (!is_zero).then(|| test.shared_secret.to_vec());
            assert_eq!(
                shared.ok().map(|shared| shared.expose().to_vec()),
                expected,
                "{}",
                test.tc_id
            );
            assert_eq!(is_zero, test.flags.contains(&TestFlag::ZeroSharedSecret));
            count += 1;
        }
    }
    assert!(count > 500, "{count} vectors");
}

fn wycheproof_hmac<P: Provider>() {
    use wycheproof::TestResult;
    use wycheproof::mac::{TestName, TestSet};
    let mut count = 0;
    for group in TestSet::load(TestName::HmacSha256)
        .expect("the set is there")
        .test_groups
    {
        for test in group.tests {
            let tag = P::hmac_sha256(&test.key, &[&test.msg]);
            let is_equal = tag[..test.tag.len()] == *test.tag;
            assert_eq!(
                is_equal,
                test.result != TestResult::Invalid,
                "{}",
                test.tc_id
            );
            count += 1;
        }
    }
    assert!(count > 100, "{count} vectors");
}

fn rfc7748<P: Provider>() {
    let check = |scalar: &str, point: &str, output: &str| {
        let scalar = Secret::new(hex(scalar).try_into().unwrap());
        let shared = x25519::<P>(&scalar, &hex(point).try_into().unwrap()).unwrap();
        assert_eq!(shared.expose().as_slice(), hex(output));
    };
    check(
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    );
    check(
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
    );
}

fn rfc8439<P: Provider>() {
    let key = P::aead(
        Suite::ChaCha20Poly1305,
        &hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"),
    );
    let nonce = hex("070000004041424344454647").try_into().unwrap();
    let aad = hex("50515253c0c1c2c3c4c5c6c7");
    let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
    let expected = hex(concat!(
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b",
        "1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc",
        "3ff4def08e4b7a9de576d26586cec64b6116",
        "1ae10b594f09e26a7e902ecbd0600691"
    ));
    let mut sealed = vec![0; plain.len() + 16];
    key.seal(&nonce, &aad, plain, &mut sealed);
    assert_eq!(sealed, expected);
}
