// SPDX-License-Identifier: Apache-2.0
//! Specification of the sender's half of a network publication.

use std::sync::Arc;

use taran_protocol::uri::ResponseCorrelation;

use super::super::network::{Endpoint, PublicationCounters};
use super::super::publication_config::PublicationConfig;
use super::super::publication_log::PublicationLog;
use super::super::state::ConductorState;
use crate::boundary::{
    EndpointId, PublicationId, PublicationShared, RetransmitSpec, SenderFlowControlSpec,
    SenderPublicationSpec,
};
use crate::timestamps::SendTimestamp;

/// Group parameters of a send endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupInfo {
    pub(super) is_group: bool,
    pub(super) ttl: u8,
}

/// Parameters of the sender's half that are not part of the publication configuration.
#[derive(Debug)]
pub(super) struct SenderParams {
    pub(super) endpoint: EndpointId,
    pub(super) group: GroupInfo,
    pub(super) start_position: i64,
    pub(super) flow_control: SenderFlowControlSpec,
}

impl ConductorState {
    pub(super) fn group(&self, endpoint: EndpointId) -> GroupInfo {
        let endpoint = self.networking.send_endpoints.get(endpoint);
        GroupInfo {
            is_group: endpoint.is_some_and(Endpoint::is_group),
            ttl: endpoint.map_or(0, |endpoint| endpoint.ttl),
        }
    }

    fn send_timestamp(&self, endpoint: EndpointId) -> Option<SendTimestamp> {
        let endpoint = self.networking.send_endpoints.get(endpoint)?;
        Some(SendTimestamp {
            offset: endpoint.resolved.channel.channel_send_timestamp?,
            clock: Arc::clone(&self.networking.wall_clock),
        })
    }

    pub(super) fn sender_publication_spec(
        &self,
        sender_params: SenderParams,
        config: &PublicationConfig,
        log: &PublicationLog,
        counters: &PublicationCounters,
        shared: &Arc<PublicationShared>,
    ) -> SenderPublicationSpec {
        let settings = &self.settings.publication;
        let params = &config.params;
        let SenderParams {
            endpoint,
            group,
            start_position,
            flow_control,
        } = sender_params;
        SenderPublicationSpec {
            id: PublicationId(config.registration_id),
            endpoint,
            session_id: config.session_id,
            stream_id: config.stream_id,
            log: log.buffers().clone(),
            start_position,
            mtu: params.mtu,
            ttl: i32::from(group.ttl),
            is_group: group.is_group,
            wants_response: !params.is_response && params.response != ResponseCorrelation::None,
            signals_end_of_stream: params.eos,
            spies_simulate_connection: params.spies_simulate_connection,
            flow_control,
            retransmit: RetransmitSpec {
                // A single receiver NAKs one gap at a time.
                max_actions: if group.is_group { params.max_resend } else { 1 },
                delay_ns: settings.retransmit_delay_ns,
                linger_ns: settings.retransmit_linger_ns,
            },
            connection_timeout_ns: settings.connection_timeout_ns,
            send_timestamp: self.send_timestamp(endpoint),
            max_datagrams_per_send: settings.max_datagrams_per_send,
            sender_position: counters.sender_position.clone(),
            sender_limit: counters.sender_limit.clone(),
            back_pressure_events: counters.back_pressure_events.clone(),
            naks_received: counters.naks_received.clone(),
            log_events: self.stream_log(config),
            shared: Arc::clone(shared),
        }
    }
}
