// SPDX-License-Identifier: Apache-2.0
//! Costs grow linearly with the size of schemas and messages, and exceeded limits are reported.
//!
//! With quadratic lookups, these tests would take minutes.

use taran_sbe::decode::{Decoder, Reason};
use taran_sbe::describe::describe;
use taran_sbe::diff::{Impact, diff, worst};
use taran_sbe::generate::{self, GenerateError};
use taran_sbe::model::Schema;
use taran_sbe::runtime::MAX_EMPTY_ENTRIES;
use taran_sbe::xml::NoFiles;
use taran_sbe::{Compiled, compile};

use crate::{accepted, problems, text};

const MANY: usize = 30_000;

fn many(each: impl Fn(usize) -> String) -> String {
    (0..MANY).map(each).collect()
}

fn reported(types: &str, messages: &str) -> String {
    let problems = problems(types, messages).into_iter();
    problems.map(|problem| format!("{problem}\n")).collect()
}

/// Compiles a schema that may have warnings.
fn usable(types: &str, messages: &str) -> Schema {
    let compiled = compile("", &NoFiles(&text(types, messages)));
    let Compiled { schema, .. } = compiled.unwrap_or_else(|rejected| panic!("{rejected}"));
    schema
}

/// Generates members of one byte, with this name prefix.
fn members(prefix: &str) -> String {
    many(|at| format!("<type name=\"{prefix}{at}\" primitiveType=\"uint8\"/>"))
}

#[test]
fn shared_composites_are_compared_once() {
    let types = format!(
        "<composite name=\"Large\">{}</composite>
         <composite name=\"dimensions\">{}<type name=\"blockLength\" primitiveType=\"uint16\"/>
           <type name=\"numInGroup\" primitiveType=\"uint16\"/></composite>
         <composite name=\"data\">{}<type name=\"length\" primitiveType=\"uint16\"/>
           <type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/></composite>",
        members("m"),
        members("m"),
        members("m"),
    );
    let fields = many(|at| format!("<field name=\"f{at}\" id=\"{at}\" type=\"Large\"/>"));
    let behind = |element: &str, kind: &str| {
        many(|at| format!("<{element} name=\"g{at}\" id=\"{at}\" {kind}/>"))
    };
    let messages = [
        // Together the fields exceed the range of the header.
        format!("<message name=\"A\" id=\"1\">{fields}</message>"),
        format!(
            "<message name=\"B\" id=\"2\">{}</message>",
            behind("group", "dimensionType=\"dimensions\"")
        ),
        format!(
            "<message name=\"C\" id=\"3\">{}</message>",
            behind("data", "type=\"data\"")
        ),
    ];
    let refused = reported(&types, &messages[0]);
    assert_eq!(refused.lines().count(), 1, "{refused}");
    assert!(
        refused.contains("a block of 900000000 does not fit"),
        "{refused}"
    );
    let schema = usable(&types, &messages[1..].concat());
    assert_eq!(describe(&schema).messages[0].rows.len(), MANY);
    assert_eq!(diff(&schema, &schema), []);
}

#[test]
fn diff_renamed_composite_members_takes_linear_time() {
    let with = |prefix: &str| {
        accepted(
            &format!("<composite name=\"Large\">{}</composite>", members(prefix)),
            "<message name=\"A\" id=\"1\"><field name=\"f\" id=\"1\" type=\"Large\"/></message>",
        )
    };
    let changes = diff(&with("a"), &with("b"));
    let first = changes[0].to_string();
    assert!(
        first.ends_with("code: Large.a0: was renamed from a0 to b0"),
        "{first}"
    );
    // The list is truncated; the remaining changes count as breaking because they are not examined.
    assert_eq!(changes.len(), 10_001);
    assert!(
        changes[10_000]
            .what
            .contains("the limit of 10000 was reached")
    );
    assert_eq!(worst(&changes[..10_000]), Some(Impact::Code));
    assert_eq!(worst(&changes), Some(Impact::Breaking));
}

