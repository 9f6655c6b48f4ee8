// SPDX-License-Identifier: Apache-2.0
//! Starting and stopping replays (`docs/spec/archive.md` §2.6, §5).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taran::{ExclusivePublication, ImageView, Pending};
use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, Request};
use taran_protocol::event::ArchiveEventCode;
use taran_protocol::uri::ChannelUri;

use super::ConductorCore;
use super::request::{Refusal, RequestIds, Requester};
use super::time_index::LookupFor;
use crate::channel::{ReplayOrigin, replay_channel};
use crate::files::{Bound, Descriptor, RecordingLayout, TimeEntry};
use crate::replayer::{
    Conversion, LimitCounter, ReplayLimit, ReplayReport, ReplaySpec, ReplayerCommand,
};

/// Attempts to draw a token that is not in use.
const TOKEN_ATTEMPTS: usize = 16;
/// Lowest time that a position can stand for: lower values are mistakes.
const TIME_MIN_MS: i64 = 1 << 31;
/// Length that stands for all there is, without following.
const ALL_AND_STOP: i64 = -2;

/// A request to replay, of either form.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayFields<'a> {
    recording_id: i64,
    position: i64,
    length: i64,
    limit_counter_id: Option<i32>,
    stream_id: i32,
    io_max_length: i32,
    token: i64,
    channel: &'a str,
}

/// A request to replay that waits.
#[derive(Clone, Debug)]
pub(super) struct WaitingReplay {
    recording_id: i64,
    position: i64,
    length: i64,
    limit_counter_id: Option<i32>,
    stream_id: i32,
    io_max_length: i32,
    channel: String,
    to: Requester,
    /// Correlation id of the image of the request.
    image: i64,
}

/// A request to replay from a time, while the position is looked up.
#[derive(Clone, Debug)]
pub(super) struct TimedReplay {
    time_ms: i64,
    request: WaitingReplay,
}

/// A token with which a client may start a replay from another image.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayToken {
    pub(super) session_id: i64,
    recording_id: i64,
    deadline_ns: i64,
}

/// A replay that waits for the driver.
#[derive(Debug)]
pub(super) enum PendingReplay {
    /// The recording is about to be active: the driver has not added the counter with its position yet.
    Recording(Box<WaitingReplay>),
    /// The driver has not added the publication yet.
    Publication {
        pending: Pending<ExclusivePublication>,
        plan: Box<ReplayPlan>,
        to: Requester,
    },
}

impl PendingReplay {
    /// Returns the position from which it reads the recording, if it is a replay of this one.
    fn position(&self, recording_id: i64) -> Option<i64> {
        let (id, position) = match self {
            PendingReplay::Recording(request) => (request.recording_id, request.position),
            PendingReplay::Publication { plan, .. } => (plan.recording_id, plan.position),
        };
        (id == recording_id).then_some(position)
    }
}

/// A replay in the replayer.
#[derive(Debug)]
pub(super) struct ActiveReplay {
    recording_id: i64,
    /// As the client knows it.
    session_id: i64,
    to: Requester,
    position: Arc<AtomicI64>,
}

/// Plan of a replay.
#[derive(Debug)]
pub(super) struct ReplayPlan {
    recording_id: i64,
    layout: RecordingLayout,
    recorded_stream_id: i32,
    mtu: usize,
    position: i64,
    limit: ReplayLimit,
    checks_header: bool,
    io_max_length: usize,
    deadline_ns: i64,
}

impl<'a> ReplayFields<'a> {
    pub(super) fn of(request: &Request<'a>) -> Option<Self> {
        match request {
            Request::ReplayRequest(request) => Some(Self {
                recording_id: request.recording_id,
                position: request.position,
                length: request.length,
                limit_counter_id: None,
                stream_id: request.replay_stream_id,
                io_max_length: request.file_io_max_length,
                token: request.replay_token,
                channel: request.replay_channel,
            }),
            Request::BoundedReplayRequest(request) => Some(Self {
                recording_id: request.recording_id,
                position: request.position,
                length: request.length,
                limit_counter_id: Some(request.limit_counter_id),
                stream_id: request.replay_stream_id,
                io_max_length: request.file_io_max_length,
                token: request.replay_token,
                channel: request.replay_channel,
            }),
            _ => None,
        }
    }

