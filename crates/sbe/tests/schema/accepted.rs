// SPDX-License-Identifier: Apache-2.0
//! Models of valid schemas.

use taran_sbe::model::{Constant, Presence, Primitive, Scalar, TypeKind};

use taran_sbe::compile;
use taran_sbe::decode::Decoder;
use taran_sbe::xml::NoFiles;

use crate::accepted;

#[test]
fn fields_are_placed_in_sequence_or_at_specified_offset() {
    let schema = accepted(
        r#"<type name="Tag" primitiveType="char" length="6"/>"#,
        r#"<sbe:message name="M" id="1" blockLength="40">
             <field name="a" id="1" type="uint8"/>
             <field name="b" id="2" type="uint32"/>
             <field name="c" id="3" type="Tag" offset="8"/>
             <field name="d" id="4" type="double"/>
             <group name="g" id="5">
               <field name="e" id="1" type="int16"/>
               <group name="inner" id="2" blockLength="4"><field name="f" id="1" type="char"/></group>
               <data name="note" id="3" type="varText"/>
             </group>
             <data name="text" id="6" type="varText"/>
           </sbe:message>"#,
    );
    let message = schema.message(1).unwrap();
    let offsets: Vec<_> = message
        .block
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.offset, field.encoded_length()))
        .collect();
    assert_eq!(
        offsets,
        [("a", 0, 1), ("b", 1, 4), ("c", 8, 6), ("d", 14, 8)]
    );
    assert_eq!(message.block.length, 40);
    let group = &message.block.groups[0];
    assert_eq!((group.block.length, group.dimensions.length), (2, 4));
    assert_eq!(group.dimensions.count.offset, 2);
    assert_eq!(group.block.groups[0].block.length, 4);
    assert_eq!(group.block.data[0].name, "note");
    let text = &message.block.data[0].encoding;
    assert_eq!((text.start, text.length.max), (2, 65_534));
    assert_eq!(text.character_encoding.as_deref(), Some("UTF-8"));
    assert_eq!(schema.header.length, 8);
    assert_eq!(schema.header.version.offset, 6);
}

#[test]
fn composites_contain_inline_and_referenced_types() {
    let schema = accepted(
        r#"<composite name="Outer">
             <type name="first" primitiveType="uint8"/>
             <ref name="price" type="Decimal" offset="4"/>
             <composite name="Inner"><type name="x" primitiveType="uint16"/><enum name="E" encodingType="char">
               <validValue name="A">A</validValue></enum></composite>
             <set name="Flags" encodingType="uint8"><choice name="up">7</choice></set>
           </composite>
           <composite name="Decimal">
             <type name="mantissa" primitiveType="int64"/>
             <type name="exponent" primitiveType="int8" presence="constant">-9</type>
           </composite>"#,
        r#"<sbe:message name="M" id="1"><field name="a" id="1" type="Outer"/></sbe:message>"#,
    );
    let outer = schema.type_named("Outer").unwrap();
    assert_eq!(outer.encoded_length(), 16);
    let TypeKind::Composite(outer) = &outer.kind else {
        panic!("{outer:?}")
    };
    let members: Vec<_> = outer
        .members
        .iter()
        .map(|member| (member.name.as_str(), member.offset, member.is_ref))
        .collect();
    assert_eq!(
        members,
        [
            ("first", 0, false),
            ("price", 4, true),
            ("Inner", 12, false),
            ("Flags", 15, false)
        ]
    );
    let TypeKind::Composite(decimal) = &outer.members[1].kind.kind else {
        panic!("{outer:?}")
    };
    let TypeKind::Simple(exponent) = &decimal.members[1].kind.kind else {
        panic!("{decimal:?}")
    };
    assert_eq!(
        exponent.constant,
        Some(Constant::Scalar(Scalar::Integer(-9)))
    );
}

