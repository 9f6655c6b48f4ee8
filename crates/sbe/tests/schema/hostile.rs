// SPDX-License-Identifier: Apache-2.0
//! Untrusted schemas and messages: processing ends with a result, in bounded time and memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use taran_sbe::decode::Decoder;
use taran_sbe::describe::describe;
use taran_sbe::diff::diff;
use taran_sbe::problem::Severity;
use taran_sbe::xml::NoFiles;
use taran_sbe::{compile, compile_file_with};

use crate::{FRAMES, problems, text};

fn reported(types: &str, messages: &str) -> String {
    let problems = problems(types, messages);
    problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect()
}

#[test]
fn entity_expansion_is_rejected() {
    let mut bomb = "<!DOCTYPE messageSchema [<!ENTITY a0 \"aaaaaaaaaaaaaaaaaaaa\">".to_owned();
    for level in 1..12 {
        let before = format!("&a{};", level - 1).repeat(10);
        bomb.push_str(&format!("<!ENTITY a{level} \"{before}\">"));
    }
    bomb.push_str("]><messageSchema package=\"&a11;\" id=\"1\"/>");
    let reported = compile("", &NoFiles(&bomb)).expect_err("it is refused");
    assert!(
        reported.to_string().contains("entity declarations"),
        "{reported}"
    );
    let endless =
        "<!DOCTYPE m [<!ENTITY a \"&b;\"><!ENTITY b \"&a;\">]><messageSchema package=\"&a;\"/>";
    assert!(compile("", &NoFiles(endless)).is_err());
}

/// Compiles a schema on disk that includes `href`, with additional allowed folders, and returns its problem.
fn reported_for_include(folder: &Path, href: &str, folders: &[PathBuf]) -> Option<String> {
    let text = format!(
        "<messageSchema package=\"p\" id=\"1\">\n<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" \
         href=\"{href}\"/>\n<message name=\"M\" id=\"1\"/></messageSchema>"
    );
    let schema = folder.join("main.xml");
    fs::write(&schema, text).expect("the folder is there");
    let (sender, receiver) = mpsc::channel();
    let folders = folders.to_vec();
    thread::spawn(move || {
        let read = compile_file_with(&schema, &folders);
        sender.send(read.err().as_ref().map(ToString::to_string))
    });
    let reported = receiver.recv_timeout(Duration::from_secs(30));
    reported.unwrap_or_else(|_| panic!("{href} takes without end"))
}

#[test]
fn include_outside_allowed_folders_is_rejected() {
    let above = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside");
    let folder = above.join("schemas");
    fs::create_dir_all(folder.join("below")).unwrap();
    for file in [
        "schemas/below/frames.xml",
        "schemas/frames.xml",
        "outside.xml",
    ] {
        fs::write(above.join(file), FRAMES).unwrap();
    }
    let link = folder.join("link.xml");
    let _ = fs::remove_file(&link);
    symlink(above.join("outside.xml"), &link).unwrap();
    let reported = |href: &str| reported_for_include(&folder, href, &[]);
    let inside = folder.join("frames.xml");
    for href in [
        "frames.xml",
        "below/../below/frames.xml",
        inside.to_str().unwrap(),
    ] {
        assert_eq!(reported(href), None, "{href}");
    }
    let outside = above.join("outside.xml");
    let outside = outside.to_str().unwrap();
    for href in [
        "../outside.xml",
        outside,
        "link.xml",
        "/proc/self/environ",
        "/dev/zero",
    ] {
        let reported = reported(href).expect("it is refused");
        assert!(
            reported.contains("outside the folder of the schema"),
            "{reported}"
        );
        if !href.starts_with('/') {
            assert_eq!(
                reported_for_include(&folder, href, std::slice::from_ref(&above)),
                None
            );
        }
    }
}

#[test]
fn include_of_special_files_does_not_block() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    fs::create_dir_all(&folder).unwrap();
    for (file, expected) in [
        ("/proc/self/environ", "/proc/self/environ:1:1: error: "),
        // In some containers this is not a regular file.
        ("/proc/kmsg", "/proc/kmsg"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        let reported = reported_for_include(&folder, file, &["/".into()]).expect("it is refused");
        assert!(reported.contains(expected), "{reported}");
    }
}

#[test]
fn element_nesting_is_bounded() {
    for depth in [100, 1_000, 200_000] {
        let deep = "<composite name=\"c\">".repeat(depth) + &"</composite>".repeat(depth);
        let reported = reported(&deep, "");
        assert!(reported.contains("nested more than"), "{depth}: {reported}");
        let deep = "<group name=\"g\" id=\"1\">".repeat(depth) + &"</group>".repeat(depth);
        let reported = self::reported(
            "",
            &format!("<message name=\"m\" id=\"1\">{deep}</message>"),
        );
        assert!(reported.contains("nested more than"), "{depth}: {reported}");
    }
    let open = "<a>".repeat(1_000_000);
    assert!(compile("", &NoFiles(&open)).is_err());
}