    /// Returns the time, in milliseconds since 1970, that the request gives in place of a position: as a multiple of -32.
    /// Aeron's archives answer such a position with an error.
    fn time_ms(&self) -> Option<i64> {
        let is_time = self.position % 32 == 0 && self.position / -32 >= TIME_MIN_MS;
        is_time.then_some(self.position / -32)
    }

    /// Returns a copy of the request that can wait.
    fn waiting(&self, to: Requester, image: i64) -> WaitingReplay {
        WaitingReplay {
            recording_id: self.recording_id,
            position: self.position,
            length: self.length,
            limit_counter_id: self.limit_counter_id,
            stream_id: self.stream_id,
            io_max_length: self.io_max_length,
            channel: self.channel.to_owned(),
            to,
            image,
        }
    }

    /// Returns true if the request is admitted by a token and not by its session.
    pub(super) fn has_token(&self) -> bool {
        self.token != NULL_VALUE
            && ChannelUri::parse(self.channel).is_ok_and(|channel| channel.is_response())
    }
}

impl WaitingReplay {
    fn fields(&self, position: i64) -> ReplayFields<'_> {
        ReplayFields {
            recording_id: self.recording_id,
            position,
            length: self.length,
            limit_counter_id: self.limit_counter_id,
            stream_id: self.stream_id,
            io_max_length: self.io_max_length,
            // It was admitted before.
            token: NULL_VALUE,
            channel: &self.channel,
        }
    }
}

impl ConductorCore {
    pub(super) fn add_replay_token(
        &mut self,
        session_id: i64,
        recording_id: i64,
    ) -> Result<i64, Refusal> {
        let random = &mut self.random;
        let numbers = std::iter::from_fn(random).take(TOKEN_ATTEMPTS);
        let tokens = &self.tokens;
        let unused = |token: &i64| *token != NULL_VALUE && !tokens.contains_key(token);
        let token = numbers.into_iter().find(unused).ok_or_else(|| {
            Refusal::logged(
                "there are no random numbers for replay tokens: /dev/urandom cannot be read",
            )
        })?;
        let now_ns = self.now.nanos;
        self.tokens.retain(|_, token| now_ns < token.deadline_ns);
        self.tokens.insert(
            token,
            ReplayToken {
                session_id,
                recording_id,
                deadline_ns: now_ns.saturating_add(self.config.connect_timeout_ns),
            },
        );
        Ok(token)
    }

    pub(super) fn replay_with_token(
        &mut self,
        fields: &ReplayFields<'_>,
        ids: RequestIds,
        image: &ImageView,
    ) {
        let token = self.tokens.get(&fields.token).copied();
        match token {
            Some(token)
                if token.recording_id == fields.recording_id
                    && self.now.nanos < token.deadline_ns =>
            {
                let to = Requester {
                    session_id: token.session_id,
                    correlation_id: ids.correlation_id,
                };
                self.start_replay(fields, to, image);
            }
            _ => {
                let refusal = Refusal::logged(format!(
                    "the replay token is not valid for the recording {}: tokens are for one recording, and expire after \
                     aeron.archive.connect.timeout",
                    fields.recording_id
                ));
                let to = Requester {
                    session_id: ids.session_id,
                    correlation_id: ids.correlation_id,
                };
                if self.is_own_image(ids.session_id, image) {
                    self.refuse(to, &refusal);
                } else {
                    self.log(refusal.code, &refusal.text);
                }
            }
        }
    }

    pub(super) fn start_replay(
        &mut self,
        fields: &ReplayFields<'_>,
        to: Requester,
        image: &ImageView,
    ) {
        let image = image.correlation_id();
        if let Some(time_ms) = fields.time_ms()
            && let Ok(found) = self.known(fields.recording_id)
        {
            let end = self.recorded_position(fields.recording_id);
            // Nothing can be replayed from the end of a stopped recording: an entry that is there is not found.
            let position = end.unwrap_or(found.stop_position - 1);
            let replay = TimedReplay {
                time_ms,
                request: fields.waiting(to, image),
            };
            let bound = Bound::Before { time_ms, position };
            self.look_up(
                fields.recording_id,
                bound,
                LookupFor::Replay(Box::new(replay)),
            );
            return;
        }
        if let Err(refusal) = self.try_start_replay(fields, to, image) {
            self.refuse(to, &refusal);
        }
    }

