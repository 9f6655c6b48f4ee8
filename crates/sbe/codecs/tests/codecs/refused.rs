// SPDX-License-Identifier: Apache-2.0
//! Errors of decoders for invalid messages, and of encoders for values that do not fit.

use taran_sbe::runtime::{DecodeError, EncodeError, MAX_EMPTY_ENTRIES};
use taran_sbe_codecs::garage_v2::album::{AlbumDecoder, AlbumEncoder};
use taran_sbe_codecs::garage_v2::car::{CarDecoder, CarEncoder};
use taran_sbe_codecs::garage_v2::{Message, ping};
use taran_sbe_codecs::ticks_v5::quote::{QuoteDecoder, QuoteEncoder};
use taran_sbe_codecs::vast::few::{FewDecoder, FewEncoder};
use taran_sbe_codecs::vast::vast::{VastDecoder, VastEncoder};

use crate::garage;

/// Reads all elements of a car.
fn read(bytes: &[u8]) -> Result<(), DecodeError> {
    let (_, car) = CarDecoder::decode(bytes)?.repairs()?;
    let (owners, car) = car.owners()?;
    for owner in owners {
        let (_, owner) = owner.drivers()?;
        let (_, owner) = owner.fines()?;
        owner.name()?;
    }
    let (_, car) = car.maker()?;
    let (_, car) = car.notes()?;
    car.slogan().map(drop)
}

