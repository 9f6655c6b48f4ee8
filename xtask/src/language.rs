// SPDX-License-Identifier: Apache-2.0
//! Test only: comments, names and documents use plain technical English (CONTRIBUTING.md, "Style").

use std::fs;

use crate::sources::{files_below, root};

/// Words and phrases that a new reader of this code base would not understand, or that make a person of a program.
const DENIED: &[&str] = &[
    "anybody",
    "chores",
    "convoy",
    "doorbell",
    "everybody",
    "foresight",
    "he has not",
    "hears from",
    "led astray",
    "lull",
    "nobody",
    "on the road",
    "outbox",
    "passenger",
    "sign of life",
    "signs of life",
    "somebody",
    "squeeze",
    "stranger",
    "strangers",
    "the house",
    "the road",
    "tourist",
    "vandal",
    "waiting room",
    "whereabouts",
    "whoever",
];

/// First words of a doc comment that make a question or a person its subject.
const DENIED_STARTS: &[&str] = &[
    "He", "How", "What", "Where", "Whether", "Who", "Whom", "Whose", "Why",
];

/// Files that quote denied words on purpose, or name the Unix user `nobody`.
const EXEMPT: &[&str] = &[
    "CONTRIBUTING.md",
    "crates/cli/tests/bad_input/directories.rs",
    "xtask/src/language.rs",
];

/// Returns true if the text has the phrase, not as a part of longer words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphabetic());
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back())
            && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

/// The first word of a doc comment that starts here; none if the line is something else or continues a comment.
fn first_word<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let text = doc_text(line)?;
    doc_text(before)
        .is_none_or(str::is_empty)
        .then(|| text.split(' ').next())?
}

fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("/// ")
        .or_else(|| line.strip_prefix("//! "))
        .or_else(|| (line == "///" || line == "//!").then_some(""))
}

/// Each place that breaks a rule, as `path:line: reason`.
fn findings(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_lowercase().replace('_', " ");
        for phrase in DENIED.iter().filter(|phrase| has_phrase(&lower, phrase)) {
            found.push(format!("{path}:{}: {phrase:?}", index + 1));
        }
        if let Some(word) = first_word(line, before).filter(|word| DENIED_STARTS.contains(word)) {
            found.push(format!(
                "{path}:{}: a doc comment starts with {word:?}",
                index + 1
            ));
        }
        before = line;
    }
    found
}

#[test]
fn sources_use_plain_technical_english() {
    let paths = files_below(&root(), &[".rs", ".md", ".java", ".toml"]);
    let mut found = Vec::new();
    for path in &paths {
        let name = path
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy();
        if !EXEMPT.contains(&&*name) {
            found.extend(findings(
                &name,
                &fs::read_to_string(path).unwrap_or_default(),
            ));
        }
    }
    assert!(paths.len() > 500, "{} files", paths.len());
    assert!(
        found.is_empty(),
        "{} findings:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn findings_in_names_and_comments_are_reported() {
    let text = "/// Whom it serves.\nfn take_the_road() {}\n// Lullaby, nobodys, squeezed.\n";
    assert_eq!(findings("x.rs", text).len(), 2);
    assert_eq!(
        findings("x.rs", "/// Sends it.\n/// What follows is fine.\n").len(),
        0
    );
}
