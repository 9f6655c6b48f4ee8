// SPDX-License-Identifier: Apache-2.0
//! Configuration of a member (`docs/spec/cluster.md` §11.1).

use std::path::PathBuf;

use taran::{ChannelUri, Param};
use taran_core::idle::IdleSpec;
use taran_protocol::uri::value::{parse_bool, parse_duration_ns, parse_i32, parse_size};
use thiserror::Error;

use crate::consensus::{
    Config as ConsensusConfig, ConfigError as ConsensusConfigError, Durability, MemberId, Nanos,
    Timing,
};
use crate::members::{Member, Members, MembersError};
use crate::protocol::ClusterTimeUnit;
use crate::state::{SessionLimits, StandardAuthorisation};

/// Reason why properties are no configuration.
#[derive(Error)]
#[non_exhaustive]
pub enum ClusterConfigError {
    /// A value that is none.
    #[error("{name}={value}: {reason}")]
    Invalid {
        /// Property.
        name: String,
        /// Its value.
        value: String,
        /// Requirement.
        reason: String,
    },
    /// A property without default is not set.
    #[error("{name} is not set: {remedy}")]
    Missing {
        /// Property.
        name: &'static str,
        /// Value to set.
        remedy: &'static str,
    },
    /// The list of members cannot be read.
    #[error(transparent)]
    Members(#[from] MembersError),
    /// The members and periods are no cluster.
    #[error(transparent)]
    Consensus(#[from] ConsensusConfigError),
    /// The log channel states a position.
    #[error(
        "aeron.cluster.log.channel={channel} has {param}: the log decides its position itself; remove it"
    )]
    LogPosition {
        /// The channel.
        channel: String,
        /// The parameter.
        param: &'static str,
    },
}

taran_core::debug_is_display!(ClusterConfigError);

/// Configuration of a member. Properties that are not in [`ClusterConfig::PROPERTIES`] are ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterConfig {
    /// Id of the cluster.
    pub cluster_id: i32,
    /// Id of this member.
    pub member_id: MemberId,
    /// All members.
    pub members: Members,
    /// Directory of the files of the member.
    pub dir: PathBuf,
    /// Directory of the mark file.
    pub mark_dir: PathBuf,
    /// Directory in which services have their files.
    pub services_dir: PathBuf,
    /// Length of the error log in the mark file in bytes.
    pub error_log_length: usize,
    /// Channel between consensus module and services.
    pub control_channel: String,
    /// Stream id from services to the consensus module.
    pub consensus_module_stream_id: i32,
    /// Stream id from the consensus module to services.
    pub service_stream_id: i32,
    /// Directory of the driver; none for its default.
    pub aeron_dir: Option<PathBuf>,
    /// Channel for requests of clients; the endpoint of the member is added.
    pub ingress_channel: String,
    /// Stream id for requests of clients.
    pub ingress_stream_id: i32,
    /// Fragments of requests per duty cycle.
    pub ingress_fragment_limit: usize,
    /// The leader takes requests over IPC as well.
    pub ingress_ipc_allowed: bool,
    /// Channel of the log.
    pub log_channel: String,
    /// Stream id of the log.
    pub log_stream_id: i32,
    /// Fragments of the log per duty cycle.
    pub log_fragment_limit: usize,
    /// Channel between members.
    pub consensus_channel: String,
    /// Stream id between members.
    pub consensus_stream_id: i32,
    /// Channel of replays of the own log and snapshots.
    pub replay_channel: String,
    /// Stream id of these replays.
    pub replay_stream_id: i32,
    /// Channel on which snapshots are recorded.
    pub snapshot_channel: String,
    /// Stream id for the snapshot of the consensus module.
    pub module_snapshot_stream_id: i32,
    /// Stream id for the snapshot of the service.
    pub service_snapshot_stream_id: i32,
    /// Channel on which the log of other members is replicated.
    pub replication_channel: String,
    /// Channel on which a leader's log is replayed to this member; the endpoint of the member is added.
    pub catchup_channel: String,
    /// Channel to the archives of other members; their endpoints are added.
    pub leader_archive_channel: String,
    /// Channel to the own archive.
    pub archive_channel: String,
    /// Stream id to the own archive.
    pub archive_stream_id: i32,
    /// Periods of elections and heartbeats.
    pub timing: Timing,
    /// Member that may lead, for tests.
    pub appointed_leader: Option<MemberId>,
    /// Limits of sessions.
    pub sessions: SessionLimits,
    /// Time for which a leader that ends the cluster waits for its followers.
    pub termination_timeout: Nanos,
    /// Time between the starts of two duty cycles beyond which they are counted.
    pub cycle_threshold: Nanos,
    /// Duration of a snapshot beyond which it is counted.
    pub snapshot_threshold: Nanos,
    /// Authorisation of requests.
    pub authorisation: StandardAuthorisation,
    /// Durability of acknowledged entries: that of the own archive.
    pub durability: Durability,
    /// Unit of the cluster's clock.
    pub time_unit: ClusterTimeUnit,
    /// Version of the application.
    pub app_version: i32,
    /// Idle strategy of the agent.
    pub idle: IdleSpec,
    /// Number of services in containers of their own, 1 to 10. It has no effect on a member with a service in its process.
    pub service_count: usize,
}

