// SPDX-License-Identifier: Apache-2.0
//! Selection of the flow control of a publication (docs/spec/wire.md §4.1).

use std::fmt;
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_protocol::counter::StreamCounter;
use taran_protocol::uri::{FlowControlParams, FlowControlStrategy};

use super::counters::StreamIdentity;
use super::failure::Failure;
use super::publication_config::PublicationConfig;
use super::state::ConductorState;
use crate::boundary::{MinFlowControlSpec, SenderFlowControlSpec};
use crate::sender::{FlowControlRequest, FlowControlSupplier, StreamLog};

/// Owner id of counters that belong to no client.
const NO_CLIENT: i64 = -1;

/// Creates flow control strategies: supplied by the embedding application, else built in.
pub(crate) struct FlowControlFactory {
    supplier: Option<FlowControlSupplier>,
}

impl FlowControlFactory {
    pub(crate) fn new(supplier: Option<FlowControlSupplier>) -> Self {
        Self { supplier }
    }

    /// Returns the supplied strategy for this publication, if there is one.
    fn supplied(&mut self, request: &FlowControlRequest<'_>) -> Option<SenderFlowControlSpec> {
        let supplier = self.supplier.as_mut()?;
        supplier(request).map(SenderFlowControlSpec::Custom)
    }
}

impl ConductorState {
    /// Returns the strategy of a new publication, and its `fc-receivers` counter if the strategy has one.
    pub(crate) fn flow_control(
        &mut self,
        config: &PublicationConfig,
        is_group: bool,
    ) -> Result<(SenderFlowControlSpec, Option<Counter>), Failure> {
        let request = FlowControlRequest {
            channel: &config.channel,
            registration_id: config.registration_id,
            session_id: config.session_id,
            stream_id: config.stream_id,
            term_length: config.term_length(),
            is_group,
        };
        if let Some(supplied) = self.flow_control.supplied(&request) {
            return Ok((supplied, None));
        }
        let params = &config.params.flow_control;
        if !counts_receivers(params) {
            return Ok((built_in(params, None), None));
        }
        let identity = StreamIdentity {
            registration_id: config.registration_id,
            session_id: config.session_id,
            stream_id: config.stream_id,
            channel: &config.channel,
        };
        let kinds = [StreamCounter::FLOW_CONTROL_RECEIVERS];
        let [receivers] = self.counters.stream(kinds, &identity, NO_CLIENT, 0)?;
        let counted = (receivers.clone(), self.stream_log(config));
        Ok((built_in(params, Some(counted)), Some(receivers)))
    }

    /// Returns the event log context for the sender's half of a publication.
    pub(crate) fn stream_log(&self, config: &PublicationConfig) -> StreamLog {
        StreamLog {
            events: self.events.clone(),
            session_id: config.session_id,
            stream_id: config.stream_id,
            channel: Arc::clone(&config.channel),
        }
    }
}

/// Returns true if the strategy counts its receivers in `fc-receivers`.
fn counts_receivers(params: &FlowControlParams) -> bool {
    match params.strategy {
        FlowControlStrategy::Min | FlowControlStrategy::Tagged => true,
        FlowControlStrategy::Unicast | FlowControlStrategy::Max => false,
    }
}

/// Returns a built-in strategy; `receivers` is set if the strategy counts receivers.
fn built_in(
    params: &FlowControlParams,
    receivers: Option<(Counter, StreamLog)>,
) -> SenderFlowControlSpec {
    let retransmit_window_multiple = params.retransmit_receiver_window_multiple;
    match receivers {
        None => SenderFlowControlSpec::Max {
            retransmit_window_multiple,
        },
        Some((receivers, log)) => SenderFlowControlSpec::Min(MinFlowControlSpec {
            group_tag: (params.strategy == FlowControlStrategy::Tagged).then_some(params.group_tag),
            // The parser and the option reject negative values.
            min_size: usize::try_from(params.group_min_size).unwrap_or(0),
            timeout_ns: params.receiver_timeout_ns,
            retransmit_window_multiple,
            receivers,
            log,
        }),
    }
}

impl fmt::Debug for FlowControlFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowControls")
            .field("is_supplied", &self.supplier.is_some())
            .finish()
    }
}
