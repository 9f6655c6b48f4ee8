// SPDX-License-Identifier: Apache-2.0
//! Operations on an archive and its users in random worlds, beside power cuts and faults of disks.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use taran_sim::network::LinkFaults;
use taran_sim::scenario::{Operation, Setting};
use taran_sim::{HostIndex, ProcessId, World};

use super::archive::ArchiveProcess;
use super::journal::{Journal, Role};
use super::user::{Media, UserProcess, WantedReplay, WantedReplication};
use super::{ARCHIVE_HOST, restart_archive, restart_user, role_at, with_journal};
use crate::counters::type_id;

/// Ways of streams into the archive, among which random ones are.
const MEDIA: [Media; 5] = [
    Media::Ipc,
    Media::Ipc,
    Media::Udp,
    Media::Spied,
    Media::Shared,
];
/// Name of the consumer that retention respects.
pub(super) const CONSUMER: &str = "risk";
/// Number of streams.
const TRACKS: u32 = 4;
/// Highest number of operations in a scenario.
const OPERATIONS: usize = 40;
/// Highest number of disturbances in a scenario.
const DISTURBANCES: usize = 8;

/// A user's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UserAction {
    /// Publishes on a stream.
    Publish {
        track: u32,
        media: Media,
        messages: u64,
        longest: usize,
    },
    /// Closes a publication.
    Close { track: u32 },
    /// Records a stream.
    Record { track: u32, auto_stop: bool },
    /// Stops a recording.
    Stop { recording: usize },
    /// Extends a recording with a new publication.
    Extend { track: u32, recording: usize },
    /// Ends a recording at a frame before its end, at this share per mille.
    Truncate { recording: usize, share: u32 },
    /// Deletes a recording.
    Purge { recording: usize },
    /// Deletes the first segments.
    PurgeSegments { recording: usize, segments: u32 },
    /// Replays from a frame at this share per mille.
    Replay {
        recording: usize,
        share: u32,
        length: Option<u32>,
        until_now: bool,
        ipc: bool,
    },
    /// Lists all recordings.
    List,
    /// Reads no replays for now, or reads them again.
    HoldReplays { is_held: bool },
    /// Tells the position of a consumer of a recording, at this share per mille.
    Consume { recording: usize, share: u32 },
    /// Replicates a recording of the source, up to the position at this share per mille or to its end.
    Replicate {
        recording: usize,
        stop_share: Option<u32>,
        extends: bool,
    },
    /// Replicates a recording of the source, and joins its live stream.
    Merge { recording: usize, extends: bool },
    /// Stops a replication.
    StopReplication,
}

/// A user's call to an archive, or on a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UserCall {
    /// Number of the user: that of its host, or 2 for the user of the replica.
    host: usize,
    action: UserAction,
}

/// Number of the user of the replica.
const REPLICA_USER: usize = 2;
/// Highest number of calls of the user of the replica in a scenario.
const REPLICA_CALLS: usize = 14;

/// Returns the living user with a number.
fn user(world: &World, number: usize) -> Option<ProcessId> {
    let mut users = world.processes::<UserProcess>();
    let found = users.find(|(id, user)| {
        let is_wanted = match user.addresses().role {
            Role::Source => world.host_of_process(*id).number() == number,
            Role::Replica => number == REPLICA_USER,
        };
        world.is_alive(*id) && is_wanted
    });
    found.map(|(id, _)| id)
}

/// Returns the process of the source archive if it is alive.
pub(super) fn archive(world: &World) -> Option<ProcessId> {
    archive_of(world, Role::Source)
}

/// Returns the process of an archive if it is alive.
pub(super) fn archive_of(world: &World, role: Role) -> Option<ProcessId> {
    let mut archives = world.processes::<ArchiveProcess>();
    archives
        .find(|(id, archive)| archive.settings().role == role && world.is_alive(*id))
        .map(|(id, _)| id)
}

