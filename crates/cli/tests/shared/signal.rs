// SPDX-License-Identifier: Apache-2.0
//! Sends signals to processes started by a test.

use std::process::Command;

/// Sends a signal by name.
///
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status()
        .expect("there is a command to send signals");
    assert!(status.success(), "{process} was not sent {name}");
}
