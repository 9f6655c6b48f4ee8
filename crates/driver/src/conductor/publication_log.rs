// SPDX-License-Identifier: Apache-2.0
//! Conductor's view of the log of a publication: producer position, clean position, blocked publishers.

use taran_core::clock::Now;
use taran_core::memory::prefetch_value;
use taran_protocol::log::{LogBuffers, TailSnapshot};
use taran_protocol::position::{FRAME_ALIGNMENT, TermGeometry};

use super::log_files::{LogFile, LogFiles, ReservationOutcome, SpaceChange};

/// A log that clients publish into. Used for IPC and network publications.
#[derive(Debug)]
pub(crate) struct PublicationLog {
    file: LogFile,
    buffers: LogBuffers,
    geometry: TermGeometry,
    clean_position: i64,
    consumer: ConsumerProgress,
}

/// Last consumer position and the time when it changed.
#[derive(Debug, Clone, Copy)]
struct ConsumerProgress {
    position: i64,
    since_ns: i64,
}

impl PublicationLog {
    pub(crate) fn new(
        file: LogFile,
        buffers: LogBuffers,
        start_position: i64,
        now_ns: i64,
    ) -> Self {
        let geometry = buffers.geometry();
        Self {
            file,
            buffers,
            geometry,
            clean_position: start_position,
            consumer: ConsumerProgress {
                position: start_position,
                since_ns: now_ns,
            },
        }
    }

    /// Returns the path as sent to clients.
    pub(crate) fn name(&self) -> &str {
        self.file.name()
    }

    pub(crate) fn buffers(&self) -> &LogBuffers {
        &self.buffers
    }

    pub(crate) fn into_file(self) -> LogFile {
        self.file
    }

    pub(crate) fn geometry(&self) -> TermGeometry {
        self.geometry
    }

    /// Returns the position of the next frame. It is read from shared memory and clamped to the range of the log of
    /// which the pages are reserved.
    pub(crate) fn producer_position(&self) -> i64 {
        let end = self.file.reservation().position();
        self.buffers
            .producer_position()
            .clamp(0, self.geometry.max_position().min(end))
    }

    /// Returns the publisher limit that may be set if flow control allows `limit`: no more than the pages that are
    /// reserved. Requires the pages that are needed for a limit that is 3/8 of a term further: with the default window
    /// of half a term, the next term is reserved when an eighth of this one was published.
    pub(crate) fn reserved_limit(&mut self, limit: i64) -> i64 {
        let reservation = self.file.reservation();
        if reservation.position() == i64::MAX {
            return limit;
        }
        let ahead = i64::from(self.geometry.term_length() / 8 * 3);
        let need = reservation
            .dimensions()
            .publisher_need(limit.saturating_add(ahead));
        let reserved = reservation.publisher_limit();
        self.file.require(need);
        limit.min(reserved)
    }

    /// Starts to reserve pages that are required.
    pub(crate) fn extend(&mut self, logs: &mut LogFiles, now: Now) {
        logs.extend(&mut self.file, now);
    }

    /// Returns the time at which [`extend`](Self::extend) starts a reservation.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        self.file.reservation().next_deadline_ns()
    }

    /// Handles the outcome of a reservation.
    pub(crate) fn on_reserved(
        &mut self,
        outcome: &ReservationOutcome,
        now_ns: i64,
    ) -> Option<SpaceChange> {
        self.file.on_reserved(outcome, now_ns)
    }

    /// Returns a snapshot of the tail if the publisher is at this position.
    pub(crate) fn snapshot_if_drained(&self, position: i64) -> Option<TailSnapshot> {
        self.buffers.snapshot_if_drained(position)
    }

    /// Prefetches the tails and the connection flag of the log metadata.
    pub(crate) fn prefetch(&self) {
        let metadata = self.buffers.metadata();
        prefetch_value(&metadata.tails);
        prefetch_value(&metadata.is_connected);
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.buffers.is_revoked()
    }

    pub(crate) fn revoke(&self) {
        self.buffers.set_revoked();
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        if self.buffers.is_connected() != connected {
            self.buffers.set_connected(connected);
        }
    }

    pub(crate) fn end_at(&self, position: i64) {
        self.buffers.set_end_of_stream_position(position);
    }

    pub(crate) fn clean_position(&self) -> i64 {
        self.clean_position
    }

    /// Zeroes the log below `position` as far as it is not clean yet (docs/spec/shared-memory.md §7.8). Returns true if
    /// all of it is clean.
    ///
    /// All readers have passed the cleaned range, and publishers reach it only after the limit is raised, which happens
    /// after this call. One call cleans at most the rest of a term and the next one: only a broken subscriber can cause
    /// a larger range, and it must not stall the conductor. A log whose publisher clears ahead itself needs no
    /// cleaning.
    pub(crate) fn clean_to(&mut self, position: i64) -> bool {
        let target = position & !i64::from(FRAME_ALIGNMENT - 1);
        if self.buffers.clears_ahead() {
            self.clean_position = self.clean_position.max(target);
            return true;
        }
        for _ in 0..2 {
            if self.clean_position >= target {
                return true;
            }
            self.clean_position = self.buffers.clean(self.clean_position, target);
        }
        self.clean_position >= target
    }

    /// Pads over an unfinished frame at `position`. Returns true if there was one. Where the term is not reserved,
    /// nothing was published.
    pub(crate) fn unblock(&self, position: i64) -> bool {
        let term_end = (self.geometry.term_begin(position))
            .saturating_add(i64::from(self.geometry.term_length()));
        let reserved = self.file.reservation().position();
        let is_boundary = self.geometry.term_offset(position) == 0;
        (term_end <= reserved || (is_boundary && position < reserved))
            && self.buffers.unblock(position)
    }

    /// Unblocks the log if the consumer has stayed at `consumer` for longer than the timeout although the publisher
    /// advanced. Called once per timer tick. Returns true if a frame was unblocked.
    pub(crate) fn check_blocked(
        &mut self,
        consumer: i64,
        producer: i64,
        now_ns: i64,
        timeout_ns: i64,
    ) -> bool {
        if consumer == self.consumer.position && self.may_be_blocked(consumer, producer) {
            now_ns.saturating_sub(self.consumer.since_ns) > timeout_ns && self.unblock(consumer)
        } else {
            self.consumer = ConsumerProgress {
                position: consumer,
                since_ns: now_ns,
            };
            false
        }
    }

    fn may_be_blocked(&self, consumer: i64, producer: i64) -> bool {
        let consumer_term_count = (consumer >> self.geometry.bits()) as i32;
        producer > consumer || self.buffers.active_term_count() != consumer_term_count
    }
}
