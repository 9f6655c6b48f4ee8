// SPDX-License-Identifier: Apache-2.0
//! Messages between clients and the cluster (`docs/spec/cluster.md` §2).

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use super::log::SessionMessageHeader;
use super::wire::{FromWire, ToWire};
use crate::codecs::cluster;
pub use crate::codecs::cluster::types::{AdminRequestType, AdminResponseCode, EventCode};
use crate::{stream, structs};
structs! {
    /// Answer to a connect request, or notice about a session.
    SessionEvent<'a> = session_event::{SessionEventDecoder, SessionEventEncoder} {
        /// Session.
        cluster_session_id: i64,
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Term of the leader.
        leadership_term_id: i64,
        /// Leader.
        leader_member_id: i32,
        /// Kind of the event.
        code: EventCode,
        /// Version of the cluster's protocol.
        version: Option<i32>,
        /// Heartbeat timeout of the leader in nanoseconds; none from older clusters.
        leader_heartbeat_timeout_ns: Option<i64> as Option<i64>,
        ;
        /// Text, or the ingress endpoints of a redirect.
        detail: &'a str,
    }
    /// Opens a session.
    SessionConnectRequest<'a> = session_connect_request::{SessionConnectRequestDecoder, SessionConnectRequestEncoder} {
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Stream id for egress.
        response_stream_id: i32,
        /// Version of the client's protocol.
        version: Option<i32>,
        ;
        /// Channel for egress.
        response_channel: &'a str,
        /// Credentials.
        encoded_credentials: &'a [u8],
        /// Name and version of the client; empty from older ones.
        client_info: &'a str,
    }
    /// Closes a session.
    SessionCloseRequest = session_close_request::{SessionCloseRequestDecoder, SessionCloseRequestEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session.
        cluster_session_id: i64,
        ;
    }
    /// Keeps a session open.
    SessionKeepAlive = session_keep_alive::{SessionKeepAliveDecoder, SessionKeepAliveEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session.
        cluster_session_id: i64,
        ;
    }
    /// Tells a client of a new leader.
    NewLeaderEvent<'a> = new_leader_event::{NewLeaderEventDecoder, NewLeaderEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session.
        cluster_session_id: i64,
        /// Leader.
        leader_member_id: i32,
        ;
        /// Ingress endpoints of all members.
        ingress_endpoints: &'a str,
    }
    /// Asks a client for more credentials.
    Challenge<'a> = challenge::{ChallengeDecoder, ChallengeEncoder} {
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Session.
        cluster_session_id: i64,
        ;
        /// Challenge.
        encoded_challenge: &'a [u8],
    }
    /// Answers a challenge.
    ChallengeResponse<'a> = challenge_response::{ChallengeResponseDecoder, ChallengeResponseEncoder} {
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Session.
        cluster_session_id: i64,
        ;
        /// Credentials.
        encoded_credentials: &'a [u8],
    }
    /// Asks for an administrative action.
    AdminRequest<'a> = admin_request::{AdminRequestDecoder, AdminRequestEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session.
        cluster_session_id: i64,
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Action.
        request_type: AdminRequestType,
        ;
        /// Parameters of the action.
        payload: &'a [u8],
    }
    /// Answers an [`AdminRequest`].
    AdminResponse<'a> = admin_response::{AdminResponseDecoder, AdminResponseEncoder} {
        /// Session.
        cluster_session_id: i64,
        /// Correlation id, chosen by the client.
        correlation_id: i64,
        /// Action.
        request_type: AdminRequestType,
        /// Result.
        response_code: AdminResponseCode,
        ;
        /// Text.
        message: &'a str,
        /// Result of the action.
        payload: &'a [u8],
    }
}

stream! {
    /// A message on the ingress stream. The payload of an application message follows its header: see [`split`](super::split).
    enum IngressMessage<'a> {
        SessionMessageHeader,
        SessionConnectRequest<'a>,
        SessionCloseRequest,
        SessionKeepAlive,
        ChallengeResponse<'a>,
        AdminRequest<'a>,
    }
}

stream! {
    /// A message on the egress stream. The payload of an application message follows its header: see [`split`](super::split).
    enum EgressMessage<'a> {
        SessionMessageHeader,
        SessionEvent<'a>,
        NewLeaderEvent<'a>,
        Challenge<'a>,
        AdminResponse<'a>,
    }
}
