// SPDX-License-Identifier: Apache-2.0
//! `taran sbe` with schemas and messages in files and on standard input.

use std::io::Write;
use std::process::Stdio;

use crate::process::{Directory, Outcome, run, taran};

const SCHEMA: &str = r#"<messageSchema package="shop" id="7" version="0">
<types>
<composite name="messageHeader">
  <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
  <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
</composite>
<enum name="Side" encodingType="uint8"><validValue name="Buy">1</validValue></enum>
</types>
<message name="Order" id="1">
  <field name="id" id="1" type="uint32"/>
  <field name="side" id="2" type="Side"/>
</message>
</messageSchema>
"#;
const ORDERS: &[u8] = b"\x05\0\x01\0\x07\0\0\0\x2A\0\0\0\x01\x05\0\x01\0\x07\0\0\0\x2B\0\0\0\xFF";

fn sbe(directory: &Directory, arguments: &[&str]) -> Outcome {
    let mut command = taran(&["sbe"]);
    run(command.args(arguments).current_dir(directory.path()))
}

/// The same, with `input` on standard input.
fn sbe_with(directory: &Directory, arguments: &[&str], input: &str) -> Outcome {
    let path = directory.path().join("input");
    std::fs::write(&path, input).expect("the file can be written");
    let input = std::fs::File::open(path).expect("the file can be read");
    let mut command = taran(&["sbe"]);
    command.args(arguments).current_dir(directory.path());
    run(command.stdin(input))
}

fn orders(directory: &Directory) {
    directory.file("shop.xml", SCHEMA);
    std::fs::write(directory.path().join("orders.bin"), ORDERS).expect("the file can be written");
}

#[test]
fn check_reports_every_problem_with_its_position() {
    let directory = Directory::new("sbe-check");
    directory.file("good.xml", SCHEMA);
    directory.file("dubious.xml", &SCHEMA.replace("name=\"id\"", "name=\"9\""));
    let broken = SCHEMA
        .replace("\"uint32\"", "\"uint33\"")
        .replace(">1</validValue>", ">one</validValue>");
    directory.file("broken.xml", &broken);

    let good = sbe(&directory, &["check", "good.xml"]);
    good.assert_code(0).assert_silent();
    assert_eq!(good.stdout, "good.xml: no errors, no warnings\n");

    let dubious = sbe(&directory, &["check", "dubious.xml"]);
    dubious.assert_code(0);
    assert!(
        dubious.stdout.starts_with("dubious.xml:10:10: warning: "),
        "{dubious:?}"
    );
    sbe(&directory, &["check", "--deny-warnings", "dubious.xml"]).assert_code(1);

    let both = sbe(&directory, &["check", "good.xml", "broken.xml"]);
    both.assert_code(1);
    assert_eq!(
        both.stdout,
        "good.xml: no errors, no warnings\n\
         broken.xml:7:40: error: Buy=\"one\" is not a value of uint8\n\
         broken.xml:10:3: error: unknown type uint33\n\
         broken.xml: 2 errors, no warnings\n"
    );

    let json = sbe(&directory, &["check", "--json", "broken.xml", "none.xml"]);
    json.assert_code(1);
    let lines: Vec<serde_json::Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["problems"][1]["line"], 10);
    assert_eq!(lines[0]["problems"][1]["severity"], "error");
    assert_eq!(lines[1]["errors"], 1);

    sbe(&directory, &["check"]).assert_code(2);
}

#[test]
fn includes_outside_the_schema_directory_require_include_from() {
    let directory = Directory::new("sbe-include");
    std::fs::create_dir_all(directory.path().join("inner")).expect("the folder can be made");
    let include = "<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"../types.xml\"/>\n<message";
    directory.file(
        "types.xml",
        "<types><type name=\"T\" primitiveType=\"uint8\"/></types>",
    );
    let main = directory.path().join("inner/main.xml");
    std::fs::write(main, SCHEMA.replace("<message ", &format!("{include} ")))
        .expect("the file can be written");
    let refused = sbe(&directory, &["check", "inner/main.xml"]);
    refused.assert_code(1);
    assert!(
        refused.stdout.contains("types.xml: outside the folder"),
        "{refused:?}"
    );
    let allowed = ["check", "--include-from", ".", "inner/main.xml"];
    sbe(&directory, &allowed).assert_code(0);
}

