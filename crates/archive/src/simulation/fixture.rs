// SPDX-License-Identifier: Apache-2.0
//! A world for one scenario.

use std::path::Path;
use std::time::Duration;

use taran_archive_client::Recording;
use taran_core::error_log;
use taran_core::memory::Storage as _;
use taran_sim::{HostIndex, HostSpec, World};
use taran_storage::{Disk, OpenOptions};

use super::archive::{DIRECTORY, Settings};
use super::journal::{Journal, Retention, Role};
use super::operations::archive;
use super::user::{Media, UserProcess, WantedReplay};
use super::{
    ARCHIVE_HOST, HOSTS, RECOVERY_BOUND, are_idle, await_all, boot, is_ready, no_sessions,
    restart_archive, set_up, users, with_journal,
};
use crate::files::{MARK_FILE, MARK_HEADER_LENGTH, MarkFileInfo, SyncLevel};

/// Length of segments in bytes.
pub(super) const SEGMENT: i64 = 64 << 10;
/// Time within which what is asked for is done.
pub(super) const BOUND: Duration = Duration::from_secs(30);

/// A world with an archive and two users.
pub(super) struct Fixture {
    pub(super) world: World,
}

impl Fixture {
    pub(super) fn new(options: &'static [(&'static str, &'static str)]) -> Self {
        Self::with(Self::settings(options))
    }

    pub(super) fn settings(options: &'static [(&'static str, &'static str)]) -> Settings {
        Settings {
            sync: SyncLevel::Data,
            checksum: None,
            segment_length: SEGMENT as i32,
            stops_when_full: false,
            catalog_length_max: None,
            options,
            defect: None,
            role: Role::Source,
            retention: Retention::None,
        }
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self::of_archives(settings, false)
    }

    /// A world with an archive that replicates on the second host, and a user of it.
    pub(super) fn with_replica() -> Self {
        Self::of_archives(Self::settings(&[]), true)
    }

    pub(super) fn of_archives(settings: Settings, has_replica: bool) -> Self {
        let mut fixture = Self::starting(settings, has_replica);
        await_all(
            &mut fixture.world,
            "archive and users are connected",
            RECOVERY_BOUND,
            is_ready,
        )
        .unwrap();
        fixture
    }

    /// A world whose archives start.
    pub(super) fn starting(settings: Settings, has_replica: bool) -> Self {
        let mut world = World::new(11);
        for _ in 0..HOSTS {
            world.add_host_without_driver(HostSpec::new());
        }
        set_up(&mut world, has_replica);
        world.on_boot(move |world, host| boot(world, host, |_| settings));
        Self { world }
    }

    pub(super) fn user<T>(&mut self, call: impl FnOnce(&mut UserProcess, &mut Journal) -> T) -> T {
        let local = users(&self.world)[0];
        with_journal(&mut self.world, local, call)
    }

    pub(super) fn run_for(&mut self, ms: u64) {
        self.world.run_for(Duration::from_millis(ms));
    }

    /// Publishes messages of 1,000 bytes at most, and waits until they are recorded.
    pub(super) fn publish(&mut self, label: u32, messages: u64) {
        assert!(self.user(|user, journal| user.publish(
            (label, Media::Ipc),
            (messages, 1_000),
            journal
        )));
        let local = users(&self.world)[0];
        await_all(&mut self.world, "all is published", BOUND, |world| {
            world.process::<UserProcess>(local).has_published_all()
        })
        .unwrap();
        self.run_for(300);
    }

    pub(super) fn record(&mut self, label: u32) {
        assert!(self.user(|user, _| user.record(label, false)));
        self.run_for(300);
    }

    pub(super) fn stop(&mut self) {
        self.user(|user, _| {
            user.close_all_tracks();
            user.stop_all();
        });
        await_all(&mut self.world, "all has ended", RECOVERY_BOUND, |world| {
            are_idle(world) && no_sessions(world)
        })
        .unwrap();
    }

    pub(super) fn floor(&mut self, recording_id: i64) -> i64 {
        self.world
            .shared_mut::<Journal>()
            .recording(recording_id)
            .floor
    }

    /// Returns the time of the archive's host.
    pub(super) fn now_ms(&self) -> i64 {
        self.world.epoch_nanos() / 1_000_000
    }

    /// Replays from a time until now; returns the first and last position.
    pub(super) fn replay_from(&mut self, recording_id: i64, time_ms: i64) -> Option<(i64, i64)> {
        let wanted = WantedReplay {
            recording_id,
            position: None,
            time_ms: Some(time_ms),
            length: None,
            until_now: true,
            must_reach: None,
        };
        self.world.shared_mut::<Journal>().last_replay = None;
        assert!(self.user(|user, journal| user.replay(wanted, true, journal)));
        await_all(&mut self.world, "the replay has ended", BOUND * 2, are_idle).unwrap();
        self.world.shared_mut::<Journal>().last_replay
    }

