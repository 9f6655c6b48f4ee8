// SPDX-License-Identifier: Apache-2.0
//! Names that are not valid in Rust or conflict.

#![expect(clippy::unwrap_used, reason = "tests")]

use taran_sbe::compile;
use taran_sbe::generate;
use taran_sbe::xml::NoFiles;

fn schema(inside: &str) -> taran_sbe::model::Schema {
    compiled(inside).schema
}

fn compiled(inside: &str) -> taran_sbe::Compiled {
    let text = format!(
        r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="a.b.Some-Thing" id="1" version="1">
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
    compile("", &NoFiles(&text)).unwrap()
}

#[test]
fn file_name_is_last_part_of_package() {
    let files = generate::rust(&schema(r#"<message name="M" id="1"/>"#)).unwrap();
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["some_thing.rs"]);
}

#[test]
fn conflicting_names_get_numbers_and_are_reported_with_positions() {
    let inside = r#"<types>
        <composite name="Pair">
            <enum name="Colour" encodingType="uint8"><validValue name="A">1</validValue></enum>
        </composite>
        <enum name="PairColour" encodingType="uint8">
            <validValue name="RED_ISH">1</validValue>
            <validValue name="RedIsh">2</validValue>
            <validValue name="Red_Ish">3</validValue>
        </enum>
    </types>
    <message name="Order" id="1">
        <field name="orderId" id="1" type="uint8"/>
        <field name="order_id_2" id="2" type="uint8"/>
        <field name="OrderID" id="3" type="uint8"/>
    </message>
    <message name="order" id="2"/>"#;
    let compiled = compiled(inside);
    let reported: Vec<_> = compiled.warnings.iter().map(ToString::to_string).collect();
    let renamed: Vec<_> = reported
        .iter()
        .filter_map(|reported| reported.split_once("in Rust, "))
        .map(|(_, reported)| reported)
        .collect();
    assert_eq!(
        renamed,
        [
            "Colour would have the name PairColour of PairColour (at :14:9), and gets PairColour2",
            "RedIsh would have the name RedIsh of RED_ISH (at :15:13), and gets RedIsh2",
            "Red_Ish would have the name RedIsh of RED_ISH (at :15:13), and gets RedIsh3",
            "OrderID would have the name order_id of orderId (at :21:9), and gets order_id_3",
            "order would have the name order of Order (at :20:5), and gets order_2",
            "order would have the name Order of Order (at :20:5), and gets Order2",
        ],
        "{reported:#?}"
    );
    let text = &generate::rust(&compiled.schema).unwrap()[0].text;
    for part in [
        "pub enum PairColour {",
        "pub enum PairColour2 {",
        "pub mod order_2 {",
        "Order2(order_2::OrderDecoder<'a>),",
        "pub fn order_id_3(&self) -> u8 {",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn type_referenced_by_unused_types_is_generated() {
    let inside = r#"<types>
        <composite name="sizes"><type name="blockLength" primitiveType="uint16"/>
            <type name="numInGroup" primitiveType="uint16"/></composite>
        <composite name="Unused"><ref name="inner" type="sizes"/></composite>
    </types>
    <message name="M" id="1"/>"#;
    let text = generate::rust(&schema(inside)).unwrap().remove(0).text;
    assert!(text.contains("pub struct SizesDecoder<'a> {"), "{text}");
}

#[test]
fn keywords_and_method_names_get_underscore() {
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
fn schema_text_in_comments_is_visible_and_single_line() {
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

/// Cargo runs code blocks in documentation as tests of the crate that contains the codecs.
#[test]
fn description_is_never_a_code_block() {
    let description = "~~~&#10;panic!();&#10;~~~&#10;    indented&#10;-      in a list&#10;1.      in another&#10;```&#10;#";
    let inside = format!(r#"<message name="M" id="1" description="{description}"/>"#);
    let text = generate::rust(&schema(&inside)).unwrap().remove(0).text;
    let expected = "/// \\~\\~\\~\n    /// panic!();\n    /// \\~\\~\\~\n    /// indented\n    /// \\- in a list\n    /// 1\\. in another\n    \
                    /// \\`\\`\\`\n    /// \\#\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn constants_do_not_extend_minimum_block_length() {
    let inside = r#"<types>
        <type name="Always" primitiveType="uint16" presence="constant">7</type>
        <composite name="Scale"><type name="exponent" primitiveType="int8" presence="constant">2</type></composite>
    </types>
    <message name="M" id="1">
        <field name="a" id="1" type="uint32"/>
        <field name="b" id="2" type="uint32" sinceVersion="1"/>
        <field name="k" id="3" type="Always"/>
        <field name="s" id="4" type="Scale"/>
    </message>"#;
    let text = generate::rust(&schema(inside)).unwrap().remove(0).text;
    for part in [
        "block: &'a [u8; 4],",
        "runtime::part::<4, 0, _>(self.block)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
