//! The slowest receiver counts: of all (`min`), or of those with a group tag (`tagged`) (docs/spec/wire.md §4.4).

use super::super::liveness_table::LivenessTable;
use super::{FlowControl, StatusReport};
use crate::boundary::MinFlowControlSpec;

#[derive(Debug)]
pub(super) struct MinFlowControl {
    receivers: LivenessTable<Receiver>,
    spec: MinFlowControlSpec,
    /// One that counts has asked for a SETUP that was not sent yet.
    is_joined_by_one: bool,
    hold: Option<Hold>,
    next_deadline_ns: i64,
}

/// One that counts.
#[derive(Debug)]
struct Receiver {
    id: i64,
    /// Up to where it has read.
    position: i64,
    /// Up to where it takes the stream.
    end: i64,
    has_left: bool,
}

/// The limit stays where it was when somebody joins, so that the sender does not run away from him.
#[derive(Clone, Copy, Debug)]
struct Hold {
    limit: i64,
    until_ns: i64,
}

impl MinFlowControl {
    pub(super) fn new(spec: MinFlowControlSpec) -> Self {
        Self {
            receivers: LivenessTable::expiring_after(spec.timeout_ns),
            spec,
            is_joined_by_one: false,
            hold: None,
            next_deadline_ns: i64::MIN,
        }
    }

    fn counts(&self, group_tag: Option<i64>) -> bool {
        self.spec.group_tag.is_none() || group_tag == self.spec.group_tag
    }

    /// No limit is above this for now.
    fn held(&mut self, now_ns: i64) -> i64 {
        if self.hold.is_some_and(|hold| hold.until_ns < now_ns) {
            self.hold = None;
        }
        self.hold.map_or(i64::MAX, |hold| hold.limit)
    }

    /// True if it is one of those that count already.
    fn hear(&mut self, report: &StatusReport, end: i64, now_ns: i64) -> bool {
        let known = self
            .receivers
            .refresh(now_ns, |receiver| receiver.id == report.receiver_id);
        let is_known = known.is_some();
        if let Some(receiver) = known {
            receiver.position = report.position;
            receiver.end = end;
            receiver.has_left = report.is_end_of_stream;
        }
        is_known
    }

    /// One more that counts, unless there are too many.
    fn admit(&mut self, report: &StatusReport, end: i64, now_ns: i64) -> bool {
        let (mut count, log) = (self.receivers.len(), &self.spec.log);
        let id = report.receiver_id;
        let receiver = Receiver {
            id,
            position: report.position,
            end,
            has_left: false,
        };
        let is_admitted = self.receivers.insert(receiver, now_ns, |gone| {
            count -= 1;
            log.receiver_removed(gone.id, count);
        });
        if is_admitted {
            self.hold = None;
            self.update_count();
            self.spec.log.receiver_added(id, count + 1);
        }
        is_admitted
    }

    /// Whether one more is at most its window behind those that are there, in where it takes the stream to or in where it
    /// has read. By the former alone, as the official drivers judge, nobody with less than half of the others' window could
    /// ever join, and a group that waits for him would wait forever.
    fn keeps_up(&self, report: &StatusReport, end: i64, slowest: i64) -> bool {
        let window = i64::from(report.window);
        let positions = self.receivers.iter().map(|receiver| receiver.position);
        let is_near = positions
            .min()
            .is_none_or(|last| report.position >= last - window);
        is_near || end >= slowest - window
    }

    /// Up to where those that count, and who holds it for one that joins, take the stream.
    fn slowest(&mut self, now_ns: i64) -> i64 {
        let ends = self.receivers.iter().map(|receiver| receiver.end);
        ends.min().unwrap_or(i64::MAX).min(self.held(now_ns))
    }

