// SPDX-License-Identifier: Apache-2.0
//! Limit on status messages sent in reply to SETUP frames alone.
//!
//! The source address of a SETUP can be forged, so that status messages go to a third party (reflection). Therefore
//! each SETUP pays for a few status messages only. A real sender repeats its SETUP or sends frames within 100 ms,
//! before the budget is exhausted.

/// Status messages per SETUP until the first frame arrives.
const PER_SETUP: u32 = 3;

/// Remaining status messages. `None` is unlimited, from the first frame on: the path from a sender may be interrupted
/// while it still depends on status messages.
#[derive(Debug)]
pub(super) struct SetupReplyBudget(Option<u32>);

impl SetupReplyBudget {
    /// Creates the budget for a SETUP that has just arrived.
    pub(super) fn new() -> Self {
        Self(Some(PER_SETUP))
    }

    pub(super) fn on_setup(&mut self) {
        self.0 = self.0.map(|_| PER_SETUP);
    }

    #[inline]
    pub(super) fn on_frame(&mut self) {
        self.0 = None;
    }

    /// Returns true once a frame has arrived.
    pub(super) fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0 == Some(0)
    }

    pub(super) fn consume(&mut self) {
        self.0 = self.0.map(|left| left.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_allows_three_status_messages_per_setup_until_first_frame() {
        let mut budget = SetupReplyBudget::new();
        let use_up = |budget: &mut SetupReplyBudget| {
            let mut count = 0;
            while !budget.is_exhausted() && count < 100 {
                budget.consume();
                count += 1;
            }
            count
        };
        assert_eq!((use_up(&mut budget), use_up(&mut budget)), (3, 0));
        budget.on_setup();
        assert_eq!(use_up(&mut budget), 3);
        budget.on_frame();
        budget.on_setup();
        assert_eq!(use_up(&mut budget), 100);
    }
}
