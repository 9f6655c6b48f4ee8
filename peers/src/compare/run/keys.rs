// SPDX-License-Identifier: Apache-2.0
//! Keys of secured drivers.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::process::directory;
use crate::subject::program;

/// A directory with a key pair that trusts itself, for drivers at both ends; removed on drop.
pub(super) struct Keys {
    directory: PathBuf,
}

impl Keys {
    /// Makes the directory.
    pub(super) fn generate() -> Result<Keys, String> {
        let keys = Keys {
            directory: directory("keys"),
        };
        let mut command = Command::new(program("drivers"));
        command.arg("keys").arg(&keys.directory);
        let status = command.stdin(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => Ok(keys),
            Ok(status) => Err(format!("{command:?} ended with {status}, see above")),
            Err(error) => Err(format!("{command:?} cannot be run: {error}")),
        }
    }

    /// Makes the driver that a command starts a secured one.
    pub(super) fn add_to(&self, command: &mut Command) {
        command
            .env("TARAN_SECURE_MODE", "all")
            .env("TARAN_SECURE_KEYS_DIR", &self.directory);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A directory that could not be made is not there.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