    /// Finds out until when this limit stays, if nobody speaks.
    fn settle(&mut self, limit: i64, now_ns: i64) {
        let slowest = self.slowest(now_ns);
        let counts = !self.receivers.is_empty() && self.has_required_receivers();
        let has_left = self.receivers.iter().any(|receiver| receiver.has_left);
        let stays = !has_left && (!counts || slowest == limit);
        let hold_ns = self.hold.map_or(i64::MAX, |hold| hold.until_ns);
        self.next_deadline_ns = if stays {
            self.receivers.unchanged_until_ns().min(hold_ns)
        } else {
            i64::MIN
        };
    }

    fn update_count(&self) {
        self.spec.receivers.set(self.receivers.len() as i64);
    }
}

impl FlowControl for MinFlowControl {
    fn on_status(&mut self, report: &StatusReport, limit: i64, now_ns: i64) -> i64 {
        let end = report.position + i64::from(report.window);
        let counts = self.counts(report.group_tag);
        let is_known = counts && self.hear(report, end, now_ns);
        let mut slowest = self.slowest(now_ns);
        let is_new = counts && !is_known && !report.is_end_of_stream;
        if is_new && self.keeps_up(report, end, slowest) && self.admit(report, end, now_ns) {
            slowest = slowest.min(end);
        }
        let next = if !self.has_required_receivers() {
            limit
        } else if self.receivers.is_empty() {
            limit.max(end)
        } else {
            limit.max(slowest)
        };
        self.settle(next, now_ns);
        next
    }

    fn on_idle(&mut self, limit: i64, now_ns: i64) -> i64 {
        let (mut count, log) = (self.receivers.len(), &self.spec.log);
        let has_left = |receiver: &Receiver| receiver.has_left;
        let is_changed = self.receivers.remove_expired_or(now_ns, has_left, |gone| {
            count -= 1;
            log.receiver_removed(gone.id, count);
        });
        if is_changed {
            self.update_count();
        }
        let slowest = self.slowest(now_ns);
        let next = if self.receivers.is_empty() || !self.has_required_receivers() {
            limit
        } else {
            slowest
        };
        self.settle(next, now_ns);
        next
    }

    fn next_deadline_ns(&self) -> i64 {
        self.next_deadline_ns
    }

    fn on_setup_requested(&mut self, group_tag: Option<i64>) {
        self.is_joined_by_one |= self.counts(group_tag);
    }

    fn on_requested_setup(&mut self, limit: i64, now_ns: i64) {
        if self.is_joined_by_one && !self.receivers.is_empty() {
            self.hold = Some(Hold {
                limit,
                until_ns: now_ns.saturating_add(self.spec.timeout_ns),
            });
            self.next_deadline_ns = i64::MIN;
        }
        self.is_joined_by_one = false;
    }

    fn on_error(&mut self, receiver_id: i64, _group_tag: Option<i64>, _now_ns: i64) {
        for receiver in self.receivers.iter_mut() {
            receiver.has_left |= receiver.id == receiver_id;
        }
        self.next_deadline_ns = i64::MIN;
    }

    fn has_required_receivers(&self) -> bool {
        self.receivers.len() >= self.spec.min_size
    }

    fn take_rejected(&mut self) -> bool {
        self.receivers.take_rejected()
    }

    fn retransmit_window_multiple(&self) -> i32 {
        self.spec.retransmit_window_multiple
    }
}

#[cfg(test)]
mod tests {
    use taran_core::counters::Counter;

    use super::*;

    const TIMEOUT: i64 = 5_000;
    const WINDOW: i32 = 1_000;

    struct Bench {
        slowest: MinFlowControl,
        count: Counter,
        limit: i64,
        now_ns: i64,
    }

    impl Bench {
        fn new(group_tag: Option<i64>, min_size: usize) -> Self {
            let count = Counter::detached();
            let spec = MinFlowControlSpec {
                group_tag,
                min_size,
                timeout_ns: TIMEOUT,
                retransmit_window_multiple: 4,
                receivers: count.clone(),
                log: crate::testing::stream_log(),
            };
            Self {
                slowest: MinFlowControl::new(spec),
                count,
                limit: 0,
                now_ns: 0,
            }
        }

