// SPDX-License-Identifier: Apache-2.0
//! Knowledge of the users of an archive: what was published, what was acknowledged, what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use taran_archive_client::Recording;
use taran_archive_client::protocol::ErrorCode;
use taran_sim::Violation;

use super::hooked_disk::Hooks;
use super::ledger::Ledger;
use crate::files::{Checksum, SyncLevel};

/// Nanoseconds per millisecond.
const MS: i64 = 1_000_000;
/// Difference in milliseconds up to which ages may differ by the precision of the clocks.
const AGE_TOLERANCE_MS: i64 = 5;
/// An archive does not notice steps of the wall clock of at most so many milliseconds.
const SMALL_STEP_MS: i64 = 1_000;

/// Knowledge of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) stream_id: i32,
    /// Position up to which the recording was acknowledged, and not taken back by a request.
    pub(super) floor: i64,
    /// Start position seen first or last.
    pub(super) first_start: Option<i64>,
    /// Highest start position that requests may have given it.
    pub(super) start_max: i64,
    /// True if its deletion was asked for.
    pub(super) may_be_gone: bool,
    /// True if its deletion was confirmed.
    pub(super) is_gone: bool,
    /// True if a test has damaged its catalog entry.
    pub(super) was_damaged: bool,
    /// True if the last recovery could not read its files.
    pub(super) is_unavailable: bool,
    /// Events since its files were checked last: a power cut, a failed write.
    pub(super) unchecked: (bool, bool),
    /// Ranges that a power cut may have damaged without a trace.
    pub(super) suspects: Vec<(i64, i64)>,
    /// Lowest position up to which it was asked to be truncated since it was extended last.
    pub(super) truncated_to: Option<i64>,
    /// True if it was ever asked to be truncated.
    pub(super) was_truncated: bool,
    /// Highest position up to which it was ever acknowledged.
    pub(super) highest: i64,
    /// Recordings of the source whose replications were asked to extend it.
    pub(super) extended_by: Vec<i64>,
    /// Lowest position at which another stream was asked to extend it.
    pub(super) extended_from: Option<i64>,
    /// True if a replication into it has joined the live stream.
    pub(super) was_merged: bool,
    /// Highest start position that retention gave it.
    pub(super) retained: i64,
    /// Positions up to which it was acknowledged, with the nanoseconds at which they were first.
    acknowledged: Acknowledged,
}

/// Positions and times. Violations show neither.
#[derive(Clone, Default)]
struct Acknowledged(Vec<(i64, i64)>);

impl std::fmt::Debug for Acknowledged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} times", self.0.len())
    }
}

impl Known {
    /// Takes note of a position that is acknowledged.
    fn on_acknowledged(&mut self, position: i64, now_ns: i64) {
        self.highest = self.highest.max(position);
        if self
            .acknowledged
            .0
            .last()
            .is_none_or(|(last, _)| position > *last)
        {
            self.acknowledged.0.push((position, now_ns));
        }
    }

    /// Takes note that it may go on at a position with another stream.
    pub(super) fn on_extension(&mut self, position: i64) {
        let lowest = self.extended_from.unwrap_or(position).min(position);
        self.extended_from = Some(lowest);
    }

    /// Returns the time at which all before a position was acknowledged, or else the last one was, in nanoseconds.
    fn acknowledged_at(&self, position: i64) -> Option<i64> {
        let reached = self
            .acknowledged
            .0
            .iter()
            .find(|(found, _)| *found >= position);
        reached
            .or(self.acknowledged.0.last())
            .map(|(_, at_ns)| *at_ns)
    }

    pub(super) fn is_suspect(&self, position: i64) -> bool {
        self.suspects
            .iter()
            .any(|(from, to)| (*from..*to).contains(&position))
    }
}

