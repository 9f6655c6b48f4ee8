// SPDX-License-Identifier: Apache-2.0
//! Problems of types.

use super::{fields, types};
use taran_sbe::problem::Severity::{Error, Warning};

#[test]
fn simple_types() {
    types(&[
        (
            r#"<type name="A"/>"#,
            Error,
            "<type> needs the attribute primitiveType",
        ),
        (
            r#"<type primitiveType="uint8"/>"#,
            Error,
            "<type> needs the attribute name",
        ),
        (
            r#"<type name="A B" primitiveType="uint8"/>"#,
            Warning,
            "\"A B\" is not a valid name: at most 64 letters, digits and _, not starting with a digit",
        ),
        (
            r#"<type name="A" primitiveType="uint8" presence="maybe"/>"#,
            Error,
            "presence=\"maybe\" is not required, optional or constant",
        ),
        (
            r#"<type name="A" primitiveType="uint8" colour="red"/>"#,
            Warning,
            "attribute colour has no meaning on <type> and is ignored",
        ),
        (
            r#"<thing name="A"/>"#,
            Warning,
            "<thing> has no meaning in <types> and is ignored",
        ),
        (
            r#"<type name="A" primitiveType="int8" minValue="5" maxValue="4"/>"#,
            Error,
            "minValue 5 is greater than maxValue 4",
        ),
        (
            r#"<type name="A" primitiveType="int8" maxValue="128"/>"#,
            Error,
            "maxValue=\"128\" is not a value of int8",
        ),
        (
            r#"<type name="A" primitiveType="char" presence="optional" nullValue="no"/>"#,
            Error,
            "nullValue=\"no\" is not a value of char",
        ),
        (
            r#"<type name="A" primitiveType="uint8" variableLength="true"/>"#,
            Error,
            "variableLength: only varData of a <data> composite has variable length, and it needs no variableLength",
        ),
        (
            r#"<composite name="A"><type name="B" primitiveType="uint8" variableLength="true"/></composite>"#,
            Error,
            "variableLength: only varData of a <data> composite has variable length, and it needs no variableLength",
        ),
        (
            r#"<type name="A" primitiveType="uint8" length="0"/>"#,
            Warning,
            "length 0: nothing is encoded",
        ),
        (
            r#"<type name="uint8" primitiveType="uint16"/>"#,
            Warning,
            "type uint8 redefines the primitive type of that name",
        ),
        (
            r#"<type name="A" primitiveType="uint8"/><type name="A" primitiveType="uint8"/>"#,
            Error,
            "type A is already defined at :19:1",
        ),
    ]);
}

#[test]
fn constants() {
    types(&[
        (
            r#"<type name="A" primitiveType="uint8" presence="constant"/>"#,
            Error,
            "constant without a value",
        ),
        (
            r#"<type name="A" primitiveType="uint8" presence="constant">x</type>"#,
            Error,
            "the constant=\"x\" is not a value of uint8",
        ),
        (
            r#"<type name="A" primitiveType="char" presence="constant" length="2">abc</type>"#,
            Error,
            "the constant has 3 characters, but length is 2",
        ),
        (
            r#"<type name="A" primitiveType="char" presence="constant">ü</type>"#,
            Error,
            "the constant=\"ü\" is not a text in US-ASCII",
        ),
        (
            r#"<type name="A" primitiveType="uint8" presence="constant" valueRef="E"/>"#,
            Error,
            "valueRef=\"E\" is not of the form enumeration.value",
        ),
        (
            r#"<type name="A" primitiveType="uint8" presence="constant" valueRef="E.X"/>"#,
            Error,
            "unknown type E",
        ),
    ]);
    fields(&[
        (
            r#"<field name="f" id="1" type="E" presence="constant"/>"#,
            Error,
            "constant without a value",
        ),
        (
            r#"<field name="f" id="1" type="uint8" presence="constant"/>"#,
            Error,
            "constant without a value",
        ),
        (
            r#"<field name="f" id="1" type="E" presence="constant" valueRef="E.X"/>"#,
            Error,
            "enumeration E has no value X",
        ),
        (
            r#"<field name="f" id="1" type="uint8" presence="constant" valueRef="Price.X"/>"#,
            Error,
            "type Price is a simple type, but an enumeration is required",
        ),
        (
            r#"<field name="f" id="1" type="int8" presence="constant" valueRef="E.A"/>"#,
            Error,
            "valueRef names a value of E, which is encoded as uint8, but f is int8",
        ),
        (
            r#"<field name="f" id="1" type="E" valueRef="E.A"/>"#,
            Warning,
            "valueRef is given, but presence is not constant",
        ),
        (
            r#"<field name="f" id="1" type="Always" presence="optional"/>"#,
            Warning,
            "the type is constant, so the presence of the field is ignored",
        ),
        (
            r#"<field name="f" id="1" type="Price" semanticType="Qty"/>"#,
            Warning,
            "semanticType is Qty, but the type has semanticType Price",
        ),
    ]);
}

