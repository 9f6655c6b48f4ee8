// SPDX-License-Identifier: Apache-2.0
//! Configuration of a container (`docs/spec/cluster.md` §11.2).

use std::path::PathBuf;

use taran_core::idle::IdleSpec;
use taran_protocol::option::{OptionId, OptionSet};

use crate::consensus::Nanos;
use crate::module::ClusterConfigError;
use crate::module::options::{self, int32};

/// Configuration of a container.
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
    /// Reads options by name: pairs of name and value, of which later ones win. An empty value is the default. Options of other
    /// programs are ignored.
    ///
    /// # Errors
    /// As [`Self::new`]; and a name is that of no option, although it has a prefix of the cluster.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ClusterConfigError> {
        Self::new(&options::read(OptionSet::container(), properties)?)
    }

    /// Validates options ([`OptionSet::container`]).
    ///
    /// # Errors
    /// A value is not possible.
    pub fn new(options: &OptionSet) -> Result<Self, ClusterConfigError> {
        let channel = |option| options::channel(options, option);
        let cluster_id = int32(options.cluster_id());
        let service_id = int32(options.cluster_service_id());
        let dir = PathBuf::from(options.text(OptionId::ClusterDir));
        let service_name = options.cluster_service_name();
        Ok(Self {
            cluster_id,
            service_id,
            service_name: service_name.map_or_else(
                || format!("clustered-service-{cluster_id}-{service_id}"),
                ToOwned::to_owned,
            ),
            mark_dir: options
                .cluster_mark_file_dir()
                .map_or_else(|| dir.clone(), PathBuf::from),
            dir,
            error_log_length: options.cluster_service_error_buffer_length(),
            aeron_dir: options.dir().map(PathBuf::from),
            control_channel: options::control_channel(options)?,
            consensus_module_stream_id: int32(options.cluster_consensus_module_stream_id()),
            service_stream_id: int32(options.cluster_service_stream_id()),
            replay_channel: channel(OptionId::ClusterReplayChannel)?,
            replay_stream_id: int32(options.cluster_replay_stream_id()),
            snapshot_channel: channel(OptionId::ClusterSnapshotChannel)?,
            snapshot_stream_id: int32(options.cluster_snapshot_stream_id()),
            archive_channel: channel(OptionId::ArchiveLocalControlChannel)?,
            archive_stream_id: int32(options.archive_local_control_stream_id()),
            log_fragment_limit: options::count(options.cluster_log_fragment_limit()),
            is_responder: options.cluster_service_responder(),
            cycle_threshold: options.cluster_service_cycle_threshold_ns(),
            snapshot_threshold: options.cluster_service_snapshot_threshold_ns(),
            app_version: int32(options.cluster_app_version()),
            idle: IdleSpec::parse(options.cluster_idle_strategy().unwrap_or("backoff"), None)?,
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