/// Counts of what happened, for coverage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) recoveries: u64,
    pub(super) verified_frames: u64,
    pub(super) replays_complete: u64,
    pub(super) replayed_frames: u64,
    pub(super) extensions: u64,
    pub(super) truncations: u64,
    pub(super) purges: u64,
    pub(super) segment_purges: u64,
    pub(super) listed: u64,
    pub(super) fatal_ends: u64,
    pub(super) replications: u64,
    pub(super) replications_ended: u64,
    pub(super) compared_frames: u64,
    /// Replications that have joined the live stream.
    pub(super) merges: u64,
    /// Purges of segments or recordings by retention.
    pub(super) retained: u64,
    /// Recordings among them.
    pub(super) retained_whole: u64,
    pub(super) power_cuts: u64,
    /// Replays that have ended, whether a position was to be reached or not.
    pub(super) replays_ended: u64,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Self) {
        self.recoveries += other.recoveries;
        self.verified_frames += other.verified_frames;
        self.replays_complete += other.replays_complete;
        self.replayed_frames += other.replayed_frames;
        self.extensions += other.extensions;
        self.truncations += other.truncations;
        self.purges += other.purges;
        self.segment_purges += other.segment_purges;
        self.listed += other.listed;
        self.fatal_ends += other.fatal_ends;
        self.replications += other.replications;
        self.replications_ended += other.replications_ended;
        self.compared_frames += other.compared_frames;
        self.merges += other.merges;
        self.retained += other.retained;
        self.retained_whole += other.retained_whole;
        self.power_cuts += other.power_cuts;
        self.replays_ended += other.replays_ended;
    }
}

/// Role of an archive in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// Records streams of users.
    #[default]
    Source,
    /// Replicates recordings of the source.
    Replica,
}

/// Rule by which an archive purges segments or recordings by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Retention {
    #[default]
    None,
    /// Keeps at least so many bytes, and what the consumer needs, if there is one.
    Bytes { bytes: i64, has_consumer: bool },
    /// Keeps all that is not older than this.
    Age { ms: i64 },
}

/// Knowledge of one archive.
#[derive(Debug, Default)]
struct ArchiveRecord {
    endpoint: String,
    hooks: Hooks,
    recordings: BTreeMap<i64, Known>,
    power_cuts: u64,
    /// Power cuts when the archive recovered last.
    recovered_cuts: u64,
    sync: Option<SyncLevel>,
    /// Sync level and checksum of the archive, for the text of violations.
    durability: String,
    retention: Retention,
    /// Time of the archive's host in nanoseconds when the archive ran last.
    now_ns: i64,
    /// Time of the first duty cycle of the archive's conductor in nanoseconds; `None` before.
    running_since_ns: Option<i64>,
    /// Highest positions that consumers have told to the driver of the archive, by recording.
    consumed: BTreeMap<i64, i64>,
    /// Highest start positions in the catalog, by recording.
    starts: BTreeMap<i64, i64>,
    /// Times in nanoseconds at which the wall clock was set forward, and by how many milliseconds.
    steps_forward: Vec<(i64, i64)>,
}

/// The record that all processes and operations of a world share. What it knows of an archive is that of one role at a time:
/// the source, unless another role is [selected](Self::select).
#[derive(Debug, Default)]
pub(super) struct Journal {
    role: Role,
    record: ArchiveRecord,
    /// Knowledge of the archive of the other role.
    other: ArchiveRecord,
    has_replica: bool,
    ledgers: BTreeMap<i32, Ledger>,
    sessions: BTreeMap<i32, i32>,
    /// Streams that were published, or replayed to a replica, on the network with the session of their publisher.
    networked: BTreeSet<i32>,
    /// Ranges of streams that a power cut may have damaged without a trace, in any archive.
    suspects: BTreeMap<i32, Vec<(i64, i64)>>,
    /// Source of each replica.
    replicas: BTreeMap<i64, i64>,
    next_stream_id: i32,
    next_replay: i32,
    pub(super) counts: Counts,
    /// Events until the operations of the scenario were over.
    pub(super) scenario_counts: Counts,
    /// First and last position of the replay that ended last.
    pub(super) last_replay: Option<(i64, i64)>,
    /// Code and text of the refusal that came last.
    pub(super) last_refusal: Option<(ErrorCode, String)>,
    /// The listing that came last.
    pub(super) last_listing: Vec<Recording>,
}

