// SPDX-License-Identifier: Apache-2.0
//! Compares the archive and cluster protocol schemas with tables of the Aeron 1.51 protocols.
//!
//! The tables in `protocols/` were not made from these schemas. They list the id, name and block length of each
//! message, and the id, name, encoding and offset of each field, as in the official definitions at 1.51.0.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::path::Path;

use taran_sbe::compile_file;
use taran_sbe::model::{
    Block, ByteOrder, Composite, Presence, Schema, Simple, Type, TypeKind, ValidValue,
};

fn protocol(name: &str) -> Schema {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let compiled = compile_file(&path).unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!(compiled.warnings, []);
    compiled.schema
}

/// Renders a schema in the form of the tables.
fn table(schema: &Schema) -> String {
    let order = match schema.byte_order {
        ByteOrder::Little => "littleEndian",
        ByteOrder::Big => "bigEndian",
    };
    let mut text = format!(
        "schema {}, version {}, {order}\n",
        schema.id, schema.version
    );
    let header = members(&schema.header.kind);
    writeln!(text, "header {header}").unwrap();
    for kind in &schema.types {
        if let TypeKind::Enum(values) = &kind.kind {
            let value = |value: &ValidValue| format!("{} {}", value.name, value.value);
            let all: Vec<String> = values.values.iter().map(value).collect();
            writeln!(
                text,
                "enum {} {}: {}",
                kind.name,
                values.encoding,
                all.join(", ")
            )
            .unwrap();
        }
    }
    for message in &schema.messages {
        let (id, name, length) = (message.id, &message.name, message.block.length);
        write!(text, "{id} {name} {length}{}", since(message.since)).unwrap();
        if let Some(version) = message.deprecated {
            write!(text, " deprecated {version}").unwrap();
        }
        text.push('\n');
        block(&message.block, "  ", &mut text);
    }
    text
}

fn block(block: &Block, indent: &str, text: &mut String) {
    for field in &block.fields {
        let (id, name, since) = (field.id, &field.name, since(field.since));
        let may_be_null = match field.presence {
            Presence::Optional => "?",
            Presence::Required | Presence::Constant => "",
        };
        let kind = sent(&field.kind);
        let at = field.offset;
        writeln!(text, "{indent}{id} {name} {kind}{may_be_null} {at}{since}").unwrap();
    }
    for group in &block.groups {
        let (id, name, since) = (group.id, &group.name, since(group.since));
        let (length, dimensions) = (group.block.length, members(&group.dimensions.kind));
        writeln!(
            text,
            "{indent}{id} {name} group of {length}, {dimensions}{since}"
        )
        .unwrap();
        self::block(&group.block, &format!("{indent}  "), text);
    }
    for data in &block.data {
        let (id, name, since) = (data.id, &data.name, since(data.since));
        let encoding = &data.encoding;
        let kind = encoding.character_encoding.as_deref().unwrap_or("bytes");
        let length = encoding.length.primitive;
        writeln!(text, "{indent}{id} {name} data {length} {kind}{since}").unwrap();
    }
}

fn since(version: u32) -> String {
    if version == 0 {
        return String::new();
    }
    format!(" since {version}")
}

fn sent(kind: &Type) -> String {
    match &kind.kind {
        TypeKind::Simple(Simple {
            primitive,
            is_array: false,
            ..
        }) => primitive.to_string(),
        TypeKind::Enum(values) => format!("{}:{}", kind.name, values.encoding),
        other => panic!("no message has such a field: {other:?}"),
    }
}

fn members(kind: &Type) -> String {
    let TypeKind::Composite(Composite { members, .. }) = &kind.kind else {
        panic!("{} frames something", kind.name)
    };
    let all: Vec<String> = members
        .iter()
        .map(|member| format!("{} {} {}", member.name, sent(&member.kind), member.offset))
        .collect();
    all.join(", ")
}

#[test]
fn protocol_layouts_match_golden_files() {
    for (name, expected, messages) in [
        (
            "archive-client/schema/archive.xml",
            include_str!("protocols/archive.txt"),
            50,
        ),
        (
            "archive-client/schema/mark.xml",
            include_str!("protocols/archive_mark.txt"),
            1,
        ),
        (
            "cluster-client/schema/cluster.xml",
            include_str!("protocols/cluster.txt"),
            54,
        ),
        (
            "cluster/schema/mark.xml",
            include_str!("protocols/cluster_mark.txt"),
            1,
        ),
        (
            "cluster/schema/node.xml",
            include_str!("protocols/node.txt"),
            4,
        ),
    ] {
        let schema = protocol(name);
        assert_eq!(schema.messages.len(), messages, "{name}");
        let found = table(&schema);
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
        for message in &schema.messages {
            assert!(message.description.is_some(), "{name}: {}", message.name);
        }
    }
}
