// SPDX-License-Identifier: Apache-2.0
//! Fields whose `sinceVersion` is that of their type, and constant fields, which have no bytes in any version.
//!
//! The official tool uses the later of the versions of field and type, and schemas rely on it: a type is added together
//! with a field.

use serde_json::json;
use taran_sbe::compile;
use taran_sbe::decode::Decoder;
use taran_sbe::describe::describe;
use taran_sbe::diff::{Change, Impact, diff, worst};
use taran_sbe::generate;
use taran_sbe::model::Schema;
use taran_sbe::xml::NoFiles;

use crate::{accepted, problems, text_of_version};

/// Two messages that grow in each version; in the last one by a field that has only the version of its type.
const TYPES: &str = r#"<type name="Amount" primitiveType="int32" sinceVersion="1"/>
    <composite name="Weight" sinceVersion="1"><type name="grams" primitiveType="int32"/></composite>
    <enum name="Colour" encodingType="uint8" sinceVersion="2"><validValue name="Red">0</validValue></enum>
    <set name="Marks" encodingType="uint8" sinceVersion="2"><choice name="fragile">0</choice></set>
    <type name="Digest" primitiveType="uint8" length="8" sinceVersion="3"/>"#;
const MESSAGES: &str = r#"<message name="Parcel" id="1">
      <field name="number" id="1" type="int32"/>
      <field name="weight" id="2" type="Weight"/>
      <field name="amount" id="3" type="Amount" sinceVersion="2"/>
      <field name="marks" id="4" type="Marks"/>
      <field name="colour" id="5" type="Colour" sinceVersion="3"/>
      <field name="digest" id="6" type="Digest"/>
    </message>
    <message name="Shelf" id="2">
      <group name="places" id="1" blockLength="16">
        <field name="place" id="2" type="uint16" offset="0"/>
        <field name="amount" id="3" type="Amount" offset="4"/>
        <field name="digest" id="4" type="Digest" offset="8"/>
      </group>
    </message>"#;

fn of_version(version: u32, types: &str, messages: &str) -> Schema {
    let text = text_of_version(version, types, messages);
    let compiled = compile("", &NoFiles(&text)).unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!(compiled.warnings, []);
    compiled.schema
}

/// Decodes a message of this version to JSON.
fn decoded(schema: &Schema, template_id: u16, version: u16, block: &[u8], rest: &[u8]) -> String {
    let length = u16::try_from(block.len()).expect("a few");
    let header = [length, template_id, 7, version].map(u16::to_le_bytes);
    let bytes = [header.as_flattened(), block, rest].concat();
    let message = Decoder::new(schema).message(&bytes).expect("a message");
    serde_json::to_value(&message).expect("JSON")["fields"].to_string()
}

#[test]
fn older_message_omits_field_of_newer_type() {
    let schema = accepted(TYPES, MESSAGES);
    let block = [
        &[7, 0, 0, 0][..],
        &[5, 0, 0, 0],
        &[3, 0, 0, 0],
        &[1],
        &[0],
        &[9; 8],
    ];
    for (version, known, expected) in [
        (0, 1, json!({"number": 7})),
        (1, 2, json!({"number": 7, "weight": {"grams": 5}})),
        (
            2,
            4,
            json!({"number": 7, "weight": {"grams": 5}, "amount": 3, "marks": ["fragile"]}),
        ),
        (
            3,
            6,
            json!({"number": 7, "weight": {"grams": 5}, "amount": 3, "marks": ["fragile"], "colour": "Red",
                   "digest": [9, 9, 9, 9, 9, 9, 9, 9]}),
        ),
    ] {
        let block = block[..known].concat();
        assert_eq!(
            decoded(&schema, 1, version, &block, &[]),
            expected.to_string()
        );
    }
    let entries = [&[4, 0, 1, 0][..], &[2, 0, 0, 0]].concat();
    let expected = json!({"places": [{"place": 2}]}).to_string();
    assert_eq!(decoded(&schema, 2, 0, &[], &entries), expected);
}

