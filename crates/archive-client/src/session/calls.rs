// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use super::error::{ArchiveError, RequestError};
use super::recording::{Recording, RecordingSubscription};
use crate::protocol::{
    ControlResponse, ControlResponseCode, ErrorCode, Event, RecordingSignalEvent,
};

/// Kind of answer that a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One response with an id, a position or a count.
    Value,
    /// Up to `count` descriptors of recordings.
    Recordings {
        /// Greatest number of descriptors.
        count: usize,
    },
    /// Up to `count` descriptors of recording subscriptions.
    Subscriptions {
        /// Greatest number of descriptors.
        count: usize,
    },
}

/// Answer of an archive to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An id, a position or a count.
    Value(i64),
    /// Descriptors of recordings.
    Recordings(Vec<Recording>),
    /// Descriptors of recording subscriptions.
    Subscriptions(Vec<RecordingSubscription>),
}

/// Description of a request for [`Calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// Correlation id of the request.
    pub correlation_id: i64,
    /// The request in words, for errors, for example `start a recording`.
    pub request: &'static str,
    /// Kind of answer.
    pub expected: Expected,
    /// Maximum time for the answer, in nanoseconds.
    pub timeout_ns: i64,
}

/// A request that has ended, with the token of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion<C> {
    /// Correlation id of the request.
    pub correlation_id: i64,
    /// Token that the caller has passed to [`Calls::begin`].
    pub token: C,
    /// Answer or error.
    pub outcome: Result<Reply, RequestError>,
}

/// Meaning of a message of the response stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routed<C> {
    /// A message of another session, a part of an answer, or one without meaning for this session.
    Nothing,
    /// A request has ended.
    Completed(Completion<C>),
    /// A signal of a recording or replication.
    Signal(RecordingSignalEvent),
    /// An error of a request that was answered before: a recording, replay or replication has failed.
    Error(ArchiveError),
}

#[derive(Debug)]
struct Call<C> {
    spec: CallSpec,
    /// `None` until the first check of the time after the request.
    deadline_ns: Option<i64>,
    answer: Reply,
    token: C,
}

/// Requests of a control session that wait for their answers (`docs/spec/archive.md` §1.7, §7.1).
///
/// Contract: [`begin`](Self::begin) registers a request before it is sent. [`on_event`](Self::on_event) takes each message
/// of the response stream and routes it by correlation id. [`expire`](Self::expire) takes the time, which the timeout of a
/// request counts from; call it until it returns `None`. [`fail`](Self::fail) ends one request, for example because it
/// could not be sent; [`fail_next`](Self::fail_next) ends all. Each request that began ends exactly once.
#[derive(Debug)]
pub struct Calls<C> {
    control_session_id: i64,
    calls: BTreeMap<i64, Call<C>>,
}

impl<C> Calls<C> {
    /// Returns the calls of a control session.
    #[must_use]
    pub fn new(control_session_id: i64) -> Self {
        Self {
            control_session_id,
            calls: BTreeMap::new(),
        }
    }

    /// Returns the number of requests that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if no request waits for its answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns true while the request with this correlation id waits for its answer.
    #[must_use]
    pub fn contains(&self, correlation_id: i64) -> bool {
        self.calls.contains_key(&correlation_id)
    }

    /// Registers a request.
    pub fn begin(&mut self, spec: CallSpec, token: C) {
        let answer = match spec.expected {
            Expected::Value => Reply::Value(0),
            Expected::Recordings { .. } => Reply::Recordings(Vec::new()),
            Expected::Subscriptions { .. } => Reply::Subscriptions(Vec::new()),
        };
        let call = Call {
            spec,
            deadline_ns: None,
            answer,
            token,
        };
        self.calls.insert(spec.correlation_id, call);
    }

