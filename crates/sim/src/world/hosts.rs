// SPDX-License-Identifier: Apache-2.0
//! Hosts: memory, clock, driver.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use taran_core::clock::{Now, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::memory::MemoryStorage;
use taran_driver::{DriverContext, DriverError};
use taran_protocol::counter::SystemCounter;

use super::clock::HostClock;
use super::driver::{Driver, DriverProcess, DriverStart};
use super::keys;
use super::resolver::Names;
use super::{HostIndex, World};
use crate::check::streams::Streams;
use crate::disk::{SimDisk, SimDiskOptions};
use crate::network::{HostId, SimHost};
use crate::process::ProcessId;

/// Specification of a host.
#[derive(Clone, Debug, Default)]
pub struct HostSpec {
    options: Vec<(String, String)>,
    ahead: Duration,
    is_ipv6: bool,
    disk: SimDiskOptions,
    /// Names and numbers of the hosts whose keys the driver trusts, with what each may publish and subscribe.
    trusted: Option<Vec<(usize, String)>>,
    /// Longest park of the driver's agents.
    parks: Option<Duration>,
}

impl HostSpec {
    /// A host with small terms, and the driver's defaults otherwise.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
            .option("aeron.term.buffer.length", "64k")
            .option("aeron.ipc.term.buffer.length", "64k")
    }

    /// Sets an option of the driver.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// Secures all channels of the driver, which trusts the keys of these hosts: number, and fields of the trust file.
    #[must_use]
    pub fn secured(self, trusted: &[(usize, &str)]) -> Self {
        let trusted = trusted.iter();
        Self {
            trusted: Some(
                trusted
                    .map(|(number, fields)| (*number, (*fields).to_owned()))
                    .collect(),
            ),
            ..self
        }
        .option("taran.secure.mode", "all")
    }

    /// Lets the driver's agents park for this time after each duty cycle without work, unless a waker or a datagram ends the
    /// park. Otherwise an agent has a duty cycle in each step of the world.
    #[must_use]
    pub fn parks(self, longest: Duration) -> Self {
        Self {
            parks: Some(longest),
            ..self
        }
    }

    /// Gives the host only an IPv6 address.
    #[must_use]
    pub fn ipv6(self) -> Self {
        Self {
            is_ipv6: true,
            ..self
        }
    }

    /// Sets the options of its disk.
    #[must_use]
    pub fn disk(self, disk: SimDiskOptions) -> Self {
        Self { disk, ..self }
    }

    /// Returns true if its driver drops received frames on purpose.
    fn drops_received_frames(&self) -> bool {
        let mut names = self.options.iter().map(|(name, _)| name);
        names.any(|name| name.contains("INTERCEPTORS"))
    }

    /// Returns the address of a host by its number and its number of relocations.
    fn address(&self, index: usize, relocations: u8) -> IpAddr {
        // Worlds have few hosts.
        let number = index as u8 + 1;
        if self.is_ipv6 {
            IpAddr::from([
                0xfd00,
                0,
                0,
                0,
                0,
                0,
                u16::from(relocations),
                u16::from(number),
            ])
        } else {
            IpAddr::from([10, 0, relocations, number])
        }
    }

    /// Sets an offset of the host's clocks.
    #[must_use]
    pub fn clocks_ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) storage: MemoryStorage,
    pub(super) disk: SimDisk,
    /// False from a power cut to the next boot.
    pub(super) is_on: bool,
    pub(super) directory: PathBuf,
    pub(super) network: SimHost,
    /// The process of its last driver.
    pub(super) driver: Option<ProcessId>,
    /// Number of drivers started so far.
    generation: u64,
    clock: HostClock,
    spec: HostSpec,
    /// Number of relocations.
    relocations: u8,
}

/// Handles to what a host has, for the environment of its processes.
#[derive(Clone, Debug)]
pub(crate) struct HostParts {
    pub(crate) clock: HostClock,
    pub(crate) storage: MemoryStorage,
    pub(crate) disk: SimDisk,
    pub(crate) directory: PathBuf,
    pub(crate) network: SimHost,
    pub(crate) names: Names,
}

impl Host {
    /// Returns the time as this host sees it.
    pub(super) fn at(&self, now: Now) -> Now {
        self.clock.at(now)
    }

    /// Returns handles to what the host has.
    pub(super) fn parts(&self, names: &Names) -> HostParts {
        HostParts {
            clock: self.clock.clone(),
            storage: self.storage.clone(),
            disk: self.disk.clone(),
            directory: self.directory.clone(),
            network: self.network.clone(),
            names: names.clone(),
        }
    }
}

