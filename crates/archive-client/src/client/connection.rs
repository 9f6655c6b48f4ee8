// SPDX-License-Identifier: Apache-2.0
//! An established control session that is polled.

use std::collections::VecDeque;
use std::fmt;

use taran::{Client, ExclusivePublication, FragmentAssembler, OfferError, Subscription};
use taran_sbe::runtime::EncodeError;

use super::call::Completer;
use super::{ArchiveContext, ArchiveEvent, Call};
use crate::protocol::{CloseSessionRequest, Event, Message, MessageError, ProtocolVersion};
use crate::session::{
    CallSpec, Calls, Completion, Established, Expected, Reply, RequestError, Routed,
};

/// Fragments of the response stream that one poll processes.
const FRAGMENT_LIMIT: usize = 10;
/// Requests that may wait for room in the control stream.
const SEND_QUEUE_LIMIT: usize = 256;
/// Events that may wait for the application; the oldest one is dropped to make room.
const EVENT_LIMIT: usize = 4096;

/// Publication and subscription of a control session.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) publication: ExclusivePublication,
    pub(super) subscription: Subscription,
}

/// Ids that a request names.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) control_session_id: i64,
    pub(super) correlation_id: i64,
}

/// A request in words, its kind of answer, and the conversion of the answer.
pub(super) struct Kind<T> {
    pub(super) request: &'static str,
    pub(super) expected: Expected,
    pub(super) convert: fn(Result<Reply, RequestError>) -> Result<T, RequestError>,
}

/// A connection to an archive that never waits.
///
/// Each request returns a [`Call`] at once; [`poll`](Self::poll) receives the answers. Any number of requests may be under
/// way, except that an archive serves one listing at a time for each session. Requests that find no room in the control stream wait for
/// it, and fail at their timeout. Errors and signals that no call returns are [events](Self::next_event).
///
/// The connection must be polled also when nothing is awaited: the archive closes the session of a client that does not
/// (`docs/spec/archive.md` §1.8). After the loss of the archive all requests fail with [`RequestError::Disconnected`], and
/// a new connection has to be made; [`ReconnectingArchive`](super::ReconnectingArchive) does that.
pub struct ArchiveConnection {
    context: ArchiveContext,
    link: Link,
    established: Established,
    calls: Calls<Completer>,
    assembler: FragmentAssembler,
    /// Encoded requests that wait for room, by correlation id.
    send_queue: VecDeque<(i64, Vec<u8>)>,
    buffer: Vec<u8>,
    events: VecDeque<ArchiveEvent>,
    lost_events: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connected,
    Disconnected,
    Closed,
}

impl fmt::Debug for ArchiveConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveConnection")
            .field("established", &self.established)
            .field("state", &self.state)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

impl ArchiveConnection {
    pub(super) fn new(context: ArchiveContext, link: Link, established: Established) -> Self {
        Self {
            context,
            calls: Calls::new(established.control_session_id),
            established,
            assembler: FragmentAssembler::new(),
            send_queue: VecDeque::new(),
            buffer: vec![0; link.publication.max_message_length()],
            events: VecDeque::new(),
            lost_events: 0,
            state: State::Connected,
            link,
        }
    }

    /// Receives answers and events, sends requests that wait, and ends requests whose timeout has passed. `now_ns` is any
    /// clock that does not run backwards. Returns the amount of work done.
    pub fn poll(&mut self, now_ns: i64) -> usize {
        let mut work = self.receive(now_ns);
        if self.state == State::Connected && !self.is_reachable() {
            self.disconnect();
        }
        work += self.send_waiting();
        let mut has_expired = false;
        while let Some(completion) = self.calls.expire(now_ns) {
            work += 1;
            has_expired = true;
            self.complete(completion);
        }
        if has_expired {
            // A request that has timed out is not sent any more, and takes no place in the queue.
            let calls = &self.calls;
            self.send_queue.retain(|(id, _)| calls.contains(*id));
        }
        work
    }

