// SPDX-License-Identifier: Apache-2.0
//! The fields of a recording in the catalog.

use std::sync::Arc;

use taran_archive_client::Recording;
use taran_archive_client::codecs::control;
use taran_archive_client::codecs::control::recording_descriptor::{
    RecordingDescriptorDecoder, RecordingDescriptorEncoder,
};
use taran_archive_client::protocol::RecordingDescriptor;
use thiserror::Error;

use super::layout::{InvalidLayout, RecordingLayout};

/// Marks ids, positions and timestamps that are not set.
pub const NULL_VALUE: i64 = -1;

/// Length in bytes of the fields before the texts.
const BLOCK: usize = 80;

/// Channels and source of a recording, as ASCII. Texts that many recordings share are stored once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingTexts {
    /// The channel with the parameters that identify the stream (`docs/spec/archive.md` §1.4).
    pub stripped_channel: Arc<str>,
    /// The channel as requested.
    pub original_channel: Arc<str>,
    /// The source identity of the image.
    pub source_identity: Arc<str>,
}

/// A new recording, before the catalog gives it an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecording<'a> {
    /// Start time in epoch milliseconds.
    pub start_timestamp: i64,
    /// Position of the first frame.
    pub start_position: i64,
    /// Initial term id of the stream.
    pub initial_term_id: i32,
    /// Length of a segment file in bytes.
    pub segment_file_length: i32,
    /// Term length of the stream in bytes.
    pub term_buffer_length: i32,
    /// MTU of the stream in bytes.
    pub mtu_length: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// The channel with the parameters that identify the stream.
    pub stripped_channel: &'a str,
    /// The channel as requested.
    pub original_channel: &'a str,
    /// The source identity of the image.
    pub source_identity: &'a str,
}

impl<'a> From<&'a Recording> for NewRecording<'a> {
    /// Returns a recording with the metadata of another archive's.
    fn from(recording: &'a Recording) -> Self {
        Self {
            start_timestamp: recording.start_timestamp,
            start_position: recording.start_position,
            initial_term_id: recording.initial_term_id,
            segment_file_length: recording.segment_file_length,
            term_buffer_length: recording.term_buffer_length,
            mtu_length: recording.mtu_length,
            session_id: recording.session_id,
            stream_id: recording.stream_id,
            stripped_channel: &recording.stripped_channel,
            original_channel: &recording.original_channel,
            source_identity: &recording.source_identity,
        }
    }
}

/// The fields of a recording as its catalog entry has them. Entries come from a file: any value can be there, and
/// [`layout`](Self::layout) checks those that positions are computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Control session of the last request to extend it; 0 before.
    pub control_session_id: i64,
    /// Correlation id of the last request to extend it; 0 before.
    pub correlation_id: i64,
    /// Id of the recording.
    pub recording_id: i64,
    /// Start time in epoch milliseconds.
    pub start_timestamp: i64,
    /// Stop time in epoch milliseconds; [`NULL_VALUE`] while the recording is active.
    pub stop_timestamp: i64,
    /// Position of the first frame.
    pub start_position: i64,
    /// Position behind the last frame; [`NULL_VALUE`] while the recording is active.
    pub stop_position: i64,
    /// Initial term id of the stream.
    pub initial_term_id: i32,
    /// Length of a segment file in bytes.
    pub segment_file_length: i32,
    /// Term length of the stream in bytes.
    pub term_buffer_length: i32,
    /// MTU of the stream in bytes.
    pub mtu_length: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channels and source.
    pub texts: RecordingTexts,
}

/// A catalog entry whose fields contradict each other: its recording cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidDescriptor {
    /// Lengths or the start position are impossible.
    #[error(transparent)]
    Layout(#[from] InvalidLayout),
    /// The recording would end before its start.
    #[error("the stop position {stop} is before the start position {start}")]
    StopBeforeStart {
        /// The start position.
        start: i64,
        /// The stop position.
        stop: i64,
    },
    /// Frames start and end at multiples of 32 only.
    #[error("the stop position {0} is not a multiple of 32")]
    UnalignedStop(i64),
}

taran_core::debug_is_display!(InvalidDescriptor);

