// SPDX-License-Identifier: Apache-2.0
use super::MergeError;
use crate::client::ReplaySession;
use crate::session::RequestError;

/// Interval between two requests for the recorded position: doubled after each, in nanoseconds.
const POSITION_INTERVAL_MIN_NS: i64 = 16_000_000;
const POSITION_INTERVAL_MAX_NS: i64 = 500_000_000;
/// Greatest distance from the recorded position at which the live destination is added, in bytes.
const LIVE_ADD_WINDOW_MAX: i64 = 32 * 1024 * 1024;
/// Transports of an image that receives the replay and the live stream.
const TRANSPORTS_OF_BOTH: i32 = 2;

/// State of a replay merge (`docs/spec/archive.md` §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeState {
    /// Waits for the port of the replay destination.
    ResolveReplayPort,
    /// Waits for the recorded position.
    GetRecordingPosition,
    /// Waits for the start of the replay.
    Replay,
    /// Reads the replay up to the recorded position.
    Catchup,
    /// Reads the replay, and adds the live destination when it is near.
    AttemptLiveJoin,
    /// The stream comes from the live destination.
    Merged,
    /// The merge has failed.
    Failed,
}

/// Something that the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    RequestMaxPosition,
    StartReplay,
    AddLiveDestination,
    RemoveReplayDestination,
    StopReplay(ReplaySession),
}

/// State of the image of the replay that the caller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageFacts {
    pub(crate) position: i64,
    pub(crate) term_length: i64,
    pub(crate) active_transports: i32,
    pub(crate) is_closed: bool,
}

/// State that the caller sees at the time of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) now_ns: i64,
    pub(crate) is_replay_port_known: bool,
    pub(crate) image: Option<ImageFacts>,
}

/// Decides what a replay merge does (`docs/spec/archive.md` §7.2).
///
/// Contract: [`step`](Self::step) takes what the caller sees, and returns at most one action. The outcome of
/// [`RequestMaxPosition`](Action::RequestMaxPosition) is reported by [`on_max_position`](Self::on_max_position), that of
/// [`StartReplay`](Action::StartReplay) by [`on_replay`](Self::on_replay), and that of a failed destination by
/// [`fail`](Self::fail). [`close`](Self::close) returns what is to be cleaned up, in order, until it returns `None`.
#[derive(Debug)]
pub(crate) struct Machine {
    state: MergeState,
    timeout_ns: i64,
    session: Option<ReplaySession>,
    target: Option<i64>,
    is_live_added: bool,
    is_replay_removed: bool,
    is_position_asked: bool,
    next_position_ns: i64,
    position_interval_ns: i64,
    last_position: i64,
    last_progress_ns: Option<i64>,
    error: Option<MergeError>,
}

impl Machine {
    pub(crate) fn new(is_replay_port_known: bool, timeout_ns: i64) -> Self {
        Self {
            state: if is_replay_port_known {
                MergeState::GetRecordingPosition
            } else {
                MergeState::ResolveReplayPort
            },
            timeout_ns,
            session: None,
            target: None,
            is_live_added: false,
            is_replay_removed: false,
            is_position_asked: false,
            next_position_ns: i64::MIN,
            position_interval_ns: POSITION_INTERVAL_MIN_NS,
            last_position: i64::MIN,
            last_progress_ns: None,
            error: None,
        }
    }

    pub(crate) fn state(&self) -> MergeState {
        self.state
    }

    pub(crate) fn session(&self) -> Option<ReplaySession> {
        self.session
    }

    pub(crate) fn is_live_added(&self) -> bool {
        self.is_live_added
    }

    pub(crate) fn error(&self) -> Option<&MergeError> {
        self.error.as_ref()
    }

