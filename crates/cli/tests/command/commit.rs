// SPDX-License-Identifier: Apache-2.0
//! The commit of a build: found in a checkout and in a package.

#[path = "../../build/commit.rs"]
mod found;

use std::fs;
use std::path::Path;
use std::process::Command;

use self::found::{Checkout, of_checkout, of_package};
use crate::process::Directory;

#[track_caller]
fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        // Neither the user's configuration nor a repository of the environment.
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .arg("-C")
        .arg(root)
        .args(["-c", "user.name=test", "-c", "user.email=test@example.com"])
        .args(arguments)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Makes a commit and returns it.
fn make_commit(root: &Path) -> String {
    git(root, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    git(root, &["rev-parse", "HEAD"])
}

fn contents(checkout: &Checkout) -> Vec<Vec<u8>> {
    let paths = checkout.changes_with.iter();
    paths
        .map(|path| fs::read(path).expect("it exists"))
        .collect()
}

#[test]
fn commit_of_a_checkout_is_found_and_a_file_changes_with_it() {
    let directory = Directory::new("checkout");
    let root = directory.path();
    fs::create_dir_all(root.join("part")).expect("a directory");
    assert_eq!(None, of_checkout(root), "no checkout");
    git(root, &["init", "--quiet"]);
    assert_eq!(None, of_checkout(root), "no commit");
    let first = make_commit(root);
    let found = of_checkout(root).expect("a checkout");
    assert_eq!(first[..10], found.commit);
    assert_eq!(
        None,
        of_checkout(&root.join("part")),
        "part of another checkout"
    );

    let before = contents(&found);
    let second = make_commit(root);
    assert_ne!(before, contents(&found), "a commit");
    // The branch becomes a line of one file.
    git(root, &["pack-refs", "--all"]);
    let found = of_checkout(root).expect("a checkout");
    assert_eq!(second[..10], found.commit);
    let before = contents(&found);
    make_commit(root);
    assert_ne!(before, contents(&found), "a commit to a packed branch");

    git(root, &["checkout", "--quiet", "--detach", first.trim_end()]);
    let found = of_checkout(root).expect("a checkout");
    assert_eq!(first[..10], found.commit, "without a branch");
}

#[test]
fn commit_of_a_package_is_the_one_that_cargo_has_recorded() {
    let directory = Directory::new("package");
    let root = directory.path();
    fs::create_dir_all(root).expect("a directory");
    assert_eq!(None, of_package(root));
    let record = |text: &str| fs::write(root.join(".cargo_vcs_info.json"), text).expect("a file");
    record(
        "{\n  \"git\": {\n    \"sha1\": \"0123456789abcdef0123456789abcdef01234567\"\n  },\n  \"path_in_vcs\": \"crates/cli\"\n}",
    );
    assert_eq!(Some("0123456789".to_owned()), of_package(root));
    record("{\"path_in_vcs\": \"crates/cli\"}");
    assert_eq!(None, of_package(root));
    record("{\"git\": {\"sha1\": \"012\"}}");
    assert_eq!(None, of_package(root), "too short");
}