impl Descriptor {
    /// Returns the message with these fields, for a control session.
    #[must_use]
    pub fn message(&self, control_session_id: i64, correlation_id: i64) -> RecordingDescriptor<'_> {
        RecordingDescriptor {
            control_session_id,
            correlation_id,
            recording_id: self.recording_id,
            start_timestamp: self.start_timestamp,
            stop_timestamp: self.stop_timestamp,
            start_position: self.start_position,
            stop_position: self.stop_position,
            initial_term_id: self.initial_term_id,
            segment_file_length: self.segment_file_length,
            term_buffer_length: self.term_buffer_length,
            mtu_length: self.mtu_length,
            session_id: self.session_id,
            stream_id: self.stream_id,
            stripped_channel: &self.texts.stripped_channel,
            original_channel: &self.texts.original_channel,
            source_identity: &self.texts.source_identity,
        }
    }

    /// Returns how the recording's positions map to segment files.
    ///
    /// # Errors
    ///
    /// Lengths or the start position are impossible.
    pub fn layout(&self) -> Result<RecordingLayout, InvalidLayout> {
        RecordingLayout::new(
            self.start_position,
            self.initial_term_id,
            self.term_buffer_length,
            self.segment_file_length,
        )
    }

    /// Checks all fields that positions are computed from.
    ///
    /// # Errors
    ///
    /// The first contradiction.
    pub fn validate(&self) -> Result<RecordingLayout, InvalidDescriptor> {
        let layout = self.layout()?;
        if self.stop_position != NULL_VALUE {
            if self.stop_position < self.start_position {
                return Err(InvalidDescriptor::StopBeforeStart {
                    start: self.start_position,
                    stop: self.stop_position,
                });
            }
            if self.stop_position % 32 != 0 {
                return Err(InvalidDescriptor::UnalignedStop(self.stop_position));
            }
        }
        Ok(layout)
    }

    /// Returns true if the recording has no stop position: it is being recorded, or its archive ended without stopping it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.stop_position == NULL_VALUE
    }

    /// Returns the length of the fields and texts in an entry, in bytes.
    pub(super) fn encoded_length(&self) -> usize {
        let RecordingTexts {
            stripped_channel,
            original_channel,
            source_identity,
        } = &self.texts;
        let texts = [stripped_channel, original_channel, source_identity];
        BLOCK + texts.map(|text| 4 + text.len()).iter().sum::<usize>()
    }

    /// Encodes fields and texts. `buffer` has [`encoded_length`](Self::encoded_length) bytes at least.
    pub(super) fn encode(&self, buffer: &mut [u8]) {
        let encoded = RecordingDescriptorEncoder::wrap(buffer).and_then(|mut encoder| {
            encoder
                .control_session_id(self.control_session_id)
                .correlation_id(self.correlation_id)
                .recording_id(self.recording_id)
                .start_timestamp(self.start_timestamp)
                .stop_timestamp(self.stop_timestamp)
                .start_position(self.start_position)
                .stop_position(self.stop_position)
                .initial_term_id(self.initial_term_id)
                .segment_file_length(self.segment_file_length)
                .term_buffer_length(self.term_buffer_length)
                .mtu_length(self.mtu_length)
                .session_id(self.session_id)
                .stream_id(self.stream_id);
            Ok(encoder
                .stripped_channel(&*self.texts.stripped_channel)?
                .original_channel(&*self.texts.original_channel)?
                .source_identity(&*self.texts.source_identity)?
                .finish())
        });
        debug_assert!(encoded.is_ok(), "the buffer has the encoded length");
    }

    /// Decodes fields and texts; `shared` returns the stored copy of a text. Returns also the number of bytes read.
    pub(super) fn decode(
        bytes: &[u8],
        mut shared: impl FnMut(&str) -> Arc<str>,
    ) -> Result<(Self, usize), taran_sbe::runtime::DecodeError> {
        let decoder = RecordingDescriptorDecoder::wrap(
            bytes,
            RecordingDescriptorDecoder::BLOCK_LENGTH,
            control::SCHEMA_VERSION,
        )?;
        let fields = decoder;
        let (stripped, decoder) = decoder.stripped_channel()?;
        let (original, decoder) = decoder.original_channel()?;
        let (source, decoder) = decoder.source_identity()?;
        let mut text = |text: taran_sbe::runtime::Text<'_>| {
            let bytes = text.as_bytes();
            match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => shared(text),
                // One character for each byte, so that lengths stay the same.
                _ => shared(
                    &bytes
                        .iter()
                        .map(|byte| printable(*byte))
                        .collect::<String>(),
                ),
            }
        };
        let descriptor = Self {
            control_session_id: fields.control_session_id(),
            correlation_id: fields.correlation_id(),
            recording_id: fields.recording_id(),
            start_timestamp: fields.start_timestamp(),
            stop_timestamp: fields.stop_timestamp(),
            start_position: fields.start_position(),
            stop_position: fields.stop_position(),
            initial_term_id: fields.initial_term_id(),
            segment_file_length: fields.segment_file_length(),
            term_buffer_length: fields.term_buffer_length(),
            mtu_length: fields.mtu_length(),
            session_id: fields.session_id(),
            stream_id: fields.stream_id(),
            texts: RecordingTexts {
                stripped_channel: text(stripped),
                original_channel: text(original),
                source_identity: text(source),
            },
        };
        Ok((descriptor, bytes.len() - decoder.rest().len()))
    }
}

/// Returns the text to store: `?` for each character that is not ASCII, as Aeron does.
pub(super) fn ascii(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let replaced = |character: char| if character.is_ascii() { character } else { '?' };
    text.chars().map(replaced).collect::<String>().into()
}

fn printable(byte: u8) -> char {
    if byte.is_ascii() {
        char::from(byte)
    } else {
        '?'
    }
}