        /// The limit after a status message.
        fn status(&mut self, receiver_id: i64, position: i64) -> i64 {
            self.tagged(receiver_id, position, None, false)
        }

        fn tagged(
            &mut self,
            receiver_id: i64,
            position: i64,
            group_tag: Option<i64>,
            is_end_of_stream: bool,
        ) -> i64 {
            self.hear(&StatusReport {
                receiver_id,
                group_tag,
                position,
                window: WINDOW,
                is_end_of_stream,
            })
        }

        fn hear(&mut self, report: &StatusReport) -> i64 {
            self.limit = self.slowest.on_status(report, self.limit, self.now_ns);
            self.limit
        }

        /// While it says that it need not be asked, nothing comes of it.
        fn idle(&mut self) -> i64 {
            let before = (self.limit, self.count.get());
            let idles = self.now_ns <= self.slowest.next_deadline_ns();
            self.limit = self.slowest.on_idle(self.limit, self.now_ns);
            assert!(!idles || (self.limit, self.count.get()) == before);
            assert!(
                self.now_ns <= self.slowest.next_deadline_ns(),
                "asked for once"
            );
            self.limit
        }
    }

    #[test]
    fn the_slowest_of_all_sets_the_limit() {
        let mut bench = Bench::new(None, 0);
        assert_eq!(bench.status(1, 0), 1_000);
        assert_eq!(bench.status(2, 0), 1_000);
        assert_eq!(bench.status(1, 500), 1_000);
        assert_eq!(bench.status(2, 300), 1_300);
        assert_eq!(bench.status(2, 900), 1_500);
        assert_eq!((bench.idle(), bench.count.get()), (1_500, 2));
    }

    #[test]
    fn who_is_silent_for_the_timeout_is_waited_for_no_longer() {
        let mut bench = Bench::new(None, 0);
        bench.status(1, 0);
        bench.status(2, 0);
        bench.now_ns = TIMEOUT;
        assert_eq!(bench.status(1, 900), 1_000);
        assert_eq!(bench.idle(), 1_000);
        bench.now_ns += 1;
        assert_eq!((bench.idle(), bench.count.get()), (1_900, 1));
        bench.now_ns += TIMEOUT;
        assert_eq!((bench.idle(), bench.count.get()), (1_900, 0));
    }

    #[test]
    fn who_leaves_or_rejects_the_stream_is_waited_for_until_the_next_idle_turn() {
        let mut bench = Bench::new(None, 0);
        for id in 1..=3 {
            bench.status(id, 0);
        }
        bench.status(1, 700);
        assert_eq!(bench.tagged(2, 200, None, true), 1_000);
        bench.slowest.on_error(3, None, 0);
        assert_eq!((bench.idle(), bench.count.get()), (1_700, 1));
        // One that has left does not come back by saying so again.
        bench.tagged(2, 200, None, true);
        assert_eq!(bench.count.get(), 1);
    }

    #[test]
    fn who_is_too_far_behind_is_not_admitted() {
        let mut bench = Bench::new(None, 0);
        bench.status(1, 5_000);
        assert_eq!(bench.status(2, 3_999), 6_000);
        assert_eq!(bench.count.get(), 1);
        assert_eq!(bench.status(2, 4_000), 6_000);
        assert_eq!(bench.count.get(), 2);
        assert_eq!(bench.idle(), 5_000, "the limit goes back");
    }

