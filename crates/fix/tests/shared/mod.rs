// SPDX-License-Identifier: Apache-2.0
//! Dictionaries and messages for tests.
#![allow(dead_code)]

use std::path::Path;

use taran_fix::dict::{Dictionary, read_file};
use taran_fix::wire::{Frame, Framed, Framer, Resync, checksum};

/// Reads a dictionary of this crate.
pub(crate) fn dictionary(name: &str) -> Dictionary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("dictionary")
        .join(name);
    read_file(path).expect("the dictionary is valid")
}

/// Reads FIX 5.0 SP2 over FIXT 1.1.
pub(crate) fn fix50() -> Dictionary {
    dictionary("FIX50SP2.xml").over(&dictionary("FIXT11.xml"))
}

/// Makes a message of fields with `|` as the delimiter.
pub(crate) fn message(begin: &str, fields: &str) -> Vec<u8> {
    let body = fields.replace('|', "\x01");
    let mut bytes = format!("8={begin}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = checksum(&bytes);
    bytes.extend(format!("10={sum:03}\x01").into_bytes());
    bytes
}

/// Returns the frame of bytes that are one message.
pub(crate) fn frame(bytes: &[u8]) -> Frame<'_> {
    match Framer::new(1 << 20, Resync::Length).next(bytes) {
        Framed::Message(frame) => frame,
        other => panic!("{other:?}"),
    }
}
