// SPDX-License-Identifier: Apache-2.0
//! Archives in simulated worlds: agents over a client over a simulated driver, on a simulated disk.
//!
//! Two hosts have a driver and a user each; the first one has the archive. Users publish streams over IPC and UDP, record,
//! extend, stop, replay, truncate, purge and list; processes are killed, power is cut, disks are full, fail and stall, the
//! network loses datagrams and is partitioned. The guarantees:
//!
//! * What was acknowledged at the sync level is there after a recovery and equal to what was published; so is all else that a
//!   recovery keeps, where checksums tell (`RecoveredFiles`).
//! * Recorded positions never run back, and nothing that was acknowledged is missing from a listing.
//! * Each frame of a replay is the one that was published at its position, and no frame is left out (`UserProcess`).
//! * Recordings that were deleted or truncated by a confirmed request do not come back.
//! * A replica has what its source has, up to its position (`replicas`). In some worlds the second host has an archive that
//!   replicates recordings of the first one: to their ends, to a position, while they are recorded, and joining the live stream.
//! * Retention purges no file that a replay or a replication still needs, and nothing that a rule or a consumer keeps. What
//!   retention purges is seen when it does, so that a recording that is gone for another reason is a violation.
//! * At the end, without faults, all recordings replay to their ends, and nothing of archive and users is left.
//!
//! [`Defect`]s are planted, and have to be found.

mod archive;
mod clock_steps;
mod damage;
mod deletions;
mod ended_queues;
mod fixture;
mod hooked_disk;
mod journal;
mod ledger;
mod operations;
mod options;
mod replicas;
mod retention;
mod scripted;
mod tests;
mod user;
mod verification;
mod verify;

use std::time::Duration;

use taran_core::memory::Storage as _;
use taran_sim::network::LinkFaults;
use taran_sim::scenario::{DiskFault, Suite};
use taran_sim::{HostIndex, Process as _, ProcessId, Violation, World};

use crate::files::{Checksum, MARK_FILE, SyncLevel};
use archive::{ArchiveProcess, CONTROL_PORT, DIRECTORY, Settings};
use hooked_disk::{Defect, Hooks};
use journal::{Journal, Retention, Role};
use operations::{Disturbance, UserCall, archive_of, partition, supervise};
use user::{Addresses, Media, UserProcess, WantedReplay};

/// Number of the host with the archive.
const ARCHIVE_HOST: usize = 0;
/// Number of the host with the archive that replicates.
const REPLICA_HOST: usize = 1;
/// Number of hosts.
const HOSTS: usize = 2;
/// Times over which the operations of a scenario are distributed, in milliseconds.
const DURATION_MS: std::ops::RangeInclusive<u64> = 1_000..=25_000;
/// Time within which everything works again without faults: timeouts of clients, images and drivers one after the other.
const RECOVERY_BOUND: Duration = Duration::from_secs(90);
/// Time within which a replay without faults ends.
const REPLAY_BOUND: Duration = Duration::from_secs(60);
/// Longer than the timeouts that follow a close.
const CLEANUP: Duration = Duration::from_secs(45);
/// Options of retention; half of the archives have the first ones.
const RETENTIONS: [(Retention, Options); 4] = [
    (Retention::None, &[]),
    (
        Retention::Bytes {
            bytes: 20_000,
            has_consumer: false,
        },
        &[
            ("taran.archive.retention", "* bytes=20000"),
            ("taran.archive.retention.interval", "500ms"),
        ],
    ),
    (
        Retention::Bytes {
            bytes: 20_000,
            has_consumer: true,
        },
        &[
            ("taran.archive.retention", "* bytes=20000 consumers=risk"),
            ("taran.archive.retention.interval", "500ms"),
        ],
    ),
    (
        Retention::Age { ms: 5_000 },
        &[
            ("taran.archive.retention", "* age=5s"),
            ("taran.archive.retention.interval", "500ms"),
        ],
    ),
];
/// Names and values of options.
type Options = &'static [(&'static str, &'static str)];
/// Label of the stream that is recorded at the end.
const LAST_TRACK: u32 = 1_000;

