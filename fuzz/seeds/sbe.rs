// SPDX-License-Identifier: Apache-2.0
//! Schemas of Simple Binary Encoding, and messages by them: one of each kind, of a random version and with random content,
//! as the tests of generated codecs make them.

#[path = "../../crates/sbe/codecs/tests/codecs/alike/message.rs"]
mod message;

use taran_fuzz::targets::sbe_decode;
use taran_sbe::compile;
use taran_sbe::model::Schema;
use taran_sbe::xml::InMemory;

use crate::Seed;
use crate::chance::Chance;

/// The schemas of the codecs that `sbe_codecs` reads by.
const SCHEMAS: [(&str, &str); 16] = [
    (
        "garage0",
        include_str!("../../crates/sbe/codecs/schema/garage_v0.xml"),
    ),
    (
        "garage1",
        include_str!("../../crates/sbe/codecs/schema/garage_v1.xml"),
    ),
    (
        "garage2",
        include_str!("../../crates/sbe/codecs/schema/garage_v2.xml"),
    ),
    (
        "music0",
        include_str!("../../crates/sbe/codecs/schema/music_v0.xml"),
    ),
    (
        "music1",
        include_str!("../../crates/sbe/codecs/schema/music_v1.xml"),
    ),
    (
        "ticks5",
        include_str!("../../crates/sbe/codecs/schema/ticks_v5.xml"),
    ),
    (
        "ticks6",
        include_str!("../../crates/sbe/codecs/schema/ticks_v6.xml"),
    ),
    (
        "vast",
        include_str!("../../crates/sbe/codecs/schema/vast.xml"),
    ),
    (
        "twins",
        include_str!("../../crates/sbe/codecs/schema/twins.xml"),
    ),
    (
        "weather0",
        include_str!("../../crates/sbe/codecs/schema/weather_v0.xml"),
    ),
    (
        "weather1",
        include_str!("../../crates/sbe/codecs/schema/weather_v1.xml"),
    ),
    (
        "archive",
        include_str!("../../crates/archive-client/schema/archive.xml"),
    ),
    (
        "archive-mark",
        include_str!("../../crates/archive-client/schema/mark.xml"),
    ),
    (
        "cluster",
        include_str!("../../crates/cluster-client/schema/cluster.xml"),
    ),
    (
        "cluster-mark",
        include_str!("../../crates/cluster/schema/mark.xml"),
    ),
    ("node", include_str!("../../crates/cluster/schema/node.xml")),
];

/// Files that some of the schemas include.
const INCLUDED: [(&str, &str); 2] = [
    (
        "music_types.xml",
        include_str!("../../crates/sbe/codecs/schema/music_types.xml"),
    ),
    (
        "weather_frames.xml",
        include_str!("../../crates/sbe/codecs/schema/weather_frames.xml"),
    ),
];

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = schemas();
    for (index, schema) in sbe_decode::SCHEMAS.iter().enumerate() {
        for (name, bytes) in messages(schema) {
            let bytes = [&[index as u8], bytes.as_slice()].concat();
            seeds.push(Seed::new("sbe_decode", format!("{index}-{name}"), bytes));
        }
    }
    let files: InMemory = SCHEMAS.into_iter().chain(INCLUDED).collect();
    for (schema, _) in SCHEMAS {
        let compiled = compile(schema, &files).unwrap_or_else(|wrong| panic!("{wrong}"));
        for (name, bytes) in messages(&compiled.schema) {
            seeds.push(Seed::new("sbe_codecs", format!("{schema}-{name}"), bytes));
        }
    }
    seeds
}

fn messages(schema: &Schema) -> impl Iterator<Item = (String, Vec<u8>)> {
    let mut chance = Chance::new(1);
    schema.messages.iter().flat_map(move |message| {
        [0, 1].map(|which| {
            let name = format!("{}-{which}", message.name);
            (name, message::random(schema, message, &mut chance))
        })
    })
}

fn schemas() -> Vec<Seed> {
    let include = |file: &str| {
        format!("<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"{file}\"/>")
    };
    // The types in a file of their own, and the messages in that which includes it.
    let (types, messages) = sbe_decode::SCHEMA
        .split_once("</types>")
        .unwrap_or((sbe_decode::SCHEMA, ""));
    let (head, types) = types.split_once("<types>").unwrap_or((types, ""));
    let both = format!("{head}{}{messages}\0<types>{types}</types>", include("1"));
    let cycle = format!(
        "<types>{}</types>\0<types>{}</types>",
        include("1"),
        include("0")
    );
    let mut seeds = vec![
        Seed::new("sbe_schema", "one", sbe_decode::SCHEMA),
        Seed::new("sbe_schema", "two", both),
        Seed::new("sbe_schema", "cycle", cycle),
    ];
    seeds.extend(broken());
    let all = SCHEMAS.map(|(name, text)| Seed::new("sbe_schema", name, text));
    seeds.extend(all);
    seeds
}

/// Schemas with one thing in them that is wrong, or dubious.
fn broken() -> impl Iterator<Item = Seed> {
    let cases = [
        (
            "member-of-header",
            "<type name=\"version\" primitiveType=\"uint16\"/>",
            "<type name=\"version\" primitiveType=\"uint9\"/>",
        ),
        (
            "beyond-its-type",
            "<type name=\"Levels\"",
            "<type name=\"Beyond\" primitiveType=\"double\" minValue=\"1e400\"/><type name=\"Levels\"",
        ),
        (
            "constant-without-value",
            "<enum name=\"Side\" encodingType=\"char\">",
            "<enum name=\"Side\" encodingType=\"char\" presence=\"constant\">",
        ),
        (
            "data-deep-in-a-field",
            "<ref name=\"flags\" type=\"Flags\"/>",
            "<ref name=\"flags\" type=\"text\"/>",
        ),
        (
            "code-in-a-description",
            "<sbe:message name=\"Nothing\" id=\"2\"/>",
            "<sbe:message name=\"Nothing\" id=\"2\" description=\"~~~&#10;-      a&#10;```\"/>",
        ),
    ];
    cases.into_iter().map(|(name, from, to)| {
        assert!(sbe_decode::SCHEMA.contains(from), "{from}");
        Seed::new("sbe_schema", name, sbe_decode::SCHEMA.replace(from, to))
    })
}
