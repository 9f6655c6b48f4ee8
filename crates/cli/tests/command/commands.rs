// SPDX-License-Identifier: Apache-2.0
//! The documents and the help say the same about the commands: `docs/cli.md` is made from the manual pages, which are made from
//! the help, and each command in a document exists, with its options.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Directory, run, taran};

/// A command or verb, from its manual page.
pub(crate) struct Page {
    /// Words of the command, without `taran`.
    pub(crate) words: Vec<String>,
    about: String,
    text: String,
}

/// Returns text of a manual page as it is printed.
fn plain(roff: &str) -> String {
    let replaced = [
        ("\\-", "-"),
        ("\\*(Aq", "'"),
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
    ];
    replaced
        .iter()
        .fold(roff.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Reads the page of a command, and those of its verbs, in the order of the help.
fn read(directory: &Path, words: &[String], pages: &mut Vec<Page>) {
    let name = format!("taran-{}", words.join("-"));
    let name = name.trim_end_matches('-');
    let path = directory.join(format!("{name}.1"));
    let text = plain(&fs::read_to_string(&path).unwrap_or_else(|_| panic!("no page {name}")));
    let about = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} - ")));
    let about = about
        .unwrap_or_else(|| panic!("{name} does not say what it is"))
        .to_owned();
    let verbs: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{name}-"))?.strip_suffix("(1)"))
        .map(str::to_owned)
        .collect();
    if !words.is_empty() {
        let words = words.to_vec();
        pages.push(Page { words, about, text });
    }
    for verb in verbs.into_iter().filter(|verb| verb != "help") {
        read(directory, &[words, &[verb]].concat(), pages);
    }
}

/// Returns the pages of all commands and their verbs, in the order of the help.
pub(crate) fn pages() -> Vec<Page> {
    let directory = Directory::new("promises");
    run(&mut taran(&[
        "manual",
        &directory.path().display().to_string(),
    ]))
    .assert_code(0);
    let mut pages = Vec::new();
    read(directory.path(), &[], &mut pages);
    pages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const HEAD: &str = "| command | purpose |\n|---|---|\n";

/// `TARAN_WRITE_COMMANDS=1 cargo test -p taran-cli --test command commands` writes the table.
#[test]
fn table_of_commands_is_made_from_the_help() {
    let path = root().join("docs/cli.md");
    let document = fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(HEAD).expect("the table");
    let (table, after) = rest.split_once("\n\n").expect("text behind it");
    let rows = pages()
        .into_iter()
        .map(|page| format!("| `taran {}` | {} |", page.words.join(" "), page.about));
    let rows = rows.collect::<Vec<_>>().join("\n");
    if std::env::var_os("TARAN_WRITE_COMMANDS").is_some() {
        fs::write(&path, format!("{before}{HEAD}{rows}\n\n{after}")).unwrap();
        return;
    }
    assert!(
        table == rows,
        "docs/cli.md is not current; write it by: TARAN_WRITE_COMMANDS=1 cargo test -p taran-cli --test command commands"
    );
}

#[test]
fn help_says_what_the_manual_pages_say() {
    for page in pages() {
        let help = run(taran(&[]).args(&page.words).arg("--help"));
        help.assert_code(0).assert_silent();
        // The help breaks lines where the terminal ends.
        let words: Vec<&str> = help.stdout.split_whitespace().collect();
        assert!(
            words.join(" ").starts_with(&page.about),
            "{:?}: {}",
            page.words,
            page.about
        );
    }
}

/// Returns the exit codes above 2 that a page names; 0 to 2 mean the same for all commands.
fn own_exit_codes(page: &Page) -> Vec<&str> {
    let (_, status) = page.text.rsplit_once("Exit status: ").unwrap_or_default();
    let status = status.lines().next().unwrap_or_default();
    let words = status.split([' ', ',', ';', ')']);
    words
        .filter(|word| word.parse::<u8>().is_ok_and(|code| code > 2))
        .collect()
}

#[test]
fn exit_codes_of_the_help_are_in_the_table() {
    let document = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let (_, table) = document
        .split_once("| command | code | meaning |")
        .expect("the table");
    let (mut count, mut missing) = (0, Vec::new());
    for page in pages() {
        // Verbs of `recordings` share a row.
        let names = [page.words.join(" "), page.words[0].clone()].map(|name| format!("`{name}`"));
        for code in own_exit_codes(&page) {
            count += 1;
            let is_there = table.lines().any(|row| {
                let mut cells = row.split('|').skip(1).map(str::trim);
                let (commands, codes) = (cells.next(), cells.next());
                let of_command = |commands: &str| names.iter().any(|name| commands.contains(name));
                commands.is_some_and(of_command)
                    && codes.is_some_and(|codes| codes.split(", ").any(|it| it == code))
            });
            if !is_there {
                missing.push(format!("taran {}: {code}", page.words.join(" ")));
            }
        }
    }
    assert!(count > 10, "{count} codes");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Documents of users.
fn documents() -> Vec<(PathBuf, String)> {
    let folders = [root(), root().join("docs"), root().join("docs/design")];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("a file").path());
    entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("text");
            (path, text)
        })
        .collect()
}

