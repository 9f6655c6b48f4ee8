// SPDX-License-Identifier: Apache-2.0
use super::Version;

/// Reason why a `cnc.dat` cannot be used. Each message names the value found and the values allowed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CncError {
    /// The file is shorter than its sections: the driver is still creating it, or died while doing so.
    #[error("{length} bytes, at least {needed} are needed")]
    TooShort {
        /// Length of the file.
        length: usize,
        /// Minimum length.
        needed: usize,
    },
    /// The version is not set yet: the driver is still creating the file, or died while doing so.
    #[error("not finished: there is no version yet")]
    NotReady,
    /// The layout version is not supported.
    #[error("version {found}, expected {expected}")]
    Version {
        /// Version of the file.
        found: Version,
        /// Version supported.
        expected: Version,
    },
    /// A length or timeout in the header is negative.
    #[error("{field} is {value}")]
    Negative {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: i64,
    },
    /// The page size is not a power of two.
    #[error("page size is {0}, must be a power of two")]
    PageSize(i32),
    /// A section is misaligned, because its length or that of a previous section is invalid.
    #[error("misaligned section {section}: its length, or that of a previous section, is invalid")]
    Damaged {
        /// Name of the section.
        section: &'static str,
    },
}

taran_core::debug_is_display!(CncError);

impl CncError {
    /// Returns true if a retry may succeed, because a driver may still be creating the file.
    #[must_use]
    pub const fn is_not_ready(&self) -> bool {
        matches!(self, Self::TooShort { .. } | Self::NotReady)
    }
}