impl Journal {
    pub(super) fn set_up(&mut self, role: Role, endpoint: String, hooks: Hooks) {
        self.select(role);
        self.record.endpoint = endpoint;
        self.record.hooks = hooks;
        self.has_replica |= role == Role::Replica;
        self.select(Role::Source);
    }

    /// Returns true if there is a second archive.
    pub(super) fn has_replica(&self) -> bool {
        self.has_replica
    }

    /// Selects the archive that all calls are about; returns the one before.
    pub(super) fn select(&mut self, role: Role) -> Role {
        let before = std::mem::replace(&mut self.role, role);
        if before != role {
            std::mem::swap(&mut self.record, &mut self.other);
        }
        before
    }

    /// Takes note of what the archive promises.
    pub(super) fn set_promises(
        &mut self,
        sync: SyncLevel,
        checksum: Option<Checksum>,
        retention: Retention,
    ) {
        self.record.sync = Some(sync);
        self.record.retention = retention;
        self.record.running_since_ns = None;
        self.record.durability =
            format!("sync level {sync:?}, checksum {checksum:?}, {retention:?}");
    }

    /// Returns true if nothing that was acknowledged is lost by a power cut.
    pub(super) fn is_durable(&self) -> bool {
        self.record.sync.is_some_and(|sync| sync != SyncLevel::None)
    }

    /// Sets the time of the archive's host.
    pub(super) fn set_now(&mut self, now_ns: i64) {
        self.record.now_ns = now_ns;
    }

    /// Takes note that the wall clock was stepped.
    pub(super) fn on_clock_step(&mut self, by_ms: i64) {
        if by_ms > 0 {
            self.record.steps_forward.push((self.record.now_ns, by_ms));
        }
    }

    /// Takes note of the position of a consumer.
    pub(super) fn on_consumed(&mut self, recording_id: i64, position: i64) {
        let consumed = self.record.consumed.entry(recording_id).or_default();
        *consumed = position.max(*consumed);
    }

    /// Takes note of a duty cycle of the archive's conductor. Until the first one, it cannot see a step of the wall clock.
    pub(super) fn on_conductor_cycle(&mut self) {
        let now_ns = self.record.now_ns;
        self.record.running_since_ns.get_or_insert(now_ns);
    }

    /// Takes note of a position up to which a recovery has found a recording, which was active or not.
    pub(super) fn on_recovered(&mut self, recording_id: i64, stop: i64, was_active: bool) {
        let now_ns = self.record.now_ns;
        let known = self.recording(recording_id);
        known.highest = known.highest.max(stop);
        if was_active {
            known.on_acknowledged(stop, now_ns);
        }
    }

    /// Takes note of the start position of a recording in the catalog.
    pub(super) fn on_start(&mut self, recording_id: i64, start: i64) {
        let highest = self.record.starts.entry(recording_id).or_insert(start);
        *highest = start.max(*highest);
    }

    /// Takes note that an empty recording begins at another position, which is that of its source: a replication extends it.
    pub(super) fn on_replaced(&mut self, recording_id: i64, start: i64) -> Result<(), String> {
        let known = self.record.recordings.entry(recording_id).or_default();
        let sources = known.extended_by.iter();
        let starts = sources.filter_map(|source| self.other.starts.get(source));
        let limit = starts.max().copied();
        if limit.is_none_or(|limit| start > limit) {
            return Err(format!(
                "the empty recording {recording_id} begins at {start} now, and its sources {:?} began at {limit:?} at most",
                known.extended_by
            ));
        }
        known.start_max = known.start_max.max(start);
        known.floor = known.floor.min(start);
        known.first_start = known.first_start.map(|_| start);
        known.truncated_to = None;
        Ok(())
    }

