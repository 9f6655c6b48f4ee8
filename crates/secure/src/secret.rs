// SPDX-License-Identifier: Apache-2.0
//! Secret bytes: wiped on drop, compared in constant time, never printed.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Secret of 32 bytes: a private key, a pre-shared key, or the input of a key derivation.
///
/// The bytes are wiped when it is dropped. `==` takes the same time for all values, and `Debug` prints `<secret>`.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Wraps bytes. The caller's copy, if it is one, is not wiped.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Lends the bytes.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Lends the bytes for filling.
    pub(crate) const fn expose_mut(&mut self) -> &mut [u8; 32] {
        &mut self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<secret>")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

/// Returns true if two byte strings are equal. The time depends on their lengths only
/// (`subtle::ConstantTimeEq::ct_eq`); all comparisons of authenticators go through it.
#[must_use]
pub(crate) fn equal(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_debug_shows_no_byte() {
        assert_eq!(format!("{:?}", Secret::new([0xab; 32])), "<secret>");
    }

    #[test]
    fn secrets_of_other_bytes_differ_in_any_bit() {
        let secret = Secret::new([7; 32]);
        assert_eq!(secret, secret.clone());
        for bit in 0..256 {
            let mut bytes = [7; 32];
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(secret, Secret::new(bytes));
        }
    }
}
