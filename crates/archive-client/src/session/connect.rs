// SPDX-License-Identifier: Apache-2.0
use thiserror::Error;

use crate::protocol::{
    ArchiveIdRequest, AuthConnectRequest, Challenge, ChallengeResponse, CloseSessionRequest,
    ControlResponse, ControlResponseCode, ErrorCode, Event, KeepAliveRequest, NULL_VALUE,
    ProtocolVersion, Request,
};

/// Supplies the credentials of a client. Encodings are agreed between this and the archive's authenticator.
pub trait Credentials {
    /// Returns the credentials that the connect request contains; empty for none.
    fn credentials(&mut self) -> Vec<u8>;

    /// Returns the answer to a challenge.
    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8>;
}

/// No credentials.
impl Credentials for () {
    fn credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

/// Credentials that are the same for each connection, without an answer to challenges.
impl Credentials for Vec<u8> {
    fn credentials(&mut self) -> Vec<u8> {
        self.clone()
    }

    fn on_challenge(&mut self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

/// Parts of a connect request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Channel for responses, with a port that is not 0.
    pub response_channel: String,
    /// Stream id for responses.
    pub response_stream_id: i32,
    /// Name and version of the client, for the archive's counters and logs.
    pub client_info: String,
    /// Time at which the attempt fails, in nanoseconds of the caller's clock.
    pub deadline_ns: i64,
}

/// A control session that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// Id of the control session, which each request names.
    pub control_session_id: i64,
    /// Id of the archive; -1 if the archive is older than version 1.11.0 of the protocol.
    pub archive_id: i64,
    /// Version of the archive's protocol.
    pub version: ProtocolVersion,
}

/// Reason why a control session could not be connected.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The archive refused the connection, or the request for its id.
    #[error("the archive rejected the connection: {code} ({message})")]
    Rejected {
        /// Code of the error.
        code: ErrorCode,
        /// The archive's text.
        message: String,
    },
    /// The archive's response has a code that is no answer to a connect request.
    #[error("the archive answered a connect request with {code:?}")]
    UnexpectedResponse {
        /// Code of the response.
        code: ControlResponseCode,
    },
    /// The deadline passed.
    #[error(
        "the archive did not answer in time, while waiting for {waiting_for}; check its control channel and stream id"
    )]
    Timeout {
        /// The step that was not completed.
        waiting_for: &'static str,
    },
}

taran_core::debug_is_display!(SessionError);

/// State of a connection attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectProgress {
    /// Not finished; there may be a request to send.
    Pending,
    /// The control session is connected.
    Connected(Established),
    /// The attempt failed, and there is no request to send any more.
    Failed(SessionError),
}

/// A request that is due, or the wait for its response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Connect,
    AnswerChallenge(Vec<u8>),
    ArchiveId,
    KeepAlive,
    /// The session is closed, because the archive refused the last request.
    Close(SessionError),
    Done(Result<Established, SessionError>),
}

/// Connects a control session (`docs/spec/archive.md` §1.2).
///
/// Contract: [`request`](Self::request) returns the request that is due, and the same one until
/// [`on_sent`](Self::on_sent); back-pressure is handled by asking again. [`on_event`](Self::on_event) takes each message of
/// the response stream; messages of other requests, and repeated responses, change nothing. [`progress`](Self::progress)
/// compares the time with the deadline. Correlation ids come from the caller, a new one for each request.
#[derive(Debug)]
pub struct Connect<C> {
    options: ConnectOptions,
    credentials: C,
    encoded_credentials: Vec<u8>,
    step: Step,
    is_sent: bool,
    correlation_id: i64,
    established: Established,
}

impl<C: Credentials> Connect<C> {
    /// Returns an attempt whose connect request has this correlation id.
    pub fn new(options: ConnectOptions, mut credentials: C, correlation_id: i64) -> Self {
        Self {
            encoded_credentials: credentials.credentials(),
            options,
            credentials,
            step: Step::Connect,
            is_sent: false,
            correlation_id,
            established: Established {
                control_session_id: NULL_VALUE,
                archive_id: NULL_VALUE,
                version: ProtocolVersion::default(),
            },
        }
    }

