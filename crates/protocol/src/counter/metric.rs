// SPDX-License-Identifier: Apache-2.0
//! System counters as metrics: name, kind and unit by OpenMetrics conventions.

use super::SystemCounter;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Monotonically increasing value.
    Counter,
    /// Value that can increase and decrease.
    Gauge,
}

/// Unit of a metric, which determines the conversion of the counter value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// No unit.
    None,
    /// Bytes.
    Bytes,
    /// Seconds; the counter value is in nanoseconds.
    Seconds,
}

/// Metric of a system counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name including the unit, without prefix and without the suffix `_total` of counters.
    pub name: &'static str,
    /// Kind.
    pub kind: MetricKind,
    /// Unit.
    pub unit: MetricUnit,
}

impl SystemCounter {
    /// Returns the metric of the counter.
    #[must_use]
    pub fn metric(self) -> Metric {
        use SystemCounter as C;
        let counter = |name| (name, MetricKind::Counter, MetricUnit::None);
        let bytes = |name| (name, MetricKind::Counter, MetricUnit::Bytes);
        let seconds = |name| (name, MetricKind::Gauge, MetricUnit::Seconds);
        let gauge = |name| (name, MetricKind::Gauge, MetricUnit::None);
        let (name, kind, unit) = match self {
            C::BytesSent => bytes("sent_bytes"),
            C::BytesReceived => bytes("received_bytes"),
            C::ReceiverProxyFails => counter("receiver_proxy_failed_offers"),
            C::SenderProxyFails => counter("sender_proxy_failed_offers"),
            C::ConductorProxyFails => counter("conductor_proxy_failed_offers"),
            C::NaksSent => counter("naks_sent"),
            C::NaksReceived => counter("naks_received"),
            C::StatusMessagesSent => counter("status_messages_sent"),
            C::StatusMessagesReceived => counter("status_messages_received"),
            C::HeartbeatsSent => counter("heartbeats_sent"),
            C::HeartbeatsReceived => counter("heartbeats_received"),
            C::RetransmitsSent => counter("retransmits_sent"),
            C::FlowControlUnderRuns => counter("flow_control_under_runs"),
            C::FlowControlOverRuns => counter("flow_control_over_runs"),
            C::InvalidPackets => counter("invalid_packets"),
            C::Errors => counter("errors"),
            C::ShortSends => counter("short_sends"),
            C::FreeFails => counter("log_free_failures"),
            C::SenderFlowControlLimits => counter("sender_flow_control_limits"),
            C::UnblockedPublications => counter("unblocked_publications"),
            C::UnblockedCommands => counter("unblocked_commands"),
            C::PossibleTtlAsymmetry => counter("possible_ttl_asymmetries"),
            C::ControllableIdleStrategy => gauge("controllable_idle_strategy_status"),
            C::LossGapFills => counter("loss_gap_fills"),
            C::ClientTimeouts => counter("client_timeouts"),
            C::ResolutionChanges => counter("resolution_changes"),
            C::ConductorMaxCycleTime => seconds("conductor_max_cycle_time_seconds"),
            C::ConductorCycleTimeThresholdExceeded => counter("conductor_cycle_stalls"),
            C::SenderMaxCycleTime => seconds("sender_max_cycle_time_seconds"),
            C::SenderCycleTimeThresholdExceeded => counter("sender_cycle_stalls"),
            C::ReceiverMaxCycleTime => seconds("receiver_max_cycle_time_seconds"),
            C::ReceiverCycleTimeThresholdExceeded => counter("receiver_cycle_stalls"),
            C::NameResolverMaxTime => seconds("name_resolver_max_time_seconds"),
            C::NameResolverTimeThresholdExceeded => counter("name_resolver_stalls"),
            C::AeronVersion => gauge("software_version"),
            C::BytesCurrentlyMapped => ("mapped_bytes", MetricKind::Gauge, MetricUnit::Bytes),
            C::RetransmittedBytes => bytes("retransmitted_bytes"),
            C::RetransmitOverflow => counter("retransmit_overflows"),
            C::ErrorFramesReceived => counter("error_frames_received"),
            C::ErrorFramesSent => counter("error_frames_sent"),
            C::PublicationsRevoked => counter("publications_revoked"),
            C::PublicationImagesRevoked => counter("publication_images_revoked"),
            C::ImagesRejected => counter("images_rejected"),
            C::ControlProtocolVersion => gauge("control_protocol_version"),
            C::StatusMessagesRejected => counter("status_messages_rejected"),
            C::AsyncExecutorProxyFails => counter("async_executor_proxy_failed_offers"),
        };
        Metric { name, kind, unit }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn metric_names_are_unique_and_end_in_unit() {
        let mut names = HashSet::new();
        for counter in SystemCounter::ALL {
            let metric = counter.metric();
            assert!(names.insert(metric.name), "{}", metric.name);
            assert!(
                metric
                    .name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            );
            assert_eq!(
                metric.name.ends_with("_bytes"),
                metric.unit == MetricUnit::Bytes
            );
            assert_eq!(
                metric.name.ends_with("_seconds"),
                metric.unit == MetricUnit::Seconds
            );
            assert!(!metric.name.ends_with("_total"));
        }
    }
}
