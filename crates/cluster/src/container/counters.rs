// SPDX-License-Identifier: Apache-2.0
//! Counters of a container, with official type ids and labels (`docs/spec/cluster.md` §9.4).

use taran::{Client, CommandError, Counter};

use super::config::ContainerConfig;
use crate::module::counters::{DurationCounters, duration_text, version};

/// Counters.
pub(super) struct ContainerCounters {
    pub(super) errors: Counter,
    pub(super) cycle: DurationCounters,
    pub(super) snapshot: DurationCounters,
}

impl ContainerCounters {
    pub(super) fn add(client: &Client, config: &ContainerConfig) -> Result<Self, CommandError> {
        let (cluster, service) = (config.cluster_id, config.service_id);
        let mut key = [0; 8];
        key[..4].copy_from_slice(&cluster.to_le_bytes());
        key[4..].copy_from_slice(&service.to_le_bytes());
        let add = |type_id: i32, text: &str| {
            let label = format!("{text} - clusterId={cluster} serviceId={service}");
            client.add_counter(type_id, &key, &label)
        };
        let durations = |type_id: i32, longest: &str, exceeded: &str, threshold| {
            let exceeded = format!("{exceeded}: threshold={}", duration_text(threshold));
            Ok::<_, CommandError>(DurationCounters::new(
                add(type_id, longest)?,
                add(type_id + 1, &exceeded)?,
                threshold,
            ))
        };
        Ok(Self {
            errors: client.add_counter(
                215,
                &key,
                &format!(
                    "Cluster Container Errors - clusterId={cluster} serviceId={service} {}",
                    version()
                ),
            )?,
            cycle: durations(
                218,
                "Cluster container max cycle time in ns",
                "Cluster container work cycle time exceeded count",
                config.cycle_threshold,
            )?,
            snapshot: durations(
                236,
                "Clustered service max snapshot duration in ns",
                "Clustered service max snapshot duration exceeded count",
                config.snapshot_threshold,
            )?,
        })
    }
}
