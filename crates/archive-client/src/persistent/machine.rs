// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;

use super::{PersistentError, PersistentEvent, StartPosition};
use crate::client::{ReplaySession, position_of_time};
use crate::protocol::ErrorCode;
use crate::session::{Recording, RequestError};

/// Delay before something that failed is tried again, in nanoseconds.
const RETRY_NS: i64 = 100_000_000;

/// Kind of the replay channel, which decides the order of replay request and subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayKind {
    /// A fixed endpoint, or IPC: the replay is requested first, and the subscription is to its session.
    Fixed,
    /// Port 0: the subscription comes first, and the replay goes to the port that it got.
    AnyPort,
    /// A response channel: the subscription comes first, and the replay goes to where its request came from.
    Response,
}

/// State of a persistent subscription (`docs/spec/archive.md` §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PersistentState {
    /// Waits for a connection to the archive.
    AwaitArchive = 0,
    /// The description of the recording is to be requested.
    SendListRecording = 1,
    /// Waits for the description of the recording.
    AwaitListRecording = 2,
    /// A replay is to be requested.
    SendReplay = 3,
    /// Waits for the start of the replay.
    AwaitReplay = 4,
    /// The subscription to the replay is to be added.
    AddReplaySubscription = 5,
    /// Waits for the subscription to the replay.
    AwaitReplaySubscription = 6,
    /// Waits for the port of the subscription to the replay.
    AwaitReplayEndpoint = 7,
    /// Waits for a replay that was requested over a response channel.
    AwaitResponseReplay = 11,
    /// Reads the replay.
    Replay = 12,
    /// Reads the replay up to where the live stream is.
    AttemptSwitch = 13,
    /// The subscription to the live stream is to be added, because the recording ends where reading has got to.
    AddLive = 14,
    /// Waits for the live stream.
    AwaitLive = 15,
    /// Reads the live stream.
    Live = 16,
    /// Failed; nothing is read any more.
    Failed = 17,
}

/// Something that the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    ListRecording,
    AddReplaySubscription {
        session: Option<ReplaySession>,
    },
    /// Replay to the port of the replay subscription, or to the fixed endpoint.
    StartReplay {
        position: i64,
    },
    StartResponseReplay {
        position: i64,
    },
    RequestMaxPosition,
    AddLiveSubscription,
    /// Stop the replay if it runs, and drop its subscription and the requests for it.
    DropReplay,
    DropLive,
}

/// State of an image that the caller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageFacts {
    pub(crate) position: i64,
    pub(crate) term_length: i64,
    pub(crate) is_closed: bool,
}

/// State that the caller sees at the time of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) now_ns: i64,
    pub(crate) is_archive_connected: bool,
    /// True if the replay subscription has a port, or needs none.
    pub(crate) is_replay_port_known: bool,
    pub(crate) replay: Option<ImageFacts>,
    pub(crate) live: Option<ImageFacts>,
}

/// Options of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineOptions {
    pub(crate) recording_id: i64,
    pub(crate) live_stream_id: i32,
    pub(crate) start: StartPosition,
    pub(crate) replay_kind: ReplayKind,
    pub(crate) timeout_ns: i64,
}

