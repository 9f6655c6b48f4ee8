// SPDX-License-Identifier: Apache-2.0
//! Generated code is formatted as by rustfmt, and deterministic.

use std::path::Path;
use std::process::Command;

use taran_sbe::xml::NoFiles;
use taran_sbe::{compile, compile_file, generate};

const SCHEMAS: [&str; 11] = [
    "garage_v0",
    "garage_v1",
    "garage_v2",
    "music_v0",
    "music_v1",
    "ticks_v5",
    "ticks_v6",
    "vast",
    "twins",
    "weather_v0",
    "weather_v1",
];

/// Generates the codecs of a schema of this crate.
pub(crate) fn generated(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let compiled = compile_file(&folder.join(name).with_extension("xml")).unwrap();
    let files = generate::rust(&compiled.schema).unwrap();
    let [file] = files.try_into().unwrap();
    file.text
}

#[test]
fn generation_is_deterministic() {
    for name in SCHEMAS {
        assert_eq!(generated(name), generated(name), "{name}");
    }
}

#[test]
fn generated_code_is_formatted() {
    for name in SCHEMAS {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.rs"));
        std::fs::write(&path, generated(name)).unwrap();
        let mut rustfmt = Command::new("rustfmt");
        rustfmt.args(["--check", "--edition", "2024"]).arg(&path);
        let output = rustfmt.output().expect("rustfmt, which comes with Rust");
        assert!(
            output.status.success(),
            "{name}:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Returns a schema whose names are longer by this many letters.
fn lengthened(name: &str, letters: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let text = std::fs::read_to_string(path.join(name).with_extension("xml")).unwrap();
    let more = "LongerByAFewLettersThanAnybodyWouldLikeToReadIt";
    let names = [
        "Car",
        "serial",
        "Fuel",
        "plate",
        "Extras",
        "sunRoof",
        "Petrol",
        "repairs",
        "owners",
        "drivers",
        "licence",
        "maker",
        "Engine",
        "nickname",
        "second",
        "seats",
        "guarantee",
        "YesNo",
        "Priority",
        "Quote",
        "levels",
        "legs",
        "raw",
        "Side",
        "Marks",
        "open",
        "depth",
    ];
    let mut long = text;
    for name in names {
        for end in ["\"", "."] {
            let to = format!("\"{name}{}{end}", &more[..letters]);
            long = long.replace(&format!("\"{name}{end}"), &to);
        }
    }
    let compiled = compile("", &NoFiles(&long)).unwrap();
    generate::rust(&compiled.schema).unwrap().remove(0).text
}

#[test]
fn generated_code_with_long_names_is_formatted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("long");
    std::fs::create_dir_all(&folder).unwrap();
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--check", "--edition", "2024", "--color", "never"]);
    for (name, most) in [("garage_v2", 4), ("ticks_v5", 12)] {
        for letters in (0..=most).step_by(2) {
            let path = folder.join(format!("{name}_{letters}.rs"));
            std::fs::write(&path, lengthened(name, letters)).unwrap();
            rustfmt.arg(path);
        }
    }
    let output = rustfmt.output().expect("rustfmt, which comes with Rust");
    let changes = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{changes}");
}

/// Returns the doc comment of the item whose line ends with `item`, after the line `within`.
fn documentation(text: &str, within: &str, item: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = lines.iter().position(|line| *line == within);
    let start = start.unwrap_or_else(|| panic!("there is {within}"));
    let at = lines[start..]
        .iter()
        .position(|line| line.starts_with(item));
    let at = start + at.unwrap_or_else(|| panic!("{within} has {item}"));
    let above = lines[..at].iter().rev();
    let mut found: Vec<&str> = above
        .skip_while(|line| line.starts_with("#["))
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    found.reverse();
    found.join("\n")
}

#[test]
fn descriptions_become_doc_comments() {
    let text = generated("music_v0");
    let escaped = "A disc, with \\[brackets\\] & \\*stars\\* in its description.";
    for (within, item, expected) in [
        (
            "pub mod types {",
            "pub struct LabelDecoder",
            "What comes before each message: with two members more than the standard has.",
        ),
        (
            "impl<'a> LabelDecoder<'a> {",
            "pub fn sender",
            "Who pressed it.",
        ),
        (
            "impl<'a> LabelEncoder<'a> {",
            "pub fn sender",
            "Who pressed it.",
        ),
        ("pub enum Message<'a> {", "Disc(", escaped),
        (
            "impl<'a, At> DiscDecoder<'a, At> {",
            "pub fn year",
            "When it came out.",
        ),
        (
            "impl<'a, At> DiscEncoder<'a, At> {",
            "pub fn year",
            "When it came out.",
        ),
        (
            "impl<'a, At> DiscDecoder<'a, At> {",
            "pub fn artist",
            "Reads `artist`.",
        ),
    ] {
        let found = documentation(&text, within, item);
        assert_eq!(
            found.lines().next(),
            Some(expected),
            "{within} {item}: {found}"
        );
    }
    for (within, item, first, second) in [
        (
            "pub mod disc {",
            "pub struct DiscDecoder",
            "Reads the message `Disc`.",
            escaped,
        ),
        (
            "pub mod disc {",
            "pub struct DiscEncoder",
            "Writes the message `Disc`.",
            escaped,
        ),
    ] {
        let found = documentation(&text, within, item);
        assert_eq!(found, format!("{first}\n\n{second}"), "{item}");
    }
    for (within, item, expected) in [
        (
            "impl<'a> DiscDecoder<'a, at::Tracks> {",
            "pub fn tracks",
            "What is on it, in its order.",
        ),
        (
            "impl<'a> DiscEncoder<'a, at::Tracks> {",
            "pub fn tracks",
            "What is on it, in its order.",
        ),
        (
            "impl<'a> SidesEntry<'a, at::SidesPrint> {",
            "pub fn print",
            "What is printed on that side.",
        ),
        (
            "impl<'a> SidesEntryEncoder<'a, at::SidesPrint> {",
            "pub fn print",
            "What is printed on that side.",
        ),
    ] {
        let found = documentation(&text, within, item);
        assert!(found.starts_with(expected), "{within} {item}: {found}");
    }
    let garage = generated("garage_v2");
    for (within, item, expected) in [
        ("pub enum Fuel {", "Petrol", "With lead or without."),
        ("impl Extras {", "pub const SUN_ROOF", "Opens."),
        ("pub mod types {", "pub enum Fuel", "What it burns."),
        (
            "pub mod types {",
            "pub struct Extras",
            "What was paid for apart.",
        ),
        (
            "pub mod types {",
            "pub struct MoneyEncoder",
            "So and so much.",
        ),
    ] {
        assert_eq!(documentation(&garage, within, item), expected, "{item}");
    }
}
