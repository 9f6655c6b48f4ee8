// SPDX-License-Identifier: Apache-2.0
//! Paths that a change can affect: what Git says, without changes that have no effect.

use std::process::Command;

use crate::sources::root;

/// Lists to which lines are added for each crate and package: what is only added to them concerns what is new. A crate that gets a
/// dependency has a changed manifest of its own.
const LISTS: &[&str] = &["Cargo.toml", "Cargo.lock"];

/// Paths that differ between the revision and the work tree in more than comments; none if git does not know the revision.
pub(crate) fn changed_since(revision: &str) -> Option<Vec<String>> {
    let diff = git(&["diff", "--unified=0", "--no-renames", revision, "--"])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    let mut changed = changed_in(&diff);
    changed.extend(untracked.lines().map(str::to_owned));
    Some(changed)
}

/// Returns the paths of a diff without context that can change what a suite does: lines that are blank or comments cannot, nor can
/// lines that are added to one of the lists.
fn changed_in(diff: &str) -> Vec<String> {
    let mut changed = Vec::new();
    for file in diff.split("diff --git a/").skip(1) {
        let Some((names, lines)) = file.split_once('\n') else {
            continue;
        };
        // Without renames, the two names are equal.
        let path = names.split_once(" b/").map_or(names, |(path, _)| path);
        let is_list = LISTS.contains(&path);
        let comment = comment_of(path);
        let has_effect = |line: &str| {
            let text = line[1..].trim_start();
            !text.is_empty() && !comment.is_some_and(|comment| text.starts_with(comment))
        };
        // The headers of a file come before its first hunk; a file without one is binary, empty or has another mode.
        let mut lines = lines
            .lines()
            .skip_while(|line| !line.starts_with("@@"))
            .peekable();
        let is_changed = lines.peek().is_none()
            || lines.any(|line| match line.as_bytes().first() {
                Some(b'-') => has_effect(line),
                Some(b'+') => !is_list && has_effect(line),
                _ => false,
            });
        if is_changed {
            changed.push(path.to_owned());
        }
    }
    changed
}

/// Returns the word that begins a comment of a line of its own; none if the file has none, or its language is not known.
fn comment_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "rs" | "js" | "java" | "c" | "h" => Some("//"),
        "py" | "sh" | "toml" | "yml" | "yaml" => Some("#"),
        _ if path == ".ci/run" => Some("#"),
        _ => None,
    }
}

/// Returns what a Git command prints, without white space around it; none if it fails.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diff of one file with these lines in one hunk.
    fn diff(path: &str, lines: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{lines}\n"
        )
    }

    #[test]
    fn change_of_comments_and_addition_to_a_list_have_no_effect() {
        for (path, lines) in [
            (
                "crates/core/src/lib.rs",
                "+// SPDX-License-Identifier: Apache-2.0\n-    /// Old.\n+",
            ),
            (".ci/run", "+# A comment."),
            ("crates/capi/include/taran.h", "+// A comment."),
            ("Cargo.toml", "+    \"crates/new\","),
            ("Cargo.lock", "+[[package]]\n+name = \"new\""),
        ] {
            assert!(changed_in(&diff(path, lines)).is_empty(), "{path}");
        }
    }

    #[test]
    fn other_changes_have_an_effect() {
        for (path, lines) in [
            ("crates/core/src/lib.rs", "+// Comment.\n+fn new() {}"),
            ("crates/core/src/lib.rs", "-fn old() {}"),
            ("crates/core/Cargo.toml", "+new = \"1\""),
            ("Cargo.lock", "-version = \"1.0.0\"\n+version = \"1.0.1\""),
            ("fuzz/seeds/a", "+ bytes"),
            ("fuzz/seeds/a", "+# bytes"),
            ("crates/capi/include/taran.h", "+#define TARAN_NEW 1"),
            ("crates/cli/src/console/page/console.css", "+#streams {"),
        ] {
            assert_eq!(changed_in(&diff(path, lines)), [path], "{lines}");
        }
        let binary =
            "diff --git a/fuzz/seeds/a b/fuzz/seeds/a\nindex 1..2 100644\nBinary files differ\n";
        let both = format!("{binary}{}", diff("crates/core/src/lib.rs", "+// Comment."));
        assert_eq!(changed_in(&both), ["fuzz/seeds/a"]);
    }

    #[test]
    fn changed_since_unknown_revision_is_none() {
        assert_eq!(
            changed_since("0000000000000000000000000000000000000000"),
            None
        );
        assert_eq!(
            changed_since("HEAD").is_some(),
            git(&["rev-parse", "HEAD"]).is_some()
        );
    }
}
