// SPDX-License-Identifier: Apache-2.0
//! Decisions of a replication.

use std::collections::VecDeque;

use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, RecordingSignal};
use taran_archive_client::{Recording, ReplaySession, RequestError};

/// Greatest distance from the source's recorded position at which the live destination is added, in bytes.
const LIVE_ADD_WINDOW_MAX: i64 = 32 << 20;
/// Transports of an image that receives the replay and the live stream.
const TRANSPORTS_OF_BOTH: i32 = 2;
/// Requests in a row for the source's position that may stay without an answer.
const POSITION_ATTEMPTS: u32 = 3;
/// Interval between two requests for the source's position while the live stream is joined, in nanoseconds.
const POSITION_INTERVAL_NS: i64 = 10_000_000;

/// First pause before an action that the driver could not do yet is repeated, in nanoseconds. It doubles each time.
const RETRY_DELAY_MIN_NS: i64 = 20_000_000;
/// Longest pause.
const RETRY_DELAY_MAX_NS: i64 = 640_000_000;

/// Parameters of a replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) source_recording_id: i64,
    /// The recording to extend; `None` for a new one.
    pub(crate) destination: Option<i64>,
    /// Position at which the replication ends; `None` for the end of the source.
    pub(crate) stop_position: Option<i64>,
    /// Highest number of bytes that the source reads at once.
    pub(crate) io_max_length: Option<i32>,
    /// Session id of the replay.
    pub(crate) session_id: Option<i32>,
    /// The replication merges with the live stream.
    pub(crate) is_live: bool,
    /// The subscription gets its destinations one by one.
    pub(crate) is_manual: bool,
    /// Time limit of one step in nanoseconds.
    pub(crate) timeout_ns: i64,
}

/// State of a replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connect,
    Describe,
    /// The descriptor of the destination is being stored.
    Store,
    SourcePosition,
    Extend,
    /// The subscription gets the destination of the replay.
    AddDestination,
    /// The port for the replay is not known yet.
    ResolveEndpoint,
    StartReplay,
    AwaitImage,
    Replicate,
    Catchup,
    AttemptLiveJoin,
    Done,
}

impl State {
    /// Returns the name in the event log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Describe => "REPLICATE_DESCRIPTOR",
            Self::Store => "STORE_DESCRIPTOR",
            Self::SourcePosition => "SRC_RECORDING_POSITION",
            Self::Extend => "EXTEND",
            Self::AddDestination => "ADD_REPLAY_DESTINATION",
            Self::ResolveEndpoint => "RESOLVE_ENDPOINT",
            Self::StartReplay => "REPLAY",
            Self::AwaitImage => "AWAIT_IMAGE",
            Self::Replicate => "REPLICATE",
            Self::Catchup => "CATCHUP",
            Self::AttemptLiveJoin => "ATTEMPT_LIVE_JOIN",
            Self::Done => "DONE",
        }
    }

    const fn waiting_for(self) -> &'static str {
        match self {
            Self::Connect => "a connection to the source archive",
            Self::Describe => "the descriptor of the source recording",
            Self::Store => "the descriptor of the destination recording",
            Self::SourcePosition | Self::AttemptLiveJoin => "the position of the source recording",
            Self::Extend => "the subscription to the replay",
            Self::AddDestination => "the destination of the replay",
            Self::ResolveEndpoint => "the port of the replay",
            Self::StartReplay => "the start of the replay",
            Self::AwaitImage => "the image of the replay",
            Self::Replicate | Self::Catchup | Self::Done => "the end of the replay",
        }
    }
}

/// Positions between which a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: i64,
    pub(crate) stop: i64,
}

/// State of the image of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageFacts {
    /// Position up to which the recorder has taken frames.
    pub(crate) taken: i64,
    /// Recorded position.
    pub(crate) recorded: i64,
    pub(crate) term_length: i64,
    pub(crate) active_transports: i32,
}

/// State that the owner sees at the time of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) now_ns: i64,
    /// True while the source archive is connected.
    pub(crate) is_source_connected: bool,
    /// True unless the recording subscription was added and is closed again.
    pub(crate) is_subscribed: bool,
    /// True if the channel for the replay is complete.
    pub(crate) is_endpoint_known: bool,
    /// The image that is being recorded.
    pub(crate) image: Option<ImageFacts>,
}

