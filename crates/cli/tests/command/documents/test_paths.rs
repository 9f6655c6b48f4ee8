// SPDX-License-Identifier: Apache-2.0
//! Paths of the tests in the workspace, read from its sources, and the `cargo test` commands that select them.
//!
//! A command is checked without building it: the paths have the form that libtest prints (`module::test`), and a filter
//! selects a test if it is a part of that path.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the test functions that each macro defines itself, by macro.
type TestMacros = HashMap<String, Vec<String>>;

/// A program that `cargo test` builds from a package, and the paths of its tests.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) package: String,
    pub(super) kind: Kind,
    pub(super) tests: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Library,
    Binary,
    Test(String),
    /// The examples in the documentation: their paths are not known, only whether there are any.
    Documentation,
}

/// Returns the programs of all packages below `crates`.
pub(super) fn programs(root: &Path) -> Vec<Program> {
    let entries = fs::read_dir(root.join("crates")).expect("the crates are there");
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    // Packages within the folders of others.
    folders.push(root.join("crates/fix/codecs"));
    folders.push(root.join("crates/sbe/codecs"));
    folders.iter().flat_map(|folder| package(folder)).collect()
}

fn package(folder: &Path) -> Vec<Program> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let name = manifest.split("name = \"").nth(1);
    let Some(name) = name.and_then(|rest| rest.split('"').next()) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    rust_files(folder, &mut files);
    let texts: Vec<String> = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .collect();
    let macros = test_macros(&texts);
    let mut roots = vec![
        (Kind::Library, folder.join("src/lib.rs")),
        (Kind::Binary, folder.join("src/main.rs")),
    ];
    let entries = fs::read_dir(folder.join("tests")).into_iter().flatten();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let target = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let file = if path.is_dir() {
            path.join("main.rs")
        } else {
            path
        };
        roots.push((Kind::Test(target), file));
    }
    let mut found = Vec::new();
    for (kind, file) in roots.into_iter().filter(|(_, file)| file.is_file()) {
        let mut tests = BTreeSet::new();
        module(&file, true, "", &macros, &mut tests);
        found.push(Program {
            package: name.to_owned(),
            kind,
            tests,
        });
    }
    let has_examples = texts.iter().any(|text| {
        text.lines()
            .any(|line| matches!(line.trim_start(), "/// ```" | "//! ```"))
    });
    if has_examples {
        let tests = BTreeSet::from([String::new()]);
        found.push(Program {
            package: name.to_owned(),
            kind: Kind::Documentation,
            tests,
        });
    }
    found
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
    {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// Macros that define tests: those whose text has `#[test]`. `seeded!` of the simulator is known to all packages.
fn test_macros(texts: &[String]) -> TestMacros {
    let mut found = TestMacros::from([("seeded".to_owned(), Vec::new())]);
    for part in texts
        .iter()
        .flat_map(|text| text.split("macro_rules! ").skip(1))
    {
        // rustfmt ends an item of a file with a brace in the first column, one of an inline module further in.
        let body = part.split("\n}").next().unwrap_or_default();
        if identifier(part).is_empty() || !body.contains("#[test]") {
            continue;
        }
        let functions = body
            .split("#[test]")
            .skip(1)
            .filter_map(|rest| rest.split("fn ").nth(1));
        let names = functions.map(identifier).filter(|name| !name.is_empty());
        found.insert(identifier(part), names.collect());
    }
    found
}

/// The identifier at the beginning of a text.
fn identifier(text: &str) -> String {
    let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    text.chars().take_while(is_part).collect()
}

/// Adds the tests of a file and of the modules that it declares. The text is formatted by rustfmt: an item and the brace
/// at its end have the same indentation.
fn module(
    file: &Path,
    is_root: bool,
    prefix: &str,
    macros: &TestMacros,
    tests: &mut BTreeSet<String>,
) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let folder = file.parent().expect("a file is in a folder");
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let children = if is_root || stem == "mod" {
        folder.to_owned()
    } else {
        folder.join(&*stem)
    };
    // Inline modules that are open, each with its indentation.
    let mut inline: Vec<(usize, String)> = Vec::new();
    let (mut is_test, mut path_attribute) = (false, None);
    // Indentation of the `macro_rules!` that is skipped.
    let mut definition: Option<usize> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        if let Some(start) = definition {
            if indentation == start && code.starts_with('}') {
                definition = None;
            }
            continue;
        }
        if code == "}"
            && inline
                .last()
                .is_some_and(|(start, _)| *start == indentation)
        {
            inline.pop();
            continue;
        }
        let path = |name: &str| {
            let modules = inline.iter().map(|(_, name)| name.as_str());
            let outer = Some(prefix).filter(|prefix| !prefix.is_empty());
            outer
                .into_iter()
                .chain(modules)
                .chain([name])
                .collect::<Vec<_>>()
                .join("::")
        };
        if code.starts_with("macro_rules!") {
            definition = Some(indentation);
        } else if code == "#[test]" {
            is_test = true;
        } else if let Some(rest) = code.strip_prefix("#[path = \"") {
            path_attribute = rest.split('"').next().map(str::to_owned);
        } else if let Some(rest) = item(code, "mod ") {
            let name = identifier(rest);
            if rest.ends_with('{') {
                inline.push((indentation, name));
            } else if rest.ends_with(';') {
                let within = inline
                    .iter()
                    .fold(children.clone(), |at, (_, name)| at.join(name));
                let attribute = path_attribute.take();
                // A file that an attribute names is the root of its folder, as `mod.rs` is.
                let is_root = attribute.is_some();
                let candidates = match attribute {
                    Some(path) if inline.is_empty() => vec![folder.join(path)],
                    Some(path) => vec![within.join(path)],
                    None => vec![
                        within.join(format!("{name}.rs")),
                        within.join(&name).join("mod.rs"),
                    ],
                };
                for candidate in candidates.iter().filter(|candidate| candidate.is_file()) {
                    module(candidate, is_root, &path(&name), macros, tests);
                }
            }
        } else if let Some(rest) = item(code, "fn ") {
            if is_test {
                tests.insert(path(&identifier(rest)));
            }
            is_test = false;
        } else if let Some((called, rest)) = code.split_once('!')
            && let Some(own) = macros.get(called)
        {
            let mut arguments = format!("{rest}\n");
            if !(rest.ends_with(';') || rest.ends_with('}')) {
                for line in lines.by_ref().take_while(|line| !is_end(line, indentation)) {
                    arguments.push_str(line);
                    arguments.push('\n');
                }
            }
            tests.extend(own.iter().map(|name| path(name)));
            tests.extend(argument_names(&arguments).iter().map(|name| path(name)));
        }
    }
}

