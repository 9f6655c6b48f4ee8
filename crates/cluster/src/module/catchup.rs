// SPDX-License-Identifier: Apache-2.0
//! The replays of a leader's log to followers that catch up.
//!
//! **Input**: [`CatchupReplays::start`] and [`CatchupReplays::stop`]. **Output**: [`CatchupReplays::poll`] sends the requests to the
//! archive, and returns what it has refused.
//!
//! All replays to a follower have the session id of the live log, so that its driver joins them into one image; the driver of the leader
//! has at most one publication with it. A replay therefore begins when the one before has ended, also one whose start the archive has not
//! answered yet, and the request is repeated while the driver still closes the former publication.

use std::collections::HashMap;

use taran_archive_client::{ArchiveConnection, Call, ReplayParams, ReplaySession, RequestError};

use crate::consensus::{MemberId, Nanos};

/// Time between the refusal of a replay and its next attempt.
const RETRY_PAUSE: Nanos = 10_000_000;
/// Refusals in a row that are not reported: a publication takes that long to be closed.
const SILENT_REFUSALS: u32 = 20;

/// A replay to a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatchupRequest {
    pub(super) recording_id: i64,
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) from: i64,
}

/// A request that is due for a follower.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Start(CatchupRequest),
    Stop(ReplaySession),
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// There is none. The next one begins at this time.
    Absent(Nanos),
    /// The archive is asked for it.
    Starting(CatchupRequest),
    Running(ReplaySession),
    /// It runs, and the follower does not take it any more.
    Obsolete(ReplaySession),
    /// The archive is asked to end it.
    Ending,
}

/// The replay to one follower, as a state machine without the archive.
#[derive(Debug)]
struct Replay {
    wanted: Option<CatchupRequest>,
    phase: Phase,
    refusals: u32,
}

impl Replay {
    const fn new() -> Self {
        Self {
            wanted: None,
            phase: Phase::Absent(Nanos::MIN),
            refusals: 0,
        }
    }

    /// Sets the replay that is wanted. One that runs is none that a follower could join.
    fn want(&mut self, request: Option<CatchupRequest>) {
        self.wanted = request;
        self.refusals = 0;
        if let Phase::Running(session) = self.phase {
            self.phase = Phase::Obsolete(session);
        }
    }

    /// Returns what is due now.
    fn step(&mut self, now: Nanos) -> Option<Step> {
        match &self.phase {
            Phase::Absent(due) if now >= *due => {
                let request = self.wanted.clone()?;
                self.phase = Phase::Starting(request.clone());
                Some(Step::Start(request))
            }
            Phase::Obsolete(session) => {
                let session = *session;
                self.phase = Phase::Ending;
                Some(Step::Stop(session))
            }
            _ => None,
        }
    }

    /// Takes the answer to the start. Returns true if a refusal is to be reported.
    fn on_started(&mut self, now: Nanos, session: Option<ReplaySession>) -> bool {
        let phase = std::mem::replace(&mut self.phase, Phase::Absent(now + RETRY_PAUSE));
        match (phase, session) {
            (Phase::Starting(request), Some(session)) => {
                self.phase = if self.wanted.as_ref() == Some(&request) {
                    Phase::Running(session)
                } else {
                    Phase::Obsolete(session)
                };
                false
            }
            (Phase::Starting(_), None) => {
                self.refusals += 1;
                self.wanted.is_some() && self.refusals > SILENT_REFUSALS
            }
            (other, _) => {
                self.phase = other;
                false
            }
        }
    }

    /// Takes the answer to the end, whatever it is: a replay that is not known has ended.
    fn on_ended(&mut self, now: Nanos) {
        self.phase = Phase::Absent(now);
    }

    /// Returns true if there is nothing to do any more.
    const fn is_over(&self) -> bool {
        self.wanted.is_none() && matches!(self.phase, Phase::Absent(_))
    }
}

/// A request that the archive has not answered.
enum Asked {
    Start(Call<ReplaySession>),
    Stop(Call<()>),
}

/// The replays to all followers.
#[derive(Default)]
pub(super) struct CatchupReplays {
    followers: HashMap<MemberId, (Replay, Option<Asked>)>,
}

impl CatchupReplays {
    /// Replays the log to a follower, in place of the replay before.
    pub(super) fn start(&mut self, to: MemberId, request: CatchupRequest) {
        let entry = self.followers.entry(to);
        let (replay, _) = entry.or_insert_with(|| (Replay::new(), None));
        replay.want(Some(request));
    }

