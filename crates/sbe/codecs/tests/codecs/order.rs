// SPDX-License-Identifier: Apache-2.0
//! Verifies that the `compile_fail` examples in the crate documentation fail with the error code they state.
//! Documentation tests of stable Rust check only that there is an error.

use crate::rustc::Rustc;

const DOCUMENTATION: &str = include_str!("../../src/lib.rs");

const BEFORE: &str = r#"
pub mod taran_sbe_codecs {
    pub mod garage_v0 {
        include!(concat!(env!("GENERATED"), "/garage_v0.rs"));
    }
}
mod example {
    use super::taran_sbe_codecs;
"#;

/// Returns the examples in the documentation: expected error code, if any, and source.
fn examples() -> Vec<(Option<String>, String)> {
    let mut examples = Vec::new();
    let mut open: Option<(Option<String>, String)> = None;
    let lines = DOCUMENTATION
        .lines()
        .skip_while(|line| !line.starts_with("//!"))
        .map_while(|line| line.strip_prefix("//!"));
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(whole)) => examples.push(whole),
            (Some(marks), None) => {
                let code = marks.strip_prefix("compile_fail,").map(str::to_owned);
                open = Some((code, String::new()));
            }
            (None, Some((code, text))) => {
                let line = line.strip_prefix("# ").unwrap_or(line);
                // Statements outside of functions are executed.
                let line = if line.starts_with("encode(") {
                    ""
                } else {
                    line
                };
                open = Some((code, format!("{text}{line}\n")));
            }
            (None, None) => {}
        }
    }
    examples
}

#[test]
fn compile_fail_examples_fail_for_the_documented_reason() {
    let rustc = Rustc::new("order", &["garage_v0"]);
    let examples = examples();
    let failing = examples.iter().filter(|(code, _)| code.is_some()).count();
    assert_eq!((examples.len(), failing), (6, 4));
    for (index, (code, text)) in examples.iter().enumerate() {
        let program = format!("{BEFORE}{text}}}\n");
        let result = rustc.run(&format!("example_{index}.rs"), "lib", &program);
        match code {
            None => result.unwrap_or_else(|error| panic!("{error}\n{text}")),
            Some(code) => {
                let error = result.expect_err(text);
                let codes: Vec<_> = error
                    .lines()
                    .filter_map(|line| line.strip_prefix("error["))
                    .map(|line| &line[..5])
                    .collect();
                assert_eq!(codes, [code.as_str()], "{error}");
            }
        }
    }
}
