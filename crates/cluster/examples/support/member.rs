// SPDX-License-Identifier: Apache-2.0
//! A member with its driver and its archive, all in this process.

use std::path::{Path, PathBuf};

use taran::Client;
use taran_archive::{Archive, ArchiveConfig};
use taran_cluster::module::{ClusterConfig, ConsensusModule};
use taran_cluster::service::Service;
use taran_driver::{DriverContext, MediaDriver, ThreadingMode};
use taran_protocol::option::{OptionSet, Source};

use super::Failure;

/// First port of member 0; that of member N is behind it by 10 × N.
const PORT: usize = 20_110;

/// Hosts of all members, by their ids.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    /// All members on one host.
    pub(crate) fn one(host: &str, count: usize) -> Self {
        Self(vec![host.to_owned(); count])
    }

    pub(crate) fn new(hosts: Vec<String>) -> Self {
        Self(hosts)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn host(&self, member: usize) -> Option<&str> {
        self.0.get(member).map(String::as_str)
    }

    /// Returns the endpoints to which clients connect.
    pub(crate) fn ingress(&self) -> String {
        let endpoints = (0..self.0.len()).map(|id| format!("{id}={}", self.endpoint(id, 0)));
        endpoints.collect::<Vec<_>>().join(",")
    }

    /// Returns `aeron.cluster.members`: of each member the endpoints for ingress, consensus, log, catch-up and archive.
    fn members(&self) -> String {
        let members = (0..self.0.len()).map(|id| {
            let endpoints: Vec<String> = (0..5).map(|port| self.endpoint(id, port)).collect();
            format!("{id},{}", endpoints.join(","))
        });
        members.collect::<Vec<_>>().join("|")
    }

    fn endpoint(&self, id: usize, port: usize) -> String {
        format!("{}:{}", self.0[id], PORT + 10 * id + port)
    }
}

/// Starts a driver of its own for this process. It has no files once it is closed.
pub(crate) fn driver() -> Result<MediaDriver, Failure> {
    let context = DriverContext::new()
        .threading_mode(ThreadingMode::Shared)
        .term_buffer_length(256 * 1024)
        .ipc_term_buffer_length(1024 * 1024);
    Ok(MediaDriver::launch_embedded(context)?)
}

/// A running member. Fields are dropped in the order of an orderly end.
pub(crate) struct Member {
    module: ConsensusModule,
    archive: Archive,
    driver: MediaDriver,
    dir: PathBuf,
}

impl Member {
    /// Starts member `id` with its files below `dir`.
    pub(crate) fn start(
        id: usize,
        hosts: &Hosts,
        dir: &Path,
        service: impl Service + 'static,
    ) -> Result<Self, Failure> {
        let host = hosts.host(id).ok_or("there is no such member")?;
        let dir = dir.join(format!("member-{id}"));
        let driver = driver()?;
        let aeron_dir = driver.aeron_dir().display().to_string();
        let any_port = format!("aeron:udp?endpoint={host}:0");

        let mut options = OptionSet::archive();
        let control = format!("aeron:udp?endpoint={}", hosts.endpoint(id, 4));
        let archive_dir = dir.join("archive").display().to_string();
        let properties = [
            ("aeron.dir", &*aeron_dir),
            ("aeron.archive.dir", &archive_dir),
            ("aeron.archive.control.channel", &control),
            ("aeron.archive.replication.channel", &any_port),
            ("aeron.archive.segment.file.length", "1m"),
            ("aeron.archive.low.storage.space.threshold", "1m"),
            ("aeron.archive.threading.mode", "SHARED"),
        ];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        options.apply(&Source::CommandLine, properties)?;
        let archive = Archive::builder(ArchiveConfig::new(&options)?).launch()?;

        let cluster_dir = dir.join("cluster");
        let config = ClusterConfig::from_properties([
            ("aeron.dir", &*aeron_dir),
            ("aeron.cluster.dir", &cluster_dir.display().to_string()),
            ("aeron.cluster.member.id", &id.to_string()),
            ("aeron.cluster.members", &hosts.members()),
            ("aeron.cluster.replication.channel", &any_port),
            ("aeron.cluster.log.channel", "aeron:udp?term-length=256k"),
            // Clients of the examples may ask for snapshots.
            ("aeron.cluster.authorisation.service.supplier", "ALLOW_ALL"),
        ])?;
        let module = ConsensusModule::builder(config, service).launch()?;
        Ok(Self {
            module,
            archive,
            driver,
            dir: cluster_dir,
        })
    }

    /// Returns the directory of the cluster's files, for `taran members`.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a client of the member's driver.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::builder()
            .aeron_dir(self.driver.aeron_dir())
            .connect()?)
    }

    /// Ends it in order, the last part first.
    pub(crate) fn close(self) -> Result<(), Failure> {
        let failure = self.module.failure();
        self.module.close();
        self.archive.close();
        self.driver.close()?;
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }
}
