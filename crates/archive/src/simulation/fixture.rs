//! A world for one scenario.

use std::time::Duration;

use taran_sim::{HostIndex, HostSpec, World};
use taran_storage::Disk;

use super::archive::{DIRECTORY, Settings};
use super::journal::Journal;
use super::user::{Media, UserProcess, WantedReplay};
use super::{
    ARCHIVE_HOST, HOSTS, RECOVERY_BOUND, are_idle, await_all, boot, is_ready, no_sessions, set_up,
    users, with_journal,
};
use crate::files::SyncLevel;

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
        let mut world = World::new(11);
        for _ in 0..HOSTS {
            world.add_host_without_driver(HostSpec::new());
        }
        set_up(&mut world);
        let settings = Settings {
            sync: SyncLevel::Data,
            checksum: None,
            segment_length: SEGMENT as i32,
            stops_when_full: false,
            options,
            defect: None,
        };
        world.on_boot(move |world, host| boot(world, host, |_| settings));
        await_all(
            &mut world,
            "archive and users are connected",
            RECOVERY_BOUND,
            is_ready,
        )
        .unwrap();
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
