// SPDX-License-Identifier: Apache-2.0
//! Interoperability with codecs that the official tool generates from the same schemas.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../codecs/book.rs"]
mod book;
#[path = "../codecs/garage.rs"]
mod garage;
mod lenient;
#[path = "../codecs/music.rs"]
mod music;
mod official;
#[path = "../codecs/quote.rs"]
mod quote;
#[path = "../codecs/weather.rs"]
mod weather_messages;

mod ticks;
mod weather;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use official::class_path;
use taran_sbe::runtime::{EncodeError, Text};
use taran_sbe_codecs::{garage_v0, garage_v1, garage_v2, music_v0, music_v1};

/// Messages to exchange, one per schema version.
const CARS: [&str; 3] = ["garage_v0", "garage_v1", "garage_v2"];
const ALBUMS: [&str; 3] = ["album_v0", "album_v1", "album_v2"];
const DISCS: [&str; 2] = ["music_v0", "music_v1"];

/// Returns a file name unique to an exchange, because concurrent tests use the same message names.
fn file(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{number}-{name}.bin"))
}

/// Encodes an album of two pages, with three photos if the schema has them.
fn album(name: &str) -> Vec<u8> {
    macro_rules! album {
        ($version:ident, |$album:ident| $last:expr) => {
            |buffer: &mut [u8]| -> Result<usize, EncodeError> {
                let mut album = $version::album::AlbumEncoder::encode(buffer)?;
                album.number(3);
                let mut pages = album.pages()?;
                for width in [100, 200] {
                    pages.entry()?.width(width);
                }
                let $album = pages.done();
                Ok($last.finish())
            }
        };
    }
    garage::bytes(match name {
        "album_v0" => album!(garage_v0, |album| album),
        "album_v1" => album!(garage_v1, |album| album),
        _ => album!(garage_v2, |album| {
            let mut photos = album.photos()?;
            for width in 7..10 {
                photos.entry()?.width(width);
            }
            photos.done()
        }),
    })
}

/// Encodes a message with our codecs.
fn ours(name: &str) -> Vec<u8> {
    match name {
        "garage_v0" => garage::bytes(garage::v0),
        "garage_v1" => garage::bytes(garage::v1),
        "garage_v2" => garage::bytes(garage::v2),
        "music_v0" => garage::bytes(music::v0),
        "music_v1" => garage::bytes(music::v1),
        "quote_v5" => garage::bytes(quote::v5),
        "quote_v6" => garage::bytes(quote::v6),
        "book_v5" => garage::bytes(book::v5),
        "book_v6" => garage::bytes(book::v6),
        "weather_v0" => garage::bytes(weather_messages::v0),
        "weather_v1" => garage::bytes(weather_messages::v1),
        "calm_v0" => garage::bytes(weather_messages::calm_v0),
        "calm_v1" => garage::bytes(weather_messages::calm_v1),
        album => self::album(album),
    }
}

/// Encodes a message with the official codecs.
fn theirs(class_path: &str, name: &str) -> Vec<u8> {
    let file = file(&format!("theirs-{name}"));
    official::codecs(class_path, "write", name, &file);
    let written = fs::read(&file).unwrap();
    fs::remove_file(file).unwrap();
    written
}

/// Returns what the official decoder of `reader` reads from a message of our encoder of `writer`.
fn read_by_theirs(class_path: &str, reader: &str, writer: &str) -> String {
    let file = file(&format!("ours-{writer}-for-{reader}"));
    fs::write(&file, ours(writer)).unwrap();
    let read = official::codecs(class_path, "read", reader, &file);
    fs::remove_file(file).unwrap();
    read
}

#[test]
fn encoders_produce_identical_bytes() {
    let Some(class_path) = class_path() else {
        return;
    };
    let others = [ticks::QUOTES, ticks::BOOKS, weather::REPORTS];
    let others = others.as_flattened();
    for name in CARS.iter().chain(&ALBUMS).chain(&DISCS).chain(others) {
        assert_eq!(ours(name), theirs(class_path, name), "{name}");
    }
}

#[test]
fn official_decoders_read_our_messages_across_versions() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in CARS {
        for reader in CARS {
            let read = read_by_theirs(class_path, reader, writer);
            let mut expected = vec![
                "serial=72623859790382856|",
                "worth=(mantissa=123456|)",
                "(day=30|cost=(mantissa=3000|)",
                "(since=2010|drivers=[(age=18|licence='A1'),(age=81|licence='')]|fines=[(amount=-40",
                "maker='Würth'|notes=4 bytes of raw data",
            ];
            expected.extend(match (reader, writer) {
                ("garage_v0", _) => &[][..],
                (_, "garage_v0") => &["doors=255|colour=-2147483648|", "slogan=''"],
                (_, "garage_v1") => &[
                    "doors=5|colour=16711680|",
                    "guarantee=Yes",
                    "slogan='Vorsprung'",
                ],
                _ => &[
                    "doors=3|colour=-2147483648|",
                    "guarantee=No",
                    "slogan='Läuft'",
                ],
            });
            if (reader, writer) == ("garage_v2", "garage_v2") {
                expected.push("nickname=Bug|second=Electric|seats=[1,2,3]");
            }
            for part in expected {
                assert!(
                    read.contains(part),
                    "{reader} reads {writer}: {part} in {read}"
                );
            }
        }
    }
}

