use super::Version;

/// Why a file is no `cnc.dat` that can be used. Each says what was found and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CncError {
    /// The file ends before its sections do: its driver is still making it, or died meanwhile.
    #[error("{length} bytes, at least {needed} are needed")]
    TooShort {
        /// Bytes in the file.
        length: usize,
        /// Bytes that it must have.
        needed: usize,
    },
    /// There is no version yet: its driver is still making it, or died meanwhile.
    #[error("not finished: there is no version yet")]
    NotReady,
    /// Another version of the layout.
    #[error("version {found}, expected {expected}")]
    Version {
        /// Version of the file.
        found: Version,
        /// Version of this program.
        expected: Version,
    },
    /// A length or a time in the header is negative.
    #[error("{field} is {value}")]
    Negative {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Lengths of files are multiples of the page size, which is a power of two.
    #[error("page size is {0}, must be a power of two")]
    PageSize(i32),
    /// A section starts or ends where none can.
    #[error("the length of the section before the {section}, or its own, can not be")]
    Damaged {
        /// The section.
        section: &'static str,
    },
}

impl CncError {
    /// True when trying again later may help: a driver that makes the file may not have come so far yet.
    #[must_use]
    pub const fn is_not_ready(&self) -> bool {
        matches!(self, Self::TooShort { .. } | Self::NotReady)
    }
}
