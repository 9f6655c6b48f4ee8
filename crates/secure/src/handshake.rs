// SPDX-License-Identifier: Apache-2.0
//! Handshake: Noise `IKpsk2` over a provider (docs/spec/transport-security.md §2.6 and §3.2).
//!
//! Contract: pure functions of keys, entropy and bytes. The initiator makes an [`Initiation`] and sends its INIT; the
//! responder turns an INIT into [`Received`], decides by the peer's key and its offer, and answers with a RESP and the keys
//! of the link; [`Initiation::finish`] takes the RESP. A RESP that fails changes nothing. The responder must not hand out a
//! stream key before it has opened the first frame under the link's keys, because an INIT can be replayed.
//!
//! `snow` computes the transcript with our own primitives. It does not wipe its chaining key; private keys, entropy and
//! transport keys are wiped.

use std::fmt;
use std::marker::PhantomData;

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use taran_protocol::frame::FrameHeader;
use zerocopy::IntoBytes;
use zeroize::{Zeroize, Zeroizing};

use crate::VERSION;
use crate::derive::{PublicKey, mac1};
use crate::frame::{INIT, Init, QUESTION_LENGTH, RESP, Resp};
use crate::identity::Identity;
use crate::link::LinkKeys;
use crate::provider::{Aead, NONCE_LENGTH, Provider, Suite, x25519};
use crate::secret::{Secret, equal};

/// Noise protocol of the handshake.
const PROTOCOL: &str = "Noise_IKpsk2_25519_ChaChaPoly_SHA256";
const PROLOGUE: &[u8] = b"taran-ts/1";
const PAYLOAD: usize = 24;

/// Payload of the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bit set of the suites that the initiator takes.
    pub suites: u16,
    /// Tag of the initiator's channel.
    pub channel_tag: [u8; 4],
    /// Receiver id that the initiator claims.
    pub receiver_id: i64,
    /// Random number of this run of the initiator's driver.
    pub incarnation: u64,
}

/// Payload of the second message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Id of the suite for the initiator's back key.
    pub suite: u16,
    /// Random number of this run of the responder's driver.
    pub incarnation: u64,
}

/// Reason why a handshake message is refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The message is for another identity, or its author does not know the public key.
    #[error("the message is not for this identity")]
    Mac,
    /// The message answers another one.
    #[error("the message is for another link")]
    Link,
    /// The Noise message is not authentic, or a key is of small order.
    #[error("the handshake message is not authentic")]
    Noise,
    /// The protocol version is unknown.
    #[error("protocol version {0}; expected {VERSION}")]
    Version(u16),
    /// The responder chose a suite that was not offered.
    #[error("suite {0} was not offered")]
    Suite(u16),
    /// A reserved field is not zero.
    #[error("a reserved field is not zero")]
    Reserved,
}

taran_core::debug_is_display!(HandshakeError);

/// Handshake that waits for its RESP.
pub struct Initiation<P: Provider> {
    state: snow::HandshakeState,
    own: PublicKey,
    init: Init,
    suites: u16,
    /// Noise message 2 that was authentic, and its payload. Link ids in the clear are not part of the transcript, so that
    /// a RESP can be authentic in all but these; the state of Noise has advanced then, and the true RESP may follow.
    read: Option<([u8; 72], [u8; PAYLOAD])>,
    provider: PhantomData<P>,
}

impl<P: Provider> Initiation<P> {
    /// Starts a handshake with the owner of a public key. `entropy` must be fresh: it becomes the ephemeral key.
    ///
    /// # Errors
    /// The public key is of small order.
    pub fn new(
        identity: &Identity,
        peer: &PublicKey,
        psk: &Secret,
        link_id: u64,
        offer: &Offer,
        entropy: Secret,
    ) -> Result<Self, HandshakeError> {
        let mut init = Init {
            header: FrameHeader::new(QUESTION_LENGTH as i32, 0, INIT),
            link_id: link_id.into(),
            responder: peer.fingerprint::<P>().0,
            message: [0; 120],
            mac1: [0; 16],
            cookie: [0; 24],
        };
        let prologue = prologue(&init);
        let mut state = builder::<P>(entropy)
            .local_private_key(identity.private().expose())
            .and_then(|builder| builder.remote_public_key(&peer.0))
            .and_then(|builder| builder.psk(2, psk.expose()))
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(snow::Builder::build_initiator)
            .map_err(|_| HandshakeError::Noise)?;
        let mut payload = [0; PAYLOAD];
        payload[..2].copy_from_slice(&VERSION.to_le_bytes());
        payload[2..4].copy_from_slice(&offer.suites.to_le_bytes());
        payload[4..8].copy_from_slice(&offer.channel_tag);
        payload[8..16].copy_from_slice(&offer.receiver_id.to_le_bytes());
        payload[16..].copy_from_slice(&offer.incarnation.to_le_bytes());
        state
            .write_message(&payload, &mut init.message)
            .map_err(|_| HandshakeError::Noise)?;
        init.mac1 = mac1::<P>(peer, &init.as_bytes()[..Init::MAC1_AT]);
        Ok(Self {
            state,
            own: *identity.public(),
            init,
            suites: offer.suites,
            read: None,
            provider: PhantomData,
        })
    }

