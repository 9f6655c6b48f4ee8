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

/// Returns the user of this process: `USER`, else the name in `/etc/passwd`, as containers often set no `USER`.
fn user_name() -> String {
    let variable = std::env::var("USER").ok().filter(|name| !name.is_empty());
    variable
        .or_else(name_of_owner)
        .unwrap_or_else(|| UNKNOWN_USER.to_owned())
}

#[cfg(unix)]
fn name_of_owner() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let user_id = std::fs::metadata("/proc/self").ok()?.uid();
    name_in(&std::fs::read_to_string("/etc/passwd").ok()?, user_id)
}

#[cfg(not(unix))]
fn name_of_owner() -> Option<String> {
    std::env::var("USERNAME").ok()
}

/// Returns the name of a user id in the text of a passwd file: `name:password:id:...`.
#[cfg(unix)]
fn name_in(passwd: &str, user_id: u32) -> Option<String> {
    let user_id = user_id.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&*user_id)).then(|| name.to_owned())
    })
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn name_in_returns_the_first_field_of_the_user() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n:x:7:7\nbroken\n";
        assert_eq!(name_in(passwd, 0).as_deref(), Some("root"));
        assert_eq!(name_in(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(passwd, 7), None);
        assert_eq!(name_in(passwd, 100), None);
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