    /// Returns true until the archive is lost or the connection is closed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state == State::Connected
    }

    /// Returns true if there is an event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Removes and returns the oldest event.
    pub fn next_event(&mut self) -> Option<ArchiveEvent> {
        self.events.pop_front()
    }

    /// Returns the number of events that were dropped because the application did not take them: beyond 4096 of them the
    /// oldest are dropped.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Returns the id of the control session.
    #[must_use]
    pub fn control_session_id(&self) -> i64 {
        self.established.control_session_id
    }

    /// Returns the id of the archive; `None` if it is older than version 1.11.0 of the protocol.
    #[must_use]
    pub fn connected_archive_id(&self) -> Option<i64> {
        crate::session::some_unless_null(self.established.archive_id)
    }

    /// Returns the version of the archive's protocol.
    #[must_use]
    pub fn archive_version(&self) -> ProtocolVersion {
        self.established.version
    }

    /// Returns the context that the connection was made with.
    #[must_use]
    pub fn context(&self) -> &ArchiveContext {
        &self.context
    }

    /// Returns the client of the media driver.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.link.client
    }

    /// Returns the number of requests that wait for their answers.
    #[must_use]
    pub fn pending_calls(&self) -> usize {
        self.calls.len()
    }

    /// Closes the session, like dropping the connection. Recordings, replays and replications that it has started go on.
    pub fn close(self) {
        drop(self);
    }

    /// Begins a request; `encode` writes it.
    pub(super) fn request<T>(
        &mut self,
        kind: &Kind<T>,
        encode: impl FnOnce(Ids, &mut [u8]) -> Result<usize, EncodeError>,
    ) -> Call<T> {
        let correlation_id = self.link.client.next_correlation_id();
        let ids = self.ids(correlation_id);
        let call = self.begin(correlation_id, kind);
        if self.is_answered_here(kind, correlation_id) {
            return call;
        }
        let Ok(length) = encode(ids, &mut self.buffer) else {
            let max = self.buffer.len();
            let request = kind.request;
            self.fail(correlation_id, RequestError::TooLong { request, max });
            return call;
        };
        if self.send_queue.len() >= SEND_QUEUE_LIMIT {
            let error = RequestError::Overloaded {
                request: kind.request,
                waiting: self.send_queue.len(),
            };
            self.fail(correlation_id, error);
        } else if !self.send_queue.is_empty() || !self.offer(correlation_id, length) {
            let message = self.buffer[..length].to_vec();
            self.send_queue.push_back((correlation_id, message));
        }
        call
    }

    /// Returns a call that fails without a request.
    pub(super) fn refuse<T>(&mut self, kind: &Kind<T>, error: RequestError) -> Call<T> {
        let correlation_id = self.link.client.next_correlation_id();
        let call = self.begin(correlation_id, kind);
        self.fail(correlation_id, error);
        call
    }

    /// Begins a request that is sent over another publication: `send` returns true if it was. Returns `None` if there is no
    /// room.
    pub(super) fn request_over<T>(
        &mut self,
        kind: &Kind<T>,
        publication: &mut ExclusivePublication,
        encode: impl FnOnce(Ids, &mut [u8]) -> Result<usize, EncodeError>,
    ) -> Result<Option<Call<T>>, RequestError> {
        self.check_connected()?;
        let correlation_id = self.link.client.next_correlation_id();
        let ids = self.ids(correlation_id);
        let too_long = |max| RequestError::TooLong {
            request: kind.request,
            max,
        };
        let length = encode(ids, &mut self.buffer)
            .map_err(|_| too_long(publication.max_message_length()))?;
        match publication.offer(&self.buffer[..length]) {
            Ok(_) => Ok(Some(self.begin(correlation_id, kind))),
            Err(error) if error.is_retryable() => Ok(None),
            Err(OfferError::TooLong { max, .. }) => Err(too_long(max)),
            Err(_) => Err(RequestError::Disconnected),
        }
    }

    /// Fails unless the connection is usable.
    pub(super) fn check_connected(&self) -> Result<(), RequestError> {
        match self.state {
            State::Connected => Ok(()),
            State::Disconnected => Err(RequestError::Disconnected),
            State::Closed => Err(RequestError::Closed),
        }
    }

    fn ids(&self, correlation_id: i64) -> Ids {
        Ids {
            control_session_id: self.established.control_session_id,
            correlation_id,
        }
    }

    fn begin<T>(&mut self, correlation_id: i64, kind: &Kind<T>) -> Call<T> {
        let (call, completer) = Call::new(correlation_id, kind.convert);
        let timeout = self.context.message_timeout.as_nanos();
        let spec = CallSpec {
            correlation_id,
            request: kind.request,
            expected: kind.expected,
            timeout_ns: i64::try_from(timeout).unwrap_or(i64::MAX),
        };
        self.calls.begin(spec, completer);
        call
    }

    /// Ends a request that needs no archive: on a lost connection, and a listing of nothing, which archives answer in
    /// different ways (`docs/spec/archive.md` §2.5).
    fn is_answered_here<T>(&mut self, kind: &Kind<T>, correlation_id: i64) -> bool {
        if let Err(error) = self.check_connected() {
            self.fail(correlation_id, error);
            return true;
        }
        let nothing = match kind.expected {
            Expected::Recordings { count: 0 } => Reply::Recordings(Vec::new()),
            Expected::Subscriptions { count: 0 } => Reply::Subscriptions(Vec::new()),
            _ => return false,
        };
        if let Some(mut completion) = self.calls.fail(correlation_id, RequestError::Closed) {
            completion.outcome = Ok(nothing);
            self.complete(completion);
        }
        true
    }

    /// Sends the first `length` bytes of the buffer. Returns false if there is no room; any other error ends the request.
    fn offer(&mut self, correlation_id: i64, length: usize) -> bool {
        let outcome = self.link.publication.offer(&self.buffer[..length]);
        self.is_sent(correlation_id, outcome)
    }

    fn is_sent(&mut self, correlation_id: i64, outcome: Result<i64, OfferError>) -> bool {
        match outcome {
            Ok(_) => true,
            Err(error) if error.is_retryable() => false,
            Err(OfferError::TooLong { max, .. }) => {
                let request = "send a message";
                self.fail(correlation_id, RequestError::TooLong { request, max });
                true
            }
            Err(_) => {
                self.fail(correlation_id, RequestError::Disconnected);
                true
            }
        }
    }

    fn receive(&mut self, now_ns: i64) -> usize {
        if self.state != State::Connected {
            return 0;
        }
        let Self {
            link,
            assembler,
            calls,
            events,
            lost_events,
            ..
        } = self;
        let mut push = |event| push_event(events, lost_events, event);
        let on_message = |message: &[u8], _: &taran::Header<'_>| match Event::decode(message) {
            Ok(event) => match calls.on_event(&event, now_ns) {
                Routed::Nothing => {}
                Routed::Completed(completion) => {
                    if let Some(error) = completion.token.complete(completion.outcome) {
                        push(ArchiveEvent::Dropped(error));
                    }
                }
                Routed::Signal(signal) => push(ArchiveEvent::Signal(signal)),
                Routed::Error(error) => push(ArchiveEvent::Error(error)),
            },
            // A newer archive may send messages that this version does not know.
            Err(MessageError::UnexpectedTemplate { .. }) => {}
            Err(error) => push(ArchiveEvent::Malformed(error)),
        };
        let polled = link
            .subscription
            .poll(assembler.wrap(on_message), FRAGMENT_LIMIT);
        polled.unwrap_or_else(|_| {
            self.disconnect();
            1
        })
    }

    fn send_waiting(&mut self) -> usize {
        let mut sent = 0;
        while let Some((correlation_id, message)) = self.send_queue.pop_front() {
            // Nor is one whose answer came, of an archive that makes up correlation ids.
            if !self.calls.contains(correlation_id) {
                continue;
            }
            let outcome = self.link.publication.offer(&message);
            if !self.is_sent(correlation_id, outcome) {
                self.send_queue.push_front((correlation_id, message));
                break;
            }
            sent += 1;
        }
        sent
    }

    fn is_reachable(&self) -> bool {
        self.link.publication.is_connected() && self.link.subscription.is_connected()
    }

    fn disconnect(&mut self) {
        self.state = State::Disconnected;
        self.send_queue.clear();
        while let Some(completion) = self.calls.fail_next(&RequestError::Disconnected) {
            self.complete(completion);
        }
    }

    fn fail(&mut self, correlation_id: i64, error: RequestError) {
        if let Some(completion) = self.calls.fail(correlation_id, error) {
            self.complete(completion);
        }
    }

    fn complete(&mut self, completion: Completion<Completer>) {
        if let Some(error) = completion.token.complete(completion.outcome) {
            push_event(
                &mut self.events,
                &mut self.lost_events,
                ArchiveEvent::Dropped(error),
            );
        }
    }
}

fn push_event(events: &mut VecDeque<ArchiveEvent>, lost: &mut u64, event: ArchiveEvent) {
    if events.len() >= EVENT_LIMIT {
        events.pop_front();
        *lost += 1;
    }
    events.push_back(event);
}

impl Drop for ArchiveConnection {
    fn drop(&mut self) {
        if self.state == State::Connected {
            let request = CloseSessionRequest {
                control_session_id: self.established.control_session_id,
            };
            if let Ok(length) = request.encode(&mut self.buffer) {
                // Without it, the archive closes the session when it misses the publication.
                let _ = self.link.publication.offer(&self.buffer[..length]);
            }
            self.state = State::Closed;
        }
        while let Some(completion) = self.calls.fail_next(&RequestError::Closed) {
            self.complete(completion);
        }
    }
}