/// Something that the owner does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Connects to the source archive: [`Replication::on_connected`].
    Connect,
    /// Asks for the descriptor of the source recording: [`Replication::on_described`].
    Describe,
    /// Makes a recording with the metadata of the source, in place of the empty one with this id if there is one:
    /// [`Replication::on_stored`].
    Store {
        source: Box<Recording>,
        replaced: Option<i64>,
    },
    /// Asks for the recorded position of the source: [`Replication::on_source_position`].
    AskPosition,
    /// Extends the recording by the replay: [`Replication::on_extended`].
    Extend {
        recording_id: i64,
        stream_id: i32,
        session_id: i32,
    },
    /// Adds the destination of the replay: [`Replication::on_destination`].
    AddReplayDestination,
    /// Starts the replay: [`Replication::on_replay`].
    StartReplay {
        stream_id: i32,
        position: i64,
        /// `None` follows the source.
        length: Option<i64>,
        session_id: i32,
        io_max_length: Option<i32>,
    },
    /// Adds the destination of the live stream: [`Replication::on_destination`].
    AddLiveDestination,
    /// Removes the destination of the replay.
    RemoveReplayDestination,
    /// Tells the requester.
    Signal {
        signal: RecordingSignal,
        recording_id: i64,
        /// The signal names the recording subscription.
        names_subscription: bool,
        position: i64,
    },
    /// Tells the requester that the replication has failed.
    Fail { code: ErrorCode, text: String },
    /// Stops the replay of the source.
    StopReplay(ReplaySession),
    /// Stops the recording of the replay.
    StopRecording,
    /// Closes the connection to the source. Nothing follows.
    End,
}

/// An action that the driver could not do yet.
#[derive(Clone, Debug)]
struct Retry {
    action: Action,
    reason: String,
    /// Time of the next attempt; `None` until the time is known.
    at_ns: Option<i64>,
}

/// A replication of one recording (`docs/spec/archive.md` §6.3).
///
/// Contract: [`step`](Self::step) takes what the owner sees and returns one action at a time, until `None`; call it in each
/// duty cycle. The results of actions are input of the `on_…` methods. [`on_recording_ended`](Self::on_recording_ended) comes
/// before the owner announces the end of the recording; [`stop`](Self::stop) and
/// [`on_source_error`](Self::on_source_error) at any time. The last action is [`End`](Action::End), whatever happens.
#[derive(Debug)]
pub(crate) struct Replication {
    plan: Plan,
    state: State,
    actions: VecDeque<Action>,
    deadline_ns: Option<i64>,
    source: Option<Box<Recording>>,
    recording_id: i64,
    /// Position at which the replay starts.
    position: i64,
    /// Recorded position of the source.
    target: Option<i64>,
    is_position_asked: bool,
    unanswered: u32,
    ask_again_at_ns: i64,
    replay: Option<ReplaySession>,
    is_extended: bool,
    is_live_added: bool,
    retry: Option<Retry>,
    retry_delay_ns: i64,
}

impl Replication {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            state: State::Connect,
            actions: VecDeque::from([Action::Connect]),
            deadline_ns: None,
            source: None,
            recording_id: plan.destination.unwrap_or(NULL_VALUE),
            position: NULL_VALUE,
            target: None,
            is_position_asked: false,
            unanswered: 0,
            ask_again_at_ns: i64::MIN,
            replay: None,
            is_extended: false,
            is_live_added: false,
            retry: None,
            retry_delay_ns: RETRY_DELAY_MIN_NS,
            plan,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Returns the replay of the source.
    pub(crate) fn replay(&self) -> Option<ReplaySession> {
        self.replay
    }

    // --- input ---

    /// Takes the outcome of the connection.
    pub(crate) fn on_connected(&mut self, outcome: Result<(), String>) {
        if self.state != State::Connect {
            return;
        }
        match outcome {
            Ok(()) => {
                self.enter(State::Describe);
                self.actions.push_back(Action::Describe);
            }
            Err(text) => self.fail(ErrorCode::ReplicationConnectionFailure, text),
        }
    }