#[test]
fn generated_minimum_block_length_excludes_fields_of_newer_types() {
    let files = generate::rust(&accepted(TYPES, MESSAGES)).expect("a few values");
    let text = &files[0].text;
    for part in [
        // The number of a parcel and the position on a shelf are the fields that exist in every version.
        "block: &'a [u8; 4],",
        "block: &'a [u8; 2],",
        "pub fn weight(&self) -> Option<types::WeightDecoder<'a>> {",
        "pub fn marks(&self) -> Option<types::Marks> {",
        "pub fn digest(&self) -> Option<&'a [u8; 8]> {",
        "/// `None` in messages of versions before 3.",
        "pub fn number(&self) -> i32 {",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("pub fn digest(&self) -> &'a"), "{text}");
}

#[test]
fn table_shows_since_version_of_type() {
    let described = describe(&accepted(TYPES, MESSAGES));
    let since: Vec<_> = described.messages[0]
        .rows
        .iter()
        .filter(|row| row.id.is_some())
        .map(|row| (row.name.as_str(), row.since_version))
        .collect();
    assert_eq!(
        since,
        [
            ("number", 0),
            ("weight", 1),
            ("amount", 2),
            ("marks", 2),
            ("colour", 3),
            ("digest", 3)
        ]
    );
}

#[test]
fn field_after_field_of_newer_type_is_reported() {
    let types = r#"<type name="New" primitiveType="uint8" sinceVersion="2"/>"#;
    let message = r#"<message name="M" id="1"><field name="a" id="1" type="New"/>
        <field name="b" id="2" type="uint8"/></message>"#;
    let reported: Vec<_> = problems(types, message)
        .iter()
        .map(|reported| reported.problem.to_string())
        .collect();
    let expected =
        "b was introduced in version 0, but follows a of version 2: older readers confuse them";
    assert_eq!(reported, [expected]);
}

