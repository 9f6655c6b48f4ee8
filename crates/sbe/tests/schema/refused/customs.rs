// SPDX-License-Identifier: Apache-2.0
//! Violations of the standard that leave the meaning clear: reported as warnings.

use super::{fields, one, types};
use crate::{FRAMES, text};
use taran_sbe::compile;
use taran_sbe::problem::Severity::Warning;
use taran_sbe::xml::NoFiles;

#[test]
fn ids_above_two_bytes_are_reported() {
    fields(&[
        (
            r#"<field name="f" id="65536" type="uint8"/>"#,
            Warning,
            "id 65536 of <field> is greater than 65535, the maximum of the standard",
        ),
        (
            r#"<group name="g" id="65536"/>"#,
            Warning,
            "id 65536 of <group> is greater than 65535, the maximum of the standard",
        ),
        (
            r#"<data name="d" id="70000" type="varText"/>"#,
            Warning,
            "id 70000 of <data> is greater than 65535, the maximum of the standard",
        ),
    ]);
    let field = r#"<message name="M" id="1"><field name="f" id="65535" type="uint8"/></message>"#;
    crate::accepted("", field);
    // Such a message id needs a wider header field, which is reported as well.
    let wide = |id: u32| {
        let message = format!(r#"<message name="M" id="{id}"/>"#);
        text("", &message).replacen(
            r#""templateId" primitiveType="uint16""#,
            r#""templateId" primitiveType="uint32""#,
            1,
        )
    };
    let unusual = "the standard requires uint16 for templateId of the message header, not uint32";
    assert_eq!(warnings(&wide(65_535)), [unusual]);
    assert_eq!(
        warnings(&wide(65_536)),
        [
            unusual,
            "id 65536 of <message> is greater than 65535, the maximum of the standard"
        ]
    );
}

#[test]
fn empty_containers_are_reported() {
    for (types, element) in [
        (r#"<enum name="E" encodingType="uint8"/>"#, "enum"),
        (r#"<set name="S" encodingType="uint8"/>"#, "set"),
        (r#"<composite name="C"/>"#, "composite"),
        ("</types><types>", "types"),
    ] {
        let expected = format!("<{element}> is empty, which the standard does not allow");
        let message = r#"<message name="M" id="1"/>"#;
        if element == "types" {
            // Two problems with one cause.
            let found = crate::problems(types, message);
            let reported: Vec<_> = found
                .iter()
                .map(|found| found.problem.to_string())
                .collect();
            assert_eq!(reported, [expected.clone(), expected]);
        } else {
            one(types, message, Warning, &expected);
        }
    }
}

#[test]
fn constants_violating_type_are_reported() {
    types(&[
        (
            r#"<type name="A" primitiveType="uint8" presence="constant" minValue="9" maxValue="10">200</type>"#,
            Warning,
            "the constant 200 is outside its range, 9 to 10",
        ),
        (
            r#"<type name="A" primitiveType="double" presence="constant" minValue="0" maxValue="1">-0.5</type>"#,
            Warning,
            "the constant -0.5 is outside its range, 0 to 1",
        ),
        (
            r#"<type name="A" primitiveType="uint8" presence="constant" length="2">5</type>"#,
            Warning,
            "the constant is a single value, but length is 2; the length is ignored",
        ),
    ]);
    // Without an explicit range, any value is allowed, including 255.
    let types = r#"<type name="A" primitiveType="uint8" presence="constant">255</type>
        <type name="B" primitiveType="uint8" presence="constant" minValue="9" maxValue="10">10</type>"#;
    crate::accepted(types, r#"<message name="M" id="1"/>"#);
}

#[test]
fn unknown_character_encoding_is_reported() {
    types(&[
        (
            r#"<type name="A" primitiveType="char" length="4" characterEncoding="UTF-9"/>"#,
            Warning,
            "characterEncoding UTF-9 is unknown: texts are shown as bytes, and official codecs may fail",
        ),
        (
            r#"<composite name="C"><type name="length" primitiveType="uint8"/>
               <type name="varData" primitiveType="uint8" length="0" characterEncoding="klingon"/></composite>"#,
            Warning,
            "characterEncoding klingon is unknown: texts are shown as bytes, and official codecs may fail",
        ),
    ]);
    for name in [
        "",
        "UTF-8",
        "utf8",
        "US-ASCII",
        "iso_8859_1",
        "windows-1252",
        "Shift_JIS",
        "GB18030",
        "UTF-16LE",
        "Cp037",
    ] {
        let types = format!(
            r#"<type name="A" primitiveType="char" length="4" characterEncoding="{name}"/>"#
        );
        crate::accepted(&types, r#"<message name="M" id="1"/>"#);
    }
}

#[test]
fn missing_package_or_version_and_late_types_are_reported() {
    let schema = |attributes: &str, rest: &str| {
        format!(
            "<messageSchema id=\"1\"{attributes}>{FRAMES}<message name=\"M\" id=\"1\"/>{rest}</messageSchema>"
        )
    };
    let types = r#"<types><type name="T" primitiveType="uint8"/></types>"#;
    for (text, expected) in [
        (
            schema(" package=\"a\"", ""),
            "<messageSchema> has no version, which the standard requires; 0 is assumed",
        ),
        (
            schema(" version=\"0\"", ""),
            "<messageSchema> has no package, which the standard and the official tool require",
        ),
        (
            schema(" version=\"0\" package=\" \"", ""),
            "<messageSchema> has no package, which the standard and the official tool require",
        ),
        (
            schema(" version=\"0\" package=\"a\"", types),
            "<types> comes after <message>; the standard requires types first",
        ),
        (
            schema(" version=\"0\" package=\"a\"", "what?"),
            "text has no meaning in <messageSchema> and is ignored",
        ),
    ] {
        assert_eq!(warnings(&text), [expected], "{text}");
    }
    fields(&[(
        "what?",
        Warning,
        "text has no meaning in <message> and is ignored",
    )]);
}

#[test]
fn foreign_namespaces_are_ignored() {
    fields(&[(
        r#"<field name="f" id="1" type="uint8"/><x:field xmlns:x="urn:x" name="f" id="1" type="None"><y/></x:field>"#,
        Warning,
        "<field> belongs to urn:x and is ignored",
    )]);
    types(&[(
        r#"<type name="T" primitiveType="uint8"/><x:type xmlns:x="urn:x" name="T" primitiveType="None"/>"#,
        Warning,
        "<type> belongs to urn:x and is ignored",
    )]);
    // Without namespace, in that of the schema, or in that of another edition of SBE.
    for (root, message) in [
        ("", ""),
        ("urn:mine", ""),
        ("urn:mine", "urn:mine"),
        ("", "http://fixprotocol.io/2016/sbe"),
        (
            "http://fixprotocol.io/2016/sbe",
            "http://www.fixprotocol.org/ns/simple/1.0",
        ),
    ] {
        let qualified = |uri: &str, element: &str| match uri {
            "" => (element.to_owned(), element.to_owned()),
            uri => (
                format!("n:{element} xmlns:n=\"{uri}\""),
                format!("n:{element}"),
            ),
        };
        let (start, end) = qualified(root, "messageSchema");
        let (open, close) = qualified(message, "message");
        let text = format!(
            "<{start} package=\"a\" id=\"1\" version=\"0\">{FRAMES}<{open} name=\"M\" id=\"1\"></{close}></{end}>"
        );
        assert_eq!(warnings(&text), [""; 0], "{text}");
    }
}

fn warnings(text: &str) -> Vec<String> {
    let compiled = compile("", &NoFiles(text)).unwrap_or_else(|rejected| panic!("{rejected}"));
    let mut reported: Vec<_> = compiled
        .warnings
        .iter()
        .map(|found| {
            assert_eq!(found.severity(), Warning, "{found}");
            found.problem.to_string()
        })
        .collect();
    reported.dedup();
    reported
}
