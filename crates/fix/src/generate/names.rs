// SPDX-License-Identifier: Apache-2.0
//! Names of the dictionary as Rust identifiers.

use std::collections::HashSet;

/// Keywords, and names that identifiers cannot have.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "Self", "static", "struct", "super", "trait", "true", "try", "type",
    "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

/// Returns the words of a name: runs of letters and digits, split where case changes.
fn words(name: &str) -> Vec<String> {
    // The plural of an acronym is one word.
    let name = name.replace("IDs", "Ids");
    let mut words: Vec<String> = Vec::new();
    for part in name.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let letters: Vec<char> = part.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| letters[at]);
            let after = letters.get(at + 1);
            let starts = match before {
                None => true,
                Some(before) => {
                    letter.is_ascii_uppercase()
                        && (!before.is_ascii_uppercase()
                            || after.is_some_and(char::is_ascii_lowercase))
                }
            };
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(*letter);
            }
        }
    }
    words
}

/// Returns the name of a method or module.
pub(super) fn snake(name: &str) -> String {
    let joined = words(name).join("_").to_ascii_lowercase();
    identifier(joined, "field")
}

/// Returns the name of a type or variant.
pub(super) fn type_name(name: &str) -> String {
    let mut joined = String::new();
    for word in words(name) {
        let mut letters = word.chars();
        joined.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(&letters.as_str().to_ascii_lowercase());
    }
    identifier(joined, "Value")
}

fn identifier(name: String, prefix: &str) -> String {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("{prefix}{name}");
    }
    if KEYWORDS.contains(&name.as_str()) {
        return format!("{name}_");
    }
    name
}

/// Returns a word for names without printable characters.
pub(super) fn constant() -> String {
    "unnamed".to_owned()
}

/// Names of one scope.
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn new(reserved: &[&str]) -> Self {
        Self(reserved.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Returns the name, with a number behind it if it is taken. Both forms of a field's methods are taken.
    pub(super) fn take(&mut self, name: &str, number: u32) -> String {
        let mut candidate = name.to_owned();
        let mut suffix = number;
        while self.0.contains(&candidate) || self.0.contains(&format!("{candidate}_raw")) {
            candidate = format!("{name}_{suffix}");
            suffix = suffix.wrapping_add(1);
        }
        self.0.insert(candidate.clone());
        self.0.insert(format!("{candidate}_raw"));
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rust_case() {
        for (name, method, of_type) in [
            ("ClOrdID", "cl_ord_id", "ClOrdId"),
            ("NoPartyIDs", "no_party_ids", "NoPartyIds"),
            ("MDEntryPx", "md_entry_px", "MdEntryPx"),
            ("GOOD_TILL_CANCEL", "good_till_cancel", "GoodTillCancel"),
            ("Type", "type_", "Type"),
            ("1stLeg", "field1st_leg", "Value1stLeg"),
            ("", "field", "Value"),
            ("self", "self_", "Self_"),
        ] {
            assert_eq!(
                (snake(name).as_str(), type_name(name).as_str()),
                (method, of_type),
                "{name}"
            );
        }
    }

    #[test]
    fn names_equal_ones_get_number() {
        let mut names = Names::new(&["bytes"]);
        assert_eq!(names.take("bytes", 5), "bytes_5");
        assert_eq!(names.take("side", 54), "side");
        assert_eq!(names.take("side", 624), "side_624");
        assert_eq!(names.take("side_raw", 7), "side_raw_7");
    }
}
