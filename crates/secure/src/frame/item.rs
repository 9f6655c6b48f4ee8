// SPDX-License-Identifier: Apache-2.0
//! Items of a PAIR frame (docs/spec/transport-security.md §2.7): type, length, body.

use zeroize::Zeroize;

use crate::derive::{Fingerprint, KeyId};
use crate::secret::Secret;

/// Flag of a grant: the sender seals with this key now.
pub const GRANT_CURRENT: u16 = 1;
/// Flag of a grant: the sender is about to change to this key.
pub const GRANT_NEXT: u16 = 2;
/// Longest text of a refusal in bytes.
pub const REFUSAL_TEXT_MAX: usize = 128;

/// Key that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedKey {
    /// Present key of a stream.
    Stream {
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Present key of the stream that had this key id.
    Id(KeyId),
}

/// Reason code of a refusal or of the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u16);

impl Code {
    /// The end closed its endpoint, or replaces the link.
    pub const CLOSED: Self = Self(0);
    /// The trust store does not allow it.
    pub const NOT_ALLOWED: Self = Self(1);
    /// There is no such stream or key.
    pub const UNKNOWN_STREAM: Self = Self(2);
    /// The suite is not among those offered.
    pub const SUITE: Self = Self(3);
    /// The receiver id belongs to another peer.
    pub const RECEIVER_ID: Self = Self(4);
    /// A limit is reached.
    pub const LIMIT: Self = Self(5);
    /// The stream belongs to another peer.
    pub const OWNED: Self = Self(6);
}

/// Key of a stream, granted to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Request that is answered; 0 if there was none.
    pub request: u32,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Epoch.
    pub epoch: u32,
    /// Id of the suite.
    pub suite: u16,
    /// [`GRANT_CURRENT`] or [`GRANT_NEXT`].
    pub flags: u16,
    /// Counter before which nothing is opened.
    pub first_counter: u64,
    /// Seconds after which nothing more is opened.
    pub life_seconds: u32,
    /// Identity that drew the secret.
    pub identity: Fingerprint,
    /// Secret of the epoch.
    pub secret: Secret,
}

/// Item of a PAIR frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// Receiver: asks for a key.
    Request {
        /// Number of the request, not 0.
        request: u32,
        /// Key asked for.
        key: RequestedKey,
    },
    /// Sender: hands out a key.
    Grant(Grant),
    /// Sender: refuses a request.
    Refused {
        /// Request that is refused.
        request: u32,
        /// Reason.
        code: Code,
        /// Reason as text, untrusted.
        text: &'a [u8],
    },
    /// Receiver: the key of its feedback.
    BackKey {
        /// Epoch.
        epoch: u32,
        /// Id of the suite.
        suite: u16,
        /// Secret of the epoch.
        secret: Secret,
    },
    /// Both: a key is installed.
    Got(KeyId),
    /// Owner: nothing more is to be opened with a key.
    Retire(KeyId),
    /// Sender: asks for a new handshake.
    Renew,
    /// Both: the link is over.
    Bye(Code),
    /// Both: asks for proof of an address.
    Path([u8; 8]),
    /// Both: proves an address.
    PathAnswer([u8; 8]),
    /// Receiver: asks for another epoch.
    Wish(KeyId),
}

/// Reason why the content of a PAIR frame is refused as a whole.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidItem {
    /// An item passes the end of the frame.
    #[error("an item passes the end of its frame")]
    Truncated,
    /// An unknown type.
    #[error("unknown item type {0}")]
    Type(u16),
    /// A length that the type does not have.
    #[error("item type {kind} of {length} bytes")]
    Length {
        /// Type of the item.
        kind: u16,
        /// Length of its body.
        length: usize,
    },
    /// A field out of its range, or a reserved one that is not zero.
    #[error("item type {0} has a value out of range")]
    Value(u16),
}

taran_core::debug_is_display!(InvalidItem);

mod kind {
    pub(super) const REQUEST: u16 = 1;
    pub(super) const GRANT: u16 = 2;
    pub(super) const REFUSED: u16 = 3;
    pub(super) const BACK_KEY: u16 = 4;
    pub(super) const GOT: u16 = 5;
    pub(super) const RETIRE: u16 = 6;
    pub(super) const RENEW: u16 = 7;
    pub(super) const BYE: u16 = 8;
    pub(super) const PATH: u16 = 9;
    pub(super) const PATH_ANSWER: u16 = 10;
    pub(super) const WISH: u16 = 11;
}

