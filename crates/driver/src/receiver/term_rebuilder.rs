// SPDX-License-Identifier: Apache-2.0
//! Term rebuilder: inserts datagrams into the term buffer (docs/spec/wire.md §5.4).

use taran_core::memory::Claim;
use taran_protocol::frame::{
    DATA_HEADER_LENGTH, DataFrame, DataHeader, IntoBytes, ValidatedFrames,
};
use taran_protocol::log;

use super::image::ReceiverImage;
use super::image_connections::FrameOrigin;
use super::segment_run;
use crate::boundary::ReceiverCounters;

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Maximum length of a segment run.
const MAX_RUN_LENGTH: usize = 65_536;

/// Position range of a validated packet.
#[derive(Clone, Copy)]
struct Extent {
    position: i64,
    /// End of the last frame; for padding this is beyond the bytes received.
    end: i64,
    wire_length: i64,
}

impl ReceiverImage {
    /// Inserts several contiguous datagrams as one packet, which is the common case of a fast stream: everything is new
    /// and is inserted in one pass. Returns false, without any effect, if that is not the case.
    pub(super) fn on_segment_run(
        &mut self,
        frame: &DataFrame<'_>,
        stride: usize,
        origin: &FrameOrigin,
    ) -> bool {
        let Ok(frames) = frame.validate_segments(self.geometry.term_length(), stride) else {
            return false;
        };
        if frame.is_heartbeat() {
            // The datagrams behind a heartbeat have to be examined one by one.
            return false;
        }
        let extent = self.extent(frame, &frames);
        // At or beyond the high-water mark every slot is free, so checking the first one is sufficient.
        if extent.position < self.high_water_mark
            || self.is_over_run(extent)
            || !self.is_reusable(extent.end)
            || self.rejection.is_some()
        {
            return false;
        }
        self.on_activity(origin);
        self.insert(&frames, extent);
        true
    }

