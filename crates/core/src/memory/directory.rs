//! Where the Aeron directory is when nobody says (spec/01 §1.1).

use std::path::{Path, PathBuf};

/// `/dev/shm/aeron-<user>`; where there is no `/dev/shm`, the same in the directory for temporary files.
///
/// The user is what the variable `USER` says, else the name that the system has for the user of this process (services
/// and containers often run without the variable), else `default`.
pub fn default_directory() -> PathBuf {
    let shared_memory = Path::new("/dev/shm");
    let parent = if shared_memory.is_dir() {
        shared_memory.to_path_buf()
    } else {
        std::env::temp_dir()
    };
    let user = std::env::var("USER")
        .ok()
        .filter(|user| !user.is_empty())
        .or_else(user_name)
        .unwrap_or_else(|| "default".to_owned());
    parent.join(format!("aeron-{user}"))
}

/// The name in the system's user database.
#[cfg(unix)]
fn user_name() -> Option<String> {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;
    use std::ptr;

    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut texts = [0; 4096];
    let mut found = ptr::null_mut();
    // SAFETY: the call writes to `entry`, at most `texts.len()` bytes to `texts`, and to `found`; all three live for the
    // whole function. `getuid` has no preconditions.
    let answer = unsafe {
        libc::getpwuid_r(
            libc::getuid(),
            entry.as_mut_ptr(),
            texts.as_mut_ptr(),
            texts.len(),
            &raw mut found,
        )
    };
    if answer != 0 || found.is_null() {
        return None;
    }
    // SAFETY: `found` is not null, so the call has filled `entry`, and its name is a text with an end inside `texts`.
    let name = unsafe { CStr::from_ptr((*found).pw_name) };
    name.to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn user_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_carries_a_user() {
        let directory = default_directory();
        let name = directory.file_name().and_then(|name| name.to_str());
        assert!(name.is_some_and(|name| name.len() > "aeron-".len() && name.starts_with("aeron-")));
    }

    #[test]
    fn the_system_knows_its_users() {
        // A container may run with a user that has no name, but never with an empty one.
        assert_ne!(user_name().as_deref(), Some(""));
    }
}
