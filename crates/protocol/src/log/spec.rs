// SPDX-License-Identifier: Apache-2.0
use taran_core::memory::Region;
use taran_core::sync::Ordering::Relaxed;
use zerocopy::FromBytes;

use super::metadata::DEFAULT_HEADER_OFFSET;
use super::{LogError, LogMetadata};
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameHeader, FrameType, MTU_MAX};
use crate::position::{FRAME_ALIGNMENT, PARTITION_COUNT, TERM_LENGTH_MIN, TermGeometry};

/// Length of the metadata at the end of a log in bytes.
pub const LOG_METADATA_LENGTH: usize = 4096;
/// Minimum page size.
pub const PAGE_SIZE_MIN: i32 = 4096;
/// Maximum page size.
pub const PAGE_SIZE_MAX: i32 = 1024 * 1024 * 1024;

/// Returns the length of a log file in bytes: three terms and the metadata, rounded up to whole pages. `page_size` is a
/// power of two (docs/spec/shared-memory.md §7.1).
#[must_use]
pub const fn file_length(term_length: i32, page_size: i32) -> usize {
    let used = term_length as usize * PARTITION_COUNT + LOG_METADATA_LENGTH;
    used.next_multiple_of(page_size as usize)
}

/// Kind of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogKind {
    /// A publication with any number of writers.
    Concurrent = 0,
    /// A publication with one writer.
    Exclusive = 1,
    /// An image received from the network.
    Image = 2,
}

/// Lengths of a socket buffer in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBufferLengths {
    /// Length for the socket; 0 for IPC.
    pub socket: i32,
    /// System default.
    pub default: i32,
    /// System maximum.
    pub max: i32,
}

/// Constant part of the metadata of a log (docs/spec/shared-memory.md §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpec {
    /// Kind of the log.
    pub kind: LogKind,
    /// Registration id of the publication or correlation id of the image.
    pub correlation_id: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the initial term.
    pub initial_term_id: i32,
    /// Term length in bytes, a power of two from 64 KiB to 1 GiB.
    pub term_length: i32,
    /// Page size, a power of two from 4096 to 1 GiB; the file length is a multiple of it.
    pub page_size: i32,
    /// Maximum frame length including the header, a multiple of 32 from 64 to 65504.
    pub mtu: i32,
    /// Maximum bytes a publisher may be ahead of its consumers; 0 for images.
    pub publication_window: i32,
    /// Maximum bytes a receiver accepts ahead of its subscribers; 0 for publications.
    pub receiver_window: i32,
    /// SO_SNDBUF.
    pub send_buffer: SocketBufferLengths,
    /// SO_RCVBUF.
    pub receive_buffer: SocketBufferLengths,
    /// Maximum concurrent retransmits; 0 for images.
    pub max_resend: i32,
    /// Entity tag of the channel; −1 if none, 0 for images.
    pub entity_tag: i64,
    /// Response correlation id of the channel; −1 if none, 0 for images.
    pub response_correlation_id: i64,
    /// Linger time of a drained publication; 0 for images.
    pub linger_timeout_ns: i64,
    /// Time an untethered subscriber may stay below the window before it is dropped.
    pub untethered_window_limit_timeout_ns: i64,
    /// Time an untethered subscriber lingers once dropped.
    pub untethered_linger_timeout_ns: i64,
    /// Time an untethered subscriber rests before it becomes active again.
    pub untethered_resting_timeout_ns: i64,
    /// The channel can have several receivers (multicast or multi-destination).
    pub is_group: bool,
    /// The channel is a response channel.
    pub is_response: bool,
    /// Rejoin: images that became unavailable are taken again, and untethered subscribers become active after resting.
    pub is_rejoining: bool,
    /// Lost frames are retransmitted.
    pub is_reliable: bool,
    /// The file was created sparse.
    pub is_sparse: bool,
    /// Heartbeats signal the end of the stream.
    pub signals_end_of_stream: bool,
    /// A spy alone makes the publication connected.
    pub spies_simulate_connection: bool,
    /// Subscribers are tethered: a slow one holds back the stream.
    pub is_tethered: bool,
}

