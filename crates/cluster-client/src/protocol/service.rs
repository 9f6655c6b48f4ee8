// SPDX-License-Identifier: Apache-2.0
//! Messages between the consensus module and containers of services, or tools (`docs/spec/cluster.md` §7.1).

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use super::log::SessionMessageHeader;
use super::wire::{FromWire, ToWire};
use crate::codecs::cluster;
use crate::{stream, structs};

structs! {
    /// Closes a session.
    CloseSession = close_session::{CloseSessionDecoder, CloseSessionEncoder} {
        /// Session.
        cluster_session_id: i64,
        ;
    }
    /// Schedules a timer, or moves it.
    ScheduleTimer = schedule_timer::{ScheduleTimerDecoder, ScheduleTimerEncoder} {
        /// Id of the timer, chosen by the service.
        correlation_id: i64,
        /// Time at which it is due.
        deadline: i64,
        ;
    }
    /// Cancels a timer.
    CancelTimer = cancel_timer::{CancelTimerDecoder, CancelTimerEncoder} {
        /// Id of the timer.
        correlation_id: i64,
        ;
    }
    /// A service has reached a position.
    ServiceAck = service_ack::{ServiceAckDecoder, ServiceAckEncoder} {
        /// Position.
        log_position: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Number of the acknowledgement, from 0.
        ack_id: i64,
        /// Recording of a snapshot, client id of a container, or -1.
        relevant_id: i64,
        /// Service.
        service_id: i32,
        ;
    }
    /// Asks for the members.
    ClusterMembersQuery = cluster_members_query::{ClusterMembersQueryDecoder, ClusterMembersQueryEncoder} {
        /// Correlation id, chosen by the tool.
        correlation_id: i64,
        /// True to ask for the extended response.
        extended: bool,
        ;
    }
    /// Asks services to read a log.
    JoinLog<'a> = join_log::{JoinLogDecoder, JoinLogEncoder} {
        /// Position from which the log is read.
        log_position: i64,
        /// Position up to which the log is read.
        max_log_position: i64,
        /// Own member.
        member_id: i32,
        /// Session id of the log.
        log_session_id: i32,
        /// Stream id of the log.
        log_stream_id: i32,
        /// True if the node has just been started.
        is_startup: bool,
        /// Role: 0 follower, 1 candidate, 2 leader.
        role: i32,
        /// True on a standby node.
        is_standby: bool,
        ;
        /// Channel of the log.
        log_channel: &'a str,
    }
    /// Answers a [`ClusterMembersQuery`].
    ClusterMembersResponse<'a> = cluster_members_response::{ClusterMembersResponseDecoder, ClusterMembersResponseEncoder} {
        /// Correlation id of the query.
        correlation_id: i64,
        /// Leader, or -1.
        leader_member_id: i32,
        ;
        /// Members.
        active_members: &'a str,
        /// Members without a vote; always empty.
        passive_followers: &'a str,
    }
    /// Ends services at a position.
    ServiceTerminationPosition = service_termination_position::{ServiceTerminationPositionDecoder, ServiceTerminationPositionEncoder} {
        /// Position; 0 for now.
        log_position: i64,
        ;
    }
    /// Asks services for an acknowledgement.
    RequestServiceAck = request_service_ack::{RequestServiceAckDecoder, RequestServiceAckEncoder} {
        /// Position.
        log_position: i64,
        ;
    }
}

stream! {
    /// A message of a service or tool to the consensus module. The payload of a service message follows its header.
    enum ServiceRequest {
        SessionMessageHeader,
        CloseSession,
        ScheduleTimer,
        CancelTimer,
        ServiceAck,
        ClusterMembersQuery,
    }
}

stream! {
    /// A message of the consensus module to services or tools.
    enum ServiceCommand<'a> {
        JoinLog<'a>,
        ClusterMembersResponse<'a>,
        ServiceTerminationPosition,
        RequestServiceAck,
    }
}