    /// Ends the replay to a follower.
    pub(super) fn stop(&mut self, to: MemberId) {
        if let Some((replay, _)) = self.followers.get_mut(&to) {
            replay.want(None);
        }
    }

    /// Ends all replays.
    pub(super) fn stop_all(&mut self) {
        for (replay, _) in self.followers.values_mut() {
            replay.want(None);
        }
    }

    /// Sends the requests that are due, and takes answers. Returns a refusal that goes on.
    pub(super) fn poll(
        &mut self,
        archive: &mut ArchiveConnection,
        now: Nanos,
    ) -> Option<RequestError> {
        let mut refused = None;
        self.followers.retain(|_, (replay, asked)| {
            match asked {
                Some(Asked::Start(call)) => {
                    if let Some(result) = call.poll() {
                        *asked = None;
                        let session = result.as_ref().ok().copied();
                        if replay.on_started(now, session) {
                            refused = result.err();
                        }
                    }
                }
                Some(Asked::Stop(call)) => {
                    let answer = call.poll();
                    if answer.is_some() {
                        *asked = None;
                        replay.on_ended(now);
                    }
                }
                None => {}
            }
            match replay.step(now) {
                Some(Step::Start(request)) => {
                    let params = ReplayParams::new().position(request.from).length(i64::MAX);
                    *asked = Some(Asked::Start(archive.start_replay(
                        request.recording_id,
                        &request.channel,
                        request.stream_id,
                        &params,
                    )));
                }
                Some(Step::Stop(session)) => {
                    *asked = Some(Asked::Stop(archive.stop_replay(session)));
                }
                None => {}
            }
            !replay.is_over()
        });
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(from: i64) -> CatchupRequest {
        CatchupRequest {
            recording_id: 7,
            channel: "aeron:udp?endpoint=a:1|session-id=3".to_owned(),
            stream_id: 100,
            from,
        }
    }

    const SESSION: i64 = 9;

    fn started() -> Option<ReplaySession> {
        Some(ReplaySession::from_id(SESSION))
    }

    fn stop() -> Option<Step> {
        Some(Step::Stop(ReplaySession::from_id(SESSION)))
    }

    #[test]
    fn replay_begins_only_when_the_one_before_has_ended() {
        let mut replay = Replay::new();
        replay.want(Some(request(0)));
        assert_eq!(replay.step(0), Some(Step::Start(request(0))));
        assert!(!replay.on_started(1, started()));
        assert_eq!(replay.step(1), None);
        // Also for a replay from the same position: the one before may have passed it.
        for (from, now) in [(64, 10), (64, 20)] {
            replay.want(None);
            replay.want(Some(request(from)));
            assert_eq!(replay.step(now), stop());
            assert_eq!(replay.step(now + 1), None, "it has not ended");
            replay.on_ended(now + 2);
            assert_eq!(replay.step(now + 2), Some(Step::Start(request(from))));
            assert!(!replay.on_started(now + 3, started()));
        }
    }

    #[test]
    fn replay_that_is_not_wanted_any_more_is_ended_when_its_start_is_answered() {
        let mut replay = Replay::new();
        replay.want(Some(request(0)));
        assert_eq!(replay.step(0), Some(Step::Start(request(0))));
        replay.want(None);
        assert_eq!(replay.step(1), None);
        assert!(!replay.is_over());
        assert!(!replay.on_started(2, started()));
        assert_eq!(replay.step(2), stop());
        replay.on_ended(3);
        assert!(replay.is_over());
    }

    #[test]
    fn replay_that_is_wanted_again_before_its_start_is_answered_goes_on() {
        let mut replay = Replay::new();
        replay.want(Some(request(0)));
        assert_eq!(replay.step(0), Some(Step::Start(request(0))));
        replay.want(None);
        replay.want(Some(request(0)));
        assert!(!replay.on_started(1, started()));
        assert_eq!(replay.step(2), None);
    }

    #[test]
    fn refused_replay_is_repeated_after_a_pause_and_reported_if_that_goes_on() {
        let mut replay = Replay::new();
        replay.want(Some(request(0)));
        let mut now = 0;
        for refusal in 1..=SILENT_REFUSALS + 1 {
            assert_eq!(replay.step(now), Some(Step::Start(request(0))));
            assert_eq!(replay.on_started(now, None), refusal > SILENT_REFUSALS);
            assert_eq!(replay.step(now + RETRY_PAUSE - 1), None);
            now += RETRY_PAUSE;
        }
        replay.want(None);
        assert_eq!(replay.step(now), None);
        assert!(replay.is_over());
    }
}
