// SPDX-License-Identifier: Apache-2.0
//! Derivations of keys, identifiers and authenticators (docs/spec/transport-security.md §2.6, §3.1 and §3.3).

use std::fmt;

use zeroize::Zeroizing;

use crate::hkdf;
use crate::provider::{NONCE_LENGTH, Provider, Suite};
use crate::secret::Secret;

/// X25519 public key of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Returns the fingerprint.
    #[must_use]
    pub fn fingerprint<P: Provider>(&self) -> Fingerprint {
        Fingerprint(first(&P::sha256(&[b"taran-ts/1 identity", &self.0])))
    }
}

/// Hash of a public key: a hint that finds the key in a trust store, never a proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl fmt::Display for Fingerprint {
    /// Prints eight groups of four hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pair) in self.0.chunks(2).enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(formatter, "{separator}{:02x}{:02x}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

/// Role of a key: who seals with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The sender seals frames of a stream.
    Stream,
    /// A receiver seals its feedback.
    Back {
        /// Receiver id that the link carries.
        receiver_id: i64,
    },
}

/// Identifier of a key on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 8]);

impl KeyId {
    /// Absent key, in a HELLO and in an ANNOUNCE without a sealed SETUP.
    pub const NONE: Self = Self([0; 8]);
}

/// Everything that a key is bound to. Keys of different contexts are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyContext {
    /// Role of the key.
    pub role: Role,
    /// Suite.
    pub suite: Suite,
    /// Identity that drew the secret.
    pub identity: Fingerprint,
    /// Session id; 0 for a back key.
    pub session_id: i32,
    /// Stream id; 0 for a back key.
    pub stream_id: i32,
    /// Epoch.
    pub epoch: u32,
}

/// Key, initialization vector and identifier, derived from a secret.
pub struct KeyMaterial {
    suite: Suite,
    key: Zeroizing<[u8; 32]>,
    /// XORed into each nonce.
    pub(crate) iv: Zeroizing<[u8; NONCE_LENGTH]>,
    id: KeyId,
}

impl KeyMaterial {
    /// Derives the material of a secret in a context.
    #[must_use]
    pub fn derive<P: Provider>(secret: &Secret, context: &KeyContext) -> Self {
        let salt: &[u8] = match context.role {
            Role::Stream => b"taran-ts/1 stream",
            Role::Back { .. } => b"taran-ts/1 back",
        };
        let prk = hkdf::extract::<P>(salt, secret.expose());
        let info = context.encode();
        let mut key = Zeroizing::new([0; 32]);
        let key_length = context.suite.key_length();
        hkdf::expand::<P>(&prk, &[b"key", &info], &mut key[..key_length]);
        let mut iv = Zeroizing::new([0; NONCE_LENGTH]);
        hkdf::expand::<P>(&prk, &[b"iv", &info], &mut *iv);
        let mut id = [0; 8];
        hkdf::expand::<P>(&prk, &[b"id", &info], &mut id);
        Self {
            suite: context.suite,
            key,
            iv,
            id: KeyId(id),
        }
    }

    /// Returns the suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the identifier.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key[..self.suite.key_length()]
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyMaterial")
            .field("suite", &self.suite)
            .field("id", &self.id)
            .field("key", &"<secret>")
            .finish_non_exhaustive()
    }
}

impl KeyContext {
    /// Encodes the context as key derivation hashes it.
    fn encode(&self) -> Vec<u8> {
        let mut info = Vec::with_capacity(38);
        info.extend_from_slice(&self.suite.id().to_le_bytes());
        info.extend_from_slice(&self.identity.0);
        info.extend_from_slice(&self.session_id.to_le_bytes());
        info.extend_from_slice(&self.stream_id.to_le_bytes());
        info.extend_from_slice(&self.epoch.to_le_bytes());
        if let Role::Back { receiver_id } = self.role {
            info.extend_from_slice(&receiver_id.to_le_bytes());
        }
        info
    }
}

/// Returns the tag of a channel, from its label.
#[must_use]
pub fn channel_tag<P: Provider>(label: &str) -> [u8; 4] {
    first(&P::sha256(&[b"taran-ts/1 channel", label.as_bytes()]))
}

/// Returns the first authenticator of an INIT or RESP, over all bytes before it.
pub(crate) fn mac1<P: Provider>(addressee: &PublicKey, before: &[u8]) -> [u8; 16] {
    let key = P::sha256(&[b"taran-ts/1 mac1", &addressee.0]);
    first(&P::hmac_sha256(&key, &[before]))
}

/// Returns the check value at the end of a key in a text file.
pub(crate) fn text_check<P: Provider>(kind: &str, bytes: &[u8; 32]) -> [u8; 4] {
    first(&P::sha256(&[b"taran-ts/1 text", kind.as_bytes(), bytes]))
}

/// Returns the first bytes of a digest.
pub(crate) fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    *digest
        .first_chunk()
        .expect("no derivation is longer than its digest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::DefaultProvider;

    const CONTEXT: KeyContext = KeyContext {
        role: Role::Stream,
        suite: Suite::Aes256Gcm,
        identity: Fingerprint([3; 16]),
        session_id: 4,
        stream_id: 5,
        epoch: 6,
    };

    #[test]
    fn keys_of_other_contexts_are_unrelated() {
        let secret = Secret::new([1; 32]);
        let others = [
            CONTEXT,
            KeyContext {
                role: Role::Back { receiver_id: 0 },
                ..CONTEXT
            },
            KeyContext {
                role: Role::Back { receiver_id: 1 },
                ..CONTEXT
            },
            KeyContext {
                suite: Suite::ChaCha20Poly1305,
                ..CONTEXT
            },
            KeyContext {
                identity: Fingerprint([4; 16]),
                ..CONTEXT
            },
            KeyContext {
                session_id: 5,
                ..CONTEXT
            },
            KeyContext {
                stream_id: 4,
                ..CONTEXT
            },
            KeyContext {
                epoch: 7,
                ..CONTEXT
            },
        ];
        let derived: Vec<KeyMaterial> = others
            .iter()
            .map(|context| KeyMaterial::derive::<DefaultProvider>(&secret, context))
            .collect();
        for (index, one) in derived.iter().enumerate() {
            for other in &derived[index + 1..] {
                assert_ne!(one.id(), other.id());
                assert_ne!(one.key(), other.key());
                assert_ne!(*one.iv, *other.iv);
            }
        }
    }

    #[test]
    fn key_material_debug_shows_no_secret() {
        let material = KeyMaterial::derive::<DefaultProvider>(&Secret::new([1; 32]), &CONTEXT);
        let text = format!("{material:?}");
        assert!(text.contains("<secret>"), "{text}");
        for bytes in [material.key(), &*material.iv] {
            assert!(!text.contains(&format!("{bytes:?}")), "{text}");
        }
    }

    #[test]
    fn fingerprint_prints_eight_groups_of_four_digits() {
        let bytes: [u8; 16] = std::array::from_fn(|index| index as u8);
        assert_eq!(
            Fingerprint(bytes).to_string(),
            "0001 0203 0405 0607 0809 0a0b 0c0d 0e0f"
        );
    }
}