    /// Returns the base positions of the segment files of a recording.
    pub(super) fn bases(&self, recording_id: i64) -> Vec<i64> {
        let disk = self.world.disk(HostIndex::at(ARCHIVE_HOST)).process();
        let entries = disk.list(std::path::Path::new(DIRECTORY)).unwrap();
        let prefix = format!("{recording_id}-");
        let mut bases: Vec<i64> = entries
            .iter()
            .filter_map(|entry| {
                entry
                    .name
                    .to_str()?
                    .strip_prefix(&prefix)?
                    .strip_suffix(".rec")?
                    .parse()
                    .ok()
            })
            .collect();
        bases.sort_unstable();
        bases
    }

    /// Asks for a replay of all that is acknowledged, and does not wait for it.
    pub(super) fn begin_replay(&mut self, recording_id: i64, position: i64, is_ipc: bool) {
        let must_reach = Some(self.floor(recording_id));
        let wanted = WantedReplay {
            recording_id,
            position: Some(position),
            time_ms: None,
            length: None,
            until_now: true,
            must_reach,
        };
        self.world.shared_mut::<Journal>().last_replay = None;
        assert!(self.user(|user, journal| user.replay(wanted, is_ipc, journal)));
    }

    /// Waits until replays and requests have ended. A replay that misses a frame is a violation, which fails the test.
    pub(super) fn settle(&mut self) {
        await_all(&mut self.world, "all is answered", BOUND * 2, are_idle).unwrap();
    }

    /// Replays all that is acknowledged.
    pub(super) fn replay_all(&mut self, recording_id: i64, start: i64) {
        self.begin_replay(recording_id, start, true);
        self.settle();
        let (first, last) = self
            .world
            .shared::<Journal>()
            .and_then(|journal| journal.last_replay)
            .expect("there are frames");
        let floor = self.floor(recording_id);
        assert!(
            first == start && last <= floor && floor - last < SEGMENT,
            "replayed {first} to {last} of {start} to {floor}"
        );
    }

    /// Returns the recordings that the archive lists.
    pub(super) fn list(&mut self) -> Vec<Recording> {
        self.world.shared_mut::<Journal>().last_listing.clear();
        assert!(self.user(|user, journal| user.list(journal)));
        self.settle();
        std::mem::take(&mut self.world.shared_mut::<Journal>().last_listing)
    }

    /// Returns the texts in the error log of the archive.
    pub(super) fn errors(&self) -> Vec<String> {
        let path = Path::new(DIRECTORY).join(MARK_FILE);
        let region = self
            .world
            .storage(HostIndex::at(ARCHIVE_HOST))
            .open(&path)
            .expect("there is a mark file");
        let log = region
            .sub(MARK_HEADER_LENGTH, region.len() - MARK_HEADER_LENGTH)
            .expect("the file has an error log");
        let mut errors = Vec::new();
        error_log::read(&log, 0, |error| errors.push(error.text.clone()));
        errors
    }

    /// Returns what the mark file of the archive says.
    pub(super) fn mark(&self) -> MarkFileInfo {
        let path = Path::new(DIRECTORY).join(MARK_FILE);
        let storage = self.world.storage(HostIndex::at(ARCHIVE_HOST));
        let region = storage.open(&path).expect("there is a mark file");
        let mut bytes = vec![0; MARK_HEADER_LENGTH];
        region.read(0, &mut bytes);
        MarkFileInfo::parse(&bytes).expect("it is whole")
    }

    /// Changes a byte of a file of the archive.
    pub(super) fn flip(&mut self, name: &str, offset: u64) {
        let disk = self.world.disk(HostIndex::at(ARCHIVE_HOST)).process();
        let path = Path::new(DIRECTORY).join(name);
        let mut byte = [0];
        let file = disk.open(&path, OpenOptions::read()).unwrap();
        assert_eq!(file.read_at(&mut byte, offset).unwrap(), 1);
        let file = disk.open(&path, OpenOptions::write()).unwrap();
        file.write_at(&[byte[0] ^ 0x10], offset).unwrap();
    }

    /// Kills the archive, changes its files, and starts it again.
    pub(super) fn kill_and_change(&mut self, change: impl FnOnce(&mut Self)) {
        let id = archive(&self.world).expect("it is alive");
        self.world.kill(id);
        change(self);
        restart_archive(&mut self.world, id);
        // Until the driver has noticed, users take the session with the dead archive for a good one.
        self.run_for(15_000);
        await_all(&mut self.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
    }

    /// Returns the value of a counter of the archive.
    pub(super) fn counter(&self, wanted: i32) -> i64 {
        let counters = self.world.counters(HostIndex::at(ARCHIVE_HOST));
        let mut found = 0;
        counters.for_each(|meta| {
            if meta.type_id == wanted {
                found = counters.value(meta.id).unwrap_or_default();
            }
        });
        found
    }
}
