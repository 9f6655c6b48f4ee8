// SPDX-License-Identifier: Apache-2.0
//! The commit that sources are of, in a package of the registry and in a Git checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Hexadecimal digits of a commit, as the official programs show it.
const DIGITS: usize = 10;

/// A commit, and when to look again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    pub(crate) commit: String,
    /// Files of which at least one changes whenever another commit is checked out or made. All exist: Cargo runs a build
    /// script each time if one is missing.
    pub(crate) changes_with: Vec<PathBuf>,
}

/// Returns the commit that `cargo package` has recorded in the directory of a package.
pub(crate) fn of_package(package: &Path) -> Option<String> {
    let info = fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = info.split_once("\"sha1\"")?;
    let digits: String = rest
        .chars()
        .skip_while(|c| !c.is_ascii_hexdigit())
        .take_while(char::is_ascii_hexdigit)
        .take(DIGITS)
        .collect();
    (digits.len() == DIGITS).then_some(digits)
}

/// Returns the commit of a Git checkout. `None` without Git, and in a directory that is part of another checkout.
pub(crate) fn of_checkout(root: &Path) -> Option<Checkout> {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim_end().to_owned())
    };
    let top = fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    if top != fs::canonicalize(root).ok()? {
        return None;
    }
    let digits = format!("--short={DIGITS}");
    let commit = git(&["rev-parse", &digits, "HEAD"])?;
    // The branch is a file of its own, or a line of `packed-refs`; the log of HEAD covers both where it is kept.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "logs/HEAD", "packed-refs"].into_iter();
    let changes_with = names
        .chain(branch.as_deref())
        .filter_map(|name| git(&["rev-parse", "--git-path", name]))
        .map(|path| root.join(path))
        .filter(|path| path.exists())
        .collect();
    Some(Checkout {
        commit,
        changes_with,
    })
}