/// Returns the suite, with or without a defect.
fn suite(defect: Option<Defect>) -> Suite {
    Suite::without_drivers("archive", HOSTS..=HOSTS)
        .duration_ms(DURATION_MS)
        .shrink_seeds(10)
        .power_cuts()
        .operation::<DiskFault>()
        .operation::<UserCall>()
        .operation::<Disturbance>()
        .set_up(move |world| {
            let random = world.random();
            let has_replica = match defect {
                None => random.u32(0..5) < 3,
                Some(_) => defect == Some(Defect::DamagesReplica),
            };
            set_up(world, has_replica);
        })
        .boot(move |world, host| boot(world, host, |world| random_settings(world, defect)))
        .finish(finish)
}

/// Prepares archives: that of the source, and that of a replica on the other host if there is one.
fn set_up(world: &mut World, has_replica: bool) {
    let hosts = [(ARCHIVE_HOST, Role::Source), (REPLICA_HOST, Role::Replica)];
    for (host, role) in hosts.into_iter().take(1 + usize::from(has_replica)) {
        let host = HostIndex::at(host);
        let endpoint = format!("{}:{CONTROL_PORT}", world.address(host));
        let hooks = Hooks::new(world.disk(host).clone());
        world.shared_mut::<Journal>().set_up(role, endpoint, hooks);
    }
}

/// Returns the role of the archive of a host.
fn role_at(world: &World, host: HostIndex) -> Option<Role> {
    let has_replica = world.shared::<Journal>().is_some_and(Journal::has_replica);
    match host.number() {
        ARCHIVE_HOST => Some(Role::Source),
        REPLICA_HOST if has_replica => Some(Role::Replica),
        _ => None,
    }
}

/// Starts the processes of a host, or starts them again after a power cut.
fn boot(world: &mut World, host: HostIndex, choose: impl FnOnce(&mut World) -> Settings) {
    world.start_driver(host);
    let archive_role = role_at(world, host);
    if let Some(role) = archive_role {
        let before = world
            .processes::<ArchiveProcess>()
            .find(|(_, archive)| archive.settings().role == role)
            .map(|(id, _)| id);
        if let Some(id) = before {
            let journal = world.shared_mut::<Journal>();
            journal.select(role);
            journal.on_power_cut();
            journal.select(Role::Source);
            restart_archive(world, id);
        } else {
            let settings = Settings {
                role,
                ..choose(world)
            };
            world.spawn(host, |env| ArchiveProcess::start(env, settings, None));
        }
    }
    let has_second_user = archive_role == Some(Role::Replica);
    let roles = [Role::Source, Role::Replica].into_iter();
    for role in roles.take(1 + usize::from(has_second_user)) {
        let is_here = |(id, user): &(ProcessId, &UserProcess)| {
            world.host_of_process(*id) == host && user.addresses().role == role
        };
        let before = world
            .processes::<UserProcess>()
            .find(is_here)
            .map(|(id, _)| id);
        if let Some(id) = before {
            restart_user(world, id);
            continue;
        }
        let addresses = Addresses {
            own: world.address(host).to_string(),
            archive: world.address(HostIndex::at(ARCHIVE_HOST)).to_string(),
            is_local: archive_role == Some(role),
            role,
        };
        world.spawn(host, |env| UserProcess::start(env, addresses));
    }
}

fn random_settings(world: &mut World, defect: Option<Defect>) -> Settings {
    let random = world.random();
    let (retention, options) = match defect {
        Some(Defect::PurgesUnderReplays) => RETENTIONS[1],
        Some(Defect::PurgesUnconsumed) => (RETENTIONS[2].0, RETENTIONS[1].1),
        Some(Defect::PurgesYoung) => (
            RETENTIONS[3].0,
            &[
                ("taran.archive.retention", "* age=1s"),
                ("taran.archive.retention.interval", "500ms"),
            ][..],
        ),
        Some(Defect::LosesRecording) => RETENTIONS[3],
        Some(_) => RETENTIONS[0],
        None => {
            RETENTIONS[random
                .usize(0..RETENTIONS.len() * 2)
                .saturating_sub(RETENTIONS.len())]
        }
    };
    let levels = [
        SyncLevel::None,
        SyncLevel::Data,
        SyncLevel::Data,
        SyncLevel::All,
    ];
    Settings {
        sync: match defect {
            None => levels[random.usize(0..levels.len())],
            Some(_) => SyncLevel::Data,
        },
        checksum: (defect.is_some() || random.bool()).then_some(Checksum::Crc32c),
        segment_length: [64 << 10, 128 << 10][random.usize(0..2)],
        stops_when_full: random.u32(0..4) == 0,
        catalog_length_max: None,
        options,
        defect,
        role: Role::Source,
        retention,
    }
}

