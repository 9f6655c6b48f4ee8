//! Checks of the documents: the tests, files, commands and specification sections that they name exist.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use sources::{files_below, root};

#[path = "../../../../xtask/src/sources.rs"]
mod sources;

/// The `file::test` references in a cell, with `file::{one, another}` taken apart.
fn references(cell: &str) -> Vec<(String, String)> {
    let quoted = cell.split('`').skip(1).step_by(2);
    let mut found = Vec::new();
    for reference in quoted {
        let Some((file, names)) = reference.split_once("::") else {
            panic!("`{reference}` is no `file::test`");
        };
        let names = names.trim_start_matches('{').trim_end_matches('}');
        found.extend(
            names
                .split(',')
                .map(|name| (file.to_owned(), name.trim().to_owned())),
        );
    }
    found
}

/// Returns true if the file defines a test or a scenario of this name.
fn defines(text: &str, name: &str) -> bool {
    // A scenario of the simulator begins with its name and the number of its seeds.
    let is_scenario = |line: &str| {
        let line = line.trim_start().trim_start_matches("seeded! { ");
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(", ") && rest.contains("|seed|"))
    };
    text.contains(&format!("fn {name}("))
        || text.contains(&format!("fn {name}<"))
        || text.lines().any(is_scenario)
}

/// The specifications: their chapters, each with its number of sections; 0 for a chapter without.
const PARTS: [(&str, &[(u32, u32)]); 3] = [
    (
        "docs/spec/shared-memory.md",
        &[
            (1, 6),
            (2, 5),
            (3, 8),
            (4, 3),
            (5, 10),
            (6, 2),
            (7, 9),
            (8, 6),
            (9, 6),
            (10, 2),
        ],
    ),
    (
        "docs/spec/wire.md",
        &[
            (1, 14),
            (2, 15),
            (3, 10),
            (4, 4),
            (5, 10),
            (6, 0),
            (7, 3),
            (8, 0),
            (9, 0),
            (10, 0),
            (11, 0),
        ],
    ),
    (
        "docs/spec/uri-and-configuration.md",
        &[(1, 14), (2, 15), (3, 3), (4, 3), (5, 8), (6, 0), (7, 0)],
    ),
];

/// The section numbers that follow a citation, such as `§2.3`, `§2.3 to §2.9, §4` or `§5.4-5.5`.
fn cited_sections(text: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix('§') {
        let end = after
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(after.len());
        sections.push(after[..end].trim_end_matches('.').to_owned());
        rest = &after[end..];
        for joint in [", ", " and ", " to "] {
            rest = rest
                .strip_prefix(joint)
                .filter(|rest| rest.starts_with('§'))
                .unwrap_or(rest);
        }
    }
    sections
}

/// The numbers of the sections of a specification, from its headings.
fn sections_of(page: &str) -> HashSet<String> {
    let titles = page.lines().filter_map(|line| {
        line.strip_prefix("## ")
            .or_else(|| line.strip_prefix("### "))
    });
    titles
        .filter_map(|title| title.split(' ').next())
        .map(|number| number.trim_end_matches('.').to_owned())
        .collect()
}

#[test]
fn cited_specification_sections_exist() {
    let paths = files_below(&root(), &[".rs", ".md", ".java", ".txt"]);
    let mut pages: HashMap<String, HashSet<String>> = HashMap::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for rest in text.split("docs/spec/").skip(1) {
            let Some((name, after)) = rest.split_once(".md") else {
                continue;
            };
            if name.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-') {
                continue;
            }
            count += 1;
            let sections = pages.entry(name.to_owned()).or_insert_with(|| {
                let page = root().join(format!("docs/spec/{name}.md"));
                sections_of(&fs::read_to_string(page).unwrap_or_default())
            });
            if sections.is_empty() {
                wrong.push(format!(
                    "{}: there is no docs/spec/{name}.md",
                    path.display()
                ));
            }
            for section in cited_sections(after.trim_start()) {
                if !sections.contains(&section) {
                    wrong.push(format!("{}: {name}.md has no §{section}", path.display()));
                }
            }
        }
    }
    assert!(count > 200, "{count} citations");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The numbers of all sections.
