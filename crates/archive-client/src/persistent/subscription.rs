// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;

use taran::{
    Action as PollAction, ChannelUri, Client, Header, ImageControlledFragmentAssembler, ImageView,
    Param, Pending, Position, Subscription,
};

use super::counters::{PersistentCounters, Which};
use super::machine::{Action, Facts, ImageFacts, Machine, MachineOptions, ReplayKind, Switch};
use super::{PersistentError, PersistentEvent, PersistentState, StartPosition};
use crate::client::{
    ArchiveContext, ArchiveEvent, Call, ReconnectingArchive, ReplayParams, ReplaySession,
    ResponseReplay, TIME_MIN_MS,
};
use crate::session::{Recording, RequestError};

/// Events that may wait for the application.
const EVENT_LIMIT: usize = 4096;
/// Fragments of the live image that one poll skips while a replay is being left.
const SKIP_LIMIT: usize = 256;

/// Options of a [`PersistentSubscription`].
#[derive(Clone, Debug)]
pub struct PersistentOptions {
    /// Id of the recording of the stream.
    pub recording_id: i64,
    /// Start of reading. Default: with the live stream.
    pub start: StartPosition,
    /// Channel of the live stream: UDP, IPC, or a spy.
    pub live_channel: String,
    /// Stream id of the live stream, and of the recording.
    pub live_stream_id: i32,
    /// Channel to which the archive replays: an endpoint of this machine, with port 0 for any; `aeron:ipc` if the archive
    /// uses the same driver; or a response channel of the archive's control channel.
    pub replay_channel: String,
    /// Stream id of the replay.
    pub replay_stream_id: i32,
}

/// Reads a stream from a position of its recording, from its start, or live; then live, without a gap and without a message
/// twice.
///
/// When the live stream is lost, reading goes on from the recording, and then live again. When the archive is lost, the
/// live stream is read on; a replay goes on when the archive is back. All of it happens in [`poll`](Self::poll), which must
/// be called often. [`next_event`](Self::next_event) tells what has happened.
///
/// The recording must be of the live stream, so that positions are comparable, and must be extended when the publisher
/// begins again.
///
/// ```no_run
/// use taran::{Clock, SystemClock};
/// use taran_archive_client::{ArchiveContext, PersistentOptions, PersistentSubscription, StartPosition};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let context = ArchiveContext::new().control_channel("aeron:ipc").response_channel("aeron:ipc");
/// let options = PersistentOptions {
///     recording_id: 0,
///     start: StartPosition::Start,
///     live_channel: "aeron:ipc".to_owned(),
///     live_stream_id: 1001,
///     replay_channel: "aeron:ipc".to_owned(),
///     replay_stream_id: 1002,
/// };
/// let mut subscription = PersistentSubscription::new(&client, context, options)?;
/// let mut clock = SystemClock::new();
/// loop {
///     subscription.poll(clock.now().nanos, |message, header| {
///         println!("{} bytes up to {}", message.len(), header.position());
///     }, 10);
///     while let Some(event) = subscription.next_event() {
///         println!("{event:?}");
///     }
/// #   break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PersistentSubscription {
    client: Client,
    archive: ReconnectingArchive,
    options: PersistentOptions,
    machine: Machine,
    replay: Stream,
    live: Stream,
    session: Option<ReplaySession>,
    list_call: Option<Call<Option<Recording>>>,
    replay_call: Option<Call<ReplaySession>>,
    response_replay: Option<ResponseReplay>,
    max_position_call: Option<Call<i64>>,
    switch: Switch,
    /// One for both images: a fragmented message may begin in the replay and end in the live stream.
    assembler: ImageControlledFragmentAssembler,
    connect_failures: Option<crate::client::ConnectError>,
    counters: PersistentCounters,
    events: VecDeque<PersistentEvent>,
}

/// A subscription, and its image since it was seen first.
#[derive(Debug, Default)]
struct Stream {
    pending: Option<Pending<Subscription>>,
    subscription: Option<Subscription>,
    image: Option<ImageView>,
}

impl Stream {
    fn facts(&self) -> Option<ImageFacts> {
        self.image.as_ref().map(|image| ImageFacts {
            position: image.position(),
            term_length: i64::try_from(image.term_length()).unwrap_or(i64::MAX),
            is_closed: image.is_closed(),
        })
    }

    /// Takes the first image of the session, or of any session.
    fn find_image(&mut self, session_id: Option<i32>) {
        if self.image.is_some() {
            return;
        }
        if let Some(subscription) = &mut self.subscription {
            self.image = subscription
                .images()
                .iter()
                .find(|image| session_id.is_none_or(|id| image.session_id() == id))
                .map(|image| image.view().clone());
        }
    }

