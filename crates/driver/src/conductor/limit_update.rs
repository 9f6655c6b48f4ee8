// SPDX-License-Identifier: Apache-2.0
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
    pub(crate) fn new(has_advanced: bool, is_raised: bool) -> Self {
        match (has_advanced, is_raised) {
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
pub(crate) fn poll_limits<T: Pollable>(
    schedule: &mut PollSchedule<T>,
    now_ns: i64,
    load: AgentLoad,
    mut update: impl FnMut(&mut T) -> LimitUpdate,
) -> usize {
    let mut raised = 0;
    schedule.poll(now_ns, load, |_, publication, _| {
        let outcome = update(publication);
        raised += outcome.work();
        outcome.is_busy()
    });
    raised
}
