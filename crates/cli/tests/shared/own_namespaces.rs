//! Tests that need Linux namespaces of their own, where nobody else sees what they do.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Set for the process inside.
const INSIDE: &str = "NAMESPACES_TEST_INSIDE_ITS_OWN";

/// With the value `1`, a test that finds no network or mount namespaces fails.
const REQUIRED: &str = "TARAN_REQUIRE_NAMESPACES";

/// How the line of a test begins that did not run.
const SKIPPED: &str = "SKIPPED";

/// Options of `unshare`.
pub(crate) type Flags = &'static [&'static str];

/// Runs the body of a test inside: this program runs once more, for that test alone, in what `unshare` makes with these
/// flags. What it makes there is gone with it, however it ends. `test` is the path of the test; `flags` may say why there
/// are none, and then the test is skipped.
pub(crate) fn inside(
    test: &str,
    flags: impl FnOnce() -> Result<Flags, String>,
    body: impl FnOnce(),
) {
    if std::env::var_os(INSIDE).is_some() {
        body();
        return;
    }
    let flags = match flags() {
        Ok(flags) => flags,
        Err(why) => return cannot_be_had(REQUIRED, test, &why),
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

/// Skips a test for want of namespaces, or fails it if the variable says that they are required.
pub(crate) fn cannot_be_had(variable: &str, test: &str, why: &str) {
    let required = std::env::var_os(variable).is_some_and(|value| value == "1");
    assert!(!required, "namespaces are required, but {why}");
    skipped(test, why);
}

/// Says, past the capture of the test's output, that a test did not run.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "{SKIPPED} {test}: {why}");
}