    #[test]
    fn a_small_window_keeps_nobody_out_who_is_no_more_than_that_behind() {
        let small = |position| StatusReport {
            receiver_id: 2,
            group_tag: None,
            position,
            window: WINDOW / 8,
            is_end_of_stream: false,
        };
        let mut bench = Bench::new(None, 2);
        bench.status(1, 0);
        assert_eq!(bench.hear(&small(0)), 125);
        assert!(bench.slowest.has_required_receivers());
        let mut bench = Bench::new(None, 0);
        bench.status(1, 4_000);
        bench.hear(&small(3_874));
        assert_eq!(bench.count.get(), 1);
        bench.hear(&small(3_875));
        assert_eq!((bench.count.get(), bench.idle()), (2, 4_000));
    }

    #[test]
    fn without_its_required_receivers_the_limit_stays() {
        let mut bench = Bench::new(None, 2);
        assert!(!bench.slowest.has_required_receivers());
        assert_eq!(bench.status(1, 500), 0);
        assert_eq!(bench.status(2, 100), 1_100);
        assert!(bench.slowest.has_required_receivers());
        bench.tagged(2, 100, None, true);
        assert_eq!(bench.idle(), 1_100);
        assert!(!bench.slowest.has_required_receivers());
        assert_eq!(bench.status(1, 5_000), 1_100);
    }

    #[test]
    fn only_receivers_of_the_group_count() {
        let mut bench = Bench::new(Some(7), 1);
        assert_eq!(bench.tagged(1, 500, None, false), 0);
        assert_eq!(bench.tagged(2, 500, Some(8), false), 0);
        assert_eq!(bench.tagged(3, 200, Some(7), false), 1_200);
        assert_eq!(bench.tagged(1, 100, None, false), 1_200);
        assert_eq!((bench.idle(), bench.count.get()), (1_200, 1));
        // The same receiver without its tag is not heard.
        bench.tagged(3, 900, None, false);
        assert_eq!(bench.idle(), 1_200);
    }

    #[test]
    fn as_long_as_nobody_is_required_and_nobody_counts_anybody_sets_the_limit() {
        let mut bench = Bench::new(Some(7), 0);
        assert_eq!(bench.tagged(1, 500, None, false), 1_500);
        assert_eq!(bench.tagged(2, 100, None, false), 1_500);
        assert_eq!(bench.idle(), 1_500);
    }

    #[test]
    fn the_limit_is_held_for_one_who_joins() {
        for (tag, asks, is_held) in [
            (None, None, true),
            (Some(7), Some(7), true),
            (Some(7), None, false),
        ] {
            let mut bench = Bench::new(tag, 0);
            bench.tagged(1, 0, tag, false);
            bench.slowest.on_setup_requested(asks);
            bench.slowest.on_requested_setup(bench.limit, bench.now_ns);
            bench.tagged(1, 900, tag, false);
            let expected = if is_held { 1_000 } else { 1_900 };
            assert_eq!(bench.idle(), expected, "{tag:?} {asks:?}");
            bench.now_ns = TIMEOUT;
            bench.tagged(1, 900, tag, false);
            assert_eq!(bench.idle(), expected);
            bench.now_ns += 1;
            assert_eq!(bench.idle(), 1_900);
        }
    }

    #[test]
    fn the_hold_ends_when_the_one_who_joins_is_there() {
        let mut bench = Bench::new(None, 0);
        bench.status(1, 0);
        bench.slowest.on_setup_requested(None);
        bench.slowest.on_requested_setup(bench.limit, bench.now_ns);
        bench.status(1, 900);
        assert_eq!(bench.idle(), 1_000);
        bench.status(2, 850);
        assert_eq!(bench.idle(), 1_850);
        // A SETUP that nobody of them asked for holds nothing.
        bench.slowest.on_requested_setup(bench.limit, bench.now_ns);
        assert_eq!(bench.idle(), 1_850);
    }

    #[test]
    fn invented_receivers_do_not_fill_memory() {
        let mut bench = Bench::new(None, 0);
        for id in 0..10_000 {
            bench.status(id, 0);
        }
        assert_eq!(bench.count.get(), 1_024);
        assert!(bench.slowest.take_rejected());
    }
}
