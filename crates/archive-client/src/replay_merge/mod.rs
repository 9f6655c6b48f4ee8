// SPDX-License-Identifier: Apache-2.0
//! Replaying a recording and merging with its live stream, in one image.

mod machine;

use std::fmt;
use std::time::Duration;

use taran::{ChannelUri, CommandError, Header, ImageView, Param, Pending, Position, Subscription};
use thiserror::Error;

use crate::client::{ArchiveConnection, Call, ReplayParams, ReplaySession};
use crate::session::RequestError;

pub use machine::MergeState;
use machine::{Action, Facts, ImageFacts, Machine};

/// Failure of a merge.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// An option is invalid.
    #[error("invalid options of the replay merge: {0}")]
    Option(String),
    /// A request to the archive failed.
    #[error(transparent)]
    Request(RequestError),
    /// A destination could not be added or removed.
    #[error("a destination could not be changed: {0}")]
    Driver(CommandError),
    /// The replay has ended before the merge.
    #[error(
        "the replay has ended before the live stream was joined; check the archive's errors, and begin again"
    )]
    ReplayEnded,
    /// Nothing has moved for the merge timeout.
    #[error(
        "no progress within {after:?} in the state {state:?}; check that replay and live stream reach this machine"
    )]
    NoProgress {
        /// The state.
        state: MergeState,
        /// The merge timeout.
        after: Duration,
    },
}

taran_core::debug_is_display!(MergeError);

/// Options of a [`ReplayMerge`].
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Id of the recording.
    pub recording_id: i64,
    /// Position to begin at.
    pub start_position: Position,
    /// Session id of the stream, which recording, replay and live stream have in common.
    pub session_id: i32,
    /// Destination of the replay: a UDP endpoint of this machine, with port 0 for any.
    pub replay_destination: String,
    /// Destination of the live stream.
    pub live_destination: String,
    /// Parameters for the replay channel beside endpoint and session id, as a channel; `aeron:udp` for none.
    pub replay_channel: String,
    /// Maximum time without progress. Default of Aeron: 5 s.
    pub timeout: Duration,
}

/// Replays a recording from a position, and merges with the live stream, in one image of one subscription.
///
/// The subscription must be UDP and have `control-mode=manual`. Messages come from [`poll`](Self::poll), before the merge and
/// after it. [`PersistentSubscription`](crate::PersistentSubscription) does the same over IPC too, and survives failures;
/// this is for applications that need one image.
pub struct ReplayMerge {
    machine: Machine,
    options: MergeOptions,
    subscription: Subscription,
    image: Option<ImageView>,
    session_id: i32,
    position_call: Option<Call<i64>>,
    replay_call: Option<Call<ReplaySession>>,
    destinations: Vec<Pending<()>>,
}

impl fmt::Debug for ReplayMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMerge")
            .field("state", &self.machine.state())
            .field("recording_id", &self.options.recording_id)
            .finish_non_exhaustive()
    }
}

impl ReplayMerge {
    /// Begins a merge on a subscription without destinations.
    ///
    /// # Errors
    /// An option is invalid; the replay destination could not be added.
    pub fn new(subscription: Subscription, options: MergeOptions) -> Result<Self, MergeError> {
        let invalid =
            |name: &str, reason: &dyn fmt::Display| MergeError::Option(format!("{name}: {reason}"));
        let parse = |name: &str, channel: &str| {
            let uri = ChannelUri::parse(channel).map_err(|error| invalid(name, &error))?;
            if uri.media() == taran::Media::Ipc {
                return Err(invalid(
                    name,
                    &"must be UDP; use PersistentSubscription for IPC",
                ));
            }
            Ok(uri)
        };
        let channel = parse("subscription", subscription.channel())?;
        if channel.get(Param::ControlMode) != Some("manual") {
            return Err(invalid("subscription", &"must have control-mode=manual"));
        }
        let replay = parse("replay_destination", &options.replay_destination)?;
        parse("live_destination", &options.live_destination)?;
        parse("replay_channel", &options.replay_channel)?;
        let endpoint = replay
            .get(Param::Endpoint)
            .ok_or_else(|| invalid("replay_destination", &"must have an endpoint"))?;
        let is_replay_port_known = !endpoint.ends_with(":0");
        let added = subscription
            .async_add_destination(&options.replay_destination)
            .map_err(MergeError::Driver)?;
        let timeout_ns = i64::try_from(options.timeout.as_nanos()).unwrap_or(i64::MAX);
        Ok(Self {
            machine: Machine::new(is_replay_port_known, timeout_ns),
            session_id: options.session_id,
            options,
            subscription,
            image: None,
            position_call: None,
            replay_call: None,
            destinations: vec![added],
        })
    }

