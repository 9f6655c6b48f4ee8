//! Finding what is missing, and getting it or getting over it (docs/spec/wire.md §5.5).

use taran_core::loss_report::LossEntry;
use taran_protocol::frame::{IntoBytes, Nak};
use taran_protocol::log::{self, CorruptFrame};

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

/// The rest of the term that the rebuilt position is in, or as much of it as one scan looks at.
struct Ahead {
    offset: i32,
    /// Nothing has arrived at or beyond it.
    placed: i32,
    limit: i32,
}

impl ReceiverImage {
    /// Finds out what is missing.
    pub(super) fn rebuild(&mut self, link: &mut Link<'_>) {
        if !self.needs_scan {
            return;
        }
        self.needs_scan = false;
        self.follow();
        let gap = self.first_gap().unwrap_or_else(|error| {
            link.faults
                .report_corrupt(link.now, &self.spec.channel, &error);
            None
        });
        self.loss.found(gap, link.now.nanos);
    }

    /// Moves the rebuilt position over what has arrived, up to the first gap or corrupt frame: as far as readers may have
    /// come by now.
    pub(super) fn follow(&mut self) {
        let before = self.rebuilt;
        while let Some(Ahead {
            offset,
            placed,
            limit,
        }) = self.ahead()
        {
            let Ok(end) = log::follow(self.spec.log.term_at(self.rebuilt), offset, placed) else {
                break;
            };
            self.rebuilt += i64::from(end - offset);
            if end < limit {
                break;
            }
        }
        if self.rebuilt == before {
            return;
        }
        self.spec.rebuild_position.set(self.rebuilt);
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
    }

    fn ahead(&self) -> Option<Ahead> {
        let missing = self.high_water - self.rebuilt;
        if missing <= 0 {
            return None;
        }
        let offset = self.geometry.term_offset(self.rebuilt);
        let in_term = self.geometry.term_length() - offset;
        let ahead = missing.min(i64::from(in_term.min(STEP)));
        let vacant = (self.vacant - self.rebuilt).clamp(0, ahead);
        Some(Ahead {
            offset,
            placed: offset + vacant as i32,
            limit: offset + ahead as i32,
        })
    }

    /// The gap at the rebuilt position, if something is known to be beyond.
    fn first_gap(&self) -> Result<Option<Gap>, CorruptFrame> {
        let Some(Ahead {
            offset,
            placed,
            limit,
        }) = self.ahead()
        else {
            return Ok(None);
        };
        let found = log::find_gap(self.spec.log.term_at(self.rebuilt), offset, placed)?;
        let end = match found.gap {
            Some(gap) if gap.offset + gap.length < placed => gap.offset + gap.length,
            _ => limit,
        };
        Ok(Some(Gap {
            position: self.rebuilt,
            length: end - offset,
        }))
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
            return 1;
        }
        usize::from(self.fill(gap, link))
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

    /// Puts padding where nothing will come any more. False if something is there.
    fn fill(&mut self, gap: Gap, link: &Link<'_>) -> bool {
        let end = gap.position + i64::from(gap.length);
        if end > self.vacant {
            self.vacant = self.spec.log.vacate_range(self.vacant, end);
        }
        let term_id = self.geometry.term_id(gap.position);
        let gap = log::Gap {
            offset: self.geometry.term_offset(gap.position),
            length: gap.length,
        };
        let is_filled = log::fill_gap(&self.spec.log, term_id, gap);
        if is_filled {
            link.counters.loss_gap_fills.increment();
        }
        self.needs_scan = true;
        is_filled
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
