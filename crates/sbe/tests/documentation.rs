// SPDX-License-Identifier: Apache-2.0
//! Descriptions in a schema become plain text in the documentation of the codecs: no code that Cargo would run as a
//! test of the crate that contains them, no links or HTML that rustdoc would warn of, and no markup.
//!
//! Verified with the parser of rustdoc and the extensions that rustdoc enables.

#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use taran_sbe::xml::NoFiles;
use taran_sbe::{compile, generate};

/// Every element called `D` gets the description.
const SCHEMA: &str = r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="a.b" id="1" version="1" D>
<types>
  <composite name="messageHeader" D>
    <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
    <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
    <type name="own" primitiveType="uint16" D/>
  </composite>
  <composite name="groupSizeEncoding">
    <type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/>
  </composite>
  <composite name="text">
    <type name="length" primitiveType="uint16"/><type name="varData" primitiveType="uint8" length="0"/>
  </composite>
  <type name="Simple" primitiveType="uint8" D/>
  <type name="Always" primitiveType="uint8" presence="constant" D>1</type>
  <enum name="Enum" encodingType="uint8" D><validValue name="A" D>1</validValue></enum>
  <set name="Set" encodingType="uint8" D><choice name="a" D>1</choice></set>
  <composite name="Composite" D>
    <type name="a" primitiveType="uint8" minValue="3" D/><ref name="b" type="Simple"/><ref name="c" type="Set" D/>
    <enum name="Inner" encodingType="uint8" D><validValue name="A" D>1</validValue></enum>
  </composite>
</types>
<message name="M" id="1" D>
  <field name="a" id="1" type="Simple" D/><field name="b" id="2" type="Composite" D/><field name="c" id="3" type="Always" D/>
  <field name="d" id="4" type="uint8" presence="optional" sinceVersion="1" deprecated="1" D/>
  <group name="e" id="5" D><field name="f" id="6" type="Enum" D/><data name="g" id="7" type="text" D/></group>
  <data name="h" id="8" type="text" sinceVersion="1" D/>
</message>
</sbe:messageSchema>"#;

/// Generates the codecs of a schema in which every element has this description.
fn codecs(description: &str) -> String {
    // As character references, which the XML parser does not normalize.
    let written: String = description
        .chars()
        .map(|character| format!("&#{};", u32::from(character)))
        .collect();
    let schema = SCHEMA.replace(" D", &format!(" description=\"{written}\""));
    let compiled = compile("", &NoFiles(&schema)).unwrap_or_else(|error| panic!("{error}"));
    generate::rust(&compiled.schema).unwrap().remove(0).text
}

/// Returns the doc comments, without the slashes.
fn documentation(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim_start) {
        let Some(line) = line.strip_prefix("///") else {
            is_open = false;
            continue;
        };
        if !is_open {
            all.push(String::new());
            is_open = true;
        }
        let doc = all.last_mut().unwrap();
        // As in rustdoc, one blank belongs to the slashes.
        doc.push_str(line.strip_prefix(' ').unwrap_or(line));
        doc.push('\n');
    }
    all
}

/// Returns the text of a comment, or an error if it contains markup.
fn read(doc: &str) -> Result<String, String> {
    let extensions = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_SMART_PUNCTUATION;
    let (mut shown, mut in_heading) = (String::new(), false);
    for event in Parser::new_ext(doc, extensions) {
        match event {
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) | Event::SoftBreak => {
                shown.push('\n');
            }
            // rustdoc warns of bare URLs.
            Event::Text(text) if text.contains("http://") || text.contains("https://") => {
                return Err(format!("the address {text}"));
            }
            // The only heading the generator writes is `Errors`.
            Event::Text(text) if in_heading && &*text != "Errors" => {
                return Err(format!("the heading {text}"));
            }
            Event::Text(text) | Event::Code(text) => shown.push_str(&text),
            Event::Start(Tag::Heading { .. }) | Event::End(TagEnd::Heading(_)) => {
                in_heading = !in_heading;
                shown.push('\n');
            }
            markup => return Err(format!("{markup:?}")),
        }
    }
    Ok(straight(&shown))
}