/// Decides what a persistent subscription does (`docs/spec/archive.md` §7.3).
///
/// Contract: [`step`](Self::step) takes what the caller sees, and changes the state. The caller then executes the actions of
/// [`next_action`](Self::next_action), and reports the outcome of each by one of the `on_` methods, at the same time or
/// later. [`DropReplay`](Action::DropReplay) and [`DropLive`](Action::DropLive) have no outcome; outcomes of what they
/// dropped must not be reported. [`on_consumed`](Self::on_consumed) takes the position after each fragment that was
/// delivered. [`next_event`](Self::next_event) yields events for the application.
#[derive(Debug)]
pub(crate) struct Machine {
    options: MachineOptions,
    state: PersistentState,
    /// Position after what was delivered; `None` before the start position is known.
    position: Option<i64>,
    highest_live: Option<i64>,
    /// True if the recording was active when it was described last.
    was_active: bool,
    session: Option<ReplaySession>,
    /// Time before which nothing is tried again.
    not_before_ns: i64,
    /// Time before which the recorded position is not asked for, unless the replay is new.
    ask_after_ns: i64,
    /// Time since which the replay image is awaited.
    waiting_since_ns: Option<i64>,
    max_position: MaxPosition,
    live: LiveSubscription,
    actions: VecDeque<Action>,
    events: VecDeque<PersistentEvent>,
    now_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaxPosition {
    Unknown,
    Asked,
    /// The position of the recording when the archive answered.
    Known {
        max: i64,
        /// True until it was compared with the position of the replay.
        is_fresh: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiveSubscription {
    None,
    Asked,
    /// Added; its image is awaited since this time, and the wait was reported or not.
    Added {
        since_ns: i64,
        is_reported: bool,
    },
}

impl Machine {
    pub(crate) fn new(options: MachineOptions) -> Self {
        Self {
            state: PersistentState::AwaitArchive,
            position: match options.start {
                StartPosition::At(position) => Some(position),
                StartPosition::Start | StartPosition::Live | StartPosition::Time(_) => None,
            },
            options,
            highest_live: None,
            was_active: false,
            session: None,
            not_before_ns: i64::MIN,
            ask_after_ns: i64::MIN,
            waiting_since_ns: None,
            max_position: MaxPosition::Unknown,
            live: LiveSubscription::None,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            now_ns: i64::MIN,
        }
    }

    pub(crate) fn state(&self) -> PersistentState {
        self.state
    }

    pub(crate) fn position(&self) -> Option<i64> {
        self.position
    }

    pub(crate) fn session(&self) -> Option<ReplaySession> {
        self.session
    }

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(crate) fn next_event(&mut self) -> Option<PersistentEvent> {
        self.events.pop_front()
    }

    /// Takes the position after a fragment that was delivered.
    pub(crate) fn on_consumed(&mut self, position: i64) {
        self.position = Some(position);
        if self.state == PersistentState::Live {
            self.highest_live = Some(position);
        }
    }

    /// Changes the state by what the caller sees.
    pub(crate) fn step(&mut self, facts: &Facts) {
        self.now_ns = facts.now_ns;
        let ignores_archive = matches!(
            self.state,
            PersistentState::AwaitArchive
                | PersistentState::AttemptSwitch
                | PersistentState::Live
                | PersistentState::Failed
        );
        if !facts.is_archive_connected && !ignores_archive {
            self.drop_replay();
            self.drop_live();
            self.enter(PersistentState::AwaitArchive);
            return;
        }
        match self.state {
            PersistentState::AwaitArchive if facts.is_archive_connected => {
                self.enter(PersistentState::SendListRecording);
            }
            PersistentState::SendListRecording if self.may_try() => {
                self.actions.push_back(Action::ListRecording);
                self.enter(PersistentState::AwaitListRecording);
            }
            PersistentState::SendReplay if self.may_try() => {
                let position = self.replayed_position();
                self.actions.push_back(Action::StartReplay { position });
                self.enter(PersistentState::AwaitReplay);
            }
            PersistentState::AddReplaySubscription if self.may_try() => {
                let session = self.session;
                self.actions
                    .push_back(Action::AddReplaySubscription { session });
                self.enter(PersistentState::AwaitReplaySubscription);
            }
            PersistentState::AwaitReplayEndpoint if facts.is_replay_port_known => {
                self.enter(PersistentState::SendReplay);
            }
            PersistentState::Replay => self.step_replay(facts),
            PersistentState::AttemptSwitch => self.step_switch(facts),
            PersistentState::AddLive if self.may_try() => {
                self.add_live();
                self.enter(PersistentState::AwaitLive);
            }
            PersistentState::AwaitLive => self.step_await_live(facts),
            PersistentState::Live if facts.live.is_none_or(|image| image.is_closed) => {
                self.events.push_back(PersistentEvent::LeftLive);
                self.drop_live();
                self.enter(PersistentState::SendListRecording);
            }
            _ => {}
        }
    }

    fn step_replay(&mut self, facts: &Facts) {
        let Some(replay) = facts.replay else {
            let since = *self.waiting_since_ns.get_or_insert(facts.now_ns);
            if facts.now_ns.saturating_sub(since) >= self.options.timeout_ns {
                self.report(PersistentError::NoReplayImage);
                self.set_up_again();
            }
            return;
        };
        self.waiting_since_ns = None;
        // After a start at a time, the replay tells the position.
        self.position.get_or_insert(replay.position);
        if replay.is_closed {
            self.set_up_again();
            return;
        }
        match self.max_position {
            MaxPosition::Unknown if self.may_ask() => self.ask_max_position(),
            MaxPosition::Known { max, is_fresh } if self.live == LiveSubscription::None => {
                let is_near = max.saturating_sub(replay.position) <= near(&replay);
                self.max_position = MaxPosition::Known {
                    max,
                    is_fresh: false,
                };
                if is_near && is_fresh {
                    self.add_live();
                } else if is_near && self.may_ask() {
                    // The recording has moved on since the answer.
                    self.ask_max_position();
                }
            }
            _ => {}
        }
        if let LiveSubscription::Added {
            since_ns,
            is_reported,
        } = &mut self.live
        {
            if facts.live.is_some_and(|image| !image.is_closed) {
                self.enter(PersistentState::AttemptSwitch);
            } else if !*is_reported
                && facts.now_ns.saturating_sub(*since_ns) >= self.options.timeout_ns
            {
                *is_reported = true;
                self.report(PersistentError::NoLiveImage);
            }
        }
    }

    fn step_switch(&mut self, facts: &Facts) {
        let Some(live) = facts.live.filter(|image| !image.is_closed) else {
            self.drop_live();
            self.enter(PersistentState::Replay);
            return;
        };
        match facts.replay.filter(|image| !image.is_closed) {
            Some(replay) if replay.position == live.position => self.on_switched(),
            // The replay can end exactly where the live stream goes on.
            None if self.position == Some(live.position) => self.on_switched(),
            Some(_) => {}
            None => self.set_up_again(),
        }
    }

    fn step_await_live(&mut self, facts: &Facts) {
        let Some(live) = facts.live else {
            if let LiveSubscription::Added {
                since_ns,
                is_reported,
            } = &mut self.live
                && !*is_reported
                && facts.now_ns.saturating_sub(*since_ns) >= self.options.timeout_ns
            {
                *is_reported = true;
                self.report(PersistentError::NoLiveImage);
            }
            return;
        };
        if live.is_closed {
            self.drop_live();
            self.enter(PersistentState::AddLive);
        } else if self
            .position
            .is_some_and(|position| live.position > position)
        {
            // What lies between comes from the recording. The live stream is left: a subscription that is not polled holds
            // up its publisher.
            self.drop_live();
            self.enter(PersistentState::SendListRecording);
        } else {
            self.position.get_or_insert(live.position);
            self.join_live();
        }
    }

    /// The next fragment comes from the live image: both images have the same position.
    pub(crate) fn on_switched(&mut self) {
        self.drop_replay();
        self.join_live();
    }

    fn join_live(&mut self) {
        self.highest_live = self.highest_live.max(self.position);
        self.events.push_back(PersistentEvent::JoinedLive);
        self.enter(PersistentState::Live);
    }

    // --- outcomes ---

    pub(crate) fn on_recording(&mut self, outcome: Result<Option<Recording>, RequestError>) {
        if self.state != PersistentState::AwaitListRecording {
            return;
        }
        match outcome {
            Ok(Some(recording)) => {
                if let Err(error) = self.check_recording(&recording) {
                    self.fail(error);
                }
            }
            Ok(None) => self.fail(PersistentError::RecordingNotFound {
                recording_id: self.options.recording_id,
            }),
            Err(error) => {
                self.report(PersistentError::Request(error));
                self.retry(PersistentState::SendListRecording);
            }
        }
    }

    /// Checks the recording, and decides whether its replay or the live stream comes next.
    fn check_recording(&mut self, recording: &Recording) -> Result<(), PersistentError> {
        if recording.stream_id != self.options.live_stream_id {
            return Err(PersistentError::StreamIdMismatch {
                recording: recording.stream_id,
                live: self.options.live_stream_id,
            });
        }
        self.was_active = recording.stop_position.is_none();
        let is_first_live = self.options.start == StartPosition::Live && self.position.is_none();
        let is_empty = recording.stop_position == Some(recording.start_position);
        let is_start = match self.options.start {
            StartPosition::Start => true,
            // An archive replays nothing of an empty recording.
            StartPosition::Time(_) => is_empty,
            StartPosition::Live | StartPosition::At(_) => false,
        };
        if is_start {
            self.position.get_or_insert(recording.start_position);
        }
        if let Some(position) = self.position {
            let invalid = PersistentError::InvalidStartPosition {
                position,
                start: recording.start_position,
                stop: recording.stop_position,
            };
            let is_beyond = |stop: i64| position > stop || self.highest_live > Some(stop);
            if position < recording.start_position || recording.stop_position.is_some_and(is_beyond)
            {
                return Err(invalid);
            }
        }
        if is_first_live || (self.position.is_some() && self.position == recording.stop_position) {
            self.enter(PersistentState::AddLive);
        } else {
            self.begin_replay();
        }
        Ok(())
    }

    /// Returns the position for a replay request: a time, if the position is not known yet.
    fn replayed_position(&self) -> i64 {
        self.position.unwrap_or(match self.options.start {
            StartPosition::Time(time_ms) => position_of_time(time_ms),
            StartPosition::Start | StartPosition::Live | StartPosition::At(_) => 0,
        })
    }

    pub(crate) fn on_replay_subscription(&mut self, outcome: Result<(), taran::CommandError>) {
        if self.state != PersistentState::AwaitReplaySubscription {
            return;
        }
        match outcome {
            Ok(()) => match self.options.replay_kind {
                ReplayKind::Fixed => self.begin_reading(),
                ReplayKind::AnyPort => self.enter(PersistentState::AwaitReplayEndpoint),
                ReplayKind::Response => {
                    let position = self.replayed_position();
                    self.actions
                        .push_back(Action::StartResponseReplay { position });
                    self.enter(PersistentState::AwaitResponseReplay);
                }
            },
            Err(error) if error.is_retryable() => {
                self.report(PersistentError::Driver(error));
                self.retry(PersistentState::AddReplaySubscription);
            }
            Err(error) => self.fail(PersistentError::Driver(error)),
        }
    }

    pub(crate) fn on_replay(&mut self, outcome: Result<ReplaySession, RequestError>) {
        if !matches!(
            self.state,
            PersistentState::AwaitReplay | PersistentState::AwaitResponseReplay
        ) {
            return;
        }
        match outcome {
            Ok(session) => {
                self.session = Some(session);
                match self.options.replay_kind {
                    ReplayKind::Fixed => self.enter(PersistentState::AddReplaySubscription),
                    ReplayKind::AnyPort | ReplayKind::Response => self.begin_reading(),
                }
            }
            Err(error) => self.on_replay_refused(error),
        }
    }

    fn on_replay_refused(&mut self, error: RequestError) {
        // The recorder may still be behind what was read from the live stream.
        let may_lag = self.was_active && self.highest_live.is_some();
        match error.code() {
            Some(ErrorCode::UnknownRecording) => self.fail(PersistentError::RecordingNotFound {
                recording_id: self.options.recording_id,
            }),
            Some(ErrorCode::InvalidPosition) if !may_lag => {
                if let (StartPosition::Time(time_ms), None) = (self.options.start, self.position) {
                    return self.fail(PersistentError::StartTimeRefused {
                        recording_id: self.options.recording_id,
                        time_ms,
                        error,
                    });
                }
                self.fail(PersistentError::Request(error));
            }
            Some(ErrorCode::MaxReplays | ErrorCode::InvalidPosition) | None => {
                self.report(PersistentError::Request(error));
                self.set_up_again();
            }
            Some(_) => self.fail(PersistentError::Request(error)),
        }
    }

    pub(crate) fn on_max_position(&mut self, outcome: Result<i64, RequestError>) {
        if self.max_position != MaxPosition::Asked {
            return;
        }
        match outcome {
            Ok(max) => {
                self.max_position = MaxPosition::Known {
                    max,
                    is_fresh: true,
                };
            }
            Err(error) => {
                self.report(PersistentError::Request(error));
                self.max_position = MaxPosition::Unknown;
            }
        }
        self.ask_after_ns = self.now_ns.saturating_add(RETRY_NS);
    }

    pub(crate) fn on_live_subscription(&mut self, outcome: Result<(), taran::CommandError>) {
        if self.live != LiveSubscription::Asked {
            return;
        }
        match outcome {
            Ok(()) => {
                self.live = LiveSubscription::Added {
                    since_ns: self.now_ns,
                    is_reported: false,
                };
            }
            Err(error) if error.is_retryable() => {
                self.live = LiveSubscription::None;
                self.report(PersistentError::Driver(error));
                self.ask_after_ns = self.now_ns.saturating_add(RETRY_NS);
                if self.state == PersistentState::AwaitLive {
                    self.retry(PersistentState::AddLive);
                }
            }
            Err(error) => self.fail(PersistentError::Driver(error)),
        }
    }

    // --- transitions ---

    fn may_try(&self) -> bool {
        self.now_ns >= self.not_before_ns
    }

    fn may_ask(&self) -> bool {
        self.now_ns >= self.ask_after_ns
    }

    fn enter(&mut self, state: PersistentState) {
        self.state = state;
        self.waiting_since_ns = None;
    }

    fn retry(&mut self, state: PersistentState) {
        self.not_before_ns = self.now_ns.saturating_add(RETRY_NS);
        self.enter(state);
    }

    fn begin_replay(&mut self) {
        match self.options.replay_kind {
            ReplayKind::Fixed => self.enter(PersistentState::SendReplay),
            ReplayKind::AnyPort | ReplayKind::Response => {
                self.enter(PersistentState::AddReplaySubscription);
            }
        }
    }

    fn begin_reading(&mut self) {
        self.max_position = MaxPosition::Unknown;
        self.ask_after_ns = i64::MIN;
        self.enter(PersistentState::Replay);
    }

    /// Begins again with the description of the recording, which may have changed.
    fn set_up_again(&mut self) {
        self.drop_replay();
        self.drop_live();
        self.retry(PersistentState::SendListRecording);
    }

    fn ask_max_position(&mut self) {
        self.max_position = MaxPosition::Asked;
        self.actions.push_back(Action::RequestMaxPosition);
    }

    fn add_live(&mut self) {
        self.live = LiveSubscription::Asked;
        self.actions.push_back(Action::AddLiveSubscription);
    }

    fn drop_live(&mut self) {
        if self.live != LiveSubscription::None {
            self.live = LiveSubscription::None;
            self.actions.push_back(Action::DropLive);
        }
    }

    fn drop_replay(&mut self) {
        self.session = None;
        self.max_position = MaxPosition::Unknown;
        self.actions.push_back(Action::DropReplay);
    }

    pub(crate) fn report(&mut self, error: PersistentError) {
        self.events.push_back(PersistentEvent::Error(error));
    }

    pub(crate) fn fail(&mut self, error: PersistentError) {
        self.drop_replay();
        self.drop_live();
        self.events.push_back(PersistentEvent::Failed(error));
        self.enter(PersistentState::Failed);
    }
}

/// Returns the distance from the recorded position at which the live stream is joined, in bytes.
fn near(image: &ImageFacts) -> i64 {
    image.term_length / 4
}

/// Decides where each fragment comes from while a replay is being left for the live stream.
///
/// Contract: the live image is polled with [`skip_live`](Self::skip_live) first, then the replay image with
/// [`is_last`](Self::is_last) before each fragment. Every fragment is then delivered once, in order, also in the middle of a
/// fragmented message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switch {
    /// End of the first fragment of the live image that was not delivered.
    next_live_end: Option<i64>,
}

impl Switch {
    /// Returns true if a fragment of the live image that ends at `end` was delivered already. A poll stops at the first one
    /// that was not, and does not consume it.
    pub(crate) fn skip_live(&mut self, end: i64, replay_position: i64) -> bool {
        let is_delivered = end <= replay_position;
        if !is_delivered {
            self.next_live_end = Some(end);
        }
        is_delivered
    }

    /// Returns true if the fragment of the replay image that ends at `end` will come from the live image. It is not consumed.
    pub(crate) fn is_last(&self, end: i64) -> bool {
        self.next_live_end == Some(end)
    }
}
