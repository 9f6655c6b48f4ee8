// SPDX-License-Identifier: Apache-2.0
//! Orderly end of all members (`docs/spec/cluster.md` §9.3).

use std::collections::BTreeSet;

use crate::consensus::{MemberId, Nanos};

/// A step of the termination of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminationStep {
    /// End the services.
    EndServices {
        /// Position of the log at which all members end.
        position: i64,
    },
    /// Tell the leader that the services have ended, and call [`Termination::acknowledged`] when that is sent.
    Acknowledge {
        /// Term of the leader that asked for the termination.
        term: i64,
        /// Position of the log at which all members end.
        position: i64,
    },
    /// End the member.
    End {
        /// Position of the log at which all members end.
        position: i64,
    },
}

/// Progress of a member that is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminationInput {
    /// Monotonic time.
    pub now: Nanos,
    /// Position up to which the member has consumed the log.
    pub consumed: i64,
    /// A snapshot is due or being taken.
    pub is_taking_snapshot: bool,
    /// The services have ended.
    pub has_ended_services: bool,
}

/// Termination of one member.
///
/// **Input**: [`begin`](Self::begin) on the leader or [`request`](Self::request) on a follower, acknowledgements of followers
/// ([`on_ack`](Self::on_ack)), and the member's progress ([`step`](Self::step)). **Output**: the steps, each once.
#[derive(Clone, Debug)]
pub struct Termination {
    timeout: Nanos,
    ending: Option<Ending>,
}

#[derive(Clone, Debug)]
struct Ending {
    term: i64,
    position: i64,
    stage: Stage,
    /// Followers whose acknowledgement a leader awaits; a follower awaits none.
    awaited: BTreeSet<MemberId>,
    is_leader: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Consuming,
    EndingServices,
    /// The leader awaits acknowledgements until then.
    Awaiting(Nanos),
    Acknowledging,
    Ended,
}

impl Termination {
    /// Creates a member that is not asked to end. A leader waits `timeout` for its followers.
    #[must_use]
    pub const fn new(timeout: Nanos) -> Self {
        Self {
            timeout,
            ending: None,
        }
    }

    /// Ends all members at a position of the leader's log. A second request is ignored.
    pub fn begin(&mut self, term: i64, position: i64, followers: impl Iterator<Item = MemberId>) {
        if self.ending.is_none() {
            self.ending = Some(Ending {
                term,
                position,
                stage: Stage::Consuming,
                awaited: followers.collect(),
                is_leader: true,
            });
        }
    }

    /// Takes the request of a leader. A second request is ignored.
    pub fn request(&mut self, term: i64, position: i64) {
        if self.ending.is_none() {
            self.ending = Some(Ending {
                term,
                position,
                stage: Stage::Consuming,
                awaited: BTreeSet::new(),
                is_leader: false,
            });
        }
    }

    /// Takes the acknowledgement of a follower.
    pub fn on_ack(&mut self, member: MemberId, position: i64) {
        if let Some(ending) = &mut self.ending
            && ending.position <= position
        {
            ending.awaited.remove(&member);
        }
    }

    /// Notes that the acknowledgement of this follower was sent.
    pub fn acknowledged(&mut self) {
        if let Some(ending) = &mut self.ending
            && ending.stage == Stage::Acknowledging
        {
            ending.stage = Stage::Ended;
        }
    }

