// SPDX-License-Identifier: Apache-2.0
//! Replays of a user, which check each frame.

use taran::{Pending, Subscription};
use taran_archive_client::ReplaySession;
use taran_protocol::position::align32;
use taran_sim::Violation;

use super::super::journal::Journal;
use super::UserProcess;

/// Fragments that one duty cycle takes from a replay.
const FRAGMENTS: usize = 16;
/// Time without progress after which a replay is given up.
const REPLAY_TIMEOUT_NS: i64 = 40_000_000_000;

/// A replay that was asked for.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct WantedReplay {
    pub(in super::super) recording_id: i64,
    pub(in super::super) position: Option<i64>,
    /// Time in place of a position.
    pub(in super::super) time_ms: Option<i64>,
    pub(in super::super) length: Option<i64>,
    pub(in super::super) until_now: bool,
    /// Position that the replay has to reach before it ends.
    pub(in super::super) must_reach: Option<i64>,
}

/// A replay and what is known of it.
pub(super) struct ReplayCheck {
    pub(super) wanted: WantedReplay,
    pub(super) stream_id: i32,
    /// Stream of the recording; `None` until it is known. A recording that a power cut takes back leaves its frames in the
    /// image, and its id to another one.
    pub(super) recorded: Option<i32>,
    pub(super) pending: Option<Pending<Subscription>>,
    pub(super) subscription: Option<Subscription>,
    pub(super) has_image: bool,
    /// Position of the next frame; `None` before the first one.
    pub(super) next: Option<i64>,
    pub(super) started_at: i64,
    pub(super) first: Option<i64>,
    pub(super) last_progress_ns: i64,
    pub(super) is_over: bool,
}

impl UserProcess {
    pub(super) fn subscribe(
        &mut self,
        wanted: WantedReplay,
        channel: &str,
        stream_id: i32,
        session: ReplaySession,
        now_ns: i64,
    ) {
        let Ok(channel) = session.subscription_channel(channel) else {
            return;
        };
        let Some(client) = self.connected_client() else {
            return;
        };
        let Ok(pending) = client.async_add_subscription(channel, stream_id) else {
            return;
        };
        self.replays.push(ReplayCheck {
            wanted,
            stream_id,
            recorded: None,
            pending: Some(pending),
            subscription: None,
            has_image: false,
            next: wanted.position,
            started_at: wanted.position.unwrap_or(0),
            first: None,
            last_progress_ns: now_ns,
            is_over: false,
        });
    }

    pub(super) fn poll_replays(
        &mut self,
        now_ns: i64,
        journal: &mut Journal,
    ) -> Result<usize, Violation> {
        let mut work = 0;
        for replay in &mut self.replays {
            work += replay.poll(self.holds_replays, now_ns, journal)?;
        }
        self.replays.retain(|replay| !replay.is_over);
        Ok(work)
    }
}

impl ReplayCheck {
    fn poll(
        &mut self,
        is_held: bool,
        now_ns: i64,
        journal: &mut Journal,
    ) -> Result<usize, Violation> {
        let id = self.wanted.recording_id;
        if self.recorded.is_none() {
            self.recorded = journal.stream_of(id);
        }
        if let Some(pending) = &mut self.pending {
            match pending.poll() {
                None => return Ok(0),
                Some(Ok(subscription)) => self.subscription = Some(subscription),
                Some(Err(_)) => self.is_over = true,
            }
            self.pending = None;
        }
        let Some(subscription) = &mut self.subscription else {
            return Ok(0);
        };
        if is_held {
            self.has_image |= subscription.image_count() > 0;
            self.last_progress_ns = now_ns;
            return Ok(0);
        }
        let recorded_stream = self.recorded.unwrap_or_default();
        let mut failure = None;
        let (mut next, mut frames) = (self.next, 0);
        let first = &mut self.first;
        let polled = subscription.poll(
            |payload, header| {
                let end = header.position();
                let start = end - i64::from(align32(header.frame_length()));
                // Padding up to the end of a term is skipped.
                let is_next = next.is_none_or(|next| {
                    start == next
                        || (start > next && start % (64 << 10) == 0 && start - next < 64 << 10)
                });
                if !is_next {
                    failure = Some(format!(
                        "the replay of recording {id} goes on at {start} after {next:?}"
                    ));
                } else if let Err(text) = journal.check_frame(id, recorded_stream, start, payload) {
                    failure = Some(format!("replay: {text}"));
                }
                first.get_or_insert(start);
                next = Some(end);
                frames += 1;
            },
            FRAGMENTS,
        );
        if let Some(text) = failure {
            return Err(Violation(text));
        }
        self.next = next;
        journal.counts.replayed_frames += frames;
        let Ok(work) = polled else {
            self.is_over = true;
            return Ok(1);
        };
        let has_image = subscription.image_count() > 0;
        if work > 0 || has_image != self.has_image {
            self.last_progress_ns = now_ns;
        }
        let has_ended = self.has_image && !has_image && work == 0;
        self.has_image |= has_image;
        if has_ended {
            self.is_over = true;
            journal.counts.replays_ended += 1;
            self.check_end(journal)?;
        } else if now_ns - self.last_progress_ns > REPLAY_TIMEOUT_NS {
            self.is_over = true;
            if self.wanted.must_reach.is_some() {
                return Err(Violation(format!(
                    "the replay {:?} stands at {:?}",
                    self.wanted, self.next
                )));
            }
        }
        Ok(work)
    }

    fn check_end(&mut self, journal: &mut Journal) -> Result<(), Violation> {
        journal.last_replay = self.first.map(|first| (first, self.next.unwrap_or(first)));
        let reached = self.next.unwrap_or(self.started_at);
        match self.wanted.must_reach {
            // The rest is padding, if anything.
            Some(end) if reached < end && (end % (64 << 10) != 0 || end - reached >= 64 << 10) => {
                Err(Violation(format!(
                    "the replay {:?} on stream {} ended at {reached} before {end}",
                    self.wanted, self.stream_id
                )))
            }
            Some(_) => {
                journal.counts.replays_complete += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
