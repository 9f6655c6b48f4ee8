// SPDX-License-Identifier: Apache-2.0
//! Directories that cannot be written.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use taran::ConnectError;

use crate::attach::connect_error;
use crate::mounts::{in_own_mounts, mount_memory, run as system};
use crate::own_namespaces::skipped;
use crate::process::{Directory, Driver, run, taran};
use crate::texts::assert_says;

const SHORT_TIMEOUT: Duration = Duration::from_millis(100);
/// Id of the user `nobody`.
const NOBODY: u32 = 65_534;

/// Checks that no driver starts in `directory`, and the text of its error.
#[track_caller]
fn assert_no_driver(directory: &Path, says: &[&str]) {
    let outcome = run(taran(&["driver"]).env("AERON_DIR", directory));
    outcome.assert_code(1).assert_stderr("ERROR: driver init: ");
    assert_says(&outcome.stderr, says);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn path_through_a_file_is_rejected() {
    let directory = Directory::new("through-a-file");
    let file = directory.file("file", "");
    for path in [file.clone(), file.join("driver")] {
        let name = path.display().to_string();
        assert_no_driver(&path, &[&name, "aeron.dir must name a directory"]);
        let error = connect_error(&path, SHORT_TIMEOUT);
        assert!(
            matches!(error, ConnectError::NotReadable { .. }),
            "{error:?}"
        );
        assert_says(
            &error,
            &[&name, "Not a directory", "aeron.dir", "AERON_DIR"],
        );
        for tool in ["stat", "errors"] {
            let outcome = run(taran(&[tool, "-t", "50"]).env("AERON_DIR", &path));
            outcome.assert_code(1);
            assert_says(
                &outcome.stderr,
                &[&name, "Not a directory", "--aeron-dir", "AERON_DIR"],
            );
        }
    }
}

#[test]
fn read_only_file_system_is_rejected() {
    in_own_mounts("directories::read_only_file_system_is_rejected", || {
        mount_memory("/dev/shm", "size=1m");
        std::fs::create_dir("/dev/shm/old").unwrap();
        std::fs::write("/dev/shm/old/cnc.dat", [0; 4096]).unwrap();
        system(&["mount", "-o", "remount,bind,ro", "/dev/shm"]);
        for name in ["new", "old"] {
            let directory = Path::new("/dev/shm").join(name);
            let mut command = taran(&["driver", "-Daeron.driver.timeout=1"]);
            let outcome = run(command.env("AERON_DIR", &directory));
            outcome.assert_code(1).assert_stderr("ERROR: driver init: ");
            assert_says(
                &outcome.stderr,
                &[
                    &directory.display().to_string(),
                    "Read-only file system",
                    "aeron.dir",
                ],
            );
        }
    });
}

#[test]
fn directory_of_another_user_is_rejected() {
    if !can_run_as_nobody() {
        skipped(
            "directories::directory_of_another_user_is_rejected",
            "requires root, and the user nobody must be able to run taran",
        );
        return;
    };
    let directory = Directory::new("another-users");
    std::fs::create_dir_all(directory.path()).unwrap();
    let name = directory.path().display().to_string();

    let mut command = taran(&["driver"]);
    let outcome = run(command.env("AERON_DIR", directory.path()).uid(NOBODY));
    outcome.assert_code(1);
    assert_says(&outcome.stderr, &[&name, "Permission denied", "aeron.dir"]);

    let driver = Driver::start(directory.path(), &[]);
    for tool in ["stat", "errors"] {
        let mut command = taran(&[tool, "-t", "50"]);
        let outcome = run(command.env("AERON_DIR", directory.path()).uid(NOBODY));
        outcome.assert_code(1);
        assert_says(
            &outcome.stderr,
            &[&name, "no permission", "run as the user"],
        );
    }
    let mut command = taran(&["driver"]);
    let outcome = run(command.env("AERON_DIR", directory.path()).uid(NOBODY));
    outcome.assert_code(1);
    assert_says(&outcome.stderr, &[&name, "permission denied", "aeron.dir"]);
    // A client as the user nobody: the benchmark.
    let mut command = taran(&["bench", "echo", "--aeron-dir", &name, "--duration", "1s"]);
    command
        .args(["--output", "/dev/null"])
        .env("AERON_DRIVER_TIMEOUT", "100")
        .uid(NOBODY);
    let outcome = run(&mut command);
    outcome.assert_code(1);
    assert_says(
        &outcome.stderr,
        &[&name, "no permission", "same user", "AERON_DIR"],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

fn can_run_as_nobody() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let mut version = taran(&["version"]);
    is_root
        && version
            .uid(NOBODY)
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}
