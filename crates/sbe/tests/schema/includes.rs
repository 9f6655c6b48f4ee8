// SPDX-License-Identifier: Apache-2.0
//! Schemas of several files.

use taran_sbe::problem::Diagnostic;
use taran_sbe::xml::InMemory;
use taran_sbe::{Compiled, Rejected, compile};

use crate::FRAMES;

const HEAD: &str =
    r#"<messageSchema xmlns:xi="http://www.w3.org/2001/XInclude" package="p" id="1" version="0">"#;
const MESSAGE: &str =
    r#"<message name="M" id="1"><field name="f" id="1" type="Shared"/></message></messageSchema>"#;

fn read(files: &[(&str, &str)]) -> Result<Compiled, Rejected> {
    let files: InMemory = files.iter().copied().collect();
    compile("dir/main.xml", &files)
}

fn reported(result: Result<Compiled, Rejected>) -> Vec<String> {
    let problems = result.expect_err("a schema that is wrong").problems;
    problems.iter().map(Diagnostic::to_string).collect()
}

#[test]
fn included_types_keep_positions() {
    let main = format!(
        "{HEAD}<xi:include href=\"sub/frames.xml\"/><xi:include href=\"types.xml\"/>{MESSAGE}"
    );
    let types = r#"<types package="shared.types"><xi:include xmlns:xi="http://www.w3.org/2001/XInclude"
      href="sub/one.xml"/></types>"#;
    let schema = read(&[
        ("dir/main.xml", &main),
        ("dir/sub/frames.xml", FRAMES),
        ("dir/types.xml", types),
        (
            "dir/sub/one.xml",
            "\n <type name=\"Shared\" primitiveType=\"uint8\"/>",
        ),
    ])
    .unwrap()
    .schema;
    let shared = schema.type_named("Shared").unwrap();
    assert_eq!(shared.position.to_string(), "dir/sub/one.xml:2:2");
    assert_eq!(shared.package.as_deref(), Some("shared.types"));
    assert_eq!(schema.messages[0].block.length, 1);
}

#[test]
fn include_fallback_replaces_missing_file() {
    let main = format!(
        "{HEAD}{FRAMES}<xi:include href=\"none.xml\"><xi:fallback><types><type name=\"Shared\" \
         primitiveType=\"uint16\"/></types></xi:fallback></xi:include>{MESSAGE}"
    );
    let schema = read(&[("dir/main.xml", &main)]).unwrap().schema;
    assert_eq!(schema.messages[0].block.length, 2);
}

#[test]
fn include_missing_invalid_or_cyclic_file_is_reported() {
    let include = |href: &str| {
        let main = format!(
            "{HEAD}\n<xi:include href=\"{href}\"/>{FRAMES}\
             <message name=\"M\" id=\"1\"/></messageSchema>"
        );
        reported(read(&[
            ("dir/main.xml", &main),
            ("dir/broken.xml", "<types>\n <type></types>"),
            (
                "dir/again.xml",
                r#"<types xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="./again.xml"/></types>"#,
            ),
        ]))
    };
    assert_eq!(
        include("none.xml"),
        ["dir/main.xml:2:1: error: cannot read dir/none.xml: entity not found"]
    );
    let broken = include("broken.xml");
    assert!(
        broken[0].starts_with("dir/broken.xml:2:8: error: "),
        "{broken:?}"
    );
    let cycle = "includes itself through";
    assert_eq!(
        include("again.xml"),
        [format!(
            "dir/again.xml:1:51: error: dir/again.xml {cycle} dir/again.xml"
        )]
    );
    assert_eq!(
        include("main.xml"),
        [format!(
            "dir/main.xml:2:1: error: dir/main.xml {cycle} dir/main.xml"
        )]
    );
}

#[test]
fn missing_include_suppresses_unknown_type_errors() {
    let main = format!(
        "{HEAD}\n<xi:include href=\"none.xml\"/>\n<message name=\"M\" id=\"1\"><field name=\"f\" id=\"1\" type=\"Shared\"/>\n\
         <group name=\"g\" id=\"2\"/><data name=\"d\" id=\"3\" type=\"varText\"/>\n<data name=\"d\" id=\"4\" type=\"varText\"/>\
         </message></messageSchema>"
    );
    assert_eq!(
        reported(read(&[("dir/main.xml", &main)])),
        [
            "dir/main.xml:2:1: error: cannot read dir/none.xml: entity not found",
            // Reported regardless of the missing file.
            "dir/main.xml:5:1: error: name d is already defined at dir/main.xml:4:25",
        ]
    );
    let nothing = format!("{HEAD}\n<xi:include href=\"none.xml\"/></messageSchema>");
    assert_eq!(
        reported(read(&[("dir/main.xml", &nothing)])),
        ["dir/main.xml:2:1: error: cannot read dir/none.xml: entity not found"]
    );
}

#[test]
fn included_file_count_is_bounded() {
    let twice = |next: usize| {
        format!(
            r#"<types xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{next}"/><xi:include href="{next}"/>
               </types>"#
        )
    };
    let files: InMemory = (0..100)
        .map(|file: usize| (file.to_string(), twice(file + 1)))
        .collect();
    let problems = compile("0", &files).unwrap_err().problems;
    assert!(
        problems
            .iter()
            .any(|problem| problem.to_string().contains("more than 256 files")),
        "{problems:?}"
    );
}
