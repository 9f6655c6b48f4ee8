// SPDX-License-Identifier: Apache-2.0
//! Removes the protections of transport security one at a time: each time a test has to fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File with the protections.
const TABLE: &str = "crates/secure/tests/protections.txt";

/// A protection, and how to remove it.
#[derive(Debug, PartialEq, Eq)]
struct Protection {
    name: String,
    file: PathBuf,
    /// Lines, and their replacements.
    changes: Vec<(String, String)>,
}

/// Runs the task.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (mut only, mut lists) = (None, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = Some(arguments.next().ok_or("--only needs a part of a name")?),
            "--list" => lists = true,
            other => {
                return Err(format!(
                    "unknown argument {other}; use --only TEXT or --list"
                ));
            }
        }
    }
    let table = fs::read_to_string(TABLE).map_err(|error| format!("{TABLE}: {error}"))?;
    let mut protections = parse(&table)?;
    protections.retain(|protection| only.is_none_or(|only| protection.name.contains(only)));
    let mut survivors = Vec::new();
    for protection in &protections {
        if lists {
            println!("{}", protection.name);
            continue;
        }
        let failed = without(protection)?;
        if failed.is_empty() {
            survivors.push(protection.name.as_str());
        }
        println!("{}: {}", protection.name, describe(&failed));
    }
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!(
        "no test fails without these protections: {}",
        survivors.join(", ")
    ))
}

fn describe(failed: &[String]) -> String {
    match failed {
        [] => "NO TEST FAILS".to_owned(),
        failed => failed.join(", "),
    }
}

/// Returns the tests that fail without a protection. The file is restored.
fn without(protection: &Protection) -> Result<Vec<String>, String> {
    let path: &Path = &protection.file;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let original = fs::read_to_string(path).map_err(failed)?;
    let changed = protection.apply(&original)?;
    fs::write(path, changed).map_err(failed)?;
    let output = Command::new("cargo")
        .args(["test", "-p", "taran-secure", "--lib", "--test", "attacks"])
        .arg("--no-fail-fast")
        .output();
    fs::write(path, original).map_err(failed)?;
    let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("test result") {
        return Err(format!(
            "{}: the tests do not build:\n{}",
            protection.name,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(failures(&text))
}

/// Returns the names of failed tests in the output of a test run.
fn failures(output: &str) -> Vec<String> {
    let lines = output.lines();
    let failed = lines.filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
}

impl Protection {
    /// Returns the text of the file without the protection.
    fn apply(&self, original: &str) -> Result<String, String> {
        let mut text = original.to_owned();
        for (old, new) in &self.changes {
            let Some(at) = text.rfind(old.as_str()) else {
                return Err(format!(
                    "{}: {} has no such lines:\n{old}",
                    self.name,
                    self.file.display()
                ));
            };
            text.replace_range(at..at + old.len(), new);
        }
        Ok(text)
    }
}

fn parse(table: &str) -> Result<Vec<Protection>, String> {
    let mut protections: Vec<Protection> = Vec::new();
    let mut is_replacement = false;
    for (index, line) in table.lines().enumerate() {
        let error = |what: &str| format!("{TABLE}: line {}: {what}", index + 1);
        if let Some(head) = line.strip_prefix("= ") {
            let (name, file) = head
                .split_once(" | ")
                .ok_or_else(|| error("needs NAME | FILE"))?;
            protections.push(Protection {
                name: name.to_owned(),
                file: file.into(),
                changes: Vec::new(),
            });
            is_replacement = true;
            continue;
        }
        let (kind, text) = line.split_at_checked(1).unwrap_or(("", ""));
        let text = text.strip_prefix(' ').unwrap_or(text);
        let Some(protection) = protections.last_mut().filter(|_| matches!(kind, "<" | ">")) else {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            return Err(error("expected '= ', '< ' or '> '"));
        };
        if kind == "<" {
            if std::mem::replace(&mut is_replacement, false) {
                protection.changes.push((String::new(), String::new()));
            }
        } else {
            is_replacement = true;
        }
        let Some((old, new)) = protection.changes.last_mut() else {
            return Err(error("a replacement without lines to replace"));
        };
        let of = if kind == "<" { old } else { new };
        of.push_str(text);
        of.push('\n');
    }
    Ok(protections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_protections_applies_to_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let table = fs::read_to_string(root.join(TABLE)).unwrap();
        let protections = parse(&table).unwrap();
        assert!(protections.len() > 20);
        for protection in protections {
            let original = fs::read_to_string(root.join(&protection.file)).unwrap();
            let changed = protection.apply(&original).unwrap();
            assert_ne!(changed, original, "{}", protection.name);
        }
    }

    #[test]
    fn parse_reads_several_changes_of_one_protection() {
        let table = "# note\n\n= one | a.rs\n< old\n>  new\n< other\n>\n= two | b.rs\n< x\n> y\n";
        let protections = parse(table).unwrap();
        assert_eq!(protections.len(), 2);
        assert_eq!(
            protections[0].changes,
            [
                ("old\n".to_owned(), " new\n".to_owned()),
                ("other\n".to_owned(), "\n".to_owned())
            ]
        );
        assert!(parse("nonsense").is_err());
        assert!(parse("= one | a.rs\n> new\n").is_err());
    }

    #[test]
    fn failures_are_the_failed_tests() {
        let output = "test a::b ... ok\ntest a::c ... FAILED\ntest result: FAILED.\n";
        assert_eq!(failures(output), ["a::c"]);
    }
}
