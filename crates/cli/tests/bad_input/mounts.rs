//! Tests that need file systems of their own run in a mount namespace, where nobody else sees what they mount.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Set for the process in the namespace.
const INSIDE: &str = "BAD_INPUT_TEST_INSIDE_ITS_MOUNTS";

/// With the value `1`, a test that cannot run fails.
const REQUIRED: &str = "TARAN_REQUIRE_NAMESPACES";

/// How the line of a test begins that did not run.
const SKIPPED: &str = "SKIPPED";

/// Runs the body of a test where it may mount what it likes: this program runs once more, for that test alone.
/// Where namespaces cannot be had the test is skipped, loudly. `test` is the path of the test.
pub(crate) fn in_own_mounts(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        body();
        return;
    }
    let Some(flags) = namespace() else {
        let is_required = std::env::var(REQUIRED).is_ok_and(|value| value == "1");
        assert!(!is_required, "required are mount namespaces (unshare -m)");
        skipped(test, "mount namespaces cannot be had here (unshare -m)");
        return;
    };
    let output = Command::new("unshare")
        .args(flags)
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let has_run = out.contains("test result: ok. 1 passed");
    assert!(output.status.success() && has_run, "{out}\n{err}");
    for line in err.lines().filter(|line| line.starts_with(SKIPPED)) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Says, past the capture of the test's output, that a test did not run.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "{SKIPPED} {test}: {why}");
}

/// Mounts memory of this size (as mount has it: `64m`) over a directory.
pub(crate) fn mount_memory(directory: &str, options: &str) {
    let options = format!("mode=777,{options}");
    run(&["mount", "-t", "tmpfs", "-o", &options, "tmpfs", directory]);
}

/// Runs a command that has to succeed.
pub(crate) fn run(command: &[&str]) {
    let output = Command::new(command[0])
        .args(&command[1..])
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// How a namespace is to be had: as root simply so, else as root of a user namespace.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["-m"], &["-r", "-m"]];
    ways.into_iter().find(|flags| {
        Command::new("unshare")
            .args(*flags)
            .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}
