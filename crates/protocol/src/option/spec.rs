// SPDX-License-Identifier: Apache-2.0
//! Declaration of an option.

use super::kind::{Kind, Value};
use super::table::OptionId;

/// Programs that read an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Media driver.
    Driver,
    /// Client.
    Client,
    /// Media driver and client, and programs that contain a client.
    Both,
    /// Archive, with the archive client that it contains.
    Archive,
    /// Consensus module of a cluster.
    Cluster,
    /// Container of a service of a cluster.
    Container,
    /// Consensus module and containers.
    Member,
    /// Client of a cluster.
    ClusterClient,
    /// Consensus module, and clients of a cluster.
    Sessions,
}

/// Options of other programs from which an archive takes its defaults.
const DEFAULTS_OF_ARCHIVE: &[OptionId] = &[
    OptionId::EventLogFilename,
    OptionId::MtuLength,
    OptionId::PublicationLingerTimeout,
    OptionId::PrintConfiguration,
];

/// Options of driver and archive that a consensus module reads, too: how it reaches its archive, and what that syncs.
const SHARED_WITH_CLUSTER: &[OptionId] = &[
    OptionId::ArchiveFileSyncLevel,
    OptionId::ArchiveLocalControlChannel,
    OptionId::ArchiveLocalControlStreamId,
    OptionId::PrintConfiguration,
];

/// Options of an archive that a container reads, too.
const SHARED_WITH_CONTAINER: &[OptionId] = &[
    OptionId::ArchiveLocalControlChannel,
    OptionId::ArchiveLocalControlStreamId,
];

impl Scope {
    /// Returns true if the program reads the option.
    pub(super) fn reads(self, option: &OptionSpec) -> bool {
        let (others, shared): (&[Scope], &[OptionId]) = match self {
            Scope::Archive => (&[Scope::Both], DEFAULTS_OF_ARCHIVE),
            Scope::Cluster => (
                &[Scope::Both, Scope::Member, Scope::Sessions],
                SHARED_WITH_CLUSTER,
            ),
            Scope::Container => (&[Scope::Both, Scope::Member], SHARED_WITH_CONTAINER),
            Scope::ClusterClient => (&[Scope::Sessions], &[]),
            Scope::Driver | Scope::Client | Scope::Both | Scope::Member | Scope::Sessions => {
                (&[Scope::Both], &[])
            }
        };
        option.scope == self || others.contains(&option.scope) || shared.contains(&option.id)
    }

    /// Returns the programs that read options of this scope, as a text.
    #[must_use]
    pub const fn readers(self) -> &'static str {
        match self {
            Scope::Driver => "driver",
            Scope::Client => "client",
            Scope::Both => "driver, client, archive and cluster",
            Scope::Archive => "archive",
            Scope::Cluster => "consensus module",
            Scope::Container => "service container",
            Scope::Member => "consensus module and service container",
            Scope::ClusterClient => "cluster client",
            Scope::Sessions => "consensus module and cluster client",
        }
    }
}

/// Status of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The option is supported.
    Supported,
    /// The option is known, but any value except its default is an error, for this reason.
    Fixed(&'static str),
}

/// Declaration of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Identifier.
    pub id: OptionId,
    /// Programs that read the option.
    pub scope: Scope,
    /// Name in property files and after `-D`.
    pub property: &'static str,
    /// Environment variable.
    pub variable: &'static str,
    /// Type and range of the value.
    pub kind: Kind,
    /// Text of the default; empty means unset.
    pub default: &'static str,
    /// Status.
    pub status: Status,
    /// Help text, one line.
    pub help: &'static str,
}

impl OptionSpec {
    /// Returns the default as a value.
    pub(super) fn default_value(&self) -> Value {
        if self.default.is_empty() {
            return Value::Unset;
        }
        // A test parses the default of every option, so this never fails.
        self.kind.parse(self.default).unwrap_or(Value::Unset)
    }
}

/// Returns the options of a media driver, in documentation order.
pub fn driver_options() -> impl Iterator<Item = &'static OptionSpec> {
    options_of(Scope::Driver)
}

/// Returns the options of a client, in documentation order.
pub fn client_options() -> impl Iterator<Item = &'static OptionSpec> {
    options_of(Scope::Client)
}

/// Returns the options of an archive, in documentation order.
pub fn archive_options() -> impl Iterator<Item = &'static OptionSpec> {
    options_of(Scope::Archive)
}

pub(super) fn options_of(scope: Scope) -> impl Iterator<Item = &'static OptionSpec> {
    OptionId::ALL.iter().filter(move |spec| scope.reads(spec))
}
