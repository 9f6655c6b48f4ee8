//! What becomes of names that are no good in Rust.

#![expect(clippy::unwrap_used, reason = "tests")]

use taran_sbe::compile;
use taran_sbe::generate::{self, GenerateError};
use taran_sbe::xml::NoFiles;

fn schema(inside: &str) -> taran_sbe::model::Schema {
    let text = format!(
        r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="a.b.Some-Thing" id="1" version="0">
            <types>
                <composite name="messageHeader">
                    <type name="blockLength" primitiveType="uint16"/>
                    <type name="templateId" primitiveType="uint16"/>
                    <type name="schemaId" primitiveType="uint16"/>
                    <type name="version" primitiveType="uint16"/>
                </composite>
            </types>
            {inside}
        </sbe:messageSchema>"#
    );
    compile("", &NoFiles(&text)).unwrap().schema
}

fn collisions(inside: &str) -> Vec<(String, String, String)> {
    let error = generate::rust(&schema(inside)).unwrap_err();
    let GenerateError::Collisions(collisions) = error else {
        panic!("{error}")
    };
    collisions
        .into_iter()
        .map(|each| (each.identifier, each.first, each.second))
        .collect()
}

fn triple(identifier: &str, first: &str, second: &str) -> (String, String, String) {
    (identifier.to_owned(), first.to_owned(), second.to_owned())
}

#[test]
fn the_file_is_called_after_the_last_part_of_the_package() {
    let files = generate::rust(&schema(r#"<message name="M" id="1"/>"#)).unwrap();
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["some_thing.rs"]);
}

#[test]
fn all_names_that_become_the_same_are_told_with_their_places() {
    let inside = r#"<types>
        <enum name="Colour" encodingType="uint8">
            <validValue name="RED_ISH">1</validValue>
            <validValue name="RedIsh">2</validValue>
        </enum>
        <enum name="colour" encodingType="uint8"/>
        <set name="Flags" encodingType="uint8">
            <choice name="isUp">0</choice>
            <choice name="IS_UP">1</choice>
        </set>
    </types>
    <message name="Order" id="1">
        <field name="orderId" id="1" type="uint8"/>
        <field name="OrderID" id="2" type="uint8"/>
    </message>
    <message name="order" id="2"/>"#;
    assert_eq!(
        collisions(inside),
        [
            triple("RedIsh", "RED_ISH", "RedIsh"),
            triple("Colour", "Colour", "colour"),
            triple("IS_UP", "isUp", "IS_UP"),
            triple("order_id", "orderId", "OrderID"),
            triple("order", "Order", "order"),
            triple("Order", "Order", "order"),
        ]
    );
    let error = generate::rust(&schema(inside)).unwrap_err().to_string();
    assert!(error.contains("RedIsh would be called RedIsh in Rust, as RED_ISH is already (at"));
}

#[test]
fn words_of_rust_and_of_the_interface_get_an_underscore() {
    let inside = r#"<types>
        <enum name="Option" encodingType="uint8"><validValue name="Self">1</validValue>
            <validValue name="NULL">2</validValue></enum>
    </types>
    <message name="fn" id="1">
        <field name="type" id="1" type="uint8"/>
        <field name="decode" id="2" type="Option"/>
    </message>"#;
    let files = generate::rust(&schema(inside)).unwrap();
    for part in [
        "pub mod fn_ {",
        "pub fn type_(&self) -> u8 {",
        "pub fn decode_(&self) -> types::Option_ {",
        "1 => Self::Self_,",
        "2 => Self::NULL_,",
    ] {
        assert!(files[0].text.contains(part), "{part} in {}", files[0].text);
    }
}

#[test]
fn what_schemas_say_is_all_seen_and_ends_no_line() {
    let inside = r#"<types><enum name="E&#13;" encodingType="uint8"/></types>
    <message name="M" id="1" description="one&#13;two&#x202E;three */ ```&#10;    four&#x2028;five">
        <field name="a`&#10;    b&#13;&#x2066;" id="1" type="uint8"/>
        <data name="d&#10;e" id="2" type="bytes"/>
    </message>
    <types><composite name="bytes"><type name="length" primitiveType="uint8"/>
        <type name="varData" primitiveType="uint8" length="0"/></composite></types>"#;
    let text = generate::rust(&schema(inside)).unwrap().remove(0).text;
    let is_seen = |shown: char| !shown.is_control() || shown == '\n';
    assert!(text.chars().all(is_seen), "{text:?}");
    let hidden = |shown: char| matches!(shown, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(hidden), "{text:?}");
    for part in [
        "/// one\n    /// twothree \\*/ \\`\\`\\`\n    /// four\n    /// five\n",
        "/// Reads `a    b`.\n",
        "/// Reads `de`.\n",
        "/// Before `de`.\n",
        "/// The enumeration `E`.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