    /// Goes on with a replay from a time: at the last entry of the time index before it, or the start of the recording.
    pub(super) fn start_timed_replay(&mut self, replay: &TimedReplay, found: Option<TimeEntry>) {
        let request = &replay.request;
        let known = self.known(request.recording_id);
        let start = known.map_or(NULL_VALUE, |found| found.start_position);
        let fields = request.fields(found.map_or(start, |found| found.position.max(start)));
        if let Err(mut refusal) = self.try_start_replay(&fields, request.to, request.image) {
            refusal.text = format!(
                "a replay from the time {} ms: {}",
                replay.time_ms, refusal.text
            );
            self.refuse(request.to, &refusal);
        }
    }

    fn try_start_replay(
        &mut self,
        fields: &ReplayFields<'_>,
        to: Requester,
        image: i64,
    ) -> Result<(), Refusal> {
        let channel = ChannelUri::parse(fields.channel).map_err(Refusal::logged)?;
        let bound = match fields.limit_counter_id {
            None => None,
            Some(id) => Some(
                LimitCounter::new(self.client.counters(), id).ok_or_else(|| {
                    Refusal::new(
                        ErrorCode::Generic,
                        format!("the counter {id} that bounds the replay is not allocated"),
                    )
                })?,
            ),
        };
        let (active, max) = (
            self.replays.len() + self.pending_replays.len(),
            self.config.max_replays,
        );
        if active >= max {
            return Err(Refusal::new(
                ErrorCode::MaxReplays,
                format!(
                    "{active} replays are active and {max} allowed: stop one, or raise \
                     aeron.archive.max.concurrent.replays"
                ),
            ));
        }
        let found = self.known(fields.recording_id)?;
        if bound.is_none() && self.is_about_to_be_active(fields.recording_id) {
            let request = Box::new(fields.waiting(to, image));
            self.pending_replays.push(PendingReplay::Recording(request));
            return Ok(());
        }
        let plan = self.plan_replay(fields, found, bound)?;
        let origin = ReplayOrigin {
            position: plan.position,
            initial_term_id: found.initial_term_id,
            term_length: found.term_buffer_length,
            mtu: found.mtu_length,
        };
        let response_to = channel.is_response().then_some(image);
        let linger_ns = self.config.replay_linger_ns;
        let channel =
            replay_channel(&channel, &origin, linger_ns, response_to).map_err(Refusal::logged)?;
        let pending = self
            .client
            .async_add_exclusive_publication(channel, fields.stream_id)
            .map_err(Refusal::logged)?;
        self.pending_replays.push(PendingReplay::Publication {
            pending,
            plan: Box::new(plan),
            to,
        });
        Ok(())
    }

    /// Returns true if the catalog has the recording as an active one, and its position is not there yet.
    fn is_about_to_be_active(&self, recording_id: i64) -> bool {
        self.pending_recordings
            .iter()
            .any(|recording| recording.start.recording_id == recording_id)
    }