#[test]
fn commands_read_a_schema_from_standard_input() {
    let directory = Directory::new("sbe-stdin");
    orders(&directory);
    let inner = directory.path().join("inner");
    std::fs::create_dir_all(&inner).expect("the folder can be made");
    let types = "<types><type name=\"T\" primitiveType=\"uint8\"/></types>";
    directory.file("types.xml", types);
    std::fs::write(inner.join("types.xml"), types).expect("the file can be written");
    let including = |href: &str| {
        let include =
            format!("<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"{href}\"/>");
        SCHEMA
            .replace("<message ", &format!("{include}<message "))
            .replace("type=\"uint32\"", "type=\"T\"")
    };

    let checked = sbe_with(
        &directory,
        &["check", "shop.xml", "-"],
        &including("types.xml"),
    );
    checked.assert_code(0).assert_silent();
    assert_eq!(
        checked.stdout,
        "shop.xml: no errors, no warnings\n-: no errors, no warnings\n"
    );
    sbe_with(&directory, &["check", "-"], &including("inner/types.xml")).assert_code(0);
    // Includes are searched for in the current directory and below it. The schema itself is not among them.
    for (href, expected) in [
        ("/etc/passwd", "outside the folder"),
        ("-", "includes itself"),
    ] {
        let refused = sbe_with(&directory, &["check", "-"], &including(href));
        refused.assert_code(1);
        assert!(refused.stdout.starts_with("-:9:1: error: "), "{refused:?}");
        assert!(refused.stdout.contains(expected), "{refused:?}");
    }
    let broken = SCHEMA.replace("\"uint32\"", "\"uint33\"");
    let described = sbe_with(&directory, &["describe", "-"], &broken);
    described.assert_code(1);
    assert!(
        described
            .stderr
            .contains("-:10:3: error: unknown type uint33"),
        "{described:?}"
    );
    let nothing = sbe_with(&directory, &["check", "-"], "");
    nothing.assert_code(1);
    assert!(nothing.stdout.starts_with("-:1:1: error: "), "{nothing:?}");

    let file = |arguments: &[&str]| sbe(&directory, arguments);
    let pairs: [(&[&str], &[&str]); 3] = [
        (&["describe", "-"], &["describe", "shop.xml"]),
        (
            &["diff", "-", "shop.xml"],
            &["diff", "shop.xml", "shop.xml"],
        ),
        (
            &["diff", "shop.xml", "-"],
            &["diff", "shop.xml", "shop.xml"],
        ),
    ];
    for (from_input, from_file) in pairs {
        let found = sbe_with(&directory, from_input, SCHEMA);
        found.assert_code(0).assert_silent();
        assert_eq!(found.stdout, file(from_file).stdout, "{from_input:?}");
    }
    let decoded = sbe_with(&directory, &["decode", "-", "orders.bin"], SCHEMA);
    assert_eq!(
        decoded.stdout,
        file(&["decode", "shop.xml", "orders.bin"]).stdout
    );
    assert!(decoded.stdout.contains("side: Buy"), "{decoded:?}");
    let generated = sbe_with(&directory, &["generate", "-", "-o", "made"], SCHEMA);
    generated.assert_code(0).assert_silent();
    assert_eq!(generated.stdout, "made/shop.rs\n");
}

#[test]
fn standard_input_given_twice_is_rejected() {
    let directory = Directory::new("sbe-stdin-twice");
    orders(&directory);
    for arguments in [
        &["check", "-", "shop.xml", "-"][..],
        &["diff", "-", "-"],
        &["generate", "-", "-", "-o", "made"],
        &["decode", "-", "-"],
    ] {
        let refused = sbe_with(&directory, arguments, SCHEMA);
        refused.assert_code(2);
        assert!(
            refused
                .stderr
                .contains("- is given 2 times, and standard input can be read only once"),
            "{arguments:?}: {refused:?}"
        );
        assert_eq!(refused.stdout, "", "{arguments:?}");
    }
}

