// SPDX-License-Identifier: Apache-2.0
//! Schedule of status messages (docs/spec/wire.md §5.6).
//!
//! [`StatusMessageSchedule::advance`] is called when the position or the window changes; while
//! [`StatusMessageSchedule::is_due`] returns true a message should be sent, followed by
//! [`StatusMessageSchedule::on_sent`].

/// Decides when an image sends a status message, and with what position and window.
#[derive(Debug)]
pub(super) struct StatusMessageSchedule {
    /// Position in the next message.
    position: i64,
    window: i32,
    /// Maximum datagram length of the sender.
    mtu: i32,
    /// Position in the last message sent.
    last_sent_position: i64,
    is_scheduled: bool,
    deadline_ns: i64,
    timeout_ns: i64,
}

impl StatusMessageSchedule {
    pub(super) fn new(join_position: i64, window: i32, mtu: i32, timeout_ns: i64) -> Self {
        Self {
            position: join_position,
            window,
            mtu,
            last_sent_position: join_position,
            is_scheduled: false,
            deadline_ns: 0,
            timeout_ns,
        }
    }

    /// Makes the first message due at once.
    pub(super) fn start(&mut self, now_ns: i64) {
        self.deadline_ns = now_ns - 1;
    }

    pub(super) fn position(&self) -> i64 {
        self.position
    }

    pub(super) fn window(&self) -> i32 {
        self.window
    }

    /// Returns the maximum datagram length of the sender.
    pub(super) fn mtu(&self) -> i32 {
        self.mtu
    }

    /// Returns the position in the last message sent.
    pub(super) fn last_sent_position(&self) -> i64 {
        self.last_sent_position
    }

    /// Schedules a message if the position advanced by more than a quarter of the window, the window changed, or
    /// `is_urgent` is set. Returns true if it did. If the window is little longer than a datagram, the step is less
    /// than a quarter: otherwise the sender would wait for room for its next frame and the receiver for that frame,
    /// forever.
    pub(super) fn advance(&mut self, position: i64, window: i32, is_urgent: bool) -> bool {
        let step = (self.window / 4).min(self.window - self.mtu).max(0);
        let is_far = position > self.position + i64::from(step);
        let is_due = is_far || window != self.window || is_urgent;
        if is_due {
            self.position = self.position.max(position);
            self.window = window;
            self.is_scheduled = true;
        }
        is_due
    }

    /// Makes a message due at once.
    pub(super) fn schedule_now(&mut self) {
        self.is_scheduled = true;
    }

    pub(super) fn is_due(&self, now_ns: i64) -> bool {
        self.is_scheduled || self.is_overdue(now_ns)
    }

    /// Returns true if the next message differs from the last one or was requested.
    pub(super) fn has_changed(&self) -> bool {
        self.is_scheduled
    }

    /// Returns the time until which no message is due, as far as known now.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        if self.is_scheduled {
            i64::MIN
        } else {
            self.deadline_ns
        }
    }

    /// Returns true if the status message interval has passed without a message.
    pub(super) fn is_overdue(&self, now_ns: i64) -> bool {
        now_ns > self.deadline_ns
    }

    pub(super) fn on_sent(&mut self, now_ns: i64) {
        self.last_sent_position = self.position;
        self.is_scheduled = false;
        self.deadline_ns = now_ns + self.timeout_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: i64 = 200_000_000;

    fn started() -> StatusMessageSchedule {
        let mut schedule = StatusMessageSchedule::new(1024, 4096, 1408, TIMEOUT_NS);
        schedule.start(0);
        schedule
    }

    #[test]
    fn is_due_first_message_at_once_and_next_after_timeout() {
        let mut schedule = started();
        assert!(schedule.is_due(0));
        schedule.on_sent(0);
        assert!(!schedule.is_due(TIMEOUT_NS));
        assert!(schedule.is_due(TIMEOUT_NS + 1));
    }

    #[test]
    fn advance_by_more_than_quarter_window_schedules_message() {
        let mut schedule = started();
        schedule.on_sent(0);
        assert!(!schedule.advance(1024 + 1024, 4096, false));
        assert!(schedule.advance(1024 + 1056, 4096, false));
        assert!(schedule.is_due(1));
        assert_eq!(schedule.last_sent_position(), 1024);
        schedule.on_sent(1);
        assert_eq!(schedule.last_sent_position(), 2080);
    }

    #[test]
    fn advance_with_window_near_mtu_schedules_message_for_small_step() {
        let mut schedule = StatusMessageSchedule::new(1024, 4096, 4096, TIMEOUT_NS);
        assert!(!schedule.advance(1024, 4096, false));
        assert!(schedule.advance(1024 + 32, 4096, false));
        let mut schedule = StatusMessageSchedule::new(1024, 4096, 3584, TIMEOUT_NS);
        assert!(!schedule.advance(1024 + 512, 4096, false));
        assert!(schedule.advance(1024 + 544, 4096, false));
    }

    #[test]
    fn advance_with_new_window_or_urgency_schedules_message_and_position_is_monotonic() {
        let mut schedule = started();
        schedule.on_sent(0);
        assert!(schedule.advance(0, 8192, false));
        assert_eq!((schedule.position(), schedule.window()), (1024, 8192));
        schedule.on_sent(0);
        assert!(schedule.advance(1056, 8192, true));
        assert_eq!(schedule.position(), 1056);
    }
}
