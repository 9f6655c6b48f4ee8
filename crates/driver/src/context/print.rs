// SPDX-License-Identifier: Apache-2.0
//! Configuration as text, for `aeron.print.configuration` (docs/spec/uri-and-configuration.md §5.3).

use taran_core::directory::default_directory;
use taran_protocol::option::{OptionId, OptionSet, Value};

/// Options whose official key is not derived from the property.
const IRREGULAR: &[(OptionId, &str)] = &[
    (OptionId::Dir, "aeron_dir"),
    (OptionId::PrintConfiguration, "print_configuration_on_start"),
    (OptionId::DirDeleteOnStart, "dirs_delete_on_start"),
    (OptionId::DirDeleteOnShutdown, "dirs_delete_on_shutdown"),
    (OptionId::DirWarnIfExists, "warn_if_dirs_exists"),
    (OptionId::ConductorBufferLength, "to_driver_buffer_length"),
    (OptionId::ClientsBufferLength, "to_clients_buffer_length"),
    (
        OptionId::CountersBufferLength,
        "counters_values_buffer_length",
    ),
    (OptionId::LossReportBufferLength, "loss_report_length"),
    (OptionId::StatusMessageTimeout, "status_message_timeout"),
    (
        OptionId::CountersFreeToReuseTimeout,
        "counter_free_to_reuse",
    ),
    (
        OptionId::ConductorCycleThreshold,
        "conductor_cycle_threshold",
    ),
    (OptionId::SenderCycleThreshold, "sender_cycle_threshold"),
    (OptionId::ReceiverCycleThreshold, "receiver_cycle_threshold"),
    (
        OptionId::PublicationTermWindowLength,
        "publication_window_length",
    ),
    (
        OptionId::IpcPublicationTermWindowLength,
        "ipc_publication_window_length",
    ),
    (OptionId::InitialWindowLength, "initial_window_length"),
    (OptionId::SocketSendBuffer, "socket_sndbuf_length"),
    (OptionId::SocketReceiveBuffer, "socket_rcvbuf_length"),
    (OptionId::SocketMulticastTtl, "multicast_ttl"),
    (OptionId::SendToStatusPollRatio, "send_to_sm_poll_ratio"),
    (OptionId::ResourceFreeLimit, "resource_free_limit"),
    (OptionId::ConductorCpuAffinity, "conductor_cpu_affinity_no"),
    (OptionId::SenderCpuAffinity, "sender_cpu_affinity_no"),
    (OptionId::ReceiverCpuAffinity, "receiver_cpu_affinity_no"),
    (OptionId::AsyncExecutorEnabled, "async_executor_enabled"),
    (OptionId::StreamSessionLimit, "stream_session_limit"),
    (OptionId::ResolverName, "resolver_name"),
    (OptionId::ResolverInterface, "resolver_interface"),
    (
        OptionId::ResolverBootstrapNeighbor,
        "resolver_bootstrap_neighbor",
    ),
    (
        OptionId::ReResolutionCheckInterval,
        "re_resolution_check_interval",
    ),
    (OptionId::FlowControlGroupTag, "flow_control.group_tag"),
    (
        OptionId::FlowControlGroupMinSize,
        "flow_control.group_min_size",
    ),
];

/// Formats the options like the official driver: one `key=value` per option, lengths in bytes, times in nanoseconds.
pub(crate) fn print_configuration(options: &OptionSet) -> String {
    let mut text = String::from("aeron_driver_context_t {\n");
    for explained in options.explain() {
        let property = explained.option.property;
        let irregular = IRREGULAR.iter().find(|(id, _)| *id == explained.option.id);
        let key = irregular.map_or_else(
            || {
                let name = property.strip_prefix("aeron.").unwrap_or(property);
                name.replace('.', "_")
            },
            |(_, key)| (*key).to_owned(),
        );
        let value = match options.value(explained.option.id) {
            Value::Unset if explained.option.id == OptionId::Dir => {
                default_directory().display().to_string()
            }
            Value::Unset => String::new(),
            Value::Bool(value) => i32::from(*value).to_string(),
            Value::Int(value) => value.to_string(),
            Value::Text(value) => value.clone(),
            Value::Choice(value) => (*value).to_owned(),
            Value::Ports(low, high) => format!("\"{low} {high}\""),
            Value::Affinity(affinity) => affinity.to_string(),
        };
        let unit = match explained.option.kind {
            taran_protocol::option::Kind::Duration { .. } => "_ns",
            taran_protocol::option::Kind::Millis => "_ms",
            _ => "",
        };
        text.push_str(&format!("    {key}{unit}={value}\n"));
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_units_equal_official_driver() {
        let text = print_configuration(&OptionSet::driver());
        let directory = format!("    aeron_dir={}\n", default_directory().display());
        for line in [
            &directory,
            "    driver_timeout_ms=10000\n",
            "    term_buffer_length=16777216\n",
            "    status_message_timeout_ns=200000000\n",
            "    socket_rcvbuf_length=131072\n",
            "    counter_free_to_reuse_ns=1000000000\n",
            "    sender_wildcard_port_range=\"0 0\"\n",
            "    threading_mode=DEDICATED\n",
            "    flow_control.group_tag=-1\n",
            "    spies_simulate_connection=0\n",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
        assert!(text.starts_with("aeron_driver_context_t {\n") && text.ends_with("}\n"));
    }
}