    /// Returns the message to send.
    #[must_use]
    pub const fn init(&self) -> &Init {
        &self.init
    }

    /// Puts a cookie of the responder into the message.
    pub const fn set_cookie(&mut self, cookie: [u8; 24]) {
        self.init.cookie = cookie;
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// The answer is not authentic or not for this handshake, which then goes on waiting.
    pub fn finish(&mut self, resp: &Resp) -> Result<(Answer, LinkKeys<P>), HandshakeError> {
        if resp.initiator_link_id != self.init.link_id {
            return Err(HandshakeError::Link);
        }
        if !answers::<P>(resp, &self.own) {
            return Err(HandshakeError::Mac);
        }
        let payload = self.read(&resp.message)?;
        let answer = Answer {
            suite: u16::from_le_bytes([payload[2], payload[3]]),
            incarnation: u64::from_le_bytes(eight(&payload[8..16])),
        };
        check_version(&payload)?;
        if payload[4..8] != [0; 4] {
            return Err(HandshakeError::Reserved);
        }
        if payload[16..] != *resp.responder_link_id.as_bytes() {
            return Err(HandshakeError::Link);
        }
        let suite = Suite::from_id(answer.suite).filter(|suite| self.suites & suite.bit() != 0);
        if suite.is_none() {
            return Err(HandshakeError::Suite(answer.suite));
        }
        let (send, receive) = split(&mut self.state);
        let keys = LinkKeys::new(
            &send,
            &receive,
            self.init.link_id.get(),
            resp.responder_link_id.get(),
        );
        Ok((answer, keys))
    }

    /// Returns the payload of a Noise message 2.
    fn read(&mut self, message: &[u8; 72]) -> Result<[u8; PAYLOAD], HandshakeError> {
        if let Some((read, payload)) = &self.read {
            return if read == message {
                Ok(*payload)
            } else {
                Err(HandshakeError::Noise)
            };
        }
        let mut payload = [0; PAYLOAD];
        self.state
            .read_message(message, &mut payload)
            .map_err(|_| HandshakeError::Noise)?;
        self.read = Some((*message, payload));
        Ok(payload)
    }
}

impl<P: Provider> fmt::Debug for Initiation<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Initiation")
            .field("link_id", &self.init.link_id.get())
            .finish_non_exhaustive()
    }
}

/// Authentic INIT, not yet answered. Its author may only repeat an old one: nothing is proved before the first frame under
/// the link's keys.
pub struct Received<P: Provider> {
    state: snow::HandshakeState,
    init_link_id: u64,
    peer: PublicKey,
    offer: Offer,
    provider: PhantomData<P>,
}

/// Returns true if the author of an INIT knows the public key of `own`. It is the check to make first: it costs two hashes.
#[must_use]
pub fn is_addressed_to<P: Provider>(init: &Init, own: &PublicKey) -> bool {
    let expected = mac1::<P>(own, &init.as_bytes()[..Init::MAC1_AT]);
    equal(&expected, &init.mac1)
}

/// Returns true if the author of a RESP knows the public key of `own`, to which the INIT belongs. It is the check to make
/// first: it costs two hashes.
#[must_use]
pub fn answers<P: Provider>(resp: &Resp, own: &PublicKey) -> bool {
    let expected = mac1::<P>(own, &resp.as_bytes()[..Resp::MAC1_AT]);
    equal(&expected, &resp.mac1)
}

