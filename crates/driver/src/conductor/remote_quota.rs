//! Quotas for resources that remote peers can request.
//!
//! An unauthenticated SETUP frame of 40 bytes causes the allocation of a log and several counters. Peers may use most
//! of the available resources, so that many streams can be received; the rest is reserved for clients.

/// Clients have a reserve of one part in this many.
const KEPT: u64 = 8;

/// Returns the bytes that images must leave free on a file system of `capacity` bytes: one eighth, at most four times
/// the threshold of the low-storage warning, which is also used if the capacity is unknown.
pub(crate) fn kept_space(capacity: Option<u64>, low_storage_warning: u64) -> u64 {
    let enough = low_storage_warning.saturating_mul(4);
    capacity.map_or(enough, |capacity| enough.min(capacity / KEPT))
}

/// Returns how many of `capacity` counters images must leave free.
pub(crate) fn kept_counters(capacity: usize) -> usize {
    capacity / KEPT as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_is_kept_or_what_publications_need() {
        const MIB: u64 = 1 << 20;
        assert_eq!(kept_space(Some(64 * MIB), 160 * MIB), 8 * MIB);
        assert_eq!(kept_space(Some(1024 * MIB), 160 * MIB), 128 * MIB);
        assert_eq!(kept_space(Some(24 * 1024 * MIB), 160 * MIB), 640 * MIB);
        assert_eq!(kept_space(None, 160 * MIB), 640 * MIB);
        assert_eq!(kept_space(Some(u64::MAX), u64::MAX), u64::MAX / 8);
        assert_eq!(kept_space(Some(64 * MIB), 0), 0);
    }
}
