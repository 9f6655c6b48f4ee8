// SPDX-License-Identifier: Apache-2.0
//! `docs/client.md` lists every method of the official client, and names only existing Taran items.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{java, require_java};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns class, official names and Taran names of each row.
fn rows() -> Vec<(String, Vec<String>, Vec<String>)> {
    let page = fs::read_to_string(root().join("docs/client.md")).unwrap();
    let quoted = |cell: &str| -> Vec<String> {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    let mut class = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            class = title.trim_matches('`').to_owned();
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        if let ([official, ours, _], true) = (&cells[..], line.starts_with("| `")) {
            rows.push((class.clone(), quoted(official), quoted(ours)));
        }
    }
    rows
}

#[test]
fn client_page_lists_every_official_method() {
    require_java!();
    let said = java::start("surface", &[]).finish();
    let official: BTreeSet<String> = said
        .iter()
        .filter_map(|line| line.strip_prefix("METHOD "))
        .map(str::to_owned)
        .collect();
    let listed: BTreeSet<String> = rows()
        .into_iter()
        .flat_map(|(class, names, _)| names.into_iter().map(move |name| format!("{class}.{name}")))
        .collect();
    let missing: Vec<_> = official.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&official).collect();
    assert!(
        official.len() > 400 && missing.is_empty() && unknown.is_empty(),
        "missing: {missing:#?}, unknown: {unknown:#?}"
    );
}

/// Returns the text of all sources below a directory.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text
}

#[test]
fn client_page_names_existing_items_only() {
    let text: String = ["client", "core", "protocol"]
        .map(|name| sources(&root().join("crates").join(name).join("src")))
        .concat();
    let names = rows().into_iter().flat_map(|(_, _, ours)| ours);
    let wrong: Vec<String> = names
        .filter(|name| {
            let (of, method) = name.split_once("::").unwrap_or_default();
            // Some setters of the builder are rows of a macro.
            //
            let forms = ["fn X(", "fn X<", "        X(", "        X =>"];
            let is_there = forms.map(|form| text.contains(&form.replace('X', method)));
            of.is_empty() || !text.contains(of) || !is_there.contains(&true)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
