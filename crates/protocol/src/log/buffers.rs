// SPDX-License-Identifier: Apache-2.0
use taran_core::memory::{Region, Shared};
use taran_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use zerocopy::IntoBytes;

use super::frame::StreamIds;
use super::metadata::DEFAULT_HEADER_OFFSET;
use super::{LOG_METADATA_LENGTH, LogError, LogKind, LogMetadata, LogSpec, TailSnapshot};
use crate::frame::DATA_HEADER_LENGTH;
use crate::position::{
    FRAME_ALIGNMENT, PARTITION_COUNT, RawTail, TermGeometry, partition_of_count,
};

/// A mapped log: three terms and their metadata. A clone is another view of the same memory.
#[doc(alias = "LogBufferDescriptor")]
#[derive(Clone, Debug)]
pub struct LogBuffers {
    terms: [Region; PARTITION_COUNT],
    metadata: Shared<LogMetadata>,
    geometry: TermGeometry,
    ids: StreamIds,
    // Cached because they are needed for each message.
    term_length: i32,
    max_payload_length: i32,
    max_message_length: i32,
    kind: LogKind,
    correlation_id: i64,
}

impl LogBuffers {
    /// Writes the metadata of a new log into zeroed memory of [`LogSpec::file_length`] bytes. A publication starts at
    /// `start_position`. Images have no tails and ignore it.
    ///
    /// # Errors
    /// The spec, the start position or the length of the region is invalid.
    pub fn create(region: &Region, spec: &LogSpec, start_position: i64) -> Result<Self, LogError> {
        let geometry = spec.check(region.len())?;
        let max = geometry.max_position();
        if !(0..max).contains(&start_position) || start_position % i64::from(FRAME_ALIGNMENT) != 0 {
            return Err(LogError::StartPosition {
                position: start_position,
                max,
            });
        }
        let log = Self::new(region, spec, geometry)?;
        spec.write(&log.metadata);
        let header_at = region.len() - LOG_METADATA_LENGTH + DEFAULT_HEADER_OFFSET;
        region.write(header_at, spec.default_header().as_bytes());
        log.metadata.end_of_stream_position.store(i64::MAX, Relaxed);
        if spec.kind != LogKind::Image {
            log.start_tails(start_position);
        }
        Ok(log)
    }

    /// Opens a log that another process created. All values that the arithmetic relies on are validated and copied, so
    /// that later changes to the metadata have no effect.
    ///
    /// # Errors
    /// The metadata does not describe a log of this length.
    pub fn open(region: &Region) -> Result<Self, LogError> {
        let spec = LogSpec::of(region)?;
        let geometry = spec.check(region.len())?;
        Self::new(region, &spec, geometry)
    }

    fn new(region: &Region, spec: &LogSpec, geometry: TermGeometry) -> Result<Self, LogError> {
        let bounds = |_| LogError::FileLength {
            found: region.len(),
            expected: spec.file_length(),
        };
        let length = spec.term_length as usize;
        let term = |index: usize| region.sub(index * length, length).map_err(bounds);
        Ok(Self {
            terms: [term(0)?, term(1)?, term(2)?],
            metadata: region
                .overlay(region.len() - LOG_METADATA_LENGTH)
                .map_err(bounds)?,
            geometry,
            ids: StreamIds {
                session_id: spec.session_id,
                stream_id: spec.stream_id,
            },
            term_length: spec.term_length,
            max_payload_length: spec.mtu - DATA_HEADER_LENGTH,
            max_message_length: geometry.max_message_length(),
            kind: spec.kind,
            correlation_id: spec.correlation_id,
        })
    }

    /// Writes the initial tails: the active partition at the start position, each other one three terms before its next
    /// use (docs/spec/shared-memory.md §7.4).
    fn start_tails(&self, start_position: i64) {
        let term_id = self.geometry.term_id(start_position);
        let count = self.geometry.term_count(term_id);
        let offset = self.geometry.term_offset(start_position);
        for ahead in 0..PARTITION_COUNT as i32 {
            let index = partition_of_count(count.wrapping_add(ahead));
            let tail = match ahead {
                0 => RawTail::new(term_id, offset as u32),
                _ => RawTail::new(term_id.wrapping_add(ahead - PARTITION_COUNT as i32), 0),
            };
            self.metadata.tails[index].store(tail.0, Relaxed);
        }
        self.metadata.active_term_count.store(count, Relaxed);
    }

