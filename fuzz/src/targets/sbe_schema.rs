// SPDX-License-Identifier: Apache-2.0
//! Schemas of Simple Binary Encoding: each is accepted or rejected, and an accepted schema can be used.

use taran_sbe::compile;
use taran_sbe::decode::Decoder;
use taran_sbe::describe::describe;
use taran_sbe::diff::diff;
use taran_sbe::generate;
use taran_sbe::model::Schema;
use taran_sbe::xml::InMemory;

use crate::allocation;

/// A file may be included 256 times, and an element costs much more than the few bytes it is written with.
const COST_PER_BYTE: usize = 64 * 1024;
/// Bytes for reported problems with their texts, and for the initial tables of the parser.
const COST: usize = 1 << 20;

/// Reads a schema whose files have zeros between them; they are called 0, 1, 2 and so on.
pub fn run(bytes: &[u8]) {
    let parts = bytes.split(|byte| *byte == 0).take(16);
    let files: InMemory = parts
        .enumerate()
        .map(|(index, text)| (index.to_string(), text))
        .collect();
    let read = allocation::within(COST + COST_PER_BYTE * bytes.len(), || compile("0", &files));
    match read {
        Ok(compiled) => in_use(&compiled.schema),
        Err(rejected) => {
            assert!(!rejected.problems.is_empty());
            assert!(!rejected.to_string().is_empty());
        }
    }
}

fn in_use(schema: &Schema) {
    let _ = describe(schema).to_string();
    assert_eq!(diff(schema, schema), []);
    match generate::rust(schema) {
        Ok(files) => assert!(files.iter().all(|file| !file.text.is_empty())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let zeros = [0; 256];
    let decoder = Decoder::new(schema).with_limit(4_096);
    for message in decoder.messages(&zeros).take(16).flatten() {
        assert!(message.length <= zeros.len());
    }
}
