// SPDX-License-Identifier: Apache-2.0
//! Texts made from the description of the command line: help that fits the terminal, completions, manual pages.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::commands::pages;
use crate::process::{Directory, run, taran};

#[test]
fn help_fits_the_terminal() {
    for command in ["driver", "stat", "backlog"] {
        let help = run(taran(&[command, "--help"]).env("COLUMNS", "72"));
        help.assert_code(0).assert_silent();
        let prose = help
            .stdout
            .lines()
            .filter(|line| !line.starts_with("  taran "));
        for line in prose {
            assert!(line.chars().count() <= 72, "{line}");
        }
    }
}

#[test]
fn incorrect_usage_of_each_command_has_status_2() {
    for page in pages() {
        let usage = run(taran(&[]).args(&page.words).arg("--no-such-option"));
        usage.assert_code(2);
        assert!(usage.stdout.is_empty(), "{:?}: {usage:?}", page.words);
    }
    run(&mut taran(&[])).assert_code(2);
    run(&mut taran(&["no-such-command"])).assert_code(2);
}

#[test]
fn completions_are_valid_shell_code() {
    let completions = run(&mut taran(&["completions", "bash"]));
    completions.assert_code(0).assert_silent();
    assert!(completions.stdout.contains("backlog"), "{completions:?}");
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .expect("bash can be run");
    bash.stdin
        .take()
        .expect("a pipe")
        .write_all(completions.stdout.as_bytes())
        .expect("bash reads");
    assert!(bash.wait().expect("bash ends").success());
}

#[test]
fn manual_has_a_page_for_each_command() {
    let directory = Directory::new("manual");
    let path = directory.path().display().to_string();
    run(&mut taran(&["manual", &path]))
        .assert_code(0)
        .assert_silent();
    for (page, text) in [
        ("taran.1", "backlog"),
        ("taran-backlog.1", "what limits"),
        ("taran-config-explain.1", "property or environment variable"),
    ] {
        let page = fs::read_to_string(directory.path().join(page)).expect(page);
        assert!(
            page.contains(".TH") && page.contains(text),
            "no {text} in {page}"
        );
    }
    run(&mut taran(&["manual", "/dev/null/nowhere"]))
        .assert_code(1)
        .assert_stderr("/dev/null/nowhere");
}