    /// Returns the term length and the initial term id.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> TermGeometry {
        self.geometry
    }

    /// Returns the length of a term in bytes.
    #[inline]
    #[must_use]
    pub fn term_length(&self) -> i32 {
        self.term_length
    }

    /// Returns the term in a partition, 0 to 2.
    #[inline]
    #[must_use]
    pub fn term(&self, partition: usize) -> &Region {
        &self.terms[partition]
    }

    /// Returns the term that holds a position. Any value yields a term.
    #[inline]
    #[must_use]
    pub fn term_at(&self, position: i64) -> &Region {
        &self.terms[self.geometry.partition(position)]
    }

    /// Returns the maximum length of a frame including its header, a multiple of 32.
    #[inline]
    #[must_use]
    pub fn mtu(&self) -> i32 {
        self.max_payload_length + DATA_HEADER_LENGTH
    }

    /// Returns the maximum length of a message in one frame.
    #[inline]
    #[must_use]
    pub fn max_payload_length(&self) -> i32 {
        self.max_payload_length
    }

    /// Returns the maximum length of a message.
    #[inline]
    #[must_use]
    pub fn max_message_length(&self) -> i32 {
        self.max_message_length
    }

    /// Returns the session id of the stream.
    #[inline]
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.ids.session_id
    }

    /// Returns the stream id.
    #[inline]
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.ids.stream_id
    }

    /// Returns the kind of the log.
    #[must_use]
    pub fn kind(&self) -> LogKind {
        self.kind
    }

    /// Returns the registration id of the publication or the correlation id of the image.
    #[must_use]
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Returns the raw metadata.
    #[inline]
    #[must_use]
    pub fn metadata(&self) -> &LogMetadata {
        &self.metadata
    }

    #[inline]
    pub(super) fn ids(&self) -> StreamIds {
        self.ids
    }

    /// Returns the number of terms since the initial one. Acquire: pairs with the release or CAS of the rotation.
    #[inline]
    #[must_use]
    pub fn active_term_count(&self) -> i32 {
        self.metadata.active_term_count.load(Acquire)
    }

    /// Returns the raw tail of a partition, 0 to 2. Acquire: pairs with the fetch-add, release or CAS of appenders.
    #[inline]
    #[must_use]
    pub fn raw_tail(&self, partition: usize) -> RawTail {
        RawTail(self.metadata.tails[partition].load(Acquire))
    }

    /// Returns the position of the next frame. It comes from shared memory, so a faulty publisher can make it any
    /// value.
    #[inline]
    #[must_use]
    pub fn producer_position(&self) -> i64 {
        self.position_of(self.raw_tail(partition_of_count(self.active_term_count())))
    }

    #[inline]
    fn position_of(&self, tail: RawTail) -> i64 {
        let offset = tail.effective_offset(self.term_length());
        self.geometry.position(tail.term_id(), offset)
    }

    /// Returns a snapshot of the tail if the publisher's position is `position` and lies inside a term. At the end of a
    /// term returns `None`, because the next frame changes the tail of another partition.
    #[must_use]
    pub fn snapshot_if_drained(&self, position: i64) -> Option<TailSnapshot> {
        let partition = partition_of_count(self.active_term_count());
        let tail = self.raw_tail(partition);
        let is_within = tail.effective_offset(self.term_length()) < self.term_length();
        let is_drained = is_within && self.position_of(tail) == position;
        is_drained.then(|| TailSnapshot::new(self.metadata.clone(), partition, tail))
    }

    /// Rotates to the term after the one with this count and id. Appenders and the unblocker may call it concurrently.
    /// Returns true for the call that changed the term count (docs/spec/shared-memory.md §7.6).
    #[doc(alias = "rotateLog")]
    pub fn rotate(&self, term_count: i32, term_id: i32) -> bool {
        let next_count = term_count.wrapping_add(1);
        let next_id = term_id.wrapping_add(1);
        let tail = &self.metadata.tails[partition_of_count(next_count)];
        let expected_id = next_id.wrapping_sub(PARTITION_COUNT as i32);
        let mut raw = tail.load(Acquire);
        // The loop ends once any caller has changed the tail to another term id.
        while RawTail(raw).term_id() == expected_id {
            match tail.compare_exchange(raw, RawTail::new(next_id, 0).0, AcqRel, Acquire) {
                Ok(_) => break,
                Err(found) => raw = found,
            }
        }
        // Release: pairs with the acquire in `active_term_count`; a reader of the new count sees the tail above.
        self.metadata
            .active_term_count
            .compare_exchange(term_count, next_count, AcqRel, Acquire)
            .is_ok()
    }

    /// Returns true if the publication has a receiver or subscriber. Acquire: pairs with [`Self::set_connected`].
    #[inline]
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.metadata.is_connected.load(Acquire) == 1
    }

    /// Sets whether the publication has a receiver or subscriber.
    pub fn set_connected(&self, connected: bool) {
        self.metadata
            .is_connected
            .store(i32::from(connected), Release);
    }

    /// Returns the end of the stream, `i64::MAX` while it is open. Acquire: pairs with
    /// [`Self::set_end_of_stream_position`].
    #[inline]
    #[must_use]
    pub fn end_of_stream_position(&self) -> i64 {
        self.metadata.end_of_stream_position.load(Acquire)
    }

    /// Sets the end of the stream.
    pub fn set_end_of_stream_position(&self, position: i64) {
        self.metadata
            .end_of_stream_position
            .store(position, Release);
    }

    /// Returns true if the publication was revoked. Acquire: pairs with [`Self::set_revoked`].
    #[inline]
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.metadata.is_revoked.load(Acquire) == 1
    }

    /// Marks the publication as revoked.
    pub fn set_revoked(&self) {
        self.metadata.is_revoked.store(1, Release);
    }

    /// Returns the number of active transports of an image. Acquire: pairs with [`Self::set_active_transport_count`].
    #[must_use]
    pub fn active_transport_count(&self) -> i32 {
        self.metadata.active_transport_count.load(Acquire)
    }

    /// Sets the number of active transports of an image.
    pub fn set_active_transport_count(&self, count: i32) {
        self.metadata.active_transport_count.store(count, Release);
    }
}
