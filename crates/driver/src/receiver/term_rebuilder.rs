//! From a datagram into the term buffer (docs/spec/wire.md §5.4).

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

/// The longest train.
const MAX_RUN_LENGTH: usize = 65_536;

/// What a packet says of itself, once it was walked.
#[derive(Clone, Copy)]
struct Extent {
    position: i64,
    /// Where its last frame ends, which for padding is further than what was sent.
    end: i64,
    wire_length: i64,
}

impl ReceiverImage {
    /// Several datagrams that lie back to back, taken as one packet: the common case of a fast stream, where everything
    /// is new and goes into the log in one pass. False if it is not that case; nothing happened then.
    pub(super) fn on_segment_run(
        &mut self,
        frame: &DataFrame<'_>,
        stride: usize,
        origin: &FrameOrigin,
    ) -> bool {
        let Ok(walk) = frame.validate_segments(self.geometry.term_length(), stride) else {
            return false;
        };
        if frame.is_heartbeat() {
            // What comes behind it is to be looked at, too.
            return false;
        }
        let extent = self.extent(frame, &walk);
        // At or beyond the high water mark no slot can be taken, so that looking at the first one is enough.
        if extent.position < self.high_water_mark
            || self.is_over_run(extent)
            || self.rejection.is_some()
        {
            return false;
        }
        self.on_activity(origin);
        self.insert(&walk, extent);
        true
    }

    /// Where the next train goes, if it carries on where the last one ended: room for what comes behind its first header,
    /// for the longest train. Nobody looks there before that header is in place, and nothing has been placed further on.
    /// There is none where the term ends before, and while something is missing.
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

    /// What was received there, of a train of `length` bytes.
    pub(super) fn direct_bytes(&self, length: usize) -> &[u8] {
        let offset = self.geometry.term_offset(self.high_water_mark) as usize;
        let term = self.spec.log.term_at(self.high_water_mark);
        term.bytes(offset + HEADER, length.saturating_sub(HEADER))
    }

    /// Such a train is there, `length` bytes with the first header. False if it is not what was expected, and nothing
    /// happened.
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
        if extent.position != position || self.is_over_run(extent) {
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
        let walk = frame
            .validate_segments(self.geometry.term_length(), stride)
            .ok()?;
        let extent = self.extent(&frame, &walk);
        // Subscribers map this memory, too. One that writes there while it is walked spoils what it reads itself, and must
        // not lead any further.
        let term_end =
            self.geometry.term_begin(extent.position) + i64::from(self.geometry.term_length());
        (extent.position < extent.end && extent.end <= term_end).then_some(extent)
    }

    fn extent(&self, frame: &DataFrame<'_>, walk: &ValidatedFrames<'_>) -> Extent {
        let position = self.geometry.position(frame.term_id(), walk.term_offset());
        Extent {
            position,
            end: position + i64::from(walk.length_in_term()),
            wire_length: walk.wire_length() as i64,
        }
    }

    /// One datagram of the stream.
    pub(super) fn on_packet(
        &mut self,
        frame: &DataFrame<'_>,
        origin: &FrameOrigin,
        counters: &ReceiverCounters,
    ) {
        let Ok(walk) = frame.validate(self.geometry.term_length()) else {
            counters.invalid_packets.increment();
            return;
        };
        let extent = self.extent(frame, &walk);
        let position = extent.position;
        if position < 0 || self.rejection.is_some() {
            return;
        }
        if self.is_over_run(extent) {
            counters.over_runs.increment();
        } else if frame.is_heartbeat() {
            self.on_heartbeat(frame, position, origin, counters);
        } else if position >= self.status_schedule.last_sent_position()
            || extent.end > self.rebuild_position
        {
            self.on_activity(origin);
            if !self.insert(&walk, extent) {
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
        // Where padding led beyond the window, and arrived, nothing is missing.
        if position <= self.overrun_threshold.max(self.rebuild_position) {
            self.on_activity(origin);
        } else {
            self.on_frame_beyond_window(origin);
        }
        if position > self.high_water_mark {
            self.high_water_mark = position;
            self.spec.high_water_mark.set(position);
            self.needs_scan = true;
        }
        if frame.is_end_of_stream() {
            self.on_end_of_stream(position, frame.is_revoked(), origin, counters);
        }
    }

    /// The stream ends when every transport that brings it says so.
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
        // The conductor ends the image: whoever it tells finds flag and position.
        if is_revoked {
            self.spec.shared.receiver_revoked();
        }
    }

    /// Beyond what the sender was invited to send. Counted as the sender counts: the body of padding is not sent, and
    /// nothing is written for it, so that padding may lead further, to the end of its term at most. Heartbeats tell where
    /// it led. They are heard also if the padding itself was lost: without them nobody would ask for it. Nothing leads
    /// to where somebody may still read.
    fn is_over_run(&mut self, extent: Extent) -> bool {
        if !self.is_reusable(extent.end) {
            return true;
        }
        if extent.end == extent.position {
            let term_begin = self.geometry.term_begin(self.overrun_threshold - 1);
            return extent.position > term_begin + i64::from(self.geometry.term_length());
        }
        extent.position + extent.wire_length > self.overrun_threshold
    }

    /// Into the log, unless it is there already. What readers may have come by is not touched, whatever it looks like:
    /// frames of a broken sender lie over each other. True if it is new.
    fn insert(&mut self, walk: &ValidatedFrames<'_>, extent: Extent) -> bool {
        self.unanswered_naks = 0;
        if self.needs_scan {
            self.advance_rebuild_position();
        }
        if extent.position < self.rebuild_position {
            return false;
        }
        let is_new = self.clear_ahead(extent.position, extent.end)
            && log::insert(self.spec.log.term_at(extent.position), walk);
        self.on_inserted(extent, is_new);
        is_new
    }

    /// A packet of which the beginning is there already. What is sent again need not be cut as it was at first, nor where
    /// this receiver misses it: somebody else may have asked for more.
    fn insert_tail(&mut self, frame: &DataFrame<'_>, extent: Extent) {
        let term_length = self.geometry.term_length();
        let term_begin = self.geometry.term_begin(extent.position);
        let term = self.spec.log.term_at(extent.position);
        let rest = frame.skip_while(|offset| {
            let position = term_begin + i64::from(offset);
            let is_placed = || !matches!(log::frame_at(term, offset), Ok(None));
            position < self.rebuild_position || (position < self.cleared_to && is_placed())
        });
        // Where nothing is there it was room that lacked.
        if let Some(rest) = rest
            && rest.term_offset() != frame.term_offset()
            && let Ok(walk) = rest.validate(term_length)
        {
            self.insert(&walk, self.extent(&rest, &walk));
        }
    }

    fn on_inserted(&mut self, extent: Extent, is_new: bool) {
        let Extent { position, end, .. } = extent;
        if is_new {
            self.cleared_to = self.cleared_to.max(end);
        }
        if is_new && position == self.rebuild_position && position == self.high_water_mark {
            // In order and nothing missing before: no scan has to find that out.
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

    /// Empties what lies between the last frame and this one, and the slot behind it. False where that is more than any
    /// message is long: it is done by and by, and the frame asked for again.
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

    /// The sender speaks, but of what lies beyond the window. If padding led there, the padding comes when it is asked
    /// for, and with it life. If the sender heeds others only, it may no longer have what is missing here: then the
    /// image has to time out, so that another one joins where the sender is now.
    fn on_frame_beyond_window(&mut self, origin: &FrameOrigin) {
        self.setup_reply_budget.on_frame();
        self.connections.on_frame(origin);
    }
}