/// Starts processes again that have ended by themselves, as a service manager does.
pub(super) fn supervise(world: &mut World) {
    for role in [Role::Source, Role::Replica] {
        let ended = archive_of(world, role)
            .filter(|id| world.process::<ArchiveProcess>(*id).ended().is_some());
        if let Some(id) = ended {
            world.shared_mut::<Journal>().counts.fatal_ends += 1;
            world.kill(id);
            restart_archive(world, id);
        }
    }
    for number in 0..=REPLICA_USER {
        let lost = user(world, number).filter(|id| world.process::<UserProcess>(*id).is_lost());
        if let Some(id) = lost {
            world.kill(id);
            restart_user(world, id);
        }
    }
    for host in (0..world.host_count()).map(HostIndex::at) {
        if world.is_on(host) && !world.has_driver(host) {
            // A driver that was killed counts as alive for some seconds.
            let _ = world.try_start_driver(host);
        }
    }
}

/// Cuts the power of the archive's host, and returns it.
pub(super) fn cut_power(world: &mut World) {
    cut_power_of(world, HostIndex::at(ARCHIVE_HOST));
}

/// Cuts the power of a host, and returns it.
pub(super) fn cut_power_of(world: &mut World, host: HostIndex) {
    world.power_cut(host);
    world.boot(host);
}

/// Kills the archive, and starts it again. Returns false if it is dead.
pub(super) fn kill_archive(world: &mut World) -> bool {
    kill_archive_of(world, Role::Source)
}

fn kill_archive_of(world: &mut World, role: Role) -> bool {
    let Some(id) = archive_of(world, role) else {
        return false;
    };
    world.kill(id);
    restart_archive(world, id);
    true
}

/// Returns the recording at an index, counted around.
fn recording(world: &World, index: usize) -> Option<(i64, i64, i32)> {
    let journal = world.shared::<Journal>()?;
    let known: Vec<_> = journal
        .recordings()
        .filter(|(_, known)| !known.is_gone)
        .collect();
    let (id, known) = known.get(index % known.len().max(1))?;
    Some((*id, known.floor, known.stream_id))
}

/// Returns the start of a message of a stream at a share of those below a position.
fn frame_at(world: &mut World, stream_id: i32, below: i64, share: u32) -> Option<i64> {
    let starts: Vec<i64> = world
        .shared_mut::<Journal>()
        .ledger(stream_id)
        .starts()
        .filter(|start| *start <= below)
        .collect();
    let at = starts.len() * share as usize / 1_001;
    starts.get(at).copied()
}

impl UserAction {
    fn random(random: &mut Rng) -> Self {
        let track = random.u32(0..TRACKS);
        let recording = random.usize(0..6);
        match random.u32(0..33) {
            0..10 => Self::Publish {
                track,
                media: MEDIA[random.usize(0..MEDIA.len())],
                messages: 1 << random.u32(0..9),
                longest: [50, 500, 1_376, 5_000][random.usize(0..4)],
            },
            10 => Self::Close { track },
            11..16 => Self::Record {
                track,
                auto_stop: random.bool(),
            },
            16 | 17 => Self::Stop { recording },
            18 | 19 => Self::Extend {
                track: track + TRACKS,
                recording,
            },
            20 => Self::Truncate {
                recording,
                share: random.u32(0..=1_000),
            },
            21 => Self::Purge { recording },
            22 => Self::PurgeSegments {
                recording,
                segments: random.u32(1..4),
            },
            23..28 => Self::Replay {
                recording,
                share: if random.bool() {
                    0
                } else {
                    random.u32(0..=1_000)
                },
                length: random.bool().then(|| random.u32(1..200_000)),
                until_now: random.bool(),
                ipc: random.bool(),
            },
            28 => Self::HoldReplays {
                is_held: random.bool(),
            },
            29 => Self::Consume {
                recording,
                share: random.u32(0..=1_000),
            },
            _ => Self::List,
        }
    }

