// SPDX-License-Identifier: Apache-2.0
//! Insufficient space on a file system, with the required size.

use std::fmt;

const MIB: u64 = 1 << 20;

/// Requested and available space. The text states the required size of the file system as arguments of the commands
/// that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsufficientSpace {
    /// Bytes to reserve.
    pub requested: u64,
    /// Bytes that can be reserved.
    pub available: u64,
    /// Size of the whole file system in bytes, if known.
    pub capacity: Option<u64>,
}

impl InsufficientSpace {
    /// Returns the missing bytes.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.requested.saturating_sub(self.available)
    }
}

impl fmt::Display for InsufficientSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requested,
            available,
            capacity,
        } = self;
        write!(f, "needed={requested} available={available} bytes: ")?;
        match capacity {
            Some(capacity) => {
                let size = capacity.saturating_add(self.missing()).div_ceil(MIB);
                write!(
                    f,
                    "the file system is {}m, make it {size}m or more (a container: --shm-size={size}m; else: mount -o \
                     remount,size={size}m), or free space on it",
                    capacity / MIB
                )
            }
            None => write!(
                f,
                "make the file system at least {}m larger (a container: --shm-size; else: mount -o remount,size=...), \
                 or free space on it",
                self.missing().div_ceil(MIB)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_states_the_required_size() {
        let mut shortage = InsufficientSpace {
            requested: 3 * (16 << 20) + 4_096,
            available: 10 << 20,
            capacity: Some(64 << 20),
        };
        let text = shortage.to_string();
        for part in [
            "needed=50335744 available=10485760",
            "is 64m",
            "--shm-size=103m",
            "remount,size=103m",
        ] {
            assert!(text.contains(part), "{text}");
        }
        shortage.capacity = None;
        let text = shortage.to_string();
        assert!(text.contains("at least 39m larger"), "{text}");
    }

    #[test]
    fn display_accepts_any_numbers() {
        for capacity in [None, Some(0), Some(u64::MAX)] {
            for (requested, available) in [(0, u64::MAX), (u64::MAX, 0), (0, 0)] {
                let shortage = InsufficientSpace {
                    requested,
                    available,
                    capacity,
                };
                assert!(!shortage.to_string().is_empty());
            }
        }
    }
}
