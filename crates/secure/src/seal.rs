// SPDX-License-Identifier: Apache-2.0
//! Protection of datagrams: sealing and opening under one key (docs/spec/transport-security.md §2.2 to §2.4).
//!
//! Contract: [`SealKey::seal`] turns a plain datagram into a sealed one and takes the next counter, whatever becomes of the
//! result; no counter is used twice. [`OpenKey::open`] gives a plain datagram only if it is authentic and new. Neither
//! allocates. The caller checks with [`crate::bounds`] that the plain frames are those that the key is for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taran_protocol::frame::{FrameHeader, FrameType, Setup};
use zerocopy::{FromBytes, IntoBytes};
use zeroize::Zeroizing;

use crate::VERSION;
use crate::derive::{Fingerprint, KeyId, KeyMaterial};
use crate::frame::{
    ANNOUNCE, Announce, BACK, PLAIN_MAX, QUESTION_LENGTH, SEALED, SEALED_OVERHEAD, SealedHeader,
};
use crate::limits::KeyLimits;
use crate::provider::{Aead, NONCE_LENGTH, Provider, Suite, TAG_LENGTH};
use crate::window::{ReplayWindow, Replayed};

const HEADER: usize = size_of::<SealedHeader>();

/// Direction of a key: which frame type it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// SEALED and ANNOUNCE, from the sender.
    Forward,
    /// BACK, from a receiver.
    Back,
}

impl Direction {
    const fn frame_type(self) -> FrameType {
        match self {
            Self::Forward => SEALED,
            Self::Back => BACK,
        }
    }
}

/// Reason why a datagram is not sealed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key has reached a hard limit; only another epoch helps.
    #[error("the key has sealed as much as its suite allows")]
    Exhausted,
    /// The datagram is longer than a sealed one can carry.
    #[error("a datagram of {length} bytes; at most {PLAIN_MAX} can be sealed")]
    TooLong {
        /// Length of the plain datagram.
        length: usize,
    },
    /// The output is too short.
    #[error("{needed} bytes of output are needed, {length} are there")]
    Output {
        /// Length of the output.
        length: usize,
        /// Length needed.
        needed: usize,
    },
    /// Only a key of the forward direction announces.
    #[error("a back key seals no SETUP")]
    Direction,
}

taran_core::debug_is_display!(SealError);

/// Reason why a datagram is not opened. It is as if lost.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The datagram is malformed, or of another type or key.
    #[error("the datagram is not for this key")]
    Malformed,
    /// The counter was seen, or is too old.
    #[error(transparent)]
    Replayed(#[from] Replayed),
    /// The counter is beyond those that the suite allows.
    #[error("the counter is beyond the limit of the suite")]
    Counter,
    /// The tag is wrong.
    #[error("the authentication tag is wrong")]
    Unauthentic,
    /// Too many datagrams failed; the key opens nothing more.
    #[error("the key is retired after too many datagrams that failed to open")]
    Retired,
    /// The output is too short.
    #[error("{needed} bytes of output are needed, {length} are there")]
    Output {
        /// Length of the output.
        length: usize,
        /// Length needed.
        needed: usize,
    },
}

taran_core::debug_is_display!(Refused);

/// Sealing half of a key. One agent owns it; it is never cloned, so that no counter comes twice.
pub struct SealKey<P: Provider> {
    aead: P::Aead,
    iv: Zeroizing<[u8; NONCE_LENGTH]>,
    id: KeyId,
    suite: Suite,
    direction: Direction,
    counter: u64,
    blocks: u64,
    limits: KeyLimits,
    /// Next counter, for the thread that grants the key.
    progress: Arc<AtomicU64>,
    /// Nanoseconds of the keeper's clock at which the hard age is reached.
    expires: u64,
}

impl<P: Provider> SealKey<P> {
    /// Returns a key that has sealed nothing. The material must never be used for another sealing half.
    #[must_use]
    pub fn new(material: &KeyMaterial, direction: Direction) -> Self {
        Self::with_limits(material, direction, KeyLimits::of(material.suite()))
    }

    /// Returns a key with limits of its own.
    #[must_use]
    pub fn with_limits(material: &KeyMaterial, direction: Direction, limits: KeyLimits) -> Self {
        Self {
            aead: P::aead(material.suite(), material.key()),
            iv: material.iv.clone(),
            id: material.id(),
            suite: material.suite(),
            direction,
            counter: 0,
            blocks: 0,
            limits,
            progress: Arc::default(),
            expires: u64::MAX,
        }
    }

    /// Sets the time at which the key reaches its hard age, in nanoseconds of the keeper's clock.
    #[must_use]
    pub const fn expiring(mut self, at: u64) -> Self {
        self.expires = at;
        self
    }

