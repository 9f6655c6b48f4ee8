// SPDX-License-Identifier: Apache-2.0
//! Consecutive messages without framing.

use taran_sbe_codecs::garage_v0::{self as v0, Message};
use taran_sbe_codecs::garage_v2 as v2;

/// Encodes a ping of a newer version with a longer block, an album, a message without fields, and a ping.
fn written() -> Vec<u8> {
    let mut buffer = [0xAA; 256];
    let mut ping = v2::ping::PingEncoder::encode(&mut buffer).unwrap();
    ping.nonce(1).hops(9);
    let mut length = ping.finish();

    let mut album = v0::album::AlbumEncoder::encode(&mut buffer[length..]).unwrap();
    album.number(2);
    let mut pages = album.pages().unwrap();
    pages.entry().unwrap().width(100);
    length += pages.done().finish();

    let empty = v0::empty::EmptyEncoder::encode(&mut buffer[length..]).unwrap();
    length += empty.finish();

    let mut ping = v0::ping::PingEncoder::encode(&mut buffer[length..]).unwrap();
    ping.nonce(3);
    length += ping.finish();
    buffer[..length].to_vec()
}

#[test]
fn rest_returns_bytes_after_message() {
    let bytes = written();
    let (mut rest, mut values) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let block_length = v0::header(rest).unwrap().0.block_length;
        let (name, number, behind) = match Message::decode(rest).unwrap() {
            Message::Ping(ping) => ("ping", ping.nonce(), ping.rest()),
            Message::Album(album) => {
                let (pages, done) = album.pages().unwrap();
                assert_eq!(pages.map(|page| page.width()).collect::<Vec<_>>(), [100]);
                ("album", u64::from(album.number()), done.rest())
            }
            Message::Empty(empty) => ("empty", 0, empty.rest()),
            other => panic!("{other:?}"),
        };
        values.push((name, number, block_length));
        rest = behind;
    }
    let expected = [
        ("ping", 1, 9),
        ("album", 2, 1),
        ("empty", 0, 0),
        ("ping", 3, 8),
    ];
    assert_eq!(values, expected);
}
