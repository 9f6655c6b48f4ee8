// SPDX-License-Identifier: Apache-2.0
//! Min flow control: the limit of the slowest receiver of all (`min`), or of those with a group tag (`tagged`)
//! (docs/spec/wire.md §4.4).

use super::super::liveness_table::LivenessTable;
use super::{FlowControl, StatusReport};
use crate::boundary::MinFlowControlSpec;

/// Min or tagged multicast flow control.
#[derive(Debug)]
#[doc(alias = "MinMulticastFlowControl")]
#[doc(alias = "TaggedMulticastFlowControl")]
pub(super) struct MinFlowControl {
    receivers: LivenessTable<Receiver>,
    spec: MinFlowControlSpec,
    /// True if a group member has requested a SETUP that was not sent yet.
    pending_join: bool,
    hold: Option<JoinHold>,
    next_deadline_ns: i64,
}

/// A group member: a receiver that the limit waits for.
#[derive(Debug)]
struct Receiver {
    id: i64,
    /// Consumption position.
    position: i64,
    /// Consumption position plus window.
    end: i64,
    is_leaving: bool,
}

/// Limit that holds while a receiver joins, so that the sender does not leave it behind.
#[derive(Clone, Copy, Debug)]
struct JoinHold {
    limit: i64,
    until_ns: i64,
}

impl MinFlowControl {
    pub(super) fn new(spec: MinFlowControlSpec) -> Self {
        Self {
            receivers: LivenessTable::expiring_after(spec.timeout_ns),
            spec,
            pending_join: false,
            hold: None,
            next_deadline_ns: i64::MIN,
        }
    }

    /// Returns true if receivers with this group tag are members: all with `min`, those with the tag with `tagged`.
    fn is_member(&self, group_tag: Option<i64>) -> bool {
        self.spec.group_tag.is_none() || group_tag == self.spec.group_tag
    }

    /// Returns the limit of the current hold.
    fn held(&mut self, now_ns: i64) -> i64 {
        if self.hold.is_some_and(|hold| hold.until_ns < now_ns) {
            self.hold = None;
        }
        self.hold.map_or(i64::MAX, |hold| hold.limit)
    }

    /// Updates a known member. Returns false if the receiver is not known.
    fn refresh(&mut self, report: &StatusReport, end: i64, now_ns: i64) -> bool {
        let known = self
            .receivers
            .refresh(now_ns, |receiver| receiver.id == report.receiver_id);
        let is_known = known.is_some();
        if let Some(receiver) = known {
            receiver.position = report.position;
            receiver.end = end;
            receiver.is_leaving = report.is_end_of_stream;
        }
        is_known
    }

    /// Adds a receiver. Returns false if there are too many.
    fn insert(&mut self, report: &StatusReport, end: i64, now_ns: i64) -> bool {
        let (mut count, log) = (self.receivers.len(), &self.spec.log);
        let id = report.receiver_id;
        let receiver = Receiver {
            id,
            position: report.position,
            end,
            is_leaving: false,
        };
        let is_added = self.receivers.insert(receiver, now_ns, |removed| {
            count -= 1;
            log.receiver_removed(removed.id, count);
        });
        if is_added {
            self.hold = None;
            self.update_count();
            self.spec.log.receiver_added(id, count + 1);
        }
        is_added
    }

    /// Returns true if a new receiver is at most its window behind the others, by its limit or by its position. By the
    /// limit alone, as the official drivers decide, a receiver with less than half of the others' window could never
    /// join, and a group that requires it would never connect.
    fn is_within_window(&self, report: &StatusReport, end: i64, slowest: i64) -> bool {
        let window = i64::from(report.window);
        let positions = self.receivers.iter().map(|receiver| receiver.position);
        let is_near = positions
            .min()
            .is_none_or(|last| report.position >= last - window);
        is_near || end >= slowest - window
    }

    /// Returns the limit of the slowest receiver, or of the hold if that is lower.
    fn slowest(&mut self, now_ns: i64) -> i64 {
        let ends = self.receivers.iter().map(|receiver| receiver.end);
        ends.min().unwrap_or(i64::MAX).min(self.held(now_ns))
    }

    /// Computes the time until which this limit is unchanged, if no status message arrives.
    fn update_deadline(&mut self, limit: i64, now_ns: i64) {
        let slowest = self.slowest(now_ns);
        let has_members = !self.receivers.is_empty() && self.has_required_receivers();
        let is_leaving = self.receivers.iter().any(|receiver| receiver.is_leaving);
        let stays = !is_leaving && (!has_members || slowest == limit);
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
        let is_member = self.is_member(report.group_tag);
        let is_known = is_member && self.refresh(report, end, now_ns);
        let mut slowest = self.slowest(now_ns);
        let is_new = is_member && !is_known && !report.is_end_of_stream;
        if is_new && self.is_within_window(report, end, slowest) && self.insert(report, end, now_ns)
        {
            slowest = slowest.min(end);
        }
        let next = if !self.has_required_receivers() {
            limit
        } else if self.receivers.is_empty() {
            limit.max(end)
        } else {
            limit.max(slowest)
        };
        self.update_deadline(next, now_ns);
        next
    }

