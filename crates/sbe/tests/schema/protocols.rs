//! The schemas of the archive's and the cluster's protocols.

use std::path::Path;

use taran_sbe::compile_file;
use taran_sbe::describe::{Table, describe};
use taran_sbe::model::Schema;

fn protocol(name: &str) -> Schema {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let compiled = compile_file(&path).unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!(compiled.warnings, []);
    compiled.schema
}

fn offset(table: &Table, name: &str) -> Option<u32> {
    let row = table.rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("{} has {name}", table.name))
        .offset
}

#[test]
fn they_are_without_fault_and_of_the_version_that_is_spoken() {
    for (name, id, version, messages) in [
        ("archive/schema/archive.xml", 101, 13, 50),
        ("archive/schema/mark.xml", 100, 2, 1),
        ("cluster/schema/cluster.xml", 111, 16, 54),
        ("cluster/schema/mark.xml", 110, 2, 1),
        ("cluster/schema/node.xml", 112, 10, 4),
    ] {
        let schema = protocol(name);
        assert_eq!((schema.id, schema.version), (id, version), "{name}");
        assert_eq!(schema.messages.len(), messages, "{name}");
        for message in &schema.messages {
            assert!(message.description.is_some(), "{name}: {}", message.name);
        }
    }
}

#[test]
fn what_lies_at_a_fixed_place_lies_there() {
    let archive = describe(&protocol("archive/schema/archive.xml"));
    let find = |name: &str| {
        let found = archive.messages.iter().find(|table| table.name == name);
        found.expect("it is there")
    };
    assert_eq!(find("CatalogHeader").block_length, 32);
    assert_eq!(find("RecordingDescriptorHeader").block_length, 32);
    assert_eq!(find("RecordingDescriptor").block_length, 80);
    assert_eq!(offset(find("RecordingDescriptor"), "mtuLength"), Some(68));

    let mark = describe(&protocol("archive/schema/mark.xml")).messages;
    assert_eq!(mark[0].block_length, 128);
    assert_eq!(offset(&mark[0], "archiveId"), Some(56));
    let mark = describe(&protocol("cluster/schema/mark.xml")).messages;
    assert_eq!(mark[0].block_length, 128);
    assert_eq!(offset(&mark[0], "clusterId"), Some(72));
    assert_eq!(protocol("cluster/schema/node.xml").header.length, 16);
}