    /// Takes the descriptor of the source, and the extent of the destination that the plan names if it is still there.
    pub(crate) fn on_described(
        &mut self,
        outcome: Result<Option<Recording>, RequestError>,
        destination: Option<Extent>,
    ) {
        if self.state != State::Describe {
            return;
        }
        let source = match outcome {
            Ok(Some(source)) => source,
            Ok(None) => {
                let id = self.plan.source_recording_id;
                self.fail(
                    ErrorCode::UnknownRecording,
                    format!("the source archive has no recording {id}"),
                );
                return;
            }
            Err(error) => {
                self.fail(ErrorCode::Generic, error.to_string());
                return;
            }
        };
        let mtu = source.mtu_length;
        if let Some(length) = self.plan.io_max_length
            && length < mtu
        {
            self.fail(
                ErrorCode::Generic,
                format!(
                    "reads of at most {length} bytes cannot take a frame of the source recording, whose MTU is {mtu}: \
                     raise fileIoMaxLength"
                ),
            );
            return;
        }
        let source = Box::new(source);
        self.source = Some(source.clone());
        match (self.plan.destination, destination) {
            (Some(id), None) => self.fail(
                ErrorCode::UnknownRecording,
                format!("the destination recording {id} was removed"),
            ),
            (Some(_), Some(extent)) if extent.start != extent.stop => {
                self.position = extent.stop;
                self.on_destination_known();
            }
            (replaced, _) => {
                self.position = source.start_position;
                self.enter(State::Store);
                self.actions.push_back(Action::Store { source, replaced });
            }
        }
    }

    /// Takes the id of the destination that was stored.
    pub(crate) fn on_stored(&mut self, outcome: Result<i64, String>) {
        if self.state != State::Store {
            return;
        }
        match outcome {
            Err(text) => self.fail(ErrorCode::Generic, text),
            Ok(id) => {
                self.recording_id = id;
                if self.plan.destination.is_none() {
                    self.signal(RecordingSignal::REPLICATE, self.position);
                }
                self.on_destination_known();
            }
        }
    }

    /// Takes the recorded position of the source; `None` if it is not active.
    pub(crate) fn on_source_position(&mut self, outcome: Result<Option<i64>, RequestError>) {
        self.is_position_asked = false;
        if !matches!(self.state, State::SourcePosition | State::AttemptLiveJoin) {
            return;
        }
        match outcome {
            Ok(Some(position)) => {
                self.unanswered = 0;
                self.target = Some(position);
                if self.state == State::SourcePosition {
                    self.extend();
                }
            }
            Ok(None) => self.fail(
                ErrorCode::Generic,
                "the source recording has stopped, so that there is no live stream to merge with"
                    .to_owned(),
            ),
            Err(RequestError::Timeout { .. })
                if self.state == State::AttemptLiveJoin
                    && self.unanswered + 1 < POSITION_ATTEMPTS =>
            {
                self.unanswered += 1;
            }
            Err(error) => self.fail(ErrorCode::Generic, error.to_string()),
        }
    }

    /// Takes note that the recording subscription was added, or refused. The requester knows either.
    pub(crate) fn on_extended(&mut self, is_added: bool) {
        if self.state != State::Extend {
            return;
        }
        if !is_added {
            self.finish();
            return;
        }
        self.is_extended = true;
        if self.plan.is_manual {
            self.enter(State::AddDestination);
            self.actions.push_back(Action::AddReplayDestination);
        } else {
            self.enter(State::ResolveEndpoint);
        }
    }

    /// Takes note that the recording subscription cannot be added yet, for instance because an endpoint with the same address
    /// is being closed. The requester was not told.
    pub(crate) fn on_extension_unavailable(&mut self, reason: String) {
        if self.state == State::Extend
            && let Some(action) = self.extension()
        {
            self.retry_later(action, reason);
        }
    }

    /// Takes note that a destination cannot be added yet.
    pub(crate) fn on_destination_unavailable(&mut self, reason: String) {
        match self.state {
            State::AddDestination => self.retry_later(Action::AddReplayDestination, reason),
            State::AttemptLiveJoin => self.retry_later(Action::AddLiveDestination, reason),
            _ => {}
        }
    }

    /// Takes the outcome of adding a destination.
    pub(crate) fn on_destination(&mut self, outcome: Result<(), String>) {
        match outcome {
            Err(text) => self.fail(ErrorCode::Generic, text),
            Ok(()) if self.state == State::AddDestination => self.enter(State::ResolveEndpoint),
            Ok(()) => self.retry = None,
        }
    }

    /// Takes the outcome of the start of the replay.
    pub(crate) fn on_replay(&mut self, outcome: Result<ReplaySession, RequestError>) {
        match outcome {
            Ok(session) if self.state == State::StartReplay => {
                self.replay = Some(session);
                self.enter(State::AwaitImage);
            }
            // Ended meanwhile: the source notices that the subscription is gone.
            Ok(_) => {}
            Err(error) => self.fail(ErrorCode::Generic, error.to_string()),
        }
    }

