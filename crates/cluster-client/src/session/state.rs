// SPDX-License-Identifier: Apache-2.0
//! States and events of a session, as applications see them.

use std::time::Duration;

use thiserror::Error;

use super::MemberId;
use crate::protocol::{AdminRequestType, AdminResponseCode};

/// State of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterState {
    /// No leader has answered yet.
    Connecting,
    /// The session is open at the leader.
    Connected,
    /// The leader is lost, and the next one is awaited or connected to. The session is kept.
    AwaitingLeader,
    /// The session is lost, and a new one is being opened.
    Reconnecting,
    /// The session is closed, for good.
    Closed(ClosedReason),
}

/// Reason why a session is closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClosedReason {
    /// The application has closed it.
    #[error("the application has closed the session")]
    Application,
    /// The cluster has closed it, with `SERVICE_ACTION`, `TIMEOUT` or `election`.
    #[error("the cluster has closed the session: {detail}")]
    Cluster {
        /// Text of the cluster.
        detail: String,
    },
    /// The cluster has refused a session.
    #[error("the cluster refuses the session: {detail}")]
    Refused {
        /// Text of the cluster.
        detail: String,
    },
    /// The cluster does not accept the credentials.
    #[error("the cluster does not accept the credentials: {detail}")]
    AuthenticationRejected {
        /// Text of the cluster.
        detail: String,
    },
    /// No leader has answered in time.
    #[error("no leader has answered within {} ms, while waiting for {waiting_for}", after.as_millis())]
    Timeout {
        /// Time limit.
        after: Duration,
        /// Step that was not completed.
        waiting_for: String,
    },
    /// No new leader has come in time, and no new session is to be opened.
    #[error(
        "the cluster has had no new leader within {} ms; set a reconnect timeout to open a new session instead",
        after.as_millis()
    )]
    NoLeader {
        /// Time limit.
        after: Duration,
    },
    /// The ingress stream or the driver has ended.
    #[error("the session cannot be continued: {reason}")]
    Failed {
        /// Reason.
        reason: String,
    },
}

/// Event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// The first session is open.
    Connected {
        /// Session.
        session_id: i64,
        /// Leader.
        leader: MemberId,
    },
    /// The leader is lost.
    LeaderLost {
        /// Leader that is lost.
        leader: MemberId,
    },
    /// The cluster has a new leader, with which the session goes on.
    NewLeader {
        /// Leader.
        leader: MemberId,
        /// Its term.
        term: i64,
        /// Number of the last message that was sent before. Messages up to this one that have no answer may be lost, or may be
        /// applied without an answer.
        maybe_lost: u64,
    },
    /// The session was lost, and a new one is open.
    NewSession {
        /// Session that was lost.
        old: i64,
        /// New session.
        session_id: i64,
        /// Leader.
        leader: MemberId,
        /// Number of the last message of the old session. Messages up to this one that have no answer may be lost, or may be
        /// applied without an answer.
        maybe_lost: u64,
    },
    /// The answer to an administrative request.
    AdminResponse {
        /// Correlation id of the request.
        correlation_id: i64,
        /// Action.
        request_type: AdminRequestType,
        /// Result.
        code: AdminResponseCode,
        /// Text.
        message: String,
        /// Result of the action.
        payload: Vec<u8>,
    },
    /// The session is closed, for good.
    Closed(ClosedReason),
}
