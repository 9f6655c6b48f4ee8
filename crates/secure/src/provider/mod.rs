// SPDX-License-Identifier: Apache-2.0
//! Cryptographic primitives behind one interface (docs/spec/transport-security.md §5.1).

#[cfg(feature = "aws-lc")]
mod aws_lc;
#[cfg(feature = "graviola")]
mod graviola;

#[cfg(feature = "aws-lc")]
pub use aws_lc::{AwsLc, AwsLcAead};
#[cfg(feature = "graviola")]
pub use graviola::{Graviola, GraviolaAead};

use crate::secret::{Secret, equal};

/// Provider that the features of this crate select: AWS-LC, or Graviola in a build without it.
#[cfg(feature = "aws-lc")]
pub type DefaultProvider = AwsLc;
/// Provider that the features of this crate select: AWS-LC, or Graviola in a build without it.
#[cfg(all(feature = "graviola", not(feature = "aws-lc")))]
pub type DefaultProvider = Graviola;

/// Length of an authentication tag in bytes.
pub const TAG_LENGTH: usize = 16;
/// Length of a nonce in bytes.
pub const NONCE_LENGTH: usize = 12;

/// Cipher suite of a stream or back key (docs/spec/transport-security.md §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Suite {
    /// AES-256-GCM.
    Aes256Gcm = 1,
    /// AES-128-GCM.
    Aes128Gcm = 2,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305 = 3,
}

impl Suite {
    /// All suites in the default order of preference.
    pub const ALL: [Self; 3] = [Self::Aes256Gcm, Self::Aes128Gcm, Self::ChaCha20Poly1305];

    /// Returns the suite with an id on the wire.
    #[must_use]
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Aes256Gcm),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// Returns the id on the wire.
    #[must_use]
    pub const fn id(self) -> u16 {
        self as u16
    }

    /// Returns the name in options and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// Returns the bit of this suite in the offer of a handshake.
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << self.id()
    }

    /// Returns the length of a key in bytes.
    #[must_use]
    pub const fn key_length(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Returns true for the suites with the limits of GCM (docs/spec/transport-security.md §6.2).
    #[must_use]
    pub const fn is_gcm(self) -> bool {
        matches!(self, Self::Aes256Gcm | Self::Aes128Gcm)
    }
}

/// Reason why bytes cannot be opened: the tag does not belong to them.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the authentication tag is wrong")]
pub struct Unauthentic;

taran_core::debug_is_display!(Unauthentic);

/// Reason why a Diffie-Hellman result is refused: the public key is of small order, so that the result is zero.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the public key is of small order")]
pub struct SmallOrder;

taran_core::debug_is_display!(SmallOrder);

/// Keyed AEAD context. It allocates nothing after it was made.
pub trait Aead: Send + Sync + 'static {
    /// Encrypts `plain` into `sealed`, the tag behind it.
    ///
    /// # Panics
    /// `sealed` is not longer than `plain` by [`TAG_LENGTH`].
    fn seal(&self, nonce: &[u8; NONCE_LENGTH], aad: &[u8], plain: &[u8], sealed: &mut [u8]);

    /// Verifies and decrypts `sealed`, which ends with the tag, into `plain`.
    ///
    /// # Errors
    /// The tag is wrong; `plain` is filled with zeros then.
    ///
    /// # Panics
    /// `sealed` is not longer than `plain` by [`TAG_LENGTH`].
    fn open(
        &self,
        nonce: &[u8; NONCE_LENGTH],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut [u8],
    ) -> Result<(), Unauthentic>;
}

/// Set of primitives. All functions are static, so that a call per datagram is a direct one.
pub trait Provider: Send + Sync + 'static {
    /// AEAD context of this provider.
    type Aead: Aead;

    /// Returns a context for a key.
    ///
    /// # Panics
    /// The length of `key` is not that of the suite.
    fn aead(suite: Suite, key: &[u8]) -> Self::Aead;

    /// Returns the SHA-256 digest of the concatenation of `parts`.
    fn sha256(parts: &[&[u8]]) -> [u8; 32];

    /// Returns the HMAC-SHA-256 of the concatenation of `parts`.
    fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32];

    /// Returns the X25519 public key of a private key.
    fn x25519_public(private: &Secret) -> [u8; 32];

    /// Returns the X25519 result without a check for zero; use [`x25519`].
    #[doc(hidden)]
    fn x25519_unchecked(private: &Secret, public: &[u8; 32]) -> Option<Secret>;
}

/// Returns the X25519 shared secret of a private and a public key.
///
/// # Errors
/// The result is zero, because the public key is of small order (docs/spec/transport-security.md §3.1).
pub fn x25519<P: Provider>(private: &Secret, public: &[u8; 32]) -> Result<Secret, SmallOrder> {
    let shared = P::x25519_unchecked(private, public).ok_or(SmallOrder)?;
    if equal(shared.expose(), &[0; 32]) {
        return Err(SmallOrder);
    }
    Ok(shared)
}
