// SPDX-License-Identifier: Apache-2.0
//! Buffers that are filled until nothing more fits still hold a valid message.

use taran_sbe::runtime::{DecodeError, EncodeError};
use taran_sbe_codecs::ticks_v5::quote::{QuoteDecoder, QuoteEncoder};

/// Reads a quote: the tags of its levels, the ratios of its legs, and the length of its data.
fn read(bytes: &[u8]) -> Result<(Vec<String>, Vec<i16>, usize), DecodeError> {
    let (levels, quote) = QuoteDecoder::decode(bytes)?.levels()?;
    let tags = levels.map(|level| level.tag().map(|(tag, _)| format!("{tag:?}")));
    let tags = tags.collect::<Result<_, _>>()?;
    let (legs, quote) = quote.legs()?;
    let ratios = legs.map(|leg| leg.ratio()).collect();
    let (raw, _) = quote.raw()?;
    Ok((tags, ratios, raw.len()))
}

/// Returns the length of a quote with this many legs and no other content of variable length.
fn length(legs: i16) -> usize {
    let mut buffer = [0; 256];
    let quote = QuoteEncoder::encode(&mut buffer).unwrap();
    let mut group = quote.levels().unwrap().done().legs().unwrap();
    for ratio in 0..legs {
        group.entry().unwrap().ratio(ratio);
    }
    group.done().unwrap().raw([]).unwrap().finish()
}

#[test]
fn entry_without_room_is_not_counted_and_smaller_element_fits() {
    let mut buffer = vec![0xAA; length(2) + 5];
    let quote = QuoteEncoder::encode(&mut buffer).unwrap();
    let mut legs = quote.levels().unwrap().done().legs().unwrap();
    for ratio in [1, 2] {
        legs.entry().unwrap().ratio(ratio);
    }
    // Length field of the data, and five bytes of data.
    let refused = EncodeError::Short {
        what: "legs",
        needed: 12,
        actual: 9,
    };
    for _ in 0..2 {
        assert_eq!(legs.entry().map(drop).unwrap_err(), refused);
    }
    let finished = legs.done().unwrap().raw([7; 5]).unwrap().finish();
    assert_eq!(finished, buffer.len());
    assert_eq!(read(&buffer).unwrap(), (Vec::new(), vec![1, 2], 5));
}

#[test]
fn remaining_returns_free_bytes_between_entries() {
    // Two levels of 12 bytes, and their tags with length fields.
    let mut buffer = vec![0xAA; length(1) + 2 * (12 + 2 + 1) + 14];
    let quote = QuoteEncoder::encode(&mut buffer).unwrap();
    let mut levels = quote.levels().unwrap();
    // Bytes reserved for the legs and the length field of the data.
    let behind = 4 + 12 + 4;
    let mut written = 0;
    while levels.remaining() >= behind + 15 {
        let level = levels.entry().unwrap();
        assert_eq!(level.remaining(), behind + 14 + 15 * (1 - written) + 3);
        levels = level.tag("x").unwrap().done();
        written += 1;
    }
    assert_eq!((written, levels.remaining()), (2, behind + 14));
    let quote = levels.done();
    assert_eq!(quote.remaining(), behind + 14);
    let mut legs = quote.legs().unwrap();
    legs.entry().unwrap().ratio(3);
    legs.entry().unwrap().ratio(4);
    assert_eq!(legs.remaining(), 4 + 2);
    assert!(legs.entry().is_err());
    let finished = legs.done().unwrap().raw([]).unwrap().finish();
    let (tags, legs, raw) = read(&buffer[..finished]).unwrap();
    assert_eq!((tags.len(), legs, raw), (2, vec![3, 4], 0));
}