fn leaves(chapters: &[(u32, u32)]) -> impl Iterator<Item = String> {
    chapters.iter().flat_map(|(chapter, sections)| {
        if *sections == 0 {
            vec![chapter.to_string()]
        } else {
            let numbers = (1..=*sections).map(|section| format!("{chapter}.{section}"));
            numbers.collect()
        }
    })
}

#[test]
fn each_section_has_a_row_and_each_row_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let mut part = "";
    let mut sections = HashSet::new();
    let mut wrong = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            part = title;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let is_row = line.starts_with("| ") && !line.starts_with("| section");
        if !is_row {
            continue;
        }
        let [section, _, held_by, _] = cells[..] else {
            wrong.push(format!("not four cells: {line}"));
            continue;
        };
        let section = section.trim_start_matches("| ");
        if !sections.insert((part, section)) {
            wrong.push(format!("{section} comes twice in {part}"));
        }
        let tests = references(held_by);
        if tests.is_empty() {
            wrong.push(format!("{section} is held by nothing"));
        }
        for (file, name) in tests {
            let text = fs::read_to_string(root().join("crates").join(&file)).unwrap_or_default();
            if !defines(&text, &name) {
                wrong.push(format!("{section}: there is no {file}::{name}"));
            }
        }
    }
    for (part, chapters) in PARTS {
        for section in leaves(chapters) {
            let has_row = sections
                .iter()
                .any(|(of, title)| of.contains(part) && title.split(' ').next() == Some(&section));
            if !has_row {
                wrong.push(format!("{part} §{section} has no row"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Folder of the simulator's scenarios, below the root.
const SCENARIOS: &str = "crates/sim/tests/worlds";

/// Features that need scenarios.
const FEATURES: [&str; 27] = [
    "unicast",
    "IPC",
    "multicast, `min`",
    "manual destinations, `min`",
    "dynamic destinations, `min`",
    "`tagged`",
    "`max`",
    "multi-destination subscription",
    "spies",
    "response channels",
    "CUBIC, RTT",
    "untethered",
    "`reliable=false`",
    "rejected images",
    "revoked streams",
    "session ids",
    "initial positions",
    "timestamps",
    "IPv6",
    "IPv6 multicast",
    "relocated peers",
    "name resolution by gossip",
    "name table",
    "port ranges",
    "session limit",
    "unblocking",
    "static counters",
];

#[test]
fn each_feature_has_a_scenario_for_each_fault_or_a_reason() {
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let title = "## The simulator: scenarios";
    let (_, section) = page.split_once(title).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut wrong = Vec::new();
    let mut features = Vec::new();
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let cells = line.trim_start_matches("| ").trim_end_matches(" |");
        let cells: Vec<&str> = cells.split(" | ").collect();
        let [feature, faults @ ..] = &cells[..] else {
            continue;
        };
        if *feature == "feature" {
            continue;
        }
        features.push(*feature);
        if faults.len() != 5 {
            wrong.push(format!("{feature}: {} cells, not 5", faults.len()));
        }
        for cell in faults {
            if !cell.chars().any(char::is_alphabetic) {
                wrong.push(format!(
                    "{feature}: neither a scenario nor a reason: {cell:?}"
                ));
            }
            let scenarios = references(cell);
            if (cell.contains('`') || cell.contains(".rs")) && scenarios.is_empty() {
                wrong.push(format!("{feature}: names no scenario: {cell:?}"));
            }
            for (file, name) in scenarios {
                let path = root().join(SCENARIOS).join(&file);
                let text = fs::read_to_string(path).unwrap_or_default();
                if !defines(&text, &name) {
                    wrong.push(format!("{feature}: there is no {file}::{name}"));
                }
            }
        }
    }
    assert_eq!(features, FEATURES, "the features of the table");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A command of the guarantees that runs tests: of a package, of its library or of one test program, by a filter.
#[derive(Clone, Debug, Default)]
struct TestCommand {
    package: Option<String>,
    target: Option<String>,
    filter: Option<String>,
}

impl TestCommand {
    /// Parses the text between backquotes; `…` repeats the beginning of the command before it.
    fn read(text: &str, before: &TestCommand) -> Option<TestCommand> {
        let (mut command, words) = match text.strip_prefix("… ") {
            Some(rest) => {
                let is_filter = !rest.starts_with("--");
                let target = before.target.clone().filter(|_| is_filter);
                let package = before.package.clone();
                let kept = TestCommand {
                    package,
                    target,
                    filter: None,
                };
                (kept, rest)
            }
            None => (TestCommand::default(), text.strip_prefix("cargo test")?),
        };
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-p" => command.package = words.next().map(str::to_owned),
                "--test" | "--bin" => {
                    let target = words.next().map(str::to_owned);
                    // Programs of tests have names of their own, so that `…` need not say whose they are.
                    if text.starts_with('…') {
                        command.package = None;
                    }
                    command.target = target.filter(|_| word == "--test");
                }
                "--lib" | "--doc" => command.target = Some(word.to_owned()),
                filter => command.filter = Some(filter.to_owned()),
            }
        }
        Some(command)
    }

    /// Returns true if the path of some test contains the filter, as `cargo test` compares them.
    fn finds_tests(&self) -> bool {
        let packages = fs::read_dir(root().join("crates")).expect("the crates are there");
        let packages = packages.filter_map(|entry| Some(entry.ok()?.path()));
        // The codecs are a package within another one's folder.
        let codecs = root().join("crates/sbe/codecs");
        packages
            .chain([codecs])
            .filter(|folder| self.is_in(folder))
            .flat_map(|folder| self.tests(&folder))
            .any(|test| {
                let filter = self.filter.as_ref();
                filter.is_none_or(|filter| test.contains(filter.as_str()))
            })
    }

    fn is_in(&self, folder: &Path) -> bool {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let Some(package) = &self.package else {
            return true;
        };
        manifest.contains(&format!("name = \"{package}\""))
    }

    /// Paths of the functions in the chosen programs of a package.
    fn tests(&self, folder: &Path) -> Vec<String> {
        let library = [folder.join("src/lib.rs"), folder.join("src/main.rs")];
        let program = |name: &str| {
            let folder = folder.join("tests");
            [
                folder.join(format!("{name}.rs")),
                folder.join(name).join("main.rs"),
            ]
        };
        let roots = match self.target.as_deref() {
            Some("--lib" | "--doc") => library.to_vec(),
            Some(target) => program(target).to_vec(),
            None => {
                let programs = fs::read_dir(folder.join("tests")).into_iter().flatten();
                let programs = programs.filter_map(|entry| {
                    let path = entry.ok()?.path();
                    Some(program(path.file_stem()?.to_str()?))
                });
                library.into_iter().chain(programs.flatten()).collect()
            }
        };
        let mut tests = Vec::new();
        for root in roots {
            functions(&root, true, "", &mut tests);
        }
        tests
    }
}

/// Adds the path of each function in a file and in the files of its modules. `owns_folder`: files of modules are in the folder
/// of this file, as for `main.rs` and `mod.rs`; otherwise they are in a folder named after it.
fn functions(file: &Path, owns_folder: bool, path: &str, found: &mut Vec<String>) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let here = file.parent().expect("a file is in a folder");
    let folder = if owns_folder {
        here.to_path_buf()
    } else {
        file.with_extension("")
    };
    // Modules that are open in this file, each with the indentation of its closing brace.
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut other_path = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        let code = code.strip_prefix("pub ").unwrap_or(code);
        let code = code.strip_prefix("pub(crate) ").unwrap_or(code);
        let inside = open
            .iter()
            .fold(path.to_owned(), |path, (_, name)| path + name + "::");
        if let Some(name) = code.strip_prefix("mod ") {
            if let Some(name) = name.strip_suffix(" {") {
                open.push((indentation, name));
            } else if let Some(name) = name.strip_suffix(';') {
                let nested = open
                    .iter()
                    .fold(folder.clone(), |folder, (_, name)| folder.join(name));
                let inside = format!("{inside}{name}::");
                match other_path.take() {
                    Some(other) => functions(&here.join(other), true, &inside, found),
                    None => {
                        functions(&nested.join(format!("{name}.rs")), false, &inside, found);
                        functions(&nested.join(name).join("mod.rs"), true, &inside, found);
                    }
                }
            }
        } else if let Some(rest) = code.strip_prefix("#[path = \"") {
            other_path = rest.strip_suffix("\"]");
        } else if let Some(name) = defined_name(code) {
            found.push(inside + name);
        } else if indentation == 4 * open.len() && code.contains("! {") | code.contains("!(") {
            // The macro defines tests of this module.
            found.push(inside);
        } else if code == "}" && open.last().is_some_and(|(depth, _)| *depth == indentation) {
            open.pop();
        }
    }
}

/// The name of the function or scenario that this line defines.
fn defined_name(code: &str) -> Option<&str> {
    let scenario = code.trim_start_matches("seeded! { ");
    let scenario = scenario.contains("|seed|").then_some(scenario);
    let definition = code.strip_prefix("fn ").or(scenario)?;
    let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
    definition.split(is_end).next()
}

#[test]
fn guarantees_name_tests_that_exist() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in [
        "docs/guarantees.md",
        "docs/threat-model.md",
        "docs/testing.md",
    ] {
        let page = fs::read_to_string(root().join(page)).unwrap();
        let mut before = TestCommand::default();
        for text in page.split('`').skip(1).step_by(2) {
            let Some(command) = TestCommand::read(text, &before) else {
                continue;
            };
            count += 1;
            if !command.finds_tests() {
                wrong.push(format!("`{text}` finds no test: {command:?}"));
            }
            before = command;
        }
    }
    assert!(count > 100, "{count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the tasks of `cargo xtask`.
fn tasks() -> HashSet<String> {
    let source = fs::read_to_string(root().join("xtask/src/main.rs")).expect("they are there");
    let names = source
        .split("name: \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    names.map(str::to_owned).collect()
}

/// Pages at the root, and in `docs`.
fn pages() -> impl Iterator<Item = (PathBuf, String)> {
    let folders = [root(), root().join("docs")];
    let entries = folders
        .into_iter()
        .flat_map(|it| fs::read_dir(it).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("text");
            (path, text)
        })
}

#[test]
fn pages_name_tasks_and_fuzz_targets_that_exist() {
    let tasks = tasks();
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in pages() {
        for command in text.split("cargo xtask ").skip(1) {
            count += 1;
            let command = command.split(['`', '\n', '|', ';']).next().unwrap_or("");
            let mut words = command.split_whitespace();
            let task = words.next().unwrap_or("").trim_end_matches(['.', ',', ':']);
            let is_there = match task {
                "NAME" | "" => true,
                "fuzz" => words.all(|target| {
                    let file = format!("fuzz/fuzz_targets/{target}.rs");
                    let is_name = target
                        .chars()
                        .all(|it| it.is_ascii_lowercase() || it == '_');
                    !is_name || root().join(file).exists()
                }),
                task => tasks.contains(task),
            };
            if !is_there {
                wrong.push(format!("{}: cargo xtask {command}", path.display()));
            }
        }
    }
    assert!(count > 30, "{count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn aeron_map_names_files_that_exist() {
    let page = fs::read_to_string(root().join("docs/aeron-map.md")).unwrap();
    let is_path = |text: &&str| text.contains("/src/");
    let paths: Vec<&str> = page.split('`').filter(is_path).collect();
    let missing = |path: &&&str| !root().join("crates").join(path).exists();
    let missing: Vec<_> = paths.iter().filter(missing).collect();
    assert!(paths.len() > 80, "{} paths", paths.len());
    assert!(missing.is_empty(), "{missing:?}");
}
