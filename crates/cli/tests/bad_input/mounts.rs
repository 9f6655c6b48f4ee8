// SPDX-License-Identifier: Apache-2.0
//! Mount namespaces for tests that need their own file systems; other processes do not see their mounts.

use std::process::{Command, Stdio};

use crate::own_namespaces::{Flags, inside};

/// Runs the body of a test in its own mount namespace; see [`inside`]. `test` is the path of the test.
pub(crate) fn in_own_mounts(test: &str, body: impl FnOnce()) {
    inside(test, unshare_flags, body);
}

/// Mounts a tmpfs over a directory, with options as for `mount`, such as `size=64m`.
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

/// Returns the `unshare` flags for a mount namespace: directly as root, otherwise within a user namespace.
fn unshare_flags() -> Result<Flags, String> {
    let candidates: [Flags; 2] = [&["-m"], &["-r", "-m"]];
    let works = |flags: &Flags| {
        Command::new("unshare")
            .args(*flags)
            .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let found = candidates.into_iter().find(works);
    found.ok_or_else(|| "mount namespaces cannot be made here (unshare -m)".to_owned())
}