    pub(crate) fn step(&mut self, facts: &Facts) -> Option<Action> {
        if matches!(self.state, MergeState::Merged | MergeState::Failed) {
            // What remains after the merge.
            return self.clean_up();
        }
        let position = facts.image.map_or(i64::MIN, |image| image.position);
        if self.last_progress_ns.is_none() || position > self.last_position {
            self.last_position = position;
            self.last_progress_ns = Some(facts.now_ns);
        }
        if facts.image.is_some_and(|image| image.is_closed) {
            self.fail(MergeError::ReplayEnded);
            return self.clean_up();
        }
        let action = match self.state {
            MergeState::ResolveReplayPort if facts.is_replay_port_known => {
                self.enter(MergeState::GetRecordingPosition, facts.now_ns);
                None
            }
            MergeState::GetRecordingPosition => match self.target {
                Some(_) => {
                    self.enter(MergeState::Replay, facts.now_ns);
                    Some(Action::StartReplay)
                }
                None => self.request_position(facts.now_ns),
            },
            MergeState::Replay if self.session.is_some() => {
                self.position_interval_ns = POSITION_INTERVAL_MIN_NS;
                self.next_position_ns = facts.now_ns;
                self.enter(MergeState::Catchup, facts.now_ns);
                None
            }
            MergeState::Catchup if self.target.is_some_and(|target| position >= target) => {
                self.target = None;
                self.enter(MergeState::AttemptLiveJoin, facts.now_ns);
                None
            }
            MergeState::AttemptLiveJoin => self.attempt_join(facts),
            _ => None,
        };
        if action.is_some() {
            self.last_progress_ns = Some(facts.now_ns);
        }
        let stalled_ns = facts
            .now_ns
            .saturating_sub(self.last_progress_ns.unwrap_or(facts.now_ns));
        if action.is_none() && stalled_ns >= self.timeout_ns {
            let state = self.state;
            self.fail(MergeError::NoProgress {
                state,
                after: std::time::Duration::from_nanos(self.timeout_ns.unsigned_abs()),
            });
            return self.clean_up();
        }
        action
    }

    fn attempt_join(&mut self, facts: &Facts) -> Option<Action> {
        let Some(target) = self.target else {
            return self.request_position(facts.now_ns);
        };
        let image = facts.image?;
        let distance = target.saturating_sub(image.position);
        if self.is_live_added {
            if distance <= 0 && image.active_transports >= TRANSPORTS_OF_BOTH {
                self.enter(MergeState::Merged, facts.now_ns);
                return self.clean_up();
            }
        } else if distance <= (image.term_length / 4).min(LIVE_ADD_WINDOW_MAX) {
            self.is_live_added = true;
            return Some(Action::AddLiveDestination);
        }
        if distance > 0 {
            self.state = MergeState::Catchup;
        } else {
            // There, but the live stream is not yet.
            self.target = None;
        }
        None
    }

    fn request_position(&mut self, now_ns: i64) -> Option<Action> {
        if self.is_position_asked || now_ns < self.next_position_ns {
            return None;
        }
        self.is_position_asked = true;
        self.next_position_ns = now_ns.saturating_add(self.position_interval_ns);
        self.position_interval_ns = (self.position_interval_ns * 2).min(POSITION_INTERVAL_MAX_NS);
        Some(Action::RequestMaxPosition)
    }

    pub(crate) fn on_max_position(&mut self, outcome: Result<i64, RequestError>, now_ns: i64) {
        self.is_position_asked = false;
        match outcome {
            Ok(position) => {
                self.target = crate::session::some_unless_null(position);
                self.last_progress_ns = Some(now_ns);
            }
            Err(error) => self.fail(MergeError::Request(error)),
        }
    }

    pub(crate) fn on_replay(&mut self, outcome: Result<ReplaySession, RequestError>, now_ns: i64) {
        match outcome {
            Ok(session) => {
                self.session = Some(session);
                self.last_progress_ns = Some(now_ns);
            }
            Err(error) => self.fail(MergeError::Request(error)),
        }
    }

    pub(crate) fn fail(&mut self, error: MergeError) {
        if !matches!(self.state, MergeState::Merged | MergeState::Failed) {
            self.state = MergeState::Failed;
            self.error = Some(error);
        }
    }

    /// Returns what is to be cleaned up when the merge is given up, one action at a time.
    pub(crate) fn close(&mut self) -> Option<Action> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Option<Action> {
        if !self.is_replay_removed {
            self.is_replay_removed = true;
            return Some(Action::RemoveReplayDestination);
        }
        self.session.take().map(Action::StopReplay)
    }

