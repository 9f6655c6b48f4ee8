// SPDX-License-Identifier: Apache-2.0
//! Messages of Simple Binary Encoding, decoded by their schema: no byte outside of the message is read, and the memory of the
//! decoded value is bounded.

use std::sync::LazyLock;

use taran_sbe::compile;
use taran_sbe::decode::{Decoder, Framing, frames};
use taran_sbe::model::{ByteOrder, Schema};
use taran_sbe::xml::NoFiles;

use crate::allocation;

/// A schema with elements of every kind.
pub const SCHEMA: &str = include_str!("sbe_decode.xml");
const ARCHIVE: &str = include_str!("../../../crates/archive-client/schema/archive.xml");

/// Maximum number of values of a message.
const LIMIT: usize = 2_000;
/// Upper bound of the memory for decoded values and their texts while lists grow; everything is decoded twice.
const COST: usize = 8 << 20;
const COST_PER_BYTE: usize = 64;

/// [`SCHEMA`], the same schema in the other byte order, and a schema in use.
pub static SCHEMAS: LazyLock<[Schema; 3]> = LazyLock::new(|| {
    let read = |text| {
        let compiled = compile("", &NoFiles(text)).unwrap_or_else(|rejected| panic!("{rejected}"));
        compiled.schema
    };
    let mut big = read(SCHEMA);
    big.byte_order = ByteOrder::Big;
    [read(SCHEMA), big, read(ARCHIVE)]
});

/// Decodes a message by the schema that the first byte selects.
pub fn run(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let schema = &SCHEMAS[usize::from(*first) % SCHEMAS.len()];
    allocation::within(COST + COST_PER_BYTE * bytes.len(), || decode(schema, bytes));
}

fn decode(schema: &Schema, bytes: &[u8]) {
    let decoder = Decoder::new(schema).with_limit(LIMIT);
    match decoder.message(bytes) {
        Ok(message) => {
            assert!(message.length <= bytes.len());
            // The bytes after the message do not affect its value. NaN differs from itself, so texts are compared.
            let alone = decoder.message(&bytes[..message.length]);
            let texts =
                [alone, Ok(message)].map(|message| serde_json::to_string(&message.ok()).ok());
            assert!(texts[0].is_some());
            assert_eq!(texts[0], texts[1]);
        }
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
    let mut end = 0;
    for frame in frames(bytes, Framing::SimpleOpen).flatten() {
        assert!(frame.offset >= end + 6);
        end = frame.offset + frame.bytes.len();
        assert!(end <= bytes.len());
    }
}
