//! Which bytes of a term go out next, and cut how.

use taran_core::memory::Region;
use taran_core::sync::Ordering;
use taran_protocol::log::{self, CorruptFrame, RunLimit, Scan};

/// Most runs of one plan: what a single batched send takes.
pub(super) const MAX_RUNS: usize = 16;

/// Most bytes of one plan: about what one offloaded send carries, and not less than the largest datagram.
pub(super) const TURN_BYTES: i32 = 65_504;

/// A run of datagrams, and where it lies in the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) offset: usize,
    pub(super) frames: log::SegmentRun,
}

/// What bounds a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes that flow control (or the NAK) allows.
    pub(super) window: i64,
    /// Largest datagram.
    pub(super) mtu: i32,
    /// Most datagrams.
    pub(super) datagrams: i32,
}

/// The runs of one plan, in the order of the stream, all from one term.
#[derive(Debug)]
pub(super) struct Plan {
    runs: [Run; MAX_RUNS],
    count: usize,
    bytes: usize,
    is_blocked: bool,
    is_full: bool,
}

impl Plan {
    /// Takes all that is committed in `term` from `offset` on, within the bounds. Each datagram packs as many whole
    /// frames as fit; nothing waits to fill one (docs/spec/wire.md §3.4).
    ///
    /// # Errors
    /// The first frame is corrupt, or larger than any datagram. A later one is met again as the first one.
    pub(super) fn scan(term: &Region, offset: i32, bounds: Bounds) -> Result<Self, CorruptFrame> {
        let none = Run {
            offset: 0,
            frames: log::SegmentRun {
                length: 0,
                segment: 0,
                padding: 0,
            },
        };
        let mut plan = Self {
            runs: [none; MAX_RUNS],
            count: 0,
            bytes: 0,
            is_blocked: false,
            is_full: false,
        };
        let mut at = offset;
        // Padding takes 32 bytes of the limit that it is under, but all of its length of the limits of what follows.
        let mut window = bounds.window;
        let mut bytes = TURN_BYTES;
        let mut datagrams = bounds.datagrams;
        while plan.count < MAX_RUNS && datagrams > 0 && window > 0 && at < term.len() as i32 {
            let limit = RunLimit {
                datagram: bounds.mtu,
                window: window.min(i64::from(bytes)) as i32,
                datagrams,
                bytes,
            };
            match log::scan_run(term, at, &limit) {
                Ok(Scan::Ready(frames)) => {
                    plan.runs[plan.count] = Run {
                        offset: at as usize,
                        frames,
                    };
                    plan.count += 1;
                    plan.bytes += frames.length as usize;
                    at += frames.advance();
                    window -= i64::from(frames.advance());
                    bytes -= frames.length;
                    datagrams -= frames.datagrams();
                }
                Ok(Scan::OverLimit) if plan.count == 0 && window >= i64::from(bounds.mtu) => {
                    let length = term.atomic_i32(at as usize).load(Ordering::Acquire);
                    return Err(CorruptFrame { offset: at, length });
                }
                Ok(Scan::OverLimit) => {
                    plan.is_blocked = plan.count == 0;
                    break;
                }
                Err(error) if plan.count == 0 => return Err(error),
                Ok(Scan::Empty) | Err(_) => break,
            }
        }
        plan.is_full = bytes < bounds.mtu || datagrams == 0 || plan.count == MAX_RUNS;
        Ok(plan)
    }

    /// Whether there is anything to plan at `offset`. A plan has room for many runs, which most looks have no use for.
    pub(super) fn is_worth_making(term: &Region, offset: i32) -> bool {
        // Acquires the release of the length by whoever committed the frame.
        term.atomic_i32(offset as usize).load(Ordering::Acquire) > 0
    }

