// SPDX-License-Identifier: Apache-2.0
//! Quotas for resources that remote peers can request.
//!
//! An unauthenticated SETUP frame of 40 bytes causes the allocation of a log and several counters. Peers may use most
//! of the available resources, so that many streams can be received; the rest is reserved for clients.

/// Clients have a reserve of one part in this many.
const RESERVE_DIVISOR: u64 = 8;

/// Returns the bytes that images must leave free on a file system of `capacity` bytes: one eighth, at most four times
/// the threshold of the low-storage warning, which is also used if the capacity is unknown.
pub(crate) fn reserved_bytes(capacity: Option<u64>, low_storage_warning: u64) -> u64 {
    let maximum = low_storage_warning.saturating_mul(4);
    capacity.map_or(maximum, |capacity| maximum.min(capacity / RESERVE_DIVISOR))
}

/// Returns how many of `capacity` counters images must leave free.
pub(crate) fn reserved_counters(capacity: usize) -> usize {
    capacity / RESERVE_DIVISOR as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bytes_is_an_eighth_up_to_four_thresholds() {
        const MIB: u64 = 1 << 20;
        assert_eq!(reserved_bytes(Some(64 * MIB), 160 * MIB), 8 * MIB);
        assert_eq!(reserved_bytes(Some(1024 * MIB), 160 * MIB), 128 * MIB);
        assert_eq!(reserved_bytes(Some(24 * 1024 * MIB), 160 * MIB), 640 * MIB);
        assert_eq!(reserved_bytes(None, 160 * MIB), 640 * MIB);
        assert_eq!(reserved_bytes(Some(u64::MAX), u64::MAX), u64::MAX / 8);
        assert_eq!(reserved_bytes(Some(64 * MIB), 0), 0);
    }
}