    /// Takes a message of the response stream.
    pub fn on_event(&mut self, event: &Event<'_>, now_ns: i64) -> Routed<C> {
        match event {
            Event::ControlResponse(response) if self.is_own(response.control_session_id) => {
                self.on_response(response)
            }
            Event::RecordingDescriptor(descriptor)
                if self.is_own(descriptor.control_session_id) =>
            {
                let recording = Recording::from(descriptor);
                self.on_part(descriptor.correlation_id, now_ns, |call| {
                    match (&mut call.answer, call.spec.expected) {
                        (Reply::Recordings(list), Expected::Recordings { count }) => {
                            list.push(recording);
                            list.len() >= count
                        }
                        _ => false,
                    }
                })
            }
            Event::RecordingSubscriptionDescriptor(descriptor)
                if self.is_own(descriptor.control_session_id) =>
            {
                let subscription = RecordingSubscription::from(descriptor);
                self.on_part(descriptor.correlation_id, now_ns, |call| {
                    match (&mut call.answer, call.spec.expected) {
                        (Reply::Subscriptions(list), Expected::Subscriptions { count }) => {
                            list.push(subscription);
                            list.len() >= count
                        }
                        _ => false,
                    }
                })
            }
            Event::RecordingSignalEvent(signal) if self.is_own(signal.control_session_id) => {
                Routed::Signal(*signal)
            }
            _ => Routed::Nothing,
        }
    }

    /// Ends one request whose deadline is reached; `None` if there is none.
    pub fn expire(&mut self, now_ns: i64) -> Option<Completion<C>> {
        let mut late = None;
        for (correlation_id, call) in &mut self.calls {
            let deadline = *call
                .deadline_ns
                .get_or_insert(now_ns.saturating_add(call.spec.timeout_ns));
            if now_ns >= deadline {
                late = Some((*correlation_id, call.spec));
                break;
            }
        }
        let (correlation_id, spec) = late?;
        let error = RequestError::Timeout {
            request: spec.request,
            after: std::time::Duration::from_nanos(spec.timeout_ns.unsigned_abs()),
        };
        self.fail(correlation_id, error)
    }

    /// Ends a request with an error; `None` if it has ended before.
    pub fn fail(&mut self, correlation_id: i64, error: RequestError) -> Option<Completion<C>> {
        let call = self.calls.remove(&correlation_id)?;
        Some(Completion {
            correlation_id,
            token: call.token,
            outcome: Err(error),
        })
    }

    /// Ends one of the requests with an error; `None` if there is none.
    pub fn fail_next(&mut self, error: &RequestError) -> Option<Completion<C>> {
        let correlation_id = *self.calls.keys().next()?;
        self.fail(correlation_id, error.clone())
    }

    fn is_own(&self, control_session_id: i64) -> bool {
        control_session_id == self.control_session_id
    }

    fn on_response(&mut self, response: &ControlResponse<'_>) -> Routed<C> {
        let Some(call) = self.calls.remove(&response.correlation_id) else {
            return match response.code {
                ControlResponseCode::ERROR => Routed::Error(ArchiveError::of(response, None)),
                _ => Routed::Nothing,
            };
        };
        let request = call.spec.request;
        let outcome = match (response.code, call.answer) {
            (ControlResponseCode::OK, Reply::Value(_)) => Ok(Reply::Value(response.relevant_id)),
            (ControlResponseCode::ERROR, _) => Err(RequestError::Rejected(ArchiveError::of(
                response,
                Some(request),
            ))),
            (ControlResponseCode::RecordingUnknown, list @ Reply::Recordings(_))
            | (ControlResponseCode::SubscriptionUnknown, list @ Reply::Subscriptions(_)) => {
                Ok(list)
            }
            (ControlResponseCode::RecordingUnknown, Reply::Value(_)) => {
                Err(RequestError::Rejected(ArchiveError {
                    request: Some(request),
                    correlation_id: response.correlation_id,
                    code: ErrorCode::UnknownRecording,
                    message: format!("unknown recording id: {}", response.relevant_id),
                }))
            }
            (code, _) => Err(RequestError::UnexpectedResponse { request, code }),
        };
        Routed::Completed(Completion {
            correlation_id: response.correlation_id,
            token: call.token,
            outcome,
        })
    }

