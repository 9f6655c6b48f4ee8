// SPDX-License-Identifier: Apache-2.0
//! Test only: each source file names its licence, as the first line or behind `#!` or `<!doctype html>`.

use std::fs;

use crate::sources::{files_below, root};

/// Ends of the names of source files.
const SOURCES: &[&str] = &[
    ".rs", ".py", ".pyi", ".java", ".c", ".h", ".sh", ".js", ".css", ".html",
];

/// Begin and end of comments.
const COMMENTS: &[(&str, &str)] = &[("// ", ""), ("# ", ""), ("/* ", " */"), ("<!-- ", " -->")];

const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0";

/// Returns true if the first line, or the second one behind `#!` or a document type, is a comment that names the licence.
fn names_licence(text: &str) -> bool {
    let mut lines = text.lines();
    let mut first = lines.next();
    if first.is_some_and(|line| line.starts_with("#!/") || line == "<!doctype html>") {
        first = lines.next();
    }
    first.is_some_and(|line| {
        COMMENTS.iter().any(|(begin, end)| {
            let comment = line.strip_prefix(begin);
            comment.and_then(|text| text.strip_suffix(end)) == Some(LICENCE)
        })
    })
}

#[test]
fn each_source_file_names_its_licence() {
    let mut paths = files_below(&root(), SOURCES);
    paths.extend(files_below(&root().join(".github/workflows"), &[".yml"]));
    paths.extend(files_below(&root().join(".ci"), &["run"]));
    assert!(paths.len() > 1_000, "{} files", paths.len());
    let has_none =
        |path: &&std::path::PathBuf| !names_licence(&fs::read_to_string(path).unwrap_or_default());
    let missing: Vec<String> = paths
        .iter()
        .filter(has_none)
        .map(|path| path.display().to_string())
        .collect();
    assert!(
        missing.is_empty(),
        "{} files do not start with \"// {LICENCE}\" (\"# {LICENCE}\" in Python, shell and YAML, \"/* {LICENCE} */\" in CSS, \
         \"<!-- {LICENCE} -->\" behind the document type of HTML):\n{}",
        missing.len(),
        missing.join("\n")
    );
}

#[test]
fn licence_is_the_first_line_but_for_the_interpreter() {
    let line = format!("// {LICENCE}\n");
    assert!(names_licence(&line));
    assert!(names_licence(&format!(
        "#!/usr/bin/env bash\n# {LICENCE}\n"
    )));
    assert!(names_licence(&format!("/* {LICENCE} */\n")));
    assert!(names_licence(&format!(
        "<!doctype html>\n<!-- {LICENCE} -->\n"
    )));
    assert!(!names_licence(&format!("/* {LICENCE}\n */\n")));
    assert!(!names_licence(&format!("//! Text.\n{line}")));
    assert!(!names_licence(&format!("// {LICENCE} OR MIT\n")));
    assert!(!names_licence(""));
}
