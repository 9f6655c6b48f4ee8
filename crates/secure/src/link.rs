// SPDX-License-Identifier: Apache-2.0
//! Transport keys of a link: protection of PAIR frames (docs/spec/transport-security.md §2.7).

use std::fmt;

use taran_protocol::frame::FrameHeader;
use zerocopy::IntoBytes;
use zeroize::Zeroizing;

use crate::frame::{PAIR, PAIR_OVERHEAD, PairFrame, SealedHeader};
use crate::handshake::noise_nonce;
use crate::provider::{Aead, Provider, Suite, TAG_LENGTH};
use crate::seal::{Refused, SealError};
use crate::secret::Secret;
use crate::window::ReplayWindow;

/// Messages in each direction after which a link is renewed.
pub const LINK_MESSAGES: u64 = 1 << 20;
/// Messages after which a link refuses to seal: its peer did not renew it.
const MESSAGES_MAX: u64 = 1 << 32;

/// Opened items. They may contain secrets, so the bytes are wiped.
pub type Content = Zeroizing<Vec<u8>>;

/// Both transport keys of a link, and the replay window of what arrives.
pub struct LinkKeys<P: Provider> {
    send: P::Aead,
    receive: P::Aead,
    own_id: u64,
    peer_id: u64,
    counter: u64,
    window: ReplayWindow,
}

impl<P: Provider> LinkKeys<P> {
    pub(crate) fn new(send: &Secret, receive: &Secret, own_id: u64, peer_id: u64) -> Self {
        let suite = Suite::ChaCha20Poly1305;
        Self {
            send: P::aead(suite, send.expose()),
            receive: P::aead(suite, receive.expose()),
            own_id,
            peer_id,
            counter: 0,
            window: ReplayWindow::new(0),
        }
    }

    /// Returns the link id of this end, by which frames to it are addressed.
    #[must_use]
    pub const fn own_id(&self) -> u64 {
        self.own_id
    }

    /// Returns the link id of the other end.
    #[must_use]
    pub const fn peer_id(&self) -> u64 {
        self.peer_id
    }

    /// Returns true if the link has carried as many messages as it may, and is to be renewed.
    #[must_use]
    pub const fn wants_renewal(&self) -> bool {
        self.counter >= LINK_MESSAGES || self.window.end() >= LINK_MESSAGES
    }

    /// Seals items into a PAIR frame, without padding.
    ///
    /// # Errors
    /// The link was not renewed in time.
    pub fn seal(&mut self, items: &[u8]) -> Result<Vec<u8>, SealError> {
        if self.counter >= MESSAGES_MAX {
            return Err(SealError::Exhausted);
        }
        let counter = self.counter;
        self.counter += 1;
        let mut frame = vec![0; items.len() + PAIR_OVERHEAD];
        let header = SealedHeader {
            header: FrameHeader::new(frame.len() as i32, 0, PAIR),
            key_id: self.peer_id.to_le_bytes(),
            counter: counter.into(),
        };
        let (head, sealed) = frame.split_at_mut(size_of::<SealedHeader>());
        head.copy_from_slice(header.as_bytes());
        self.send.seal(&noise_nonce(counter), head, items, sealed);
        Ok(frame)
    }

    /// Opens a frame; returns its items, and whether it is the newest so far.
    ///
    /// # Errors
    /// The frame is for another link, not authentic, or not new.
    pub fn open(&mut self, frame: &PairFrame<'_>) -> Result<(Content, bool), Refused> {
        if frame.link_id() != self.own_id {
            return Err(Refused::Malformed);
        }
        let counter = frame.counter();
        if counter >= MESSAGES_MAX {
            return Err(Refused::Counter);
        }
        self.window.check(counter)?;
        let (aad, sealed) = frame.parts();
        let mut content = Zeroizing::new(vec![0; sealed.len() - TAG_LENGTH]);
        self.receive
            .open(&noise_nonce(counter), aad, sealed, &mut content)
            .map_err(|_| Refused::Unauthentic)?;
        let is_newest = counter >= self.window.end();
        self.window.accept(counter)?;
        Ok((content, is_newest))
    }
}

impl<P: Provider> fmt::Debug for LinkKeys<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LinkKeys")
            .field("own_id", &self.own_id)
            .field("peer_id", &self.peer_id)
            .field("counter", &self.counter)
            .field("keys", &"<secret>")
            .finish_non_exhaustive()
    }
}
