// SPDX-License-Identifier: Apache-2.0
//! Replications with any input at any time.

use super::*;

/// Answers actions as a source and a driver do, mostly; else anything comes at any time.
struct Chaos {
    random: fastrand::Rng,
    world: World,
    seen: Vec<Action>,
    /// The replay was started.
    has_replay: bool,
    is_extended: bool,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let is_live = random.bool();
        let plan = Plan {
            destination: random.bool().then_some(NEW_ID),
            stop_position: random.bool().then(|| random.i64(0..8) * 32),
            io_max_length: random.bool().then_some(MTU + random.i32(-1..2)),
            session_id: random.bool().then_some(77),
            is_live,
            is_manual: is_live || random.bool(),
            ..plan()
        };
        Self {
            random,
            world: World::new(plan),
            seen: Vec::new(),
            has_replay: false,
            is_extended: false,
        }
    }

    fn any_source(&mut self) -> Recording {
        let start = self.random.i64(0..4) * 32;
        let stop = start + self.random.i64(0..4) * 32;
        source(start, self.random.bool().then_some(stop))
    }

    fn outcome<T>(&mut self, value: T) -> Result<T, RequestError> {
        match self.random.u8(0..10) {
            0 => Err(RequestError::Disconnected),
            1 => Err(RequestError::Timeout {
                request: "test",
                after: std::time::Duration::from_secs(1),
            }),
            _ => Ok(value),
        }
    }

    /// Gives the answer to an action.
    fn answer(&mut self, action: u8) {
        let position = self.random.i64(0..8) * 32;
        let is_good = self.random.u8(0..10) > 0;
        let text = |is_good: bool| is_good.then_some(()).ok_or_else(|| "bad".to_owned());
        match action {
            0 => self.world.replication.on_connected(text(is_good)),
            1 => {
                let found = self.any_source();
                let outcome = self.outcome(is_good.then_some(found));
                let stop = position + self.random.i64(0..2) * 32;
                let extent = Extent {
                    start: position,
                    stop,
                };
                let extent = self.random.bool().then_some(extent);
                self.world.replication.on_described(outcome, extent);
            }
            2 => {
                let stored = text(is_good).map(|()| NEW_ID);
                self.world.replication.on_stored(stored);
            }
            3 => {
                let outcome = self.outcome(is_good.then_some(position));
                self.world.replication.on_source_position(outcome);
            }
            4 => {
                self.is_extended |= is_good;
                self.world.replication.on_extended(is_good);
            }
            5 => self.world.replication.on_destination(text(is_good)),
            _ => {
                let outcome = self.outcome(replay());
                self.has_replay |= outcome.is_ok();
                self.world.replication.on_replay(outcome);
            }
        }
    }

    fn act(&mut self) {
        let facts = self.world.facts;
        let Some(action) = self.world.replication.step(&facts) else {
            return;
        };
        let answer = match &action {
            Action::Connect => Some(0),
            Action::Describe => Some(1),
            Action::Store { .. } => Some(2),
            Action::AskPosition => Some(3),
            Action::Extend { .. } => Some(4),
            Action::AddReplayDestination | Action::AddLiveDestination => Some(5),
            Action::StartReplay { .. } => Some(6),
            _ => None,
        };
        self.seen.push(action);
        if let Some(answer) = answer
            && self.random.u8(0..20) > 0
        {
            self.answer(answer);
        }
    }

    fn disturb(&mut self) {
        let position = self.random.i64(0..8) * 32;
        match self.random.u8(0..40) {
            0 => {
                let answer = self.random.u8(0..7);
                self.answer(answer);
            }
            1 => {
                let is_refused = self.random.bool();
                self.world
                    .replication
                    .on_recording_ended(position, is_refused);
            }
            2 => self.world.replication.on_source_error("bad".to_owned()),
            3 => self.world.facts.is_source_connected = false,
            4 => self.world.facts.is_subscribed = self.random.bool(),
            5..15 => self.world.facts.is_source_connected = true,
            15..20 => self.world.facts.is_endpoint_known = true,
            20..30 => {
                self.world.at(position);
                let transports = self.random.i32(0..3);
                self.world.transports(transports);
            }
            _ => self.world.facts.now_ns += self.random.i64(0..TIMEOUT),
        }
    }

    fn count(&self, is_counted: impl Fn(&Action) -> bool) -> usize {
        self.seen.iter().filter(|action| is_counted(action)).count()
    }

    fn has_signal(&self, wanted: RecordingSignal) -> bool {
        let is_wanted =
            |action: &Action| matches!(action, Action::Signal { signal, .. } if *signal == wanted);
        self.count(is_wanted) > 0
    }

    fn check(&self, seed: u64) {
        let seen = &self.seen;
        let [.., last_signal, Action::End] = &seen[..] else {
            panic!("seed {seed}: the end is missing in {seen:#?}");
        };
        assert!(
            matches!(
                last_signal,
                Action::Signal {
                    signal: RecordingSignal::ReplicateEnd,
                    ..
                }
            ),
            "seed {seed}: {seen:#?}"
        );
        let ends = self.count(|action| matches!(action, Action::End));
        let fails = self.count(|action| matches!(action, Action::Fail { .. }));
        assert!(ends == 1 && fails <= 1, "seed {seed}: {seen:#?}");
        let is_in_sync = self.has_signal(RecordingSignal::SYNC);
        let is_merged = self.has_signal(RecordingSignal::MERGE);
        assert!(!(is_in_sync && is_merged), "seed {seed}: {seen:#?}");
        assert!(
            fails == 0 || !(is_in_sync || is_merged),
            "seed {seed}: {seen:#?}"
        );
        let stops_replay = self.count(|action| matches!(action, Action::StopReplay(_)));
        assert!(
            stops_replay <= usize::from(self.has_replay),
            "seed {seed}: {seen:#?}"
        );
        let stops_recording = self.count(|action| matches!(action, Action::StopRecording));
        let may_stop = self.is_extended && !is_merged;
        assert!(
            stops_recording <= usize::from(may_stop),
            "seed {seed}: {seen:#?}"
        );
    }
}

#[test]
fn replication_with_any_input_ends_once_and_says_how() {
    let (mut synced, mut merged, mut failed) = (0, 0, 0);
    for seed in 0..20_000 {
        let mut chaos = Chaos::new(seed);
        for _ in 0..60 {
            chaos.act();
            chaos.disturb();
        }
        chaos.world.replication.stop();
        for _ in 0..20 {
            chaos.act();
        }
        chaos.check(seed);
        synced += usize::from(chaos.has_signal(RecordingSignal::SYNC));
        merged += usize::from(chaos.has_signal(RecordingSignal::MERGE));
        failed += chaos.count(|action| matches!(action, Action::Fail { .. }));
    }
    // Each outcome is among them.
    assert!(
        synced > 100 && merged > 20 && failed > 1_000,
        "{synced} {merged} {failed}"
    );
}
