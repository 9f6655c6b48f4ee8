// SPDX-License-Identifier: Apache-2.0
//! Frames of snapshots (`docs/spec/cluster.md` §6.5).

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use super::log::{CloseReason, ClusterTimeUnit, SessionMessageHeader};
use super::wire::{FromWire, ToWire};
use crate::codecs::cluster;
pub use crate::codecs::cluster::types::SnapshotMark;
use crate::{stream, structs};

structs! {
    /// Begin or end of a snapshot.
    SnapshotMarker = snapshot_marker::{SnapshotMarkerDecoder, SnapshotMarkerEncoder} {
        /// Kind of the snapshot: 1 consensus module, 2 service.
        type_id: i64,
        /// Position of the snapshot.
        log_position: i64,
        /// Term of the snapshot.
        leadership_term_id: i64,
        /// Number of the section; 0.
        index: i32,
        /// Begin or end.
        mark: SnapshotMark,
        /// Unit of the cluster's clock; none stands for milliseconds.
        time_unit: Option<ClusterTimeUnit>,
        /// Version of the application.
        app_version: Option<i32>,
        ;
    }
    /// A session in the snapshot of a service.
    ClientSession<'a> = client_session::{ClientSessionDecoder, ClientSessionEncoder} {
        /// Session.
        cluster_session_id: i64,
        /// Stream id for egress.
        response_stream_id: i32,
        ;
        /// Channel for egress.
        response_channel: &'a str,
        /// Principal of the client.
        encoded_principal: &'a [u8],
    }
    /// A session in the snapshot of a consensus module.
    ClusterSession<'a> = cluster_session::{ClusterSessionDecoder, ClusterSessionEncoder} {
        /// Session.
        cluster_session_id: i64,
        /// Correlation id of the client's request.
        correlation_id: i64,
        /// Position behind the entry that opened the session.
        opened_log_position: i64,
        /// Always -1.
        time_of_last_activity: i64,
        /// Reason for which the session is being closed, or null.
        close_reason: CloseReason,
        /// Stream id for egress.
        response_stream_id: i32,
        ;
        /// Channel for egress.
        response_channel: &'a str,
    }
    /// A timer.
    Timer = timer::{TimerDecoder, TimerEncoder} {
        /// Id of the timer.
        correlation_id: i64,
        /// Time at which it is due.
        deadline: i64,
        ;
    }
    /// State of a consensus module.
    ConsensusModule = consensus_module::{ConsensusModuleDecoder, ConsensusModuleEncoder} {
        /// Next session id, as committed.
        next_session_id: i64,
        /// Next id of a message of service 0.
        next_service_session_id: Option<i64> as Option<i64>,
        /// Id of the last message of service 0 in the log.
        log_service_session_id: Option<i64> as Option<i64>,
        /// Capacity of its pending messages in bytes.
        pending_message_capacity: Option<i32>,
        ;
    }
    /// Members, in snapshots of old versions.
    ClusterMembers<'a> = cluster_members::{ClusterMembersDecoder, ClusterMembersEncoder} {
        /// Own member.
        member_id: i32,
        /// Highest member id that was used.
        high_member_id: i32,
        ;
        /// Members.
        cluster_members: &'a str,
    }
    /// Pending messages of a service, which follow.
    PendingMessageTracker = pending_message_tracker::{PendingMessageTrackerDecoder, PendingMessageTrackerEncoder} {
        /// Next id of a message.
        next_service_session_id: i64,
        /// Id of the last message in the log.
        log_service_session_id: i64,
        /// Capacity of pending messages in bytes.
        pending_message_capacity: Option<i32>,
        /// Service.
        service_id: i32,
        ;
    }
}

stream! {
    /// A frame of a snapshot. The payload of a pending message follows its header.
    enum SnapshotMessage<'a> {
        SnapshotMarker,
        ClientSession<'a>,
        ClusterSession<'a>,
        Timer,
        ConsensusModule,
        ClusterMembers<'a>,
        PendingMessageTracker,
        SessionMessageHeader,
    }
}
