// SPDX-License-Identifier: Apache-2.0
//! Schemas that are accepted with a warning because the official tool accepts them, as it does in its own tests: where the
//! layouts are the same, and where the warning says that they are not.

use std::fs;
use std::path::Path;

use crate::official::{class_path, generate};

/// Returns a schema with a field of a composite for data between two others.
fn schema(package: &str, schema_id: &str, data: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
        <sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="{package}" id="910" version="0"><types>
            <composite name="messageHeader">
                <type name="blockLength" primitiveType="uint16"/>
                <type name="templateId" primitiveType="uint16"/>
                <type name="schemaId" primitiveType="uint16"{schema_id}
                <type name="version" primitiveType="uint16"/>
            </composite>
            <composite name="varDataEncoding">
                <type name="length" primitiveType="uint8"/>
                <type name="varData" primitiveType="char"/>
            </composite>
        </types>
        <sbe:message name="M" id="2">
            <field name="before" type="uint16" id="1"/>
            <field name="text" type="varDataEncoding" id="2"/>
            <field name="behind" type="uint16" id="3"/>
            {data}
        </sbe:message></sbe:messageSchema>"#
    )
}

/// Compares the lengths of header and block with those in the code of the official tool. Returns our warnings.
#[track_caller]
fn compare(name: &str, schema: &str, same_block: bool) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lenient-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("schema.xml");
    fs::write(&file, schema).unwrap();
    generate(&folder, &[file]).unwrap();
    let theirs = |class: &str| {
        let path = folder.join(name).join(format!("{class}Encoder.java"));
        fs::read_to_string(path).unwrap()
    };

    let ours = taran_sbe::compile("", &taran_sbe::xml::NoFiles(schema)).unwrap();
    let block = format!("BLOCK_LENGTH = {};", ours.schema.messages[0].block.length);
    assert_eq!(theirs("M").contains(&block), same_block, "{block}");
    let header = format!("ENCODED_LENGTH = {};", ours.schema.header.length);
    assert!(theirs("MessageHeader").contains(&header), "{header}");
    let warnings = ours.warnings.iter().map(ToString::to_string);
    warnings.collect::<Vec<_>>().join("\n")
}

#[test]
fn layout_of_a_field_of_a_data_composite_is_that_of_the_official_tool() {
    if class_path().is_none() {
        return;
    }
    let warnings = compare("field", &schema("field", "/>", ""), true);
    assert!(
        warnings.contains("varDataEncoding contains varData"),
        "{warnings}"
    );
}

#[test]
fn layout_differs_where_the_composite_is_of_data_too_and_the_warning_says_so() {
    if class_path().is_none() {
        return;
    }
    let data = r#"<data name="rest" type="varDataEncoding" id="4"/>"#;
    let warnings = compare("both", &schema("both", "/>", data), false);
    let expected = "if varDataEncoding is the type of <data>, too, the official tool places the members behind it elsewhere";
    assert!(warnings.contains(expected), "{warnings}");
}

#[test]
fn layout_with_another_constant_schema_id_is_that_of_the_official_tool() {
    if class_path().is_none() {
        return;
    }
    let constant = r#" presence="constant">7</type>"#;
    let warnings = compare("constant", &schema("constant", constant, ""), true);
    assert!(
        warnings.contains("the bytes are those of the official tool"),
        "{warnings}"
    );
}