#[test]
fn field_deprecated_before_type_since_version_is_reported() {
    let types = r#"<type name="New" primitiveType="uint8" sinceVersion="2"/>"#;
    let message = |more: &str| {
        format!(r#"<message name="M" id="1"><field name="a" id="1" type="New" {more}/></message>"#)
    };
    let reported = |more| {
        let reported = problems(types, &message(more)).into_iter();
        reported
            .map(|reported| reported.problem.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        reported("deprecated=\"1\""),
        ["deprecated in version 1, before it was introduced in 2"]
    );
    // A problem of the field's own version is reported once.
    assert_eq!(
        reported("deprecated=\"1\" sinceVersion=\"2\""),
        ["deprecated in version 1, before it was introduced in 2"]
    );
    assert_eq!(reported("deprecated=\"2\""), [] as [&str; 0]);
}

/// Returns the changes between two schemas with their paths.
fn changes(old: &Schema, new: &Schema) -> (Vec<(Impact, String)>, String) {
    let changes = diff(old, new);
    let reported = |change: &Change| (change.impact, change.path.clone());
    (
        changes.iter().map(reported).collect(),
        format!("{changes:?}"),
    )
}

#[test]
fn new_field_of_new_type_is_extension() {
    let without = |text: &str, lines: &[&str]| {
        let keep = |line: &&str| !lines.iter().any(|part| line.contains(part));
        text.lines().filter(keep).collect::<Vec<_>>().join("\n")
    };
    let old = of_version(
        2,
        &without(TYPES, &["\"Digest\""]),
        &without(MESSAGES, &["\"Digest\"", "\"colour\""]),
    );
    let new = of_version(3, TYPES, MESSAGES);
    assert_eq!(worst(&diff(&old, &new)), Some(Impact::Extension));
    let (reported, all) = changes(&old, &new);
    for path in ["Parcel.digest", "Parcel.colour", "Shelf.places.digest"] {
        assert!(
            reported.contains(&(Impact::Extension, path.to_owned())),
            "{all}"
        );
    }
}

#[test]
fn later_type_since_version_moves_its_fields() {
    let types = r#"<type name="T" primitiveType="uint8"/>"#;
    let message = r#"<message name="M" id="1"><field name="a" id="1" type="T"/></message>"#;
    let old = accepted(types, message);
    let new = accepted(&types.replace("/>", " sinceVersion=\"1\"/>"), message);
    let (reported, all) = changes(&old, &new);
    assert_eq!(reported, [(Impact::Breaking, "M.a".to_owned())], "{all}");
}

/// Composite of constants, which has no bytes.
const SCALE: &str = r#"<composite name="Scale"><type name="tenth" primitiveType="int8" presence="constant">1</type></composite>"#;

#[test]
fn constant_composite_member_does_not_affect_version_order() {
    let types = r#"<composite name="C" sinceVersion="1">
        <type name="a" primitiveType="uint8"/><type name="b" primitiveType="uint8" sinceVersion="1"/>
        <type name="k" primitiveType="uint8" presence="constant">1</type></composite>"#;
    accepted(types, r#"<message name="M" id="1"/>"#);
}

#[test]
fn constant_changes_affect_code_only() {
    let fields = |inside: &str| format!(r#"<message name="M" id="1">{inside}</message>"#);
    let a = r#"<field name="a" id="1" type="uint8"/>"#;
    let b = r#"<field name="b" id="2" type="uint8" sinceVersion="3"/>"#;
    let scale = r#"<field name="s" id="3" type="Scale"/>"#;
    let old = of_version(2, SCALE, &fields(&[a, scale].concat()));
    let new = of_version(3, SCALE, &fields(&[a, b, scale].concat()));
    let (reported, all) = changes(&old, &new);
    assert!(
        reported.contains(&(Impact::Extension, "M.b".to_owned())),
        "{all}"
    );
    assert!(reported.iter().all(|(_, path)| path != "M.s"), "{all}");
    let gone = of_version(3, SCALE, &fields(&[a, b].concat()));
    let (reported, all) = changes(&new, &gone);
    assert!(
        reported.contains(&(Impact::Code, "M.s".to_owned())),
        "{all}"
    );
}

#[test]
fn constant_is_present_from_its_since_version() {
    let message = r#"<message name="M" id="1">
        <field name="a" id="1" type="uint32"/>
        <field name="b" id="2" type="uint32" sinceVersion="2"/>
        <field name="s" id="3" type="Scale" sinceVersion="1"/>
    </message>"#;
    let schema = accepted(SCALE, message);
    let block = 7_u32.to_le_bytes();
    let expected = json!({"a": 7, "s": {"tenth": 1}}).to_string();
    assert_eq!(decoded(&schema, 1, 1, &block, &[]), expected);
    let files = generate::rust(&schema).expect("a few values");
    // Not within `b`, which a sender of version 1 does not have.
    let expected = "let bytes: &[u8; 0] = runtime::added(self.version, 1, self.block, 4)?;";
    assert!(files[0].text.contains(expected), "{}", files[0].text);
}

#[test]
fn element_since_version_is_at_least_that_of_container() {
    let types = r#"<type name="Old" primitiveType="uint8"/>
        <set name="New" encodingType="uint8" sinceVersion="1"><choice name="a">0</choice></set>
        <composite name="C" sinceVersion="2"><ref name="a" type="New"/><ref name="b" type="Old"/>
            <composite name="Inner"><ref name="a" type="New"/><ref name="b" type="Old"/></composite>
        </composite>"#;
    accepted(
        types,
        r#"<message name="M" id="1" sinceVersion="2">
            <field name="a" id="1" type="Old" sinceVersion="2"/>
            <field name="b" id="2" type="New"/>
            <field name="c" id="3" type="Old"/>
            <group name="d" id="4" sinceVersion="2">
                <field name="e" id="5" type="New"/><field name="f" id="6" type="Old"/>
            </group>
            <group name="g" id="7"/>
            <data name="h" id="8" type="varText" sinceVersion="2"/>
            <data name="i" id="9" type="varText"/>
        </message>"#,
    );
    // Elements introduced later must still follow.
    let message = r#"<message name="M" id="1" sinceVersion="2"><field name="a" id="1" type="Old" sinceVersion="3"/>
        <field name="b" id="2" type="Old"/></message>"#;
    let reported: Vec<_> = problems(types, message)
        .iter()
        .map(|reported| reported.problem.to_string())
        .collect();
    let expected =
        "b was introduced in version 2, but follows a of version 3: older readers confuse them";
    assert_eq!(reported, [expected]);
}