    /// Takes note that a recording has lost its first segments up to a position, or all of it. Without a request, retention
    /// must have done that, by its rule.
    pub(super) fn on_shortened(
        &mut self,
        recording_id: i64,
        start: Option<i64>,
    ) -> Result<(), String> {
        let Some(known) = self.record.recordings.get(&recording_id) else {
            return Ok(());
        };
        if start.map_or(known.may_be_gone, |start| start <= known.start_max) {
            return Ok(());
        }
        let what = match start {
            Some(start) => format!("recording {recording_id} before {start}"),
            None => format!("all of recording {recording_id}"),
        };
        self.check_purge(recording_id, known, start)
            .map_err(|limit| format!("retention purged {what}{limit}"))?;
        let known = self.recording(recording_id);
        match start {
            Some(start) => known.retained = known.retained.max(start),
            None => known.may_be_gone = true,
        }
        self.counts.retained += 1;
        self.counts.retained_whole += u64::from(start.is_none());
        Ok(())
    }

    /// Checks that retention may purge the first segments of a recording up to a position, or all of it.
    fn check_purge(
        &self,
        recording_id: i64,
        known: &Known,
        start: Option<i64>,
    ) -> Result<(), String> {
        match self.record.retention {
            Retention::None => Err(", and there is no retention".to_owned()),
            Retention::Bytes {
                bytes,
                has_consumer,
            } => {
                let kept = known.highest - bytes;
                let limit = if has_consumer {
                    let consumed = self.record.consumed.get(&recording_id);
                    kept.min(consumed.copied().unwrap_or(0))
                } else {
                    kept
                };
                if start.is_some_and(|start| start <= limit) {
                    return Ok(());
                }
                Err(format!(", and nothing beyond {limit} was to be purged"))
            }
            Retention::Age { ms } => {
                // Of an empty recording, nothing was acknowledged.
                let at_ns = known.acknowledged_at(start.unwrap_or(i64::MAX));
                let at_ns = at_ns.unwrap_or(i64::MIN);
                // After a step that the archive did not see, it takes data for older than they are.
                let since_ns = self.record.running_since_ns.unwrap_or(i64::MAX);
                let is_misled = self.record.steps_forward.iter().any(|(step_ns, by_ms)| {
                    *step_ns >= at_ns && (*step_ns <= since_ns || *by_ms <= SMALL_STEP_MS)
                });
                // Without syncs, a power cut takes the times in the catalog and the time index back.
                let forgets =
                    self.record.sync == Some(SyncLevel::None) && self.record.power_cuts > 0;
                let age_ms = self.record.now_ns.saturating_sub(at_ns) / MS;
                if age_ms + AGE_TOLERANCE_MS >= ms || is_misled || forgets {
                    return Ok(());
                }
                Err(format!(
                    " at an age of {age_ms} ms, and nothing younger than {ms} ms was to be purged"
                ))
            }
        }
    }

    /// Takes note of frames that may be damaged.
    pub(super) fn suspect(&mut self, recording_id: i64, range: (i64, i64)) {
        let known = self.record.recordings.entry(recording_id).or_default();
        known.suspects.push(range);
        self.suspects
            .entry(known.stream_id)
            .or_default()
            .push(range);
    }

    /// Returns true if no frame of a stream may be damaged.
    pub(super) fn is_unsuspected(&self, stream_id: i32) -> bool {
        !self.suspects.contains_key(&stream_id)
    }

    /// Takes note of the recording of the replica into which one of the source is replicated.
    pub(super) fn on_replica(&mut self, replica: i64, source: i64) {
        let other = self.other.recordings.get(&source);
        let stream_id = other.map(|known| known.stream_id);
        let known = self.record.recordings.entry(replica).or_default();
        known.stream_id = stream_id.unwrap_or(known.stream_id);
        self.replicas.insert(replica, source);
    }

    /// Returns replicas with their sources.
    pub(super) fn replicas(&self) -> impl Iterator<Item = (i64, i64)> {
        self.replicas
            .iter()
            .map(|(replica, source)| (*replica, *source))
    }