    /// Nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Nothing to send because the first frame is larger than what the bounds allow.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Ended by what one plan holds, not by what there is.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Bytes on the wire.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs[..self.count]
    }

    /// Its only datagram, if there is no more.
    pub(super) fn lone(&self) -> Option<&Run> {
        match self.runs() {
            [run] if run.frames.length <= run.frames.segment && !self.is_full => Some(run),
            _ => None,
        }
    }

    /// How far the stream moves when the first `accepted` bytes of the plan went out.
    pub(super) fn advance(&self, accepted: usize) -> i64 {
        let mut left = accepted as i64;
        let mut moved = 0;
        for run in self.runs() {
            if left < i64::from(run.frames.length) {
                return moved + left;
            }
            left -= i64::from(run.frames.length);
            moved += i64::from(run.frames.advance());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use taran_protocol::position::align32;

    use super::*;

    const ALL: Bounds = Bounds {
        window: 1 << 20,
        mtu: 1408,
        datagrams: 1024,
    };

    /// A term of 64 KiB with frames of these lengths; a negative length is padding.
    fn term(lengths: &[i32]) -> Region {
        let term = Region::anonymous(65_536).unwrap();
        let mut at = 0;
        for &length in lengths {
            let kind = i32::from(length > 0);
            term.atomic_i32(at + 4)
                .store(kind << 16 | 0xC000, Ordering::Relaxed);
            term.atomic_i32(at).store(length.abs(), Ordering::Release);
            at += align32(length.abs()) as usize;
        }
        term
    }

    fn runs(plan: &Plan) -> Vec<(usize, i32, i32, i32)> {
        plan.runs()
            .iter()
            .map(|run| {
                (
                    run.offset,
                    run.frames.length,
                    run.frames.segment,
                    run.frames.padding,
                )
            })
            .collect()
    }

    #[test]
    fn an_empty_term_gives_an_empty_plan() {
        let plan = Plan::scan(&term(&[]), 0, ALL).unwrap();
        assert!(plan.is_empty() && !plan.is_blocked());
    }

    #[test]
    fn equal_datagrams_become_one_run_with_a_short_tail() {
        // 320 bytes each in the log: four to a datagram.
        let plan = Plan::scan(&term(&[320; 10]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 3200, 1280, 0)]);
        assert_eq!(plan.advance(3200), 3200);
        assert_eq!(plan.advance(1280), 1280);
    }

    #[test]
    fn a_longer_datagram_opens_a_new_run() {
        let plan = Plan::scan(&term(&[1000, 1400, 1400, 64, 1400]), 0, ALL).unwrap();
        assert_eq!(
            runs(&plan),
            [
                (0, 1024, 1024, 0),
                (1024, 2880, 1408, 0),
                (3904, 1408, 1408, 0)
            ]
        );
        assert_eq!(plan.bytes(), 5312);
    }

    #[test]
    fn padding_sends_its_header_and_moves_the_stream_by_all_of_it() {
        let plan = Plan::scan(&term(&[37, -640, 37]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608), (704, 64, 64, 0)]);
        assert_eq!(
            (plan.advance(64), plan.advance(96), plan.advance(160)),
            (64, 704, 768)
        );
    }

    #[test]
    fn the_scan_ends_with_the_term() {
        let plan = Plan::scan(&term(&[-65_536]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 32, 32, 65_504)]);
        assert_eq!(plan.advance(32), 65_536);
    }

    #[test]
    fn the_window_bounds_the_sum_and_a_frame_beyond_it_blocks() {
        let plan = Plan::scan(
            &term(&[320; 10]),
            0,
            Bounds {
                window: 1500,
                ..ALL
            },
        )
        .unwrap();
        assert_eq!(runs(&plan), [(0, 1280, 1280, 0)]);
        let plan = Plan::scan(&term(&[320; 10]), 0, Bounds { window: 319, ..ALL }).unwrap();
        assert!(plan.is_empty() && plan.is_blocked());
    }

    #[test]
    fn a_frame_that_no_datagram_can_hold_is_corrupt_once_it_is_the_first() {
        let plan = Plan::scan(&term(&[64, 1440]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 64, 64, 0)]);
        let error = Plan::scan(&term(&[64, 1440]), 64, ALL).unwrap_err();
        assert_eq!((error.offset, error.length), (64, 1440));
    }

    #[test]
    fn nothing_follows_padding_that_leads_beyond_the_window() {
        let bounds = |window| Bounds { window, ..ALL };
        let term = term(&[64, -640, 64]);
        let plan = Plan::scan(&term, 0, bounds(704)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608)]);
        let plan = Plan::scan(&term, 0, bounds(767)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608)]);
        let plan = Plan::scan(&term, 0, bounds(768)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608), (704, 64, 64, 0)]);
    }

    #[test]
    fn the_number_of_datagrams_is_bounded() {
        let plan = Plan::scan(
            &term(&[320; 40]),
            0,
            Bounds {
                datagrams: 2,
                ..ALL
            },
        )
        .unwrap();
        assert_eq!(runs(&plan), [(0, 2560, 1280, 0)]);
        assert!(plan.is_full());
    }

    #[test]
    fn no_more_runs_than_one_send_takes() {
        let mut lengths = Vec::new();
        for step in 0..20 {
            lengths.extend([800 + 32 * step, 1400]);
        }
        let plan = Plan::scan(&term(&lengths), 0, ALL).unwrap();
        assert_eq!(plan.runs().len(), MAX_RUNS);
        assert!(plan.is_full());
    }

    #[test]
    fn no_more_bytes_than_one_offloaded_send_carries() {
        let whole = 65_536 / 32;
        let plan = Plan::scan(&term(&vec![32; whole]), 0, ALL).unwrap();
        assert_eq!(plan.bytes(), TURN_BYTES as usize);
        assert!(plan.is_full());
        let plan = Plan::scan(&term(&vec![32; whole - 50]), 0, ALL).unwrap();
        assert!(!plan.is_full(), "there is room for another datagram");
    }

    #[test]
    fn a_frame_length_that_leads_out_of_the_term_is_not_followed() {
        for length in [65_537, i32::MAX, i32::MAX - 31, 31, 1] {
            let plan = Plan::scan(&term(&[64, length]), 0, ALL).unwrap();
            assert_eq!(runs(&plan), [(0, 64, 64, 0)], "{length}");
        }
    }
}
