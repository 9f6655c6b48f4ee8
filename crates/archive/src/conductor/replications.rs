// SPDX-License-Identifier: Apache-2.0
//! Running replications: the client of the source archive, and the extension by its replay (`docs/spec/archive.md` §2.8, §6).

mod source;

use taran::{ChannelUri, Pending};
use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, Request, SourceLocation};
use taran_archive_client::{Recording, ReplayParams, ReplaySession};
use taran_protocol::event::ArchiveEventCode;

use super::ConductorCore;
use super::catalog_store::Ticket;
use super::recordings::RecordingRequest;
use super::request::{Refusal, Requester};
use crate::files::NewRecording;
use crate::replication::{
    Action, Extent, Facts, ImageFacts, Plan, ReplicationChannel, ReplicationTags, SourceReplay,
    State,
};
use crate::session::Signal;
use source::Source;

/// Actions of one replication per duty cycle.
const ACTION_LIMIT: usize = 16;

/// A request to replicate a recording, of any form.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplicationFields<'a> {
    source_recording_id: i64,
    destination: i64,
    stop_position: i64,
    channel_tag: i64,
    subscription_tag: i64,
    io_max_length: i32,
    session_id: i32,
    source_stream_id: i32,
    source_channel: &'a str,
    live_destination: &'a str,
    channel: &'a str,
    credentials: &'a [u8],
    response_channel: &'a str,
}

/// A replication with what it uses.
#[derive(Debug)]
pub(super) struct Replication {
    machine: crate::replication::Replication,
    /// State that the event log has.
    logged_state: State,
    /// The control session that asked for it.
    session_id: i64,
    channel: ReplicationChannel,
    live_destination: String,
    source: Source,
    storing: Option<(Ticket, i64)>,
    /// The recording subscription of the replay.
    subscription_id: Option<i64>,
    destinations: Vec<Pending<()>>,
}

impl<'a> ReplicationFields<'a> {
    pub(super) fn of(request: &Request<'a>) -> Option<Self> {
        let plain = |source_recording_id,
                     destination,
                     source_stream_id,
                     source_channel,
                     live_destination| Self {
            source_recording_id,
            destination,
            stop_position: NULL_VALUE,
            channel_tag: NULL_VALUE,
            subscription_tag: NULL_VALUE,
            io_max_length: -1,
            session_id: -1,
            source_stream_id,
            source_channel,
            live_destination,
            channel: "",
            credentials: &[],
            response_channel: "",
        };
        match request {
            Request::ReplicateRequest(request) => Some(plain(
                request.src_recording_id,
                request.dst_recording_id,
                request.src_control_stream_id,
                request.src_control_channel,
                request.live_destination,
            )),
            Request::TaggedReplicateRequest(request) => Some(Self {
                channel_tag: request.channel_tag_id,
                subscription_tag: request.subscription_tag_id,
                ..plain(
                    request.src_recording_id,
                    request.dst_recording_id,
                    request.src_control_stream_id,
                    request.src_control_channel,
                    request.live_destination,
                )
            }),
            Request::ReplicateRequest2(request) => Some(Self {
                stop_position: request.stop_position,
                channel_tag: request.channel_tag_id,
                subscription_tag: request.subscription_tag_id,
                io_max_length: request.file_io_max_length,
                session_id: request.replication_session_id,
                channel: request.replication_channel,
                credentials: request.encoded_credentials,
                response_channel: request.src_response_channel,
                ..plain(
                    request.src_recording_id,
                    request.dst_recording_id,
                    request.src_control_stream_id,
                    request.src_control_channel,
                    request.live_destination,
                )
            }),
            _ => None,
        }
    }

    fn is_tagged(&self) -> bool {
        self.channel_tag != NULL_VALUE || self.subscription_tag != NULL_VALUE
    }
}