impl<P: Provider> Received<P> {
    /// Reads an INIT. `entropy` must be fresh: it becomes the ephemeral key of the answer.
    ///
    /// # Errors
    /// The message is not for this identity, or not authentic.
    pub fn new(identity: &Identity, init: &Init, entropy: Secret) -> Result<Self, HandshakeError> {
        if !is_addressed_to::<P>(init, identity.public())
            || init.responder != identity.fingerprint().0
        {
            return Err(HandshakeError::Mac);
        }
        let prologue = prologue(init);
        let mut state = builder::<P>(entropy)
            .local_private_key(identity.private().expose())
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(snow::Builder::build_responder)
            .map_err(|_| HandshakeError::Noise)?;
        let mut payload = [0; PAYLOAD];
        state
            .read_message(&init.message, &mut payload)
            .map_err(|_| HandshakeError::Noise)?;
        check_version(&payload)?;
        let peer = state
            .get_remote_static()
            .and_then(|key| key.try_into().ok())
            .map(PublicKey)
            .ok_or(HandshakeError::Noise)?;
        Ok(Self {
            state,
            init_link_id: init.link_id.get(),
            peer,
            offer: Offer {
                suites: u16::from_le_bytes([payload[2], payload[3]]),
                channel_tag: [payload[4], payload[5], payload[6], payload[7]],
                receiver_id: i64::from_le_bytes(eight(&payload[8..16])),
                incarnation: u64::from_le_bytes(eight(&payload[16..])),
            },
            provider: PhantomData,
        })
    }

    /// Returns the public key of the initiator.
    #[must_use]
    pub const fn peer(&self) -> &PublicKey {
        &self.peer
    }

    /// Returns the offer of the initiator.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Answers, and returns the RESP and the keys of the link.
    ///
    /// # Errors
    /// A key of the initiator is of small order.
    pub fn answer(
        mut self,
        psk: &Secret,
        link_id: u64,
        answer: &Answer,
    ) -> Result<(Resp, LinkKeys<P>), HandshakeError> {
        self.state
            .set_psk(2, psk.expose())
            .map_err(|_| HandshakeError::Noise)?;
        let mut resp = Resp {
            header: FrameHeader::new(size_of::<Resp>() as i32, 0, RESP),
            initiator_link_id: self.init_link_id.into(),
            responder_link_id: link_id.into(),
            message: [0; 72],
            mac1: [0; 16],
        };
        let mut payload = [0; PAYLOAD];
        payload[..2].copy_from_slice(&VERSION.to_le_bytes());
        payload[2..4].copy_from_slice(&answer.suite.to_le_bytes());
        payload[8..16].copy_from_slice(&answer.incarnation.to_le_bytes());
        payload[16..].copy_from_slice(&link_id.to_le_bytes());
        self.state
            .write_message(&payload, &mut resp.message)
            .map_err(|_| HandshakeError::Noise)?;
        resp.mac1 = mac1::<P>(&self.peer, &resp.as_bytes()[..Resp::MAC1_AT]);
        let (receive, send) = split(&mut self.state);
        let keys = LinkKeys::new(&send, &receive, link_id, self.init_link_id);
        Ok((resp, keys))
    }
}

impl<P: Provider> fmt::Debug for Received<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Received")
            .field("peer", &self.peer)
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}

/// Returns the bytes in front of the Noise message, which both sides hash.
fn prologue(init: &Init) -> Vec<u8> {
    [PROLOGUE, &init.as_bytes()[..Init::MESSAGE_AT]].concat()
}