impl World {
    /// Adds a host and starts its driver. The first one is called `host0` and has the address 10.0.0.1 (or fd00::1),
    /// and so on.
    pub fn add_host(&mut self, spec: HostSpec) -> HostIndex {
        let host = self.add_host_without_driver(spec);
        self.start_driver(host);
        host
    }

    /// Adds a host with the same name and address, but starts no driver.
    pub fn add_host_without_driver(&mut self, spec: HostSpec) -> HostIndex {
        let index = self.hosts.len();
        let host = Host {
            storage: MemoryStorage::with_accessible_holes(),
            disk: SimDisk::new(self.disk_seeds.u64(..), spec.disk),
            is_on: true,
            directory: PathBuf::from(format!("/aeron-{index}")),
            network: self.network.host(&[spec.address(index, 0)]),
            driver: None,
            generation: 0,
            clock: HostClock::new(self.clock.clone(), spec.ahead),
            spec,
            relocations: 0,
        };
        self.hosts.push(host);
        let host = HostIndex(index);
        self.set_host_name(&format!("host{index}"), host);
        host
    }

    /// Returns the number of hosts.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Moves a host to another address, which is returned. Its names resolve to that address from now on.
    pub fn relocate(&mut self, index: HostIndex) -> IpAddr {
        self.record_op("relocate", index.0);
        let host = &mut self.hosts[index.0];
        host.relocations += 1;
        let address = host.spec.address(index.0, host.relocations);
        self.network.set_addresses(host.network.id(), &[address]);
        address
    }

    /// Lets a name resolve to a host from now on.
    pub fn set_host_name(&mut self, name: &str, host: HostIndex) {
        let id = self.network_id(host);
        self.names.set(name, id);
    }

