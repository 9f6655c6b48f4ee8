//! Where values come from, weakest first.

use std::fmt;
use std::path::PathBuf;

use super::profile::Profile;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The profile.
    Profile(Profile),
    /// An environment variable.
    Environment,
    /// A property file.
    File(PathBuf),
    /// `-D` on the command line.
    CommandLine,
    /// The program that embeds the driver or the client.
    Code,
}

impl Source {
    /// A value is replaced only by one of at least this strength.
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
