// SPDX-License-Identifier: Apache-2.0
//! Gap repair: scans the term for gaps, then NAKs them (reliable) or fills them with padding (`reliable=false`)
//! (docs/spec/wire.md §5.5).

use taran_core::loss_report::LossEntry;
use taran_protocol::frame::{IntoBytes, Nak};
use taran_protocol::log::{self, CorruptFrame};

use super::image::{ImageContext, ReceiverImage};
use super::loss_detector::Gap;

/// Maximum bytes examined per scan, which bounds the work of a poll whatever position a heartbeat announces. Gaps
/// further ahead are found after this range has been repaired.
const MAX_SCAN_LENGTH: i32 = 256 * 1024;

/// State of an image's loss report entry.
#[derive(Debug)]
pub(super) struct LossRecord {
    /// Bytes before this position have been reported.
    reported_to: i64,
    entry: Entry,
}

#[derive(Debug)]
enum Entry {
    None,
    Open(LossEntry),
    /// The loss report has no room for another entry.
    ReportFull,
}

impl LossRecord {
    pub(super) fn new(join_position: i64) -> Self {
        Self {
            reported_to: join_position,
            entry: Entry::None,
        }
    }
}

/// The part of the current term that one scan examines, from the rebuild position.
struct ScanRange {
    offset: i32,
    /// No frame has been inserted at or beyond this offset.
    inserted_end: i32,
    limit: i32,
}

impl ReceiverImage {
    /// Scans for the first gap if a packet arrived out of order since the last scan.
    pub(super) fn scan_gaps(&mut self, context: &mut ImageContext<'_>) {
        if !self.needs_scan {
            return;
        }
        self.needs_scan = false;
        self.advance_rebuild_position();
        let gap = self.first_gap().unwrap_or_else(|error| {
            context
                .reporter
                .report_corrupt(context.now, &self.spec.channel, &error);
            None
        });
        self.loss_detector.on_gap_scanned(gap, context.now.nanos);
    }

    /// Advances the rebuild position over frames that have arrived, up to the first gap or corrupt frame. Readers may
    /// already have consumed these frames.
    pub(super) fn advance_rebuild_position(&mut self) {
        let before = self.rebuild_position;
        while let Some(ScanRange {
            offset,
            inserted_end,
            limit,
        }) = self.scan_range()
        {
            let Ok(end) = log::contiguous_end(
                self.spec.log.term_at(self.rebuild_position),
                offset,
                inserted_end,
            ) else {
                break;
            };
            let next = self.rebuild_position + i64::from(end - offset);
            // Overlapping frames of a broken sender can lead to positions where nothing may be written.
            if next > self.cleared_to && !self.is_reusable(next) {
                break;
            }
            self.rebuild_position = next;
            if end < limit {
                break;
            }
        }
        if self.rebuild_position == before {
            return;
        }
        self.spec.rebuild_position.set(self.rebuild_position);
        if self.rebuild_position > self.high_water_mark {
            // Overlapping frames of a broken sender can make the middle of a frame count as a frame.
            self.high_water_mark = self.rebuild_position;
            self.spec.high_water_mark.set(self.high_water_mark);
        }
        if self.rebuild_position > self.cleared_to {
            // Same cause: the slot behind such a frame must be cleared so that readers do not find stale frames.
            self.spec.log.clear_slot(self.rebuild_position);
            self.cleared_to = self.rebuild_position;
        }
    }

    fn scan_range(&self) -> Option<ScanRange> {
        let missing = self.high_water_mark - self.rebuild_position;
        if missing <= 0 {
            return None;
        }
        let offset = self.geometry.term_offset(self.rebuild_position);
        let in_term = self.geometry.term_length() - offset;
        let ahead = missing.min(i64::from(in_term.min(MAX_SCAN_LENGTH)));
        let cleared_to = (self.cleared_to - self.rebuild_position).clamp(0, ahead);
        Some(ScanRange {
            offset,
            inserted_end: offset + cleared_to as i32,
            limit: offset + ahead as i32,
        })
    }

    /// Returns the gap at the rebuild position, if the stream is known to continue beyond it.
    fn first_gap(&self) -> Result<Option<Gap>, CorruptFrame> {
        let Some(ScanRange {
            offset,
            inserted_end,
            limit,
        }) = self.scan_range()
        else {
            return Ok(None);
        };
        let found = log::find_gap(
            self.spec.log.term_at(self.rebuild_position),
            offset,
            inserted_end,
        )?;
        let end = match found.gap {
            Some(gap) if gap.offset + gap.length < inserted_end => gap.offset + gap.length,
            _ => limit,
        };
        Ok(Some(Gap {
            position: self.rebuild_position,
            length: end - offset,
        }))
    }

    /// NAKs or fills the gap if its deadline has passed. Returns the number of actions.
    pub(super) fn act_on_gap(&mut self, context: &mut ImageContext<'_>) -> usize {
        if self.is_revoked || self.rejection.is_some() {
            return 0;
        }
        let Some(gap) = self
            .loss_detector
            .poll(self.unanswered_naks, context.now.nanos)
        else {
            return 0;
        };
        self.unanswered_naks = self.unanswered_naks.saturating_add(1);
        self.record_loss(gap, context);
        if self.loss_detector.is_reliable() {
            self.send_nak(gap, context);
            self.naked = Some(gap);
            return 1;
        }
        usize::from(self.fill_gap(gap, context))
    }

    fn send_nak(&mut self, gap: Gap, context: &mut ImageContext<'_>) {
        let nak = Nak {
            header: Nak::header(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            term_id: self.geometry.term_id(gap.position).into(),
            term_offset: self.geometry.term_offset(gap.position).into(),
            length: gap.length.into(),
        };
        self.send_to_all(nak.as_bytes(), context);
        self.spec.naks_sent.increment();
        context.counters.naks_sent.increment();
    }

    /// Fills a gap with padding. Returns false if a frame is there.
    fn fill_gap(&mut self, gap: Gap, context: &ImageContext<'_>) -> bool {
        let end = gap.position + i64::from(gap.length);
        if end > self.cleared_to {
            self.cleared_to = self.spec.log.clear_range(self.cleared_to, end);
        }
        let term_id = self.geometry.term_id(gap.position);
        let gap = log::Gap {
            offset: self.geometry.term_offset(gap.position),
            length: gap.length,
        };
        let is_filled = log::fill_gap(&self.spec.log, term_id, gap);
        if is_filled {
            context.counters.loss_gap_fills.increment();
        }
        self.needs_scan = true;
        is_filled
    }

    /// Adds the gap to the loss report. Each missing byte is counted once.
    fn record_loss(&mut self, gap: Gap, context: &mut ImageContext<'_>) {
        let end = gap.position + i64::from(gap.length);
        let bytes = end - gap.position.max(self.loss_record.reported_to);
        if bytes <= 0 {
            return;
        }
        self.loss_record.reported_to = end;
        let now_ms = context.now.epoch_millis;
        match &mut self.loss_record.entry {
            Entry::Open(entry) => entry.record(bytes, now_ms),
            Entry::ReportFull => {}
            none @ Entry::None => {
                let spec = &self.spec;
                *none = context
                    .losses
                    .create_entry(
                        bytes,
                        now_ms,
                        spec.session_id,
                        spec.stream_id,
                        &spec.channel,
                        &spec.source_identity,
                    )
                    .map_or(Entry::ReportFull, Entry::Open);
            }
        }
    }
}