    /// Starts a driver on a host that has none.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_driver(&mut self, host: HostIndex) {
        let started = self.try_start_driver(host);
        started.unwrap_or_else(|error| panic!("driver of host {}: {error}", host.0));
    }

    /// Starts a driver on a host.
    ///
    /// # Errors
    /// As [`taran_driver::DriverParts::build`].
    pub fn try_start_driver(&mut self, index: HostIndex) -> Result<(), DriverError> {
        self.record_op("start driver", index.0);
        let host = &self.hosts[index.0];
        let context = DriverContext::new().aeron_dir(&host.directory);
        let options = host.spec.options.iter();
        let start = DriverStart {
            context: options.fold(context, |context, (name, value)| {
                context.option(name, value)
            }),
            network: self.network.clone(),
            network_id: host.network.id(),
            storage: host.storage.clone(),
            directory: host.directory.clone(),
            drops_received_frames: host.spec.drops_received_frames(),
            parks: host.spec.parks,
            keys: host
                .spec
                .trusted
                .as_ref()
                .map(|trusted| keys::of_host(index.0, trusted)),
        };
        let process = self.try_spawn(index, |env| DriverProcess::start(env, start))?;
        let host = &mut self.hosts[index.0];
        host.generation += 1;
        // A driver that was paused for long enough counts as dead.
        if let Some(before) = host.driver.replace(process) {
            self.processes.kill(before);
        }
        Ok(())
    }

    /// Stops a driver in an orderly way.
    pub fn stop_driver(&mut self, host: HostIndex) {
        self.record_op("stop driver", host.0);
        if let Some(id) = self.hosts[host.0].driver {
            self.process_mut::<DriverProcess>(id).stop();
            self.processes.kill(id);
        }
    }

    /// Ends a driver like `kill -9`: its sockets are closed, its files remain.
    pub fn kill_driver(&mut self, host: HostIndex) {
        self.record_op("kill driver", host.0);
        if let Some(id) = self.hosts[host.0].driver {
            self.processes.kill(id);
        }
    }

    /// Pauses a driver, like `SIGSTOP`.
    pub fn stall_driver(&mut self, host: HostIndex, pause: Duration) {
        self.record_op("stall driver", host.0);
        let until_ns = self.world_ns() + saturating_nanos(pause);
        if let Some(id) = self.hosts[host.0].driver {
            self.processes.slot_mut(id).stalled_until_ns = until_ns;
        }
    }

    /// Pauses all processes of a host. A pause of zero resumes them.
    pub fn stall_host(&mut self, host: HostIndex, pause: Duration) {
        self.record_op("stall host", host.0);
        let until_ns = self.world_ns() + saturating_nanos(pause);
        self.processes.stall_host(host, until_ns);
    }

    /// Returns the running driver of a host.
    fn driver(&self, host: HostIndex) -> Option<&Driver> {
        let id = self.hosts[host.0].driver?;
        self.process::<DriverProcess>(id).running()
    }

    /// Returns the running driver of a host for changes.
    pub(super) fn driver_mut(&mut self, host: HostIndex) -> Option<&mut Driver> {
        let id = self.hosts[host.0].driver?;
        self.process_mut::<DriverProcess>(id).running_mut()
    }

    /// Returns the streams of a host's driver, as the checks saw them last.
    pub(crate) fn driver_streams(&self, host: HostIndex) -> Option<&Streams> {
        self.driver(host).map(|driver| &driver.streams)
    }

    /// Steps the wall clock of a host forward or backward.
    pub fn step_clock(&mut self, host: HostIndex, by_ms: i64) {
        self.record_op("step clock", host.0);
        self.hosts[host.0].clock.step(by_ms);
    }

    /// Returns true while a host has a driver.
    #[must_use]
    pub fn has_driver(&self, host: HostIndex) -> bool {
        self.driver(host).is_some()
    }

    /// Returns the number of drivers started on a host so far, including the current one.
    #[must_use]
    pub fn driver_generation(&self, host: HostIndex) -> u64 {
        self.hosts[host.0].generation
    }

    /// Returns the longest gap between two duty cycles of a host's conductor so far, or zero without a driver.
    #[must_use]
    pub fn longest_driver_stall(&self, host: HostIndex) -> Duration {
        let now_ns = self.hosts[host.0].at(self.clock.read()).nanos;
        let driver = self.driver(host);
        let longest = driver.map(|it| it.conductor_stalls.longest(now_ns));
        longest.unwrap_or_default()
    }

    /// Returns the current address of a host.
    #[must_use]
    pub fn address(&self, host: HostIndex) -> IpAddr {
        self.network.addresses(self.network_id(host))[0]
    }

    /// Removes all files of a host, like a reboot.
    pub fn remove_files(&mut self, host: HostIndex) {
        self.hosts[host.0].storage = MemoryStorage::with_accessible_holes();
    }

    /// Returns the network id of a host, which selects its links.
    #[must_use]
    pub fn network_id(&self, host: HostIndex) -> HostId {
        self.hosts[host.0].network.id()
    }

    /// Returns the files of a host.
    #[must_use]
    pub fn storage(&self, host: HostIndex) -> &MemoryStorage {
        &self.hosts[host.0].storage
    }

    /// Returns the Aeron directory of a host's driver.
    #[must_use]
    pub fn directory(&self, host: HostIndex) -> &Path {
        &self.hosts[host.0].directory
    }

    /// Returns the counters of a host's driver.
    ///
    /// # Panics
    /// If the host has no driver.
    #[must_use]
    pub fn counters(&self, host: HostIndex) -> &CountersReader {
        match self.driver(host) {
            Some(driver) => &driver.parts.counters,
            None => panic!("host {} has no driver", host.0),
        }
    }

    /// Returns the value of a system counter of a host's driver.
    ///
    /// # Panics
    /// If the host has no driver.
    #[must_use]
    pub fn system(&self, host: HostIndex, counter: SystemCounter) -> i64 {
        self.counters(host).value(counter.id()).unwrap_or_default()
    }

    /// Checks that drivers without clients have no resources left. Call it some time after
    /// [`close_all`](Self::close_all), which waits long enough.
    ///
    /// # Panics
    /// If a resource is left.
    pub fn expect_nothing_left(&self) {
        for (index, host) in self.hosts.iter().enumerate() {
            let Some(driver) = self.driver(HostIndex(index)) else {
                continue;
            };
            let sockets = self.network.open_sockets(host.network.id());
            let checked = driver.leaks.check(
                &driver.parts.counters,
                &host.storage,
                &host.directory,
                sockets,
            );
            if let Err(violation) = checked {
                panic!("{violation}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::traffic::{PublisherSpec, SubscriberSpec};

    #[test]
    fn checkers_see_the_log_and_the_consumer_of_each_stream() {
        let mut world = World::new(1);
        let host = world.add_host(HostSpec::new());
        let client = world.connect(host);
        let flows = ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:40123"].map(|channel| {
            let subscriber = world.subscribe(client, SubscriberSpec::new(channel, 1));
            let publisher_spec = PublisherSpec::new(channel, 1).messages(10);
            (subscriber, world.publish(client, publisher_spec))
        });
        let has_all = |world: &World| {
            let mut flows = flows.iter();
            flows.all(|(subscriber, publisher)| world.has_all(*subscriber, *publisher))
        };
        world.run_until("everything", Duration::from_secs(10), has_all);
        let driver = world.driver(host).unwrap();
        let streams = driver.streams.streams();
        assert_eq!(streams.len(), 3, "{streams:?}");
        for stream in streams {
            let log = stream.log.as_ref().unwrap();
            let is_image = stream.high_water.is_some();
            assert_eq!(log.publication_window > 0, !is_image);
            assert!(stream.sender.is_some() || stream.consumers.len() == 1);
        }
    }
}