    /// Returns true once the member is asked to end.
    #[must_use]
    pub const fn is_requested(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns true if this member has asked all to end, as the leader of `term`. A leader that inherits the request of another
    /// one has no part in it: that request ends nothing unless its log reaches the position.
    #[must_use]
    pub fn is_begun_in(&self, term: Option<i64>) -> bool {
        let ending = self.ending.as_ref();
        ending.is_some_and(|ending| ending.is_leader && Some(ending.term) == term)
    }

    /// Returns the next step, if there is one now.
    pub fn step(&mut self, input: &TerminationInput) -> Option<TerminationStep> {
        let ending = self.ending.as_mut()?;
        let position = ending.position;
        match ending.stage {
            Stage::Consuming if input.consumed < position || input.is_taking_snapshot => None,
            Stage::Consuming => {
                ending.stage = Stage::EndingServices;
                Some(TerminationStep::EndServices { position })
            }
            Stage::EndingServices if !input.has_ended_services => None,
            Stage::EndingServices if ending.is_leader => {
                ending.stage = Stage::Awaiting(input.now.saturating_add(self.timeout));
                self.step(input)
            }
            Stage::EndingServices => {
                ending.stage = Stage::Acknowledging;
                self.step(input)
            }
            Stage::Acknowledging => Some(TerminationStep::Acknowledge {
                term: ending.term,
                position,
            }),
            Stage::Awaiting(deadline) if !ending.awaited.is_empty() && input.now < deadline => None,
            Stage::Awaiting(_) | Stage::Ended => Some(TerminationStep::End { position }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now: Nanos, consumed: i64) -> TerminationInput {
        TerminationInput {
            now,
            consumed,
            is_taking_snapshot: false,
            has_ended_services: true,
        }
    }

    #[test]
    fn request_of_another_leader_is_not_begun_by_this_one() {
        let mut inherited = Termination::new(1_000);
        inherited.request(3, 960);
        assert!(inherited.is_requested());
        assert!(!inherited.is_begun_in(Some(3)) && !inherited.is_begun_in(Some(4)));
        let mut own = Termination::new(1_000);
        own.begin(3, 960, [1, 2].into_iter());
        assert!(own.is_begun_in(Some(3)));
        assert!(!own.is_begun_in(Some(4)), "a later term");
    }

    #[test]
    fn leader_ends_when_all_followers_have_acknowledged() {
        let mut leader = Termination::new(100);
        assert_eq!(leader.step(&at(0, 960)), None);
        leader.begin(3, 960, [1, 2].into_iter());
        assert!(leader.is_requested());
        assert_eq!(leader.step(&at(0, 864)), None);
        let end_services = TerminationStep::EndServices { position: 960 };
        assert_eq!(leader.step(&at(0, 960)), Some(end_services));
        assert_eq!(leader.step(&at(0, 960)), None);
        leader.on_ack(1, 960);
        // Of a position before.
        leader.on_ack(2, 864);
        assert_eq!(leader.step(&at(99, 960)), None);
        leader.on_ack(2, 960);
        let end = TerminationStep::End { position: 960 };
        assert_eq!(leader.step(&at(99, 960)), Some(end));
    }

    #[test]
    fn leader_does_not_wait_for_a_silent_follower_beyond_the_timeout() {
        let mut leader = Termination::new(100);
        leader.begin(3, 960, [1].into_iter());
        assert!(leader.step(&at(50, 960)).is_some());
        assert_eq!(leader.step(&at(60, 960)), None);
        assert_eq!(leader.step(&at(159, 960)), None);
        let end = TerminationStep::End { position: 960 };
        assert_eq!(leader.step(&at(160, 960)), Some(end));
    }

    #[test]
    fn follower_acknowledges_after_its_services_have_ended_until_that_is_sent() {
        let mut follower = Termination::new(100);
        follower.request(3, 960);
        let snapshot = TerminationInput {
            is_taking_snapshot: true,
            ..at(0, 960)
        };
        assert_eq!(follower.step(&snapshot), None);
        assert!(follower.step(&at(0, 960)).is_some());
        let services = TerminationInput {
            has_ended_services: false,
            ..at(0, 960)
        };
        assert_eq!(follower.step(&services), None);
        let acknowledge = TerminationStep::Acknowledge {
            term: 3,
            position: 960,
        };
        assert_eq!(follower.step(&at(0, 960)), Some(acknowledge));
        assert_eq!(follower.step(&at(0, 960)), Some(acknowledge));
        follower.acknowledged();
        let end = TerminationStep::End { position: 960 };
        assert_eq!(follower.step(&at(0, 960)), Some(end));
    }
}