impl ConductorCore {
    pub(super) fn replicate(&mut self, fields: &ReplicationFields<'_>, to: Requester) {
        match self.check_replication(fields) {
            Ok(channel) => self.start_replication(fields, channel, to),
            Err(refusal) => self.refuse(to, &refusal),
        }
    }

    fn check_replication(&self, fields: &ReplicationFields<'_>) -> Result<ChannelUri, Refusal> {
        let channel = if fields.channel.is_empty() {
            self.config.replication_channel.clone()
        } else {
            ChannelUri::parse(fields.channel).map_err(Refusal::logged)?
        };
        if channel.is_response() {
            let excluded = if !fields.live_destination.is_empty() {
                Some("a live destination")
            } else if fields.is_tagged() {
                Some("tags")
            } else {
                None
            };
            if let Some(excluded) = excluded {
                return Err(Refusal::new(
                    ErrorCode::Generic,
                    format!(
                        "a replication channel with control-mode=response and {excluded} exclude each other: leave one out"
                    ),
                ));
            }
        }
        if fields.destination != NULL_VALUE {
            let found = self.known(fields.destination)?;
            let id = found.recording_id;
            if found.is_active() || self.is_active(id) {
                return Err(Refusal::new(
                    ErrorCode::ActiveRecording,
                    format!(
                        "the destination recording {id} is active: stop it before it is replicated to"
                    ),
                ));
            }
        }
        Ok(channel)
    }

    fn start_replication(
        &mut self,
        fields: &ReplicationFields<'_>,
        channel: ChannelUri,
        to: Requester,
    ) {
        let id = self.next_session_id;
        self.next_session_id += 1;
        let is_live = !fields.live_destination.is_empty();
        let is_manual = is_live || fields.is_tagged();
        let tag = |tag| if tag == NULL_VALUE { id } else { tag };
        let tags = is_manual.then(|| ReplicationTags {
            channel: tag(fields.channel_tag),
            subscription: tag(fields.subscription_tag),
        });
        let plan = Plan {
            source_recording_id: fields.source_recording_id,
            destination: (fields.destination != NULL_VALUE).then_some(fields.destination),
            stop_position: (fields.stop_position != NULL_VALUE).then_some(fields.stop_position),
            io_max_length: (fields.io_max_length > 0).then_some(fields.io_max_length),
            session_id: (fields.session_id != -1).then_some(fields.session_id),
            is_live,
            is_manual,
            timeout_ns: self.config.message_timeout_ns,
        };
        let context = source::context(
            &self.config,
            fields.source_channel,
            fields.source_stream_id,
            fields.response_channel,
            fields.credentials,
            &format!("archiveId={} replicationSessionId={id}", self.archive_id),
        );
        let replication = Replication {
            machine: crate::replication::Replication::new(plan),
            logged_state: State::Connect,
            session_id: to.session_id,
            channel: ReplicationChannel::new(channel, tags, is_live),
            live_destination: fields.live_destination.to_owned(),
            source: Source::new(context, fields.source_recording_id),
            storing: None,
            subscription_id: None,
            destinations: Vec::new(),
        };
        self.replications.insert(id, replication);
        self.respond(to, Ok(id));
    }

    pub(super) fn stop_replication(&mut self, id: i64) -> Result<i64, Refusal> {
        let Some(found) = self.replications.get_mut(&id) else {
            return Err(Refusal::new(
                ErrorCode::UnknownReplication,
                format!("there is no replication {id}"),
            ));
        };
        found.machine.stop();
        Ok(0)
    }

    pub(super) fn poll_replications(&mut self) -> usize {
        if self.replications.is_empty() {
            return 0;
        }
        let ids: Vec<_> = self.replications.keys().copied().collect();
        let mut work = 0;
        for id in ids {
            self.poll_results(id);
            work += self.run_replication(id);
        }
        work
    }

