// SPDX-License-Identifier: Apache-2.0
//! Decoding of messages to JSON.

use serde_json::{Value as Json, json};
use taran_sbe::compile;
use taran_sbe::decode::{Decoder, Reason, Value};
use taran_sbe::model::{ByteOrder, Schema};
use taran_sbe::xml::NoFiles;

use crate::{accepted, text};

/// Encodes a header and the following parts.
fn message(block_length: u16, template_id: u16, version: u16, parts: &[&[u8]]) -> Vec<u8> {
    let header = [block_length, template_id, 7, version];
    let mut bytes: Vec<u8> = header.into_iter().flat_map(u16::to_le_bytes).collect();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

fn fields(schema: &Schema, bytes: &[u8]) -> Json {
    let message = Decoder::new(schema)
        .message(bytes)
        .expect("a whole message");
    assert_eq!(message.length, bytes.len());
    let mut json = serde_json::to_value(&message).expect("JSON has all of it");
    json["fields"].take()
}

fn everything() -> Schema {
    accepted(
        r#"<type name="Tag" primitiveType="char" length="4"/>
           <type name="Maybe" primitiveType="uint8" presence="optional"/>
           <type name="Levels" primitiveType="int16" length="2" presence="optional"/>
           <type name="Venue" primitiveType="char" presence="constant">XETR</type>
           <enum name="Side" encodingType="char">
             <validValue name="Buy">B</validValue><validValue name="Sell">S</validValue></enum>
           <set name="Flags" encodingType="uint8"><choice name="hot">0</choice><choice name="cold">6</choice></set>
           <composite name="Price"><type name="mantissa" primitiveType="int32"/>
             <type name="exponent" primitiveType="int8" presence="constant">-2</type>
             <ref name="side" type="Side"/></composite>
           <composite name="blob"><type name="length" primitiveType="uint8"/>
             <type name="varData" primitiveType="uint8" length="0"/></composite>"#,
        r#"<sbe:message name="Order" id="1">
             <field name="tag" id="1" type="Tag"/>
             <field name="maybe" id="2" type="Maybe"/>
             <field name="levels" id="3" type="Levels"/>
             <field name="venue" id="4" type="Venue"/>
             <field name="price" id="5" type="Price"/>
             <field name="flags" id="6" type="Flags"/>
             <field name="fixed" id="7" type="Side" presence="constant" valueRef="Side.Sell"/>
             <field name="ratio" id="8" type="double" sinceVersion="2"/>
             <group name="legs" id="9">
               <field name="size" id="1" type="uint8"/>
               <group name="notes" id="2"><data name="text" id="1" type="varText"/></group>
             </group>
             <data name="raw" id="10" type="blob"/>
             <data name="more" id="11" type="varText" sinceVersion="3"/>
           </sbe:message>"#,
    )
}

const BLOCK: &[&[u8]] = &[
    b"AB\0Z",
    &[255],
    &[0x34, 0x12, 0x00, 0x80],
    &[0xFF, 0xFF, 0xFF, 0xFF],
    b"B",
    &[0b0100_0011],
];
const RATIO: &[u8] = &[0, 0, 0, 0, 0, 0, 0xF8, 0x3F];
/// Two legs: one with two notes, one without.
const LEGS: &[&[u8]] = &[
    &[1, 0, 2, 0],
    &[5],
    &[0, 0, 2, 0],
    &[2, 0, b'h', b'i'],
    &[0, 0],
    &[6],
    &[0, 0, 0, 0],
];

#[test]
fn array_of_null_values_is_null() {
    let schema = accepted(
        r#"<type name="Levels" primitiveType="int16" length="2" presence="optional"/>
           <type name="Rates" primitiveType="float" length="2" presence="optional"/>
           <type name="Hash" primitiveType="uint8" length="2" presence="optional" nullValue="9"/>
           <type name="Sure" primitiveType="uint8" length="2"/>"#,
        r#"<sbe:message name="M" id="1">
             <field name="levels" id="1" type="Levels"/>
             <field name="rates" id="2" type="Rates"/>
             <field name="hash" id="3" type="Hash"/>
             <field name="sure" id="4" type="Sure"/>
           </sbe:message>"#,
    );
    let nan = f32::NAN.to_le_bytes();
    let nothing = message(
        16,
        1,
        3,
        &[b"\0\x80\0\x80", &nan, &nan, &[9, 9], &[255, 255]],
    );
    let expected = json!({"levels": null, "rates": null, "hash": null, "sure": [255, 255]});
    assert_eq!(fields(&schema, &nothing), expected);
    let one = 1.0_f32.to_le_bytes();
    let some = message(16, 1, 3, &[b"\x07\0\0\x80", &nan, &one, &[9, 8], &[9, 9]]);
    let expected =
        json!({"levels": [7, null], "rates": [null, 1.0], "hash": [null, 8], "sure": [9, 9]});
    assert_eq!(fields(&schema, &some), expected);
}

#[test]
fn bytes_with_encoding_are_zero_terminated_text() {
    let schema = accepted(
        r#"<type name="Name" primitiveType="uint8" length="4" characterEncoding="UTF-8"/>
           <type name="Wide" primitiveType="char" length="6" characterEncoding="UTF-16LE"/>
           <type name="Maybe" primitiveType="char" length="2" presence="optional"/>
           <type name="Own" primitiveType="uint8" length="2" presence="optional" nullValue="65"
             characterEncoding="US-ASCII"/>"#,
        r#"<sbe:message name="Texts" id="1">
             <field name="name" id="1" type="Name"/>
             <field name="wide" id="2" type="Wide"/>
             <field name="empty" id="3" type="Maybe"/>
             <field name="begins" id="4" type="Own"/>
             <field name="own" id="5" type="Own"/>
           </sbe:message>"#,
    );
    let bytes = message(
        16,
        1,
        0,
        &[b"\xC3\xBCb\0", b"A\0\x01\x01\0\0", &[0, 0], b"AB", b"AA"],
    );
    let expected = json!({"name": "üb", "wide": "Aā", "empty": null, "begins": "AB", "own": null});
    assert_eq!(fields(&schema, &bytes), expected);
}

#[test]
fn json_covers_every_kind_of_value() {
    let parts = [
        BLOCK,
        &[RATIO],
        LEGS,
        &[&[3, 0xDE, 0xAD, 0x01], &[2, 0, 0xC3, 0xBC]],
    ]
    .concat();
    let bytes = message(23, 1, 3, &parts);
    assert_eq!(
        fields(&everything(), &bytes),
        json!({
            "tag": "AB",
            "maybe": null,
            "levels": [0x1234, null],
            "venue": "XETR",
            "price": {"mantissa": -1, "exponent": -2, "side": "Buy"},
            "flags": ["hot", "cold", 1],
            "fixed": "Sell",
            "ratio": 1.5,
            "legs": [
                {"size": 5, "notes": [{"text": "hi"}, {"text": ""}]},
                {"size": 6, "notes": []},
            ],
            "raw": "dead01",
            "more": "ü",
        })
    );
}

#[test]
fn older_message_newer_elements_are_omitted() {
    let parts = [BLOCK, LEGS, &[&[0]]].concat();
    let json = fields(&everything(), &message(15, 1, 1, &parts));
    assert_eq!(json["flags"], json!(["hot", "cold", 1]));
    assert_eq!(json.get("ratio"), None);
    assert_eq!(json.get("more"), None);
}

#[test]
fn newer_message_added_block_bytes_are_skipped() {
    let legs: &[&[u8]] = &[&[3, 0, 1, 0], &[5, 9, 9], &[0, 0, 0, 0]];
    let parts = [BLOCK, &[RATIO, &[9, 9]], legs, &[&[0], &[0, 0]]].concat();
    let json = fields(&everything(), &message(25, 1, 9, &parts));
    assert_eq!(json["ratio"], json!(1.5));
    assert_eq!(json["legs"], json!([{"size": 5, "notes": []}]));
}

#[test]
fn unknown_enum_values_and_choices_keep_numbers() {
    let mut block = BLOCK.concat();
    block[13] = b'?';
    let bytes = message(15, 1, 0, &[&block, &[1, 0, 0, 0], &[0]]);
    assert_eq!(fields(&everything(), &bytes)["price"]["side"], json!(63));
    block[13] = 0;
    let bytes = message(15, 1, 0, &[&block, &[1, 0, 0, 0], &[0]]);
    assert_eq!(fields(&everything(), &bytes)["price"]["side"], Json::Null);
}

#[test]
fn json_non_finite_numbers_and_invalid_text_are_preserved() {
    let schema = accepted(
        "",
        r#"<sbe:message name="M" id="1"><field name="f" id="1" type="float"/><field name="u" id="2" type="uint64"/>
           <data name="t" id="3" type="varText"/></sbe:message>"#,
    );
    let bytes = message(
        12,
        1,
        0,
        &[
            &f32::NEG_INFINITY.to_le_bytes(),
            &u64::MAX.to_le_bytes(),
            &[2, 0, 0xFF, b'a'],
        ],
    );
    assert_eq!(
        fields(&schema, &bytes),
        json!({"f": "-inf", "u": u64::MAX, "t": {"not": "UTF-8", "hex": "ff61"}})
    );
}

#[test]
fn big_endian_messages_decode() {
    let mut schema = accepted(
        r#"<type name="Two" primitiveType="uint16" length="2"/>"#,
        r#"<sbe:message name="M" id="1"><field name="i" id="1" type="int32"/><field name="d" id="2" type="double"/>
           <field name="a" id="3" type="Two"/></sbe:message>"#,
    );
    schema.byte_order = ByteOrder::Big;
    let mut bytes: Vec<u8> = [16_u16, 1, 7, 0]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect();
    bytes.extend((-2_i32).to_be_bytes());
    bytes.extend(0.25_f64.to_be_bytes());
    bytes.extend([0, 1, 1, 0]);
    assert_eq!(
        fields(&schema, &bytes),
        json!({"i": -2, "d": 0.25, "a": [1, 256]})
    );
}

#[test]
fn zero_length_field_beyond_older_block_decodes() {
    let types = r#"<type name="None" primitiveType="uint8" length="0"/>
        <type name="Always" primitiveType="uint16" presence="constant">7</type>"#;
    let message_of_two = r#"<message name="M" id="1"><field name="a" id="1" type="uint8"/>
        <field name="b" id="2" type="uint32" sinceVersion="1"/><field name="none" id="3" type="None"/>
        <field name="always" id="4" type="Always"/></message>"#;
    let compiled = compile("", &NoFiles(&text(types, message_of_two))).expect("a warning alone");
    let schema = compiled.schema;
    assert_eq!(
        fields(&schema, &message(1, 1, 0, &[&[9]])),
        json!({"a": 9, "none": [], "always": 7})
    );
}

#[test]
fn field_since_version_is_at_least_that_of_type() {
    let schema = accepted(
        r#"<type name="Two" primitiveType="uint8" sinceVersion="2"/>
           <enum name="E" encodingType="uint8" sinceVersion="1"><validValue name="A">1</validValue></enum>"#,
        r#"<message name="M" id="1"><field name="a" id="1" type="uint8"/>
           <field name="e" id="2" type="E"/>
           <field name="two" id="3" type="Two" sinceVersion="1"/>
           <field name="three" id="4" type="Two" sinceVersion="3"/></message>"#,
    );
    let since: Vec<_> = schema.messages[0]
        .block
        .fields
        .iter()
        .map(|field| field.since)
        .collect();
    assert_eq!(since, [0, 1, 2, 3], "as the official tool has it");
    let of_version = |version, bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).expect("a few");
        fields(&schema, &message(length, 1, version, &[bytes]))
    };
    assert_eq!(of_version(0, &[5]), json!({"a": 5}));
    assert_eq!(of_version(1, &[5, 1]), json!({"a": 5, "e": "A"}));
    assert_eq!(
        of_version(2, &[5, 1, 7]),
        json!({"a": 5, "e": "A", "two": 7})
    );
}

