// SPDX-License-Identifier: Apache-2.0
//! Problems of messages, groups and data.

use super::{fields, one, types};
use taran_sbe::problem::Severity::{Error, Warning};

#[test]
fn blocks() {
    fields(&[
        (
            r#"<field name="f" id="1" type="uint8"/><field name="f" id="2" type="uint8"/>"#,
            Error,
            "name f is already defined at :23:26",
        ),
        (
            r#"<field name="f" id="1" type="uint8"/><field name="g" id="1" type="uint8"/>"#,
            Error,
            "id 1 is already defined at :23:26",
        ),
        (
            r#"<field name="f" type="uint8"/>"#,
            Error,
            "<field> needs the attribute id",
        ),
        (
            r#"<field name="f" id="-1" type="uint8"/>"#,
            Error,
            "id=\"-1\" is not a whole number from 0 to 4294967295",
        ),
        (
            r#"<field name="f" id="1" type="uint32"/><field name="g" id="2" type="uint8" offset="3"/>"#,
            Error,
            "offset 3 of g overlaps the preceding elements, which end at 4",
        ),
        (
            r#"<field name="f" id="1" type="uint32"/><field name="g" id="2" type="uint8" offset="0"/>"#,
            Warning,
            "offset 0 of g is ignored because 4 bytes precede it",
        ),
        (
            r#"<group name="g" id="1"/><field name="f" id="2" type="uint8"/>"#,
            Error,
            "<field> comes after <group>: fields come first, then groups, then data",
        ),
        (
            r#"<data name="d" id="1" type="varText"/><group name="g" id="2"/>"#,
            Error,
            "<group> comes after <data>: fields come first, then groups, then data",
        ),
        (
            r#"<group name="g" id="1" blockLength="1"><field name="f" id="1" type="uint16"/></group>"#,
            Error,
            "blockLength 1 is less than the 2 bytes of the fields",
        ),
        (
            r#"<group name="g" id="1" dimensionType="E"/>"#,
            Error,
            "type E is an enumeration, but a composite is required",
        ),
        (
            r#"<field name="f" id="1" type="varText"/>"#,
            Warning,
            "composite varText contains varData and is meant for <data>; the field has the fixed layout of its type, 2 bytes, with \
             no data behind it; if varText is the type of <data>, too, the official tool places the members behind it elsewhere, so \
             that the bytes differ",
        ),
        (
            r#"<data name="d" id="1" type="varText" presence="optional"/>"#,
            Warning,
            "presence=\"optional\" has no effect on <data>: absent data has length 0",
        ),
        (
            r#"<data name="d" id="1" type="varText" presence="constant"/>"#,
            Error,
            "<data> cannot be constant",
        ),
        (
            r#"<data name="d" id="1" type="uint8"/>"#,
            Error,
            "type uint8 is a simple type, but a composite is required",
        ),
        (
            r#"<group name="g" id="1" blockLength="70000"/>"#,
            Error,
            "a block of 70000 does not fit into blockLength of groupSizeEncoding, whose maximum is 65534",
        ),
    ]);
}