    /// Adds a descriptor to the answer of a request with `add`, which returns true if it was the last one. Each descriptor
    /// renews the deadline.
    fn on_part(
        &mut self,
        correlation_id: i64,
        now_ns: i64,
        add: impl FnOnce(&mut Call<C>) -> bool,
    ) -> Routed<C> {
        let Some(call) = self.calls.get_mut(&correlation_id) else {
            return Routed::Nothing;
        };
        call.deadline_ns = Some(now_ns.saturating_add(call.spec.timeout_ns));
        if !add(call) {
            return Routed::Nothing;
        }
        match self.calls.remove(&correlation_id) {
            Some(call) => Routed::Completed(Completion {
                correlation_id,
                token: call.token,
                outcome: Ok(call.answer),
            }),
            None => Routed::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        ProtocolVersion, RecordingDescriptor, RecordingSignal, RecordingSubscriptionDescriptor,
    };

    const SESSION: i64 = 42;

    fn spec(correlation_id: i64, expected: Expected) -> CallSpec {
        CallSpec {
            correlation_id,
            request: "test",
            expected,
            timeout_ns: 100,
        }
    }

    fn response(
        correlation_id: i64,
        relevant_id: i64,
        code: ControlResponseCode,
    ) -> Event<'static> {
        Event::ControlResponse(ControlResponse {
            control_session_id: SESSION,
            correlation_id,
            relevant_id,
            code,
            version: ProtocolVersion::CURRENT,
            error_message: "text",
        })
    }

