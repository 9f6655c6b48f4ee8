// SPDX-License-Identifier: Apache-2.0
//! Replicas and their sources.

use std::path::Path;
use std::time::Duration;

use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::align32;
use taran_sim::{HostIndex, ProcessId, Violation, World};
use taran_storage::{Disk, OpenOptions};
use zerocopy::FromBytes;

use super::archive::DIRECTORY;
use super::journal::{Journal, Known, Role};
use super::operations::cut_power_of;
use super::user::{UserProcess, WantedReplication};
use super::{
    ARCHIVE_HOST, RECOVERY_BOUND, REPLICA_HOST, are_idle, await_all, describe, is_ready,
    no_sessions, users, with_journal,
};
use crate::files::{CatalogFile, CatalogOptions, Descriptor};
use crate::recorder::segment_path;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;
/// Recordings that are replicated at the end.
const REPLICATED_LAST: usize = 2;
/// Time within which a replication without faults ends.
const BOUND: Duration = Duration::from_secs(60);

/// Replicates some recordings without faults, and compares all replicas with their sources.
pub(super) fn finish(world: &mut World) -> Result<(), Violation> {
    if !world.shared_mut::<Journal>().has_replica() {
        return Ok(());
    }
    let is_replica =
        |world: &World, id| world.process::<UserProcess>(id).addresses().role == Role::Replica;
    let replica_user = users(world).into_iter().find(|id| is_replica(world, *id));
    let Some(replica_user) = replica_user else {
        return Err(Violation("the replica has no user".to_owned()));
    };
    let sources: Vec<i64> = world
        .shared_mut::<Journal>()
        .recordings()
        .filter(|(_, known)| {
            is_whole(known) && known.first_start.is_some_and(|start| known.floor > start)
        })
        .map(|(id, _)| id)
        .take(REPLICATED_LAST)
        .collect();
    for source in sources {
        let replica = replicate(world, replica_user, source)?;
        compare(world, replica, source, true)?;
    }
    cut_power_of(world, HostIndex::at(REPLICA_HOST));
    await_all(world, "the replica is back", RECOVERY_BOUND, is_ready)?;
    let pairs: Vec<_> = world.shared_mut::<Journal>().replicas().collect();
    for (replica, source) in pairs {
        compare(world, replica, source, false)?;
    }
    Ok(())
}

/// Replicates a recording to a new one; returns its id. A request to an archive that is gone, which its user has not noticed yet,
/// is lost.
fn replicate(world: &mut World, user: ProcessId, source: i64) -> Result<i64, Violation> {
    let until = world.elapsed() + RECOVERY_BOUND;
    let before = latest_replica(world, source);
    while world.elapsed() < until {
        await_all(world, "the replica is ready", RECOVERY_BOUND, is_ready)?;
        with_journal(world, user, |user, journal| {
            let stream_id = journal.source(source).map_or(0, |known| known.stream_id);
            user.replicate(WantedReplication {
                source,
                destination: None,
                stop: None,
                session_id: journal.new_session_of(stream_id),
            })
        });
        await_all(world, "a replication has ended", BOUND, |world| {
            are_idle(world) && no_sessions(world)
        })?;
        match latest_replica(world, source) {
            Some(replica) if before != Some(replica) => return Ok(replica),
            _ => {}
        }
    }
    let refusal = world.shared_mut::<Journal>().last_refusal.take();
    Err(Violation(format!(
        "recording {source} was not replicated; last refusal: {refusal:?}\n{}",
        describe(world)
    )))
}

fn latest_replica(world: &mut World, source: i64) -> Option<i64> {
    let replicas = world.shared_mut::<Journal>().replicas();
    let of_source = replicas.filter(|(_, of)| *of == source);
    of_source.map(|(replica, _)| replica).last()
}

/// Returns true if nothing was asked for that makes a recording differ from what it was.
fn is_whole(known: &Known) -> bool {
    !known.may_be_gone
        && !known.is_gone
        && !known.is_unavailable
        && !known.was_truncated
        && known.suspects.is_empty()
}

