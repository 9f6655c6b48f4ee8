// SPDX-License-Identifier: Apache-2.0
//! Build tools of the official C driver and client.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run as run_command;

/// The oldest CMake that builds the official C driver.
const CMAKE: (u32, u32) = (3, 30);

/// Returns an error that names all missing tools.
pub(super) fn check() -> Result<(), String> {
    let missing: Vec<&str> = [
        ("clang", works(Command::new("clang").arg("--version"))),
        ("libclang-dev", has_libclang()),
        ("a C compiler", works(Command::new("cc").arg("--version"))),
        ("libbsd-dev", has_header("bsd/string.h")),
    ]
    .into_iter()
    .filter_map(|(name, is_present)| (!is_present).then_some(name))
    .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the official C driver cannot be built without {}; on Debian and Ubuntu: apt-get install clang libclang-dev gcc \
         libc6-dev libbsd-dev",
        missing.join(", ")
    ))
}

/// Returns a search path with a recent CMake: that of the system, or one from the Python registry, installed into `folder`.
pub(super) fn path_with_cmake(folder: &Path) -> Result<OsString, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    if is_new_enough("cmake") {
        return Ok(path);
    }
    let programs = folder.join("bin");
    if !is_new_enough(programs.join("cmake")) {
        install_cmake(folder).map_err(|reason| {
            format!(
                "the official C driver needs CMake {}.{} or newer, for example from `pip install cmake`; the installation into \
                 {} failed: {reason}",
                CMAKE.0,
                CMAKE.1,
                folder.display()
            )
        })?;
    }
    let all = std::iter::once(programs).chain(env::split_paths(&path));
    env::join_paths(all).map_err(|error| error.to_string())
}

fn install_cmake(folder: &Path) -> Result<(), String> {
    run_command(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run_command(
        Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            // Tested with 3.31.
            .arg(format!("cmake>={}.{},<4", CMAKE.0, CMAKE.1)),
    )
}

fn is_new_enough(program: impl AsRef<OsStr>) -> bool {
    let Ok(output) = Command::new(program).arg("--version").output() else {
        return false;
    };
    version(&String::from_utf8_lossy(&output.stdout)).is_some_and(|version| version >= CMAKE)
}

/// Returns the version from the first line of `cmake --version`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_whitespace().nth(2)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn works(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn has_header(name: &str) -> bool {
    let include = format!("echo '#include <{name}>' | cc -E -x c -");
    works(Command::new("sh").args(["-c", &include]))
}

/// Returns true if libclang is in one of the usual folders, whose names depend on the distribution and on the version of clang.
/// The build itself searches more thoroughly.
fn has_libclang() -> bool {
    if env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let find = "ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* /usr/lib*/libclang*.so* \
                /usr/local/lib/libclang*.so* 2>/dev/null | grep -q .";
    works(Command::new("sh").args(["-c", find]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_compared_by_number() {
        let old = version("cmake version 3.9.6\n\nCMake suite maintained by Kitware").unwrap();
        assert!(old < CMAKE);
        assert!(version("cmake version 3.31.10").unwrap() >= CMAKE);
        assert!(version("cmake version 4.0.2-rc1").unwrap() >= CMAKE);
        assert_eq!(version("no cmake here at all"), None);
    }
}