    fn plan_replay(
        &self,
        fields: &ReplayFields<'_>,
        found: &Descriptor,
        bound: Option<LimitCounter>,
    ) -> Result<ReplayPlan, Refusal> {
        let invalid = |text: String| Refusal::new(ErrorCode::InvalidPosition, text);
        let (id, start, stop) = (
            found.recording_id,
            found.start_position,
            found.stop_position,
        );
        let layout = found.layout().map_err(Refusal::logged)?;
        let position = match fields.position {
            NULL_VALUE => start,
            position if position % 32 != 0 => {
                return Err(Refusal::new(
                    ErrorCode::Generic,
                    format!(
                        "the position {position} is not a multiple of 32, as positions of frames are"
                    ),
                ));
            }
            position if position < start => {
                return Err(invalid(format!(
                    "the position {position} is before the start position {start} of the recording {id}"
                )));
            }
            position if stop != NULL_VALUE && position >= stop => {
                return Err(invalid(format!(
                    "the position {position} is not before the stop position {stop} of the recording {id}"
                )));
            }
            position => position,
        };
        let mtu = found.mtu_length as usize;
        let io_max_length = match usize::try_from(fields.io_max_length) {
            Ok(length) if length > 0 => length.min(self.config.io_max_length),
            _ => self.config.io_max_length,
        };
        if io_max_length < mtu {
            return Err(Refusal::new(
                ErrorCode::Generic,
                format!(
                    "reads of at most {io_max_length} bytes cannot take a frame of the recording {id}, whose MTU is {mtu}: \
                     raise fileIoMaxLength or aeron.archive.file.io.max.length"
                ),
            ));
        }
        let active = self.recordings.get(&id);
        let own = || {
            let counter = active.map(|recording| recording.counter.id());
            counter.and_then(|id| LimitCounter::new(self.client.counters(), id))
        };
        let limit_counter = bound.or_else(own);
        let limit = limit_counter.as_ref().and_then(LimitCounter::value);
        if let Some(limit) = limit
            && position > limit
        {
            return Err(invalid(format!(
                "the position {position} is beyond the limit {limit} of the replay"
            )));
        }
        // Without a limit the recording has stopped.
        let available = limit.unwrap_or(if stop == NULL_VALUE { start } else { stop });
        let length = match (fields.length, limit) {
            (NULL_VALUE, Some(_)) => i64::MAX - position,
            (NULL_VALUE, None) | (ALL_AND_STOP, _) => available - position,
            (length, Some(_)) => length,
            (length, None) => length.min(available - position),
        };
        if fields.length == ALL_AND_STOP && length <= 0 {
            return Err(Refusal::new(
                ErrorCode::EmptyRecording,
                format!("the recording {id} has nothing to replay at position {position}"),
            ));
        }
        if length < 0 {
            return Err(Refusal::new(
                ErrorCode::Generic,
                format!("the length {} of the replay is negative", fields.length),
            ));
        }
        Ok(ReplayPlan {
            recording_id: id,
            recorded_stream_id: found.stream_id,
            mtu,
            position,
            limit: ReplayLimit::new(position.saturating_add(length), available, limit_counter),
            checks_header: position != start && position != stop && position < available,
            io_max_length,
            deadline_ns: self
                .now
                .nanos
                .saturating_add(self.config.connect_timeout_ns),
            layout,
        })
    }

    pub(super) fn poll_pending_replays(&mut self) -> usize {
        let mut work = 0;
        let mut at = 0;
        while let Some(pending) = self.pending_replays.get_mut(at) {
            let (recording_id, polled) = match pending {
                PendingReplay::Recording(request) => (Some(request.recording_id), None),
                PendingReplay::Publication { pending, .. } => (None, pending.poll()),
            };
            let is_ready = match recording_id {
                Some(recording_id) => !self.is_about_to_be_active(recording_id),
                None => polled.is_some(),
            };
            if !is_ready {
                at += 1;
                continue;
            }
            work += 1;
            match (self.pending_replays.swap_remove(at), polled) {
                (PendingReplay::Publication { plan, to, .. }, Some(Ok(publication))) => {
                    self.start_in_replayer(*plan, publication, to);
                }
                (PendingReplay::Publication { to, .. }, Some(Err(error))) => {
                    self.refuse(to, &Refusal::logged(error));
                }
                (PendingReplay::Recording(request), _) => {
                    let fields = request.fields(request.position);
                    let started = self.try_start_replay(&fields, request.to, request.image);
                    if let Err(refusal) = started {
                        self.refuse(request.to, &refusal);
                    }
                }
                (PendingReplay::Publication { .. }, None) => {}
            }
        }
        work
    }

