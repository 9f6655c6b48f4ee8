// SPDX-License-Identifier: Apache-2.0
//! Primitives of Graviola, which needs no C compiler.

use graviola::aead::{AesGcm, ChaCha20Poly1305};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::{Hash, HashContext, Sha256};
use graviola::key_agreement::x25519::{PublicKey, StaticPrivateKey};

use super::{Aead, NONCE_LENGTH, Provider, Suite, TAG_LENGTH, Unauthentic};
use crate::secret::Secret;

/// Provider over Graviola (crate `graviola`). It needs the processor features of `graviola::util::is_cpu_supported`.
#[derive(Clone, Copy, Debug)]
pub struct Graviola;

/// AEAD context of Graviola.
pub struct GraviolaAead(Context);

enum Context {
    Gcm(Box<AesGcm>),
    ChaCha(ChaCha20Poly1305),
}

impl Aead for GraviolaAead {
    #[inline]
    fn seal(&self, nonce: &[u8; NONCE_LENGTH], aad: &[u8], plain: &[u8], sealed: &mut [u8]) {
        let (ciphertext, tag) = sealed
            .split_last_chunk_mut::<TAG_LENGTH>()
            .expect("there is room for the tag");
        // Graviola encrypts in place only.
        ciphertext.copy_from_slice(plain);
        match &self.0 {
            Context::Gcm(key) => key.encrypt(nonce, aad, ciphertext, tag),
            Context::ChaCha(key) => key.encrypt(nonce, aad, ciphertext, tag),
        }
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
        plain.copy_from_slice(ciphertext);
        let opened = match &self.0 {
            Context::Gcm(key) => key.decrypt(nonce, aad, plain, tag),
            Context::ChaCha(key) => key.decrypt(nonce, aad, plain, tag),
        };
        opened.map_err(|_| {
            plain.fill(0);
            Unauthentic
        })
    }
}

impl Provider for Graviola {
    type Aead = GraviolaAead;

    fn aead(suite: Suite, key: &[u8]) -> GraviolaAead {
        assert_eq!(key.len(), suite.key_length(), "length of the key");
        GraviolaAead(if suite.is_gcm() {
            Context::Gcm(Box::new(AesGcm::new(key)))
        } else {
            let key = key.try_into().expect("the length is asserted");
            Context::ChaCha(ChaCha20Poly1305::new(key))
        })
    }

    fn sha256(parts: &[&[u8]]) -> [u8; 32] {
        let mut context = Sha256::new();
        for part in parts {
            context.update(part);
        }
        array(context.finish().as_ref())
    }

    fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut context = Hmac::<Sha256>::new(key);
        for part in parts {
            context.update(part);
        }
        array(context.finish().as_ref())
    }

    fn x25519_public(private: &Secret) -> [u8; 32] {
        StaticPrivateKey::from_array(private.expose())
            .public_key()
            .as_bytes()
    }

    fn x25519_unchecked(private: &Secret, public: &[u8; 32]) -> Option<Secret> {
        let shared = StaticPrivateKey::from_array(private.expose())
            .diffie_hellman(&PublicKey::from_array(public))
            .ok()?;
        Some(Secret::new(shared.as_bytes()))
    }
}

fn array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("the result has 32 bytes")
}