#[test]
fn describe_type_details_are_repeated_within_budget() {
    let long = "x".repeat(257);
    for attribute in ["name", "semanticType", "characterEncoding"] {
        let reported = reported(
            &format!("<type {attribute}=\"{long}\" name2=\"\" primitiveType=\"char\"/>"),
            "",
        );
        let expected = format!("error: {attribute} is longer than 256 bytes");
        assert!(reported.contains(&expected), "{reported}");
    }
    let described = |length: usize| {
        let text = "x".repeat(length);
        reported(
            &format!("<type name=\"T\" primitiveType=\"char\" description=\"{text}\"/>"),
            "",
        )
    };
    assert!(!described(4_096).contains("longer"));
    assert!(described(4_097).contains("error: description is longer than 4096 bytes"));
    let constant = |length: usize| {
        let of = format!("presence=\"constant\" length=\"{length}\"");
        reported(
            &format!("<type name=\"T\" primitiveType=\"char\" {of}>A</type>"),
            "",
        )
    };
    assert!(!constant(1_024).contains("constant of more"));
    assert!(constant(1_025).contains("error: a constant of more than 1024 characters"));
}

#[test]
fn describe_composites_are_expanded_within_budget() {
    let members: String = (0..512)
        .map(|at| {
            format!("<type name=\"m{at}\" primitiveType=\"uint8\" presence=\"constant\">1</type>")
        })
        .collect();
    let fields = many(|at| format!("<field name=\"f{at}\" id=\"{at}\" type=\"C\"/>"));
    let schema = usable(
        &format!("<composite name=\"C\">{members}</composite>"),
        &format!("<message name=\"A\" id=\"1\">{fields}</message>"),
    );
    // Includes the four members of the header.
    let taken_apart = (65_536 - 4) / 512;
    let rows = &describe(&schema).messages[0].rows;
    assert_eq!(rows.len(), MANY + taken_apart * 512);
    // Code for a field covers all members of its type.
    let values = 512 + 4 + 2 * 3 + (MANY * 513) as u64;
    match generate::rust(&schema) {
        Err(GenerateError::TooLarge {
            values: found,
            most,
        }) => {
            assert!(found > most);
            // Composites for groups and data count as well.
            assert!((values - 512..values + 512).contains(&found), "{found}");
        }
        other => panic!("{:?}", other.map(|files| files.len())),
    }
}

/// Nests elements whose names have the maximum length.
fn nested(element: &str, inside: &str) -> String {
    let name = "n".repeat(250);
    let begin: String = (10..40)
        .map(|at| format!("<{element} name=\"{name}{at}\" id=\"1\">"))
        .collect();
    format!("{begin}{inside}{}", format!("</{element}>").repeat(30))
}

