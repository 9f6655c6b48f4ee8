// SPDX-License-Identifier: Apache-2.0
//! Decoders of each version read messages of every other version.

use taran_sbe::runtime::DecodeError;
use taran_sbe_codecs::garage_v0::{self, album, ping};
use taran_sbe_codecs::ticks_v6::book::BookDecoder;
use taran_sbe_codecs::ticks_v6::types::Marks;
use taran_sbe_codecs::{garage_v1, garage_v2, ticks_v5, ticks_v6};

use crate::{book, garage, quote};

/// Checks the elements common to all versions.
macro_rules! reads_common {
    ($version:ident, $bytes:expr) => {{
        let car = $version::car::CarDecoder::decode($bytes).unwrap();
        assert_eq!(car.serial(), 0x0102_0304_0506_0708);
        assert_eq!(car.engine().worth().mantissa(), Some(123_456));
        let (repairs, car) = car.repairs().unwrap();
        let days: Vec<_> = repairs.map(|repair| repair.day()).collect();
        assert_eq!(days, [10, 20, 30]);
        let (owners, car) = car.owners().unwrap();
        let names: Vec<_> = owners
            .map(|owner| {
                let (drivers, owner) = owner.drivers().unwrap();
                assert_eq!(drivers.len(), 2);
                let (fines, owner) = owner.fines().unwrap();
                let amounts: Vec<_> = fines.map(|fine| fine.amount()).collect();
                (
                    owner.since(),
                    amounts,
                    owner.name().unwrap().0.to_str().unwrap(),
                )
            })
            .collect();
        let expected = [
            (1999, vec![], "Ada"),
            (2010, vec![-40], "Grace"),
            (2020, vec![], ""),
        ];
        assert_eq!(names, expected);
        let (maker, car) = car.maker().unwrap();
        assert_eq!(maker, "Würth");
        let (notes, car) = car.notes().unwrap();
        assert_eq!(notes, [0, 1, 2, 255]);
        car
    }};
}

#[test]
fn decoders_of_all_versions_read_messages_of_all_versions() {
    for write in [garage::v0, garage::v1, garage::v2] {
        let bytes = garage::bytes(write);
        reads_common!(garage_v0, &bytes);
        reads_common!(garage_v1, &bytes);
        reads_common!(garage_v2, &bytes);
    }
}

#[test]
fn older_message_newer_fields_are_absent() {
    let bytes = garage::bytes(garage::v0);
    let car = reads_common!(garage_v2, &bytes);
    assert_eq!(car.acting_version(), 0);
    assert_eq!(car.doors(), None);
    assert_eq!(car.colour(), None);
    assert!(car.backup().is_none());
    assert_eq!(car.nickname(), None);
    assert_eq!(car.second(), None);
    assert_eq!(car.seats(), None);
    assert_eq!(car.slogan().unwrap().0, None);

    let bytes = garage::bytes(garage::v1);
    let car = reads_common!(garage_v2, &bytes);
    assert_eq!(car.doors(), Some(5));
    assert_eq!(car.colour(), Some(0xFF_00_00));
    assert_eq!(car.backup().unwrap().capacity(), 50);
    assert_eq!(car.nickname(), None);
    assert_eq!(car.slogan().unwrap().0.unwrap(), "Vorsprung");
}

#[test]
fn older_message_newer_entry_fields_are_absent() {
    let bytes = garage::bytes(garage::v0);
    let car = garage_v2::car::CarDecoder::decode(&bytes).unwrap();
    let (repairs, _) = car.repairs().unwrap();
    assert!(
        repairs
            .map(|repair| repair.guarantee())
            .all(|guarantee| guarantee.is_none())
    );
}

#[test]
fn newer_message_added_elements_are_skipped() {
    let mut buffer = [0; 64];
    let mut ping = garage_v2::ping::PingEncoder::encode(&mut buffer).unwrap();
    ping.nonce(5).hops(9);
    let length = ping.finish();
    assert_eq!(length, 8 + 9);
    let ping = ping::PingDecoder::decode(&buffer[..length]).unwrap();
    assert_eq!(ping.nonce(), 5);
    assert_eq!(ping.acting_version(), 2);

    let mut album = garage_v2::album::AlbumEncoder::encode(&mut buffer).unwrap();
    album.number(3);
    let mut pages = album.pages().unwrap();
    pages.entry().unwrap().width(100);
    let mut photos = pages.done().photos().unwrap();
    photos.entry().unwrap().width(7);
    let length = photos.done().finish();
    let album = album::AlbumDecoder::decode(&buffer[..length]).unwrap();
    let (pages, _) = album.pages().unwrap();
    assert_eq!(pages.map(|page| page.width()).collect::<Vec<_>>(), [100]);
}