    /// Returns the request to send now; `None` while a response is awaited, and at the end.
    pub fn request(&self) -> Option<Request<'_>> {
        if self.is_sent {
            return None;
        }
        let control_session_id = self.established.control_session_id;
        let correlation_id = self.correlation_id;
        match &self.step {
            Step::Connect => Some(Request::AuthConnectRequest(AuthConnectRequest {
                correlation_id,
                response_stream_id: self.options.response_stream_id,
                version: ProtocolVersion::CURRENT,
                response_channel: &self.options.response_channel,
                encoded_credentials: &self.encoded_credentials,
                client_info: &self.options.client_info,
            })),
            Step::AnswerChallenge(answer) => Some(Request::ChallengeResponse(ChallengeResponse {
                control_session_id,
                correlation_id,
                encoded_credentials: answer,
            })),
            Step::ArchiveId => Some(Request::ArchiveIdRequest(ArchiveIdRequest {
                control_session_id,
                correlation_id,
            })),
            Step::KeepAlive => Some(Request::KeepAliveRequest(KeepAliveRequest {
                control_session_id,
                correlation_id: NULL_VALUE,
            })),
            Step::Close(_) => Some(Request::CloseSessionRequest(CloseSessionRequest {
                control_session_id,
            })),
            Step::Done(_) => None,
        }
    }

    /// States that the request that is due was sent.
    pub fn on_sent(&mut self) {
        match &self.step {
            Step::Connect | Step::AnswerChallenge(_) | Step::ArchiveId => self.is_sent = true,
            Step::KeepAlive => self.step = Step::Done(Ok(self.established)),
            Step::Close(error) => self.step = Step::Done(Err(error.clone())),
            Step::Done(_) => {}
        }
    }

    /// Takes a message of the response stream. `next_correlation_id` is called if another request follows.
    pub fn on_event(&mut self, event: &Event<'_>, next_correlation_id: impl FnOnce() -> i64) {
        if !self.is_sent {
            return;
        }
        match event {
            Event::Challenge(challenge) if challenge.correlation_id == self.correlation_id => {
                self.on_challenge(challenge, next_correlation_id);
            }
            Event::ControlResponse(response) if response.correlation_id == self.correlation_id => {
                self.on_response(response, next_correlation_id);
            }
            _ => {}
        }
    }

    /// Returns the state at `now_ns`. A failed attempt has still to send a request to close its session if
    /// [`request`](Self::request) returns one; at the deadline nothing is sent any more.
    pub fn progress(&mut self, now_ns: i64) -> ConnectProgress {
        let is_late = now_ns >= self.options.deadline_ns;
        if is_late && !matches!(self.step, Step::Done(_)) {
            let error = match &self.step {
                Step::Close(error) => error.clone(),
                step => SessionError::Timeout {
                    waiting_for: step.name(),
                },
            };
            self.step = Step::Done(Err(error));
        }
        match &self.step {
            Step::Done(Ok(established)) => ConnectProgress::Connected(*established),
            Step::Done(Err(error)) => ConnectProgress::Failed(error.clone()),
            _ => ConnectProgress::Pending,
        }
    }

    /// Challenges are only answered before the session is accepted.
    fn on_challenge(
        &mut self,
        challenge: &Challenge<'_>,
        next_correlation_id: impl FnOnce() -> i64,
    ) {
        if !matches!(self.step, Step::Connect | Step::AnswerChallenge(_)) {
            return;
        }
        self.established.control_session_id = challenge.control_session_id;
        let answer = self.credentials.on_challenge(challenge.encoded_challenge);
        self.begin(Step::AnswerChallenge(answer), next_correlation_id());
    }

    fn on_response(
        &mut self,
        response: &ControlResponse<'_>,
        next_correlation_id: impl FnOnce() -> i64,
    ) {
        let is_id = matches!(self.step, Step::ArchiveId);
        if !is_id {
            self.established.control_session_id = response.control_session_id;
            self.established.version = response.version;
        }
        match response.code {
            ControlResponseCode::OK if is_id => {
                self.established.archive_id = response.relevant_id;
                self.begin(Step::KeepAlive, NULL_VALUE);
            }
            ControlResponseCode::OK if response.version >= ProtocolVersion::WITH_ARCHIVE_ID => {
                self.begin(Step::ArchiveId, next_correlation_id());
            }
            ControlResponseCode::OK => self.begin(Step::KeepAlive, NULL_VALUE),
            ControlResponseCode::ERROR => {
                let error = SessionError::Rejected {
                    code: ErrorCode::from_raw(response.relevant_id),
                    message: response.error_message.to_owned(),
                };
                self.begin(Step::Close(error), NULL_VALUE);
            }
            code => self.begin(
                Step::Close(SessionError::UnexpectedResponse { code }),
                NULL_VALUE,
            ),
        }
    }

    fn begin(&mut self, step: Step, correlation_id: i64) {
        self.step = step;
        self.is_sent = false;
        self.correlation_id = correlation_id;
    }
}