    /// An action of the user of the replica.
    fn random_of_replica(random: &mut Rng) -> Self {
        let recording = random.usize(0..6);
        match random.u32(0..17) {
            14..17 => Self::Merge {
                recording,
                extends: random.bool(),
            },
            0..7 => Self::Replicate {
                recording,
                stop_share: (random.u32(0..3) == 0).then(|| random.u32(0..=1_000)),
                extends: random.bool(),
            },
            7 => Self::StopReplication,
            8 | 9 => Self::Replay {
                recording,
                share: 0,
                length: None,
                until_now: true,
                ipc: random.bool(),
            },
            10 => Self::Truncate {
                recording,
                share: random.u32(0..=1_000),
            },
            11 => Self::Purge { recording },
            12 => Self::PurgeSegments {
                recording,
                segments: random.u32(1..3),
            },
            _ => Self::List,
        }
    }
}

impl Operation for UserCall {
    const NAME: &'static str = "user call";

    fn generate(random: &mut Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let mut operations: Vec<(u64, Self)> = (0..2)
            .flat_map(|host| {
                // Most worlds begin with streams that are recorded.
                let track = random.u32(0..TRACKS);
                let media = match host {
                    0 if random.bool() => Media::Shared,
                    0 => Media::Ipc,
                    _ => Media::Udp,
                };
                let publish = UserAction::Publish {
                    track,
                    media,
                    messages: 200,
                    longest: 1_376,
                };
                let record = UserAction::Record {
                    track,
                    auto_stop: false,
                };
                [(400, publish), (401, record)]
                    .map(|(at_ms, action)| (at_ms, Self { host, action }))
            })
            .collect();
        operations.extend((0..random.usize(1..=OPERATIONS)).map(|_| {
            let at_ms = random.u64(400..=setting.duration_ms.max(401));
            let host = random.usize(0..setting.hosts);
            let action = UserAction::random(random);
            (at_ms, Self { host, action })
        }));
        operations.extend((0..random.usize(0..=REPLICA_CALLS)).map(|_| {
            let at_ms = random.u64(400..=setting.duration_ms.max(401));
            let action = UserAction::random_of_replica(random);
            (
                at_ms,
                Self {
                    host: REPLICA_USER,
                    action,
                },
            )
        }));
        operations
    }

    fn apply(&self, world: &mut World) -> bool {
        supervise(world);
        let Some(id) = user(world, self.host) else {
            return false;
        };
        // Recordings are chosen among those of the user's archive.
        let role = world.process::<UserProcess>(id).addresses().role;
        let chosen_source = match self.action {
            UserAction::Replicate {
                recording: index, ..
            }
            | UserAction::Merge {
                recording: index, ..
            } => recording(world, index),
            _ => None,
        };
        world.shared_mut::<Journal>().select(role);
        let is_done = self.apply_to(world, id, chosen_source);
        world.shared_mut::<Journal>().select(Role::Source);
        is_done
    }

    fn simpler(&self) -> Vec<Self> {
        let Self { host, action } = *self;
        match action {
            UserAction::Publish {
                track,
                media,
                messages,
                longest,
            } if messages > 1 => vec![Self {
                host,
                action: UserAction::Publish {
                    track,
                    media,
                    messages: messages / 2,
                    longest,
                },
            }],
            _ => Vec::new(),
        }
    }
}