/// Flag in a request: the key is named by its id.
const BY_KEY_ID: u32 = 1;

/// Valid content of a PAIR frame; iterates over the items.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// Parses the content of a frame: all of it is valid, or nothing is taken.
    ///
    /// # Errors
    /// An item is of unknown type, of wrong length, or has a value out of range.
    pub fn parse(content: &'a [u8]) -> Result<Self, InvalidItem> {
        let mut rest = content;
        while !rest.is_empty() {
            rest = split(rest)?.1;
        }
        Ok(Self { rest: content })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (item, rest) = split(self.rest).ok()?;
        self.rest = rest;
        Some(item)
    }
}

fn split(content: &[u8]) -> Result<(Item<'_>, &[u8]), InvalidItem> {
    let (head, rest) = content
        .split_first_chunk::<4>()
        .ok_or(InvalidItem::Truncated)?;
    let kind = u16::from_le_bytes([head[0], head[1]]);
    let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let (body, rest) = rest
        .split_at_checked(length)
        .ok_or(InvalidItem::Truncated)?;
    Ok((parse(kind, body)?, rest))
}

fn parse(kind: u16, body: &[u8]) -> Result<Item<'_>, InvalidItem> {
    let mut fields = Fields { kind, body, at: 0 };
    let invalid = InvalidItem::Value(kind);
    let item = match kind {
        kind::REQUEST => {
            fields.expect(16)?;
            let request = u32::from_le_bytes(fields.take());
            let flags = u32::from_le_bytes(fields.take());
            let key = match flags {
                0 => RequestedKey::Stream {
                    session_id: i32::from_le_bytes(fields.take()),
                    stream_id: i32::from_le_bytes(fields.take()),
                },
                BY_KEY_ID => RequestedKey::Id(KeyId(fields.take())),
                _ => return Err(invalid),
            };
            if request == 0 {
                return Err(invalid);
            }
            Item::Request { request, key }
        }
        kind::GRANT => {
            fields.expect(80)?;
            let grant = Grant {
                request: u32::from_le_bytes(fields.take()),
                session_id: i32::from_le_bytes(fields.take()),
                stream_id: i32::from_le_bytes(fields.take()),
                epoch: u32::from_le_bytes(fields.take()),
                suite: u16::from_le_bytes(fields.take()),
                flags: u16::from_le_bytes(fields.take()),
                first_counter: u64::from_le_bytes(fields.take()),
                life_seconds: u32::from_le_bytes(fields.take()),
                identity: Fingerprint(fields.take()),
                secret: Secret::new(fields.take()),
            };
            if !matches!(grant.flags, GRANT_CURRENT | GRANT_NEXT) {
                return Err(invalid);
            }
            Item::Grant(grant)
        }
        kind::REFUSED => {
            if !(6..=6 + REFUSAL_TEXT_MAX).contains(&body.len()) {
                return Err(fields.length());
            }
            Item::Refused {
                request: u32::from_le_bytes(fields.take()),
                code: Code(u16::from_le_bytes(fields.take())),
                text: &body[6..],
            }
        }
        kind::BACK_KEY => {
            fields.expect(40)?;
            let epoch = u32::from_le_bytes(fields.take());
            let suite = u16::from_le_bytes(fields.take());
            if fields.take() != [0; 2] {
                return Err(invalid);
            }
            Item::BackKey {
                epoch,
                suite,
                secret: Secret::new(fields.take()),
            }
        }
        kind::RENEW => {
            fields.expect(0)?;
            Item::Renew
        }
        kind::BYE => {
            fields.expect(2)?;
            Item::Bye(Code(u16::from_le_bytes(fields.take())))
        }
        kind::GOT | kind::RETIRE | kind::PATH | kind::PATH_ANSWER | kind::WISH => {
            fields.expect(8)?;
            let bytes = fields.take();
            match kind {
                kind::GOT => Item::Got(KeyId(bytes)),
                kind::RETIRE => Item::Retire(KeyId(bytes)),
                kind::PATH => Item::Path(bytes),
                kind::PATH_ANSWER => Item::PathAnswer(bytes),
                _ => Item::Wish(KeyId(bytes)),
            }
        }
        other => return Err(InvalidItem::Type(other)),
    };
    Ok(item)
}

