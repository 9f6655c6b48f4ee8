// SPDX-License-Identifier: Apache-2.0
//! Schedule of RESPONSE_SETUP frames, which announce the session of a response stream (docs/spec/wire.md §2.10).

/// Session of the response stream; announced at once and then with each periodic status message.
#[derive(Debug, Default)]
pub(super) struct ResponseSetupSchedule {
    session_id: Option<i32>,
    is_new: bool,
}

impl ResponseSetupSchedule {
    /// Sets the session to announce; `None` stops announcing.
    pub(super) fn set(&mut self, session_id: Option<i32>) {
        self.is_new = session_id.is_some();
        self.session_id = session_id;
    }

    /// Returns true if an announcement is due; `is_overdue` is true when a periodic status message is due.
    #[inline]
    pub(super) fn is_due(&self, is_overdue: bool) -> bool {
        self.session_id.is_some() && (self.is_new || is_overdue)
    }

    /// Returns true if nothing is due before the next periodic status message.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_due(false)
    }

    /// Returns the session to announce.
    pub(super) fn take(&mut self) -> Option<i32> {
        self.is_new = false;
        self.session_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_is_due_at_once_and_then_periodically_until_unset() {
        let mut schedule = ResponseSetupSchedule::default();
        assert!(!schedule.is_due(true));
        schedule.set(Some(7));
        assert!(schedule.is_due(false) && !schedule.is_idle());
        assert_eq!(schedule.take(), Some(7));
        assert!(!schedule.is_due(false) && schedule.is_due(true));
        assert!(schedule.is_idle());
        schedule.set(None);
        assert!(!schedule.is_due(true));
        assert_eq!(schedule.take(), None);
    }
}
