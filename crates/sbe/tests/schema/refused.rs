//! Everything that is wrong is told at once, each with its place.

use taran_sbe::problem::Severity;
use taran_sbe::problem::Severity::{Error, Warning};
use taran_sbe::xml::NoFiles;
use taran_sbe::{Rejected, compile};

use crate::problems;

#[test]
fn all_errors_come_in_one_run_with_line_and_column() {
    let found = problems(
        r#"<type name="A" primitiveType="uint9"/>
<type name="B" primitiveType="uint8" nullValue="9"/>
  <enum name="C" encodingType="uint8"><validValue name="X">300</validValue></enum>"#,
        r#"<sbe:message name="M" id="1"><field name="f" id="1" type="Nowhere"/></sbe:message>"#,
    );
    let told: Vec<_> = found
        .iter()
        .map(|found| {
            let text = found.to_string();
            // The name of a text that is no file is empty.
            text.trim_start_matches(':').to_owned()
        })
        .collect();
    assert_eq!(
        told,
        [
            "19:16: error: primitiveType=\"uint9\" is not char, int8, int16, int32, int64, uint8, uint16, uint32, \
             uint64, float or double",
            "20:38: warning: nullValue is given, but presence is not optional",
            "21:39: error: X=\"300\" is not a value of uint8",
            "23:30: error: there is no type Nowhere",
        ]
    );
}

/// These types and a message without any field have one problem, and it says this.
fn types(cases: &[(&str, Severity, &str)]) {
    for (types, severity, expected) in cases {
        one(types, r#"<message name="M" id="1"/>"#, *severity, expected);
    }
}

/// A message with this in it has one problem, and it says this.
fn fields(cases: &[(&str, Severity, &str)]) {
    for (fields, severity, expected) in cases {
        let message = format!(r#"<message name="M" id="1">{fields}</message>"#);
        one(TYPES, &message, *severity, expected);
    }
}

fn one(types: &str, messages: &str, severity: Severity, expected: &str) {
    let found = problems(types, messages);
    let [found] = found.as_slice() else {
        panic!("{types}{messages}: {found:#?}")
    };
    assert_eq!(found.severity(), severity, "{found}");
    assert_eq!(found.problem.to_string(), expected);
}

const TYPES: &str = r#"<enum name="E" encodingType="uint8"><validValue name="A">1</validValue></enum>
<type name="Always" primitiveType="uint8" presence="constant">3</type>
<type name="Price" primitiveType="int64" semanticType="Price"/>"#;

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
            "\"A B\" is not a name by the standard: letters, digits and _, at most 64, no digit first",
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
            r#"<type name="A" primitiveType="uint8" length="0"/>"#,
            Warning,
            "length 0: nothing of it is ever sent",
        ),
        (
            r#"<type name="uint8" primitiveType="uint16"/>"#,
            Warning,
            "type uint8 replaces the primitive of that name",
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
            "it is constant, but has no value",
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
            "there is no type E",
        ),
    ]);
    fields(&[
        (
            r#"<field name="f" id="1" type="E" presence="constant"/>"#,
            Error,
            "it is constant, but has no value",
        ),
        (
            r#"<field name="f" id="1" type="uint8" presence="constant"/>"#,
            Error,
            "it is constant, but has no value",
        ),
        (
            r#"<field name="f" id="1" type="E" presence="constant" valueRef="E.X"/>"#,
            Error,
            "enumeration E has no value X",
        ),
        (
            r#"<field name="f" id="1" type="uint8" presence="constant" valueRef="Price.X"/>"#,
            Error,
            "type Price is a simple type, where an enumeration is needed",
        ),
        (
            r#"<field name="f" id="1" type="int8" presence="constant" valueRef="E.A"/>"#,
            Error,
            "valueRef names a value of E, which is sent as uint8, but f is int8",
        ),
        (
            r#"<field name="f" id="1" type="E" valueRef="E.A"/>"#,
            Warning,
            "valueRef is given, but presence is not constant",
        ),
        (
            r#"<field name="f" id="1" type="Always" presence="optional"/>"#,
            Warning,
            "the type is constant, whatever the field says of its presence",
        ),
        (
            r#"<field name="f" id="1" type="Price" semanticType="Qty"/>"#,
            Warning,
            "semanticType is Qty, but that of the type is Price",
        ),
    ]);
}

