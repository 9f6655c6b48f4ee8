// SPDX-License-Identifier: Apache-2.0
//! Directories that pass from a killed Taran driver to the official one, and back. Official drivers have no lock file:
//! the age of the heartbeat decides about them.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use taran::Client;

use crate::drivers::OfficialDriver;
use crate::exchange::await_true;
use crate::java::directory;
use crate::require_java;

fn taran(subcommand: &str, dir: &Path, timeout_ms: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
    command
        .arg(subcommand)
        .env_clear()
        .env("AERON_DIR", dir)
        .env("AERON_DRIVER_TIMEOUT", timeout_ms)
        .stdin(Stdio::null());
    command
}

fn is_alive(dir: &Path) -> bool {
    let view = Client::builder().aeron_dir(dir).inspect_driver();
    view.is_ok_and(|driver| driver.is_active())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn directory_passes_from_killed_taran_driver_to_official_one_and_back() {
    require_java!();
    let dir = directory("takeover");
    let lock = dir.join("driver.lock");

    let mut first = taran("driver", &dir, "10000").spawn().unwrap();
    await_true("a Taran driver", || is_alive(&dir));
    assert!(lock.exists());
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!is_alive(&dir));

    // The official driver waits for the heartbeat to be old, as for its own kind.
    let view = Client::builder().aeron_dir(&dir).inspect_driver().unwrap();
    await_true("an old heartbeat", || {
        view.heartbeat_age()
            .is_some_and(|age| age > Duration::from_secs(2))
    });
    let mut official = OfficialDriver::take_over(&dir, &[("aeron.driver.timeout", "1000")]);
    assert!(is_alive(&dir));
    assert!(!lock.exists(), "the official driver deletes the directory");
    let info = taran("driver-info", &dir, "10000").output().unwrap();
    assert!(info.status.success(), "{}", text(&info));

    official.kill();
    // The heartbeat is recent, so the driver may be alive or dead.
    let info = taran("driver-info", &dir, "3600000").output().unwrap();
    assert!(info.status.success(), "{}", text(&info));
    let refused = taran("driver", &dir, "3600000").output().unwrap();
    assert!(
        text(&refused).contains("active media driver"),
        "{}",
        text(&refused)
    );
    let view = Client::builder().aeron_dir(&dir).inspect_driver().unwrap();
    await_true("an old heartbeat", || {
        view.heartbeat_age()
            .is_some_and(|age| age > Duration::from_secs(2))
    });
    let mut second = taran("driver", &dir, "1000").spawn().unwrap();
    await_true("a Taran driver", || lock.exists() && is_alive(&dir));
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(!is_alive(&dir));
}
