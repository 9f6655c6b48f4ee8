//! What the sender of requests is told of their answers (docs/spec/wire.md §2.10).

/// The session under which a stream is answered, told at once and then at the pace of status messages.
#[derive(Debug, Default)]
pub(super) struct ResponseSetupSchedule {
    session_id: Option<i32>,
    is_new: bool,
}

impl ResponseSetupSchedule {
    /// From now on, or no longer.
    pub(super) fn set(&mut self, session_id: Option<i32>) {
        self.is_new = session_id.is_some();
        self.session_id = session_id;
    }

    /// Whether to tell it now; `is_overdue` when a regular status message is to be sent.
    #[inline]
    pub(super) fn is_due(&self, is_overdue: bool) -> bool {
        self.session_id.is_some() && (self.is_new || is_overdue)
    }

    /// Whether there is nothing to tell before a regular status message.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_due(false)
    }

    /// What to tell.
    pub(super) fn take(&mut self) -> Option<i32> {
        self.is_new = false;
        self.session_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_once_and_then_repeated_until_it_is_known() {
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
