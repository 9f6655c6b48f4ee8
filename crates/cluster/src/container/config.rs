// SPDX-License-Identifier: Apache-2.0
//! Configuration of a container (`docs/spec/cluster.md` §11.2).

use std::path::PathBuf;

use taran_core::idle::IdleSpec;

use crate::consensus::Nanos;
use crate::module::{ClusterConfigError, Values};

/// Configuration of a container. Properties that are not in [`ContainerConfig::PROPERTIES`] are ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerConfig {
    /// Id of the cluster.
    pub cluster_id: i32,
    /// Id of the service, from 0.
    pub service_id: i32,
    /// Name of the service.
    pub service_name: String,
    /// Directory of the cluster.
    pub dir: PathBuf,
    /// Directory of the mark file.
    pub mark_dir: PathBuf,
    /// Length of the error log in the mark file in bytes.
    pub error_log_length: usize,
    /// Directory of the driver; none for its default.
    pub aeron_dir: Option<PathBuf>,
    /// Channel between consensus module and services.
    pub control_channel: String,
    /// Stream id from services to the consensus module.
    pub consensus_module_stream_id: i32,
    /// Stream id from the consensus module to services.
    pub service_stream_id: i32,
    /// Channel of replays of snapshots.
    pub replay_channel: String,
    /// Stream id of these replays.
    pub replay_stream_id: i32,
    /// Channel on which snapshots are recorded.
    pub snapshot_channel: String,
    /// Stream id on which snapshots are recorded.
    pub snapshot_stream_id: i32,
    /// Channel to the archive.
    pub archive_channel: String,
    /// Stream id to the archive.
    pub archive_stream_id: i32,
    /// Fragments of the log per duty cycle.
    pub log_fragment_limit: usize,
    /// False if the service never answers clients: it then has no publications to them.
    pub is_responder: bool,
    /// Time between the starts of two duty cycles beyond which they are counted.
    pub cycle_threshold: Nanos,
    /// Duration of a snapshot beyond which it is counted.
    pub snapshot_threshold: Nanos,
    /// Version of the application.
    pub app_version: i32,
    /// Idle strategy of the agent.
    pub idle: IdleSpec,
}

impl ContainerConfig {
    /// Properties that have an effect.
    pub const PROPERTIES: [&'static str; 22] = [
        "aeron.dir",
        "aeron.archive.local.control.channel",
        "aeron.archive.local.control.stream.id",
        "aeron.cluster.id",
        "aeron.cluster.service.id",
        "aeron.cluster.service.name",
        "aeron.cluster.dir",
        "aeron.cluster.mark.file.dir",
        "aeron.cluster.service.error.buffer.length",
        "aeron.cluster.control.channel",
        "aeron.cluster.consensus.module.stream.id",
        "aeron.cluster.service.stream.id",
        "aeron.cluster.replay.channel",
        "aeron.cluster.replay.stream.id",
        "aeron.cluster.snapshot.channel",
        "aeron.cluster.snapshot.stream.id",
        "aeron.cluster.log.fragment.limit",
        "aeron.cluster.service.responder",
        "aeron.cluster.service.cycle.threshold",
        "aeron.cluster.service.snapshot.threshold",
        "aeron.cluster.app.version",
        "aeron.cluster.idle.strategy",
    ];

    /// Reads properties: pairs of name and value, of which later ones win. An empty value is the default.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ClusterConfigError> {
        let values = Values::new(properties);
        let cluster_id = values.int("aeron.cluster.id", 0)?;
        let service_id = values.parsed("aeron.cluster.service.id", 0, |text| {
            let id = text.parse().ok().filter(|id| (0..10).contains(id));
            id.ok_or("must be a number from 0 to 9")
        })?;
        let dir = values.text("aeron.cluster.dir", "aeron-cluster");
        let name = format!("clustered-service-{cluster_id}-{service_id}");
        Ok(Self {
            cluster_id,
            service_id,
            service_name: values.text("aeron.cluster.service.name", &name),
            mark_dir: PathBuf::from(values.text("aeron.cluster.mark.file.dir", &dir)),
            dir: PathBuf::from(dir),
            error_log_length: values.size("aeron.cluster.service.error.buffer.length", 1 << 20)?,
            aeron_dir: values.get("aeron.dir").map(PathBuf::from),
            control_channel: values.channel(
                "aeron.cluster.control.channel",
                "aeron:ipc?term-length=128k",
            )?,
            consensus_module_stream_id: values
                .int("aeron.cluster.consensus.module.stream.id", 105)?,
            service_stream_id: values.int("aeron.cluster.service.stream.id", 104)?,
            replay_channel: values.channel("aeron.cluster.replay.channel", "aeron:ipc")?,
            replay_stream_id: values.int("aeron.cluster.replay.stream.id", 103)?,
            snapshot_channel: values
                .channel("aeron.cluster.snapshot.channel", "aeron:ipc?alias=snapshot")?,
            snapshot_stream_id: values.int("aeron.cluster.snapshot.stream.id", 106)?,
            archive_channel: values.channel(
                "aeron.archive.local.control.channel",
                "aeron:ipc?term-length=64k",
            )?,
            archive_stream_id: values.int("aeron.archive.local.control.stream.id", 10)?,
            log_fragment_limit: values.count("aeron.cluster.log.fragment.limit", 50)?,
            is_responder: values.flag("aeron.cluster.service.responder", true)?,
            cycle_threshold: values
                .duration("aeron.cluster.service.cycle.threshold", 100_000_000)?,
            snapshot_threshold: values
                .duration("aeron.cluster.service.snapshot.threshold", 1_000_000_000)?,
            app_version: values.int("aeron.cluster.app.version", 1)?,
            idle: values.idle("aeron.cluster.idle.strategy", "backoff")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_has_the_values_of_its_properties_and_refuses_others() {
        let config = ContainerConfig::from_properties([
            ("aeron.cluster.service.id", "3"),
            ("aeron.cluster.id", "2"),
            ("aeron.cluster.dir", "x"),
        ])
        .unwrap();
        assert_eq!(config.service_name, "clustered-service-2-3");
        assert_eq!(config.mark_dir, PathBuf::from("x"));
        for (name, value) in [
            ("aeron.cluster.service.id", "10"),
            ("aeron.cluster.service.id", "-1"),
            ("aeron.cluster.service.cycle.threshold", "soon"),
        ] {
            let error = ContainerConfig::from_properties([(name, value)]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }
}