impl UserCall {
    /// Applies the operation while the user's archive is selected.
    fn apply_to(&self, world: &mut World, id: ProcessId, source: Option<(i64, i64, i32)>) -> bool {
        match self.action {
            UserAction::Publish {
                track,
                media,
                messages,
                longest,
            } => with_journal(world, id, |user, journal| {
                user.publish((track, media), (messages, longest), journal)
            }),
            UserAction::Close { track } => world.process_mut::<UserProcess>(id).close_track(track),
            UserAction::Record { track, auto_stop } => world
                .process_mut::<UserProcess>(id)
                .record(track, auto_stop),
            UserAction::Stop { recording: index } => {
                recording(world, index).is_some_and(|(recording_id, ..)| {
                    world
                        .process_mut::<UserProcess>(id)
                        .stop_recording(recording_id)
                })
            }
            UserAction::Extend {
                track,
                recording: index,
            } => recording(world, index).is_some_and(|(recording_id, ..)| {
                world
                    .process_mut::<UserProcess>(id)
                    .extend(track, recording_id)
            }),
            UserAction::Truncate {
                recording: index,
                share,
            } => {
                let Some((recording_id, floor, stream_id)) = recording(world, index) else {
                    return false;
                };
                let Some(position) = frame_at(world, stream_id, floor, share) else {
                    return false;
                };
                with_journal(world, id, |user, journal| {
                    user.truncate(recording_id, position, journal)
                })
            }
            UserAction::Purge { recording: index } => {
                let Some((recording_id, ..)) = recording(world, index) else {
                    return false;
                };
                with_journal(world, id, |user, journal| user.purge(recording_id, journal))
            }
            UserAction::PurgeSegments {
                recording: index,
                segments,
            } => recording(world, index).is_some_and(|(recording_id, ..)| {
                world
                    .process_mut::<UserProcess>(id)
                    .purge_segments(recording_id, segments)
            }),
            UserAction::Replay {
                recording: index,
                share,
                length,
                until_now,
                ipc,
            } => {
                let Some((recording_id, floor, stream_id)) = recording(world, index) else {
                    return false;
                };
                let position = match share {
                    0 => None,
                    share => frame_at(world, stream_id, floor, share),
                };
                let wanted = WantedReplay {
                    recording_id,
                    position,
                    time_ms: None,
                    length: length.map(i64::from),
                    until_now: until_now && length.is_none(),
                    must_reach: None,
                };
                with_journal(world, id, |user, journal| user.replay(wanted, ipc, journal))
            }
            UserAction::List => with_journal(world, id, |user, journal| user.list(journal)),
            UserAction::HoldReplays { is_held } => {
                world.process_mut::<UserProcess>(id).hold_replays(is_held);
                true
            }
            UserAction::Consume {
                recording: index,
                share,
            } => {
                let Some((recording_id, floor, _)) = recording(world, index) else {
                    return false;
                };
                let position = floor * i64::from(share) / 1_000;
                let mut key = recording_id.to_le_bytes().to_vec();
                key.extend_from_slice(CONSUMER.as_bytes());
                // The archive at the user's driver sees the counter, whichever archive the user means.
                let here = role_at(world, world.host_of_process(id));
                with_journal(world, id, |user, journal| {
                    if let Some(role) = here {
                        let before = journal.select(role);
                        journal.on_consumed(recording_id, position);
                        journal.select(before);
                    }
                    user.add_counter(type_id::CONSUMER_POSITION, &key, position);
                    true
                })
            }
            UserAction::Replicate {
                stop_share,
                extends,
                ..
            } => replicate(world, id, source, (stop_share, extends, false)),
            UserAction::Merge { extends, .. } => {
                replicate(world, id, source, (None, extends, true))
            }
            UserAction::StopReplication => world.process_mut::<UserProcess>(id).stop_replication(),
        }
    }
}

/// Asks for a replication of a recording of the source, while the replica is selected.
fn replicate(
    world: &mut World,
    id: ProcessId,
    source: Option<(i64, i64, i32)>,
    (stop_share, extends, is_live): (Option<u32>, bool, bool),
) -> bool {
    let Some((source, floor, stream_id)) = source else {
        return false;
    };
    let stop = stop_share.and_then(|share| frame_at(world, stream_id, floor, share));
    with_journal(world, id, |user, journal| {
        let destination = journal
            .recordings()
            .filter(|(_, known)| known.stream_id == stream_id && !known.is_gone)
            .map(|(id, _)| id)
            .last()
            .filter(|_| extends);
        if let Some(destination) = destination {
            journal.recording(destination).extended_by.push(source);
        }
        let session_id = (!is_live).then(|| journal.new_session_of(stream_id));
        user.replicate(WantedReplication {
            source,
            destination,
            stop,
            session_id: session_id.flatten(),
            is_live,
        })
    })
}