    /// Takes the results of what a replication has started.
    fn poll_results(&mut self, id: i64) {
        let applied = self.store.applied();
        let Some(found) = self.replications.get_mut(&id) else {
            return;
        };
        if let Some((ticket, recording_id)) = found.storing
            && ticket <= applied
        {
            found.storing = None;
            found.machine.on_stored(Ok(recording_id));
        }
        let Replication {
            machine,
            destinations,
            ..
        } = found;
        destinations.retain_mut(|pending| match pending.poll() {
            None => true,
            Some(Err(error)) if error.is_retryable() => {
                machine.on_destination_unavailable(error.to_string());
                false
            }
            Some(outcome) => {
                machine.on_destination(outcome.map_err(|error| error.to_string()));
                false
            }
        });
        let destination = (machine.state() == State::Describe)
            .then(|| self.catalog.get(machine.recording_id()))
            .flatten()
            .map(|descriptor| Extent {
                start: descriptor.start_position,
                stop: descriptor.stop_position,
            });
        found.source.poll(machine, destination, self.now.nanos);
    }

    /// Does what a replication decides; returns the number of actions.
    fn run_replication(&mut self, id: i64) -> usize {
        for count in 0..ACTION_LIMIT {
            let Some(facts) = self.replication_facts(id) else {
                return count;
            };
            let Some(found) = self.replications.get_mut(&id) else {
                return count;
            };
            let action = found.machine.step(&facts);
            let (before, state) = (found.logged_state, found.machine.state());
            if state != before {
                found.logged_state = state;
                self.events.log(
                    ArchiveEventCode::ReplicationSessionStateChange,
                    format_args!(
                        "replicationId={id}, {} -> {}, recordingId={}",
                        before.name(),
                        state.name(),
                        found.machine.recording_id()
                    ),
                );
            }
            let Some(action) = action else {
                return count;
            };
            self.execute(id, action);
        }
        ACTION_LIMIT
    }

    fn replication_facts(&self, id: i64) -> Option<Facts> {
        let found = self.replications.get(&id)?;
        let subscription = found
            .subscription_id
            .and_then(|id| self.subscriptions.get(&id))
            .filter(|subscription| subscription.is_listed());
        let is_endpoint_known = !found.channel.needs_port()
            || subscription.is_some_and(|found| found.subscription.resolved_endpoint().is_some());
        let image = found
            .machine
            .replay()
            .zip(found.subscription_id)
            .and_then(|(replay, id)| self.recorded_image(id, replay));
        Some(Facts {
            now_ns: self.now.nanos,
            is_source_connected: found.source.is_connected(),
            is_subscribed: found.subscription_id.is_none() || subscription.is_some(),
            is_endpoint_known,
            image,
        })
    }

    fn recorded_image(&self, subscription_id: i64, replay: ReplaySession) -> Option<ImageFacts> {
        let active = self.recordings.values().find(|active| {
            active.subscription_id() == subscription_id
                && active.image().session_id() == replay.session_id()
        })?;
        let image = active.image();
        Some(ImageFacts {
            taken: image.position(),
            recorded: active.counter.get(),
            // Term lengths are at most 2^30.
            term_length: image.term_length() as i64,
            active_transports: image.active_transport_count(),
        })
    }

