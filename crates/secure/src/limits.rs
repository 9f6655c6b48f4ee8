// SPDX-License-Identifier: Apache-2.0
//! Limits of keys (docs/spec/transport-security.md §6.2).

use crate::provider::Suite;

/// Limits of one key. [`KeyLimits::of`] gives those of the specification; tests lower them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// Sealed blocks of 16 bytes from which another epoch is due.
    pub soft_blocks: u64,
    /// Sealed blocks at which sealing stops.
    pub hard_blocks: u64,
    /// Sealed datagrams from which another epoch is due.
    pub soft_datagrams: u64,
    /// Sealed datagrams at which sealing stops. No counter from here on is opened.
    pub hard_datagrams: u64,
    /// Datagrams that failed to open from which another epoch is asked for.
    pub soft_failures: u64,
    /// Datagrams that failed to open at which the key is retired.
    pub hard_failures: u64,
}

impl KeyLimits {
    /// Returns the limits of a suite.
    #[must_use]
    pub const fn of(suite: Suite) -> Self {
        if suite.is_gcm() {
            Self {
                soft_blocks: 1 << 34,
                hard_blocks: 1 << 35,
                soft_datagrams: 1 << 31,
                hard_datagrams: 1 << 32,
                soft_failures: 1 << 35,
                hard_failures: 1 << 40,
            }
        } else {
            Self {
                soft_blocks: u64::MAX,
                hard_blocks: u64::MAX,
                soft_datagrams: 1 << 47,
                hard_datagrams: 1 << 48,
                soft_failures: 1 << 35,
                hard_failures: 1 << 36,
            }
        }
    }
}
