// SPDX-License-Identifier: Apache-2.0
//! Checks of the documents: the tests, files, commands and specification sections that they name exist.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use sources::{files_below, root};
use test_paths::{Kind, TestCommand};

mod test_paths;

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
const PARTS: [(&str, &[(u32, u32)]); 4] = [
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
    (
        "docs/spec/archive.md",
        &[
            (1, 11),
            (2, 9),
            (3, 8),
            (4, 6),
            (5, 4),
            (6, 7),
            (7, 3),
            (8, 2),
            (9, 0),
            (10, 0),
        ],
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

/// Texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn pages_name_test_commands_that_run_tests() {
    let programs = test_paths::programs(&root());
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        let mut before = None;
        for text in quoted(&page) {
            let Some(command) = TestCommand::read(text, before.as_ref()) else {
                continue;
            };
            count += 1;
            if !command.runs_tests(&programs) {
                wrong.push(format!(
                    "{}: `{text}` runs no test: {command:?}",
                    path.display()
                ));
            }
            before = Some(command);
        }
    }
    assert!(count > 150, "{count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn test_command_whose_filter_matches_no_path_runs_nothing() {
    let programs = test_paths::programs(&root());
    let runs =
        |text| TestCommand::read(text, None).is_some_and(|command| command.runs_tests(&programs));
    // `sender::plan` is a part of neither `sender::send_plan` nor another path, although both words are in some.
    assert!(runs("cargo test -p taran-driver --lib sender::send_plan"));
    assert!(!runs("cargo test -p taran-driver --lib sender::plan"));
    assert!(!runs(
        "cargo test -p taran-driver --test conductor sender::send_plan"
    ));
    assert!(!runs("cargo test -p taran-core --lib sender::send_plan"));
    assert!(!runs(
        "cargo test -p taran-driver --lib -- send_plan no_such_test"
    ));
    assert!(runs(
        "TARAN_SIM_SEEDS=9 cargo test -p taran-sim --test worlds hostile::naks"
    ));
}

/// Returns true if a name matches a pattern in which `…` matches any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || pattern.ends_with('…')
}

/// Packages with loom programs whose models are in the table of mutations.
const MUTATED: [&str; 3] = ["taran-core", "taran-protocol", "taran-storage"];

#[test]
fn each_loom_model_is_in_the_table_of_mutations() {
    let programs = test_paths::programs(&root());
    let is_model = |program: &test_paths::Program, test: &str| match &program.kind {
        Kind::Test(name) => name == "loom" && MUTATED.contains(&program.package.as_str()),
        Kind::Library => {
            program.package == "taran-driver" && test.starts_with("boundary::models::")
        }
        Kind::Binary | Kind::Documentation => false,
    };
    let mut models = Vec::new();
    for program in &programs {
        let tests = program.tests.iter().filter(|test| is_model(program, test));
        models.extend(tests.filter_map(|test| test.rsplit("::").next()));
    }
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let (_, table) = page
        .split_once("was seen to fail after a mutation")
        .expect("the table");
    let table = table.split("\n**").next().unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.filter_map(|line| line.trim_start_matches("| ").split(" | ").next());
    let patterns: Vec<&str> = cells.flat_map(quoted).collect();
    let mut wrong = Vec::new();
    for pattern in &patterns {
        if !models.iter().any(|model| matches_pattern(pattern, model)) {
            wrong.push(format!("there is no model `{pattern}`"));
        }
    }
    for model in &models {
        if !patterns
            .iter()
            .any(|pattern| matches_pattern(pattern, model))
        {
            wrong.push(format!("the model `{model}` has no row"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for page in ["docs/testing.md", "docs/guarantees.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(
            text.contains(&format!("{} models", models.len())),
            "{page}: {} models",
            models.len()
        );
    }
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