impl Step {
    const fn name(&self) -> &'static str {
        match self {
            Self::Connect => "the response to the connect request",
            Self::AnswerChallenge(_) => "the response to the answer to a challenge",
            Self::ArchiveId => "the archive's id",
            Self::KeepAlive | Self::Close(_) | Self::Done(_) => "room in the control stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: i64 = 1_000;

    /// Answers a challenge with its reverse.
    struct Reversing;

    impl Credentials for Reversing {
        fn credentials(&mut self) -> Vec<u8> {
            b"me".to_vec()
        }

        fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8> {
            challenge.iter().rev().copied().collect()
        }
    }

    fn connect() -> Connect<Reversing> {
        let options = ConnectOptions {
            response_channel: "aeron:udp?endpoint=localhost:4000".to_owned(),
            response_stream_id: 20,
            client_info: "name=test".to_owned(),
            deadline_ns: DEADLINE,
        };
        Connect::new(options, Reversing, 1)
    }

    fn response(
        correlation_id: i64,
        relevant_id: i64,
        code: ControlResponseCode,
    ) -> ControlResponse<'static> {
        ControlResponse {
            control_session_id: 42,
            correlation_id,
            relevant_id,
            code,
            version: ProtocolVersion::CURRENT,
            error_message: "text",
        }
    }

