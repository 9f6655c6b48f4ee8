// SPDX-License-Identifier: Apache-2.0
//! Knowledge of the users of an archive: what was published, what was acknowledged, what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use taran_archive_client::Recording;
use taran_archive_client::protocol::ErrorCode;
use taran_sim::Violation;

use super::hooked_disk::Hooks;
use crate::files::{Checksum, SyncLevel};

/// Length of the header of a frame in bytes.
const HEADER: i64 = 32;
/// Longest message with its headers, in bytes.
const MESSAGE_SPAN_MAX: i64 = 16 << 10;

/// A message as it was published. Its payload follows from its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) length: usize,
    pub(super) key: u64,
    /// Bytes of its frames in the stream.
    span: i64,
    mtu: i64,
}

/// Returns the byte of a payload at an offset.
fn byte(key: u64, offset: usize) -> u8 {
    let word = key ^ (offset as u64 / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (word ^ word >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> (offset % 8 * 8)) as u8
}

impl Message {
    pub(super) fn new(length: usize, key: u64, mtu: usize) -> Self {
        let most = mtu as i64 - HEADER;
        let full = length as i64 / most;
        let rest = length as i64 % most;
        let last = if rest > 0 || full == 0 {
            (HEADER + rest + 31) / 32 * 32
        } else {
            0
        };
        Self {
            length,
            key,
            span: full * mtu as i64 + last,
            mtu: mtu as i64,
        }
    }

    pub(super) fn span(&self) -> i64 {
        self.span
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        (0..self.length)
            .map(|offset| byte(self.key, offset))
            .collect()
    }

    /// Returns true if the frame at this distance from the start of the message has this payload.
    fn has_frame(&self, distance: i64, payload: &[u8]) -> bool {
        if distance % self.mtu != 0 || distance >= self.span {
            return false;
        }
        let most = (self.mtu - HEADER) as usize;
        let begin = (distance / self.mtu) as usize * most;
        let length = (self.length - begin).min(most);
        payload.len() == length
            && payload
                .iter()
                .enumerate()
                .all(|(at, found)| *found == byte(self.key, begin + at))
    }
}

/// Messages of a stream by position and session, because a stream that extends a recording begins where the recording ended
/// and not where its publisher did.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    messages: BTreeMap<(i64, i32), Message>,
}

impl Ledger {
    pub(super) fn add(&mut self, start: i64, session_id: i32, message: Message) {
        self.messages.insert((start, session_id), message);
    }

    /// Checks a frame that was recorded or replayed.
    pub(super) fn check(&self, position: i64, payload: &[u8]) -> Result<(), String> {
        let from = (position - MESSAGE_SPAN_MAX, i32::MIN);
        let mut candidates = self.messages.range(from..=(position, i32::MAX));
        if candidates.any(|((start, _), message)| message.has_frame(position - start, payload)) {
            return Ok(());
        }
        Err(format!(
            "the frame at position {position} with {} bytes is none that was published",
            payload.len()
        ))
    }

    /// Returns the positions at which messages begin.
    pub(super) fn starts(&self) -> impl Iterator<Item = i64> {
        self.messages.keys().map(|(start, _)| *start)
    }
}

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
    /// Highest position that its consumer has told.
    pub(super) consumed: i64,
}

impl Known {
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
    pub(super) retained: u64,
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
        self.retained += other.retained;
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
    /// Keeps nothing that is older than some seconds.
    Age,
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
        self.record.durability =
            format!("sync level {sync:?}, checksum {checksum:?}, {retention:?}");
    }

    /// Returns true if nothing that was acknowledged is lost by a power cut.
    pub(super) fn is_durable(&self) -> bool {
        self.record.sync.is_some_and(|sync| sync != SyncLevel::None)
    }

    /// Returns the highest start position that retention may have given a recording.
    pub(super) fn retained_from(&self, known: &Known) -> i64 {
        match self.record.retention {
            Retention::None => i64::MIN,
            Retention::Bytes {
                bytes,
                has_consumer,
            } => {
                let by_bytes = known.highest - bytes;
                if has_consumer {
                    by_bytes.min(known.consumed)
                } else {
                    by_bytes
                }
            }
            Retention::Age => known.highest,
        }
    }

    /// Returns true if retention may delete whole recordings.
    pub(super) fn retention_deletes(&self) -> bool {
        self.record.retention == Retention::Age
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

    /// Takes note of a recorded position that users can see.
    pub(super) fn on_recorded(
        &mut self,
        recording_id: i64,
        session_id: i32,
        position: i64,
    ) -> Result<(), String> {
        // The session of a replica is that of a replay.
        let sessions = (self.role == Role::Source).then_some(&self.sessions);
        let stream_id = sessions.and_then(|sessions| sessions.get(&session_id).copied());
        let known = self.record.recordings.entry(recording_id).or_default();
        known.highest = known.highest.max(position);
        known.may_be_gone |= self.record.retention == Retention::Age;
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

    #[test]
    fn ledger_accepts_each_fragment_and_nothing_else() {
        let mut ledger = Ledger::default();
        let message = Message::new(3_000, 7, 1_408);
        assert_eq!(message.span(), 2 * 1_408 + 288);
        ledger.add(64, 1, message);
        let payload = message.payload();
        let frames = [&payload[..1_376], &payload[1_376..2_752], &payload[2_752..]];
        for (at, frame) in frames.into_iter().enumerate() {
            let position = 64 + at as i64 * 1_408;
            assert!(ledger.check(position, frame).is_ok());
            assert!(ledger.check(position + 32, frame).is_err());
            let mut damaged = frame.to_vec();
            damaged[100] ^= 1;
            assert!(ledger.check(position, &damaged).is_err());
            assert!(ledger.check(position, &frame[..frame.len() - 1]).is_err());
        }
    }
}
