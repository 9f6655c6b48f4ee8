// SPDX-License-Identifier: Apache-2.0
//! Conversion of schema names to Rust names.

/// Rust keywords, including reserved ones.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Methods of decoders and encoders other than field accessors.
const METHODS: &[&str] = &[
    "acting_version",
    "blank",
    "block_bytes",
    "decode",
    "done",
    "encode",
    "encode_with",
    "finish",
    "moved",
    "out_of_range",
    "pass",
    "remaining",
    "rest",
    "start",
    "wrap",
    "writer",
];

/// Modules next to the message modules.
const MODULES: &[&str] = &["core", "taran_sbe", "types", "runtime"];

/// Types that generated code refers to by their plain names.
const TYPES: &[&str] = &[
    "AsRef", "Clone", "Copy", "Default", "Err", "From", "Into", "Iterator", "None", "Ok", "Option",
    "Result", "Self", "Some",
];

/// `usage_description`: a method name.
pub(super) fn method(name: &str) -> String {
    unless(snake(name), METHODS)
}

/// `fuel_figures`: a module name.
pub(super) fn module(name: &str) -> String {
    unless(snake(name), MODULES)
}

/// `FuelFigures`: a complete type name.
pub(super) fn kind(name: &str) -> String {
    unless(pascal(name), TYPES)
}

/// `FuelFigures`: a part of a type name.
pub(super) fn part(name: &str) -> String {
    pascal(name)
}

/// `FuelFigures`: a marker type name.
pub(super) fn marker(name: &str) -> String {
    unless(pascal(name), &["Done", "Self"])
}

/// `NoChange`: a variant name.
pub(super) fn variant(name: &str) -> String {
    unless(pascal(name), &["NULL", "Self", "Unknown"])
}

/// `PRICE`: the prefix of the constants of the field with this method.
pub(super) fn shouted(method: &str) -> String {
    let word = method.strip_suffix('_').filter(|word| {
        // Names that follow another word cannot be keywords.
        METHODS.contains(word) || KEYWORDS.contains(word)
    });
    word.unwrap_or(method).to_ascii_uppercase()
}

/// `SUN_ROOF`: a constant for a choice of a set.
pub(super) fn constant(name: &str) -> String {
    unless(snake(name).to_ascii_uppercase(), &["ALL", "NONE"])
}

fn unless(name: String, reserved: &[&str]) -> String {
    if reserved.contains(&name.as_str()) || KEYWORDS.contains(&name.as_str()) {
        name + "_"
    } else {
        name
    }
}

fn snake(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            snake.push('_');
            continue;
        }
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1);
        let starts_word = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    started(snake, 'n')
}

fn pascal(name: &str) -> String {
    let words: Vec<&str> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let shouted = words.len() > 1 && !name.chars().any(|character| character.is_ascii_lowercase());
    let mut pascal = String::new();
    for word in words {
        let (first, rest) = word.split_at(1);
        // `LEVEL_1_2` and `LEVEL_12` must remain different.
        let after_digit = pascal.ends_with(|last: char| last.is_ascii_digit());
        if after_digit && first.starts_with(|first: char| first.is_ascii_digit()) {
            pascal.push('_');
        }
        pascal.push_str(&first.to_ascii_uppercase());
        if shouted {
            pascal.push_str(&rest.to_ascii_lowercase());
        } else {
            pascal.push_str(rest);
        }
    }
    started(pascal, 'N')
}

/// Adds a prefix to names that are empty, `_`, or begin with a digit.
fn started(name: String, prefix: char) -> String {
    let nameless = name.chars().all(|character| character == '_');
    if nameless || name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{prefix}{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_word_boundaries() {
        for (name, expected) in [
            ("serialNumber", "serial_number"),
            ("MDEntryPx", "md_entry_px"),
            ("OrderID", "order_id"),
            ("already_snake", "already_snake"),
            ("x", "x"),
            ("type", "type_"),
            ("Self", "self_"),
            ("wrap", "wrap_"),
            ("1st", "n1st"),
            ("a.b", "a_b"),
            ("_", "n_"),
        ] {
            assert_eq!(method(name), expected, "{name}");
        }
    }

    #[test]
    fn field_constants_are_named_after_methods() {
        for (name, expected) in [("maxPrice", "MAX_PRICE"), ("type", "TYPE"), ("a_", "A_")] {
            assert_eq!(shouted(&method(name)), expected, "{name}");
        }
    }

    #[test]
    fn types_and_variants_are_camel_case() {
        for (name, expected) in [
            ("booleanType", "BooleanType"),
            ("NO_CHANGE", "NoChange"),
            ("GTC", "GTC"),
            ("group_size", "GroupSize"),
            ("Option", "Option_"),
            ("LEVEL_1_2", "Level1_2"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        assert_eq!(variant("unknown"), "Unknown_");
        assert_eq!(variant("NULL"), "NULL_");
        assert_eq!(constant("sunRoof"), "SUN_ROOF");
    }
}