#[test]
fn check_with_too_many_problems_says_there_are_more() {
    let directory = Directory::new("sbe-check-many");
    let wrong = |count: usize| {
        let fields: String = (0..count)
            .map(|at| format!("<field name=\"f{at}\" id=\"{}\" type=\"none\"/>\n", at + 3))
            .collect();
        SCHEMA.replace("</message>", &format!("{fields}</message>"))
    };
    directory.file("all.xml", &wrong(1_000));
    directory.file("more.xml", &wrong(1_001));
    let last = |outcome: &Outcome| outcome.stdout.lines().last().map(str::to_owned);
    let all = sbe(&directory, &["check", "all.xml"]);
    all.assert_code(1);
    assert_eq!(all.stdout.lines().count(), 1_001);
    assert_eq!(
        last(&all).as_deref(),
        Some("all.xml: 1000 errors, no warnings")
    );
    let more = sbe(&directory, &["check", "more.xml"]);
    more.assert_code(1);
    assert_eq!(more.stdout.lines().count(), 1_002);
    assert_eq!(
        last(&more).as_deref(),
        Some("more.xml: 1000 errors and more, no warnings")
    );
    for (file, are_more) in [("all.xml", false), ("more.xml", true)] {
        let json = sbe(&directory, &["check", "--json", file]);
        let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["errors"], 1_000, "{file}");
        assert_eq!(json["moreErrors"], are_more, "{file}");
        assert_eq!(json["moreWarnings"], false, "{file}");
    }
}

#[test]
fn describe_shows_offsets() {
    let directory = Directory::new("sbe-describe");
    orders(&directory);
    let all = sbe(&directory, &["describe", "shop.xml"]);
    all.assert_code(0).assert_silent();
    assert!(all.stdout.contains("1 Order, block of 5\n"), "{all:?}");
    assert!(all.stdout.contains("       4       1  side"), "{all:?}");
    let one = sbe(&directory, &["describe", "--json", "-m", "1", "shop.xml"]);
    let json: serde_json::Value = serde_json::from_str(&one.stdout).expect("JSON");
    assert_eq!(json["messages"][0]["rows"][1]["offset"], 4);
    let none = sbe(&directory, &["describe", "-m", "Offer", "shop.xml"]);
    none.assert_code(1);
    assert!(
        none.stderr.contains("there is no message Offer"),
        "{none:?}"
    );
}

#[test]
fn diff_reports_compatibility() {
    let directory = Directory::new("sbe-diff");
    directory.file("old.xml", SCHEMA);
    let newer = SCHEMA.replace("version=\"0\"", "version=\"1\"");
    let field = "<field name=\"size\" id=\"3\" type=\"int32\" sinceVersion=\"1\"/>\n</message>";
    directory.file("new.xml", &newer.replace("</message>", field));
    directory.file(
        "bad.xml",
        &newer.replace("type=\"uint32\"", "type=\"int64\""),
    );

    let same = sbe(&directory, &["diff", "old.xml", "old.xml"]);
    same.assert_code(0);
    assert_eq!(same.stdout, "equal on the wire and in names\n");
    let new = sbe(&directory, &["diff", "old.xml", "new.xml"]);
    new.assert_code(0);
    assert!(
        new.stdout
            .contains("new.xml:12:1: extension: Order.size: is new\n"),
        "{new:?}"
    );
    assert!(new.stdout.ends_with("\ncompatible\n"), "{new:?}");
    let bad = sbe(&directory, &["diff", "--json", "old.xml", "bad.xml"]);
    bad.assert_code(3);
    let json: serde_json::Value = serde_json::from_str(&bad.stdout).expect("JSON");
    assert_eq!(json["compatible"], false);
    assert_eq!(json["worst"], "breaking");
    sbe(&directory, &["diff", "old.xml", "none.xml"]).assert_code(1);
}

#[test]
fn schema_errors_are_text_on_standard_error() {
    let directory = Directory::new("sbe-wrong");
    orders(&directory);
    directory.file("a.xml", &SCHEMA.replace("\"uint32\"", "\"none\""));
    directory.file("b.xml", &SCHEMA.replace("\"uint32\"", "\"nothing\""));
    for (arguments, expected) in [
        (
            &["describe", "--json", "a.xml"][..],
            &["a.xml:10:3: error: unknown type none"][..],
        ),
        (
            &["decode", "--json", "a.xml", "orders.bin"],
            &["a.xml:10:3: error: unknown type none"],
        ),
        (
            &["generate", "a.xml", "-o", "out"],
            &["a.xml:10:3: error: unknown type none"],
        ),
        (
            &["diff", "--json", "shop.xml", "b.xml"],
            &["b.xml:10:3: error: unknown type nothing"],
        ),
        (
            &["diff", "--json", "a.xml", "b.xml"],
            &[
                "a.xml:10:3: error: unknown type none",
                "b.xml:10:3: error: unknown type nothing",
            ],
        ),
    ] {
        let outcome = sbe(&directory, arguments);
        outcome.assert_code(1);
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        let lines: Vec<_> = outcome.stderr.lines().skip(1).collect();
        assert_eq!(lines, expected, "{arguments:?}");
    }
    // `generate` has no JSON output.
    sbe(&directory, &["generate", "--json", "shop.xml", "-o", "out"]).assert_code(2);
}

