// SPDX-License-Identifier: Apache-2.0
//! Configuration of a member (`docs/spec/cluster.md` §11.1).

use std::path::PathBuf;

use taran::{ChannelUri, Param};
use taran_core::idle::{IdleError, IdleSpec};
use taran_protocol::option::{OptionErrors, OptionId, OptionSet, UnknownOption};
use thiserror::Error;

use super::options::{channel, control_channel, count, int32, read};
use crate::consensus::{
    Config as ConsensusConfig, ConfigError as ConsensusConfigError, Durability, MemberId, Nanos,
    Timing,
};
use crate::members::{Member, Members, MembersError};
use crate::protocol::ClusterTimeUnit;
use crate::state::{SessionLimits, StandardAuthorisation};

/// Reason why options are no configuration.
#[derive(Error)]
#[non_exhaustive]
pub enum ClusterConfigError {
    /// Values that are malformed or out of range.
    #[error(transparent)]
    Options(#[from] OptionErrors),
    /// A name that is no option.
    #[error("{0}")]
    Unknown(UnknownOption),
    /// A value that is not possible.
    #[error("{name}={value} is not possible: {reason}")]
    Invalid {
        /// Property.
        name: &'static str,
        /// Its value.
        value: String,
        /// Requirement.
        reason: String,
    },
    /// The arguments of an idle strategy are invalid.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// A property without default is not set.
    #[error("{name} is not set: {remedy}")]
    Missing {
        /// Property.
        name: &'static str,
        /// Value to set.
        remedy: &'static str,
    },
    /// The endpoints of this member differ from those in the list of members.
    #[error(
        "aeron.cluster.member.endpoints={endpoints} differs from those of member {member} in aeron.cluster.members, {listed}: \
         correct one of them, or remove aeron.cluster.member.endpoints"
    )]
    MemberEndpoints {
        /// Id of this member.
        member: MemberId,
        /// Value of the option.
        endpoints: String,
        /// Endpoints in the list.
        listed: String,
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

/// Configuration of a member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterConfig {
    /// Id of the cluster.
    pub cluster_id: i32,
    /// Id of this member.
    pub member_id: MemberId,
    /// All members.
    pub members: Members,
    /// Name of the agent, and of its client of the driver.
    pub agent_name: String,
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
    /// Parameters that override those of the response channels of clients.
    pub egress_channel: Option<String>,
    /// Channel of the log.
    pub log_channel: String,
    /// Stream id of the log.
    pub log_stream_id: i32,
    /// The leader binds the socket of the log to the host of its log endpoint.
    pub log_control_enable: bool,
    /// Fragments of the log per duty cycle.
    pub log_fragment_limit: usize,
    /// Channel between members.
    pub consensus_channel: String,
    /// Stream id between members.
    pub consensus_stream_id: i32,
    /// The sockets that send to other members are bound to the host of the own consensus endpoint.
    pub consensus_control_enable: bool,
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
    /// File with the credentials of clients; none accepts all clients.
    pub credentials_file: Option<PathBuf>,
    /// Names of clients whose administrative requests are allowed: of the file of credentials, or principals of the program's
    /// authenticator.
    pub admins: Vec<String>,
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
    /// Reads options and properties by name: pairs of name and value, of which later ones win. An empty value is the default.
    /// Options of other programs are ignored.
    ///
    /// # Errors
    /// As [`Self::new`]; and a name is that of no option, although it has a prefix of the cluster.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ClusterConfigError> {
        Self::new(&read(OptionSet::cluster(), properties)?)
    }

    /// Validates options ([`OptionSet::cluster`]).
    ///
    /// # Errors
    /// A value is not possible, options contradict each other, or one without default is not set.
    pub fn new(options: &OptionSet) -> Result<Self, ClusterConfigError> {
        let Some(members) = options.cluster_members() else {
            return Err(ClusterConfigError::Missing {
                name: "aeron.cluster.members",
                remedy: "set all members, for one member for instance 0,localhost:20110,localhost:20220,localhost:20330,\
                         localhost:20440,localhost:8010",
            });
        };
        let channel = |option| channel(options, option);
        let text = |option| options.text(option);
        let dir = PathBuf::from(text(OptionId::ClusterDir));
        let dir_or = |dir_of: Option<&str>| dir_of.map_or_else(|| dir.clone(), PathBuf::from);
        let appointed = int32(options.cluster_appointed_leader_id());
        let cluster_id = int32(options.cluster_id());
        let member_id = int32(options.cluster_member_id());
        let role_name = options.cluster_consensus_module_agent_role_name();
        let config = Self {
            cluster_id,
            member_id,
            members: Members::parse(members)?,
            agent_name: role_name.map_or_else(
                || format!("consensus-module-{cluster_id}-{member_id}"),
                ToOwned::to_owned,
            ),
            mark_dir: dir_or(options.cluster_mark_file_dir()),
            services_dir: dir_or(options.cluster_services_dir()),
            error_log_length: options.cluster_error_buffer_length(),
            control_channel: control_channel(options)?,
            consensus_module_stream_id: int32(options.cluster_consensus_module_stream_id()),
            service_stream_id: int32(options.cluster_service_stream_id()),
            aeron_dir: options.dir().map(PathBuf::from),
            ingress_channel: channel(OptionId::ClusterIngressChannel)?,
            ingress_stream_id: int32(options.cluster_ingress_stream_id()),
            ingress_fragment_limit: count(options.cluster_ingress_fragment_limit()),
            ingress_ipc_allowed: options.cluster_ingress_ipc_allowed(),
            egress_channel: options
                .cluster_egress_channel()
                .map(|_| channel(OptionId::ClusterEgressChannel))
                .transpose()?,
            log_channel: channel(OptionId::ClusterLogChannel)?,
            log_stream_id: int32(options.cluster_log_stream_id()),
            log_control_enable: options.cluster_log_control_enable(),
            log_fragment_limit: count(options.cluster_log_fragment_limit()),
            consensus_channel: channel(OptionId::ClusterConsensusChannel)?,
            consensus_stream_id: int32(options.cluster_consensus_stream_id()),
            consensus_control_enable: options.cluster_consensus_control_enable(),
            replay_channel: channel(OptionId::ClusterReplayChannel)?,
            replay_stream_id: int32(options.cluster_replay_stream_id()),
            snapshot_channel: channel(OptionId::ClusterSnapshotChannel)?,
            module_snapshot_stream_id: 107,
            service_snapshot_stream_id: int32(options.cluster_snapshot_stream_id()),
            replication_channel: channel(OptionId::ClusterReplicationChannel)?,
            catchup_channel: channel(OptionId::ClusterFollowerCatchupChannel)?,
            leader_archive_channel: channel(OptionId::ClusterLeaderArchiveControlChannel)?,
            archive_channel: channel(OptionId::ArchiveLocalControlChannel)?,
            archive_stream_id: int32(options.archive_local_control_stream_id()),
            timing: Timing {
                heartbeat_interval: options.cluster_leader_heartbeat_interval_ns(),
                heartbeat_timeout: options.cluster_leader_heartbeat_timeout_ns(),
                election_timeout: options.cluster_election_timeout_ns(),
                status_interval: options.cluster_election_status_interval_ns(),
                startup_canvass_timeout: options.cluster_startup_canvass_timeout_ns(),
                ..Timing::fast()
            },
            appointed_leader: (appointed != -1).then_some(appointed),
            sessions: SessionLimits {
                max_sessions: count(options.cluster_max_sessions()),
                timeout: options.cluster_session_timeout_ns(),
            },
            termination_timeout: options.cluster_termination_timeout_ns(),
            cycle_threshold: options.cluster_cycle_threshold_ns(),
            snapshot_threshold: options.cluster_total_snapshot_threshold_ns(),
            authorisation: match options.cluster_authorisation_service_supplier() {
                "ALLOW_ALL" => StandardAuthorisation::AllowAll,
                "DENY_ALL" => StandardAuthorisation::DenyAll,
                _ => StandardAuthorisation::Default,
            },
            credentials_file: options.cluster_credentials_file().map(PathBuf::from),
            admins: admins(options)?,
            durability: match options.archive_file_sync_level() {
                0 => Durability::QuorumMemory,
                _ => Durability::QuorumDisk,
            },
            time_unit: match options.cluster_clock() {
                "ns" => ClusterTimeUnit::NANOS,
                "us" => ClusterTimeUnit::MICROS,
                _ => ClusterTimeUnit::MILLIS,
            },
            app_version: int32(options.cluster_app_version()),
            idle: IdleSpec::parse(options.cluster_idle_strategy().unwrap_or("backoff"), None)?,
            service_count: count(options.cluster_service_count()),
            dir,
        };
        config.check()?;
        config.check_endpoints(options.cluster_member_endpoints())?;
        Ok(config)
    }

    /// Checks `aeron.cluster.member.endpoints` against the list of members.
    fn check_endpoints(&self, endpoints: Option<&str>) -> Result<(), ClusterConfigError> {
        let own = self.own();
        let listed = [
            &own.ingress,
            &own.consensus,
            &own.log,
            &own.catchup,
            &own.archive,
        ]
        .map(String::as_str)
        .join(",");
        match endpoints {
            Some(endpoints) if endpoints != listed => Err(ClusterConfigError::MemberEndpoints {
                member: self.member_id,
                endpoints: endpoints.to_owned(),
                listed,
            }),
            _ => Ok(()),
        }
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

    /// Returns this member.
    #[must_use]
    pub fn own(&self) -> &Member {
        // The check has found the own id among the members; there is at least one.
        self.members
            .get(self.member_id)
            .unwrap_or(&self.members.all()[0])
    }
}