/// A disturbance of a process or the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Disturbance {
    /// Kills the archive, and starts it again.
    KillArchive,
    /// Kills a user, and starts it again.
    KillUser { host: usize },
    /// Kills a driver.
    KillDriver { host: usize },
    /// Kills the archive of the replica, and starts it again.
    KillReplica,
    /// Pauses the archive.
    StallArchive { ms: u64 },
    /// Pauses the archive of the replica.
    StallReplica { ms: u64 },
    /// Loses datagrams at this rate per mille.
    Lose { per_mille: u32 },
    /// Loses all datagrams between the hosts, or none.
    Partition { is_cut: bool },
    /// Steps the wall clock of the archive's host.
    StepClock { by_ms: i64 },
}

impl Operation for Disturbance {
    const NAME: &'static str = "disturbance";

    fn generate(random: &mut Rng, setting: &Setting) -> Vec<(u64, Self)> {
        (0..random.usize(0..=DISTURBANCES))
            .map(|_| {
                let disturbance = match random.u32(0..15) {
                    0..4 => Self::KillArchive,
                    4 => Self::KillUser {
                        host: random.usize(0..=setting.hosts),
                    },
                    5 => Self::KillDriver {
                        host: random.usize(0..setting.hosts),
                    },
                    6 | 7 => Self::StallArchive {
                        ms: random.u64(1..4_000),
                    },
                    8 => Self::Lose {
                        per_mille: random.u32(0..100),
                    },
                    9 | 10 => Self::Partition {
                        is_cut: random.bool(),
                    },
                    11 | 12 => Self::KillReplica,
                    13 => Self::StallReplica {
                        ms: random.u64(1..4_000),
                    },
                    _ => Self::StepClock {
                        by_ms: random.i64(-10_000_000..10_000_000),
                    },
                };
                (random.u64(0..=setting.duration_ms), disturbance)
            })
            .collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        supervise(world);
        match *self {
            Self::KillArchive => kill_archive(world),
            Self::KillReplica => kill_archive_of(world, Role::Replica),
            Self::KillUser { host } => {
                let Some(id) = user(world, host) else {
                    return false;
                };
                world.kill(id);
                restart_user(world, id);
                true
            }
            Self::KillDriver { host } => {
                let host = HostIndex::at(host);
                let has_driver = world.is_on(host) && world.has_driver(host);
                if has_driver {
                    world.kill_driver(host);
                }
                has_driver
            }
            Self::StallArchive { ms } => {
                let Some(id) = archive(world) else {
                    return false;
                };
                world.stall(id, Duration::from_millis(ms));
                true
            }
            Self::StallReplica { ms } => {
                let Some(id) = archive_of(world, Role::Replica) else {
                    return false;
                };
                world.stall(id, Duration::from_millis(ms));
                true
            }
            Self::Lose { per_mille } => {
                world.set_faults(LinkFaults::loss(f64::from(per_mille) / 1_000.0));
                true
            }
            Self::Partition { is_cut } => {
                partition(world, is_cut);
                true
            }
            Self::StepClock { by_ms } => {
                world.step_clock(HostIndex::at(ARCHIVE_HOST), by_ms);
                world.shared_mut::<Journal>().on_clock_step(by_ms);
                true
            }
        }
    }
}

/// Cuts the links between both hosts, or restores them.
pub(super) fn partition(world: &World, is_cut: bool) {
    let [one, other] = [0, 1].map(|host| world.network_id(HostIndex::at(host)));
    for (from, to) in [(one, other), (other, one)] {
        if is_cut {
            world.network().cut(from, to);
        } else {
            world.network().heal(from, to);
        }
    }
}
