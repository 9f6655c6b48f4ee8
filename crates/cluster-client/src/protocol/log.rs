// SPDX-License-Identifier: Apache-2.0
//! Entries of the log (`docs/spec/cluster.md` §3.1).

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use super::wire::{FromWire, ToWire};
use crate::codecs::cluster;
pub use crate::codecs::cluster::types::{ChangeType, CloseReason, ClusterAction, ClusterTimeUnit};
use crate::{stream, structs};

structs! {
    /// Header of an application message, whose payload follows.
    SessionMessageHeader = session_message_header::{SessionMessageHeaderDecoder, SessionMessageHeaderEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session; below 0 for a message of a service.
        cluster_session_id: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        ;
    }
    /// A timer is due.
    TimerEvent = timer_event::{TimerEventDecoder, TimerEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Id of the timer, chosen by the service.
        correlation_id: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        ;
    }
    /// A session is open.
    SessionOpenEvent<'a> = session_open_event::{SessionOpenEventDecoder, SessionOpenEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Correlation id of the client's request.
        correlation_id: i64,
        /// Session.
        cluster_session_id: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Stream id for egress.
        response_stream_id: i32,
        ;
        /// Channel for egress.
        response_channel: &'a str,
        /// Principal of the client.
        encoded_principal: &'a [u8],
    }
    /// A session is closed.
    SessionCloseEvent = session_close_event::{SessionCloseEventDecoder, SessionCloseEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Session.
        cluster_session_id: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Reason.
        close_reason: CloseReason,
        ;
    }
    /// All members act at this position.
    ClusterActionRequest = cluster_action_request::{ClusterActionRequestDecoder, ClusterActionRequestEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position behind this entry.
        log_position: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Action.
        action: ClusterAction,
        /// Flags; 1 for standby nodes only.
        flags: Option<i32>,
        ;
    }
    /// First entry of a term.
    NewLeadershipTermEvent = new_leadership_term_event::{NewLeadershipTermEventDecoder, NewLeadershipTermEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position behind this entry.
        log_position: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Position of this entry.
        term_base_log_position: i64,
        /// Leader.
        leader_member_id: i32,
        /// Session id of the log publication.
        log_session_id: i32,
        /// Unit of the cluster's clock; none stands for milliseconds.
        time_unit: Option<ClusterTimeUnit>,
        /// Version of the application.
        app_version: Option<i32>,
        ;
    }
    /// A change of the members; official members skip it.
    MembershipChangeEvent<'a> = membership_change_event::{MembershipChangeEventDecoder, MembershipChangeEventEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position behind this entry.
        log_position: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Leader.
        leader_member_id: i32,
        /// Number of members.
        cluster_size: i32,
        /// Kind of the change.
        change_type: ChangeType,
        /// Member that joins or quits.
        member_id: i32,
        ;
        /// Members after the change.
        cluster_members: &'a str,
    }
}

stream! {
    /// An entry of the log. The payload of an application message follows its header: see [`split`](super::split).
    enum LogMessage<'a> {
        SessionMessageHeader,
        TimerEvent,
        SessionOpenEvent<'a>,
        SessionCloseEvent,
        ClusterActionRequest,
        NewLeadershipTermEvent,
        MembershipChangeEvent<'a>,
    }
}