#[test]
fn generate_too_much_repeated_text_returns_error() {
    let numbered = |count: usize, element: &str| -> String {
        let each = |at: usize| element.replace('#', &at.to_string());
        (0..count).map(each).collect()
    };
    let around = 30 * 252;
    let in_groups = |element: &str, count| {
        let groups = nested("group", &numbered(count, element));
        (
            String::new(),
            format!("<message name=\"M\" id=\"1\">{groups}</message>"),
        )
    };
    let in_composites = |element: &str, count| {
        let types = nested("composite", &numbered(count, element)).replace(" id=\"1\"", "");
        (types, "<message name=\"M\" id=\"1\"/>".to_owned())
    };
    let says = "x".repeat(4_000);
    let described = |count| {
        let refs = numbered(count, "<ref name=\"r#\" type=\"T\"/>");
        let types = format!(
            "<type name=\"T\" primitiveType=\"uint8\" description=\"{says}\"/>
             <composite name=\"C\">{refs}</composite>"
        );
        (types, "<message name=\"M\" id=\"1\"/>".to_owned())
    };
    for (each, schema) in [
        (
            around,
            &(|count| in_groups("<data name=\"d#\" id=\"#\" type=\"varText\"/>", count))
                as &dyn Fn(usize) -> (String, String),
        ),
        (5 * around, &|count| {
            in_groups("<group name=\"g#\" id=\"#\"/>", count)
        }),
        (around, &|count| {
            in_composites("<enum name=\"e#\" encodingType=\"uint8\"/>", count)
        }),
        (2 * around, &|count| {
            in_composites("<composite name=\"c#\"/>", count)
        }),
        (4_000, &described),
    ] {
        let most = 4 << 20;
        // The nested elements themselves take less.
        let few = most / each - 80;
        let (types, messages) = schema(few);
        assert!(generate::rust(&usable(&types, &messages)).is_ok(), "{each}");
        let many = most / each + 1;
        let (types, messages) = schema(many);
        let error = generate::rust(&usable(&types, &messages)).unwrap_err();
        // The check of the schema reports it as well.
        let warning = format!("warning: no code is generated: {error}");
        assert!(reported(&types, &messages).contains(&warning), "{each}");
        let GenerateError::TooMuchRepeated {
            bytes,
            most: reported,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(reported, most as u64);
        let least = (each * many) as u64;
        assert!((least..least + 1_000_000).contains(&bytes), "{bytes}");
    }
}

#[test]
fn generate_limit_weighs_groups_and_messages() {
    let groups: String = (0..70_000)
        .map(|at| format!("<group name=\"g{at}\" id=\"{at}\"/>"))
        .collect();
    let messages: String = (0..90_000)
        .map(|at| format!("<message name=\"m{at}\" id=\"{at}\"/>"))
        .collect();
    let groups = format!("<message name=\"M\" id=\"1\">{groups}</message>");
    for messages in [groups, messages] {
        let wide = FRAMES_OF_WIDE_IDS;
        let text = text("", &messages).replace(wide.0, wide.1);
        let compiled = compile("", &NoFiles(&text));
        let Compiled { schema, .. } = compiled.unwrap_or_else(|rejected| panic!("{rejected}"));
        let error = generate::rust(&schema).unwrap_err();
        assert!(matches!(error, GenerateError::TooLarge { .. }), "{error}");
    }
}

/// Header with room for more template ids.
const FRAMES_OF_WIDE_IDS: (&str, &str) = (
    "<type name=\"templateId\" primitiveType=\"uint16\"/>",
    "<type name=\"templateId\" primitiveType=\"uint32\"/>",
);

#[test]
fn set_with_too_many_choices_is_rejected() {
    let set = |count: usize| {
        let flags: String = (0..count)
            .map(|at| format!("<choice name=\"c{at}\">{}</choice>", at % 8))
            .collect();
        reported(
            &format!("<set name=\"S\" encodingType=\"uint8\">{flags}</set>"),
            "",
        )
    };
    assert!(!set(256).contains("error: more"));
    assert!(set(257).contains("error: more than 256 choices in one set"));
}

/// Encodes a message of version 0 with template id 1.
fn message(block_length: u16, rest: &[u8]) -> Vec<u8> {
    let header = [block_length, 1, 7, 0].map(u16::to_le_bytes);
    [header.as_flattened(), rest].concat()
}

/// Encodes a group of zero bytes.
fn group(block_length: u16, count: u16) -> Vec<u8> {
    let mut bytes = [block_length, count].map(u16::to_le_bytes).concat();
    bytes.resize(4 + usize::from(block_length) * usize::from(count), 0);
    bytes
}

#[test]
fn lookup_in_large_schema_takes_logarithmic_time() {
    let values = many(|at| format!("<validValue name=\"V{at}\">{}</validValue>", MANY - 1 - at));
    let others = many(|at| format!("<message name=\"M{at}\" id=\"{}\"/>", at + 2));
    let schema = accepted(
        &format!("<enum name=\"E\" encodingType=\"uint16\">{values}</enum>"),
        &format!(
            "{others}<message name=\"A\" id=\"1\"><group name=\"g\" id=\"1\">
             <field name=\"f\" id=\"2\" type=\"E\"/></group></message>"
        ),
    );
    let decoder = Decoder::new(&schema);
    let bytes = message(0, &group(2, 60_000));
    let found = decoder.message(&bytes).unwrap();
    assert_eq!(found.length, bytes.len());
    let shown = format!("{:?}", found.fields);
    assert!(shown.ends_with("Object([(\"f\", Named(\"V29999\"))])]))]"));
    let pings = message(0, &[]).repeat(20_000);
    let mut pings = [pings, message(0, &group(2, 0))].concat();
    // All but the last are `M0`.
    for ping in pings.chunks_exact_mut(8).take(20_000) {
        ping[2] = 2;
    }
    assert_eq!(
        decoder.messages(&pings).filter(Result::is_ok).count(),
        20_001
    );
}

#[test]
fn omitted_elements_count_toward_limit() {
    let fields =
        many(|at| format!("<field name=\"f{at}\" id=\"{at}\" type=\"uint8\" sinceVersion=\"1\"/>"));
    let schema = accepted(
        "",
        &format!(
            "<message name=\"A\" id=\"1\"><group name=\"g\" id=\"1\">{fields}</group></message>"
        ),
    );
    let decoder = Decoder::new(&schema);
    // The group, and for each entry the omitted fields.
    let steps = 1 + 10 * (1 + MANY);
    let bytes = message(0, &group(1, 10));
    assert!(decoder.with_limit(steps).message(&bytes).is_ok());
    let error = decoder.with_limit(steps - 1).message(&bytes).unwrap_err();
    assert_eq!(error.reason, Reason::TooManyValues(steps - 1));
    let error = decoder.message(&message(0, &group(1, 60_000))).unwrap_err();
    assert_eq!(error.reason, Reason::TooManyValues(1 << 20));
}

#[test]
fn constants_and_choices_count_toward_limit() {
    let schema = accepted(
        "<type name=\"Motto\" primitiveType=\"char\" presence=\"constant\" length=\"1024\">A</type>
         <set name=\"S\" encodingType=\"uint8\"><choice name=\"a\">0</choice></set>",
        "<message name=\"A\" id=\"1\"><field name=\"f\" id=\"1\" type=\"Motto\"/>
           <field name=\"s\" id=\"2\" type=\"S\"/></message>",
    );
    let decoder = Decoder::new(&schema);
    for (bits, flags) in [(0, 0), (1, 1), (2, 1), (255, 8)] {
        let limit = 1 + 1_024 / 64 + 1 + flags;
        let bytes = message(1, &[bits]);
        assert!(decoder.with_limit(limit).message(&bytes).is_ok(), "{bits}");
        let error = decoder.with_limit(limit - 1).message(&bytes).unwrap_err();
        assert_eq!(error.reason, Reason::TooManyValues(limit - 1), "{bits}");
    }
}

#[test]
fn group_with_too_many_empty_entries_returns_error() {
    let schema = accepted(
        "",
        "<message name=\"A\" id=\"1\"><group name=\"outer\" id=\"1\">
           <group name=\"g\" id=\"2\"><field name=\"f\" id=\"3\" type=\"uint8\" sinceVersion=\"1\"/>
             <data name=\"d\" id=\"4\" type=\"varText\" sinceVersion=\"1\"/></group></group></message>",
    );
    let decoder = Decoder::new(&schema);
    let most = MAX_EMPTY_ENTRIES as u16;
    let bytes = |count: u16| message(0, &[group(0, 1), group(0, count)].concat());
    assert!(decoder.message(&bytes(most)).is_ok());
    let error = decoder.message(&bytes(most + 1)).unwrap_err();
    let count = i128::from(most) + 1;
    let (min, max) = (0, MAX_EMPTY_ENTRIES);
    assert_eq!(error.reason, Reason::BadCount { count, min, max });
    assert_eq!((error.path.as_str(), error.offset), ("A.outer[0].g", 12));
    // The entries of the outer group are not empty.
    let inner = group(0, 0).repeat(2_000);
    let mut many = message(0, &[group(0, 2_000), inner].concat());
    assert!(decoder.message(&many).is_ok());
    // For the newer version, those of the inner group are not empty either.
    many.truncate(12);
    many[6] = 1;
    many[10] = 1;
    many.extend([[0, 0, 0xD0, 7], [0; 4]].concat());
    let error = decoder.message(&many).unwrap_err();
    assert_eq!(error.path, "A.outer[0].g[0].f");
}

#[test]
fn counts_and_lengths_outside_range_return_error() {
    let schema = accepted(
        "<composite name=\"few\"><type name=\"blockLength\" primitiveType=\"uint16\"/>
           <type name=\"numInGroup\" primitiveType=\"uint16\" minValue=\"1\" maxValue=\"3\"/></composite>
         <composite name=\"short\"><type name=\"length\" primitiveType=\"uint16\" maxValue=\"2\"/>
           <type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/></composite>",
        "<message name=\"A\" id=\"1\"><group name=\"g\" id=\"1\" dimensionType=\"few\">
           <field name=\"f\" id=\"2\" type=\"uint8\"/></group><data name=\"d\" id=\"3\" type=\"short\"/></message>",
    );
    let decoder = Decoder::new(&schema);
    let reason = |count: u16, length: u16| {
        let data = [length.to_le_bytes().as_slice(), &vec![0; length.into()]].concat();
        let bytes = message(0, &[group(1, count), data].concat());
        decoder
            .message(&bytes)
            .err()
            .map(|error| (error.path, error.reason))
    };
    let count = |count| {
        Some((
            "A.g".to_owned(),
            Reason::BadCount {
                count,
                min: 1,
                max: 3,
            },
        ))
    };
    assert_eq!(reason(1, 0), None);
    assert_eq!(reason(3, 2), None);
    assert_eq!(reason(0, 0), count(0));
    assert_eq!(reason(4, 0), count(4));
    let long = Reason::TooLong { length: 3, max: 2 };
    assert_eq!(reason(1, 3), Some(("A.d".to_owned(), long)));
}
