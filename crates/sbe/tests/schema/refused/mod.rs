// SPDX-License-Identifier: Apache-2.0
//! All problems are reported in one pass, each with its position.

mod customs;
mod messages;
mod types;

use taran_sbe::problem::{Diagnostic, Severity};
use taran_sbe::xml::NoFiles;
use taran_sbe::{Rejected, compile};

use crate::problems;

/// Checks that each of these types has exactly one problem, with this severity and text.
fn types(cases: &[(&str, Severity, &str)]) {
    for (types, severity, expected) in cases {
        one(types, r#"<message name="M" id="1"/>"#, *severity, expected);
    }
}

/// Checks that a message with this content has exactly one problem.
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
fn all_errors_are_reported_with_line_and_column() {
    let found = problems(
        r#"<type name="A" primitiveType="uint9"/>
<type name="B" primitiveType="uint8" nullValue="9"/>
  <enum name="C" encodingType="uint8"><validValue name="X">300</validValue></enum>"#,
        r#"<sbe:message name="M" id="1"><field name="f" id="1" type="Nowhere"/></sbe:message>"#,
    );
    let reported: Vec<_> = found
        .iter()
        .map(|found| {
            let text = found.to_string();
            // A text without a file has an empty name.
            text.trim_start_matches(':').to_owned()
        })
        .collect();
    assert_eq!(
        reported,
        [
            "19:16: error: primitiveType=\"uint9\" is not char, int8, int16, int32, int64, uint8, uint16, uint32, \
             uint64, float or double",
            "20:38: warning: nullValue is given, but presence is not optional",
            "21:39: error: X=\"300\" is not a value of uint8",
            "23:30: error: unknown type Nowhere",
        ]
    );
}

#[test]
fn errors_do_not_mask_each_other() {
    let found = problems(
        r#"<type name="A" primitiveType="uint8"/>
<type name="A" primitiveType="uint9"/>
<type primitiveType="uint10"/>
<composite name="C"><type name="x" primitiveType="uint32"/><type name="y" primitiveType="uint8" offset="2"/>
<ref name="z" type="None"/></composite>
<set name="S" encodingType="int8"><choice name="a">9</choice></set>"#,
        r#"<sbe:message name="M" id="1">
<field name="a" id="1" type="Nope"/>
<field name="b" id="1" type="uint32"/>
<field name="a" id="3" type="uint16" offset="1"/>
<field name="d" id="4" type="Nor"/>
</sbe:message>
<sbe:message name="M" id="1"/>"#,
    );
    reported(
        &found,
        &[
            (0, "type A is already defined"),
            (0, "primitiveType=\"uint9\" is not"),
            (1, "<type> needs the attribute name"),
            (1, "primitiveType=\"uint10\" is not"),
            (2, "offset 2 of y overlaps"),
            (3, "unknown type None"),
            (4, "a set cannot be encoded as int8"),
            (4, "a is bit 9, but int8 has 8 bits"),
            (7, "unknown type Nope"),
            (8, "id 1 is already defined"),
            (9, "offset 1 of a overlaps"),
            (9, "name a is already defined"),
            (10, "unknown type Nor"),
            (12, "message M is already defined"),
            (12, "message id 1 is already defined"),
        ],
    );
}

/// Checks that exactly these problems are found, at these lines counted from the first.
fn reported(found: &[Diagnostic], expected: &[(u32, &str)]) {
    let reported: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{reported:#?}");
    let first = found[0].position.line;
    for (found, (line, text)) in found.iter().zip(expected) {
        let problem = found.problem.to_string();
        assert_eq!(
            (found.position.line - first, problem.starts_with(text)),
            (*line, true),
            "{text}: {reported:#?}"
        );
    }
}

#[test]
fn invalid_type_does_not_mask_nested_errors() {
    let found = problems(
        r#"<enum name="A" encodingType="None"><validValue name="x">1</validValue>
<validValue name="x">2</validValue><validValue sinceVersion="9">3</validValue></enum>
<enum name="B" encodingType="float" offset="o"><validValue name="x">1</validValue>
<validValue name="x">2</validValue></enum>
<enum name="C" encodingType="uint8"><validValue>300</validValue>
<validValue name="x">1</validValue>
<validValue name="x">1</validValue></enum>
<set name="D" encodingType="None"><choice name="x">1</choice>
<choice name="x">70</choice></set>
<type name="F" primitiveType="None" length="l"
 presence="p" offset="o" sinceVersion="9"/>
<type name="G" primitiveType="None" presence="constant" valueRef="C.y"/>
<type name="H" primitiveType="None" presence="constant"/>
<type name="I" primitiveType="char" presence="constant" length="l">abc</type>
<composite name="J"><ref name="x" type="None" offset="o"/>
<type name="y" primitiveType="None"/><type name="y" primitiveType="uint8"/></composite>"#,
        r#"<message name="M" id="1"/>"#,
    );
    reported(
        &found,
        &[
            (0, "unknown type None"),
            (1, "value x is already defined"),
            (1, "sinceVersion 9 is beyond the schema's version 3"),
            (1, "<validValue> needs the attribute name"),
            (2, "an enumeration cannot be encoded as float"),
            (2, "offset=\"o\" is not"),
            (3, "value x is already defined"),
            (4, "<validValue> needs the attribute name"),
            (4, "?=\"300\" is not a value of uint8"),
            (6, "value x is already defined"),
            (6, "value 1 is already defined"),
            (7, "unknown type None"),
            (8, "x=\"70\" is not the number of a bit, from 0 to 63"),
            (8, "choice x is already defined"),
            (9, "sinceVersion 9 is beyond the schema's version 3"),
            (9, "primitiveType=\"None\" is not"),
            (9, "length=\"l\" is not"),
            (10, "presence=\"p\" is not"),
            (10, "offset=\"o\" is not"),
            (11, "enumeration C has no value y"),
            (11, "primitiveType=\"None\" is not"),
            (12, "constant without a value"),
            (12, "primitiveType=\"None\" is not"),
            (13, "length=\"l\" is not"),
            (14, "unknown type None"),
            (14, "offset=\"o\" is not"),
            (15, "primitiveType=\"None\" is not"),
            (15, "member y is already defined"),
        ],
    );
}

#[test]
fn invalid_message_does_not_mask_nested_errors() {
    let found = problems(
        r#"<enum name="E" encodingType="uint8"><validValue name="A">1</validValue></enum>"#,
        r#"<message name="M" id="x" sinceVersion="9">
<field name="a" id="1" type="uint32"/>
<field name="b" id="2" type="None" offset="o" valueRef="E.B"/>
<field name="c" id="3" type="None" offset="2" sinceVersion="12"/>
<field name="d" id="x" type="uint8" offset="8"/>
<field name="e" id="5" type="uint8" offset="8" presence="p" valueRef="E.A"/>
<group name="g" id="6" dimensionType="None"><field name="f" id="7" type="uint8" sinceVersion="3"/>
<field name="h" id="8" type="uint8" sinceVersion="2"/></group>
</message>
<message name="M" id="70000" blockLength="b"/>
<message id="70000"/>"#,
    );
    reported(
        &found,
        &[
            (0, "sinceVersion 9 is beyond the schema's version 3"),
            (0, "id=\"x\" is not"),
            (2, "unknown type None"),
            (2, "enumeration E has no value B"),
            (2, "offset=\"o\" is not"),
            (3, "sinceVersion 12 is beyond the schema's version 3"),
            (3, "unknown type None"),
            (3, "offset 2 of c overlaps"),
            (4, "id=\"x\" is not"),
            (5, "offset 8 of e overlaps"),
            (5, "presence=\"p\" is not"),
            (6, "unknown type None"),
            (
                7,
                "h was introduced in version 2, but follows f of version 3",
            ),
            (9, "message M is already defined"),
            (9, "the id 70000 does not fit into templateId"),
            (9, "blockLength=\"b\" is not"),
            (10, "<message> needs the attribute name"),
            (10, "message id 70000 is already defined"),
            (10, "the id 70000 does not fit into templateId"),
        ],
    );
}

#[test]
fn invalid_member_is_not_reported_as_missing() {
    let message = r#"<message name="M" id="1"><group name="g" id="1"/><data name="d" id="2" type="varText"/></message>"#;
    let whole = crate::text("", message);
    let version = r#"<type name="version" primitiveType="uint16"/>"#;
    for (from, to, expected) in [
        (
            version,
            r#"<type name="version" primitiveType="uint9"/>"#,
            "primitiveType=\"uint9\" is not",
        ),
        (
            version,
            r#"<ref name="version" type="None"/>"#,
            "unknown type None",
        ),
        (
            version,
            r#"<type primitiveType="uint16"/>"#,
            "<type> needs the attribute name",
        ),
        (
            version,
            r#"<type name="" primitiveType="uint16"/>"#,
            "name=\"\" is not a text",
        ),
        (
            version,
            r#"<field name="version" type="uint16"/>"#,
            "<field> cannot be in a composite",
        ),
        (
            r#"<type name="numInGroup" primitiveType="uint16"/>"#,
            r#"<type name="numInGroup" primitiveType="uint16" minValue="x"/><type name="other" primitiveType="uint9"/>"#,
            "minValue=\"x\" is not",
        ),
        (
            r#"<type name="numInGroup" primitiveType="uint16"/>"#,
            r#"<enum name="numInGroup" encodingType="float"/>"#,
            "an enumeration cannot be encoded as float",
        ),
        (
            r#"<type name="varData" primitiveType="uint8""#,
            r#"<type name="varData" primitiveType="uint9""#,
            "primitiveType=\"uint9\" is not",
        ),
    ] {
        assert_eq!(whole.matches(from).count(), 1, "{from}");
        let Err(Rejected { problems }) = compile("", &NoFiles(&whole.replace(from, to))) else {
            panic!("{to} is accepted")
        };
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(
            reported.iter().any(|reported| reported.contains(expected)),
            "{to}: {reported:#?}"
        );
        assert!(
            !reported
                .iter()
                .any(|reported| reported.contains("needs a member")),
            "{to}: {reported:#?}"
        );
    }
    // A missing member is reported in addition to an invalid one.
    let none = whole.replace(
        version,
        r#"<type name="schemaVersion" primitiveType="uint9"/>"#,
    );
    let Err(Rejected { problems }) = compile("", &NoFiles(&none)) else {
        panic!("it has no version")
    };
    let reported: Vec<_> = problems
        .iter()
        .map(|found| found.problem.to_string())
        .collect();
    assert!(
        reported.contains(
            &"composite messageHeader needs a member version to be used as the message header"
                .to_owned()
        ),
        "{reported:#?}"
    );
}

#[test]
fn invalid_schema_version_suppresses_since_version_checks() {
    let text = crate::text("", r#"<message name="M" id="1" sinceVersion="2"/>"#);
    let text = text.replace("version=\"3\"", "version=\"three\"");
    let Err(Rejected { problems }) = compile("", &NoFiles(&text)) else {
        panic!("its version is no number")
    };
    reported(&problems, &[(0, "version=\"three\" is not")]);
}

#[test]
fn non_schema_input_is_rejected() {
    for (text, expected) in [
        ("", ":1:1: error: "),
        ("<a>", ":1:1: error: <a> is never closed"),
        ("<a/>", ":1:1: error: expected <messageSchema>, found <a>"),
        (
            "<messageSchema/>",
            ":1:1: error: <messageSchema> needs the attribute id",
        ),
        (
            "<messageSchema id=\"1\"/>",
            ":1:1: error: unknown type messageHeader",
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
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(
            reported
                .iter()
                .any(|reported| reported.starts_with(expected)),
            "{text}: {reported:#?}"
        );
    }
}

#[test]
fn malformed_xml_is_reported_once() {
    for (text, expected) in [
        ("<a>\n</b>", ":2:1: error: expected 'a' tag, not 'b'"),
        ("<a>\n <b>\n  <c/>\n", ":2:2: error: <b> is never closed"),
        ("<a>\n <b></b>\n", ":1:1: error: <a> is never closed"),
        ("<a>\n <!-- <b>", ":2:10: error: expected '-->'"),
        ("<a>\n <b c=\"", ":2:8: error: unexpected end of stream"),
        (
            "<!-- nothing -->\n\n",
            ":3:1: error: the document does not have a root node",
        ),
    ] {
        let Err(Rejected { problems }) = compile("", &NoFiles(text)) else {
            panic!("{text} is no XML")
        };
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(reported, [expected], "{text}");
    }
}