    fn ok(correlation_id: i64, relevant_id: i64) -> Event<'static> {
        Event::ControlResponse(response(
            correlation_id,
            relevant_id,
            ControlResponseCode::OK,
        ))
    }

    #[test]
    fn connect_of_current_archive_asks_for_its_id_and_keeps_alive() {
        let mut connect = connect();
        let Some(Request::AuthConnectRequest(request)) = connect.request() else {
            panic!("{:?}", connect.request());
        };
        assert_eq!(
            (request.correlation_id, request.encoded_credentials),
            (1, &b"me"[..])
        );
        assert_eq!(request.version, ProtocolVersion::CURRENT);
        connect.on_sent();
        assert_eq!(connect.request(), None);
        connect.on_event(&ok(1, 42), || 2);
        assert_eq!(
            connect.request(),
            Some(Request::ArchiveIdRequest(ArchiveIdRequest {
                control_session_id: 42,
                correlation_id: 2
            }))
        );
        connect.on_sent();
        connect.on_event(&ok(2, 7), || unreachable!());
        assert_eq!(connect.progress(0), ConnectProgress::Pending);
        assert_eq!(
            connect.request(),
            Some(Request::KeepAliveRequest(KeepAliveRequest {
                control_session_id: 42,
                correlation_id: NULL_VALUE
            }))
        );
        connect.on_sent();
        let established = Established {
            control_session_id: 42,
            archive_id: 7,
            version: ProtocolVersion::CURRENT,
        };
        assert_eq!(
            connect.progress(DEADLINE),
            ConnectProgress::Connected(established)
        );
        assert_eq!(connect.request(), None);
    }

    #[test]
    fn connect_of_older_archive_has_no_archive_id() {
        let mut connect = connect();
        connect.on_sent();
        let mut response = response(1, 42, ControlResponseCode::OK);
        response.version = ProtocolVersion::new(1, 10, 9);
        connect.on_event(&Event::ControlResponse(response), || unreachable!());
        connect.on_sent();
        let ConnectProgress::Connected(established) = connect.progress(0) else {
            panic!("{connect:?}", connect = connect.step);
        };
        assert_eq!(
            (established.control_session_id, established.archive_id),
            (42, NULL_VALUE)
        );
    }

    #[test]
    fn challenge_is_answered_with_a_new_correlation_id() {
        let mut connect = connect();
        connect.on_sent();
        let challenge = |correlation_id| {
            Event::Challenge(Challenge {
                control_session_id: 42,
                correlation_id,
                version: ProtocolVersion::CURRENT,
                encoded_challenge: b"abc",
            })
        };
        connect.on_event(&challenge(1), || 2);
        let answer = Some(Request::ChallengeResponse(ChallengeResponse {
            control_session_id: 42,
            correlation_id: 2,
            encoded_credentials: b"cba",
        }));
        assert_eq!(connect.request(), answer);
        connect.on_sent();
        // The archive repeats the first one.
        connect.on_event(&challenge(1), || unreachable!());
        assert_eq!(connect.request(), None);
        connect.on_event(&ok(2, 42), || 3);
        connect.on_sent();
        connect.on_event(&challenge(3), || unreachable!());
        assert_eq!(
            connect.request(),
            None,
            "an accepted session is not challenged"
        );
    }

    #[test]
    fn repeated_and_foreign_responses_change_nothing() {
        let mut connect = connect();
        // Not even sent: an answer to an earlier attempt.
        connect.on_event(&ok(1, 42), || unreachable!());
        connect.on_sent();
        connect.on_event(&ok(9, 43), || unreachable!());
        assert_eq!(connect.request(), None);
        assert_eq!(connect.progress(0), ConnectProgress::Pending);
        connect.on_event(&ok(1, 42), || 2);
        connect.on_sent();
        connect.on_event(&ok(1, 42), || unreachable!());
        assert_eq!(connect.request(), None);
        assert_eq!(connect.progress(0), ConnectProgress::Pending);
    }

    #[test]
    fn rejection_closes_the_session_and_fails_with_code_and_text() {
        let mut connect = connect();
        connect.on_sent();
        let rejection = response(1, 10, ControlResponseCode::ERROR);
        connect.on_event(&Event::ControlResponse(rejection), || unreachable!());
        assert_eq!(
            connect.request(),
            Some(Request::CloseSessionRequest(CloseSessionRequest {
                control_session_id: 42
            }))
        );
        connect.on_sent();
        let error = SessionError::Rejected {
            code: ErrorCode::AuthenticationRejected,
            message: "text".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "the archive rejected the connection: AUTHENTICATION_REJECTED (text)"
        );
        assert_eq!(connect.progress(0), ConnectProgress::Failed(error));
    }

    #[test]
    fn deadline_ends_each_step() {
        for answered in 0..3 {
            let mut connect = connect();
            for correlation_id in 1..=answered {
                connect.on_sent();
                connect.on_event(&ok(correlation_id, 42), || correlation_id + 1);
            }
            assert_eq!(connect.progress(DEADLINE - 1), ConnectProgress::Pending);
            assert!(matches!(
                connect.progress(DEADLINE),
                ConnectProgress::Failed(SessionError::Timeout { .. })
            ));
            assert_eq!(connect.request(), None);
        }
    }

    #[test]
    fn response_of_another_kind_fails() {
        let mut connect = connect();
        connect.on_sent();
        let response = response(1, 0, ControlResponseCode::RecordingUnknown);
        connect.on_event(&Event::ControlResponse(response), || unreachable!());
        connect.on_sent();
        let code = ControlResponseCode::RecordingUnknown;
        let error = SessionError::UnexpectedResponse { code };
        assert_eq!(connect.progress(0), ConnectProgress::Failed(error));
    }
}