impl LogSpec {
    /// Returns a spec with the mandatory fields set. The others are zero, false, or −1 where that means none.
    #[must_use]
    pub fn new(
        kind: LogKind,
        session_id: i32,
        stream_id: i32,
        initial_term_id: i32,
        term_length: i32,
    ) -> Self {
        let none = if kind == LogKind::Image { 0 } else { -1 };
        Self {
            kind,
            correlation_id: 0,
            session_id,
            stream_id,
            initial_term_id,
            term_length,
            page_size: PAGE_SIZE_MIN,
            mtu: 1408,
            publication_window: 0,
            receiver_window: 0,
            send_buffer: SocketBufferLengths::default(),
            receive_buffer: SocketBufferLengths::default(),
            max_resend: 0,
            entity_tag: none,
            response_correlation_id: none,
            linger_timeout_ns: 0,
            untethered_window_limit_timeout_ns: 0,
            untethered_linger_timeout_ns: 0,
            untethered_resting_timeout_ns: 0,
            is_group: false,
            is_response: false,
            is_rejoining: false,
            is_reliable: false,
            is_sparse: false,
            signals_end_of_stream: false,
            spies_simulate_connection: false,
            is_tethered: false,
        }
    }

    /// Returns the length of the log file in bytes.
    #[must_use]
    pub const fn file_length(&self) -> usize {
        file_length(self.term_length, self.page_size)
    }

    /// Reads the spec of a log that another process created, without validation, for inspection tools.
    /// [`super::LogBuffers::open`] validates it.
    ///
    /// # Errors
    /// The region is too short for a log, or its header length or kind is invalid.
    pub fn of(log: &Region) -> Result<Self, LogError> {
        let least = file_length(TERM_LENGTH_MIN, PAGE_SIZE_MIN);
        let wrong_length = LogError::FileLength {
            found: log.len(),
            expected: least,
        };
        if log.len() < least {
            return Err(wrong_length);
        }
        let metadata_at = log.len() - LOG_METADATA_LENGTH;
        let metadata = log.overlay(metadata_at).map_err(|_| wrong_length)?;
        let bytes = log.bytes(metadata_at + DEFAULT_HEADER_OFFSET, size_of::<DataHeader>());
        let default_header = DataHeader::read_from_bytes(bytes).map_err(|_| wrong_length)?;
        Self::read(&metadata, &default_header)
    }