    fn enter(&mut self, state: MergeState, now_ns: i64) {
        self.state = state;
        self.last_progress_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i64 = 65_536;
    const TIMEOUT: i64 = 5_000_000_000;

    fn image(position: i64, active_transports: i32) -> Option<ImageFacts> {
        Some(ImageFacts {
            position,
            term_length: TERM,
            active_transports,
            is_closed: false,
        })
    }

    fn session() -> ReplaySession {
        ReplaySession::from_id(4 << 32 | 9)
    }

    struct World {
        machine: Machine,
        facts: Facts,
    }

    impl World {
        fn new(is_replay_port_known: bool) -> Self {
            Self {
                machine: Machine::new(is_replay_port_known, TIMEOUT),
                facts: Facts {
                    now_ns: 0,
                    is_replay_port_known,
                    image: None,
                },
            }
        }

        /// Steps until the state does not change; returns the actions.
        fn step(&mut self) -> Vec<Action> {
            let mut actions = Vec::new();
            loop {
                let before = self.machine.state();
                let action = self.machine.step(&self.facts);
                actions.extend(action);
                if action.is_none() && self.machine.state() == before {
                    return actions;
                }
            }
        }

        fn on_position(&mut self, position: i64) {
            self.machine
                .on_max_position(Ok(position), self.facts.now_ns);
        }

        fn wait(&mut self) -> Vec<Action> {
            self.facts.now_ns += POSITION_INTERVAL_MAX_NS;
            self.step()
        }

        fn catching_up(target: i64) -> Self {
            let mut world = Self::new(true);
            assert_eq!(world.step(), [Action::RequestMaxPosition]);
            world.on_position(target);
            assert_eq!(world.step(), [Action::StartReplay]);
            world.machine.on_replay(Ok(session()), 0);
            assert_eq!(world.step(), []);
            assert_eq!(world.machine.state(), MergeState::Catchup);
            world
        }
    }

    #[test]
    fn merge_catches_up_joins_live_and_leaves_the_replay() {
        let mut world = World::catching_up(10 * TERM);
        world.facts.image = image(9 * TERM, 1);
        assert_eq!(world.wait(), []);
        world.facts.image = image(10 * TERM, 1);
        assert_eq!(world.wait(), [Action::RequestMaxPosition]);
        // The recording has moved on: too far for the live stream.
        world.on_position(11 * TERM);
        assert_eq!(world.step(), []);
        assert_eq!(world.machine.state(), MergeState::Catchup);
        world.facts.image = image(11 * TERM, 1);
        assert_eq!(world.wait(), [Action::RequestMaxPosition]);
        world.on_position(11 * TERM + TERM / 4);
        assert_eq!(world.step(), [Action::AddLiveDestination]);
        world.facts.image = image(11 * TERM + TERM / 4, 1);
        assert_eq!(world.wait(), [Action::RequestMaxPosition]);
        world.on_position(11 * TERM + TERM / 4);
        // At the position, but nothing has come from the live stream.
        world.step();
        assert_eq!(world.machine.state(), MergeState::AttemptLiveJoin);
        world.wait();
        world.facts.image = image(11 * TERM + TERM / 4, 2);
        world.on_position(11 * TERM + TERM / 4);
        assert_eq!(
            world.step(),
            [
                Action::RemoveReplayDestination,
                Action::StopReplay(session())
            ]
        );
        assert_eq!(world.machine.state(), MergeState::Merged);
        assert_eq!(world.machine.close(), None);
    }

    #[test]
    fn replay_port_is_awaited() {
        let mut world = World::new(false);
        assert_eq!(world.step(), []);
        world.facts.is_replay_port_known = true;
        assert_eq!(world.step(), [Action::RequestMaxPosition]);
    }

    #[test]
    fn unknown_position_is_asked_for_again_after_a_pause() {
        let mut world = World::new(true);
        world.step();
        world.on_position(-1);
        assert_eq!(world.step(), []);
        assert_eq!(world.wait(), [Action::RequestMaxPosition]);
    }

    #[test]
    fn merge_without_progress_fails_and_cleans_up() {
        let mut world = World::catching_up(TERM);
        world.facts.now_ns += TIMEOUT - 1;
        assert_eq!(world.step(), []);
        world.facts.now_ns += 1;
        assert_eq!(
            world.step(),
            [
                Action::RemoveReplayDestination,
                Action::StopReplay(session())
            ]
        );
        assert_eq!(world.machine.state(), MergeState::Failed);
        let error = world.machine.error().unwrap();
        assert!(matches!(
            error,
            MergeError::NoProgress {
                state: MergeState::Catchup,
                ..
            }
        ));
    }

    #[test]
    fn moving_position_is_progress() {
        let mut world = World::catching_up(TERM);
        for position in 1..10 {
            world.facts.now_ns += TIMEOUT - 1;
            world.facts.image = image(position * 32, 1);
            assert_eq!(world.step(), []);
        }
        assert_eq!(world.machine.state(), MergeState::Catchup);
    }

    #[test]
    fn closed_image_fails() {
        let mut world = World::catching_up(TERM);
        world.facts.image = Some(ImageFacts {
            is_closed: true,
            ..image(64, 0).unwrap()
        });
        world.step();
        assert_eq!(world.machine.error(), Some(&MergeError::ReplayEnded));
    }

    #[test]
    fn refused_replay_fails_with_the_archives_error() {
        let mut world = World::new(true);
        world.step();
        world.on_position(TERM);
        world.step();
        world
            .machine
            .on_replay(Err(RequestError::Disconnected), world.facts.now_ns);
        assert_eq!(world.step(), [Action::RemoveReplayDestination]);
        assert_eq!(world.machine.state(), MergeState::Failed);
    }
}