#[test]
fn missing_attributes_have_standard_defaults() {
    let schema = accepted(
        r#"<type name="Maybe" primitiveType="uint32" presence="optional"/>
           <type name="Own" primitiveType="int16" presence="optional" nullValue="-1" minValue="0" maxValue="+99"/>
           <type name="Price" primitiveType="float" presence="optional"/>
           <type name="Venue" primitiveType="char" presence="constant">XETR</type>
           <type name="Padded" primitiveType="char" presence="constant" length="4">AB</type>
           <enum name="Side" encodingType="uint8"><validValue name="Buy">1</validValue></enum>"#,
        r#"<sbe:message name="M" id="1">
             <field name="a" id="1" type="Maybe"/>
             <field name="b" id="2" type="Own"/>
             <field name="c" id="3" type="Price"/>
             <field name="d" id="4" type="Venue"/>
             <field name="e" id="5" type="Side" presence="constant" valueRef="Side.Buy"/>
             <field name="f" id="6" type="uint8" presence="constant" valueRef="Side.Buy"/>
             <field name="g" id="7" type="uint64" presence="optional"/>
             <field name="h" id="8" type="Padded"/>
           </sbe:message>"#,
    );
    let simple = |name: &str| match &schema.type_named(name).unwrap().kind {
        TypeKind::Simple(simple) => simple.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(simple("Maybe").null, Scalar::Integer(u32::MAX.into()));
    assert_eq!(simple("Maybe").max, Scalar::Integer(4_294_967_294));
    let own = simple("Own");
    assert_eq!(
        (own.null, own.min, own.max),
        (Scalar::Integer(-1), Scalar::Integer(0), Scalar::Integer(99))
    );
    assert_eq!(simple("Price").null, Scalar::Real(f64::NAN));
    assert_eq!(
        simple("Venue").character_encoding.as_deref(),
        Some("US-ASCII")
    );
    let fields = &schema.messages[0].block.fields;
    assert_eq!(
        fields[3].constant,
        Some(Constant::Bytes(b"XETR".as_slice().into()))
    );
    assert_eq!(
        fields[4].constant,
        Some(Constant::Scalar(Scalar::Integer(1)))
    );
    assert_eq!(fields[5].constant, fields[4].constant);
    assert_eq!(fields[6].presence, Presence::Optional);
    assert_eq!(fields[6].offset, 10);
    assert_eq!(
        fields[7].constant,
        Some(Constant::Bytes(b"AB\0\0".as_slice().into()))
    );
    assert_eq!(schema.messages[0].block.length, 18);
}

#[test]
fn primitives_have_standard_ranges_and_null_values() {
    let integers = |primitive: Primitive| {
        [
            primitive.min_value(),
            primitive.max_value(),
            primitive.null_value(),
        ]
        .map(|value| value.as_integer().unwrap())
    };
    assert_eq!(integers(Primitive::Char), [32, 126, 0]);
    assert_eq!(integers(Primitive::Int8), [-127, 127, -128]);
    assert_eq!(integers(Primitive::Uint8), [0, 254, 255]);
    assert_eq!(integers(Primitive::Int16), [-32_767, 32_767, -32_768]);
    assert_eq!(integers(Primitive::Uint16), [0, 65_534, 65_535]);
    assert_eq!(
        integers(Primitive::Int64),
        [-i128::from(i64::MAX), i64::MAX.into(), i64::MIN.into()]
    );
    assert_eq!(
        integers(Primitive::Uint64),
        [0, i128::from(u64::MAX) - 1, u64::MAX.into()]
    );
}

#[test]
fn header_and_dimension_members_can_be_constant() {
    let text = crate::text("", r#"<message name="M" id="1"/>"#);
    let reported = |id: u32| {
        let member = format!(
            r#"<type name="schemaId" primitiveType="uint16" presence="constant">{id}</type>"#
        );
        let plain = r#"<type name="schemaId" primitiveType="uint16"/>"#;
        compile("", &NoFiles(&text.replace(plain, &member)))
    };
    let header = reported(7).expect("it is right").schema.header;
    assert_eq!(header.schema_id.constant, Some(7));
    assert_eq!((header.length, header.version.offset), (6, 4));
}

/// As in the official tool, whose readers do not look at the constant.
#[test]
fn constant_schema_id_of_another_schema_is_a_warning() {
    let text = crate::text("", r#"<message name="M" id="1"/>"#);
    let plain = r#"<type name="schemaId" primitiveType="uint16"/>"#;
    let member = r#"<type name="schemaId" primitiveType="uint16" presence="constant">8</type>"#;
    let compiled = compile("", &NoFiles(&text.replace(plain, member))).expect("it is accepted");
    let warnings: Vec<String> = compiled.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings[0].ends_with(
            "schemaId of messageHeader is constant 8, which differs from the id 7 of the schema; messages carry neither, and \
             readers take 7; the bytes are those of the official tool"
        ),
        "{warnings:?}"
    );
    assert_eq!(compiled.schema.header.schema_id.constant, Some(7));
    // Block length 0, template id 1, version 0: the header has no schema id.
    let decoder = Decoder::new(&compiled.schema);
    let message = decoder
        .message(&[0, 0, 1, 0, 0, 0])
        .expect("it is a message");
    assert_eq!((message.template_id, message.schema_id), (1, 7));
}

#[test]
fn empty_doctype_is_accepted() {
    let text = format!(
        "<!DOCTYPE messageSchema>\n{}",
        crate::text("", r#"<message name="M" id="1"/>"#)
    );
    let compiled = compile("", &NoFiles(&text)).expect("it is right");
    assert_eq!(compiled.schema.position.line, 2);
}

#[test]
fn doctype_text_in_comment_is_accepted() {
    accepted(
        "",
        r#"<!-- no <!ENTITY a 'b'> here --><message name="M" id="1"/>"#,
    );
}

#[test]
fn variable_length_is_accepted_where_it_has_no_effect() {
    let schema = accepted(
        "<type name=\"A\" primitiveType=\"uint8\" variableLength=\"false\"/>\
         <composite name=\"Bytes\"><type name=\"length\" primitiveType=\"uint8\"/>\
         <type name=\"varData\" primitiveType=\"uint8\" length=\"0\" variableLength=\"true\"/></composite>",
        r#"<message name="M" id="1"><field name="a" id="1" type="A"/><data name="d" id="2" type="Bytes"/></message>"#,
    );
    assert_eq!(schema.messages[0].block.length, 1);
}