#[test]
fn messages_returns_consecutive_messages() {
    let schema = accepted(
        "",
        r#"<sbe:message name="A" id="1"><field name="f" id="1" type="uint8"/></sbe:message>
           <sbe:message name="B" id="2"><data name="t" id="1" type="varText"/></sbe:message>"#,
    );
    let mut bytes = message(1, 1, 3, &[&[42]]);
    bytes.extend(message(0, 2, 3, &[&[1, 0, b'x']]));
    bytes.extend(message(0, 5, 3, &[]));
    let found: Vec<_> = Decoder::new(&schema).messages(&bytes).collect();
    let [Ok(one), Ok(two), Err(error)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.name, one.offset, one.length), ("A", 0, 9));
    assert_eq!((two.name, two.offset, two.length), ("B", 9, 11));
    assert_eq!(two.fields, [("t", Value::Text("x".into()))]);
    assert_eq!((error.offset, &error.reason), (20, &Reason::TemplateId(5)));
}

#[test]
fn decode_error_has_offset_and_path() {
    let schema = everything();
    let decoder = Decoder::new(&schema);
    let whole = message(
        23,
        1,
        3,
        &[BLOCK, &[RATIO], LEGS, &[&[1, 7], &[1, 0, b'x']]].concat(),
    );
    assert_eq!(decoder.message(&whole).unwrap().length, whole.len());
    for end in 0..whole.len() {
        let error = decoder.message(&whole[..end]).unwrap_err();
        assert!(matches!(error.reason, Reason::Truncated { .. }), "{error}");
        assert!(error.offset <= end, "{error}");
    }
    let reported = |bytes: &[u8]| decoder.message(bytes).unwrap_err().to_string();
    assert_eq!(
        reported(&whole[..whole.len() - 1]),
        "at byte 55, Order.more: 1 bytes are needed for data, and 0 are left"
    );
    assert_eq!(
        reported(&[0, 0, 1, 0, 8, 0, 0, 0]),
        "at byte 0: schema id 8, expected 7"
    );
    assert_eq!(
        reported(&message(20, 1, 2, &[BLOCK, &[&[0; 5]]].concat())),
        "at byte 8, Order.ratio: the block has 20 bytes, but in version 2 the field needs it to have 23"
    );
}

#[test]
fn messages_of_zero_length_return_error() {
    let text = r#"<messageSchema package="a" id="1" version="0"><types>
        <composite name="messageHeader">
          <type name="blockLength" primitiveType="uint16" presence="constant">0</type>
          <type name="templateId" primitiveType="uint16" presence="constant">1</type>
          <type name="schemaId" primitiveType="uint16" presence="constant">1</type>
          <type name="version" primitiveType="uint16" presence="constant">0</type>
        </composite></types><message name="A" id="1"/></messageSchema>"#;
    let schema = taran_sbe::compile("", &taran_sbe::xml::NoFiles(text))
        .unwrap()
        .schema;
    let decoder = Decoder::new(&schema);
    assert_eq!(decoder.message(&[1]).unwrap().length, 0);
    let found: Vec<_> = decoder.messages(&[1]).take(3).collect();
    let [Err(error)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((error.offset, &error.reason), (0, &Reason::NoBytes));
}