    /// Returns true if the key has reached its hard age. The caller, which has a clock, seals nothing with it from then on,
    /// whether or not another key was handed to it.
    #[must_use]
    #[inline]
    pub const fn is_expired(&self, now: u64) -> bool {
        now >= self.expires
    }

    /// Returns the identifier.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the next counter.
    #[must_use]
    pub const fn next_counter(&self) -> u64 {
        self.counter
    }

    /// Publishes the next counter into `progress` from now on, before each datagram is returned. Another thread reads it to
    /// grant the key from there.
    pub fn publish_progress(&mut self, progress: Arc<AtomicU64>) {
        progress.store(self.counter, Ordering::Relaxed);
        self.progress = progress;
    }

    /// Returns true if another epoch is due.
    #[must_use]
    pub const fn wants_rotation(&self) -> bool {
        self.blocks >= self.limits.soft_blocks || self.counter >= self.limits.soft_datagrams
    }

    /// Returns true if a train of `datagrams` datagrams with `bytes` plain bytes in all can be sealed.
    #[must_use]
    pub const fn has_room(&self, datagrams: u64, bytes: usize) -> bool {
        // Each datagram has its header, its tag and at most one block that is not full.
        let own = HEADER.div_ceil(16) as u64 + 2;
        let blocks = (bytes / 16) as u64 + datagrams.saturating_mul(own);
        self.counter.saturating_add(datagrams) <= self.limits.hard_datagrams
            && self.blocks.saturating_add(blocks) <= self.limits.hard_blocks
    }

    /// Seals a plain datagram into the start of `out`, and returns the length: [`SEALED_OVERHEAD`] more.
    ///
    /// # Errors
    /// The key is exhausted, or a length is wrong; nothing is written and no counter is taken.
    #[inline]
    pub fn seal(&mut self, plain: &[u8], out: &mut [u8]) -> Result<usize, SealError> {
        if plain.len() > PLAIN_MAX {
            return Err(SealError::TooLong {
                length: plain.len(),
            });
        }
        let needed = plain.len() + SEALED_OVERHEAD;
        let length = out.len();
        let out = out
            .get_mut(..needed)
            .ok_or(SealError::Output { length, needed })?;
        let counter = self.take(HEADER, plain.len())?;
        let header = SealedHeader {
            header: FrameHeader::new(needed as i32, 0, self.direction.frame_type()),
            key_id: self.id.0,
            counter: counter.into(),
        };
        let (head, sealed) = out.split_at_mut(HEADER);
        head.copy_from_slice(header.as_bytes());
        self.aead
            .seal(&nonce(&self.iv, counter), head, plain, sealed);
        Ok(needed)
    }

    /// Seals a SETUP frame into an announcement.
    ///
    /// # Errors
    /// The key is exhausted, or is a back key.
    pub fn announce(
        &mut self,
        fingerprint: Fingerprint,
        incarnation: u64,
        epoch: u32,
        setup: &Setup,
    ) -> Result<Announce, SealError> {
        if self.direction != Direction::Forward {
            return Err(SealError::Direction);
        }
        let counter = self.take(Announce::AAD_LENGTH, size_of::<Setup>())?;
        let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
        let mut announce = Announce::hint(0, fingerprint, incarnation, session_id, stream_id);
        announce.header = FrameHeader::new(QUESTION_LENGTH as i32, Announce::HAS_SETUP, ANNOUNCE);
        announce.key_id = self.id.0;
        announce.counter = counter.into();
        announce.epoch = epoch.into();
        announce.suite = self.suite.id().into();
        let (aad, sealed) = announce.as_mut_bytes().split_at_mut(Announce::AAD_LENGTH);
        self.aead
            .seal(&nonce(&self.iv, counter), aad, setup.as_bytes(), sealed);
        Ok(announce)
    }

    /// Takes the next counter for a datagram.
    #[inline]
    fn take(&mut self, aad: usize, plain: usize) -> Result<u64, SealError> {
        let blocks = (aad.div_ceil(16) + plain.div_ceil(16) + 1) as u64;
        let total = self.blocks.saturating_add(blocks);
        if self.counter >= self.limits.hard_datagrams || total > self.limits.hard_blocks {
            return Err(SealError::Exhausted);
        }
        let counter = self.counter;
        self.counter += 1;
        // A grant that reads less is only an earlier one: its receiver opens what was sealed since.
        self.progress.store(self.counter, Ordering::Relaxed);
        self.blocks = total;
        Ok(counter)
    }
}

impl<P: Provider> fmt::Debug for SealKey<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SealKey")
            .field("id", &self.id)
            .field("direction", &self.direction)
            .field("counter", &self.counter)
            .field("key", &"<secret>")
            .finish_non_exhaustive()
    }
}