fn restart_archive(world: &mut World, id: ProcessId) {
    let before = world.process::<ArchiveProcess>(id);
    let (settings, last_end) = (before.settings(), before.ended().map(str::to_owned));
    world.restart(id, |env| ArchiveProcess::start(env, settings, last_end));
}

fn restart_user(world: &mut World, id: ProcessId) {
    let addresses = world.process::<UserProcess>(id).addresses().clone();
    world.restart(id, |env| UserProcess::start(env, addresses));
}

fn users(world: &World) -> Vec<ProcessId> {
    world.processes::<UserProcess>().map(|(id, _)| id).collect()
}

fn with_journal<T>(
    world: &mut World,
    id: ProcessId,
    call: impl FnOnce(&mut UserProcess, &mut Journal) -> T,
) -> T {
    let mut journal = std::mem::take(world.shared_mut::<Journal>());
    let user = world.process_mut::<UserProcess>(id);
    let before = journal.select(user.addresses().role);
    let result = call(user, &mut journal);
    journal.select(before);
    *world.shared_mut::<Journal>() = journal;
    result
}

/// Describes archive and users.
fn describe(world: &World) -> String {
    let archives = world
        .processes::<ArchiveProcess>()
        .map(|(_, process)| process.describe());
    let users = world
        .processes::<UserProcess>()
        .map(|(_, process)| process.describe());
    archives.chain(users).collect::<Vec<_>>().join("\n")
}

/// Lets time pass, with processes that end started again, until a condition holds.
fn await_all(
    world: &mut World,
    what: &str,
    within: Duration,
    condition: impl Fn(&World) -> bool,
) -> Result<(), Violation> {
    let until = world.elapsed() + within;
    while !condition(world) {
        if world.elapsed() > until {
            return Err(Violation(format!(
                "not within {within:?}: {what}\n{}",
                describe(world)
            )));
        }
        world.run_for(Duration::from_millis(50));
        supervise(world);
    }
    Ok(())
}

/// Returns the living processes of archives; `None` if one is dead.
fn archives(world: &World) -> Option<Vec<ProcessId>> {
    let has_replica = world.shared::<Journal>().is_some_and(Journal::has_replica);
    let roles = [Role::Source, Role::Replica].into_iter();
    let roles = roles.take(1 + usize::from(has_replica));
    roles.map(|role| archive_of(world, role)).collect()
}

/// Returns true if all archives are alive and meet a condition.
fn all_archives(world: &World, condition: impl Fn(&ArchiveProcess) -> bool) -> bool {
    archives(world).is_some_and(|ids| {
        ids.into_iter()
            .all(|id| condition(world.process::<ArchiveProcess>(id)))
    })
}

fn is_ready(world: &World) -> bool {
    all_archives(world, ArchiveProcess::is_running)
        && users(world)
            .into_iter()
            .all(|id| world.is_alive(id) && world.process::<UserProcess>(id).is_connected())
}

fn are_idle(world: &World) -> bool {
    users(world)
        .into_iter()
        .all(|id| world.process::<UserProcess>(id).is_idle())
}

fn no_sessions(world: &World) -> bool {
    all_archives(world, |archive| archive.sessions()[1..] == [0, 0])
}