/// Returns the command lines of a document behind `taran`: quoted ones, and lines of code.
fn command_lines(document: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut in_block = false;
    for line in document.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block || line.starts_with("    ") {
            let line = line.trim().trim_start_matches("sudo ");
            for start in ["taran ", "cargo run --release -- "] {
                lines.extend(line.strip_prefix(start));
            }
        } else {
            let quoted = line.split('`').skip(1).step_by(2);
            lines.extend(quoted.filter_map(|text| text.strip_prefix("taran ")));
        }
    }
    lines
}

/// Returns what is wrong with a command line of a document.
fn mistake(line: &str, commands: &HashMap<Vec<String>, Page>) -> Option<String> {
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']', ',']))
        .take_while(|word| !["#", "|", ">", "&", "&&", ";"].contains(word))
        .collect();
    let mut path = Vec::new();
    for word in &words {
        path.push((*word).to_owned());
        if !commands.contains_key(&path) {
            path.pop();
            break;
        }
    }
    let first = *words.first()?;
    if path.is_empty() {
        // `taran COMMAND`, and options of the program itself.
        let is_placeholder = first.chars().all(|letter| letter.is_ascii_uppercase());
        let is_own = ["--help", "--version", "help", "…"].contains(&first);
        return (!is_placeholder && !is_own).then(|| format!("no command {first}"));
    }
    let page = commands.get(&path)?;
    let unknown = words.iter().find(|word| {
        let name = word.split(['=', '|']).next().unwrap_or_default();
        let is_option =
            name.starts_with('-') && name.len() > 1 && !name.starts_with("-D") && name != "--";
        let is_known = |end: char| page.text.contains(&format!("{name}{end}"));
        is_option && ![' ', ',', '\n', '|', ']', '='].into_iter().any(is_known)
    });
    unknown.map(|option| format!("taran {} has no option {option}", path.join(" ")))
}

#[test]
fn commands_in_documents_exist_with_their_options() {
    let commands: HashMap<Vec<String>, Page> = pages()
        .into_iter()
        .map(|page| (page.words.clone(), page))
        .collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in documents() {
        for line in command_lines(&text) {
            count += 1;
            if let Some(mistake) = mistake(line, &commands) {
                wrong.push(format!("{}: taran {line}: {mistake}", path.display()));
            }
        }
    }
    assert!(count > 150, "{count} command lines");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistake_in_a_command_line_is_found() {
    let commands: HashMap<Vec<String>, Page> = pages()
        .into_iter()
        .map(|page| (page.words.clone(), page))
        .collect();
    for line in [
        "stat --once",
        "config explain NAME",
        "stat --listen A:1 --also DIR",
        "COMMAND --help",
        "driver -Da=b",
    ] {
        assert_eq!(mistake(line, &commands), None, "{line}");
    }
    for (line, expected) in [
        ("stats", "no command stats"),
        ("stat --no-such", "taran stat has no option --no-such"),
        (
            "config explain --onc",
            "taran config explain has no option --onc",
        ),
    ] {
        assert_eq!(mistake(line, &commands).as_deref(), Some(expected));
    }
}
