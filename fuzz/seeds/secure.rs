// SPDX-License-Identifier: Apache-2.0
//! Transport security: frames, items, key files, stories of two keepers.

use taran_secure::Secret;
use taran_secure::derive::{Fingerprint, KeyId};
use taran_secure::frame::{
    Announce, Code, GRANT_CURRENT, Grant, Hello, IntoBytes, Item, ItemWriter, RequestedKey,
};
use taran_secure::identity::{Identity, psk_text, public_key_text};
use taran_secure::provider::DefaultProvider;

use crate::Seed;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = frames();
    seeds.extend(texts());
    seeds.extend(stories());
    seeds
}

fn frames() -> Vec<Seed> {
    let hint = Announce::hint(Announce::ANSWER, Fingerprint([1; 16]), 2, 3, 4);
    let hello = Hello::new(KeyId([1; 8]), [2; 16], 3, 4);
    let raw = |kind: u8, length: usize| {
        let mut bytes = vec![0x5a; length];
        bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
        bytes[4..8].copy_from_slice(&[0, 0, kind, 0x54]);
        bytes
    };
    let mut pairs = raw(0x57, 40);
    pairs.extend(raw(0x57, 56));
    let items = [
        Item::Request {
            request: 1,
            key: RequestedKey::Id(KeyId([4; 8])),
        },
        Item::Grant(Grant {
            request: 1,
            session_id: 2,
            stream_id: 3,
            epoch: 4,
            suite: 1,
            flags: GRANT_CURRENT,
            first_counter: 5,
            life_seconds: 6,
            identity: Fingerprint([7; 16]),
            secret: Secret::new([8; 32]),
        }),
        Item::Refused {
            request: 9,
            code: Code::NOT_ALLOWED,
            text: b"no",
        },
        Item::BackKey {
            epoch: 1,
            suite: 2,
            secret: Secret::new([3; 32]),
        },
        Item::Got(KeyId([1; 8])),
        Item::Renew,
        Item::Bye(Code::CLOSED),
    ];
    let mut writer = ItemWriter::new();
    for item in &items {
        writer.push(item);
    }
    [
        ("announce", hint.as_bytes().to_vec()),
        ("hello", hello.as_bytes().to_vec()),
        ("sealed", raw(0x50, 72)),
        ("back", raw(0x51, 76)),
        ("init", raw(0x54, 192)),
        ("resp", raw(0x55, 112)),
        ("cookie", raw(0x56, 56)),
        ("pairs", pairs),
        ("items", writer.bytes().to_vec()),
    ]
    .into_iter()
    .map(|(name, bytes)| Seed::new("secure_frames", name, bytes))
    .collect()
}

fn texts() -> Vec<Seed> {
    let identity = Identity::from_private::<DefaultProvider>(Secret::new([1; 32]));
    let key = public_key_text::<DefaultProvider>(identity.public());
    let psk = psk_text::<DefaultProvider>(&Secret::new([2; 32]));
    let private = identity.to_text::<DefaultProvider>();
    let trust = format!(
        "# peers\n{key} alpha publish=10.0.0.0/8:40456#1-5,[2001:db8::/32] subscribe=*,host.example psk=alpha.psk # note\n"
    );
    [
        ("private", private.as_str()),
        ("public", &key),
        ("psk", &psk),
        ("trust", &trust),
        ("patterns", "*,10.1.0.0/16:40-50#-5--3,[::1]:*#*,name"),
    ]
    .into_iter()
    .map(|(name, text)| Seed::new("secure_texts", name, text))
    .collect()
}

/// The steps of `secure_keeper`, one byte each and its arguments.
fn stories() -> Vec<Seed> {
    [
        ("connect", vec![0, 2]),
        ("rotate", vec![0, 2, 5, 2, 7, 1, 200, 2, 5, 1, 20, 2]),
        (
            "lose",
            vec![0, 4, 0, 0, 0, 2, 1, 20, 2, 5, 4, 1, 0, 0, 1, 20, 2],
        ),
        ("change", vec![0, 4, 0, 1, 9, 2, 5, 4, 1, 1, 30, 2]),
        ("repeat", vec![0, 4, 0, 2, 0, 2, 5, 4, 1, 2, 0, 2]),
    ]
    .into_iter()
    .map(|(name, bytes)| Seed::new("secure_keeper", name, bytes))
    .collect()
}
