// SPDX-License-Identifier: Apache-2.0
//! FIX dictionaries: each is accepted or rejected, and an accepted dictionary can be used.

use taran_fix::dict::{Dictionary, describe, diff, read_text};
use taran_fix::generate::rust;

use crate::allocation;

/// Components are written once and resolved in each message that has them.
const COST_PER_BYTE: usize = 128 * 1024;
/// Bytes for reported problems with their texts, and for the initial tables of the parser.
const COST: usize = 1 << 20;

/// Reads a dictionary in either format.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let read = allocation::within(COST + COST_PER_BYTE * bytes.len(), || read_text("x", text));
    match read {
        Ok(dictionary) => in_use(&dictionary),
        Err(rejected) => {
            assert!(!rejected.problems.is_empty());
            assert!(!rejected.to_string().is_empty());
        }
    }
}

fn in_use(dictionary: &Dictionary) {
    assert_eq!(diff::diff(dictionary, dictionary), []);
    assert!(!describe::messages(dictionary).is_empty());
    for message in dictionary.messages().iter().take(4) {
        let text = describe::message(dictionary, message);
        assert!(text.starts_with(message.name()));
    }
    for field in dictionary.fields().iter().take(4) {
        assert!(!describe::field(dictionary, field).is_empty());
    }
    assert!(rust(dictionary, &[]).contains("BEGIN_STRING"));
    let merged = dictionary.clone().over(dictionary);
    assert_eq!(merged.messages().len(), dictionary.messages().len());
}
