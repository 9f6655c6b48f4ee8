// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071): sums of bytes in several parts, sums while copying, and incremental updates (RFC 1624).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes that are summed or copied in one step.
const BLOCK: usize = 32;
const LANES: usize = BLOCK / 4;

/// One's complement sum of bytes that are added part by part. Parts may have any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of words in the byte order of the machine: the sum does not depend on that order (RFC 1071, section 2).
    words: u64,
    /// True after an odd number of bytes.
    is_odd: bool,
}

impl Sum {
    /// Creates a sum of no bytes.
    pub const fn new() -> Self {
        Self {
            words: 0,
            is_odd: false,
        }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut lanes = [0; LANES];
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            add_block(&mut lanes, block);
        }
        self.add_sums(lanes, rest, bytes.len());
    }

    /// Adds bytes and copies them, in one pass.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn add_copied(&mut self, target: &mut [u8], source: &[u8]) {
        assert_eq!(target.len(), source.len());
        let mut lanes = [0; LANES];
        let (blocks, rest) = source.as_chunks::<BLOCK>();
        let (target_blocks, target_rest) = target.as_chunks_mut::<BLOCK>();
        for (block, target) in blocks.iter().zip(target_blocks) {
            add_block(&mut lanes, block);
            *target = *block;
        }
        target_rest.copy_from_slice(rest);
        self.add_sums(lanes, rest, source.len());
    }

    fn add_sums(&mut self, lanes: [u64; LANES], rest: &[u8], length: usize) {
        let mut words: u64 = lanes.iter().map(|lane| u64::from(fold(*lane))).sum();
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            words += u64::from(u16::from_ne_bytes(*pair));
        }
        if let [last] = last {
            words += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        let folded = fold(words);
        let word = if self.is_odd {
            folded.swap_bytes()
        } else {
            folded
        };
        self.words += u64::from(word);
        self.is_odd ^= length % 2 == 1;
    }

    /// Adds a 16-bit number.
    pub fn add_u16(&mut self, number: u16) {
        self.add(&number.to_be_bytes());
    }

    /// Returns the sum, not complemented.
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// Returns the checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

fn add_block(lanes: &mut [u64; LANES], block: &[u8; BLOCK]) {
    let (words, _) = block.as_chunks::<4>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane += u64::from(u32::from_ne_bytes(*word));
    }
}

/// Adds the carries to the lowest 16 bits.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Returns the checksum of bytes.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = Sum::new();
    sum.add(bytes);
    sum.checksum()
}

/// Returns the sum of the pseudo-header of IPv4 (RFC 768).
pub fn pseudo_header_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    let mut sum = Sum::new();
    sum.add(&source.octets());
    sum.add(&destination.octets());
    sum.add_u16(protocol.into());
    sum.add_u16(length);
    sum
}

/// Returns the sum of the pseudo-header of IPv6 (RFC 8200, section 8.1).
pub fn pseudo_header_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) -> Sum {
    let mut sum = Sum::new();
    sum.add(&source.octets());
    sum.add(&destination.octets());
    sum.add(&length.to_be_bytes());
    sum.add_u16(protocol.into());
    sum
}

/// Returns the checksum after one of the words that it covers has changed (RFC 1624, equation 3).
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u64::from(!checksum) + u64::from(!old) + u64::from(new);
    !fold(sum)
}

/// Returns the checksum after bytes that it covers, at an even offset, were replaced by as many others.
///
/// # Panics
/// If the slices differ in length.
pub fn updated_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    assert_eq!(old.len(), new.len());
    let (mut removed, mut added) = (Sum::new(), Sum::new());
    removed.add(old);
    added.add(new);
    updated(checksum, removed.folded(), added.folded())
}

/// Returns the checksum field of UDP for a checksum: 0 means "no checksum", and is sent as its equal 0xFFFF (RFC 768).
pub(crate) fn udp_field(checksum: u16) -> u16 {
    if checksum == 0 { 0xFFFF } else { checksum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of RFC 1071, byte by byte.
    fn defined(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
            sum += u32::from(word);
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn sum_of_the_example_of_rfc_1071_is_ddf2() {
        let mut sum = Sum::new();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.checksum()), (0xddf2, 0x220d));
    }

    #[test]
    fn updated_with_the_example_of_rfc_1624_is_0000() {
        // Section 4: a checksum of 0xDD2F, and a word that changes from 0x5555 to 0x3285.
        assert_eq!(updated(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn sum_of_the_longest_packet_of_ones_does_not_overflow() {
        let bytes = vec![0xFF; 65_535];
        let mut sum = Sum::new();
        for _ in 0..3 {
            sum.add(&bytes);
        }
        let all = vec![0xFF; 3 * 65_535];
        assert_eq!(sum.folded(), defined(&all));
    }

    proptest! {
        #[test]
        fn sum_of_parts_is_that_of_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(0usize..300, 0..5)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let (mut added, mut copied) = (Sum::new(), Sum::new());
            let mut copy = vec![0; bytes.len()];
            for window in cuts.windows(2) {
                let range = window[0]..window[1];
                added.add(&bytes[range.clone()]);
                copied.add_copied(&mut copy[range.clone()], &bytes[range]);
            }
            prop_assert_eq!(added.folded(), defined(&bytes));
            prop_assert_eq!(copied.folded(), defined(&bytes));
            prop_assert_eq!(copy, bytes);
        }

        #[test]
        fn updated_checksum_is_that_of_the_new_bytes(mut bytes in prop::collection::vec(any::<u8>(), 4..100), word: u16, at: prop::sample::Index) {
            // Bytes of zero only have two representations of their sum (RFC 1624, section 3); packets are never zero.
            bytes[0] |= 1;
            let at = 2 + 2 * at.index((bytes.len() - 2) / 2);
            let before = checksum(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
            prop_assert_eq!(updated(before, old, word), checksum(&bytes));
            prop_assert_eq!(updated_bytes(before, &old.to_be_bytes(), &word.to_be_bytes()), checksum(&bytes));
        }
    }
}
