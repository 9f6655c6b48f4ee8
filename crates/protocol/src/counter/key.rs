// SPDX-License-Identifier: Apache-2.0
//! Encoding and validated decoding of counter keys (docs/spec/shared-memory.md §5.8 to 5.10).

use std::borrow::Cow;
use std::ops::Deref;

/// Length of the key field in a counter's metadata record.
pub const KEY_LENGTH: usize = 112;

const STREAM_CHANNEL_OFFSET: usize = 20;
const CHANNEL_OFFSET: usize = 4;
const SOCKET_ADDRESS_OFFSET: usize = 8;

/// Encoded key for the allocation of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; KEY_LENGTH],
    length: usize,
}

impl Key {
    fn new() -> Self {
        Key {
            bytes: [0; KEY_LENGTH],
            length: 0,
        }
    }

    /// Appends as many bytes as fit and returns their number.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(KEY_LENGTH - self.length);
        self.bytes[self.length..][..taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        taken
    }

    /// Appends an i32 length and as much of the text as fits. Non-ASCII characters become `?`.
    fn push_text(&mut self, text: &str) {
        let length_offset = self.length;
        self.push(&[0; 4]);
        let ascii: Vec<u8> = ascii(text).take(KEY_LENGTH).collect();
        let taken = self.push(&ascii);
        // The length is at most 112.
        self.bytes[length_offset..][..4].copy_from_slice(&(taken as i32).to_le_bytes());
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Key of a stream counter (types 1, 2, 3, 4, 5, 9, 10, 12, 13, 17, 19, 20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamKey<'a> {
    /// Registration id of the publication, image or subscription.
    pub registration_id: i64,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel, truncated to 92 bytes.
    pub channel: Cow<'a, str>,
}

impl<'a> StreamKey<'a> {
    /// Returns the encoded key, with the channel truncated to fit.
    #[must_use]
    pub fn encode(&self) -> Key {
        let mut key = Key::new();
        key.push(&self.registration_id.to_le_bytes());
        key.push(&self.session_id.to_le_bytes());
        key.push(&self.stream_id.to_le_bytes());
        key.push_text(&self.channel);
        key
    }

    /// Decodes a key from the (up to) 112 bytes of a metadata record. Returns `None` if a length is invalid.
    #[must_use]
    pub fn decode(key: &'a [u8]) -> Option<Self> {
        Some(StreamKey {
            registration_id: read_i64(key, 0)?,
            session_id: read_i32(key, 8)?,
            stream_id: read_i32(key, 12)?,
            channel: read_text(key, 16, STREAM_CHANNEL_OFFSET)?,
        })
    }
}

/// Key of a channel counter (types 6, 7, 18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelKey<'a> {
    /// Channel, truncated to 108 bytes.
    pub channel: Cow<'a, str>,
}

impl<'a> ChannelKey<'a> {
    /// Returns the encoded key, with the channel truncated to fit.
    #[must_use]
    pub fn encode(&self) -> Key {
        let mut key = Key::new();
        key.push_text(&self.channel);
        key
    }

    /// Decodes a key from the (up to) 112 bytes of a metadata record. Returns `None` if a length is invalid.
    #[must_use]
    pub fn decode(key: &'a [u8]) -> Option<Self> {
        Some(ChannelKey {
            channel: read_text(key, 0, CHANNEL_OFFSET)?,
        })
    }
}

/// Key of a local socket address counter (type 14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketKey<'a> {
    /// Id of the channel status counter.
    pub channel_status_id: i32,
    /// Address, `ip:port` or `[ip6]:port`.
    pub address: Cow<'a, str>,
}

impl<'a> SocketKey<'a> {
    /// Returns the encoded key.
    #[must_use]
    pub fn encode(&self) -> Key {
        let mut key = Key::new();
        key.push(&self.channel_status_id.to_le_bytes());
        key.push_text(&self.address);
        key
    }

    /// Decodes a key from the (up to) 112 bytes of a metadata record. Returns `None` if a length is invalid.
    #[must_use]
    pub fn decode(key: &'a [u8]) -> Option<Self> {
        Some(SocketKey {
            channel_status_id: read_i32(key, 0)?,
            address: read_text(key, 4, SOCKET_ADDRESS_OFFSET)?,
        })
    }
}

/// Key of a client heartbeat counter (type 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatKey {
    /// Client id.
    pub client_id: i64,
}

