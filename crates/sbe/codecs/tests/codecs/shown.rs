// SPDX-License-Identifier: Apache-2.0
//! `Display` and `Debug` of messages.

use taran_sbe_codecs::garage_v0::{Message, album, car};

use crate::garage;

#[test]
fn display_shows_whole_message_on_one_line() {
    let mut buffer = [0; 64];
    let mut album = album::AlbumEncoder::encode(&mut buffer).unwrap();
    album.number(3);
    let mut pages = album.pages().unwrap();
    pages.entry().unwrap().width(100);
    pages.entry().unwrap().width(200);
    pages.done().finish();
    let album = album::AlbumDecoder::decode(&buffer).unwrap();
    let expected = "Album { number: 3, pages: [pages { width: 100 }, pages { width: 200 }] }";
    assert_eq!(album.to_string(), expected);
    let (_, behind) = album.pages().unwrap();
    assert_eq!(behind.to_string(), expected, "wherever it stands");
    assert_eq!(Message::decode(&buffer).unwrap().to_string(), expected);
}

#[test]
fn debug_shows_all_elements() {
    let bytes = garage::bytes(garage::v0);
    let shown = car::CarDecoder::decode(&bytes).unwrap().to_string();
    for part in [
        "serial: 72623859790382856",
        "available: Yes",
        "plate: \"B TR 1\"",
        "extras: {sunRoof, cruiseControl}",
        "odd: None",
        "debt: Some(-250)",
        "motto: \"As good as new\"",
        "Booster: Booster { Kind: Nitrous, power: 210, Flags: {hot} }",
        "drivers: [drivers { age: 18, licence: \"A1\" }, drivers { age: 81, licence: \"\" }]",
        "maker: \"Würth\", notes: [0, 1, 2, 255] }",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn debug_of_truncated_message_shows_valid_part() {
    let bytes = garage::bytes(garage::v0);
    let shown = car::CarDecoder::decode(&bytes[..bytes.len() - 1])
        .unwrap()
        .to_string();
    let end = "notes: Short { what: \"notes\", needed: 4, actual: 3 }, .. }";
    assert!(shown.ends_with(end), "{shown}");
}
