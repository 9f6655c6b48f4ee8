//! Knowledge of the users of an archive: what was published, what was acknowledged, what was asked for.

use std::collections::BTreeMap;

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
    }
}

/// The record that all processes and operations of a world share.
#[derive(Debug, Default)]
pub(super) struct Journal {
    endpoint: String,
    hooks: Hooks,
    ledgers: BTreeMap<i32, Ledger>,
    sessions: BTreeMap<i32, i32>,
    recordings: BTreeMap<i64, Known>,
    next_stream_id: i32,
    next_replay: i32,
    power_cuts: u64,
    /// Power cuts when the archive recovered last.
    recovered_cuts: u64,
    pub(super) counts: Counts,
    /// Sync level and checksum of the archive, for the text of violations.
    durability: String,
    /// First and last position of the replay that ended last.
    pub(super) last_replay: Option<(i64, i64)>,
    /// Code and text of the refusal that came last.
    pub(super) last_refusal: Option<(ErrorCode, String)>,
    /// The listing that came last.
    pub(super) last_listing: Vec<Recording>,
}

impl Journal {
    pub(super) fn set_up(&mut self, endpoint: String, hooks: Hooks) {
        self.endpoint = endpoint;
        self.hooks = hooks;
    }

    /// Takes note of the sync level and the checksum of the archive.
    pub(super) fn set_durability(&mut self, sync: SyncLevel, checksum: Option<Checksum>) {
        self.durability = format!("sync level {sync:?}, checksum {checksum:?}");
    }

    /// Adds what guarantees depend on to a violation.
    pub(super) fn explain(&self, Violation(text): Violation) -> Violation {
        Violation(format!("{text} ({})", self.durability))
    }

    pub(super) fn archive_endpoint(&self) -> String {
        self.endpoint.clone()
    }

    pub(super) fn hooks(&self) -> &Hooks {
        &self.hooks
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
        let known = self.recordings.get(&recording_id);
        if known.is_some_and(|known| known.is_suspect(position)) {
            return Ok(());
        }
        match self.ledgers.get(&stream_id) {
            Some(ledger) => ledger.check(position, payload),
            None => Err(format!("nothing was published on stream {stream_id}")),
        }
        .map_err(|text| format!("recording {recording_id}: {text}"))
    }

    /// Takes note of the session of a publication.
    pub(super) fn on_session(&mut self, session_id: i32, stream_id: i32) {
        self.sessions.insert(session_id, stream_id);
    }

    pub(super) fn recording(&mut self, recording_id: i64) -> &mut Known {
        self.recordings.entry(recording_id).or_default()
    }

    /// Forgets recordings of which nothing was acknowledged.
    pub(super) fn forget_unknown(&mut self) {
        self.recordings.retain(|_, known| {
            known.floor > 0 || known.first_start.is_some() || known.is_gone || known.is_unavailable
        });
    }

    pub(super) fn recordings(&self) -> impl Iterator<Item = (i64, &Known)> {
        self.recordings.iter().map(|(id, known)| (*id, known))
    }

    /// Takes note of a recorded position that users can see.
    pub(super) fn on_recorded(
        &mut self,
        recording_id: i64,
        session_id: i32,
        position: i64,
    ) -> Result<(), String> {
        let stream_id = self.sessions.get(&session_id).copied();
        let known = self.recordings.entry(recording_id).or_default();
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
        self.power_cuts += 1;
    }

    /// Returns true if the power was cut since the last recovery.
    pub(super) fn has_power_cut(&self) -> bool {
        self.recovered_cuts != self.power_cuts
    }

    /// Returns true if the power was cut since the last recovery, and begins with the next one.
    pub(super) fn take_power_cut(&mut self) -> bool {
        let was_cut = self.has_power_cut();
        self.recovered_cuts = self.power_cuts;
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