/// Restores quotation marks that rustdoc replaced, the only change a description may undergo.
fn straight(text: &str) -> String {
    text.replace(['“', '”'], "\"").replace(['‘', '’'], "'")
}

/// Returns the printable content of a description as lines of words.
fn words(description: &str) -> Vec<String> {
    let shows = |character: &char| {
        !character.is_control()
            && !matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    let lines = description.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
    let lines = lines.map(|line| line.chars().filter(shows).collect::<String>());
    lines
        .flat_map(|line| {
            let words = line.split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Checks that all of the description is shown as text.
fn check(description: &str) -> Result<(), String> {
    let expected = straight(&words(description).join(" "));
    let mut shown = 0;
    for doc in documentation(&codecs(description)) {
        let read = read(&doc).map_err(|markup| format!("{markup} of {description:?} in\n{doc}"))?;
        let read = read.split_whitespace().collect::<Vec<_>>().join(" ");
        shown += usize::from(read.contains(&expected));
    }
    if shown < DESCRIBED {
        return Err(format!(
            "{description:?} is read in {shown} comments of {DESCRIBED}"
        ));
    }
    Ok(())
}

/// Number of comments with the description; decoders and encoders each have one.
const DESCRIBED: usize = 38;

#[test]
fn description_markup_is_escaped() {
    for description in [
        "~~~\npanic!();\n~~~",
        "```\npanic!();\n```",
        "text\n\n    panic!();",
        "\u{A0}\u{A0}\u{A0}\u{A0}panic!();",
        "-     panic!();",
        "- a\n\n      panic!();",
        "1.     panic!();\n2)     panic!();",
        "+ a",
        "a\n===",
        "a\n---",
        "- - -",
        "***",
        "# a",
        "> a",
        "a | b\n--|--\nc | d",
        "| a |\n| - |\n| c |",
        "a | b\n:-:|:-:\nc | d",
        "a\\\nb",
        "~~a~~ ~b~ *c* _d_ **e** __f__ `g`",
        "[a] [a](b) ![a](b) [a][b] [a]: b",
        "[a]: b\n[^1]: c",
        "- [ ] a",
        "<b>a</b> <!-- a <script> <http://a.bc> <a@b.cd>",
        "&lt;b&gt; &#60; &#x3c; &amp",
        "see http://example.com/a_b?c=d&e and https://example.com",
        "start with --force ... \"x\" and 'y', a---b -- c.... - - .. '",
        "R&D, 5 > 4, a_b, 1.5 and -1",
    ] {
        check(description).unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Generates markup fragments and other text valid in XML.
fn descriptions() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "~~~",
        "```",
        "`",
        "    ",
        "  ",
        "\t",
        "\n",
        "\n\n",
        "\r",
        "\r\n",
        "-",
        "--",
        "...",
        "\"",
        "'",
        "- ",
        "+ ",
        "* ",
        "1. ",
        "12)",
        "1.     ",
        "===",
        "---",
        "***",
        "| a | b |",
        "|-|-|",
        ":-",
        "[a]",
        "[a]: b",
        "(b)",
        "[^a]:",
        "<b>",
        "</b>",
        "<!--",
        "&lt;",
        "&#60;",
        "http://",
        "https://a.bc",
        "\\",
        "#",
        "> ",
        "!",
        "_a_",
        "~a~",
        "*",
        "a",
        "\u{A0}",
        "\u{2028}",
        "\u{202E}",
        "fn main() {}",
    ]);
    let in_xml = |character: char| match character {
        '\t' | '\n' | '\r' => character,
        '\0'..'\u{20}' | '\u{FFFE}' | '\u{FFFF}' => '?',
        _ => character,
    };
    let anything = any::<char>().prop_map(move |character| in_xml(character).to_string());
    let piece = prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => anything];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]
    #[test]
    fn random_descriptions_contain_no_markup(description in descriptions()) {
        check(&description).map_err(TestCaseError::fail)?;
    }
}