#[test]
fn enumerations_and_sets() {
    types(&[
        (
            r#"<enum name="E" encodingType="float"><validValue name="A">1</validValue></enum>"#,
            Error,
            "an enumeration cannot be encoded as float, only as char or an integer",
        ),
        (
            r#"<enum name="E" encodingType="Nowhere"><validValue name="A">1</validValue></enum>"#,
            Error,
            "unknown type Nowhere",
        ),
        (
            r#"<type name="T" primitiveType="uint8" length="2"/><enum name="E" encodingType="T"><validValue name="A">1</validValue></enum>"#,
            Error,
            "type T is an array, but a single value is required",
        ),
        (
            r#"<enum name="E" encodingType="uint8"><validValue name="A">255</validValue></enum>"#,
            Warning,
            "A has the value 255, which is the null value",
        ),
        (
            r#"<enum name="E" encodingType="uint8" nullValue="1"><validValue name="A">1</validValue></enum>"#,
            Warning,
            "A has the value 1, which is the null value",
        ),
        (
            r#"<type name="T" primitiveType="uint8" maxValue="9"/>
               <enum name="E" encodingType="T"><validValue name="A">10</validValue></enum>"#,
            Error,
            "A has the value 10, outside the range 0 to 9",
        ),
        (
            r#"<enum name="E" encodingType="char"><validValue name="A">AB</validValue></enum>"#,
            Error,
            "A=\"AB\" is not a value of char",
        ),
        (
            r#"<enum name="E" encodingType="uint8"><validValue name="A">1</validValue>
               <validValue name="A">2</validValue></enum>"#,
            Error,
            "value A is already defined at :19:37",
        ),
        (
            r#"<enum name="E" encodingType="uint8"><validValue name="A">1</validValue>
               <validValue name="B">1</validValue></enum>"#,
            Error,
            "value 1 is already defined at :19:37",
        ),
        (
            r#"<set name="S" encodingType="int8"><choice name="a">1</choice></set>"#,
            Error,
            "a set cannot be encoded as int8, only as an unsigned integer",
        ),
        (
            r#"<set name="S" encodingType="uint8"><choice name="a">8</choice></set>"#,
            Error,
            "a is bit 8, but uint8 has 8 bits",
        ),
        (
            r#"<set name="S" encodingType="uint8"><choice name="a">x</choice></set>"#,
            Error,
            "a=\"x\" is not the number of a bit, from 0 to 7",
        ),
        (
            r#"<set name="S" encodingType="uint8"><choice name="a">1</choice><choice name="b">1</choice></set>"#,
            Warning,
            "b is the same bit as a",
        ),
        (
            r#"<set name="S" encodingType="uint8"><choice name="a">1</choice><choice name="a">2</choice></set>"#,
            Error,
            "choice a is already defined at :19:36",
        ),
    ]);
}

#[test]
fn composites() {
    types(&[
        (
            r#"<composite name="C"><ref name="a" type="Nowhere"/></composite>"#,
            Error,
            "unknown type Nowhere",
        ),
        (
            r#"<composite name="C"><type name="a" primitiveType="uint32"/>
               <type name="b" primitiveType="uint8" offset="3"/></composite>"#,
            Error,
            "offset 3 of b overlaps the preceding elements, which end at 4",
        ),
        (
            r#"<composite name="C"><type name="a" primitiveType="uint32"/>
               <type name="a" primitiveType="uint8"/></composite>"#,
            Error,
            "member a is already defined at :19:21",
        ),
        (
            r#"<composite name="C"><group name="a" id="1"/></composite>"#,
            Error,
            "<group> cannot be in a composite",
        ),
    ]);
}