/// The rest of a line that declares an item, whatever its visibility.
fn item<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let visibility = ["", "pub ", "pub(crate) ", "pub(super) "];
    visibility
        .iter()
        .find_map(|it| code.strip_prefix(it)?.strip_prefix(keyword))
}

fn is_end(line: &str, indentation: usize) -> bool {
    let code = line.trim_start();
    line.len() - code.len() == indentation && (code.starts_with('}') || code.starts_with(')'))
}

/// Names in the arguments of a macro that may be names of tests: all identifiers before the first closure that are
/// neither in text nor attributes.
fn argument_names(arguments: &str) -> Vec<String> {
    let head = arguments.split('|').next().unwrap_or_default();
    let lines = head
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', '/']));
    let code: Vec<&str> = lines.flat_map(|line| line.split('"').step_by(2)).collect();
    let code = code.join(" ");
    let words = code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
    words.filter(is_name).map(str::to_owned).collect()
}

/// A command that runs tests: of packages, of all their programs or of one kind, by filters.
#[derive(Clone, Debug, Default)]
pub(super) struct TestCommand {
    packages: Vec<String>,
    kind: Option<Kind>,
    filters: Vec<String>,
}

impl TestCommand {
    /// Parses the text between backquotes; `…` repeats the beginning of the command before it.
    pub(super) fn read(text: &str, before: Option<&TestCommand>) -> Option<TestCommand> {
        let (mut command, words) = match (text.strip_prefix("… "), before) {
            (Some(rest), Some(before)) => {
                let is_filter = !rest.starts_with("--");
                let kept = TestCommand {
                    packages: before.packages.clone(),
                    kind: before.kind.clone().filter(|_| is_filter),
                    filters: Vec::new(),
                };
                (kept, rest)
            }
            (Some(_), None) => return None,
            (None, _) => {
                let (variables, words) = text.split_once("cargo test")?;
                let is_command = variables.split_whitespace().all(|word| word.contains('='));
                is_command.then_some((TestCommand::default(), words))?
            }
        };
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-p" => command.packages.extend(words.next().map(str::to_owned)),
                "--test" => command.kind = words.next().map(|name| Kind::Test(name.to_owned())),
                "--bin" => command.kind = words.next().map(|_| Kind::Binary),
                "--lib" => command.kind = Some(Kind::Library),
                "--doc" => command.kind = Some(Kind::Documentation),
                option if option.starts_with('-') => {}
                filter => command.filters.push(filter.to_owned()),
            }
        }
        Some(command)
    }

    /// Returns true if each filter, or the command without one, runs at least one test in each of the packages.
    pub(super) fn runs_tests(&self, programs: &[Program]) -> bool {
        let is_chosen = |program: &&Program| {
            let kind = self.kind.as_ref();
            kind.is_none_or(|kind| *kind == program.kind)
        };
        let runs = |package: Option<&str>, filter: &str| {
            let programs = programs.iter().filter(is_chosen);
            programs
                .filter(|program| package.is_none_or(|package| package == program.package))
                .any(|program| program.tests.iter().any(|test| test.contains(filter)))
        };
        let packages: Vec<Option<&str>> = match &self.packages[..] {
            [] => vec![None],
            packages => packages.iter().map(|it| Some(it.as_str())).collect(),
        };
        let filters: Vec<&str> = match &self.filters[..] {
            [] => vec![""],
            filters => filters.iter().map(String::as_str).collect(),
        };
        packages
            .iter()
            .all(|package| filters.iter().all(|filter| runs(*package, filter)))
    }
}