    /// Returns the knowledge of a recording of the source; the replica is selected.
    pub(super) fn source(&self, recording_id: i64) -> Option<&Known> {
        self.other.recordings.get(&recording_id)
    }

    /// Adds what guarantees depend on to a violation.
    pub(super) fn explain(&self, Violation(text): Violation) -> Violation {
        Violation(format!("{text} ({})", self.record.durability))
    }

    pub(super) fn archive_endpoint(&self) -> String {
        self.record.endpoint.clone()
    }

    pub(super) fn hooks(&self) -> &Hooks {
        &self.record.hooks
    }

    pub(super) fn new_stream_id(&mut self) -> i32 {
        self.next_stream_id += 1;
        2_000 + self.next_stream_id
    }

    pub(super) fn new_replay_number(&mut self) -> i32 {
        self.next_replay += 1;
        self.next_replay
    }

    pub(super) fn ledger(&mut self, stream_id: i32) -> &mut Ledger {
        self.ledgers.entry(stream_id).or_default()
    }

    /// Checks a frame of a recording.
    pub(super) fn check_frame(
        &self,
        recording_id: i64,
        stream_id: i32,
        position: i64,
        payload: &[u8],
    ) -> Result<(), String> {
        let known = self.record.recordings.get(&recording_id);
        if known.is_some_and(|known| known.is_suspect(position)) {
            return Ok(());
        }
        // The user that asked for this replica was lost before it knew the recording.
        if self.role == Role::Replica && stream_id == 0 {
            return Ok(());
        }
        // A replica has what its source had.
        let of_stream = self.suspects.get(&stream_id).into_iter().flatten();
        if self.role == Role::Replica
            && of_stream
                .into_iter()
                .any(|(from, to)| (*from..*to).contains(&position))
        {
            return Ok(());
        }
        match self.ledgers.get(&stream_id) {
            Some(ledger) => ledger.check(position, payload),
            None => Err(format!("nothing was published on stream {stream_id}")),
        }
        .map_err(|text| format!("recording {recording_id}: {text}"))
    }

    /// Takes note of the session of a publication.
    pub(super) fn on_session(&mut self, session_id: i32, stream_id: i32, is_networked: bool) {
        self.sessions.insert(session_id, stream_id);
        if is_networked {
            self.networked.insert(stream_id);
        }
    }

    /// Returns the session for the replay of a replication; `None` for that of the recording, which only the first replay of a
    /// stream may have, and only if its publisher is not on the network. Observers of the network tell streams by session and
    /// stream id.
    pub(super) fn new_session_of(&mut self, stream_id: i32) -> Option<i32> {
        let is_used = !self.networked.insert(stream_id);
        is_used.then(|| 1_000_000 + self.new_replay_number())
    }

    pub(super) fn recording(&mut self, recording_id: i64) -> &mut Known {
        self.record.recordings.entry(recording_id).or_default()
    }

    /// Returns the stream of a recording; `None` if it is not known.
    pub(super) fn stream_of(&self, recording_id: i64) -> Option<i32> {
        let known = self.record.recordings.get(&recording_id)?;
        (known.stream_id != 0).then_some(known.stream_id)
    }

    /// Forgets recordings of which nothing was acknowledged.
    pub(super) fn forget_unknown(&mut self) {
        self.record.recordings.retain(|_, known| {
            known.floor > 0 || known.first_start.is_some() || known.is_gone || known.is_unavailable
        });
    }

    pub(super) fn recordings(&self) -> impl Iterator<Item = (i64, &Known)> {
        self.record
            .recordings
            .iter()
            .map(|(id, known)| (*id, known))
    }

    /// Returns the recordings of an archive, whichever is selected.
    pub(super) fn recordings_of(
        &self,
        role: Role,
    ) -> impl DoubleEndedIterator<Item = (i64, &Known)> {
        let record = if role == self.role {
            &self.record
        } else {
            &self.other
        };
        record.recordings.iter().map(|(id, known)| (*id, known))
    }