    fn start_in_replayer(
        &mut self,
        plan: ReplayPlan,
        publication: ExclusivePublication,
        to: Requester,
    ) {
        let id = self.next_replay_id;
        self.next_replay_id += 1;
        let session_id = id << 32 | i64::from(publication.session_id().cast_unsigned());
        let position = Arc::new(AtomicI64::new(plan.position));
        self.replays.insert(
            id,
            ActiveReplay {
                recording_id: plan.recording_id,
                session_id,
                to,
                position: Arc::clone(&position),
            },
        );
        self.counters.replays.increment();
        let spec = ReplaySpec {
            id,
            recording_id: plan.recording_id,
            directory: self.directory(),
            conversion: Conversion {
                terms: plan.layout.terms(),
                recorded_stream_id: plan.recorded_stream_id,
                session_id: publication.session_id(),
                stream_id: publication.stream_id(),
                checksum: self.config.replay_checksum,
            },
            layout: plan.layout,
            position: plan.position,
            limit: plan.limit,
            checks_header: plan.checks_header,
            io_max_length: plan.io_max_length,
            mtu: plan.mtu,
            deadline_ns: plan.deadline_ns,
            publication,
            shared_position: position,
        };
        self.to_replayer
            .send(ReplayerCommand::Start(Box::new(spec)));
    }

    pub(super) fn poll_replayer(&mut self) -> usize {
        let mut work = 0;
        while let Some(report) = self.from_replayer.try_recv() {
            work += 1;
            match report {
                ReplayReport::Ready { id } => {
                    let found = self.replays.get(&id);
                    if let Some((to, session_id)) =
                        found.map(|replay| (replay.to, replay.session_id))
                    {
                        self.log_replay(id, "INIT -> REPLAY", "");
                        self.respond(to, Ok(session_id));
                    }
                }
                ReplayReport::Ended { id, failure } => {
                    let reason = failure.as_ref().map_or("", |failure| &failure.text);
                    self.log_replay(id, "REPLAY -> DONE", reason);
                    let Some(replay) = self.replays.remove(&id) else {
                        continue;
                    };
                    self.counters.replays.add(-1);
                    if let Some(failure) = failure {
                        self.events.log(
                            ArchiveEventCode::ReplaySessionError,
                            format_args!(
                                "sessionId={}, recordingId={}, errorMessage={}",
                                replay.session_id, replay.recording_id, failure.text
                            ),
                        );
                        let refusal = Refusal {
                            code: failure.code,
                            text: failure.text,
                            is_logged: true,
                        };
                        self.refuse(replay.to, &refusal);
                    }
                }
            }
        }
        work
    }

    fn log_replay(&self, id: i64, change: &str, reason: &str) {
        let event = ArchiveEventCode::ReplaySessionStateChange;
        if let Some(replay) = self.replays.get(&id) {
            self.events.log(
                event,
                format_args!(
                    "replaySessionId={}, {change}, recordingId={}, position={}, reason=\"{reason}\"",
                    replay.session_id,
                    replay.recording_id,
                    replay.position.load(Ordering::Relaxed)
                ),
            );
        }
    }

    pub(super) fn stop_replay(&mut self, session_id: i64) {
        let of_session = self
            .replays
            .iter()
            .find(|(_, replay)| replay.session_id == session_id);
        if let Some(id) = of_session.map(|(id, _)| *id) {
            self.to_replayer.send(ReplayerCommand::Stop { id });
        }
    }

    pub(super) fn stop_all_replays(&mut self, recording_id: i64) {
        let wanted = |replay: &ActiveReplay| {
            recording_id == NULL_VALUE || replay.recording_id == recording_id
        };
        let stopped = self.replays.iter().filter(|(_, replay)| wanted(replay));
        let ids: Vec<_> = stopped.map(|(id, _)| *id).collect();
        for id in ids {
            self.to_replayer.send(ReplayerCommand::Stop { id });
        }
    }

    /// Returns the lowest position that a replay of a recording still reads.
    pub(super) fn lowest_replay_position(&self, recording_id: i64) -> Option<i64> {
        #[cfg(test)]
        if self.config.is_blind_to_replays {
            return None;
        }
        let active = self
            .replays
            .values()
            .filter(|replay| replay.recording_id == recording_id);
        let active = active.map(|replay| replay.position.load(Ordering::Relaxed));
        let pending = self.pending_replays.iter();
        active
            .chain(pending.filter_map(|replay| replay.position(recording_id)))
            .min()
    }
}
