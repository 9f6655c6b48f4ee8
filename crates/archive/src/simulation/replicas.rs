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
use super::fixture::{Fixture, SEGMENT};
use super::journal::{Journal, Known, Role};
use super::operations::{cut_power_of, supervise};
use super::user::{Media, UserProcess, WantedReplication};
use super::{
    ARCHIVE_HOST, LAST_TRACK, RECOVERY_BOUND, REPLICA_HOST, are_idle, await_all, describe,
    is_ready, no_sessions, record_stream, users, with_journal,
};
use crate::files::{CATALOG_FILE, CatalogFile, CatalogOptions, Descriptor};
use crate::recorder::segment_path;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;
/// Recordings that are replicated at the end.
const REPLICATED_LAST: usize = 2;
/// Label of the stream that is replicated while it is published.
const MERGED_TRACK: u32 = LAST_TRACK + 1;
/// Time within which a replication without faults ends.
const BOUND: Duration = Duration::from_secs(60);

/// Replicates a recording while its stream is published, joins that, and goes on for a while. Returns replica and source;
/// `None` if there is no replica.
pub(super) fn merge(world: &mut World) -> Result<Option<(i64, i64)>, Violation> {
    if !world.shared_mut::<Journal>().has_replica() {
        return Ok(None);
    }
    let (local, replica_user) = (users(world)[0], user(world)?);
    record_stream(world, local, (MERGED_TRACK, Media::Shared))?;
    let published = |world: &World| world.process::<UserProcess>(local).published(MERGED_TRACK);
    let lost = || Violation("the stream to merge with is gone".to_owned());
    let (stream_id, _) = published(world).ok_or_else(lost)?;
    let recording_of = |world: &World, role| {
        let journal = world.shared::<Journal>()?;
        let found = journal.recordings_of(role);
        let mut found = found.filter(|(_, known)| known.stream_id == stream_id);
        found.next_back().map(|(id, known)| (id, known.floor))
    };
    await_all(
        world,
        "the stream to merge with is recorded",
        BOUND,
        |world| recording_of(world, Role::Source).is_some_and(|(_, floor)| floor > 0),
    )?;
    let (source, _) = recording_of(world, Role::Source).ok_or_else(lost)?;

    let merges = |world: &World| {
        let journal = world.shared::<Journal>();
        journal.map_or(0, |journal| journal.counts.merges)
    };
    let (before, until) = (merges(world), world.elapsed() + RECOVERY_BOUND);
    while merges(world) == before {
        if world.elapsed() > until {
            return Err(Violation(format!(
                "the replication of recording {source} does not join its live stream\n{}",
                describe(world)
            )));
        }
        // A request to an archive that is gone is lost.
        let user = world.process::<UserProcess>(replica_user);
        if !user.is_replicating(source) {
            with_journal(world, replica_user, |user, _| {
                user.replicate(WantedReplication {
                    source,
                    destination: None,
                    stop: None,
                    session_id: None,
                    is_live: true,
                })
            });
        }
        publish_more(world, local);
        world.run_for(Duration::from_millis(200));
        supervise(world);
    }
    for _ in 0..10 {
        publish_more(world, local);
        world.run_for(Duration::from_millis(50));
    }
    let end = |world: &World| published(world).map(|(_, position)| position);
    let recorded = |world: &World, role| recording_of(world, role).map(|(_, floor)| floor);
    let is_recorded = |world: &World| {
        let (one, two) = (
            recorded(world, Role::Source),
            recorded(world, Role::Replica),
        );
        world
            .process::<UserProcess>(local)
            .has_published(MERGED_TRACK)
            && one == end(world)
            && two == one
    };
    await_all(world, "all is recorded twice", BOUND, is_recorded).map_err(|Violation(text)| {
        let (one, two) = (
            recorded(world, Role::Source),
            recorded(world, Role::Replica),
        );
        Violation(format!(
            "recording {source} is at {one:?} of {:?}, and its replica at {two:?}: {text}",
            end(world)
        ))
    })?;
    let (replica, _) = recording_of(world, Role::Replica).ok_or_else(lost)?;
    Ok(Some((replica, source)))
}

/// Publishes some messages on the stream to merge with.
fn publish_more(world: &mut World, local: ProcessId) {
    with_journal(world, local, |user, journal| {
        user.publish((MERGED_TRACK, Media::Shared), (5, 1_000), journal)
    });
}

