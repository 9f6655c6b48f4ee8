// SPDX-License-Identifier: Apache-2.0
use std::fmt;

/// Version of the control protocol, or of a file: major, minor and patch in one number.
///
/// ```
/// use taran_archive_client::protocol::ProtocolVersion;
///
/// let version = ProtocolVersion::new(1, 12, 0);
/// assert_eq!((version.raw(), version.to_string().as_str()), (68_608, "1.12.0"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion(i32);

impl ProtocolVersion {
    /// Version of the control protocol that this crate speaks.
    pub const CURRENT: Self = Self::new(1, 12, 0);

    /// Lowest version of an archive that answers a request for its id.
    pub const WITH_ARCHIVE_ID: Self = Self::new(1, 11, 0);

    /// Returns the version with these parts.
    #[must_use]
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self((major as i32) << 16 | (minor as i32) << 8 | patch as i32)
    }

    /// Returns the version with this encoding; 0 if a sender named none.
    #[must_use]
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// Returns the encoding: `major << 16 | minor << 8 | patch`.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Returns the major version. Peers with different ones cannot communicate.
    #[must_use]
    pub const fn major(self) -> i32 {
        self.0 >> 16 & 0xFF
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minor, patch) = (self.0 >> 8 & 0xFF, self.0 & 0xFF);
        write!(out, "{}.{minor}.{patch}", self.major())
    }
}