    /// Polls the image, and returns the number of fragments and the position afterwards.
    fn poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>) -> PollAction,
        fragment_limit: usize,
    ) -> (usize, Option<Position>) {
        let Some(correlation_id) = self.image.as_ref().map(ImageView::correlation_id) else {
            return (0, None);
        };
        let image = self
            .subscription
            .as_mut()
            .and_then(|subscription| subscription.image_mut_by_correlation_id(correlation_id));
        match image {
            Some(image) => {
                let fragments = image.controlled_poll(handler, fragment_limit);
                (fragments, Some(image.position()))
            }
            None => (0, None),
        }
    }
}

impl PersistentSubscription {
    /// Creates a subscription that connects to the archive by itself.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn new(
        client: &Client,
        context: ArchiveContext,
        mut options: PersistentOptions,
    ) -> Result<Self, PersistentError> {
        let invalid = |name: &str, reason: &dyn std::fmt::Display| {
            PersistentError::Option(format!("{name}: {reason}"))
        };
        ChannelUri::parse(&options.live_channel)
            .map_err(|error| invalid("live_channel", &error))?;
        let replay = ChannelUri::parse(&options.replay_channel)
            .and_then(|uri| uri.with(Param::Rejoin.key(), "false"))
            .map_err(|error| invalid("replay_channel", &error))?;
        let replay_kind = if replay.is_response() {
            let control = ChannelUri::parse(&context.control_channel)
                .map_err(|error| invalid("aeron.archive.control.channel", &error))?;
            if control.media() != replay.media() {
                let reason =
                    "a response channel must have the media of the archive's control channel";
                return Err(invalid("replay_channel", &reason));
            }
            ReplayKind::Response
        } else if replay
            .get(Param::Endpoint)
            .is_some_and(|endpoint| endpoint.ends_with(":0"))
        {
            ReplayKind::AnyPort
        } else {
            ReplayKind::Fixed
        };
        if options.recording_id < 0 {
            return Err(invalid("recording_id", &"must be at least 0"));
        }
        if matches!(options.start, StartPosition::At(position) if position < 0) {
            return Err(invalid("start", &"must be at least 0"));
        }
        if matches!(options.start, StartPosition::Time(time_ms) if time_ms < TIME_MIN_MS) {
            return Err(invalid("start", &"must be milliseconds since 1970"));
        }
        replay.as_str().clone_into(&mut options.replay_channel);
        let timeout = context.message_timeout_in_force().as_nanos();
        let machine = Machine::new(MachineOptions {
            recording_id: options.recording_id,
            live_stream_id: options.live_stream_id,
            start: options.start,
            replay_kind,
            timeout_ns: i64::try_from(timeout).unwrap_or(i64::MAX),
        });
        Ok(Self {
            counters: PersistentCounters::add(client, &options),
            events: VecDeque::new(),
            archive: ReconnectingArchive::new(context, client.clone())?,
            client: client.clone(),
            options,
            machine,
            replay: Stream::default(),
            live: Stream::default(),
            session: None,
            list_call: None,
            replay_call: None,
            response_replay: None,
            max_position_call: None,
            switch: Switch::default(),
            assembler: ImageControlledFragmentAssembler::new(),
            connect_failures: None,
        })
    }

    /// Does what is due, and calls `handler` with whole messages of up to `fragment_limit` fragments. `now_ns` is any clock
    /// that does not run backwards. Returns the number of fragments.
    pub fn poll(
        &mut self,
        now_ns: i64,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> usize {
        self.controlled_poll(
            now_ns,
            |message, header| {
                handler(message, header);
                PollAction::Continue
            },
            fragment_limit,
        )
    }

    /// Like [`poll`](Self::poll), but `handler` controls after each message how the poll continues. A message that it aborts
    /// is delivered again by a later poll.
    pub fn controlled_poll(
        &mut self,
        now_ns: i64,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> PollAction,
        fragment_limit: usize,
    ) -> usize {
        self.do_work(now_ns);
        match self.machine.state() {
            PersistentState::Replay => self.poll_replay(&mut handler, fragment_limit),
            PersistentState::AttemptSwitch => self.poll_both(&mut handler, fragment_limit),
            PersistentState::Live => self.poll_live(&mut handler, fragment_limit),
            _ => 0,
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> PersistentState {
        self.machine.state()
    }

    /// Returns true while messages come from the live stream.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.machine.state() == PersistentState::Live
    }

    /// Returns true if the subscription has failed for good; the last event has the reason.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.machine.state() == PersistentState::Failed
    }

    /// Returns the position after what was delivered; `None` before the start is known.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.machine.position()
    }

    /// Removes and returns the oldest event.
    pub fn next_event(&mut self) -> Option<PersistentEvent> {
        self.count_events();
        self.events.pop_front()
    }

    /// Takes the events of the machine, and counts them.
    fn count_events(&mut self) {
        while let Some(event) = self.machine.next_event() {
            match event {
                PersistentEvent::JoinedLive => self.counters.increment(Which::LiveJoined),
                PersistentEvent::LeftLive => self.counters.increment(Which::LiveLeft),
                _ => {}
            }
            self.events.push_back(event);
            // Of an application that does not take events, the newest ones are kept.
            if self.events.len() > EVENT_LIMIT {
                self.events.pop_front();
            }
        }
    }

    /// Shows the state in the counters.
    fn show(&mut self, facts: &Facts) {
        self.counters.poll();
        let state = self.machine.state();
        self.counters.set(Which::State, state as i64);
        if state == PersistentState::AttemptSwitch
            && let (Some(live), Some(replay)) = (facts.live, facts.replay)
        {
            let difference = live.position - replay.position;
            self.counters.set(Which::JoinDifference, difference);
        }
        self.count_events();
    }

    fn do_work(&mut self, now_ns: i64) {
        if self.machine.state() == PersistentState::Failed {
            return;
        }
        if self.client.is_closed() {
            let closed = taran::CommandError::Closed;
            self.machine.fail(PersistentError::Driver(closed));
        }
        self.archive.do_work(now_ns);
        self.report_archive_errors();
        self.report_outcomes(now_ns);
        let facts = self.facts(now_ns);
        self.machine.step(&facts);
        while let Some(action) = self.machine.next_action() {
            self.execute(action, now_ns);
        }
        self.show(&facts);
    }

    /// Errors of a replay that has begun, and of attempts to connect, are events.
    fn report_archive_errors(&mut self) {
        if self.archive.failure() != self.connect_failures.as_ref() {
            self.connect_failures = self.archive.failure().cloned();
            if let Some(error) = self.connect_failures.clone() {
                self.machine.report(PersistentError::Connect(error));
            }
        }
        if let Some(connection) = self.archive.connection() {
            while let Some(event) = connection.next_event() {
                if let ArchiveEvent::Error(error) = event {
                    let error = RequestError::Rejected(error);
                    self.machine.report(PersistentError::Request(error));
                }
            }
        }
    }

    fn report_outcomes(&mut self, now_ns: i64) {
        if let Some(outcome) = self.list_call.as_mut().and_then(Call::poll) {
            self.list_call = None;
            self.machine.on_recording(outcome);
        }
        if let Some(outcome) = self.replay_call.as_mut().and_then(Call::poll) {
            self.replay_call = None;
            self.session = outcome.as_ref().ok().copied();
            self.machine.on_replay(outcome);
        }
        if let Some(replay) = &mut self.response_replay {
            let outcome = match self.archive.connection() {
                Some(connection) => replay.poll(connection, now_ns),
                None => Some(Err(RequestError::Disconnected)),
            };
            if let Some(outcome) = outcome {
                self.response_replay = None;
                self.session = outcome.as_ref().ok().copied();
                self.machine.on_replay(outcome);
            }
        }
        if let Some(outcome) = self.max_position_call.as_mut().and_then(Call::poll) {
            self.max_position_call = None;
            self.machine.on_max_position(outcome);
        }
        if let Some(outcome) = self.replay.pending.as_mut().and_then(Pending::poll) {
            self.replay.pending = None;
            let outcome = outcome.map(|added| self.replay.subscription = Some(added));
            self.machine.on_replay_subscription(outcome);
        }
        if let Some(outcome) = self.live.pending.as_mut().and_then(Pending::poll) {
            self.live.pending = None;
            let outcome = outcome.map(|added| self.live.subscription = Some(added));
            self.machine.on_live_subscription(outcome);
        }
    }

    fn facts(&mut self, now_ns: i64) -> Facts {
        if let Some(session) = self.machine.session() {
            self.replay.find_image(Some(session.session_id()));
        }
        self.live.find_image(None);
        let is_replay_port_known = self.machine.state() == PersistentState::AwaitReplayEndpoint
            && self.replay_endpoint().is_some();
        Facts {
            now_ns,
            is_archive_connected: self.archive.is_connected(),
            is_replay_port_known,
            replay: self.replay.facts(),
            live: self.live.facts(),
        }
    }

    /// Returns the replay channel with the port of its subscription.
    fn replay_endpoint(&self) -> Option<String> {
        match &self.replay.subscription {
            Some(subscription) => subscription.try_resolve_channel_endpoint_port(),
            None => Some(self.options.replay_channel.clone()),
        }
    }

    fn execute(&mut self, action: Action, now_ns: i64) {
        match action {
            Action::ListRecording => {
                let recording_id = self.options.recording_id;
                let connection = self.archive.connection();
                self.list_call = connection.map(|archive| archive.list_recording(recording_id));
            }
            Action::AddReplaySubscription { session } => {
                let channel = &self.options.replay_channel;
                let channel = match session {
                    Some(session) => session
                        .subscription_channel(channel)
                        .unwrap_or_else(|_| channel.clone()),
                    None => channel.clone(),
                };
                let stream_id = self.options.replay_stream_id;
                match self.client.async_add_subscription(channel, stream_id) {
                    Ok(pending) => self.replay.pending = Some(pending),
                    Err(error) => self.machine.on_replay_subscription(Err(error)),
                }
            }
            Action::StartReplay { position } => {
                let channel = self.replay_endpoint();
                if let (Some(archive), Some(channel)) = (self.archive.connection(), channel) {
                    let params = ReplayParams::new().position(position);
                    let (recording_id, stream_id) =
                        (self.options.recording_id, self.options.replay_stream_id);
                    self.replay_call =
                        Some(archive.start_replay(recording_id, &channel, stream_id, &params));
                }
            }
            Action::StartResponseReplay { position } => {
                if let (Some(archive), Some(subscription)) =
                    (self.archive.connection(), &self.replay.subscription)
                {
                    let params = ReplayParams::new().position(position);
                    let recording_id = self.options.recording_id;
                    self.response_replay = Some(ResponseReplay::start(
                        archive,
                        recording_id,
                        subscription,
                        &params,
                        now_ns,
                    ));
                }
            }
            Action::RequestMaxPosition => {
                let recording_id = self.options.recording_id;
                let connection = self.archive.connection();
                self.max_position_call =
                    connection.map(|archive| archive.max_recorded_position(recording_id));
            }
            Action::AddLiveSubscription => {
                let (channel, stream_id) =
                    (&self.options.live_channel, self.options.live_stream_id);
                match self.client.async_add_subscription(channel, stream_id) {
                    Ok(pending) => self.live.pending = Some(pending),
                    Err(error) => self.machine.on_live_subscription(Err(error)),
                }
            }
            Action::DropReplay => {
                if let (Some(archive), Some(session)) =
                    (self.archive.connection(), self.session.take())
                {
                    // The archive also ends a replay that has no subscriber.
                    drop(archive.stop_replay(session));
                }
                self.session = None;
                self.list_call = None;
                self.replay_call = None;
                self.response_replay = None;
                self.max_position_call = None;
                self.replay = Stream::default();
                self.switch = Switch::default();
            }
            Action::DropLive => {
                self.live = Stream::default();
                self.switch = Switch::default();
            }
        }
    }

    fn poll_replay(
        &mut self,
        handler: &mut impl FnMut(&[u8], &Header<'_>) -> PollAction,
        fragment_limit: usize,
    ) -> usize {
        let assembled = self.assembler.wrap(handler);
        let (fragments, position) = self.replay.poll(assembled, fragment_limit);
        if let Some(position) = position {
            self.machine.on_consumed(position);
        }
        fragments
    }

    fn poll_live(
        &mut self,
        handler: &mut impl FnMut(&[u8], &Header<'_>) -> PollAction,
        fragment_limit: usize,
    ) -> usize {
        let delivered = self.machine.position().unwrap_or(0);
        let mut assembled = self.assembler.wrap(handler);
        // A live stream may join before the position, for example at the begin of a term.
        let unless_delivered = |fragment: &[u8], header: &Header<'_>| {
            if header.position() <= delivered {
                PollAction::Continue
            } else {
                assembled(fragment, header)
            }
        };
        let (fragments, position) = self.live.poll(unless_delivered, fragment_limit);
        if let Some(position) = position {
            self.machine.on_consumed(position.max(delivered));
        }
        fragments
    }

    fn poll_both(
        &mut self,
        handler: &mut impl FnMut(&[u8], &Header<'_>) -> PollAction,
        fragment_limit: usize,
    ) -> usize {
        let Some(replay) = self.replay.facts().filter(|image| !image.is_closed) else {
            return 0;
        };
        let switch = &mut self.switch;
        self.live.poll(
            |_, header| {
                if switch.skip_live(header.position(), replay.position) {
                    PollAction::Continue
                } else {
                    PollAction::Abort
                }
            },
            SKIP_LIMIT,
        );
        let mut is_reached = false;
        let mut assembled = self.assembler.wrap(handler);
        let until_live = |fragment: &[u8], header: &Header<'_>| {
            if switch.is_last(header.position()) {
                is_reached = true;
                return PollAction::Abort;
            }
            assembled(fragment, header)
        };
        let (fragments, position) = self.replay.poll(until_live, fragment_limit);
        if let Some(position) = position {
            self.machine.on_consumed(position);
        }
        if is_reached {
            self.machine.on_switched();
        }
        fragments
    }
}
