//! How often an image answers a sender of which nothing but SETUPs came.
//!
//! Whoever forges a SETUP has status messages sent to somebody else. So each is worth a few only. A sender that lives
//! repeats it, or says more, before they are used up: every 100 ms.

/// Status messages for a SETUP, as long as no frame came.
const PER_SETUP: u32 = 3;

/// Status messages that may be sent; without limit once a frame came: its sender may be cut off, and has to be told
/// that it is heard when it is not.
#[derive(Debug)]
pub(super) struct SetupReplyBudget(Option<u32>);

impl SetupReplyBudget {
    /// A SETUP has just come.
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

    /// A frame came.
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
    fn a_setup_is_worth_three_status_messages_until_a_frame_comes() {
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