#[test]
fn enumerations_and_sets() {
    types(&[
        (
            r#"<enum name="E" encodingType="float"/>"#,
            Error,
            "an enumeration cannot be sent as float, only as char or an integer",
        ),
        (
            r#"<enum name="E" encodingType="Nowhere"/>"#,
            Error,
            "there is no type Nowhere",
        ),
        (
            r#"<type name="T" primitiveType="uint8" length="2"/><enum name="E" encodingType="T"/>"#,
            Error,
            "type T is an array, where a single value is needed",
        ),
        (
            r#"<enum name="E" encodingType="uint8"><validValue name="A">255</validValue></enum>"#,
            Warning,
            "A has the value 255, which stands for null",
        ),
        (
            r#"<enum name="E" encodingType="uint8" nullValue="1"><validValue name="A">1</validValue></enum>"#,
            Warning,
            "A has the value 1, which stands for null",
        ),
        (
            r#"<type name="T" primitiveType="uint8" maxValue="9"/>
               <enum name="E" encodingType="T"><validValue name="A">10</validValue></enum>"#,
            Error,
            "A has the value 10, outside of 0 to 9",
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
            r#"<set name="S" encodingType="int8"/>"#,
            Error,
            "a set cannot be sent as int8, only as an unsigned integer",
        ),
        (
            r#"<set name="S" encodingType="uint8"><choice name="a">8</choice></set>"#,
            Error,
            "a is bit 8, but uint8 has 8",
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
            "there is no type Nowhere",
        ),
        (
            r#"<composite name="C"><type name="a" primitiveType="uint32"/>
               <type name="b" primitiveType="uint8" offset="3"/></composite>"#,
            Error,
            "offset 3 of b is inside of what comes before it, which ends at 4",
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
            "offset 3 of g is inside of what comes before it, which ends at 4",
        ),
        (
            r#"<field name="f" id="1" type="uint32"/><field name="g" id="2" type="uint8" offset="0"/>"#,
            Warning,
            "offset 0 of g is taken for none, as 4 bytes come before it",
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
            "blockLength 1 is too short for the fields, which take 2",
        ),
        (
            r#"<group name="g" id="1" dimensionType="E"/>"#,
            Error,
            "type E is an enumeration, where a composite is needed",
        ),
        (
            r#"<field name="f" id="1" type="varText"/>"#,
            Error,
            "composite varText holds varData and is for <data> only",
        ),
        (
            r#"<data name="d" id="1" type="varText" presence="optional"/>"#,
            Error,
            "<data> cannot be optional",
        ),
        (
            r#"<data name="d" id="1" type="uint8"/>"#,
            Error,
            "type uint8 is a simple type, where a composite is needed",
        ),
        (
            r#"<group name="g" id="1" blockLength="70000"/>"#,
            Error,
            "a block of 70000 does not fit into blockLength of groupSizeEncoding, which goes up to 65534",
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
            "composite dims needs a member numInGroup to be the dimensions of a group",
        ),
        (
            r#"<type name="numInGroup" primitiveType="float"/>"#,
            Error,
            "numInGroup cannot be sent as float, only as one unsigned integer, or a signed one with a minValue of 0 \
             or more",
        ),
        (
            r#"<type name="numInGroup" primitiveType="int8" minValue="0"/>"#,
            Warning,
            "numInGroup of a group should by the standard be sent as uint8 or uint16, not int8",
        ),
        (
            r#"<type name="numInGroup" primitiveType="uint8" length="2"/>"#,
            Error,
            "numInGroup cannot be sent as 2 of uint8, only as one unsigned integer, or a signed one with a minValue \
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
            "composite blob needs a member length to be the encoding of data",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/>"#,
            Error,
            "composite blob needs a member varData to be the encoding of data",
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
            "length of blob has no maxValue; the official tool refuses uint32 without one of at most 2147483647",
        ),
        (
            r#"<type name="length" primitiveType="int8"/><type name="varData" primitiveType="uint8"/>"#,
            Error,
            "length cannot be sent as int8, only as one unsigned integer",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/><type name="varData" primitiveType="uint16"/>"#,
            Error,
            "varData cannot be sent as uint16, only as char, uint8 or int8",
        ),
        (
            r#"<type name="length" primitiveType="uint8"/><type name="varData" primitiveType="uint8"/>
               <type name="more" primitiveType="uint8"/>"#,
            Warning,
            "more is of no use in composite blob, behind varData",
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
            "the id 65535 does not fit into templateId of messageHeader, which goes up to 65534",
        ),
        (
            r#"<message name="M" id="1" blockLength="65535"/>"#,
            Error,
            "a block of 65535 does not fit into blockLength of messageHeader, which goes up to 65534",
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
            "deprecated in version 2, before it came in 3",
        ),
        (
            r#"<message name="M" id="1"><field name="f" id="1" type="uint8" sinceVersion="2"/>
               <field name="g" id="2" type="uint8" sinceVersion="1"/></message>"#,
            Warning,
            "g came in version 1, but stands behind f of version 2: older readers take one for the other",
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
            "b came in version 2 into composite C of version 1: composites cannot be extended, and blocks of older messages \
             are too short for it; give it a field of its own",
        ),
    ]);
}

#[test]
fn what_is_no_schema_at_all() {
    for (text, expected) in [
        ("", ":1:1: error: "),
        ("<a>", ":1:"),
        ("<a/>", ":1:1: error: expected <messageSchema>, found <a>"),
        (
            "<messageSchema/>",
            ":1:1: error: <messageSchema> needs the attribute id",
        ),
        (
            "<messageSchema id=\"1\"/>",
            ":1:1: error: there is no type messageHeader",
        ),
        (
            "<messageSchema id=\"1\">\n<message name=\"A\" id=\"1\"/>\n<message name=\"A\" id=\"2\"/></messageSchema>",
            ":3:1: error: message A is already defined at :2:1",
        ),
        (
            "<messageSchema id=\"1\" byteOrder=\"middle\"/>",
            ":1:23: error: byteOrder=\"middle\" is not littleEndian or bigEndian",
        ),
    ] {
        let Err(Rejected { problems }) = compile("", &NoFiles(text)) else {
            panic!("{text}")
        };
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(
            told.iter().any(|told| told.starts_with(expected)),
            "{text}: {told:#?}"
        );
    }
}

#[test]
fn where_xml_is_broken_is_told_once() {
    let Err(Rejected { problems }) = compile("", &NoFiles("<a>\n</b>")) else {
        panic!("it is no XML")
    };
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(told, [":2:1: error: expected 'a' tag, not 'b'"]);
}