/// Checks that each frame of both recordings is the same but for its session. If `is_complete`, the replica has all of its
/// source.
fn compare(
    world: &mut World,
    replica: i64,
    source: i64,
    is_complete: bool,
) -> Result<(), Violation> {
    let journal = world.shared_mut::<Journal>();
    journal.select(Role::Replica);
    let of_replica = journal.recording(replica).clone();
    let of_source = journal.source(source).cloned().unwrap_or_default();
    let is_unsuspected = journal.is_unsuspected(of_source.stream_id);
    journal.select(Role::Source);
    // Another recording may have got the id.
    let is_same = of_replica.stream_id == of_source.stream_id;
    if !is_whole(&of_source) || !is_whole(&of_replica) || !is_unsuspected || !is_same {
        return Ok(());
    }
    let sides = [(ARCHIVE_HOST, source), (REPLICA_HOST, replica)];
    let [own, other] = sides.map(|(host, id)| Side::open(world, host, id));
    let (Some(own), Some(other)) = (own, other) else {
        return Ok(());
    };
    let (start, stop) = (
        own.descriptor
            .start_position
            .max(other.descriptor.start_position),
        own.descriptor
            .stop_position
            .min(other.descriptor.stop_position),
    );
    if is_complete && other.descriptor.stop_position != own.descriptor.stop_position {
        return Err(Violation(format!(
            "recording {source} ends at {}, and its replica {replica} at {}",
            own.descriptor.stop_position, other.descriptor.stop_position
        )));
    }
    let mut position = start;
    while position < stop {
        let (Some(one), Some(two)) = (own.frame(position), other.frame(position)) else {
            return Ok(());
        };
        if one != two {
            return Err(Violation(format!(
                "recording {source} and its replica {replica} differ at {position}"
            )));
        }
        position += one.span;
        world.shared_mut::<Journal>().counts.compared_frames += 1;
    }
    Ok(())
}

/// A frame without its session, whose field may hold a checksum.
#[derive(PartialEq, Eq)]
struct Frame {
    span: i64,
    header: Vec<u8>,
    payload: Vec<u8>,
}

/// A recording in the files of an archive.
struct Side {
    disk: taran_sim::disk::ProcessDisk,
    descriptor: Descriptor,
}

impl Side {
    /// Opens a stopped recording.
    fn open(world: &World, host: usize, recording_id: i64) -> Option<Self> {
        let disk = world.disk(HostIndex::at(host)).process();
        let options = CatalogOptions::default();
        let (catalog, _) = CatalogFile::read(&disk, Path::new(DIRECTORY), options).ok()?;
        let descriptor = catalog.get(recording_id)?.clone();
        (descriptor.stop_position >= 0).then_some(Self { disk, descriptor })
    }

    /// Reads a frame; `None` if it is not there, which recoveries check.
    fn frame(&self, position: i64) -> Option<Frame> {
        let layout = self.descriptor.layout().ok()?;
        let id = self.descriptor.recording_id;
        let path = segment_path(Path::new(DIRECTORY), id, layout.base_of(position));
        let file = self.disk.open(&path, OpenOptions::read()).ok()?;
        let offset = layout.offset_of(position);
        let mut bytes = [0; HEADER];
        file.read_exact_at(&mut bytes, offset).ok()?;
        let header = DataHeader::read_from_bytes(&bytes).ok()?;
        let length = header.header.frame_length.get();
        let is_data = header.header.frame_type() == FrameType::DATA;
        let mut payload = vec![
            0;
            if is_data {
                (length as usize).checked_sub(HEADER)?
            } else {
                0
            }
        ];
        file.read_exact_at(&mut payload, offset + HEADER as u64)
            .ok()?;
        bytes[12..16].fill(0);
        Some(Frame {
            span: i64::from(align32(length)).max(32),
            header: bytes.to_vec(),
            payload,
        })
    }
}