    fn execute(&mut self, id: i64, action: Action) {
        let Some(found) = self.replications.get_mut(&id) else {
            return;
        };
        let to = Requester {
            session_id: found.session_id,
            correlation_id: id,
        };
        match action {
            Action::Connect => {
                let outcome = found.source.connect(&self.client, self.now.nanos);
                if let Err(text) = outcome {
                    // A channel that is malformed, and not an archive that does not answer.
                    found.machine.on_source_error(text);
                }
            }
            Action::Describe => found.source.describe(),
            Action::AskPosition => found.source.ask_position(),
            Action::Store { source, replaced } => self.store_replica(id, &source, replaced),
            Action::Extend {
                recording_id,
                stream_id,
                session_id,
            } => match found.channel.recorded(session_id) {
                Ok(channel) => {
                    let wanted = RecordingRequest {
                        extends: Some(recording_id),
                        replication: Some(id),
                        channel: &channel,
                        stream_id,
                        source_location: SourceLocation::REMOTE,
                        auto_stop: true,
                    };
                    self.start_recording(&wanted, to);
                }
                Err(error) => found.machine.on_source_error(error.to_string()),
            },
            Action::AddReplayDestination => {
                let destination = found.channel.destination();
                match destination {
                    Ok(destination) => self.add_destination(id, &destination),
                    Err(error) => found.machine.on_destination(Err(error.to_string())),
                }
            }
            Action::AddLiveDestination => {
                let destination = found.live_destination.clone();
                self.add_destination(id, &destination);
            }
            Action::RemoveReplayDestination => self.remove_replay_destination(id),
            Action::StartReplay {
                stream_id,
                position,
                length,
                session_id,
                io_max_length,
            } => {
                let mut params = ReplayParams::new().position(position);
                if let Some(length) = length {
                    params = params.length(length);
                }
                if let Some(length) = io_max_length {
                    params = params.file_io_max_length(length);
                }
                self.start_source_replay(id, stream_id, session_id, &params);
            }
            Action::Signal {
                signal,
                recording_id,
                names_subscription,
                position,
            } => {
                let subscription_id = found.subscription_id.filter(|_| names_subscription);
                let signal = Signal {
                    correlation_id: id,
                    recording_id,
                    subscription_id: subscription_id.unwrap_or(NULL_VALUE),
                    position,
                    signal,
                };
                self.signal(to.session_id, &signal);
            }
            Action::Fail { code, text } => {
                let source = found.source.name();
                let text = format!("replication {id} from {source}: {text}");
                let refusal = Refusal {
                    code,
                    text,
                    is_logged: true,
                };
                self.refuse(to, &refusal);
            }
            Action::StopReplay(session) => found.source.stop_replay(session),
            Action::StopRecording => {
                if let Some(subscription_id) = found.subscription_id {
                    self.stop_subscription(subscription_id);
                }
            }
            Action::End => {
                let Some(done) = self.replications.remove(&id) else {
                    return;
                };
                self.events.log(
                    ArchiveEventCode::ReplicationSessionDone,
                    format_args!(
                        "replicationId={id}, controlSessionId={}, recordingId={}",
                        done.session_id,
                        done.machine.recording_id()
                    ),
                );
            }
        }
    }

    /// Makes a recording with the metadata of the source, without data.
    fn store_replica(&mut self, id: i64, source: &Recording, replaced: Option<i64>) {
        let new = NewRecording::from(source);
        let stored = match replaced {
            None => self.catalog.add(&new).map_err(|error| error.to_string()),
            Some(recording_id) => self
                .catalog
                .replace(recording_id, &new)
                .map(|change| (recording_id, change))
                .map_err(|error| error.to_string()),
        };
        let stored = stored.and_then(|(recording_id, change)| {
            self.store.submit(change);
            // Without data it ends where, and when, it starts.
            let stopped =
                self.catalog
                    .stop(recording_id, source.start_position, source.start_timestamp);
            let change = stopped.map_err(|error| error.to_string())?;
            Ok((self.store.submit(change), recording_id))
        });
        let Some(found) = self.replications.get_mut(&id) else {
            return;
        };
        match stored {
            Ok(storing) => found.storing = Some(storing),
            Err(text) => found.machine.on_stored(Err(text)),
        }
    }

    fn add_destination(&mut self, id: i64, destination: &str) {
        let Some(found) = self.replications.get_mut(&id) else {
            return;
        };
        let subscription = found
            .subscription_id
            .and_then(|id| self.subscriptions.get(&id));
        let Some(subscription) = subscription else {
            return;
        };
        match subscription.subscription.async_add_destination(destination) {
            Ok(pending) => found.destinations.push(pending),
            Err(error) if error.is_retryable() => {
                found.machine.on_destination_unavailable(error.to_string());
            }
            Err(error) => found.machine.on_destination(Err(error.to_string())),
        }
    }