/// Opening half of a key behind one transport, with its replay window.
pub struct OpenKey<P: Provider> {
    aead: P::Aead,
    iv: Zeroizing<[u8; NONCE_LENGTH]>,
    id: KeyId,
    direction: Direction,
    window: ReplayWindow,
    failures: u64,
    limits: KeyLimits,
}

impl<P: Provider> OpenKey<P> {
    /// Returns a key that opens nothing with a counter below `first_counter`.
    #[must_use]
    pub fn new(material: &KeyMaterial, direction: Direction, first_counter: u64) -> Self {
        let limits = KeyLimits::of(material.suite());
        Self::with_limits(material, direction, first_counter, limits)
    }

    /// Returns a key with limits of its own.
    #[must_use]
    pub fn with_limits(
        material: &KeyMaterial,
        direction: Direction,
        first_counter: u64,
        limits: KeyLimits,
    ) -> Self {
        Self {
            aead: P::aead(material.suite(), material.key()),
            iv: material.iv.clone(),
            id: material.id(),
            direction,
            window: ReplayWindow::new(first_counter),
            failures: 0,
            limits,
        }
    }

    /// Returns the identifier.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the number of datagrams with a wrong tag.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns true if another epoch is to be asked for.
    #[must_use]
    pub const fn wants_rotation(&self) -> bool {
        self.failures >= self.limits.soft_failures
    }

    /// Returns true if a datagram with this counter would be the newest of this key.
    #[must_use]
    pub const fn is_newest(&self, counter: u64) -> bool {
        counter >= self.window.end()
    }

    /// Opens a sealed datagram into the start of `out`, and returns the length of the plain one. The order is: header,
    /// window, tag, and only then the mark in the window.
    ///
    /// # Errors
    /// The datagram is not authentic, not new, or not for this key. `out` holds no plain byte then.
    #[inline]
    pub fn open(&mut self, datagram: &[u8], out: &mut [u8]) -> Result<usize, Refused> {
        let (header, _) =
            SealedHeader::ref_from_prefix(datagram).map_err(|_| Refused::Malformed)?;
        let expected = FrameHeader::new(datagram.len() as i32, 0, self.direction.frame_type());
        if header.header != expected
            || datagram.len() < SEALED_OVERHEAD
            || header.key_id != self.id.0
        {
            return Err(Refused::Malformed);
        }
        let needed = datagram.len() - SEALED_OVERHEAD;
        let length = out.len();
        let out = out
            .get_mut(..needed)
            .ok_or(Refused::Output { length, needed })?;
        let (aad, sealed) = datagram.split_at(HEADER);
        self.verify(header.counter.get(), aad, sealed, out)?;
        Ok(needed)
    }

    /// Opens the SETUP of an announcement.
    ///
    /// # Errors
    /// As [`Self::open`]; also if the announcement has no sealed SETUP.
    pub fn open_announce(&mut self, announce: &Announce) -> Result<Setup, Refused> {
        if self.direction != Direction::Forward
            || !announce.has_setup()
            || announce.key_id != self.id.0
        {
            return Err(Refused::Malformed);
        }
        let mut setup = [0; size_of::<Setup>()];
        let (aad, sealed) = announce.as_bytes().split_at(Announce::AAD_LENGTH);
        self.verify(announce.counter.get(), aad, sealed, &mut setup)?;
        Ok(Setup::read_from_bytes(&setup).expect("the length is that of the type"))
    }

    #[inline]
    fn verify(
        &mut self,
        counter: u64,
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        debug_assert_eq!(sealed.len(), out.len() + TAG_LENGTH);
        if counter >= self.limits.hard_datagrams {
            return Err(Refused::Counter);
        }
        if self.failures >= self.limits.hard_failures {
            return Err(Refused::Retired);
        }
        self.window.check(counter)?;
        if self
            .aead
            .open(&nonce(&self.iv, counter), aad, sealed, out)
            .is_err()
        {
            self.failures += 1;
            return Err(Refused::Unauthentic);
        }
        self.window.accept(counter)?;
        Ok(())
    }
}

impl<P: Provider> fmt::Debug for OpenKey<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenKey")
            .field("id", &self.id)
            .field("direction", &self.direction)
            .field("failures", &self.failures)
            .field("key", &"<secret>")
            .finish_non_exhaustive()
    }
}

/// Returns the nonce of a counter.
#[inline]
fn nonce(iv: &[u8; NONCE_LENGTH], counter: u64) -> [u8; NONCE_LENGTH] {
    let mut nonce = *iv;
    for (byte, counter) in nonce[4..].iter_mut().zip(counter.to_be_bytes()) {
        *byte ^= counter;
    }
    nonce
}

/// Protocol version that this module seals.
const _: () = assert!(VERSION == 1);
