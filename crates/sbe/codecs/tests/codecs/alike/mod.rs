// SPDX-License-Identifier: Apache-2.0
//! Compares generated decoders with the schema-driven decoder, for every message of every schema, with random content
//! and of any version.

mod message;
mod shown;

use std::path::Path;

use taran_sbe::decode::Decoder;
use taran_sbe::model::Schema;

use crate::chance::Chance;

/// Number of messages of each template.
const ROUNDS: u64 = 60;

/// Removes the differences in case and separators between schema names and Rust names.
fn plain(text: &str) -> String {
    text.replace('_', "").to_lowercase()
}

fn compare(schema: &Schema, show: fn(&[u8]) -> String) {
    let decoder = Decoder::new(schema);
    for message in &schema.messages {
        for round in 0..ROUNDS {
            let mut chance = Chance::new(round);
            let bytes = message::random(schema, message, &mut chance);
            let generic = match decoder.message(&bytes) {
                Ok(generic) => generic,
                Err(error) => panic!("{} {round}: {error}", message.name),
            };
            assert_eq!(generic.length, bytes.len(), "{} {round}", message.name);
            let expected = shown::message(message, &generic);
            let shown = show(&bytes);
            assert_eq!(plain(&shown), plain(&expected), "{} {round}", message.name);
        }
    }
}

macro_rules! schemas {
    ($($test:ident: $path:literal;)*) => {
        $(#[test]
        fn $test() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join($path);
            let schema = taran_sbe::compile_file(&path).unwrap().schema;
            assert!(!schema.messages.is_empty());
            compare(&schema, |bytes| {
                taran_sbe_codecs::$test::Message::decode(bytes).unwrap().to_string()
            });
        })*
    };
}

schemas! {
    garage_v0: "schema/garage_v0.xml";
    garage_v1: "schema/garage_v1.xml";
    garage_v2: "schema/garage_v2.xml";
    music_v0: "schema/music_v0.xml";
    music_v1: "schema/music_v1.xml";
    ticks_v5: "schema/ticks_v5.xml";
    ticks_v6: "schema/ticks_v6.xml";
    vast: "schema/vast.xml";
    weather_v0: "schema/weather_v0.xml";
    weather_v1: "schema/weather_v1.xml";
    archive: "../../archive-client/schema/archive.xml";
    archive_mark: "../../archive-client/schema/mark.xml";
    cluster: "../../cluster-client/schema/cluster.xml";
    cluster_mark: "../../cluster/schema/mark.xml";
    node: "../../cluster/schema/node.xml";
}
