// SPDX-License-Identifier: Apache-2.0
//! Hash tables keyed by session and stream ids.
//!
//! These ids come from untrusted peers, at network speed. The standard library's hash resists chosen keys, but costs as
//! much as the rest of an image lookup. This one multiplies with a secret instead: a peer that does not know the seed
//! of this driver, and never sees a hash, cannot choose ids that collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

/// Map keyed by one id or several.
pub(crate) type IdMap<K, V> = HashMap<K, V, IdHash>;

/// Set of ids.
pub(crate) type IdSet = HashSet<i32, IdHash>;

/// Builder of hashers with a common secret.
#[derive(Clone, Debug)]
pub(crate) struct IdHash {
    start: u64,
    factor: u64,
}

impl IdHash {
    /// Derives the secret from a random seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            start: random.u64(..),
            factor: random.u64(..) | 1,
        }
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    #[inline]
    fn build_hasher(&self) -> IdHasher {
        IdHasher {
            state: self.start,
            factor: self.factor,
        }
    }
}

/// Hasher of a sequence of ids.
#[derive(Debug)]
pub(crate) struct IdHasher {
    state: u64,
    factor: u64,
}

impl IdHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.factor);
    }
}

/// Returns the exclusive or of both halves of the product: every bit of the word affects every bit of the hash.
#[inline]
fn fold(word: u64, factor: u64) -> u64 {
    let product = u128::from(word) * u128::from(factor);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for IdHasher {
    #[inline]
    fn write_i32(&mut self, id: i32) {
        self.mix(u64::from(id.cast_unsigned()));
    }

    #[inline]
    fn write_i64(&mut self, id: i64) {
        self.mix(id.cast_unsigned());
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.mix(u64::from(byte));
        }
    }

    /// Folds once more: after a single fold the hashes of sequential ids may still be close together.
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest number of 65,536 hashes that agree in 16 bits from `shift` on: about 9 for random ones.
    fn max_collisions(hashes: impl Iterator<Item = u64>, shift: u32) -> u32 {
        let mut places = vec![0; 65_536];
        for hash in hashes {
            places[(hash >> shift) as usize & 0xFFFF] += 1;
        }
        places.into_iter().max().unwrap()
    }

    #[test]
    fn hash_of_sequential_ids_is_spread() {
        for seed in 0..20 {
            let hash = IdHash::new(seed);
            for step in [1, 2, 3, 7, 64, 4_096, 65_536, 0x9E37_79B9_u32] {
                let ids = || (0..65_536_u32).map(|number| number.wrapping_mul(step).cast_signed());
                // A table uses the lowest bits, then the highest.
                for shift in [0, 48] {
                    let single = ids().map(|id| hash.hash_one(id));
                    let pairs = ids().map(|id| hash.hash_one((id, 1001)));
                    let most = [max_collisions(single, shift), max_collisions(pairs, shift)];
                    assert!(
                        most.iter().all(|&most| most < 32),
                        "seed {seed} step {step} shift {shift}: {most:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn hash_with_other_seed_differs() {
        let (one, other) = (IdHash::new(1), IdHash::new(2));
        assert!((0..1_000).all(|id: i32| one.hash_one(id) != other.hash_one(id)));
    }
}