/// Cursor over a body whose length was compared.
struct Fields<'a> {
    kind: u16,
    body: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn length(&self) -> InvalidItem {
        InvalidItem::Length {
            kind: self.kind,
            length: self.body.len(),
        }
    }

    fn expect(&self, length: usize) -> Result<(), InvalidItem> {
        if self.body.len() == length {
            Ok(())
        } else {
            Err(self.length())
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = self.body[self.at..]
            .first_chunk()
            .expect("the length of the body was compared");
        self.at += N;
        *field
    }
}

/// Writer of items. Its bytes may contain secrets; they are wiped when it is dropped.
#[derive(Default)]
pub struct ItemWriter {
    bytes: Vec<u8>,
}

/// Most bytes of items in one frame, so that a writer never moves its bytes and leaves copies behind.
const CAPACITY: usize = 1_024;

impl ItemWriter {
    /// Returns an empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(CAPACITY),
        }
    }

    /// Returns the bytes written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns true if nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all items.
    pub fn clear(&mut self) {
        self.bytes.zeroize();
    }

    /// Writes an item. Returns false, and writes nothing, if there is no room for it.
    pub fn push(&mut self, item: &Item<'_>) -> bool {
        // The longest item is a refusal: 4 + 6 + 128 bytes.
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(CAPACITY);
        }
        if self.bytes.len() + 4 + 6 + REFUSAL_TEXT_MAX > CAPACITY {
            return false;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let kind = self.body(item);
        let length = (self.bytes.len() - start - 4) as u16;
        self.bytes[start..start + 2].copy_from_slice(&kind.to_le_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
        true
    }

    fn body(&mut self, item: &Item<'_>) -> u16 {
        let bytes = &mut self.bytes;
        match item {
            Item::Request { request, key } => {
                bytes.extend_from_slice(&request.to_le_bytes());
                match key {
                    RequestedKey::Stream {
                        session_id,
                        stream_id,
                    } => {
                        bytes.extend_from_slice(&0_u32.to_le_bytes());
                        bytes.extend_from_slice(&session_id.to_le_bytes());
                        bytes.extend_from_slice(&stream_id.to_le_bytes());
                    }
                    RequestedKey::Id(id) => {
                        bytes.extend_from_slice(&BY_KEY_ID.to_le_bytes());
                        bytes.extend_from_slice(&id.0);
                    }
                }
                kind::REQUEST
            }
            Item::Grant(grant) => {
                bytes.extend_from_slice(&grant.request.to_le_bytes());
                bytes.extend_from_slice(&grant.session_id.to_le_bytes());
                bytes.extend_from_slice(&grant.stream_id.to_le_bytes());
                bytes.extend_from_slice(&grant.epoch.to_le_bytes());
                bytes.extend_from_slice(&grant.suite.to_le_bytes());
                bytes.extend_from_slice(&grant.flags.to_le_bytes());
                bytes.extend_from_slice(&grant.first_counter.to_le_bytes());
                bytes.extend_from_slice(&grant.life_seconds.to_le_bytes());
                bytes.extend_from_slice(&grant.identity.0);
                bytes.extend_from_slice(grant.secret.expose());
                kind::GRANT
            }
            Item::Refused {
                request,
                code,
                text,
            } => {
                bytes.extend_from_slice(&request.to_le_bytes());
                bytes.extend_from_slice(&code.0.to_le_bytes());
                bytes.extend_from_slice(&text[..text.len().min(REFUSAL_TEXT_MAX)]);
                kind::REFUSED
            }
            Item::BackKey {
                epoch,
                suite,
                secret,
            } => {
                bytes.extend_from_slice(&epoch.to_le_bytes());
                bytes.extend_from_slice(&suite.to_le_bytes());
                bytes.extend_from_slice(&[0; 2]);
                bytes.extend_from_slice(secret.expose());
                kind::BACK_KEY
            }
            Item::Got(id) => {
                bytes.extend_from_slice(&id.0);
                kind::GOT
            }
            Item::Retire(id) => {
                bytes.extend_from_slice(&id.0);
                kind::RETIRE
            }
            Item::Renew => kind::RENEW,
            Item::Bye(code) => {
                bytes.extend_from_slice(&code.0.to_le_bytes());
                kind::BYE
            }
            Item::Path(random) => {
                bytes.extend_from_slice(random);
                kind::PATH
            }
            Item::PathAnswer(random) => {
                bytes.extend_from_slice(random);
                kind::PATH_ANSWER
            }
            Item::Wish(id) => {
                bytes.extend_from_slice(&id.0);
                kind::WISH
            }
        }
    }
}

impl Drop for ItemWriter {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl std::fmt::Debug for ItemWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ItemWriter({} bytes)", self.bytes.len())
    }
}