#[test]
fn type_nesting_and_cycles_are_rejected() {
    let reported_for = |types: &str| reported(types, "");
    let cycle = r#"<composite name="A"><ref name="b" type="B"/></composite>
                   <composite name="B"><ref name="a" type="A"/></composite>"#;
    assert!(reported_for(cycle).contains("type A contains itself"));
    let own = r#"<composite name="A"><composite name="A"><ref name="a" type="A"/></composite></composite>"#;
    assert!(reported_for(own).contains("type A contains itself"));
    let chain = |count: usize| -> String {
        (0..count)
            .map(|index| {
                let next = index + 1;
                format!(r#"<composite name="T{index}"><ref name="n" type="T{next}"/></composite>"#)
            })
            .collect::<String>()
            + &format!(r#"<type name="T{count}" primitiveType="uint8"/>"#)
    };
    assert!(!reported_for(&chain(31)).contains("error: nested"));
    assert!(reported_for(&chain(33)).contains("nested more than 32 deep"));
    assert!(reported_for(&chain(20_000)).contains("nested more than 32 deep"));
    let doubling: String = (0..30)
        .map(|index| {
            let next = index + 1;
            format!(
                r#"<composite name="T{index}"><ref name="n" type="T{next}"/><ref name="m" type="T{next}"/></composite>"#
            )
        })
        .collect::<String>()
        + r#"<type name="T30" primitiveType="uint8" presence="constant">1</type>"#;
    assert!(reported_for(&doubling).contains("more than 65536 values"));
}

#[test]
fn numbers_above_limit_are_rejected() {
    for (types, expected) in [
        (
            r#"<type name="T" primitiveType="uint64" length="4294967295"/>"#,
            "longer than",
        ),
        (
            r#"<type name="T" primitiveType="uint64" length="99999999999999999999"/>"#,
            "is not a whole number",
        ),
        (
            r#"<type name="T" primitiveType="uint64" length="-1"/>"#,
            "is not a whole number",
        ),
        (
            r#"<composite name="T"><type name="a" primitiveType="char" length="2147483647"/>
               <type name="b" primitiveType="char"/></composite>"#,
            "longer than",
        ),
        (
            r#"<composite name="T"><type name="a" primitiveType="char" offset="4294967295"/></composite>"#,
            "longer than",
        ),
        (
            r#"<type name="T" primitiveType="char" presence="constant" length="4294967295">A</type>"#,
            "a constant of more than",
        ),
    ] {
        let reported = reported(types, "");
        assert!(reported.contains(expected), "{types}: {reported}");
    }
    let reported = reported(
        "",
        r#"<message name="m" id="1"><field name="f" id="1" type="uint8" offset="4294967295"/></message>
           <message name="n" id="2" blockLength="4294967295"/>"#,
    );
    assert!(reported.contains("longer than"), "{reported}");
}

#[test]
fn problems_are_truncated_at_one_thousand() {
    let many = "<type/>".repeat(100_000);
    let found = problems(&many, "<message name=\"M\" id=\"1\"/>");
    assert_eq!(found.len(), 1_001);
    let last = found[1_000].to_string();
    assert!(
        last.ends_with("error: further errors are not reported; the limit is 1000"),
        "{last}"
    );
}

#[test]
fn warnings_do_not_displace_errors() {
    let warnings = |count: usize| -> String {
        (0..count)
            .map(|at| format!("<type name=\"T{at}\" primitiveType=\"uint8\" nullValue=\"9\"/>"))
            .collect()
    };
    let wrong = "<type name=\"Wrong\" primitiveType=\"uint9\"/>";
    for (count, reported) in [(1_000, 1_000), (1_001, 1_001), (5_000, 1_001)] {
        let found = problems(&(warnings(count) + wrong), "<message name=\"M\" id=\"1\"/>");
        let errors = found
            .iter()
            .filter(|found| found.severity() == Severity::Error);
        assert_eq!(errors.count(), 1, "{count}");
        assert_eq!(found.len(), reported + 1, "{count}");
        let is_cut = found
            .iter()
            .any(|found| found.to_string().contains("warning: further warnings"));
        assert_eq!(is_cut, count > 1_000, "{count}");
    }
}

#[test]
fn compile_time_is_linear_in_element_count() {
    // A quadratic comparison would not end.
    let attributes: String = (0..50_000).map(|index| format!(" a{index}='1'")).collect();
    let reported = reported(&format!("<type name=\"T\"{attributes}/>"), "");
    assert!(reported.contains("more than 64 attributes"), "{reported}");
    let spaces: String = (0..50_000)
        .map(|index| format!("<a xmlns:a{index}='b{index}'/>"))
        .collect();
    let reported = self::reported(&spaces, "");
    assert!(
        reported.contains("more than 1000 namespace declarations"),
        "{reported}"
    );

    let numbers = 0..50_000;
    let values: String = numbers
        .clone()
        .map(|number| format!("<validValue name=\"V{number}\">{number}</validValue>"))
        .collect();
    let fields: String = numbers
        .map(|number| {
            format!(
                "<field name=\"f{number}\" id=\"{number}\" type=\"E\" presence=\"constant\" valueRef=\"E.V0\"/>"
            )
        })
        .collect();
    let schema = crate::accepted(
        &format!("<enum name=\"E\" encodingType=\"int32\">{values}</enum>"),
        &format!("<message name=\"M\" id=\"1\">{fields}</message>"),
    );
    assert_eq!(diff(&schema, &schema), []);
}

/// Generates schema fragments in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<types>",
        "</types>",
        "<type name=\"A\" primitiveType=\"uint8\"/>",
        "<type name=\"B\" primitiveType=\"char\" length=\"3\" presence=\"constant\">xyz</type>",
        "<composite name=\"C\">",
        "</composite>",
        "<ref name=\"r\" type=\"C\" offset=\"9\"/>",
        "<ref name=\"q\" type=\"E\"/>",
        "<enum name=\"E\" encodingType=\"A\" nullValue=\"7\">",
        "<validValue name=\"V\">1</validValue>",
        "</enum>",
        "<set name=\"S\" encodingType=\"uint64\">",
        "<choice name=\"c\">63</choice>",
        "</set>",
        "<message name=\"M\" id=\"1\">",
        "<message name=\"N\" id=\"65535\" blockLength=\"3\" sinceVersion=\"4\">",
        "</message>",
        "<field name=\"f\" id=\"1\" type=\"C\"/>",
        "<field name=\"g\" id=\"2\" type=\"E\" presence=\"constant\" valueRef=\"E.V\"/>",
        "<field name=\"h\" id=\"3\" type=\"S\" offset=\"100\"/>",
        "<group name=\"o\" id=\"4\">",
        "</group>",
        "<data name=\"d\" id=\"5\" type=\"varText\"/>",
        "&amp;",
        "<![CDATA[",
        "]]>",
        "<!-- -->",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn compile_arbitrary_text_never_panics(text: String) {
        let _ = compile("", &NoFiles(&text));
    }

    #[test]
    fn compile_random_elements_never_panics_and_result_is_usable(pieces in pieces(), bytes: Vec<u8>) {
        if let Ok(compiled) = compile("", &NoFiles(&text("", &pieces))) {
            let schema = compiled.schema;
            let _ = describe(&schema).to_string();
            prop_assert_eq!(diff(&schema, &schema), vec![]);
            for message in &schema.messages {
                let mut whole = vec![0; 8];
                whole[..2].copy_from_slice(&(message.block.length as u16).to_le_bytes());
                whole[2..4].copy_from_slice(&(message.id as u16).to_le_bytes());
                whole[4] = 7;
                whole.extend(&bytes);
                let _ = Decoder::new(&schema).message(&whole);
            }
        }
    }

    #[test]
    fn compile_arbitrary_bytes_never_panics(
        bytes: Vec<u8>,
        header in (0_u16..40, 1_u16..3, 0_u16..5),
    ) {
        let schema = compile("", &NoFiles(&text(
            "",
            r#"<message name="A" id="1"><field name="f" id="1" type="uint32"/>
               <field name="s" id="2" type="uint64" sinceVersion="2"/>
               <group name="g" id="3"><field name="f" id="1" type="uint8"/>
                 <group name="h" id="2"><data name="d" id="1" type="varText"/></group>
                 <data name="d" id="3" type="varText"/></group>
               <group name="n" id="4" sinceVersion="1"/>
               <data name="d" id="5" type="varText" sinceVersion="3"/></message>"#,
        ))).unwrap().schema;
        let (block_length, template_id, version) = header;
        let mut whole: Vec<u8> =
            [block_length, template_id, 7, version].into_iter().flat_map(u16::to_le_bytes).collect();
        whole.extend(bytes);
        match Decoder::new(&schema).message(&whole) {
            Ok(message) => prop_assert!(message.length <= whole.len()),
            Err(error) => prop_assert!(error.offset <= whole.len(), "{}", error),
        }
    }
}