    /// Does what is due, and calls `handler` with up to `fragment_limit` fragments. `archive` must be
    /// [polled](ArchiveConnection::poll) by the caller. Returns the number of fragments.
    ///
    /// # Errors
    /// The merge has failed. The subscription can be taken out and be used again.
    pub fn poll(
        &mut self,
        archive: &mut ArchiveConnection,
        now_ns: i64,
        handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, MergeError> {
        self.do_work(archive, now_ns);
        let fragments = match self.subscription.image_mut(self.session_id) {
            Some(image) => image.poll(handler, fragment_limit),
            None => 0,
        };
        match self.machine.error() {
            Some(error) => Err(error.clone()),
            None => Ok(fragments),
        }
    }

    /// Does what is due, without reading messages: for applications that poll the image of
    /// [`subscription`](Self::subscription) themselves.
    pub fn do_work(&mut self, archive: &mut ArchiveConnection, now_ns: i64) {
        if let Some(outcome) = self.position_call.as_mut().and_then(Call::poll) {
            self.position_call = None;
            self.machine.on_max_position(outcome, now_ns);
        }
        if let Some(outcome) = self.replay_call.as_mut().and_then(Call::poll) {
            self.replay_call = None;
            self.machine.on_replay(outcome, now_ns);
        }
        let mut failure = None;
        self.destinations
            .retain_mut(|pending| match pending.poll() {
                None => true,
                Some(outcome) => {
                    failure = outcome.err();
                    false
                }
            });
        if let Some(error) = failure {
            self.machine.fail(MergeError::Driver(error));
        }
        if let Some(session) = self.machine.session() {
            self.session_id = session.session_id();
            if self.image.is_none() {
                self.image = self.subscription.image(self.session_id);
            }
        }
        let facts = Facts {
            now_ns,
            is_replay_port_known: self.subscription.resolved_endpoint().is_some(),
            image: self.image.as_ref().map(|image| ImageFacts {
                position: image.position(),
                term_length: i64::try_from(image.term_length()).unwrap_or(i64::MAX),
                active_transports: image.active_transport_count(),
                is_closed: image.is_closed(),
            }),
        };
        if let Some(action) = self.machine.step(&facts) {
            self.execute(archive, action);
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> MergeState {
        self.machine.state()
    }

    /// Returns true if the stream comes from the live destination.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.machine.state() == MergeState::Merged
    }

    /// Returns true if the live destination was added.
    #[must_use]
    pub fn is_live_added(&self) -> bool {
        self.machine.is_live_added()
    }

    /// Returns the image of replay and live stream; `None` until it has arrived.
    #[must_use]
    pub fn image(&self) -> Option<&ImageView> {
        self.image.as_ref()
    }

    /// Returns the subscription.
    pub fn subscription(&mut self) -> &mut Subscription {
        &mut self.subscription
    }

    /// Ends the merge, and returns the subscription. Unless merged, the replay is stopped and its destination removed.
    pub fn into_subscription(mut self, archive: &mut ArchiveConnection) -> Subscription {
        while let Some(action) = self.machine.close() {
            self.execute(archive, action);
        }
        self.subscription
    }

    fn execute(&mut self, archive: &mut ArchiveConnection, action: Action) {
        let recording_id = self.options.recording_id;
        match action {
            Action::RequestMaxPosition => {
                self.position_call = Some(archive.max_recorded_position(recording_id));
            }
            Action::StartReplay => match self.replay_channel() {
                Ok(channel) => {
                    // Follows the recording for ever: the merge stops it.
                    let params = ReplayParams::new()
                        .position(self.options.start_position)
                        .length(i64::MAX);
                    let stream_id = self.subscription.stream_id();
                    self.replay_call =
                        Some(archive.start_replay(recording_id, &channel, stream_id, &params));
                }
                Err(error) => self.machine.fail(MergeError::Option(error.to_string())),
            },
            Action::AddLiveDestination => {
                let added = self
                    .subscription
                    .async_add_destination(&self.options.live_destination);
                self.on_destination(added);
            }
            Action::RemoveReplayDestination => {
                let removed = self
                    .subscription
                    .async_remove_destination(&self.options.replay_destination);
                self.on_destination(removed);
            }
            // The archive also ends a replay whose destination is gone.
            Action::StopReplay(session) => drop(archive.stop_replay(session)),
        }
    }

    fn on_destination(&mut self, outcome: Result<Pending<()>, CommandError>) {
        match outcome {
            Ok(pending) => self.destinations.push(pending),
            Err(error) => self.machine.fail(MergeError::Driver(error)),
        }
    }

    /// Returns the channel for the archive's replay publication.
    fn replay_channel(&self) -> Result<String, taran::UriError> {
        let destination = ChannelUri::parse(&self.options.replay_destination)?;
        let mut endpoint = destination
            .get(Param::Endpoint)
            .unwrap_or_default()
            .to_owned();
        if endpoint.ends_with(":0")
            && let Some(resolved) = self.subscription.resolved_endpoint()
        {
            let with_port = destination.with_endpoint_port(&resolved.to_string())?;
            with_port
                .get(Param::Endpoint)
                .unwrap_or_default()
                .clone_into(&mut endpoint);
        }
        let channel = ChannelUri::parse(&self.options.replay_channel)?
            .with(Param::Endpoint.key(), &endpoint)?
            .with(Param::Linger.key(), "0")?
            .with(Param::Eos.key(), "false")?
            .with_session_id(self.options.session_id)?;
        Ok(channel.as_str().to_owned())
    }
}
