// SPDX-License-Identifier: Apache-2.0
//! Code generation in build scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use taran_sbe::build::Build;

const SCHEMA: &str = r#"<messageSchema package="orders" id="1" version="0"><types>
    <composite name="messageHeader">
        <type name="blockLength" primitiveType="uint16"/>
        <type name="templateId" primitiveType="uint16"/>
        <type name="schemaId" primitiveType="uint16"/>
        <type name="version" primitiveType="uint16"/>
    </composite></types>
    <message name="M" id="1"/></messageSchema>"#;

#[test]
fn build_schema_names_with_dots_map_to_distinct_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas-with-points");
    fs::create_dir_all(&folder).unwrap();
    let mut build = Build::new().out(&folder).quiet();
    for version in ["v1", "v2"] {
        let schema = folder.join(format!("orders.{version}.xml"));
        fs::write(&schema, SCHEMA).unwrap();
        build = build.schema(schema);
    }
    let made = build
        .schema_as(folder.join("orders.v1.xml"), "orders.old")
        .run()
        .unwrap();
    let expected: Vec<PathBuf> = ["orders.v1.rs", "orders.v2.rs", "orders.old.rs"]
        .map(|name| folder.join(name))
        .into();
    assert_eq!(made, expected);
    for file in made {
        assert!(fs::read_to_string(file).unwrap().contains("pub mod m {"));
    }
}

/// Helper of the following test, which runs it to capture its output.
#[test]
#[ignore = "run by the following test, which captures its output"]
fn build_schema_containing_cargo_instructions() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions");
    fs::create_dir_all(&folder).unwrap();
    let include = r#"<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="no&#10;cargo::rustc-env=THREE=3.xml">
        <xi:fallback/></xi:include>"#;
    let text = SCHEMA
        .replace(
            "name=\"M\"",
            "name=\"M&#10;cargo::rustc-env=ONE=1&#13;cargo:rustc-env=TWO=2\"",
        )
        .replace("</messageSchema>", &format!("{include}</messageSchema>"));
    let schema = folder.join("schema.xml");
    fs::write(&schema, text).unwrap();
    Build::new().out(&folder).schema(schema).run().unwrap();
}

#[test]
fn build_escapes_cargo_instructions_of_schema() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "build_schema_containing_cargo_instructions"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let reported = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{reported}");
    let lines = || reported.split(['\n', '\r']);
    for part in ["warning=", "rerun-if-changed="] {
        let is_reported =
            |line: &str| line.contains(&format!("cargo::{part}")) && line.contains('?');
        assert!(lines().any(is_reported), "{part} in {reported}");
    }
    let instructs =
        |line: &str| ["cargo:rustc", "cargo::rustc"].map(|start| line.starts_with(start));
    assert!(
        !lines().any(|line| instructs(line).contains(&true)),
        "{reported}"
    );
}