    /// Validates the values that the log arithmetic relies on, for a file of `length` bytes.
    pub(super) fn check(&self, length: usize) -> Result<TermGeometry, LogError> {
        let geometry = TermGeometry::new(self.initial_term_id, self.term_length)
            .map_err(|error| LogError::TermLength(error.0))?;
        let page_size = self.page_size;
        if !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size) || page_size.count_ones() != 1 {
            return Err(LogError::PageSize(page_size));
        }
        if self.mtu <= DATA_HEADER_LENGTH || self.mtu > MTU_MAX || self.mtu % FRAME_ALIGNMENT != 0 {
            return Err(LogError::Mtu(self.mtu));
        }
        let expected = self.file_length();
        if length != expected {
            return Err(LogError::FileLength {
                found: length,
                expected,
            });
        }
        Ok(geometry)
    }

    /// Returns the frame header template.
    pub(super) fn default_header(&self) -> DataHeader {
        DataHeader {
            header: FrameHeader::new(0, DataHeader::UNFRAGMENTED, FrameType::DATA),
            ..DataHeader::heartbeat(0, self.session_id, self.stream_id, self.initial_term_id, 0)
        }
    }

    /// Writes the metadata except the header template. Relaxed, because the log is announced later.
    pub(super) fn write(&self, to: &LogMetadata) {
        to.correlation_id.store(self.correlation_id, Relaxed);
        to.initial_term_id.store(self.initial_term_id, Relaxed);
        to.default_header_length.store(DATA_HEADER_LENGTH, Relaxed);
        to.mtu.store(self.mtu, Relaxed);
        to.term_length.store(self.term_length, Relaxed);
        to.page_size.store(self.page_size, Relaxed);
        to.publication_window
            .store(self.publication_window, Relaxed);
        to.receiver_window.store(self.receiver_window, Relaxed);
        for (field, lengths) in [
            (&to.send_buffer, self.send_buffer),
            (&to.receive_buffer, self.receive_buffer),
        ] {
            for (word, length) in field
                .iter()
                .zip([lengths.socket, lengths.default, lengths.max])
            {
                word.store(length, Relaxed);
            }
        }
        to.max_resend.store(self.max_resend, Relaxed);
        to.entity_tag.store(self.entity_tag, Relaxed);
        to.response_correlation_id
            .store(self.response_correlation_id, Relaxed);
        to.linger_timeout_ns.store(self.linger_timeout_ns, Relaxed);
        to.untethered_window_limit_timeout_ns
            .store(self.untethered_window_limit_timeout_ns, Relaxed);
        to.untethered_resting_timeout_ns
            .store(self.untethered_resting_timeout_ns, Relaxed);
        for (byte, value) in to.booleans.iter().zip(self.booleans()) {
            byte.store(u8::from(value), Relaxed);
        }
        to.kind.store(self.kind as u8, Relaxed);
        let linger = self.untethered_linger_timeout_ns;
        to.untethered_linger_timeout_ns[0].store(linger as i32, Relaxed);
        to.untethered_linger_timeout_ns[1].store((linger >> 32) as i32, Relaxed);
    }

    /// Reads the fields that [`Self::write`] writes. Session id and stream id are in the header template.
    fn read(from: &LogMetadata, default_header: &DataHeader) -> Result<Self, LogError> {
        let header_length = from.default_header_length.load(Relaxed);
        if header_length != DATA_HEADER_LENGTH {
            return Err(LogError::HeaderLength(header_length));
        }
        let kind = match from.kind.load(Relaxed) {
            0 => LogKind::Concurrent,
            1 => LogKind::Exclusive,
            2 => LogKind::Image,
            other => return Err(LogError::Kind(other)),
        };
        let lengths = |field: &[taran_core::sync::AtomicI32; 3]| SocketBufferLengths {
            socket: field[0].load(Relaxed),
            default: field[1].load(Relaxed),
            max: field[2].load(Relaxed),
        };
        let linger = &from.untethered_linger_timeout_ns;
        let boolean = |index: usize| from.booleans[index].load(Relaxed) != 0;
        Ok(Self {
            kind,
            correlation_id: from.correlation_id.load(Relaxed),
            session_id: default_header.session_id.get(),
            stream_id: default_header.stream_id.get(),
            initial_term_id: from.initial_term_id.load(Relaxed),
            term_length: from.term_length.load(Relaxed),
            page_size: from.page_size.load(Relaxed),
            mtu: from.mtu.load(Relaxed),
            publication_window: from.publication_window.load(Relaxed),
            receiver_window: from.receiver_window.load(Relaxed),
            send_buffer: lengths(&from.send_buffer),
            receive_buffer: lengths(&from.receive_buffer),
            max_resend: from.max_resend.load(Relaxed),
            entity_tag: from.entity_tag.load(Relaxed),
            response_correlation_id: from.response_correlation_id.load(Relaxed),
            linger_timeout_ns: from.linger_timeout_ns.load(Relaxed),
            untethered_window_limit_timeout_ns: from
                .untethered_window_limit_timeout_ns
                .load(Relaxed),
            untethered_linger_timeout_ns: i64::from(linger[1].load(Relaxed)) << 32
                | i64::from(linger[0].load(Relaxed) as u32),
            untethered_resting_timeout_ns: from.untethered_resting_timeout_ns.load(Relaxed),
            is_group: boolean(0),
            is_response: boolean(1),
            is_rejoining: boolean(2),
            is_reliable: boolean(3),
            is_sparse: boolean(4),
            signals_end_of_stream: boolean(5),
            spies_simulate_connection: boolean(6),
            is_tethered: boolean(7),
        })
    }

    fn booleans(&self) -> [bool; 8] {
        [
            self.is_group,
            self.is_response,
            self.is_rejoining,
            self.is_reliable,
            self.is_sparse,
            self.signals_end_of_stream,
            self.spies_simulate_connection,
            self.is_tethered,
        ]
    }
}
