// SPDX-License-Identifier: Apache-2.0
//! The default Aeron directory (docs/spec/shared-memory.md §1.1).

use std::path::{Path, PathBuf};

/// User name if none can be determined.
const UNKNOWN_USER: &str = "default";

/// Returns `/dev/shm/aeron-<user>` if `/dev/shm` exists, else `aeron-<user>` in the directory for temporary files.
#[must_use]
pub fn default_directory() -> PathBuf {
    let shared_memory = Path::new("/dev/shm");
    let parent = if shared_memory.is_dir() {
        shared_memory.to_path_buf()
    } else {
        std::env::temp_dir()
    };
    parent.join(format!("aeron-{}", user_name()))
}

/// Returns the user of this process: `USER`, else the name in the system's user database, as containers often set no `USER`.
fn user_name() -> String {
    let variable = std::env::var("USER").ok().filter(|name| !name.is_empty());
    variable
        .or_else(name_of_owner)
        .unwrap_or_else(|| UNKNOWN_USER.to_owned())
}

/// Returns the name of the user in the system's database, which may be a directory service. Miri has none.
#[cfg(all(unix, not(miri)))]
fn name_of_owner() -> Option<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??;
    Some(user.name).filter(|name| !name.is_empty())
}

#[cfg(all(unix, miri))]
fn name_of_owner() -> Option<String> {
    None
}

#[cfg(not(unix))]
fn name_of_owner() -> Option<String> {
    std::env::var("USERNAME").ok()
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no user database")]
    fn name_of_owner_is_that_of_the_user_database() {
        let output = std::process::Command::new("id").arg("-un").output();
        if let Ok(output) = output
            && output.status.success()
        {
            let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            assert_eq!(name_of_owner(), Some(name));
        }
    }

    #[test]
    fn default_directory_contains_the_user_name() {
        let name = default_directory();
        let name = name.file_name().and_then(|name| name.to_str()).unwrap();
        assert!(
            name.len() > "aeron-".len() && name.starts_with("aeron-"),
            "{name}"
        );
    }
}
