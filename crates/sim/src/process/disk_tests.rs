// SPDX-License-Identifier: Apache-2.0
//! Disks of processes: leases, kills, power cuts.

use std::path::Path;
use std::time::Duration;

use taran_core::memory::{CreateOptions, Storage as _};
use taran_storage::{Disk, DiskFile, DiskLock, ErrorKind, OpenOptions, SyncKind};

use super::*;
use crate::{HostIndex, HostSpec};

const NAME: &str = "/file";

/// A process that writes to a file, and keeps it open and locked. It counts its duty cycles.
struct Writer {
    disk: crate::disk::ProcessDisk,
    file: Box<dyn DiskFile>,
    lock: DiskLock,
    cycles: u64,
}

impl Writer {
    fn start(env: &mut HostEnv) -> Self {
        let disk = env.disk();
        let options = OpenOptions::write().with_create(taran_storage::Create::IfMissing);
        let file = disk.open(Path::new(NAME), options).unwrap();
        let lock = disk.try_lock(Path::new(NAME)).unwrap();
        Self {
            disk,
            file,
            lock,
            cycles: 0,
        }
    }
}

impl Process for Writer {
    fn do_work(&mut self, _: &mut CycleContext<'_>) -> Result<usize, Violation> {
        self.cycles += 1;
        Ok(0)
    }

    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Drop
    }

    fn describe(&self) -> String {
        format!("{:?} of {:?}", self.lock, self.file.path())
    }
}

fn world(seed: u64) -> (World, HostIndex, ProcessId) {
    let mut world = World::new(seed);
    let host = world.add_host_without_driver(HostSpec::new());
    let id = world.spawn(host, Writer::start);
    (world, host, id)
}

fn contents(world: &World, id: ProcessId) -> Vec<u8> {
    let file = &world.process::<Writer>(id).file;
    let mut bytes = vec![0; 64];
    let len = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(len);
    bytes
}

#[test]
fn killed_process_loses_its_files_and_locks_but_not_the_page_cache() {
    let (mut world, _, id) = world(1);
    let process = world.process::<Writer>(id);
    process.file.write_at(b"unsynced", 0).unwrap();
    let disk = process.disk.clone();
    assert!(world.kill(id));

    let is_revoked = |result: Result<(), taran_storage::DiskError>| {
        matches!(result.unwrap_err().kind, ErrorKind::Revoked)
    };
    let file = &world.process::<Writer>(id).file;
    assert!(is_revoked(file.write_at(b"late", 0)));
    assert!(is_revoked(file.sync(SyncKind::Data)));
    assert!(is_revoked(disk.remove_file(Path::new(NAME))));
    assert!(is_revoked(disk.list(Path::new("/")).map(|_| ())));

    // The next run gets the lock, and reads what the page cache has.
    world.restart(id, Writer::start);
    assert_eq!(contents(&world, id), b"unsynced");
}

#[test]
fn power_cut_kills_all_processes_of_the_host_and_loses_shared_memory_and_unsynced_bytes() {
    let mut losses = 0;
    for seed in 0..20 {
        let (mut world, host, id) = world(seed);
        let other_host = world.add_host_without_driver(HostSpec::new());
        let other = world.spawn(other_host, Writer::start);
        let storage = world.storage(host);
        storage.create_dir_all(Path::new("/d")).unwrap();
        storage
            .create(Path::new("/d/shared"), 4096, CreateOptions::default())
            .unwrap();
        let process = world.process::<Writer>(id);
        process.file.write_at(b"synced", 0).unwrap();
        process.file.sync(SyncKind::Data).unwrap();
        process.disk.sync_directory(Path::new("/")).unwrap();
        process.file.write_at(b"unsynced", 0).unwrap();

        world.power_cut(host);
        assert!(!world.is_on(host) && !world.is_alive(id));
        assert!(world.is_on(other_host) && world.is_alive(other));
        assert!(!world.storage(host).exists(Path::new("/d/shared")));
        let cycles = world.process::<Writer>(id).cycles;
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.process::<Writer>(id).cycles, cycles);

        assert!(world.boot(host) && !world.boot(host));
        world.restart(id, Writer::start);
        let found = contents(&world, id);
        assert!(found.len() >= 6, "{found:?}");
        losses += usize::from(found != b"unsynced");
    }
    assert!((1..20).contains(&losses), "{losses} of 20 lost");
}

#[test]
fn boot_starts_the_processes_of_a_host() {
    let mut world = World::new(3);
    let hosts = [(); 2].map(|()| world.add_host_without_driver(HostSpec::new()));
    world.on_boot(|world, host| {
        world.spawn(host, Writer::start);
    });
    let alive = |world: &World| {
        let ids: Vec<_> = world.processes::<Writer>().map(|(id, _)| id).collect();
        let alive = ids.into_iter().filter(|id| world.is_alive(*id));
        alive
            .map(|id| world.host_of_process(id))
            .collect::<Vec<_>>()
    };
    assert_eq!(alive(&world), hosts);
    world.power_cut(hosts[0]);
    assert_eq!(alive(&world), [hosts[1]]);
    world.boot(hosts[0]);
    assert_eq!(alive(&world), [hosts[1], hosts[0]]);
}

#[test]
#[should_panic(expected = "host 0 has no power")]
fn process_does_not_start_without_power() {
    let (mut world, host, _) = world(4);
    world.power_cut(host);
    world.spawn(host, Writer::start);
}

#[test]
fn adding_hosts_leaves_the_randomness_of_their_disks_to_the_seed() {
    let found = |seed| {
        let (mut world, host, id) = world(seed);
        let process = world.process::<Writer>(id);
        process.disk.sync_directory(Path::new("/")).unwrap();
        for number in 0..40_u8 {
            process
                .file
                .write_at(&[number; 600], u64::from(number) * 600)
                .unwrap();
        }
        world.power_cut(host);
        world.boot(host);
        world.restart(id, Writer::start);
        let mut bytes = vec![0; 600 * 40];
        let file = &world.process::<Writer>(id).file;
        let len = file.read_at(&mut bytes, 0).unwrap();
        bytes.truncate(len);
        bytes
    };
    let all: Vec<_> = (0..10).map(|seed| (found(seed), found(seed))).collect();
    assert!(all.iter().all(|(one, again)| one == again));
    assert!(all.iter().any(|(one, _)| *one != all[0].0));
}