/// Replicates some recordings without faults, and compares all replicas with their sources.
pub(super) fn finish(world: &mut World) -> Result<(), Violation> {
    if !world.shared_mut::<Journal>().has_replica() {
        return Ok(());
    }
    let replica_user = user(world)?;
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
        if let Some(replica) = replicate(world, replica_user, source)? {
            compare(world, replica, source, true)?;
        }
    }
    cut_power_of(world, HostIndex::at(REPLICA_HOST));
    await_all(world, "the replica is back", RECOVERY_BOUND, is_ready)?;
    let pairs: Vec<_> = world.shared_mut::<Journal>().replicas().collect();
    for (replica, source) in pairs {
        compare(world, replica, source, false)?;
    }
    Ok(())
}

/// Returns the user of the replica.
fn user(world: &World) -> Result<ProcessId, Violation> {
    let is_of_replica =
        |id: &ProcessId| world.process::<UserProcess>(*id).addresses().role == Role::Replica;
    let found = users(world).into_iter().find(is_of_replica);
    found.ok_or_else(|| Violation("the replica has no user".to_owned()))
}

/// Replicates a recording to a new one; returns its id, or `None` if retention purges the source. A request to an archive that
/// is gone, which its user has not noticed yet, is lost.
fn replicate(world: &mut World, user: ProcessId, source: i64) -> Result<Option<i64>, Violation> {
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
                is_live: false,
            })
        });
        await_all(world, "a replication has ended", BOUND, |world| {
            are_idle(world) && no_sessions(world)
        })?;
        // The catalog is written.
        world.run_for(Duration::from_millis(500));
        match latest_replica(world, source) {
            Some(replica) if before != Some(replica) => return Ok(Some(replica)),
            _ => {}
        }
        if world.shared_mut::<Journal>().recording(source).may_be_gone {
            return Ok(None);
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

/// Checks that both recordings can be read, and that each frame of both is the same but for its session. If `is_complete`, the
/// replica has all of its source.
pub(super) fn compare(
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
    // Of one without a position, nothing was acknowledged, or a power cut has taken it back.
    if !is_complete && (of_source.floor == 0 || of_replica.floor == 0) {
        return Ok(());
    }
    let own = Side::open(world, ARCHIVE_HOST, source)?;
    let other = Side::open(world, REPLICA_HOST, replica)?;
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
    // A replica that has joined the live stream may have more of it than its source, which may then go on with another one.
    let stop = match of_source.extended_from {
        Some(extended_from) if of_replica.was_merged => stop.min(extended_from),
        _ => stop,
    };
    let mut position = start;
    while position < stop {
        let (one, two) = (own.frame(position)?, other.frame(position)?);
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
    host: usize,
    disk: taran_sim::disk::ProcessDisk,
    descriptor: Descriptor,
}

impl Side {
    /// Opens a stopped recording.
    fn open(world: &World, host: usize, recording_id: i64) -> Result<Self, Violation> {
        let disk = world.disk(HostIndex::at(host)).process();
        let options = CatalogOptions::default();
        let failed = |what: String| {
            Violation(format!(
                "recording {recording_id} of the archive at host {host} cannot be compared: {what}"
            ))
        };
        let read = CatalogFile::read(&disk, Path::new(DIRECTORY), options);
        let (catalog, _) = read.map_err(|error| failed(error.to_string()))?;
        let descriptor = catalog.get(recording_id).cloned();
        let descriptor = descriptor.ok_or_else(|| failed("the catalog has none".to_owned()))?;
        if descriptor.stop_position < 0 {
            return Err(failed("it has no stop position".to_owned()));
        }
        Ok(Self {
            host,
            disk,
            descriptor,
        })
    }

    /// Reads a frame.
    fn frame(&self, position: i64) -> Result<Frame, Violation> {
        self.read(position).map_err(|what| {
            Violation(format!(
                "recording {} of the archive at host {} cannot be compared at {position}: {what}",
                self.descriptor.recording_id, self.host
            ))
        })
    }

    fn read(&self, position: i64) -> Result<Frame, String> {
        let layout = self.descriptor.layout();
        let layout = layout.map_err(|error| error.to_string())?;
        let id = self.descriptor.recording_id;
        let path = segment_path(Path::new(DIRECTORY), id, layout.base_of(position));
        let file = self.disk.open(&path, OpenOptions::read());
        let file = file.map_err(|error| error.to_string())?;
        let offset = layout.offset_of(position);
        let mut bytes = [0; HEADER];
        file.read_exact_at(&mut bytes, offset)
            .map_err(|error| error.to_string())?;
        let header = DataHeader::read_from_bytes(&bytes).map_err(|error| error.to_string())?;
        let length = header.header.frame_length.get();
        let payload_length = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_sub(HEADER))
            .ok_or_else(|| format!("the frame has the length {length}"))?;
        let is_data = header.header.frame_type() == FrameType::DATA;
        let mut payload = vec![0; if is_data { payload_length } else { 0 }];
        file.read_exact_at(&mut payload, offset + HEADER as u64)
            .map_err(|error| error.to_string())?;
        bytes[12..16].fill(0);
        Ok(Frame {
            span: i64::from(align32(length)),
            header: bytes.to_vec(),
            payload,
        })
    }
}

/// Records some segments, and replicates them.
fn replicated() -> (Fixture, i64) {
    let mut fixture = Fixture::with_replica();
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 300);
    fixture.stop();
    assert!(fixture.floor(0) > SEGMENT);
    let replica_user = user(&fixture.world).unwrap();
    let replica = replicate(&mut fixture.world, replica_user, 0).unwrap();
    let replica = replica.expect("nothing is purged");
    (fixture, replica)
}

