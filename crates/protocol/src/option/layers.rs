// SPDX-License-Identifier: Apache-2.0
//! Sources of option values, weakest first.

use std::fmt;
use std::path::PathBuf;

use super::profile::Profile;

/// Source of an option value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Default of the option.
    Default,
    /// Profile.
    Profile(Profile),
    /// Environment variable.
    Environment,
    /// Property file.
    File(PathBuf),
    /// `-D` on the command line.
    CommandLine,
    /// Code of the program that embeds the driver or client.
    Code,
}

impl Source {
    /// Returns the precedence. A value is replaced only by one of at least equal precedence.
    pub(super) fn strength(&self) -> u8 {
        match self {
            Source::Default => 0,
            Source::Profile(_) => 1,
            Source::Environment => 2,
            Source::File(_) => 3,
            Source::CommandLine => 4,
            Source::Code => 5,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Profile(profile) => write!(f, "profile {profile}"),
            Source::Environment => f.write_str("environment"),
            Source::File(path) => write!(f, "file {}", path.display()),
            Source::CommandLine => f.write_str("command line"),
            Source::Code => f.write_str("code"),
        }
    }
}