    /// Takes note that the recording of the replay has ended. `is_refused` is true if the requester was told an error.
    pub(crate) fn on_recording_ended(&mut self, position: i64, is_refused: bool) {
        if is_refused || self.state == State::Done {
            self.finish();
        } else if self.plan.is_live {
            self.fail(
                ErrorCode::Generic,
                "the replay has ended before the live stream was joined".to_owned(),
            );
        } else {
            self.finish_at(position);
        }
    }

    /// Takes an error that the source archive has sent.
    pub(crate) fn on_source_error(&mut self, text: String) {
        self.fail(ErrorCode::Generic, text);
    }

    /// Ends the replication without an error.
    pub(crate) fn stop(&mut self) {
        self.finish();
    }

    // --- output ---

    /// Returns the next action.
    pub(crate) fn step(&mut self, facts: &Facts) -> Option<Action> {
        if self.actions.is_empty() && self.state != State::Done {
            self.evaluate(facts);
        }
        self.actions.pop_front()
    }

    fn evaluate(&mut self, facts: &Facts) {
        if self.is_extended && !facts.is_subscribed {
            // The requester has been told why.
            self.finish();
            return;
        }
        if let Some(retry) = &mut self.retry {
            let delay_ns = self.retry_delay_ns;
            let at_ns = *retry
                .at_ns
                .get_or_insert(facts.now_ns.saturating_add(delay_ns));
            if facts.now_ns >= at_ns {
                self.retry_delay_ns = (2 * delay_ns).min(RETRY_DELAY_MAX_NS);
                let action = retry.action.clone();
                // The reason stays for the text of a timeout.
                retry.at_ns = Some(i64::MAX);
                self.actions.push_back(action);
                return;
            }
        }
        match self.state {
            State::ResolveEndpoint if facts.is_endpoint_known => self.start_replay(),
            State::AwaitImage if facts.image.is_some() => {
                let is_live = self.plan.is_live;
                self.enter(if is_live {
                    State::Catchup
                } else {
                    State::Replicate
                });
                self.evaluate(facts);
                return;
            }
            State::Replicate => {
                if let Some(image) = facts.image
                    && image.recorded >= self.end()
                {
                    self.finish_at(image.recorded);
                    return;
                }
            }
            State::Catchup => {
                if let Some(image) = facts.image
                    && self.target.is_some_and(|target| image.taken >= target)
                {
                    self.target = None;
                    self.enter(State::AttemptLiveJoin);
                    self.attempt_join(facts, image);
                }
            }
            State::AttemptLiveJoin => {
                if let Some(image) = facts.image {
                    self.attempt_join(facts, image);
                }
            }
            _ => {}
        }
        if self.actions.is_empty() {
            self.check_limits(facts);
        }
    }

    fn attempt_join(&mut self, facts: &Facts, image: ImageFacts) {
        let Some(target) = self.target else {
            if !self.is_position_asked && facts.now_ns >= self.ask_again_at_ns {
                self.is_position_asked = true;
                self.ask_again_at_ns = facts.now_ns.saturating_add(POSITION_INTERVAL_NS);
                self.actions.push_back(Action::AskPosition);
            }
            return;
        };
        let distance = target.saturating_sub(image.taken);
        if !self.is_live_added {
            if distance <= (image.term_length / 4).min(LIVE_ADD_WINDOW_MAX) {
                self.is_live_added = true;
                self.actions.push_back(Action::AddLiveDestination);
            }
            return;
        }
        if distance > 0 {
            return;
        }
        if image.active_transports >= TRANSPORTS_OF_BOTH {
            self.actions.push_back(Action::RemoveReplayDestination);
            self.signal(RecordingSignal::MERGE, image.taken);
            // The recording goes on, with the live stream.
            self.is_extended = false;
            self.finish();
        } else {
            // There, but the live stream is not yet.
            self.target = None;
        }
    }

    /// Fails if the source is lost or the step takes too long.
    fn check_limits(&mut self, facts: &Facts) {
        if self.state == State::Done {
            return;
        }
        if self.state != State::Connect && !facts.is_source_connected {
            self.fail(
                ErrorCode::Generic,
                "the source archive is lost: replicate again to this destination when it is back"
                    .to_owned(),
            );
            return;
        }
        let is_limited = matches!(
            self.state,
            State::Extend | State::AddDestination | State::ResolveEndpoint | State::AwaitImage
        ) || self.retry.is_some();
        let deadline = *self
            .deadline_ns
            .get_or_insert(facts.now_ns.saturating_add(self.plan.timeout_ns));
        if is_limited && facts.now_ns >= deadline {
            let seconds = self.plan.timeout_ns / 1_000_000_000;
            let what = self.state.waiting_for();
            let reason = self.retry.take();
            let reason = reason.map_or_else(String::new, |retry| format!(": {}", retry.reason));
            self.fail(
                ErrorCode::Generic,
                format!("timeout after {seconds} s, while waiting for {what}{reason}"),
            );
        }
    }