#[test]
fn numbers_outside_type_range_are_rejected() {
    types(&[
        (
            r#"<type name="A" primitiveType="double" minValue="1e400"/>"#,
            Error,
            "minValue=\"1e400\" is not a value of double",
        ),
        (
            r#"<type name="A" primitiveType="double" maxValue="-1e400"/>"#,
            Error,
            "maxValue=\"-1e400\" is not a value of double",
        ),
        (
            r#"<type name="A" primitiveType="float" presence="optional" nullValue="1e39"/>"#,
            Error,
            "nullValue=\"1e39\" is not a value of float",
        ),
        (
            r#"<type name="A" primitiveType="float" presence="constant">3.5e38</type>"#,
            Error,
            "the constant=\"3.5e38\" is not a value of float",
        ),
        (
            r#"<type name="A" primitiveType="int8" minValue="-129"/>"#,
            Error,
            "minValue=\"-129\" is not a value of int8",
        ),
    ]);
    let found = crate::problems(
        "<type name=\"A\" primitiveType=\"double\"\n minValue=\"1e400\"/>",
        r#"<message name="M" id="1"/>"#,
    );
    let places: Vec<_> = found
        .iter()
        .map(|found| (found.position.line, found.position.column))
        .collect();
    assert_eq!(places, [(20, 2)]);
    // A written infinity is not an overflow.
    let types = r#"<type name="A" primitiveType="double" minValue="-INF" maxValue="inf"/>
        <type name="B" primitiveType="float" maxValue="3.4e38"/>
        <type name="C" primitiveType="float" presence="optional" nullValue="NaN"/>
        <type name="D" primitiveType="double" minValue="1e-400"/>"#;
    crate::accepted(types, r#"<message name="M" id="1"/>"#);
}

#[test]
fn constant_without_value_is_rejected() {
    types(&[
        (
            r#"<enum name="E" encodingType="uint8" presence="constant"><validValue name="A">1</validValue></enum>
               <composite name="C"><ref name="e" type="E"/></composite>"#,
            Error,
            "constant without a value",
        ),
        (
            r#"<composite name="C"><enum name="E" encodingType="uint8" presence="constant">
               <validValue name="A">1</validValue></enum></composite>"#,
            Error,
            "constant without a value",
        ),
        (
            r#"<composite name="C" presence="constant"><type name="a" primitiveType="uint8"/></composite>"#,
            Error,
            "a composite cannot be constant",
        ),
        (
            r#"<set name="S" encodingType="uint8" presence="constant"><choice name="a">0</choice></set>"#,
            Error,
            "a set cannot be constant",
        ),
        (
            r#"<set name="S" encodingType="uint8" presence="banana"><choice name="a">0</choice></set>"#,
            Error,
            "presence=\"banana\" is not required, optional or constant",
        ),
        (
            r#"<composite name="C" presence="banana"><type name="a" primitiveType="uint8"/></composite>"#,
            Error,
            "presence=\"banana\" is not required, optional or constant",
        ),
    ]);
    let types = r#"<composite name="C" presence="optional"><type name="a" primitiveType="uint8"/></composite>
        <set name="S" encodingType="uint8" presence="required"><choice name="a">0</choice></set>
        <enum name="E" encodingType="uint8" presence="constant"><validValue name="A">1</validValue></enum>"#;
    let field =
        r#"<message name="M" id="1"><field name="e" id="1" type="E" valueRef="E.A"/></message>"#;
    crate::accepted(types, field);
}

#[test]
fn constructs_rejected_by_official_tool_are_reported() {
    let of = |inside: &str| format!(r#"<composite name="D">{inside}</composite>"#);
    let length = r#"<type name="blockLength" primitiveType="uint16"/>"#;
    let count = |text: &str| of(&format!(r#"{length}<type name="numInGroup" {text}/>"#));
    let reported = |types: &str| {
        let message =
            r#"<message name="M" id="1"><group name="g" id="1" dimensionType="D"/></message>"#;
        let found = crate::problems(types, message);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (text, max) in [
        (r#"primitiveType="uint8" maxValue="255""#, "255"),
        (r#"primitiveType="uint16" maxValue="65535""#, "65535"),
    ] {
        let found = reported(&count(text));
        let [found] = found.as_slice() else {
            panic!("{found:#?}")
        };
        let expected = format!(
            "warning: maxValue {max} of numInGroup of D is the null value; the official tool rejects more than"
        );
        assert!(found.contains(&expected), "{found}");
    }
    for text in [
        r#"primitiveType="uint8" maxValue="254""#,
        r#"primitiveType="uint16" maxValue="65534""#,
    ] {
        assert_eq!(reported(&count(text)), [""; 0]);
    }
    for primitive in ["uint32", "int64", "uint64"] {
        let expected = format!(
            "an enumeration encoded as {primitive}: the official tool rejects it unless encodingType names a type defined in \
             the schema"
        );
        let direct = format!(
            r#"<enum name="E" encodingType="{primitive}"><validValue name="A">1</validValue></enum>"#
        );
        types(&[(&direct, Warning, &expected)]);
        let named = format!(r#"<type name="T" primitiveType="{primitive}"/>"#)
            + &direct.replace(primitive, "T");
        crate::accepted(&named, r#"<message name="M" id="1"/>"#);
    }
}

#[test]
fn data_composite_used_in_field_is_a_warning() {
    let types = r#"<composite name="X"><ref name="t" type="varText"/><type name="z" primitiveType="uint8"/></composite>
        <composite name="Y"><ref name="x" type="X"/></composite>"#;
    for (kind, length) in [("varText", 2), ("X", 3), ("Y", 3)] {
        let message =
            format!(r#"<message name="M" id="1"><field name="f" id="1" type="{kind}"/></message>"#);
        let expected = format!(
            "composite varText contains varData and is meant for <data>; the field has the fixed layout of its type, {length} \
             bytes, with no data behind it; if varText is the type of <data>, too, the official tool places the members behind it \
             elsewhere, so that the bytes differ"
        );
        super::one(types, &message, Warning, &expected);
    }
}
