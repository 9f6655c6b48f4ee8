// SPDX-License-Identifier: Apache-2.0
//! Replays to response channels (`docs/spec/archive.md` §1.10).

use taran::{CommandError, ExclusivePublication, Pending, Subscription};

use super::channels::replay_request_channel;
use super::requests::{REPLAY, encode_replay};
use super::{ArchiveConnection, Call, ReplayParams, ReplaySession};
use crate::session::RequestError;

/// The start of a replay to a subscription whose channel has `control-mode=response`: the archive replays to where the
/// request comes from, so that it needs no address of the subscriber.
///
/// Call [`poll`](Self::poll), and [`ArchiveConnection::poll`], until it returns the replay. It asks for a token, and sends
/// the request with it over a publication of its own, which it closes after the answer.
#[derive(Debug)]
pub struct ResponseReplay {
    recording_id: i64,
    params: ReplayParams,
    registration_id: i64,
    channel: String,
    stream_id: i32,
    deadline_ns: i64,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Token(Call<i64>),
    Publication(Pending<ExclusivePublication>),
    Send(ExclusivePublication),
    Answer {
        call: Call<ReplaySession>,
        // Held until the answer: the archive replays to the image of this publication.
        publication: ExclusivePublication,
    },
    Ended,
}

impl ResponseReplay {
    /// Starts a replay to `subscription`. `now_ns` is the clock of [`poll`](Self::poll).
    pub fn start(
        archive: &mut ArchiveConnection,
        recording_id: i64,
        subscription: &Subscription,
        params: &ReplayParams,
        now_ns: i64,
    ) -> Self {
        let timeout = archive.context().message_timeout.as_nanos();
        Self {
            recording_id,
            params: *params,
            registration_id: subscription.registration_id(),
            channel: subscription.channel().to_owned(),
            stream_id: subscription.stream_id(),
            deadline_ns: now_ns.saturating_add(i64::try_from(timeout).unwrap_or(i64::MAX)),
            step: Step::Token(archive.request_replay_token(recording_id)),
        }
    }

    /// Continues. Returns the outcome once.
    pub fn poll(
        &mut self,
        archive: &mut ArchiveConnection,
        now_ns: i64,
    ) -> Option<Result<ReplaySession, RequestError>> {
        let outcome = match self.advance(archive) {
            Ok(None) if now_ns >= self.deadline_ns && !matches!(self.step, Step::Ended) => {
                Err(RequestError::Timeout {
                    request: REPLAY.request,
                    after: archive.context().message_timeout,
                })
            }
            Ok(None) => return None,
            Ok(Some(session)) => Ok(session),
            Err(error) => Err(error),
        };
        self.step = Step::Ended;
        Some(outcome)
    }

    fn advance(
        &mut self,
        archive: &mut ArchiveConnection,
    ) -> Result<Option<ReplaySession>, RequestError> {
        let driver = |reason: CommandError| RequestError::Driver {
            request: REPLAY.request,
            reason,
        };
        self.step = match std::mem::replace(&mut self.step, Step::Ended) {
            Step::Token(mut call) => match call.poll() {
                None => Step::Token(call),
                Some(token) => {
                    self.params = self.params.token(token?);
                    let context = archive.context();
                    let channel = replay_request_channel(
                        &context.control_channel,
                        self.registration_id,
                        context.control.term_length,
                    )
                    .map_err(|error| RequestError::InvalidArgument {
                        request: REPLAY.request,
                        reason: error.to_string(),
                    })?;
                    let stream_id = context.control_stream_id;
                    let pending = archive
                        .client()
                        .async_add_exclusive_publication(channel.as_str(), stream_id)
                        .map_err(driver)?;
                    Step::Publication(pending)
                }
            },
            Step::Publication(mut pending) => match pending.poll() {
                None => Step::Publication(pending),
                Some(publication) => Step::Send(publication.map_err(driver)?),
            },
            Step::Send(mut publication) => {
                let is_ready = publication.is_connected() && publication.available_window() > 0;
                let sent = if is_ready {
                    let destination = (self.channel.as_str(), self.stream_id);
                    let (recording_id, params) = (self.recording_id, &self.params);
                    archive.request_over(&REPLAY, &mut publication, |ids, buffer| {
                        encode_replay(ids, buffer, recording_id, destination, params)
                    })?
                } else {
                    archive.check_connected()?;
                    None
                };
                match sent {
                    Some(call) => Step::Answer { call, publication },
                    None => Step::Send(publication),
                }
            }
            Step::Answer {
                mut call,
                publication,
            } => match call.poll() {
                None => Step::Answer { call, publication },
                Some(session) => return session.map(Some),
            },
            Step::Ended => Step::Ended,
        };
        Ok(None)
    }
}
