//! What those may take who ask over the network.
//!
//! A frame of 40 bytes has a log and some counters made for whoever sends it, and nobody signs it. Most of what is
//! limited is theirs for the asking, so that many streams can be received; the rest is kept for clients.

/// Clients keep one part of so many.
const KEPT: u64 = 8;

/// Bytes of a file system of `capacity` that images leave free. On a large one, or one that does not tell its size, what
/// some publications need will do: four times the space at which the driver warns that it is running low.
pub(crate) fn kept_space(capacity: Option<u64>, low_storage_warning: u64) -> u64 {
    let enough = low_storage_warning.saturating_mul(4);
    capacity.map_or(enough, |capacity| enough.min(capacity / KEPT))
}

/// Of so many counters, those that images leave free.
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
