// SPDX-License-Identifier: Apache-2.0
//! Commands as the first process of a container, which the kernel shields from signals without a handler.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::own_namespaces::skip_or_fail;
use crate::process::{Directory, Driver, signal};
use crate::traffic::await_true;

#[test]
fn signals_end_watching_commands_as_process_1() {
    let test = "init::signals_end_watching_commands_as_process_1";
    let available = Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork", "true"])
        .stderr(Stdio::null())
        .status();
    if !available.is_ok_and(|status| status.success()) {
        return skip_or_fail(
            "TARAN_REQUIRE_NAMESPACES",
            test,
            "unshare makes no PID namespace",
        );
    }
    let directory = Directory::new("init");
    let driver = Driver::start(directory.path(), &[]);
    for arguments in [
        &["stat", "-u", "10"][..],
        &["stat", "--listen", "127.0.0.1:0"],
        &["backlog", "-w", "-u", "10"],
    ] {
        for (name, number) in [("TERM", 15), ("INT", 2)] {
            let mut outer = Command::new("unshare")
                .args(["--user", "--map-root-user", "--pid", "--fork"])
                .arg(env!("CARGO_BIN_EXE_taran"))
                .args(arguments)
                .env("AERON_DIR", directory.path())
                .stdout(Stdio::piped())
                .spawn()
                .expect("unshare can be run");
            let mut lines = BufReader::new(outer.stdout.take().expect("a pipe")).lines();
            lines.next().expect("a line").expect("a text");
            signal(child_of(outer.id()), name);
            // Whatever it has printed before its end.
            lines.for_each(drop);
            let status = outer.wait().expect("it ends");
            assert_eq!(status.code(), Some(128 + number), "{arguments:?} {name}");
        }
    }
    driver.stop("TERM").assert_code(15);
}

/// Returns the only child of a process.
fn child_of(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut child = None;
    await_true("the child", || {
        let children = fs::read_to_string(&path).unwrap_or_default();
        child = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        child.is_some()
    });
    child.expect("found above")
}