    // --- transitions ---

    /// Goes on when the replay position is known.
    fn on_destination_known(&mut self) {
        let stop = self.source_stop();
        let position = self.position;
        match (stop, self.plan.stop_position) {
            (Some(stop), _) if self.plan.is_live => self.fail(
                ErrorCode::Generic,
                format!(
                    "the source recording has stopped at position {stop}, so that there is no live stream to merge with"
                ),
            ),
            (Some(stop), _) if stop == position => self.finish_at(position),
            (_, Some(wanted)) if wanted < position => self.fail(
                ErrorCode::Generic,
                format!("the stop position {wanted} is before the position {position} at which the replication starts"),
            ),
            (_, Some(wanted)) if wanted == position => self.finish(),
            _ if self.plan.is_live => {
                self.enter(State::SourcePosition);
                self.is_position_asked = true;
                self.actions.push_back(Action::AskPosition);
            }
            _ => self.extend(),
        }
    }

    fn extend(&mut self) {
        let action = self.extension();
        self.actions.extend(action);
        self.enter(State::Extend);
    }

    fn extension(&self) -> Option<Action> {
        let source = self.source.as_ref()?;
        Some(Action::Extend {
            recording_id: self.recording_id,
            stream_id: source.stream_id,
            session_id: self.session_id(source),
        })
    }

    fn retry_later(&mut self, action: Action, reason: String) {
        self.retry = Some(Retry {
            action,
            reason,
            at_ns: None,
        });
    }

    fn start_replay(&mut self) {
        let Some(source) = &self.source else { return };
        let position = self.position;
        let action = Action::StartReplay {
            stream_id: source.stream_id,
            position,
            length: self.plan.stop_position.map(|stop| stop - position),
            session_id: self.session_id(source),
            io_max_length: self.plan.io_max_length,
        };
        self.actions.push_back(action);
        self.enter(State::StartReplay);
    }

    /// A live stream has the session id of its recording.
    fn session_id(&self, source: &Recording) -> i32 {
        let own = self.plan.session_id.filter(|_| !self.plan.is_live);
        own.unwrap_or(source.session_id)
    }

    fn source_stop(&self) -> Option<i64> {
        self.source.as_ref().and_then(|source| source.stop_position)
    }

    /// Returns the position at which nothing more is to come.
    fn end(&self) -> i64 {
        let stop = self.source_stop().unwrap_or(i64::MAX);
        self.plan.stop_position.unwrap_or(i64::MAX).min(stop)
    }

    /// Ends at a position: the destination is in sync if a stopped source ends there.
    fn finish_at(&mut self, position: i64) {
        if let Some(stop) = self.source_stop()
            && position >= stop
        {
            self.actions.push_back(Action::Signal {
                signal: RecordingSignal::SYNC,
                recording_id: self.recording_id,
                names_subscription: self.is_extended,
                position,
            });
        }
        self.finish();
    }

    fn signal(&mut self, signal: RecordingSignal, position: i64) {
        self.actions.push_back(Action::Signal {
            signal,
            recording_id: self.recording_id,
            names_subscription: false,
            position,
        });
    }

    fn fail(&mut self, code: ErrorCode, text: String) {
        if self.state == State::Done {
            return;
        }
        self.actions
            .retain(|action| matches!(action, Action::Signal { .. }));
        self.actions.push_back(Action::Fail { code, text });
        self.finish();
    }

    fn finish(&mut self) {
        if self.state == State::Done {
            return;
        }
        // What was decided and not done yet is of no use any more, unless the requester is told something.
        self.actions.retain(|action| {
            matches!(
                action,
                Action::Signal { .. } | Action::Fail { .. } | Action::RemoveReplayDestination
            )
        });
        self.enter(State::Done);
        self.actions
            .extend(self.replay.take().map(Action::StopReplay));
        if self.is_extended {
            self.actions.push_back(Action::StopRecording);
        }
        self.signal(RecordingSignal::ReplicateEnd, NULL_VALUE);
        self.actions.push_back(Action::End);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.deadline_ns = None;
        self.retry = None;
        self.retry_delay_ns = RETRY_DELAY_MIN_NS;
    }
}
