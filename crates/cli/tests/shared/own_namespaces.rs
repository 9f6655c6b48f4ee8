// SPDX-License-Identifier: Apache-2.0
//! Linux namespaces for single tests, isolated from other processes.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Set in the process inside the namespaces.
pub(crate) const INSIDE: &str = "NAMESPACES_TEST_INSIDE_ITS_OWN";

/// With the value `1`, tests fail if network or mount namespaces are not available.
const REQUIRED: &str = "TARAN_REQUIRE_NAMESPACES";

/// Prefix of the output line of a skipped test.
const SKIPPED: &str = "SKIPPED";

/// Options of `unshare`.
pub(crate) type Flags = &'static [&'static str];

/// Runs the body of a test inside new namespaces: this program runs again for that test alone, under `unshare` with
/// these flags. The namespaces are removed when that process ends. `test` is the path of the test. If `flags` returns
/// an error, the test is skipped.
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
        Err(why) => return skip_or_fail(REQUIRED, test, &why),
    };
    let output = Command::new("unshare")
        .args(flags)
        .arg(std::env::current_exe().expect("the test knows its file"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("unshare can be run");
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

/// Skips a test because namespaces are not available, or fails it if the variable requires them.
pub(crate) fn skip_or_fail(variable: &str, test: &str, why: &str) {
    let required = std::env::var_os(variable).is_some_and(|value| value == "1");
    assert!(!required, "namespaces are required, but {why}");
    skipped(test, why);
}

/// Reports a skipped test on standard error, bypassing the capture of the test's output.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "{SKIPPED} {test}: {why}");
}