fn check_version(payload: &[u8; PAYLOAD]) -> Result<(), HandshakeError> {
    let version = u16::from_le_bytes([payload[0], payload[1]]);
    if version == VERSION {
        Ok(())
    } else {
        Err(HandshakeError::Version(version))
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes.try_into().expect("a range of eight bytes")
}

/// Returns the keys from initiator to responder, and back.
fn split(state: &mut snow::HandshakeState) -> (Secret, Secret) {
    let (mut there, mut back) = state.dangerously_get_raw_split();
    let keys = (Secret::new(there), Secret::new(back));
    there.zeroize();
    back.zeroize();
    keys
}

fn builder<'a, P: Provider>(entropy: Secret) -> snow::Builder<'a> {
    let params = PROTOCOL.parse().expect("the protocol name is valid");
    snow::Builder::with_resolver(params, Box::new(Resolver::<P>::new(entropy)))
}

/// Primitives of a provider for `snow`.
struct Resolver<P> {
    entropy: Secret,
    provider: PhantomData<fn() -> P>,
}

impl<P> Resolver<P> {
    const fn new(entropy: Secret) -> Self {
        Self {
            entropy,
            provider: PhantomData,
        }
    }
}

impl<P: Provider> CryptoResolver for Resolver<P> {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.entropy.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| {
            Box::new(X25519::<P> {
                private: Secret::new([0; 32]),
                public: [0; 32],
                provider: PhantomData,
            }) as Box<dyn Dh>
        })
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| {
            Box::new(Sha256::<P> {
                input: Zeroizing::new(Vec::with_capacity(256)),
                provider: PhantomData,
            }) as Box<dyn Hash>
        })
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly)
            .then(|| Box::new(ChaChaPoly::<P>(None)) as Box<dyn Cipher>)
    }
}

/// Entropy for one ephemeral key.
struct Once(Option<Secret>);

impl Random for Once {
    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), snow::Error> {
        let entropy = self.0.take().ok_or(snow::Error::Rng)?;
        if destination.len() != entropy.expose().len() {
            return Err(snow::Error::Rng);
        }
        destination.copy_from_slice(entropy.expose());
        Ok(())
    }
}

struct X25519<P> {
    private: Secret,
    public: [u8; 32],
    provider: PhantomData<fn() -> P>,
}

impl<P: Provider> Dh for X25519<P> {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.expose_mut().copy_from_slice(private);
        self.public = P::x25519_public(&self.private);
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        random.try_fill_bytes(self.private.expose_mut())?;
        self.public = P::x25519_public(&self.private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        self.private.expose()
    }

    fn dh(&self, public: &[u8], output: &mut [u8]) -> Result<(), snow::Error> {
        let public = public.first_chunk().ok_or(snow::Error::Dh)?;
        let shared = x25519::<P>(&self.private, public).map_err(|_| snow::Error::Dh)?;
        output[..32].copy_from_slice(shared.expose());
        Ok(())
    }
}

struct Sha256<P> {
    /// Bytes since the last reset: the public transcript, because `hmac` is the provider's.
    input: Zeroizing<Vec<u8>>,
    provider: PhantomData<fn() -> P>,
}

impl<P: Provider> Hash for Sha256<P> {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.input.clear();
    }

    fn input(&mut self, data: &[u8]) {
        self.input.extend_from_slice(data);
    }

    fn result(&mut self, output: &mut [u8]) {
        output[..32].copy_from_slice(&P::sha256(&[&self.input]));
        self.input.clear();
    }

    fn hmac(&mut self, key: &[u8], data: &[u8], output: &mut [u8]) {
        // `hkdf` passes buffers of the longest hash; the key is as long as this one's, the rest is zero, which HMAC
        // appends anyway.
        output[..32].copy_from_slice(&P::hmac_sha256(key, &[data]));
    }
}

struct ChaChaPoly<P: Provider>(Option<P::Aead>);

impl<P: Provider> ChaChaPoly<P> {
    fn keyed(&self) -> &P::Aead {
        self.0
            .as_ref()
            .expect("snow sets a key before it encrypts or decrypts")
    }
}

/// Returns the nonce of a Noise message with ChaCha20-Poly1305.
pub(crate) fn noise_nonce(counter: u64) -> [u8; NONCE_LENGTH] {
    let mut nonce = [0; NONCE_LENGTH];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

impl<P: Provider> Cipher for ChaChaPoly<P> {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0 = Some(P::aead(Suite::ChaCha20Poly1305, key));
    }

    fn encrypt(&self, nonce: u64, aad: &[u8], plain: &[u8], output: &mut [u8]) -> usize {
        let length = plain.len() + 16;
        self.keyed()
            .seal(&noise_nonce(nonce), aad, plain, &mut output[..length]);
        length
    }

    fn decrypt(
        &self,
        nonce: u64,
        aad: &[u8],
        sealed: &[u8],
        output: &mut [u8],
    ) -> Result<usize, snow::Error> {
        let length = sealed.len().checked_sub(16).ok_or(snow::Error::Decrypt)?;
        self.keyed()
            .open(&noise_nonce(nonce), aad, sealed, &mut output[..length])
            .map_err(|_| snow::Error::Decrypt)?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