    /// Returns the buffer for the next segment run if it continues at the high-water mark: room for the longest run
    /// except its first header. Readers do not look there until that header is written, and nothing has been inserted
    /// beyond. Returns `None` near the end of a term and while there is a gap.
    pub(super) fn next_run_buffer(&mut self) -> Option<Claim<'_>> {
        let position = self.high_water_mark;
        let is_in_order = self.rebuild_position == position && self.cleared_to == position;
        let offset = self.geometry.term_offset(position) as usize;
        let in_term = self.geometry.term_length() as usize - offset;
        if !is_in_order
            || self.rejection.is_some()
            || in_term < MAX_RUN_LENGTH
            || !self.is_reusable(position + MAX_RUN_LENGTH as i64)
        {
            return None;
        }
        let term = self.spec.log.term_at(position);
        Some(term.claim(offset + HEADER, MAX_RUN_LENGTH - HEADER))
    }

    /// Returns the bytes that were received directly, for a run of `length` bytes including its first header.
    pub(super) fn direct_bytes(&self, length: usize) -> &[u8] {
        let offset = self.geometry.term_offset(self.high_water_mark) as usize;
        let term = self.spec.log.term_at(self.high_water_mark);
        term.bytes(offset + HEADER, length.saturating_sub(HEADER))
    }

    /// Commits a run of `length` bytes whose first header is `header` and whose remainder was received directly.
    /// Returns false, without any effect, if it is not the continuation of the stream.
    pub(super) fn on_direct_run(
        &mut self,
        header: &DataHeader,
        length: usize,
        stride: usize,
        origin: &FrameOrigin,
    ) -> bool {
        let position = self.high_water_mark;
        let Some(extent) = self.direct_extent(header, length, stride) else {
            return false;
        };
        if extent.position != position || self.is_over_run(extent) || !self.is_reusable(extent.end)
        {
            return false;
        }
        self.on_activity(origin);
        self.unanswered_naks = 0;
        let is_new = self.clear_ahead(position, extent.end)
            && log::insert_received(self.spec.log.term_at(position), header);
        self.on_inserted(extent, is_new);
        true
    }

    fn direct_extent(&self, header: &DataHeader, length: usize, stride: usize) -> Option<Extent> {
        let body = self.direct_bytes(length);
        if length < HEADER || !segment_run::is_one_run(header.as_bytes(), body, stride) {
            return None;
        }
        let frame = DataFrame::from_parts(header, body).ok()?;
        let frames = frame
            .validate_segments(self.geometry.term_length(), stride)
            .ok()?;
        let extent = self.extent(&frame, &frames);
        // Subscribers can write to this memory too. A subscriber that changes it during validation may corrupt what it
        // reads, but must not cause positions outside the term.
        let term_end =
            self.geometry.term_begin(extent.position) + i64::from(self.geometry.term_length());
        (extent.position < extent.end && extent.end <= term_end).then_some(extent)
    }

    fn extent(&self, frame: &DataFrame<'_>, frames: &ValidatedFrames<'_>) -> Extent {
        let position = self
            .geometry
            .position(frame.term_id(), frames.term_offset());
        Extent {
            position,
            end: position + i64::from(frames.length_in_term()),
            wire_length: frames.wire_length() as i64,
        }
    }

    /// Inserts one datagram.
    pub(super) fn on_packet(
        &mut self,
        frame: &DataFrame<'_>,
        origin: &FrameOrigin,
        counters: &ReceiverCounters,
    ) {
        let Ok(frames) = frame.validate(self.geometry.term_length()) else {
            counters.invalid_packets.increment();
            return;
        };
        let extent = self.extent(frame, &frames);
        let position = extent.position;
        if position < 0 || self.rejection.is_some() {
            return;
        }
        if self.is_over_run(extent) {
            counters.over_runs.increment();
            if !frame.is_heartbeat() {
                self.on_dropped(position + extent.wire_length);
            }
        } else if frame.is_heartbeat() {
            self.on_heartbeat(frame, position, origin, counters);
        } else if !self.is_reusable(extent.end) {
            counters.over_runs.increment();
            self.on_unreserved(extent, origin);
        } else if position >= self.status_schedule.last_sent_position()
            || extent.end > self.rebuild_position
        {
            self.on_activity(origin);
            if !self.insert(&frames, extent) {
                self.insert_tail(frame, extent);
            }
        } else {
            counters.under_runs.increment();
            if position
                >= self.status_schedule.last_sent_position()
                    - i64::from(self.status_schedule.window())
            {
                self.connections.on_frame(origin);
            }
        }
    }

    fn on_heartbeat(
        &mut self,
        frame: &DataFrame<'_>,
        position: i64,
        origin: &FrameOrigin,
        counters: &ReceiverCounters,
    ) {
        if position
            < self.status_schedule.last_sent_position() - i64::from(self.geometry.term_length())
        {
            counters.under_runs.increment();
            return;
        }
        counters.heartbeats_received.increment();
        // Nothing is missing if padding that has arrived led beyond the window.
        if position <= self.overrun_threshold.max(self.rebuild_position) {
            self.on_activity(origin);
        } else {
            self.on_frame_beyond_window(origin);
        }
        self.announce(position);
        // An end beyond what could be announced is repeated by the sender.
        if frame.is_end_of_stream() && position <= self.high_water_mark {
            self.on_end_of_stream(position, frame.is_revoked(), origin, counters);
        }
    }

    /// Ends the stream once every active transport has announced its end.
    fn on_end_of_stream(
        &mut self,
        position: i64,
        is_revoked: bool,
        origin: &FrameOrigin,
        counters: &ReceiverCounters,
    ) {
        self.connections.on_end_of_stream(origin.slot, position);
        if self.has_ended {
            return;
        }
        let timeout_ns = self.spec.liveness_timeout_ns;
        let Some(end) = self.connections.end_of_stream(origin.now_ns, timeout_ns) else {
            return;
        };
        self.has_ended = true;
        if is_revoked {
            self.is_revoked = true;
            self.spec.log.set_revoked();
            counters.images_revoked.increment();
        }
        self.spec.log.set_end_of_stream_position(end);
        // The flag and the position are set first: the conductor closes the image and then notifies clients.
        if is_revoked {
            self.spec.shared.receiver_revoked();
        }
    }

    /// Raises the high-water mark to `end`, so that what is missing before it is repaired. An image that fills gaps instead
    /// of sending NAKs writes up to the high-water mark, which therefore stays within the reserved pages; later heartbeats
    /// announce the rest.
    fn announce(&mut self, end: i64) {
        let end = if self.loss_detector.is_reliable() || self.is_reusable(end) {
            end
        } else {
            self.fillable_end()
        };
        if end > self.high_water_mark {
            self.high_water_mark = end;
            self.spec.high_water_mark.set(end);
            self.needs_scan = true;
        }
    }

    /// Handles a packet that is accepted but for its pages, which are not reserved: the stream is alive and waits. NAKs ask
    /// for the packet until it can be inserted.
    fn on_unreserved(&mut self, extent: Extent, origin: &FrameOrigin) {
        self.last_activity_ns = origin.now_ns;
        self.setup_reply_budget.on_frame();
        self.connections.on_frame(origin);
        self.announce(extent.end);
        self.request_pages(extent.position, extent.end, extent.wire_length);
    }

    /// Returns true if a packet lies beyond what the sender may send, or where the memory may still be read. Bytes are
    /// counted as by the sender, which does not send the body of padding: padding may extend beyond the window, to the end
    /// of its term at most.
    fn is_over_run(&mut self, extent: Extent) -> bool {
        if !self.is_reusable(extent.end) && !self.is_free(extent.end) {
            return true;
        }
        if extent.end == extent.position {
            return self.is_heartbeat_over_run(extent.position);
        }
        extent.position + extent.wire_length > self.overrun_threshold
    }

    /// Returns true if a heartbeat at `position` comes from a sender that has left this image behind, because it follows
    /// other receivers. Such a heartbeat must not keep the image alive: the image times out, and a new one joins at the
    /// sender's position.
    ///
    /// A sender that keeps to the window reaches positions beyond it by padding only. If that padding was lost, the
    /// heartbeat is all that announces it: if it were dropped, the padding would never be NAKed. The two are told apart by
    /// data: a sender that left the image behind has sent some beyond the window, which was dropped and is still missing.
    fn is_heartbeat_over_run(&self, position: i64) -> bool {
        if position <= self.overrun_threshold.max(self.rebuild_position) {
            return false;
        }
        let term_begin = self.geometry.term_begin(self.overrun_threshold - 1);
        let term_end = term_begin + i64::from(self.geometry.term_length());
        position > term_end || (position < term_end && self.dropped_to > self.rebuild_position)
    }

    /// Remembers data beyond the over-run threshold that was dropped. A sender that left this image behind sends data up to
    /// there on its way; anything more than a term further is forged, or of an earlier stream.
    fn on_dropped(&mut self, end: i64) {
        let term_length = i64::from(self.geometry.term_length());
        if (self.overrun_threshold + 1..=self.overrun_threshold + term_length).contains(&end) {
            self.dropped_to = self.dropped_to.max(end);
        }
    }

    /// Inserts a packet unless it is there already. Returns true if it was inserted. Bytes that readers may have passed
    /// are never overwritten, even if they look free: a broken sender can send overlapping frames.
    fn insert(&mut self, frames: &ValidatedFrames<'_>, extent: Extent) -> bool {
        self.unanswered_naks = 0;
        if self.needs_scan {
            self.advance_rebuild_position();
        }
        if extent.position < self.rebuild_position {
            return false;
        }
        let is_new = self.clear_ahead(extent.position, extent.end)
            && log::insert(self.spec.log.term_at(extent.position), frames);
        self.on_inserted(extent, is_new);
        is_new
    }

    /// Inserts the missing tail of a packet whose first frames are there already. A retransmission need not have the
    /// packet boundaries of the original nor begin at this receiver's gap: another receiver may have requested more.
    fn insert_tail(&mut self, frame: &DataFrame<'_>, extent: Extent) {
        let term_length = self.geometry.term_length();
        let term_begin = self.geometry.term_begin(extent.position);
        let term = self.spec.log.term_at(extent.position);
        let rest = frame.skip_while(|offset| {
            let position = term_begin + i64::from(offset);
            let is_placed = || !matches!(log::frame_at(term, offset), Ok(None));
            position < self.rebuild_position || (position < self.cleared_to && is_placed())
        });
        // If its first frame is missing, the packet was refused because `clear_ahead` was incomplete.
        if let Some(rest) = rest
            && rest.term_offset() != frame.term_offset()
            && let Ok(frames) = rest.validate(term_length)
        {
            self.insert(&frames, self.extent(&rest, &frames));
        }
    }

    fn on_inserted(&mut self, extent: Extent, is_new: bool) {
        let Extent { position, end, .. } = extent;
        if is_new {
            self.cleared_to = self.cleared_to.max(end);
        }
        if is_new && position == self.rebuild_position && position == self.high_water_mark {
            // In order and without a gap before it: no scan is needed.
            self.rebuild_position = end;
            self.high_water_mark = end;
            self.spec.high_water_mark.set(end);
            self.spec.rebuild_position.set(end);
            return;
        }
        self.needs_scan |= is_new;
        if end > self.high_water_mark {
            self.needs_scan = true;
            self.high_water_mark = end;
            self.spec.high_water_mark.set(end);
        }
    }

    /// Clears the header slots between the last frame and this one, and the slot behind it. Returns false if the
    /// distance exceeds what is cleared at once (more than the longest message): clearing continues with later packets,
    /// and the sender is asked for the frame again.
    fn clear_ahead(&mut self, position: i64, end: i64) -> bool {
        if position > self.cleared_to {
            self.cleared_to = self.spec.log.clear_range(self.cleared_to, position);
        }
        if position > self.cleared_to {
            return false;
        }
        if end > self.cleared_to {
            self.spec.log.clear_slot(end);
        }
        true
    }

    fn on_activity(&mut self, origin: &FrameOrigin) {
        self.last_activity_ns = origin.now_ns;
        self.on_frame_beyond_window(origin);
    }

    /// Handles a frame beyond the window. It does not extend the liveness of the image. If padding led there, the
    /// padding is NAKed, and its arrival does. If the sender follows the status messages of other receivers only, it
    /// may no longer have what is missing here; the image must then time out so that a new one can join at the sender's
    /// position.
    fn on_frame_beyond_window(&mut self, origin: &FrameOrigin) {
        if !self.has_received {
            self.has_received = true;
            self.spec.shared.receiver_received();
        }
        self.setup_reply_budget.on_frame();
        self.connections.on_frame(origin);
    }
}
