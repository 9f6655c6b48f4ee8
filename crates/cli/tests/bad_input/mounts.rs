//! Tests that need file systems of their own run in a mount namespace, where nobody else sees what they mount.

use std::process::{Command, Stdio};

use crate::own_namespaces::{Flags, inside};

/// Runs the body of a test where it may mount what it likes; see [`inside`]. `test` is the path of the test.
pub(crate) fn in_own_mounts(test: &str, body: impl FnOnce()) {
    inside(test, ways_in, body);
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

/// How to come to mounts of one's own: as root simply so, else as root of a user namespace.
fn ways_in() -> Result<Flags, String> {
    let ways: [Flags; 2] = [&["-m"], &["-r", "-m"]];
    let works = |flags: &Flags| {
        Command::new("unshare")
            .args(*flags)
            .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let found = ways.into_iter().find(works);
    found.ok_or_else(|| "mount namespaces cannot be made here (unshare -m)".to_owned())
}