/// Returns the clients whose administrative requests are allowed. The start of the member checks that there are such names.
fn admins(options: &OptionSet) -> Result<Vec<String>, ClusterConfigError> {
    let Some(text) = options.cluster_admins() else {
        return Ok(Vec::new());
    };
    if options.cluster_authorisation_service_supplier() == "DENY_ALL" {
        return Err(ClusterConfigError::Invalid {
            name: OptionId::ClusterAdmins.spec().property,
            value: text.to_owned(),
            reason: "aeron.cluster.authorisation.service.supplier=DENY_ALL denies their requests; remove either of them"
                .to_owned(),
        });
    }
    let names = text.split(',').map(|name| name.trim().to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
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
    fn defaults_are_those_of_the_consensus_core() {
        let config = ClusterConfig::from_properties([MEMBERS]).unwrap();
        assert_eq!(config.timing, Timing::fast());
        assert_eq!(config.agent_name, "consensus-module-0-0");
        assert_eq!(config.mark_dir, PathBuf::from("aeron-cluster"));
        assert_eq!(config.authorisation, StandardAuthorisation::Default);
        assert_eq!(config.egress_channel, None);
        assert_eq!(config.appointed_leader, None);
    }

    #[test]
    fn endpoints_of_the_own_member_have_to_be_those_of_the_list() {
        let with = |endpoints| {
            let name = "aeron.cluster.member.endpoints";
            ClusterConfig::from_properties([MEMBERS, (name, endpoints)])
        };
        assert!(with("a:1,a:2,a:3,a:4,a:5").is_ok());
        let text = with("a:1,a:2,a:3,a:4,a:6").unwrap_err().to_string();
        assert!(
            text.contains("a:4,a:6") && text.contains("a:4,a:5") && text.contains("member 0"),
            "{text}"
        );
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
            ("aeron.cluster.control.channel", "aeron:udp?endpoint=a:1"),
            ("aeron.cluster.egress.channel", "egress"),
            ("aeron.cluster.consensus.module.extension", "my.Extension"),
            ("aeron.cluster.wheel.tick.resolution", "16ms"),
        ] {
            let text = error(name, value);
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
        assert!(error("aeron.cluster.member.id", "7").contains("own id 7"));
        assert!(error("aeron.cluster.log.channel", "aeron:udp?term-id=3").contains("term-id"));
        let misspelt = error("aeron.cluster.max.session", "3");
        assert!(misspelt.contains("did you mean aeron.cluster.max.sessions?"));
        let denied = ("aeron.cluster.authorisation.service.supplier", "DENY_ALL");
        let properties = [MEMBERS, denied, ("taran.cluster.admins", "ops")];
        let text = ClusterConfig::from_properties(properties)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("taran.cluster.admins=ops") && text.contains("DENY_ALL"),
            "{text}"
        );
        let missing = ClusterConfig::from_properties([("a", "b")]).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("aeron.cluster.members is not set")
        );
    }
}