    fn remove_replay_destination(&mut self, id: i64) {
        let Some(found) = self.replications.get(&id) else {
            return;
        };
        let subscription = found
            .subscription_id
            .and_then(|id| self.subscriptions.get(&id));
        let (Some(subscription), Ok(destination)) = (subscription, found.channel.destination())
        else {
            return;
        };
        // Nothing depends on the answer: the source ends its replay, too.
        match subscription
            .subscription
            .async_remove_destination(&destination)
        {
            Ok(pending) => drop(pending),
            Err(error) => self.log(ErrorCode::Generic, &error.to_string()),
        }
    }

    fn start_source_replay(
        &mut self,
        id: i64,
        stream_id: i32,
        session_id: i32,
        params: &ReplayParams,
    ) {
        let Some(found) = self.replications.get_mut(&id) else {
            return;
        };
        let subscription = found
            .subscription_id
            .and_then(|id| self.subscriptions.get(&id));
        let Some(subscription) = subscription.map(|found| &found.subscription) else {
            return;
        };
        let resolved = subscription
            .resolved_endpoint()
            .map(|endpoint| endpoint.to_string());
        match found.channel.of_source(session_id, resolved.as_deref()) {
            Ok(SourceReplay::Channel(channel)) => {
                found.source.start_replay(&channel, stream_id, params);
            }
            Ok(SourceReplay::Response) => {
                found
                    .source
                    .start_response_replay(subscription, params, self.now.nanos);
            }
            Err(error) => found.machine.on_source_error(error.to_string()),
        }
    }

    // --- news of the recording ---

    /// Returns true if a replication is under way into a recording. Until its replay has an image, that recording is stopped, at
    /// a time of its source.
    pub(super) fn is_destination(&self, recording_id: i64) -> bool {
        let mut under_way = self.replications.values();
        under_way.any(|found| {
            let storing = found.storing.map(|(_, storing)| storing);
            storing.unwrap_or_else(|| found.machine.recording_id()) == recording_id
        })
    }

    /// Returns true unless the replication for which a recording was to be extended has ended.
    pub(super) fn is_replicating(&self, replication: Option<i64>) -> bool {
        replication.is_none_or(|id| {
            self.replications
                .get(&id)
                .is_some_and(|found| found.machine.state() != State::Done)
        })
    }

    /// Takes note that the subscription of a replication was added; `None` if it was refused.
    pub(super) fn on_replication_subscription(
        &mut self,
        replication: Option<i64>,
        subscription_id: Option<i64>,
    ) {
        let found = replication.and_then(|id| self.replications.get_mut(&id));
        if let Some(found) = found {
            found.subscription_id = subscription_id;
            found.machine.on_extended(subscription_id.is_some());
        }
    }

    /// Takes note that the subscription of a replication cannot be added yet.
    pub(super) fn on_replication_unavailable(&mut self, replication: i64, reason: String) {
        if let Some(found) = self.replications.get_mut(&replication) {
            found.machine.on_extension_unavailable(reason);
        }
    }

    /// Ends the replication of a recording that has ended, before that is announced.
    pub(super) fn on_replica_ended(
        &mut self,
        replication: Option<i64>,
        position: i64,
        is_refused: bool,
    ) {
        let Some(id) = replication else { return };
        if let Some(found) = self.replications.get_mut(&id) {
            found.machine.on_recording_ended(position, is_refused);
            self.run_replication(id);
        }
    }

    /// Ends all replications, for the end of the archive.
    pub(super) fn close_all_replications(&mut self) {
        let ids: Vec<_> = self.replications.keys().copied().collect();
        for id in ids {
            if let Some(found) = self.replications.get_mut(&id) {
                found.machine.stop();
            }
            self.run_replication(id);
        }
    }
}