#[test]
fn decode_prints_messages_until_one_is_damaged() {
    let directory = Directory::new("sbe-decode");
    orders(&directory);
    let shown = sbe(&directory, &["decode", "shop.xml", "orders.bin"]);
    shown.assert_code(0).assert_silent();
    assert_eq!(
        shown.stdout,
        "0: Order (template 1), version 0, 13 bytes\n  id: 42\n  side: Buy\n\
         13: Order (template 1), version 0, 13 bytes\n  id: 43\n  side: null\n"
    );
    let json = sbe(
        &directory,
        &["decode", "--json", "--skip", "13", "shop.xml", "orders.bin"],
    );
    let message: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(message["offset"], 13);
    assert_eq!(message["fields"]["id"], 43);

    let broken = sbe(
        &directory,
        &["decode", "--skip", "1", "shop.xml", "orders.bin"],
    );
    broken.assert_code(1);
    assert_eq!(broken.stderr, "taran: at byte 1: schema id 0, expected 7\n");
    let beyond = ["decode", "--skip", "27", "shop.xml", "orders.bin"];
    sbe(&directory, &beyond).assert_code(2);
}

#[test]
fn decode_with_framing_continues_after_an_invalid_message() {
    let directory = Directory::new("sbe-frames");
    orders(&directory);
    let mut framed = Vec::new();
    for message in [&ORDERS[..13], b"junk", &ORDERS[13..]] {
        framed.push(message.len() as u8);
        framed.push(0);
        framed.extend_from_slice(message);
    }
    let mut child = taran(&["sbe", "decode", "--framing", "u16le", "shop.xml", "-"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("taran starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(&framed).expect("taran reads");
    drop(stdin);
    let output = child.wait_with_output().expect("taran ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout.contains("2: Order"), "{stdout}");
    assert!(stdout.contains("23: Order"), "{stdout}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "taran: at byte 17: 8 bytes are needed for the header of a message, and 4 are left\n"
    );
}

#[test]
fn generate_is_deterministic() {
    let directory = Directory::new("sbe-generate");
    orders(&directory);
    let read = |folder: &str| {
        let path = directory.path().join(folder).join("shop.rs");
        std::fs::read_to_string(path).expect("it was written")
    };
    for folder in ["one", "two/deep"] {
        let written = sbe(&directory, &["generate", "shop.xml", "-o", folder]);
        written.assert_code(0).assert_silent();
        assert_eq!(written.stdout, format!("{folder}/shop.rs\n"));
    }
    assert!(read("one").contains("OrderDecoder"));
    assert_eq!(read("one"), read("two/deep"));

    // The package gives the file its name.
    directory.file("other.xml", SCHEMA);
    let other = sbe(&directory, &["generate", "other.xml", "-o", "five"]);
    assert_eq!(other.stdout, "five/shop.rs\n");

    let twice = sbe(
        &directory,
        &["generate", "shop.xml", "shop.xml", "-o", "three"],
    );
    twice.assert_code(2);
    assert!(!directory.path().join("three").exists());
    let twins = SCHEMA.replace("</enum>", "<validValue name=\"buy\">2</validValue></enum>");
    directory.file("twins.xml", &twins);
    let renamed = sbe(&directory, &["generate", "twins.xml", "-o", "four"]);
    renamed.assert_code(0);
    assert_eq!(
        renamed.stderr,
        "twins.xml:7:77: warning: in Rust, buy would have the name Buy of Buy (at twins.xml:7:40), and gets Buy2\n"
    );
    assert!(read("four").contains("2 => Self::Buy2,"));
    // A file exists in place of the directory.
    sbe(&directory, &["generate", "shop.xml", "-o", "shop.xml"]).assert_code(1);
}
