// SPDX-License-Identifier: Apache-2.0
//! `taran keys`: files, modes and exit codes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::process::{Directory, Outcome, run, taran};

fn keys(directory: &Directory, arguments: &[&str]) -> Outcome {
    let path = directory.path().to_str().expect("the path is UTF-8");
    run(taran(&["keys", "--dir", path]).args(arguments))
}

fn mode(directory: &Directory, name: &str) -> u32 {
    let metadata = fs::metadata(directory.path().join(name)).expect("the file is there");
    metadata.permissions().mode() & 0o7777
}

fn set_mode(directory: &Directory, name: &str, mode: u32) {
    fs::set_permissions(directory.path().join(name), Permissions::from_mode(mode))
        .expect("the file is ours");
}

/// Public key, without name, of a new identity.
fn generated(directory: &Directory) -> String {
    let outcome = keys(directory, &["generate", "--name", "host"]);
    outcome.assert_code(0).assert_silent();
    let key = outcome.stdout.split(' ').next();
    key.expect("a key is printed").to_owned()
}

#[test]
fn generate_makes_an_identity_that_only_its_owner_can_read() {
    let directory = Directory::new("keys-generate");
    let key = generated(&directory);
    assert!(key.starts_with("taran-pub-1:"), "{key}");
    assert_eq!(mode(&directory, ""), 0o700);
    assert_eq!(mode(&directory, "identity.key"), 0o600);
    let shown = keys(&directory, &["show"]);
    shown.assert_code(0);
    assert_eq!(shown.stdout, format!("{key} host\n"));
    let path = directory.path().join("identity.pub");
    let fingerprint = keys(&directory, &["fingerprint"]).stdout;
    assert_eq!(fingerprint.trim().len(), 39);
    let path = path.to_str().expect("the path is UTF-8");
    assert_eq!(keys(&directory, &["fingerprint", path]).stdout, fingerprint);
    keys(&directory, &["check"]).assert_code(0);
}

#[test]
fn generate_replaces_a_key_only_by_force() {
    let directory = Directory::new("keys-force");
    let key = generated(&directory);
    keys(&directory, &["generate"])
        .assert_code(1)
        .assert_stderr("use --force");
    assert!(keys(&directory, &["show"]).stdout.starts_with(&key));
    keys(&directory, &["generate", "--force"]).assert_code(0);
    assert!(!keys(&directory, &["show"]).stdout.starts_with(&key));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn secrets_that_others_can_read_are_refused() {
    let directory = Directory::new("keys-modes");
    generated(&directory);
    set_mode(&directory, "identity.key", 0o644);
    for command in ["show", "fingerprint"] {
        keys(&directory, &[command])
            .assert_code(1)
            .assert_stderr("is accessible to others (mode 0644), needs 0600");
    }
    let checked = keys(&directory, &["check"]);
    checked.assert_code(1);
    assert!(checked.stdout.contains("mode 0644"), "{checked:?}");
    set_mode(&directory, "identity.key", 0o600);
    set_mode(&directory, "", 0o777);
    keys(&directory, &["show"])
        .assert_code(1)
        .assert_stderr("is writable by group or others (mode 0777)");
}

#[test]
fn trust_adds_lines_and_untrust_removes_them() {
    let (directory, other) = (Directory::new("keys-trust"), Directory::new("keys-other"));
    generated(&directory);
    let key = generated(&other);
    keys(&directory, &["trust", &key, "alpha"])
        .assert_code(1)
        .assert_stderr("not confirmed");
    assert!(!directory.path().join("trusted").exists());
    let more = [
        "trust",
        &key,
        "alpha",
        "--yes",
        "--publish",
        "10.0.0.0/8#1-5",
    ];
    keys(&directory, &more).assert_code(0);
    let file = fs::read_to_string(directory.path().join("trusted")).unwrap();
    assert_eq!(
        file,
        format!("{key} alpha publish=10.0.0.0/8#1-5 subscribe=*\n")
    );
    let listed = keys(&directory, &["list"]).stdout;
    assert!(
        listed.contains("  alpha publish=10.0.0.0/8#1-5 subscribe=*"),
        "{listed}"
    );
    keys(&directory, &["trust", &key, "beta", "--yes"])
        .assert_code(1)
        .assert_stderr("the key is on line 1 already");
    keys(&directory, &["check"]).assert_code(0);
    keys(&directory, &["untrust", "beta"]).assert_code(1);
    keys(&directory, &["untrust", "alpha"]).assert_code(0);
    assert_eq!(
        fs::read_to_string(directory.path().join("trusted")).unwrap(),
        ""
    );
}

#[test]
fn keys_that_are_mistyped_are_refused() {
    let directory = Directory::new("keys-mistyped");
    let key = generated(&directory);
    let last = if key.ends_with('A') { "Q" } else { "A" };
    let mistyped = format!("{}{last}", &key[..key.len() - 1]);
    keys(&directory, &["trust", &mistyped, "alpha", "--yes"]).assert_code(2);
    keys(&directory, &["trust", &key, "../alpha", "--yes"])
        .assert_code(2)
        .assert_stderr("is no name");
    let pattern = ["trust", &key, "alpha", "--yes", "--publish", "10.0.0"];
    keys(&directory, &pattern)
        .assert_code(1)
        .assert_stderr("line 1, column ");
}

#[test]
fn check_reports_each_problem() {
    let directory = Directory::new("keys-check");
    let missing = keys(&directory, &["check"]);
    missing.assert_code(1);
    let key = generated(&directory);
    let other = Directory::new("keys-check-other");
    generated(&other);
    fs::copy(
        other.path().join("identity.pub"),
        directory.path().join("identity.pub"),
    )
    .unwrap();
    directory.file("trusted", &format!("{key} alpha psk=alpha.psk\n"));
    let checked = keys(&directory, &["check"]);
    checked.assert_code(1);
    assert!(
        checked.stdout.contains("has the fingerprint"),
        "{checked:?}"
    );
    assert!(
        checked
            .stdout
            .contains("line 1: psk=alpha.psk: cannot open"),
        "{checked:?}"
    );
    directory.file("trusted", &format!("{key} alpha publish=*\n{key}"));
    let checked = keys(&directory, &["check"]);
    assert!(checked.stdout.contains("may be truncated"), "{checked:?}");
}

#[test]
fn promote_puts_the_next_key_in_place() {
    let directory = Directory::new("keys-promote");
    generated(&directory);
    keys(&directory, &["promote"])
        .assert_code(1)
        .assert_stderr("run 'taran keys generate --next'");
    let next = keys(&directory, &["generate", "--next", "--name", "host"]);
    next.assert_code(0);
    assert_eq!(
        keys(&directory, &["show", "--next"]).stdout,
        next.stdout.lines().next().unwrap().to_owned() + "\n"
    );
    let promoted = keys(&directory, &["promote"]);
    promoted.assert_code(0);
    assert_eq!(promoted.stdout, next.stdout);
    assert!(!directory.path().join("next.key").exists());
    keys(&directory, &["check"]).assert_code(0);
}
