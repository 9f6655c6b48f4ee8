// SPDX-License-Identifier: Apache-2.0
//! A crash at each write, sync and change of names of one workload.

use std::time::Duration;

use taran_sim::{HostIndex, HostSpec, World};

use super::archive::{ArchiveProcess, Settings};
use super::hooked_disk::Crash;
use super::journal::{Journal, Retention, Role};
use super::operations::{archive, cut_power, kill_archive};
use super::user::{Media, UserProcess};
use super::{
    ARCHIVE_HOST, HOSTS, RECOVERY_BOUND, are_idle, await_all, boot, is_ready, no_sessions, set_up,
    users, with_journal,
};
use crate::files::{Checksum, SyncLevel};

/// Longest time for one step of the script.
const STEP_BOUND: Duration = Duration::from_secs(20);

/// A run of the script.
struct Script {
    world: World,
    is_over: bool,
}

impl Script {
    fn new(seed: u64, settings: Settings, crash: Option<(u64, Crash)>) -> Self {
        let mut world = World::new(seed);
        for _ in 0..HOSTS {
            world.add_host_without_driver(HostSpec::new());
        }
        set_up(&mut world, false);
        if let (Some((operation, kind)), Some(journal)) = (crash, world.shared::<Journal>()) {
            journal.hooks().crash_before(operation, kind);
        }
        world.on_boot(move |world, host| boot(world, host, |_| settings));
        Self {
            world,
            is_over: false,
        }
    }

    /// Lets time pass until a condition holds, or the crash comes.
    fn settle(&mut self, condition: impl Fn(&World) -> bool) {
        let until = self.world.elapsed() + STEP_BOUND;
        while !self.is_over && !condition(&self.world) && self.world.elapsed() < until {
            self.world.run_for(Duration::from_millis(20));
            let crash = self
                .world
                .shared::<Journal>()
                .and_then(|journal| journal.hooks().take_crash());
            match crash {
                None => continue,
                Some(Crash::PowerCut) => cut_power(&mut self.world),
                Some(Crash::Kill) => {
                    kill_archive(&mut self.world);
                }
            }
            self.is_over = true;
        }
    }

    /// Does something at the local user, and waits until nothing is under way.
    fn step(&mut self, call: impl FnOnce(&mut UserProcess, &mut Journal)) {
        if self.is_over {
            return;
        }
        let local = users(&self.world)[0];
        with_journal(&mut self.world, local, call);
        self.settle(move |world| {
            let user = world.process::<UserProcess>(local);
            user.is_idle() && user.has_published_all()
        });
        // What was published is recorded, and what was asked for is done.
        let pause = self.world.elapsed() + Duration::from_millis(300);
        self.settle(move |world| world.elapsed() >= pause);
    }

    /// Ends all recordings.
    fn stop(&mut self) {
        self.step(|user, _| {
            user.close_all_tracks();
            user.stop_all();
        });
        self.settle(|world| are_idle(world) && no_sessions(world));
    }

    /// Runs the workload; returns the number of operations of the disk.
    fn run(mut self) -> u64 {
        self.settle(is_ready);
        self.step(|user, journal| {
            user.publish((0, Media::Ipc), (200, 1_376), journal);
            user.record(0, false);
        });
        self.step(|user, journal| {
            user.publish((0, Media::Ipc), (200, 1_376), journal);
        });
        self.stop();
        self.step(|user, _| {
            user.extend(1, 0);
        });
        self.step(|user, journal| {
            user.publish((1, Media::Ipc), (150, 1_376), journal);
        });
        self.stop();
        self.step(|user, _| {
            user.purge_segments(0, 1);
        });
        self.step(|user, journal| {
            let known = journal.recording(0);
            let (stream_id, floor) = (known.stream_id, known.floor);
            let position = journal
                .ledger(stream_id)
                .starts()
                .filter(|start| *start < floor - 70_000)
                .last();
            user.truncate(0, position.unwrap_or_default(), journal);
        });
        self.step(|user, journal| {
            user.publish((2, Media::Ipc), (20, 1_376), journal);
            user.record(2, true);
        });
        self.stop();
        self.step(|user, journal| {
            user.purge(1, journal);
        });
        if let Err(violation) = await_all(
            &mut self.world,
            "archive and users are connected",
            RECOVERY_BOUND,
            is_ready,
        ) {
            panic!("{violation}");
        }
        self.is_over = false;
        self.step(|user, journal| {
            user.list(journal);
        });
        assert!(
            archive(&self.world)
                .is_some_and(|id| self.world.process::<ArchiveProcess>(id).is_running())
        );
        let host = HostIndex::at(ARCHIVE_HOST);
        assert!(self.world.is_on(host));
        self.world
            .shared::<Journal>()
            .map_or(0, |journal| journal.hooks().count())
    }
}

fn settings(checksum: Option<Checksum>) -> Settings {
    Settings {
        sync: SyncLevel::Data,
        checksum,
        segment_length: 64 << 10,
        stops_when_full: false,
        catalog_length_max: None,
        options: &[],
        defect: None,
        role: Role::Source,
        retention: Retention::None,
    }
}

/// Crashes at each `stride`-th operation, from `first` on.
fn crash_at(first: u64, stride: usize, kind: Crash, settings: Settings) -> u64 {
    let operations = Script::new(7, settings, None).run();
    assert!(operations > 60, "{operations} operations");
    for operation in (first..operations).step_by(stride) {
        println!("{kind:?} before operation {operation} of {operations}");
        Script::new(7, settings, Some((operation, kind))).run();
    }
    operations
}

#[test]
fn power_cut_at_some_operations_of_a_script_loses_nothing() {
    crash_at(3, 19, Crash::PowerCut, settings(Some(Checksum::Crc32c)));
}

#[test]
fn kill_at_some_operations_of_a_script_loses_nothing() {
    crash_at(5, 23, Crash::Kill, settings(None));
}

#[test]
#[ignore = "takes minutes: cargo xtask archive"]
fn crash_at_each_operation_of_a_script_loses_nothing() {
    for kind in [Crash::PowerCut, Crash::Kill] {
        for checksum in [None, Some(Checksum::Crc32c)] {
            crash_at(0, 1, kind, settings(checksum));
        }
    }
}
