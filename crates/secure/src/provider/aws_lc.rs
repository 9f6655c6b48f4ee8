// SPDX-License-Identifier: Apache-2.0
//! Primitives of AWS-LC.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::{digest, hmac};

use super::{Aead, NONCE_LENGTH, Provider, Suite, TAG_LENGTH, Unauthentic};
use crate::secret::Secret;

/// Provider over AWS-LC (crate `aws-lc-rs`).
#[derive(Clone, Copy, Debug)]
pub struct AwsLc;

/// AEAD context of AWS-LC. The library wipes its copy of the key when it frees the context.
pub struct AwsLcAead {
    key: LessSafeKey,
    /// Sealing copies the plain bytes and seals in place: from one buffer into another, the library encrypts ChaCha20-Poly1305
    /// byte by byte.
    seals_in_place: bool,
}

impl Aead for AwsLcAead {
    #[inline]
    fn seal(&self, nonce: &[u8; NONCE_LENGTH], aad: &[u8], plain: &[u8], sealed: &mut [u8]) {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let result = if self.seals_in_place {
            let (ciphertext, tag) = sealed.split_at_mut(plain.len());
            ciphertext.copy_from_slice(plain);
            self.key
                .seal_in_place_separate_tag(nonce, Aad::from(aad), ciphertext)
                .map(|made| tag.copy_from_slice(made.as_ref()))
        } else {
            self.key
                .seal_in_place_scatter(nonce, Aad::from(aad), &mut [], plain, sealed)
        };
        result.expect("lengths match, and a datagram is shorter than the limit of the cipher");
    }

    #[inline]
    fn open(
        &self,
        nonce: &[u8; NONCE_LENGTH],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut [u8],
    ) -> Result<(), Unauthentic> {
        let (ciphertext, tag) = sealed.split_at(sealed.len() - TAG_LENGTH);
        assert_eq!(ciphertext.len(), plain.len(), "lengths match");
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened =
            self.key
                .open_separate_gather(nonce, Aad::from(aad), ciphertext, tag, &mut *plain);
        opened.map_err(|_| {
            plain.fill(0);
            Unauthentic
        })
    }
}

impl Provider for AwsLc {
    type Aead = AwsLcAead;

    fn aead(suite: Suite, key: &[u8]) -> AwsLcAead {
        let algorithm = match suite {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, key).expect("the key has the length of its suite");
        AwsLcAead {
            key: LessSafeKey::new(key),
            seals_in_place: suite == Suite::ChaCha20Poly1305,
        }
    }

    fn sha256(parts: &[&[u8]]) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(part);
        }
        array(context.finish().as_ref())
    }

    fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let mut context = hmac::Context::with_key(&key);
        for part in parts {
            context.update(part);
        }
        array(context.sign().as_ref())
    }

    fn x25519_public(private: &Secret) -> [u8; 32] {
        let public = private_key(private)
            .compute_public_key()
            .expect("every X25519 private key has a public key");
        array(public.as_ref())
    }

    fn x25519_unchecked(private: &Secret, public: &[u8; 32]) -> Option<Secret> {
        let public = UnparsedPublicKey::new(&X25519, public);
        agree(&private_key(private), public, (), |shared| {
            Ok(Secret::new(array(shared)))
        })
        .ok()
    }
}

fn private_key(private: &Secret) -> PrivateKey {
    PrivateKey::from_private_key(&X25519, private.expose())
        .expect("any 32 bytes are an X25519 private key")
}

fn array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("the result has 32 bytes")
}