#[test]
fn frames() {
    let dimensions = |count: &str| {
        format!(
            r#"<composite name="dims"><type name="blockLength" primitiveType="uint16"/>{count}</composite>"#
        )
    };
    let group =
        r#"<message name="M" id="1"><group name="g" id="1" dimensionType="dims"/></message>"#;
    for (count, severity, expected) in [
        (
            "",
            Error,
            "composite dims needs a member numInGroup to be used as the dimensions of a group",
        ),
        (
            r#"<type name="numInGroup" primitiveType="float"/>"#,
            Error,
            "numInGroup cannot be encoded as float, only as one unsigned integer, or a signed one with a minValue of 0 \
             or more",
        ),
        (
            r#"<type name="numInGroup" primitiveType="int8" minValue="0"/>"#,
            Warning,
            "the standard requires uint8 or uint16 for numInGroup of a group, not int8",
        ),
        (
            r#"<type name="numInGroup" primitiveType="uint8" length="2"/>"#,
            Error,
            "numInGroup cannot be encoded as 2 of uint8, only as one unsigned integer, or a signed one with a minValue \
             of 0 or more",
        ),
        (
            r#"<type name="numInGroup" primitiveType="uint8" presence="constant">1</type>"#,
            Error,
            "numInGroup cannot be constant",
        ),
    ] {
        one(&dimensions(count), group, severity, expected);
    }
    let data = r#"<message name="M" id="1"><data name="d" id="1" type="blob"/></message>"#;
    for (members, severity, expected) in [
        (
            r#"<type name="varData" primitiveType="uint8"/>"#,
            Error,
            "composite blob needs a member length to be used as the encoding of data",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/>"#,
            Error,
            "composite blob needs a member varData to be used as the encoding of data",
        ),
        (
            r#"<type name="length" primitiveType="uint8" presence="constant">1</type>
               <type name="varData" primitiveType="uint8"/>"#,
            Error,
            "length cannot be constant",
        ),
        (
            r#"<type name="length" primitiveType="uint32"/><type name="varData" primitiveType="uint8"/>"#,
            Warning,
            "length of blob has no maxValue; the official tool rejects uint32 without a maxValue of at most 2147483647",
        ),
        (
            r#"<type name="length" primitiveType="int8"/><type name="varData" primitiveType="uint8"/>"#,
            Error,
            "length cannot be encoded as int8, only as one unsigned integer",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/><type name="varData" primitiveType="uint16"/>"#,
            Error,
            "varData cannot be encoded as uint16, only as char, uint8 or int8",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/><type name="varData" primitiveType="uint8"/>
               <type name="more" primitiveType="uint8"/>"#,
            Warning,
            "more after varData in composite blob has no effect",
        ),
        (
            r#"<type name="varData" primitiveType="uint8" length="0"/><type name="length" primitiveType="uint8"/>"#,
            Error,
            "length follows varData in composite blob; it must precede it",
        ),
    ] {
        let types = format!(r#"<composite name="blob">{members}</composite>"#);
        one(&types, data, severity, expected);
    }
}

#[test]
fn messages_and_versions() {
    for (messages, severity, expected) in [
        ("", Warning, "there are no messages"),
        (
            r#"<message name="M" id="1"/><message name="N" id="1"/>"#,
            Error,
            "message id 1 is already defined at :21:1",
        ),
        (
            r#"<message name="M" id="1"/><message name="M" id="2"/>"#,
            Error,
            "message M is already defined at :21:1",
        ),
        (
            r#"<message name="M" id="65535"/>"#,
            Error,
            "the id 65535 does not fit into templateId of messageHeader, whose maximum is 65534",
        ),
        (
            r#"<message name="M" id="1" blockLength="65535"/>"#,
            Error,
            "a block of 65535 does not fit into blockLength of messageHeader, whose maximum is 65534",
        ),
        (
            r#"<message name="M" id="1" sinceVersion="4"/>"#,
            Error,
            "sinceVersion 4 is beyond the schema's version 3",
        ),
        (
            r#"<message name="M" id="1" deprecated="4"/>"#,
            Warning,
            "deprecated in version 4, beyond the schema's version 3",
        ),
        (
            r#"<message name="M" id="1" sinceVersion="3" deprecated="2"/>"#,
            Warning,
            "deprecated in version 2, before it was introduced in 3",
        ),
        (
            r#"<message name="M" id="1"><field name="f" id="1" type="uint8" sinceVersion="2"/>
               <field name="g" id="2" type="uint8" sinceVersion="1"/></message>"#,
            Warning,
            "g was introduced in version 1, but follows f of version 2: older readers confuse them",
        ),
    ] {
        one("", messages, severity, expected);
    }
    types(&[
        (
            r#"<enum name="E" encodingType="uint8"><validValue name="A" sinceVersion="9">1</validValue></enum>"#,
            Error,
            "sinceVersion 9 is beyond the schema's version 3",
        ),
        (
            r#"<composite name="C" sinceVersion="1"><type name="a" primitiveType="int8"/>
               <type name="b" primitiveType="int8" sinceVersion="2"/></composite>"#,
            Warning,
            "b was added in version 2 to composite C of version 1: composites cannot be extended, and blocks of older messages \
             are too short for it; add a separate field instead",
        ),
    ]);
}

#[test]
fn group_and_data_counts_exceeding_slots_are_reported() {
    let dimensions = r#"<composite name="Dims"><type name="blockLength" primitiveType="uint16"/>
        <type name="numInGroup" primitiveType="uint16"/><type name="numGroups" primitiveType="uint8"/>
        <type name="numVarDataFields" primitiveType="uint8"/></composite>"#;
    let many = |element: &str, count: usize| -> String {
        let rest = if element == "data" {
            r#" type="varText""#
        } else {
            ""
        };
        (0..count)
            .map(|at| format!(r#"<{element} name="n{at}" id="{at}"{rest}/>"#))
            .collect()
    };
    for (element, what) in [
        (
            "group",
            "the number of groups 255 does not fit into numGroups",
        ),
        (
            "data",
            "the number of data 255 does not fit into numVarDataFields",
        ),
    ] {
        let message = |count| {
            let many = many(element, count);
            format!(
                r#"<message name="M" id="1"><group name="g" id="1" dimensionType="Dims">{many}</group></message>"#
            )
        };
        crate::accepted(dimensions, &message(254));
        let expected = format!("{what} of Dims, whose maximum is 254");
        one(dimensions, &message(255), Error, &expected);
    }
}
