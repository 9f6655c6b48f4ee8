//! What a build script makes of schemas.

use std::fs;
use std::path::{Path, PathBuf};

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
fn schemas_with_points_in_their_names_become_files_of_their_own() {
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