    fn descriptor(correlation_id: i64, recording_id: i64) -> Event<'static> {
        Event::RecordingDescriptor(RecordingDescriptor {
            control_session_id: SESSION,
            correlation_id,
            recording_id,
            start_timestamp: 1,
            stop_timestamp: -1,
            start_position: 0,
            stop_position: -1,
            initial_term_id: 7,
            segment_file_length: 1 << 27,
            term_buffer_length: 1 << 16,
            mtu_length: 1408,
            session_id: 8,
            stream_id: 9,
            stripped_channel: "aeron:ipc",
            original_channel: "aeron:ipc?alias=a",
            source_identity: "aeron:ipc",
        })
    }

    fn completed(routed: Routed<&'static str>) -> (i64, &'static str, Result<Reply, RequestError>) {
        match routed {
            Routed::Completed(done) => (done.correlation_id, done.token, done.outcome),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn response_completes_the_request_with_its_correlation_id() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Value), "a");
        calls.begin(spec(2, Expected::Value), "b");
        let done = calls.on_event(&response(2, 77, ControlResponseCode::OK), 0);
        assert_eq!(completed(done), (2, "b", Ok(Reply::Value(77))));
        assert_eq!(calls.len(), 1);
        let again = calls.on_event(&response(2, 77, ControlResponseCode::OK), 0);
        assert_eq!(again, Routed::Nothing);
    }

    #[test]
    fn error_of_pending_request_has_code_text_and_request() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Value), "a");
        let done = calls.on_event(&response(1, 5, ControlResponseCode::ERROR), 0);
        let (_, _, outcome) = completed(done);
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::UnknownRecording));
        assert_eq!(
            error.to_string(),
            "the archive refused to test: UNKNOWN_RECORDING (text)"
        );
    }

    #[test]
    fn error_of_answered_request_is_reported_with_its_correlation_id() {
        let mut calls = Calls::<()>::new(SESSION);
        let Routed::Error(error) = calls.on_event(&response(9, 11, ControlResponseCode::ERROR), 0)
        else {
            panic!("not an error");
        };
        assert_eq!(
            (error.correlation_id, error.code),
            (9, ErrorCode::StorageSpace)
        );
    }

    #[test]
    fn message_of_another_session_is_ignored() {
        let mut calls = Calls::new(SESSION + 1);
        calls.begin(spec(1, Expected::Value), "a");
        assert_eq!(
            calls.on_event(&response(1, 5, ControlResponseCode::OK), 0),
            Routed::Nothing
        );
        assert!(calls.contains(1));
    }

    #[test]
    fn listing_ends_at_count_or_at_terminator() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Recordings { count: 2 }), "full");
        assert_eq!(calls.on_event(&descriptor(1, 10), 0), Routed::Nothing);
        let (_, _, outcome) = completed(calls.on_event(&descriptor(1, 12), 0));
        let Ok(Reply::Recordings(list)) = outcome else {
            panic!("{outcome:?}");
        };
        let ids: Vec<_> = list
            .iter()
            .map(|recording| recording.recording_id)
            .collect();
        assert_eq!(ids, [10, 12]);
        assert_eq!(list[0].stop_position, None);
        calls.begin(spec(2, Expected::Recordings { count: 2 }), "part");
        assert_eq!(calls.on_event(&descriptor(2, 10), 0), Routed::Nothing);
        let end = response(2, 11, ControlResponseCode::RecordingUnknown);
        let (_, _, outcome) = completed(calls.on_event(&end, 0));
        assert!(matches!(outcome, Ok(Reply::Recordings(list)) if list.len() == 1));
    }

    #[test]
    fn subscription_listing_ends_at_terminator() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Subscriptions { count: 5 }), "a");
        let event = Event::RecordingSubscriptionDescriptor(RecordingSubscriptionDescriptor {
            control_session_id: SESSION,
            correlation_id: 1,
            subscription_id: 3,
            stream_id: 4,
            stripped_channel: "aeron:ipc",
        });
        assert_eq!(calls.on_event(&event, 0), Routed::Nothing);
        let end = response(1, 0, ControlResponseCode::SubscriptionUnknown);
        let (_, _, outcome) = completed(calls.on_event(&end, 0));
        assert!(matches!(outcome, Ok(Reply::Subscriptions(list)) if list[0].subscription_id == 3));
    }

    #[test]
    fn answer_of_another_kind_is_an_error() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Value), "a");
        assert_eq!(calls.on_event(&descriptor(1, 10), 0), Routed::Nothing);
        let end = response(1, 0, ControlResponseCode::SubscriptionUnknown);
        let (_, _, outcome) = completed(calls.on_event(&end, 0));
        assert!(matches!(
            outcome,
            Err(RequestError::UnexpectedResponse { .. })
        ));
        // An unknown recording is an answer to a request about one.
        calls.begin(spec(2, Expected::Value), "b");
        let unknown = response(2, 6, ControlResponseCode::RecordingUnknown);
        let (_, _, outcome) = completed(calls.on_event(&unknown, 0));
        assert_eq!(
            outcome.unwrap_err().code(),
            Some(ErrorCode::UnknownRecording)
        );
    }

    #[test]
    fn request_expires_after_its_timeout_and_descriptors_renew_it() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Recordings { count: 9 }), "a");
        assert_eq!(calls.expire(1_000), None);
        assert_eq!(calls.expire(1_099), None);
        assert_eq!(calls.on_event(&descriptor(1, 10), 1_050), Routed::Nothing);
        assert_eq!(calls.expire(1_149), None);
        let done = calls.expire(1_150).unwrap();
        assert!(matches!(done.outcome, Err(RequestError::Timeout { .. })));
        assert!(calls.is_empty());
    }

    #[test]
    fn fail_next_ends_each_request_once() {
        let mut calls = Calls::new(SESSION);
        calls.begin(spec(1, Expected::Value), "a");
        calls.begin(spec(2, Expected::Value), "b");
        let mut ended = Vec::new();
        while let Some(done) = calls.fail_next(&RequestError::Disconnected) {
            ended.push(done.token);
        }
        assert_eq!(ended, ["a", "b"]);
    }

    #[test]
    fn signal_is_passed_on() {
        let mut calls = Calls::<()>::new(SESSION);
        let signal = RecordingSignalEvent {
            control_session_id: SESSION,
            correlation_id: 1,
            recording_id: 2,
            subscription_id: 3,
            position: 4,
            signal: RecordingSignal::START,
        };
        let event = Event::RecordingSignalEvent(signal);
        assert_eq!(calls.on_event(&event, 0), Routed::Signal(signal));
    }
}