    fn on_idle(&mut self, limit: i64, now_ns: i64) -> i64 {
        let (mut count, log) = (self.receivers.len(), &self.spec.log);
        let is_leaving = |receiver: &Receiver| receiver.is_leaving;
        let is_changed = self
            .receivers
            .remove_expired_or(now_ns, is_leaving, |removed| {
                count -= 1;
                log.receiver_removed(removed.id, count);
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
        self.update_deadline(next, now_ns);
        next
    }

    fn next_deadline_ns(&self) -> i64 {
        self.next_deadline_ns
    }

    fn on_setup_requested(&mut self, group_tag: Option<i64>) {
        self.pending_join |= self.is_member(group_tag);
    }

    fn on_requested_setup(&mut self, limit: i64, now_ns: i64) {
        if self.pending_join && !self.receivers.is_empty() {
            self.hold = Some(JoinHold {
                limit,
                until_ns: now_ns.saturating_add(self.spec.timeout_ns),
            });
            self.next_deadline_ns = i64::MIN;
        }
        self.pending_join = false;
    }

    fn on_error(&mut self, receiver_id: i64, _group_tag: Option<i64>, _now_ns: i64) {
        for receiver in self.receivers.iter_mut() {
            receiver.is_leaving |= receiver.id == receiver_id;
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

    struct Fixture {
        strategy: MinFlowControl,
        count: Counter,
        limit: i64,
        now_ns: i64,
    }

    impl Fixture {
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
                strategy: MinFlowControl::new(spec),
                count,
                limit: 0,
                now_ns: 0,
            }
        }

        /// Handles a status message; returns the new limit.
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
            self.on_status(&StatusReport {
                receiver_id,
                group_tag,
                position,
                window: WINDOW,
                is_end_of_stream,
            })
        }

        fn on_status(&mut self, report: &StatusReport) -> i64 {
            self.limit = self.strategy.on_status(report, self.limit, self.now_ns);
            self.limit
        }

        /// Calls `on_idle`; returns the new limit. Checks that nothing changes before the deadline, and that the next
        /// deadline is not in the past.
        fn idle(&mut self) -> i64 {
            let before = (self.limit, self.count.get());
            let is_early = self.now_ns <= self.strategy.next_deadline_ns();
            self.limit = self.strategy.on_idle(self.limit, self.now_ns);
            assert!(!is_early || (self.limit, self.count.get()) == before);
            assert!(
                self.now_ns <= self.strategy.next_deadline_ns(),
                "the next deadline is in the past"
            );
            self.limit
        }
    }

    #[test]
    fn limit_follows_slowest_receiver() {
        let mut fixture = Fixture::new(None, 0);
        assert_eq!(fixture.status(1, 0), 1_000);
        assert_eq!(fixture.status(2, 0), 1_000);
        assert_eq!(fixture.status(1, 500), 1_000);
        assert_eq!(fixture.status(2, 300), 1_300);
        assert_eq!(fixture.status(2, 900), 1_500);
        assert_eq!((fixture.idle(), fixture.count.get()), (1_500, 2));
    }

    #[test]
    fn receiver_silent_for_timeout_is_removed() {
        let mut fixture = Fixture::new(None, 0);
        fixture.status(1, 0);
        fixture.status(2, 0);
        fixture.now_ns = TIMEOUT;
        assert_eq!(fixture.status(1, 900), 1_000);
        assert_eq!(fixture.idle(), 1_000);
        fixture.now_ns += 1;
        assert_eq!((fixture.idle(), fixture.count.get()), (1_900, 1));
        fixture.now_ns += TIMEOUT;
        assert_eq!((fixture.idle(), fixture.count.get()), (1_900, 0));
    }

    #[test]
    fn receiver_with_end_of_stream_or_error_is_removed_on_idle() {
        let mut fixture = Fixture::new(None, 0);
        for id in 1..=3 {
            fixture.status(id, 0);
        }
        fixture.status(1, 700);
        assert_eq!(fixture.tagged(2, 200, None, true), 1_000);
        fixture.strategy.on_error(3, None, 0);
        assert_eq!((fixture.idle(), fixture.count.get()), (1_700, 1));
        // A repeated end of stream does not add the receiver again.
        fixture.tagged(2, 200, None, true);
        assert_eq!(fixture.count.get(), 1);
    }

    #[test]
    fn receiver_beyond_its_window_is_not_added() {
        let mut fixture = Fixture::new(None, 0);
        fixture.status(1, 5_000);
        assert_eq!(fixture.status(2, 3_999), 6_000);
        assert_eq!(fixture.count.get(), 1);
        assert_eq!(fixture.status(2, 4_000), 6_000);
        assert_eq!(fixture.count.get(), 2);
        assert_eq!(fixture.idle(), 5_000, "the limit goes back");
    }

    #[test]
    fn receiver_with_small_window_is_added_within_it() {
        let small = |position| StatusReport {
            receiver_id: 2,
            group_tag: None,
            position,
            window: WINDOW / 8,
            is_end_of_stream: false,
        };
        let mut fixture = Fixture::new(None, 2);
        fixture.status(1, 0);
        assert_eq!(fixture.on_status(&small(0)), 125);
        assert!(fixture.strategy.has_required_receivers());
        let mut fixture = Fixture::new(None, 0);
        fixture.status(1, 4_000);
        fixture.on_status(&small(3_874));
        assert_eq!(fixture.count.get(), 1);
        fixture.on_status(&small(3_875));
        assert_eq!((fixture.count.get(), fixture.idle()), (2, 4_000));
    }

    #[test]
    fn limit_without_required_receivers_is_unchanged() {
        let mut fixture = Fixture::new(None, 2);
        assert!(!fixture.strategy.has_required_receivers());
        assert_eq!(fixture.status(1, 500), 0);
        assert_eq!(fixture.status(2, 100), 1_100);
        assert!(fixture.strategy.has_required_receivers());
        fixture.tagged(2, 100, None, true);
        assert_eq!(fixture.idle(), 1_100);
        assert!(!fixture.strategy.has_required_receivers());
        assert_eq!(fixture.status(1, 5_000), 1_100);
    }

    #[test]
    fn tagged_ignores_receivers_without_group_tag() {
        let mut fixture = Fixture::new(Some(7), 1);
        assert_eq!(fixture.tagged(1, 500, None, false), 0);
        assert_eq!(fixture.tagged(2, 500, Some(8), false), 0);
        assert_eq!(fixture.tagged(3, 200, Some(7), false), 1_200);
        assert_eq!(fixture.tagged(1, 100, None, false), 1_200);
        assert_eq!((fixture.idle(), fixture.count.get()), (1_200, 1));
        // A status message without the tag does not refresh the receiver.
        fixture.tagged(3, 900, None, false);
        assert_eq!(fixture.idle(), 1_200);
    }

    #[test]
    fn tagged_without_members_follows_any_receiver() {
        let mut fixture = Fixture::new(Some(7), 0);
        assert_eq!(fixture.tagged(1, 500, None, false), 1_500);
        assert_eq!(fixture.tagged(2, 100, None, false), 1_500);
        assert_eq!(fixture.idle(), 1_500);
    }

    #[test]
    fn limit_is_held_while_receiver_joins() {
        for (tag, asks, is_held) in [
            (None, None, true),
            (Some(7), Some(7), true),
            (Some(7), None, false),
        ] {
            let mut fixture = Fixture::new(tag, 0);
            fixture.tagged(1, 0, tag, false);
            fixture.strategy.on_setup_requested(asks);
            fixture
                .strategy
                .on_requested_setup(fixture.limit, fixture.now_ns);
            fixture.tagged(1, 900, tag, false);
            let expected = if is_held { 1_000 } else { 1_900 };
            assert_eq!(fixture.idle(), expected, "{tag:?} {asks:?}");
            fixture.now_ns = TIMEOUT;
            fixture.tagged(1, 900, tag, false);
            assert_eq!(fixture.idle(), expected);
            fixture.now_ns += 1;
            assert_eq!(fixture.idle(), 1_900);
        }
    }

    #[test]
    fn hold_ends_when_receiver_has_joined() {
        let mut fixture = Fixture::new(None, 0);
        fixture.status(1, 0);
        fixture.strategy.on_setup_requested(None);
        fixture
            .strategy
            .on_requested_setup(fixture.limit, fixture.now_ns);
        fixture.status(1, 900);
        assert_eq!(fixture.idle(), 1_000);
        fixture.status(2, 850);
        assert_eq!(fixture.idle(), 1_850);
        // A SETUP without a request starts no hold.
        fixture
            .strategy
            .on_requested_setup(fixture.limit, fixture.now_ns);
        assert_eq!(fixture.idle(), 1_850);
    }

    #[test]
    fn receivers_with_forged_ids_are_bounded() {
        let mut fixture = Fixture::new(None, 0);
        for id in 0..10_000 {
            fixture.status(id, 0);
        }
        assert_eq!(fixture.count.get(), 1_024);
        assert!(fixture.strategy.take_rejected());
    }
}
