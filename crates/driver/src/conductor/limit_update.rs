//! Outcome of a limit update.

use crate::poll_schedule::{AgentLoad, PollSchedule, Pollable};

/// Outcome of an update of a publisher limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitUpdate {
    /// Neither the publisher nor the limit moved.
    Idle,
    /// The publisher advanced.
    PublisherAdvanced,
    /// The limit was raised.
    LimitRaised,
}

impl LimitUpdate {
    /// Returns the outcome; a raised limit takes precedence over an advanced publisher.
    pub(crate) fn new(published: bool, raised: bool) -> Self {
        match (published, raised) {
            (_, true) => Self::LimitRaised,
            (true, false) => Self::PublisherAdvanced,
            (false, false) => Self::Idle,
        }
    }

    /// Returns the amount of work for the duty cycle: 1 if the limit was raised.
    pub(crate) fn work(self) -> usize {
        usize::from(self == Self::LimitRaised)
    }

    /// Returns true if the publication is likely to move again soon.
    pub(crate) fn is_busy(self) -> bool {
        self != Self::Idle
    }
}

/// Polls the scheduled publications with `update`. Returns the number of limits raised.
pub(crate) fn turn<T: Pollable>(
    rounds: &mut PollSchedule<T>,
    now_ns: i64,
    pace: AgentLoad,
    look: impl Fn(&mut T) -> LimitUpdate,
) -> usize {
    let mut raised = 0;
    rounds.poll(now_ns, pace, |_, publication, _| {
        let motion = look(publication);
        raised += motion.work();
        motion.is_busy()
    });
    raised
}
