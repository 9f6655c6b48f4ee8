//! Finding what is missing, and getting it or getting over it (spec/02 §5.5).

use taran_core::loss_report::LossEntry;
use taran_protocol::frame::{IntoBytes, Nak};
use taran_protocol::log;

use super::image::{Link, ReceiverImage};
use super::loss::Gap;

/// How far one scan looks. What is missing beyond is found when that much is repaired; it bounds the work of a turn,
/// whatever a heartbeat claims.
const STEP: i32 = 256 * 1024;

/// What the loss report was told of an image.
#[derive(Debug)]
pub(super) struct LossRecord {
    /// Bytes before it are accounted for.
    until: i64,
    entry: Entry,
}

#[derive(Debug)]
enum Entry {
    None,
    Open(LossEntry),
    /// The report is full.
    NoRoom,
}

impl LossRecord {
    pub(super) fn new(join_position: i64) -> Self {
        Self {
            until: join_position,
            entry: Entry::None,
        }
    }
}

impl ReceiverImage {
    /// Moves the rebuilt position over what has arrived, up to the first gap.
    pub(super) fn rebuild(&mut self, link: &mut Link<'_>) {
        if !self.needs_scan {
            return;
        }
        self.needs_scan = false;
        let before = self.rebuilt;
        let term_length = self.geometry.term_length();
        let mut gap = None;
        while self.rebuilt < self.high_water && gap.is_none() {
            let offset = self.geometry.term_offset(self.rebuilt);
            let in_term = term_length - offset;
            let ahead = (self.high_water - self.rebuilt).min(i64::from(in_term.min(STEP)));
            // Nothing has arrived beyond what is vacant.
            let vacant = (self.vacant - self.rebuilt).clamp(0, ahead);
            let (limit, placed) = (offset + ahead as i32, offset + vacant as i32);
            match log::find_gap(self.spec.log.term_at(self.rebuilt), offset, placed) {
                Ok(found) => {
                    self.rebuilt += i64::from(found.offset - offset);
                    gap = missing(&found, placed, limit).map(|length| Gap {
                        position: self.rebuilt,
                        length,
                    });
                }
                Err(error) => {
                    link.faults
                        .report_corrupt(link.now, &self.spec.channel, &error);
                    break;
                }
            }
        }
        if self.rebuilt > self.high_water {
            // Frames of a broken sender lie over each other, so that something in the middle of one counts as a frame.
            self.high_water = self.rebuilt;
            self.spec.high_water_mark.set(self.high_water);
        }
        if self.rebuilt > self.vacant {
            // Such a frame again. Who has read so far already may have met old frames there.
            self.spec.log.vacate_slot(self.rebuilt);
            self.vacant = self.rebuilt;
        }
        if self.rebuilt != before {
            self.spec.rebuild_position.set(self.rebuilt);
        }
        self.loss.found(gap, link.now.nanos);
    }

    /// Acts on a gap that stays. Returns how much was done.
    pub(super) fn repair(&mut self, link: &mut Link<'_>) -> usize {
        if self.is_revoked || self.rejection.is_some() {
            return 0;
        }
        let Some(gap) = self.loss.due(self.unanswered, link.now.nanos) else {
            return 0;
        };
        self.unanswered = self.unanswered.saturating_add(1);
        self.record_loss(gap, link);
        if self.loss.is_reliable() {
            self.send_nak(gap, link);
        } else {
            self.fill(gap, link);
        }
        1
    }

    fn send_nak(&mut self, gap: Gap, link: &mut Link<'_>) {
        let nak = Nak {
            header: Nak::header(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            term_id: self.geometry.term_id(gap.position).into(),
            term_offset: self.geometry.term_offset(gap.position).into(),
            length: gap.length.into(),
        };
        self.send_to_all(nak.as_bytes(), link);
        self.spec.naks_sent.increment();
        link.counters.naks_sent.increment();
    }

    /// Puts padding where nothing will come any more.
    fn fill(&mut self, gap: Gap, link: &Link<'_>) {
        let end = gap.position + i64::from(gap.length);
        if end > self.vacant {
            self.vacant = self.spec.log.vacate_range(self.vacant, end);
        }
        let term_id = self.geometry.term_id(gap.position);
        let gap = log::Gap {
            offset: self.geometry.term_offset(gap.position),
            length: gap.length,
        };
        if log::fill_gap(&self.spec.log, term_id, gap) {
            link.counters.loss_gap_fills.increment();
        }
        self.needs_scan = true;
    }

    /// Each missing byte is reported once.
    fn record_loss(&mut self, gap: Gap, link: &mut Link<'_>) {
        let end = gap.position + i64::from(gap.length);
        let bytes = end - gap.position.max(self.loss_record.until);
        if bytes <= 0 {
            return;
        }
        self.loss_record.until = end;
        let now_ms = link.now.epoch_millis;
        match &mut self.loss_record.entry {
            Entry::Open(entry) => entry.record(bytes, now_ms),
            Entry::NoRoom => {}
            none @ Entry::None => {
                let spec = &self.spec;
                *none = link
                    .losses
                    .create_entry(
                        bytes,
                        now_ms,
                        spec.session_id,
                        spec.stream_id,
                        &spec.channel,
                        &spec.source_identity,
                    )
                    .map_or(Entry::NoRoom, Entry::Open);
            }
        }
    }
}

/// Bytes missing behind what was found in a term, of which something was placed before `placed`, up to `limit`.
fn missing(found: &log::Rebuilt, placed: i32, limit: i32) -> Option<i32> {
    match found.gap {
        Some(gap) if gap.offset + gap.length < placed => Some(gap.length),
        _ => Some(limit - found.offset).filter(|&length| length > 0),
    }
}
