//! How often an image answers a sender of which nothing but SETUPs came.
//!
//! Whoever forges a SETUP has status messages sent to somebody else. So each is worth a few only. A sender that lives
//! repeats it, or says more, before they are used up: every 100 ms.

/// Status messages for a SETUP, as long as no frame came.
const PER_SETUP: u32 = 3;

/// Status messages that may be sent; without limit once a frame came: its sender may be cut off, and has to be told
/// that it is heard when it is not.
#[derive(Debug)]
pub(super) struct Credit(Option<u32>);

impl Credit {
    /// A SETUP has just come.
    pub(super) fn new() -> Self {
        Self(Some(PER_SETUP))
    }

    pub(super) fn setup_came(&mut self) {
        self.0 = self.0.map(|_| PER_SETUP);
    }

    #[inline]
    pub(super) fn frame_came(&mut self) {
        self.0 = None;
    }

    /// A frame came.
    pub(super) fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.0 == Some(0)
    }

    pub(super) fn status_went(&mut self) {
        self.0 = self.0.map(|left| left.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_worth_three_status_messages_until_a_frame_comes() {
        let mut credit = Credit::new();
        let use_up = |credit: &mut Credit| {
            let mut count = 0;
            while !credit.is_used_up() && count < 100 {
                credit.status_went();
                count += 1;
            }
            count
        };
        assert_eq!((use_up(&mut credit), use_up(&mut credit)), (3, 0));
        credit.setup_came();
        assert_eq!(use_up(&mut credit), 3);
        credit.frame_came();
        credit.setup_came();
        assert_eq!(use_up(&mut credit), 100);
    }
}