#[test]
fn our_decoders_read_official_messages_across_versions() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in CARS {
        let bytes = theirs(class_path, writer);
        let read = [
            garage_v0::Message::decode(&bytes).unwrap().to_string(),
            garage_v1::Message::decode(&bytes).unwrap().to_string(),
            garage_v2::Message::decode(&bytes).unwrap().to_string(),
        ];
        for (reader, read) in read.iter().enumerate() {
            let mut expected = vec![
                "serial: 72623859790382856, modelYear: 1998, available: Yes, fuel: Diesel",
                "worth: Money { mantissa: Some(123456), exponent: -2 }",
                "repairs { day: 30, cost: Money { mantissa: Some(3000), exponent: -2 }",
                "owners { since: 2010, drivers: [drivers { age: 18, licence: \"A1\" }",
                "maker: \"Würth\", notes: [0, 1, 2, 255]",
            ];
            expected.extend(match (reader, writer) {
                (0, _) => &[][..],
                (_, "garage_v0") => &["doors: None, colour: None, backup: None", "slogan: None"],
                (_, "garage_v1") => &["doors: Some(5), colour: Some(16711680)", "\"Vorsprung\""],
                _ => &["doors: Some(3), colour: None", "slogan: Some(\"Läuft\")"],
            });
            if (reader, writer) == (2, "garage_v1") {
                expected.push("nickname: None, second: None, seats: None");
            }
            for part in expected {
                assert!(
                    read.contains(part),
                    "{reader} reads {writer}: {part} in {read}"
                );
            }
        }
    }
}

#[test]
fn added_group_is_empty_for_newer_and_skipped_by_older_decoder() {
    let Some(class_path) = class_path() else {
        return;
    };
    for (writer, name) in ALBUMS.into_iter().enumerate() {
        for (reader, by) in ALBUMS.into_iter().enumerate() {
            let read = read_by_theirs(class_path, by, name);
            assert!(
                read.contains("number=3|pages=[(width=100),(width=200)]"),
                "{read}"
            );
            let photos = match (reader, writer) {
                (2, 2) => "|photos=[(width=7),(width=8),(width=9)]",
                (2, _) => "|photos=[]",
                _ => "pages=[(width=100),(width=200)]",
            };
            assert!(
                read.trim_end().ends_with(photos),
                "{by} reads {name}: {read}"
            );
        }
        let bytes = theirs(class_path, name);
        let read = [
            garage_v0::Message::decode(&bytes).unwrap().to_string(),
            garage_v1::Message::decode(&bytes).unwrap().to_string(),
            garage_v2::Message::decode(&bytes).unwrap().to_string(),
        ];
        let old = "Album { number: 3, pages: [pages { width: 100 }, pages { width: 200 }]";
        let photos = match writer {
            2 => "[photos { width: 7 }, photos { width: 8 }, photos { width: 9 }]",
            _ => "[]",
        };
        let new = format!("{old}, photos: {photos} }}");
        let old = format!("{old} }}");
        assert_eq!(read, [old.clone(), old, new], "{name}");
    }
}

#[test]
fn custom_members_latin1_text_and_value_ref_constants_interoperate() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in DISCS {
        for reader in DISCS {
            let read = read_by_theirs(class_path, reader, writer);
            // Constants: `valueRef` on a field and on its type.
            let head = "label=77,255|firsts=3,255|kind=Folk|style=3|artist=Björk|";
            assert!(read.starts_with(head), "{reader} reads {writer}: {read}");
            let common =
                "|tracks=[(seconds=245),(seconds=254)]|sides=[(print='Côté A'),(print='')]";
            assert!(read.contains(common), "{reader} reads {writer}: {read}");
            let end = match (reader, writer) {
                ("music_v0", _) => "(print='')]",
                (_, "music_v0") => "|bonus=[]|note=''",
                _ => "|bonus=[(seconds=12)]|note='übrig'",
            };
            assert!(
                read.trim_end().ends_with(end),
                "{reader} reads {writer}: {read}"
            );
        }
        let bytes = theirs(class_path, writer);
        let label = music_v0::whole_header(&bytes).unwrap();
        assert_eq!((label.sender(), label.hops()), (77, None));
        let disc = music_v0::disc::DiscDecoder::decode(&bytes).unwrap();
        assert_eq!(disc.artist().as_bytes(), music::ARTIST);
        assert_eq!(
            (disc.kind(), disc.style()),
            (music_v0::types::Genre::Folk, 3)
        );
        let (tracks, disc) = disc.tracks().unwrap();
        assert_eq!(tracks.dimensions().first(), Some(3));
        assert_eq!(
            tracks.map(|track| track.seconds()).collect::<Vec<_>>(),
            [245, 254]
        );
        let (sides, _) = disc.sides().unwrap();
        assert_eq!(sides.dimensions().first(), None);
        let prints: Vec<_> = sides
            .map(|side| side.print().unwrap().0.as_bytes())
            .collect();
        assert_eq!(prints, [music::SIDE, b""]);

        let disc = music_v1::disc::DiscDecoder::decode(&bytes).unwrap();
        let (_, disc) = disc.tracks().unwrap();
        let (_, disc) = disc.sides().unwrap();
        let (bonus, disc) = disc.bonus().unwrap();
        let first = bonus.dimensions().map(|listing| listing.first());
        let (note, _) = disc.note().unwrap();
        let seconds: Vec<_> = bonus.map(|track| track.seconds()).collect();
        let expected = match writer {
            "music_v0" => (None, vec![], None),
            _ => (Some(Some(9)), vec![12], Some(music::NOTE)),
        };
        assert_eq!((first, seconds, note.map(Text::as_bytes)), expected);
    }
}