impl ClusterConfig {
    /// Properties that have an effect.
    pub const PROPERTIES: [&'static str; 46] = [
        "aeron.dir",
        "aeron.archive.file.sync.level",
        "aeron.archive.local.control.channel",
        "aeron.archive.local.control.stream.id",
        "aeron.cluster.id",
        "aeron.cluster.member.id",
        "aeron.cluster.members",
        "aeron.cluster.appointed.leader.id",
        "aeron.cluster.dir",
        "aeron.cluster.ingress.channel",
        "aeron.cluster.ingress.stream.id",
        "aeron.cluster.ingress.fragment.limit",
        "aeron.cluster.ingress.ipc.allowed",
        "aeron.cluster.log.channel",
        "aeron.cluster.log.stream.id",
        "aeron.cluster.log.fragment.limit",
        "aeron.cluster.consensus.channel",
        "aeron.cluster.consensus.stream.id",
        "aeron.cluster.replay.channel",
        "aeron.cluster.replay.stream.id",
        "aeron.cluster.snapshot.channel",
        "aeron.cluster.snapshot.stream.id",
        "aeron.cluster.replication.channel",
        "aeron.cluster.follower.catchup.channel",
        "aeron.cluster.leader.archive.control.channel",
        "aeron.cluster.leader.heartbeat.timeout",
        "aeron.cluster.leader.heartbeat.interval",
        "aeron.cluster.startup.canvass.timeout",
        "aeron.cluster.election.timeout",
        "aeron.cluster.election.status.interval",
        "aeron.cluster.session.timeout",
        "aeron.cluster.max.sessions",
        "aeron.cluster.clock",
        "aeron.cluster.app.version",
        "aeron.cluster.idle.strategy",
        "aeron.cluster.mark.file.dir",
        "aeron.cluster.services.dir",
        "aeron.cluster.error.buffer.length",
        "aeron.cluster.control.channel",
        "aeron.cluster.consensus.module.stream.id",
        "aeron.cluster.service.stream.id",
        "aeron.cluster.termination.timeout",
        "aeron.cluster.cycle.threshold",
        "aeron.cluster.total.snapshot.threshold",
        "aeron.cluster.authorisation.service.supplier",
        "aeron.cluster.service.count",
    ];