/// Publishes a stream that is recorded.
fn record_stream(
    world: &mut World,
    local: ProcessId,
    (label, media): (u32, Media),
) -> Result<(), Violation> {
    let until = world.elapsed() + RECOVERY_BOUND;
    while !world.process::<UserProcess>(local).has_published(label) {
        if world.elapsed() > until {
            return Err(Violation(format!(
                "no stream is recorded\n{}",
                describe(world)
            )));
        }
        // A request of a session with an archive that is gone is lost, and so are the streams of a user whose driver was.
        with_journal(world, local, |user, journal| {
            user.publish((label, media), (20, 500), journal);
            user.record(label, false);
        });
        world.run_for(Duration::from_secs(2));
        supervise(world);
    }
    Ok(())
}

/// Ends all faults: everything has to work again, and nothing may be left.
fn finish(world: &mut World) -> Result<(), Violation> {
    let journal = world.shared_mut::<Journal>();
    journal.scenario_counts = journal.counts;
    world.set_faults(LinkFaults::default());
    partition(world, false);
    for host in (0..HOSTS).map(HostIndex::at) {
        world.stall_host(host, Duration::ZERO);
    }
    supervise(world);
    await_all(
        world,
        "archive and users are connected",
        RECOVERY_BOUND,
        is_ready,
    )?;

    let local = users(world)[0];
    record_stream(world, local, (LAST_TRACK, Media::Ipc))?;
    let merged = replicas::merge(world)?;

    // All recordings end.
    for id in users(world) {
        let user = world.process_mut::<UserProcess>(id);
        user.close_all_tracks();
        user.hold_replays(false);
    }
    for id in users(world) {
        // That of another host records at the same archive as the local one.
        if world.process::<UserProcess>(id).addresses().is_local {
            world.process_mut::<UserProcess>(id).stop_all();
        }
    }
    await_all(
        world,
        "all recordings and replays have ended",
        RECOVERY_BOUND * 2,
        |world| are_idle(world) && no_sessions(world),
    )?;
    if let Some((replica, source)) = merged {
        // The catalog is written.
        world.run_for(Duration::from_millis(500));
        replicas::compare(world, replica, source, true)?;
    }

    // Power is lost, so that the files are checked.
    operations::cut_power(world);
    await_all(
        world,
        "archive and users are connected again",
        RECOVERY_BOUND,
        is_ready,
    )?;
    let local = users(world)[0];
    let replays: Vec<_> = world
        .shared::<Journal>()
        .into_iter()
        .flat_map(Journal::recordings)
        .filter(|(_, known)| !known.may_be_gone && !known.is_gone && !known.is_unavailable)
        .filter(|(_, known)| {
            known.suspects.is_empty() && known.first_start.is_some_and(|start| known.floor > start)
        })
        .map(|(id, known)| (id, known.floor))
        .collect();
    for (recording_id, end) in replays {
        let known = world.shared_mut::<Journal>().recording(recording_id);
        if known.may_be_gone {
            // Retention has purged it meanwhile.
            continue;
        }
        let wanted = WantedReplay {
            recording_id,
            position: None,
            time_ms: None,
            length: None,
            until_now: true,
            must_reach: Some(end),
        };
        with_journal(world, local, |user, journal| {
            user.replay(wanted, recording_id % 2 == 0, journal)
        });
        await_all(world, "a replay is complete", REPLAY_BOUND, |world| {
            world.process::<UserProcess>(local).is_idle()
        })?;
    }
    await_all(world, "all replays have ended", RECOVERY_BOUND, no_sessions)?;
    replicas::finish(world)?;

    for id in users(world) {
        world.process_mut::<UserProcess>(id).close();
    }
    await_all(world, "all sessions have ended", RECOVERY_BOUND, |world| {
        all_archives(world, |archive| archive.sessions() == [0; 3])
    })?;
    for id in archives(world).unwrap_or_default() {
        world.process_mut::<ArchiveProcess>(id).close();
    }
    world.run_for(CLEANUP);
    // The mark file stays when an archive ends.
    let mark = std::path::Path::new(DIRECTORY).join(MARK_FILE);
    for host in (0..HOSTS).map(HostIndex::at) {
        if role_at(world, host).is_some()
            && let Err(error) = world.storage(host).remove(&mark)
        {
            return Err(Violation(format!("the mark file is gone: {error}")));
        }
    }
    world.expect_nothing_left();
    Ok(())
}