#[test]
fn comparison_of_a_replica_reads_all_frames() {
    let (mut fixture, replica) = replicated();
    for is_complete in [true, false] {
        let before = fixture.world.shared_mut::<Journal>().counts.compared_frames;
        compare(&mut fixture.world, replica, 0, is_complete).unwrap();
        let after = fixture.world.shared_mut::<Journal>().counts.compared_frames;
        assert!(after - before >= 300, "{before} {after}");
    }
}

#[test]
fn replica_of_a_recording_that_starts_within_a_segment_has_all_of_it() {
    let mut fixture = Fixture::with_replica();
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    // The first recording only makes the stream flow.
    fixture.record(0);
    fixture.publish(0, 100);
    assert!(fixture.user(|user, _| user.stop_recording(0)));
    fixture.run_for(500);
    let first = fixture.floor(0);
    assert!(first > 0 && first % SEGMENT > 0, "{first}");
    fixture.record(0);
    fixture.publish(0, 100);
    fixture.stop();
    let replica_user = user(&fixture.world).unwrap();
    let replica = replicate(&mut fixture.world, replica_user, 1).unwrap();
    let replica = replica.expect("nothing is purged");
    compare(&mut fixture.world, replica, 1, true).unwrap();
    let compared = fixture.world.shared_mut::<Journal>().counts.compared_frames;
    assert!(compared >= 100, "{compared}");
}

#[test]
fn comparison_finds_a_side_that_cannot_be_read() {
    for (host, is_catalog) in [
        (ARCHIVE_HOST, false),
        (REPLICA_HOST, false),
        (ARCHIVE_HOST, true),
        (REPLICA_HOST, true),
    ] {
        let (mut fixture, replica) = replicated();
        let id = if host == ARCHIVE_HOST { 0 } else { replica };
        let name = if is_catalog {
            CATALOG_FILE.to_owned()
        } else {
            format!("{id}-{SEGMENT}.rec")
        };
        let disk = fixture.world.disk(HostIndex::at(host)).process();
        disk.remove_file(&Path::new(DIRECTORY).join(name)).unwrap();
        for is_complete in [true, false] {
            let found = compare(&mut fixture.world, replica, 0, is_complete);
            let Violation(text) = found.expect_err("a file is gone");
            let expected =
                format!("recording {id} of the archive at host {host} cannot be compared");
            assert!(text.contains(&expected), "{text}");
        }
    }
}

#[test]
fn replication_joins_a_live_stream_and_goes_on_with_it() {
    let mut fixture = Fixture::with_replica();
    let merged = merge(&mut fixture.world).unwrap();
    let (replica, source) = merged.expect("there is a replica");
    assert_eq!(fixture.world.shared_mut::<Journal>().counts.merges, 1);
    fixture.stop();
    compare(&mut fixture.world, replica, source, true).unwrap();
}

#[test]
fn retention_keeps_the_destination_of_a_replication_that_has_no_frame_yet() {
    // The first replica has the id 0, and so has a recording of the source that is not replicated.
    let settings = Fixture::settings(&[
        ("taran.archive.retention", "recording=0 age=5s"),
        ("taran.archive.retention.interval", "1ms"),
    ]);
    let mut fixture = Fixture::of_archives(settings, true);
    for label in [0, 1] {
        fixture.user(|user, journal| user.publish((label, Media::Ipc), (1, 100), journal));
        fixture.record(label);
    }
    fixture.publish(1, 20);
    // Retention of the source purges its own recording 0 as well.
    let known = fixture.world.shared_mut::<Journal>().recording(0);
    known.may_be_gone = true;
    // A new replica has the time at which its source was started, which is older than the rule's age.
    fixture.run_for(6_000);
    fixture.stop();
    let replica_user = user(&fixture.world).unwrap();
    let replica = replicate(&mut fixture.world, replica_user, 1).unwrap();
    assert_eq!(replica, Some(0));
    compare(&mut fixture.world, 0, 1, true).unwrap();
    let counts = fixture.world.shared_mut::<Journal>().counts;
    assert!(counts.compared_frames > 20, "{counts:?}");
}