#[test]
fn decode_truncated_message_returns_short() {
    let bytes = garage::bytes(garage::v2);
    read(&bytes).unwrap();
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Err(DecodeError::Short { needed, actual, .. }) => assert!(needed > actual as u64),
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

#[test]
fn encode_into_small_buffer_returns_short() {
    let length = garage::bytes(garage::v2).len();
    for length in 0..length {
        match garage::v2(&mut vec![0; length]) {
            Err(EncodeError::Short { needed, actual, .. }) => assert!(needed > actual),
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

#[test]
fn decode_other_template_or_schema_returns_error() {
    let bytes = garage::bytes(garage::v2);
    let error = ping::PingDecoder::decode(&bytes).unwrap_err();
    assert_eq!(
        error,
        DecodeError::WrongTemplate {
            expected: 2,
            actual: 1
        }
    );
    assert_eq!(error.to_string(), "template id 1, expected 2");
    let mut other = bytes.clone();
    other[4] = 8;
    let wrong = DecodeError::WrongSchema {
        expected: 7,
        actual: 8,
    };
    assert_eq!(CarDecoder::decode(&other).unwrap_err(), wrong);
    assert_eq!(Message::decode(&other).unwrap_err(), wrong);
    let mut other = bytes;
    other[2] = 77;
    let unknown = DecodeError::UnknownTemplate { actual: 77 };
    assert_eq!(Message::decode(&other).unwrap_err(), unknown);
}

#[test]
fn decode_block_shorter_than_first_version_returns_error() {
    let mut bytes = garage::bytes(garage::v2);
    bytes[0] = 96;
    let error = CarDecoder::decode(&bytes).unwrap_err();
    let expected = DecodeError::BlockTooShort {
        what: "Car",
        needed: 97,
        actual: 96,
    };
    assert_eq!(error, expected);
}

#[test]
fn group_above_maximum_count_returns_error() {
    let mut buffer = [0; 64];
    let album = AlbumEncoder::encode(&mut buffer).unwrap();
    let mut photos = album.pages().unwrap().done().photos().unwrap();
    for width in 0..4 {
        photos.entry().unwrap().width(width);
    }
    let error = photos.entry().map(drop).unwrap_err();
    let full = EncodeError::TooManyEntries {
        what: "photos",
        max: 4,
    };
    assert_eq!(error, full);
    let length = photos.done().finish();
    // The dimensions of `photos` precede its eight bytes.
    buffer[length - 9] = 5;
    let (_, album) = AlbumDecoder::decode(&buffer).unwrap().pages().unwrap();
    let error = album.photos().unwrap_err();
    let many = DecodeError::BadCount {
        what: "photos",
        min: 0,
        max: 4,
        actual: 5,
    };
    assert_eq!(error, many);
}

#[test]
fn group_below_minimum_count_returns_error() {
    let mut buffer = [0; 256];
    let legs = FewEncoder::encode(&mut buffer).unwrap().legs().unwrap();
    let few = EncodeError::TooFewEntries {
        what: "legs",
        min: 1,
        actual: 0,
    };
    assert_eq!(legs.done().unwrap_err(), few);
    // After the header and the block length of `legs`.
    for count in [0_i16, -1, 4] {
        buffer[34..36].copy_from_slice(&count.to_be_bytes());
        match FewDecoder::decode(&buffer).unwrap().legs().unwrap_err() {
            DecodeError::BadCount { min: 1, max: 3, .. } => {}
            other => panic!("{count}: {other:?}"),
        }
    }
}

#[test]
fn encode_text_or_data_longer_than_field_returns_error() {
    let mut buffer = [0; 1024];
    let mut car = CarEncoder::encode(&mut buffer).unwrap();
    let long = EncodeError::TooLong {
        what: "plate",
        max: 8,
        actual: 9,
    };
    assert_eq!(car.plate("123456789").unwrap_err(), long);
    car.plate("12345678").unwrap();
    let owners = car.repairs().unwrap().done().owners().unwrap();
    let drivers = owners.entry().unwrap().drivers().unwrap();
    let long = EncodeError::TooLong {
        what: "licence",
        max: 200,
        actual: 201,
    };
    let driver = drivers.entry().unwrap();
    assert_eq!(driver.licence([b'x'; 201]).unwrap_err(), long);
    let car = CarDecoder::decode(&buffer).unwrap();
    assert_eq!(car.plate(), "12345678");
}

#[test]
fn decode_data_longer_than_allowed_returns_error() {
    let mut buffer = vec![0; 256];
    let quote = QuoteEncoder::encode(&mut buffer).unwrap();
    let mut legs = quote.levels().unwrap().done().legs().unwrap();
    legs.entry().unwrap();
    let length = legs.done().unwrap().raw([]).unwrap().finish();
    buffer[length - 4..length].copy_from_slice(&65_537_u32.to_be_bytes());
    let (_, quote) = QuoteDecoder::decode(&buffer).unwrap().levels().unwrap();
    let (_, quote) = quote.legs().unwrap();
    let long = DecodeError::TooLong {
        what: "raw",
        max: 65_536,
        actual: 65_537,
    };
    assert_eq!(quote.raw().unwrap_err(), long);
}

/// Encodes a message of `Vast` with these lengths: its block length, and the block length and count of each group.
fn vast(lengths: [u64; 7]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [lengths[0], 4_000_000_000, 1, 0] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    for length in &lengths[1..] {
        bytes.extend_from_slice(&length.to_be_bytes());
    }
    bytes
}

#[test]
fn decode_huge_lengths_returns_error() {
    let most = u64::MAX - 1;
    let read = |bytes: &[u8]| {
        let (_, vast) = VastDecoder::decode(bytes)?.empty()?;
        let (_, vast) = vast.flat()?;
        let (_, vast) = vast.deep()?;
        vast.raw().map(drop)
    };
    let mut whole = vast([0, 0, 1_024, 1, 0, 0, 0]);
    whole.extend_from_slice(&0_u64.to_be_bytes());
    read(&whole).unwrap();
    for (lengths, what) in [
        ([most, 0, 0, 0, 0, 0, 0], "Vast"),
        ([0, 0, most, 0, 0, 0, 0], "empty"),
        ([0, 0, 1_025, 0, 0, 0, 0], "empty"),
        ([0, 1, most, 0, 0, 0, 0], "empty"),
        ([0, most, most, 0, 0, 0, 0], "empty"),
        ([0, 0, 0, 1, most, 0, 0], "flat"),
        ([0, 0, 0, most, most, 0, 0], "flat"),
        ([0, 0, 0, 0, 1, 0, 0], "flat"),
        ([0, 0, 0, 1, 0, 0, most], "inner"),
        ([0, 0, 0, 1, 0, most, most], "deep"),
        ([0, 0, 0, 1, 0, 0, 1], "inner"),
    ] {
        let error = read(&vast(lengths)).unwrap_err();
        let at = match error {
            DecodeError::Short { what, .. }
            | DecodeError::BlockTooShort { what, .. }
            | DecodeError::BadCount { what, .. } => what,
            other => panic!("{lengths:?}: {other:?}"),
        };
        assert_eq!(at, what, "{lengths:?}: {error}");
    }
}

#[test]
fn group_with_too_many_empty_entries_returns_error() {
    let mut buffer = [0; 256];
    let mut empty = VastEncoder::encode(&mut buffer).unwrap().empty().unwrap();
    for _ in 0..MAX_EMPTY_ENTRIES {
        empty.entry().unwrap();
    }
    let full = EncodeError::TooManyEntries {
        what: "empty",
        max: MAX_EMPTY_ENTRIES,
    };
    assert_eq!(empty.entry().map(drop).unwrap_err(), full);
    let mut deep = empty.done().flat().unwrap().done().deep().unwrap();
    // Entries without fields but with data are bounded by the available bytes.
    deep = deep.entry().unwrap().inner([]).unwrap().done();
    let length = deep.done().raw([]).unwrap().finish();
    let (empty, vast) = VastDecoder::decode(&buffer[..length])
        .unwrap()
        .empty()
        .unwrap();
    assert_eq!(empty.count() as u64, MAX_EMPTY_ENTRIES);
    let (_, vast) = vast.flat().unwrap();
    assert_eq!(vast.deep().unwrap().0.count(), 1);
}

#[test]
fn entries_with_data_are_bounded_by_available_bytes() {
    let count = 4 * MAX_EMPTY_ENTRIES;
    let mut whole = vast([0, 0, 0, 1, 0, 0, count]);
    whole.extend_from_slice(&vec![0; 8 * count as usize]);
    let (_, vast) = VastDecoder::decode(&whole).unwrap().empty().unwrap();
    let (_, vast) = vast.flat().unwrap();
    assert_eq!(vast.deep().unwrap().0.count() as u64, count);
}