#[test]
fn older_message_newer_groups_are_empty() {
    let mut buffer = [0; 64];
    let album = garage_v0::album::AlbumEncoder::encode(&mut buffer).unwrap();
    let length = album.pages().unwrap().done().finish();
    let album = garage_v2::album::AlbumDecoder::decode(&buffer[..length]).unwrap();
    let (_, album) = album.pages().unwrap();
    let (photos, _) = album.photos().unwrap();
    assert_eq!(photos.len(), 0);
}

#[test]
fn newer_message_added_enum_values_keep_raw_value() {
    let mut buffer = [0; 512];
    let mut car = garage_v1::car::CarEncoder::encode(&mut buffer).unwrap();
    car.fuel(garage_v1::types::Fuel::Electric);
    let car = garage_v0::car::CarDecoder::decode(&buffer).unwrap();
    assert_eq!(car.fuel(), garage_v0::types::Fuel::Unknown(b'E'));
    assert_eq!(car.fuel().raw(), b'E');
}

#[test]
fn added_field_in_longer_block_depends_on_version_only() {
    let mut bytes = garage::bytes(quote::v5);
    let block = ticks_v5::HEADER_LENGTH..ticks_v5::HEADER_LENGTH + 64;
    // Bytes of the field `venue` of version 6, which version 5 does not have; they must be ignored.
    bytes[block][46..48].copy_from_slice(&[1, 2]);
    let quote = ticks_v6::quote::QuoteDecoder::decode(&bytes).unwrap();
    assert_eq!(
        (quote.acting_version(), quote.time()),
        (5, 0x0102_0304_0506_0708)
    );
    assert_eq!((quote.venue(), quote.lots()), (None, None));

    let bytes = garage::bytes(quote::v6);
    let quote = ticks_v6::quote::QuoteDecoder::decode(&bytes).unwrap();
    assert_eq!(
        (quote.venue(), quote.lots()),
        (Some(0x0A0B), Some([0.5, 1e9]))
    );
    let quote = ticks_v5::quote::QuoteDecoder::decode(&bytes).unwrap();
    let (levels, quote) = quote.levels().unwrap();
    let tags: Vec<_> = levels.map(|level| level.tag().unwrap().0).collect();
    assert_eq!(tags, [b"a".as_slice(), b"bc"]);
    let (legs, quote) = quote.legs().unwrap();
    assert_eq!(legs.map(|leg| leg.ratio()).collect::<Vec<_>>(), [-3]);
    assert_eq!(quote.raw().unwrap().0, [9; 3]);
}

/// Returns the orders of a book of version 6 with the fee of their venue, the total of their side and their marks.
fn orders(bytes: &[u8]) -> Result<Vec<Vec<String>>, DecodeError> {
    let mut found = Vec::new();
    let book = BookDecoder::decode(bytes)?;
    let book = book.each_venues(|venue| {
        let fee = venue.fee();
        let (sides, venue) = venue.sides()?;
        for side in sides {
            let mut line = vec![format!("{fee:?} {:?}", side.total())];
            let (orders, side) = side.orders()?;
            for order in orders {
                let (owner, _) = order.owner()?;
                line.push(format!(
                    "{} {owner} {:?}",
                    order.number(),
                    order.marks().map(Marks::raw)
                ));
            }
            line.push(side.note()?.0.to_string());
            found.push(line);
        }
        Ok::<_, DecodeError>(venue.name()?.1)
    })?;
    assert_eq!(book.source()?.0, [1, 2]);
    Ok(found)
}

#[test]
fn nested_groups_decode_from_older_and_newer_versions() {
    let old = orders(&garage::bytes(book::v5)).unwrap();
    let expected: [&[&str]; 6] = [
        &["None None", "11 Ada None", "12  None", "bids"],
        &["None None", "13 Grace None", ""],
        &["None None", "empty"],
        &["None None", ""],
        &["None None", "14 Æ None", "asks"],
        &["None None", "15 b None", "16 c None", "17 d None", "more"],
    ];
    assert_eq!(old, expected);
    let new = orders(&garage::bytes(book::v6)).unwrap();
    let expected: [&[&str]; 6] = [
        &[
            "Some(0.25) Some(2)",
            "11 Ada Some(0)",
            "12  Some(2147483648)",
            "bids",
        ],
        &["Some(0.25) Some(1)", "13 Grace Some(0)", ""],
        &["None Some(0)", "empty"],
        &["None Some(0)", ""],
        &["None Some(1)", "14 Æ Some(2147483648)", "asks"],
        &[
            "None Some(3)",
            "15 b Some(0)",
            "16 c Some(2147483648)",
            "17 d Some(0)",
            "more",
        ],
    ];
    assert_eq!(new, expected);
}