    /// Reads properties: pairs of name and value, of which later ones win. An empty value is the default.
    ///
    /// # Errors
    /// A value is invalid, or a property without default is not set.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ClusterConfigError> {
        let values = Values::new(properties);
        let members = values.text("aeron.cluster.members", "");
        if members.is_empty() {
            return Err(ClusterConfigError::Missing {
                name: "aeron.cluster.members",
                remedy: "set all members, for one member for instance 0,localhost:20110,localhost:20220,localhost:20330,\
                         localhost:20440,localhost:8010",
            });
        }
        let fast = Timing::fast();
        let dir = values.text("aeron.cluster.dir", "aeron-cluster");
        let dir_or = |name| PathBuf::from(values.text(name, &dir));
        let appointed = values.int("aeron.cluster.appointed.leader.id", -1)?;
        let config = Self {
            cluster_id: values.int("aeron.cluster.id", 0)?,
            member_id: values.int("aeron.cluster.member.id", 0)?,
            members: Members::parse(&members)?,
            mark_dir: dir_or("aeron.cluster.mark.file.dir"),
            services_dir: dir_or("aeron.cluster.services.dir"),
            dir: PathBuf::from(&dir),
            error_log_length: values.size("aeron.cluster.error.buffer.length", 1 << 20)?,
            control_channel: values.channel(
                "aeron.cluster.control.channel",
                "aeron:ipc?term-length=128k",
            )?,
            consensus_module_stream_id: values
                .int("aeron.cluster.consensus.module.stream.id", 105)?,
            service_stream_id: values.int("aeron.cluster.service.stream.id", 104)?,
            aeron_dir: values.get("aeron.dir").map(PathBuf::from),
            ingress_channel: values
                .channel("aeron.cluster.ingress.channel", "aeron:udp?term-length=64k")?,
            ingress_stream_id: values.int("aeron.cluster.ingress.stream.id", 101)?,
            ingress_fragment_limit: values.count("aeron.cluster.ingress.fragment.limit", 50)?,
            ingress_ipc_allowed: values.flag("aeron.cluster.ingress.ipc.allowed", false)?,
            log_channel: values
                .channel("aeron.cluster.log.channel", "aeron:udp?term-length=64m")?,
            log_stream_id: values.int("aeron.cluster.log.stream.id", 100)?,
            log_fragment_limit: values.count("aeron.cluster.log.fragment.limit", 50)?,
            consensus_channel: values.channel(
                "aeron.cluster.consensus.channel",
                "aeron:udp?term-length=64k",
            )?,
            consensus_stream_id: values.int("aeron.cluster.consensus.stream.id", 108)?,
            replay_channel: values.channel("aeron.cluster.replay.channel", "aeron:ipc")?,
            replay_stream_id: values.int("aeron.cluster.replay.stream.id", 103)?,
            snapshot_channel: values
                .channel("aeron.cluster.snapshot.channel", "aeron:ipc?alias=snapshot")?,
            module_snapshot_stream_id: 107,
            service_snapshot_stream_id: values.int("aeron.cluster.snapshot.stream.id", 106)?,
            replication_channel: values.channel(
                "aeron.cluster.replication.channel",
                "aeron:udp?endpoint=localhost:0",
            )?,
            catchup_channel: values
                .channel("aeron.cluster.follower.catchup.channel", "aeron:udp")?,
            leader_archive_channel: values.channel(
                "aeron.cluster.leader.archive.control.channel",
                "aeron:udp?term-length=64k",
            )?,
            archive_channel: values.channel(
                "aeron.archive.local.control.channel",
                "aeron:ipc?term-length=64k",
            )?,
            archive_stream_id: values.int("aeron.archive.local.control.stream.id", 10)?,
            timing: Timing {
                heartbeat_interval: values.duration(
                    "aeron.cluster.leader.heartbeat.interval",
                    fast.heartbeat_interval,
                )?,
                heartbeat_timeout: values.duration(
                    "aeron.cluster.leader.heartbeat.timeout",
                    fast.heartbeat_timeout,
                )?,
                election_timeout: values
                    .duration("aeron.cluster.election.timeout", fast.election_timeout)?,
                status_interval: values.duration(
                    "aeron.cluster.election.status.interval",
                    fast.status_interval,
                )?,
                startup_canvass_timeout: values.duration(
                    "aeron.cluster.startup.canvass.timeout",
                    fast.startup_canvass_timeout,
                )?,
                ..fast
            },
            appointed_leader: (appointed != -1).then_some(appointed),
            sessions: SessionLimits {
                max_sessions: values.count("aeron.cluster.max.sessions", 10)?,
                timeout: values.duration("aeron.cluster.session.timeout", 10_000_000_000)?,
            },
            termination_timeout: values
                .duration("aeron.cluster.termination.timeout", 10_000_000_000)?,
            cycle_threshold: values.duration("aeron.cluster.cycle.threshold", 100_000_000)?,
            snapshot_threshold: values
                .duration("aeron.cluster.total.snapshot.threshold", 1_000_000_000)?,
            authorisation: values.authorisation("aeron.cluster.authorisation.service.supplier")?,
            durability: match values.int("aeron.archive.file.sync.level", 0)? {
                0 => Durability::QuorumMemory,
                _ => Durability::QuorumDisk,
            },
            time_unit: values.clock("aeron.cluster.clock")?,
            app_version: values.int("aeron.cluster.app.version", 1)?,
            idle: values.idle("aeron.cluster.idle.strategy", "backoff")?,
            service_count: values.parsed("aeron.cluster.service.count", 1, |text| {
                let count = text.parse().ok().filter(|count| (1..=10).contains(count));
                count.ok_or("must be a number from 1 to 10")
            })?,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ClusterConfigError> {
        for param in [Param::InitialTermId, Param::TermId, Param::TermOffset] {
            let uri = ChannelUri::parse(&self.log_channel);
            if uri.is_ok_and(|uri| uri.get(param).is_some()) {
                return Err(ClusterConfigError::LogPosition {
                    channel: self.log_channel.clone(),
                    param: param.key(),
                });
            }
        }
        self.consensus().map(drop)
    }

    /// Returns the settings of the consensus core.
    ///
    /// # Errors
    /// Members and periods are no cluster.
    pub fn consensus(&self) -> Result<ConsensusConfig, ClusterConfigError> {
        let ids = self.members.ids();
        let config = ConsensusConfig::new(self.member_id, &ids, self.timing, self.durability)?;
        Ok(match self.appointed_leader {
            Some(leader) => config.with_appointed_leader(leader)?,
            None => config,
        })
    }

    /// Returns the name of the agent, which its client has, too.
    pub(super) fn agent_name(&self) -> String {
        format!("consensus-module-{}-{}", self.cluster_id, self.member_id)
    }

    /// Returns this member.
    #[must_use]
    pub fn own(&self) -> &Member {
        // The check has found the own id among the members; there is at least one.
        self.members
            .get(self.member_id)
            .unwrap_or(&self.members.all()[0])
    }
}

/// Values by name; the last one counts.
pub(crate) struct Values(Vec<(String, String)>);

impl Values {
    pub(crate) fn new<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let properties = properties.into_iter();
        Self(
            properties
                .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(found, _)| found == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    pub(crate) fn text(&self, name: &str, default: &str) -> String {
        self.get(name).unwrap_or(default).to_owned()
    }

    pub(crate) fn parsed<T, E: ToString>(
        &self,
        name: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ClusterConfigError> {
        self.get(name).map_or(Ok(default), |value| {
            parse(value).map_err(|reason| ClusterConfigError::Invalid {
                name: name.to_owned(),
                value: value.to_owned(),
                reason: reason.to_string(),
            })
        })
    }

    pub(crate) fn int(&self, name: &str, default: i32) -> Result<i32, ClusterConfigError> {
        self.parsed(name, default, parse_i32)
    }

    pub(crate) fn count(&self, name: &str, default: usize) -> Result<usize, ClusterConfigError> {
        self.parsed(name, default, |text| {
            let count = text.parse::<usize>().ok().filter(|count| *count > 0);
            count.ok_or("must be a number from 1")
        })
    }

    /// Returns a length in bytes, which is at least `min`, the default.
    pub(crate) fn size(&self, name: &str, min: usize) -> Result<usize, ClusterConfigError> {
        self.parsed(name, min, |text| {
            let size = parse_size(text).map_err(|error| error.to_string())?;
            usize::try_from(size)
                .ok()
                .filter(|size| *size >= min && i32::try_from(*size).is_ok())
                .ok_or_else(|| format!("must be at least {min} and less than 2 GiB"))
        })
    }

    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, ClusterConfigError> {
        self.parsed(name, default, parse_bool)
    }

    pub(crate) fn duration(&self, name: &str, default: Nanos) -> Result<Nanos, ClusterConfigError> {
        self.parsed(name, default, parse_duration_ns)
    }

    pub(crate) fn channel(&self, name: &str, default: &str) -> Result<String, ClusterConfigError> {
        self.parsed(name, default.to_owned(), |text| {
            ChannelUri::parse(text).map(|_| text.to_owned())
        })
    }

    pub(crate) fn clock(&self, name: &str) -> Result<ClusterTimeUnit, ClusterConfigError> {
        self.parsed(name, ClusterTimeUnit::MILLIS, |text| match text {
            "ms" | "io.aeron.cluster.MillisecondClusterClock" => Ok(ClusterTimeUnit::MILLIS),
            "us" => Ok(ClusterTimeUnit::MICROS),
            "ns" | "io.aeron.cluster.NanosecondClusterClock" => Ok(ClusterTimeUnit::NANOS),
            _ => Err("is ms, us, ns, or the class of an official clock"),
        })
    }

    pub(crate) fn authorisation(
        &self,
        name: &str,
    ) -> Result<StandardAuthorisation, ClusterConfigError> {
        self.parsed(name, StandardAuthorisation::Default, |text| match text {
            "ALLOW_ALL" => Ok(StandardAuthorisation::AllowAll),
            "DENY_ALL" => Ok(StandardAuthorisation::DenyAll),
            _ => Err("is ALLOW_ALL or DENY_ALL; classes of Java cannot be loaded"),
        })
    }

    pub(crate) fn idle(&self, name: &str, default: &str) -> Result<IdleSpec, ClusterConfigError> {
        let text = self.get(name).unwrap_or(default);
        IdleSpec::parse(text, None).map_err(|reason| ClusterConfigError::Invalid {
            name: name.to_owned(),
            value: text.to_owned(),
            reason: reason.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: (&str, &str) = (
        "aeron.cluster.members",
        "0,a:1,a:2,a:3,a:4,a:5|1,b:1,b:2,b:3,b:4,b:5|2,c:1,c:2,c:3,c:4,c:5",
    );

    fn error(name: &str, value: &str) -> String {
        let properties = [MEMBERS, (name, value)];
        ClusterConfig::from_properties(properties)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn configuration_has_the_values_of_its_properties() {
        let properties = [
            MEMBERS,
            ("aeron.cluster.member.id", "2"),
            ("aeron.cluster.member.id", "1"),
            ("aeron.cluster.session.timeout", "3s"),
            ("aeron.archive.file.sync.level", "1"),
            ("aeron.cluster.clock", "ns"),
            ("aeron.cluster.max.sessions", ""),
        ];
        let config = ClusterConfig::from_properties(properties).unwrap();
        assert_eq!(config.own().consensus, "b:2");
        assert_eq!(config.sessions.timeout, 3_000_000_000);
        assert_eq!(config.sessions.max_sessions, 10);
        assert_eq!(config.durability, Durability::QuorumDisk);
        assert_eq!(config.time_unit, ClusterTimeUnit::NANOS);
    }

    #[test]
    fn invalid_value_is_an_error_that_names_property_and_value() {
        for (name, value) in [
            ("aeron.cluster.max.sessions", "0"),
            ("aeron.cluster.session.timeout", "fast"),
            ("aeron.cluster.ingress.channel", "udp"),
            ("aeron.cluster.clock", "hours"),
            ("aeron.cluster.id", "x"),
            ("aeron.cluster.ingress.ipc.allowed", "maybe"),
        ] {
            let text = error(name, value);
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
        assert!(error("aeron.cluster.member.id", "7").contains("own id 7"));
        assert!(error("aeron.cluster.log.channel", "aeron:udp?term-id=3").contains("term-id"));
        let missing = ClusterConfig::from_properties([("a", "b")]).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("aeron.cluster.members is not set")
        );
    }
}