impl HeartbeatKey {
    /// Returns the encoded key.
    #[must_use]
    pub fn encode(self) -> [u8; 8] {
        self.client_id.to_le_bytes()
    }

    /// Decodes a key from the bytes of a metadata record. Returns `None` if they are too short.
    #[must_use]
    pub fn decode(key: &[u8]) -> Option<Self> {
        Some(HeartbeatKey {
            client_id: read_i64(key, 0)?,
        })
    }
}

/// Returns the characters as ASCII bytes, with `?` for non-ASCII ones, as Java clients encode them.
pub(super) fn ascii(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.chars()
        .map(|c| if c.is_ascii() { c as u8 } else { b'?' })
}

fn read_i32(key: &[u8], offset: usize) -> Option<i32> {
    let bytes = key.get(offset..)?.first_chunk::<4>()?;
    Some(i32::from_le_bytes(*bytes))
}

fn read_i64(key: &[u8], offset: usize) -> Option<i64> {
    let bytes = key.get(offset..)?.first_chunk::<8>()?;
    Some(i64::from_le_bytes(*bytes))
}

/// Reads a text whose length is stored as an i32. The bytes after it are ignored.
fn read_text(key: &[u8], length_offset: usize, offset: usize) -> Option<Cow<'_, str>> {
    let length = usize::try_from(read_i32(key, length_offset)?).ok()?;
    let end = offset.checked_add(length)?;
    let key = &key[..key.len().min(KEY_LENGTH)];
    let bytes = key.get(offset..end)?;
    Some(String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stream_key_has_specified_layout() {
        let key = StreamKey {
            registration_id: 0x0102,
            session_id: -2,
            stream_id: 1001,
            channel: "aeron:ipc".into(),
        }
        .encode();
        assert_eq!(key.len(), 29);
        assert_eq!(key[..8], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key[8..12], (-2i32).to_le_bytes());
        assert_eq!(key[12..16], 1001i32.to_le_bytes());
        assert_eq!(key[16..20], 9i32.to_le_bytes());
        assert_eq!(&key[20..], b"aeron:ipc");
    }

    #[test]
    fn encode_long_channel_is_truncated() {
        let long = "x".repeat(500);
        let stream = StreamKey {
            registration_id: 1,
            session_id: 2,
            stream_id: 3,
            channel: long.as_str().into(),
        }
        .encode();
        assert_eq!(StreamKey::decode(&stream).unwrap().channel.len(), 92);
        let channel = ChannelKey {
            channel: long.as_str().into(),
        }
        .encode();
        assert_eq!(ChannelKey::decode(&channel).unwrap().channel.len(), 108);
        let socket = SocketKey {
            channel_status_id: 1,
            address: long.as_str().into(),
        }
        .encode();
        assert_eq!(SocketKey::decode(&socket).unwrap().address.len(), 104);
    }

    #[test]
    fn encode_non_ascii_becomes_question_mark() {
        let key = ChannelKey {
            channel: "aeron:ipc?alias=é".into(),
        }
        .encode();
        assert_eq!(
            ChannelKey::decode(&key).unwrap().channel,
            "aeron:ipc?alias=?"
        );
    }

    #[test]
    fn decode_invalid_length_is_none() {
        for length in [-1, 109, i32::MAX, i32::MIN] {
            let mut key = [b'a'; KEY_LENGTH];
            key[..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(ChannelKey::decode(&key), None, "{length}");
        }
        assert_eq!(StreamKey::decode(&[0; 19]), None);
        assert_eq!(SocketKey::decode(&[]), None);
        assert_eq!(HeartbeatKey::decode(&[0; 7]), None);
    }

    proptest! {
        #[test]
        fn stream_key_round_trips(registration_id: i64, session_id: i32, stream_id: i32, channel in "[ -~]{0,92}") {
            let key = StreamKey { registration_id, session_id, stream_id, channel: channel.into() };
            let mut record = [0xff; KEY_LENGTH];
            let encoded = key.encode();
            record[..encoded.len()].copy_from_slice(&encoded);
            prop_assert_eq!(StreamKey::decode(&record), Some(key.clone()));
        }

        #[test]
        fn decode_random_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (
                StreamKey::decode(&bytes),
                ChannelKey::decode(&bytes),
                SocketKey::decode(&bytes),
                HeartbeatKey::decode(&bytes),
            );
        }
    }
}