    /// Takes note of a recorded position that users can see.
    pub(super) fn on_recorded(
        &mut self,
        recording_id: i64,
        session_id: i32,
        position: i64,
    ) -> Result<(), String> {
        let now_ns = self.record.now_ns;
        // The session of a replica is that of a replay.
        let sessions = (self.role == Role::Source).then_some(&self.sessions);
        let stream_id = sessions.and_then(|sessions| sessions.get(&session_id).copied());
        let known = self.record.recordings.entry(recording_id).or_default();
        known.on_acknowledged(position, now_ns);
        known.stream_id = stream_id.unwrap_or(known.stream_id);
        if known.is_gone {
            return Err(format!(
                "recording {recording_id} was deleted and is active"
            ));
        }
        if position < known.floor {
            return Err(format!(
                "recording {recording_id} is acknowledged to {position}, and was to {}",
                known.floor
            ));
        }
        if position > known.floor {
            known.floor = position;
            known.truncated_to = None;
        }
        Ok(())
    }

    pub(super) fn on_power_cut(&mut self) {
        self.record.power_cuts += 1;
        self.counts.power_cuts += 1;
    }

    /// Returns true if the power was cut since the last recovery.
    pub(super) fn has_power_cut(&self) -> bool {
        self.record.recovered_cuts != self.record.power_cuts
    }

    /// Returns true if the power was cut since the last recovery, and begins with the next one.
    pub(super) fn take_power_cut(&mut self) -> bool {
        let was_cut = self.has_power_cut();
        self.record.recovered_cuts = self.record.power_cuts;
        was_cut
    }
}

mod tests {
    use super::*;

    /// A journal of a replica whose recording 5 is empty, begins at `start`, and is extended by recording 2 of the source.
    fn replica(start: i64) -> Journal {
        let mut journal = Journal::default();
        journal.set_up(Role::Replica, String::new(), Hooks::default());
        journal.on_start(2, 1_000);
        journal.select(Role::Replica);
        journal.on_start(5, start);
        let known = journal.recording(5);
        known.first_start = Some(start);
        known.floor = start;
        known.extended_by.push(2);
        journal
    }

    #[test]
    fn extended_replica_begins_where_its_source_does_and_not_beyond() {
        let mut journal = replica(0);
        assert_eq!(journal.on_replaced(5, 1_000), Ok(()));
        let known = journal.recording(5);
        assert_eq!((known.start_max, known.first_start), (1_000, Some(1_000)));
        let mut journal = replica(0);
        let text = journal.on_replaced(5, 1_001).unwrap_err();
        assert!(text.contains("began at Some(1000) at most"), "{text}");
        journal.recording(5).extended_by.clear();
        assert!(journal.on_replaced(5, 1_000).is_err());
    }

    #[test]
    fn replica_that_begins_before_its_old_start_was_acknowledged_to_nothing_more() {
        let mut journal = replica(2_000);
        journal.recording(5).truncated_to = Some(2_000);
        assert_eq!(journal.on_replaced(5, 1_000), Ok(()));
        let known = journal.recording(5);
        assert_eq!((known.floor, known.truncated_to), (1_000, None));
    }

    #[test]
    fn purge_of_an_extended_replica_needs_a_request_or_retention() {
        let mut journal = replica(0);
        journal.on_replaced(5, 1_000).unwrap();
        assert!(journal.on_shortened(5, Some(2_000)).is_err());
        journal.recording(5).start_max = 2_000;
        assert_eq!(journal.on_shortened(5, Some(2_000)), Ok(()));
        journal.record.retention = Retention::Bytes {
            bytes: 100,
            has_consumer: false,
        };
        journal.recording(5).highest = 3_100;
        assert_eq!(journal.on_shortened(5, Some(3_000)), Ok(()));
        assert!(journal.on_shortened(5, Some(3_001)).is_err());
    }
}
