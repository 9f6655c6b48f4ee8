// SPDX-License-Identifier: Apache-2.0
use super::machine::{Action, Facts, ImageFacts, Machine, MachineOptions, ReplayKind, Switch};
use super::{PersistentError, PersistentEvent, PersistentState, StartPosition};
use crate::client::ReplaySession;
use crate::protocol::ErrorCode;
use crate::session::{ArchiveError, Recording, RequestError};

const TERM: i64 = 65_536;
const TIMEOUT: i64 = 10_000_000_000;
/// Longer than the delay before something is tried again.
const LATER: i64 = 200_000_000;
const SESSION: i64 = 7 << 32 | 5;

/// A scripted world: what the machine sees, and what an archive would answer.
struct World {
    machine: Machine,
    facts: Facts,
}

fn image(position: i64) -> Option<ImageFacts> {
    Some(ImageFacts {
        position,
        term_length: TERM,
        is_closed: false,
    })
}

fn recording(start: i64, stop: Option<i64>) -> Recording {
    Recording {
        recording_id: 3,
        start_timestamp: 0,
        stop_timestamp: None,
        start_position: start,
        stop_position: stop,
        initial_term_id: 0,
        segment_file_length: TERM as i32,
        term_buffer_length: TERM as i32,
        mtu_length: 1408,
        session_id: 1,
        stream_id: 9,
        stripped_channel: String::new(),
        original_channel: String::new(),
        source_identity: String::new(),
    }
}

fn refused(code: ErrorCode) -> RequestError {
    RequestError::Rejected(ArchiveError {
        request: Some("start a replay"),
        correlation_id: 1,
        code,
        message: String::new(),
    })
}

impl World {
    fn new(start: StartPosition, replay_kind: ReplayKind) -> Self {
        Self {
            machine: Machine::new(MachineOptions {
                recording_id: 3,
                live_stream_id: 9,
                start,
                replay_kind,
                timeout_ns: TIMEOUT,
            }),
            facts: Facts {
                now_ns: 0,
                is_archive_connected: true,
                is_replay_port_known: false,
                replay: None,
                live: None,
            },
        }
    }

    /// Steps until nothing changes; returns the actions but `DropReplay`.
    fn step(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        loop {
            let before = self.machine.state();
            self.machine.step(&self.facts);
            while let Some(action) = self.machine.next_action() {
                match action {
                    Action::DropReplay => self.facts.replay = None,
                    Action::DropLive => {
                        self.facts.live = None;
                        actions.push(action);
                    }
                    action => actions.push(action),
                }
            }
            if self.machine.state() == before {
                return actions;
            }
        }
    }

    fn wait(&mut self, nanos: i64) -> Vec<Action> {
        self.facts.now_ns += nanos;
        self.step()
    }

    fn events(&mut self) -> Vec<PersistentEvent> {
        std::iter::from_fn(|| self.machine.next_event()).collect()
    }

    /// Goes from the start to reading a replay of an active recording over a fixed channel.
    fn replaying(position: i64) -> Self {
        let mut world = Self::new(StartPosition::At(position), ReplayKind::Fixed);
        assert_eq!(world.step(), [Action::ListRecording]);
        world.machine.on_recording(Ok(Some(recording(0, None))));
        assert_eq!(world.step(), [Action::StartReplay { position }]);
        world.on_replay();
        let session = Some(ReplaySession::from_id(SESSION));
        assert_eq!(world.step(), [Action::AddReplaySubscription { session }]);
        world.machine.on_replay_subscription(Ok(()));
        world.facts.replay = image(position);
        assert_eq!(world.step(), [Action::RequestMaxPosition]);
        assert_eq!(world.machine.state(), PersistentState::Replay);
        world
    }

    fn on_replay(&mut self) {
        self.machine.on_replay(Ok(ReplaySession::from_id(SESSION)));
    }

    /// Reads the replay up to a position.
    fn consume(&mut self, position: i64) {
        self.facts.replay = image(position);
        self.machine.on_consumed(position);
    }

    /// Goes on to the live stream.
    fn live(position: i64) -> Self {
        let mut world = Self::replaying(position);
        world.machine.on_max_position(Ok(position));
        assert_eq!(world.step(), [Action::AddLiveSubscription]);
        world.machine.on_live_subscription(Ok(()));
        world.facts.live = image(position);
        world.step();
        assert_eq!(world.machine.state(), PersistentState::Live);
        assert_eq!(world.events(), [PersistentEvent::JoinedLive]);
        world
    }
}

#[test]
fn start_replays_from_the_start_and_joins_live_when_near() {
    let mut world = World::new(StartPosition::Start, ReplayKind::Fixed);
    world.facts.is_archive_connected = false;
    assert_eq!(world.step(), []);
    assert_eq!(world.machine.state(), PersistentState::AwaitArchive);
    world.facts.is_archive_connected = true;
    assert_eq!(world.step(), [Action::ListRecording]);
    world.machine.on_recording(Ok(Some(recording(1024, None))));
    assert_eq!(world.step(), [Action::StartReplay { position: 1024 }]);
    world.on_replay();
    world.step();
    world.machine.on_replay_subscription(Ok(()));
    world.facts.replay = image(1024);
    assert_eq!(world.step(), [Action::RequestMaxPosition]);
    // The recording is far ahead: the live stream would be held up by a subscriber that does not poll it.
    world.machine.on_max_position(Ok(10 * TERM));
    assert_eq!(world.wait(LATER), []);
    world.consume(10 * TERM - TERM / 4);
    assert_eq!(world.wait(LATER), [Action::RequestMaxPosition]);
    world.machine.on_max_position(Ok(11 * TERM));
    assert_eq!(world.wait(LATER), []);
    world.consume(11 * TERM - TERM / 4);
    assert_eq!(world.wait(LATER), [Action::RequestMaxPosition]);
    world.machine.on_max_position(Ok(11 * TERM));
    assert_eq!(world.step(), [Action::AddLiveSubscription]);
    world.machine.on_live_subscription(Ok(()));
    world.facts.live = image(11 * TERM);
    world.step();
    assert_eq!(world.machine.state(), PersistentState::AttemptSwitch);
    world.consume(11 * TERM);
    world.step();
    assert_eq!(world.machine.state(), PersistentState::Live);
    assert_eq!(world.events(), [PersistentEvent::JoinedLive]);
}

#[test]
fn start_with_live_reads_no_replay() {
    let mut world = World::new(StartPosition::Live, ReplayKind::AnyPort);
    world.step();
    world.machine.on_recording(Ok(Some(recording(0, None))));
    assert_eq!(world.step(), [Action::AddLiveSubscription]);
    world.machine.on_live_subscription(Ok(()));
    world.facts.live = image(4096);
    world.step();
    assert_eq!(world.machine.state(), PersistentState::Live);
    assert_eq!(world.machine.position(), Some(4096));
}

const TIME_MS: i64 = 1_700_000_000_000;

#[test]
fn start_at_a_time_replays_from_it_and_goes_on_from_the_position_of_the_replay() {
    let mut world = World::new(StartPosition::Time(TIME_MS), ReplayKind::Fixed);
    world.step();
    world.machine.on_recording(Ok(Some(recording(1024, None))));
    let position = -32 * TIME_MS;
    assert_eq!(world.step(), [Action::StartReplay { position }]);
    assert_eq!(world.machine.position(), None);
    world.on_replay();
    world.step();
    world.machine.on_replay_subscription(Ok(()));
    world.facts.replay = image(8192);
    assert_eq!(world.step(), [Action::RequestMaxPosition]);
    assert_eq!(world.machine.position(), Some(8192));
    // Another replay begins where this one has got to.
    world.consume(12_288);
    world.facts.replay = Some(ImageFacts {
        is_closed: true,
        ..image(12_288).unwrap()
    });
    assert_eq!(world.step(), []);
    assert_eq!(world.wait(LATER), [Action::ListRecording]);
    world.machine.on_recording(Ok(Some(recording(1024, None))));
    assert_eq!(world.step(), [Action::StartReplay { position: 12_288 }]);
}

#[test]
fn start_at_a_time_over_a_response_channel_requests_it_with_a_token() {
    let mut world = World::new(StartPosition::Time(TIME_MS), ReplayKind::Response);
    world.step();
    world.machine.on_recording(Ok(Some(recording(0, None))));
    world.step();
    world.machine.on_replay_subscription(Ok(()));
    let position = -32 * TIME_MS;
    assert_eq!(world.step(), [Action::StartResponseReplay { position }]);
}

#[test]
fn start_at_a_time_fails_with_an_archive_that_knows_none() {
    let mut world = World::new(StartPosition::Time(TIME_MS), ReplayKind::Fixed);
    world.step();
    world.machine.on_recording(Ok(Some(recording(0, None))));
    world.step();
    world
        .machine
        .on_replay(Err(refused(ErrorCode::InvalidPosition)));
    assert_eq!(world.machine.state(), PersistentState::Failed);
    let Some(PersistentEvent::Failed(error)) = world.events().pop() else {
        panic!("it fails")
    };
    let is_expected = matches!(
        error,
        PersistentError::StartTimeRefused {
            recording_id: 3,
            time_ms: TIME_MS,
            ..
        }
    );
    assert!(is_expected, "{error}");
}

#[test]
fn start_at_a_time_of_an_empty_recording_awaits_the_live_stream() {
    let mut world = World::new(StartPosition::Time(TIME_MS), ReplayKind::Fixed);
    world.step();
    world
        .machine
        .on_recording(Ok(Some(recording(64, Some(64)))));
    assert_eq!(world.step(), [Action::AddLiveSubscription]);
    assert_eq!(world.machine.position(), Some(64));
}

#[test]
fn any_port_subscribes_before_it_requests() {
    let mut world = World::new(StartPosition::Start, ReplayKind::AnyPort);
    world.step();
    world.machine.on_recording(Ok(Some(recording(0, None))));
    let subscribe = Action::AddReplaySubscription { session: None };
    assert_eq!(world.step(), [subscribe]);
    world.machine.on_replay_subscription(Ok(()));
    assert_eq!(world.step(), []);
    assert_eq!(world.machine.state(), PersistentState::AwaitReplayEndpoint);
    world.facts.is_replay_port_known = true;
    assert_eq!(world.step(), [Action::StartReplay { position: 0 }]);
    world.on_replay();
    world.step();
    assert_eq!(world.machine.state(), PersistentState::Replay);
}

#[test]
fn response_channel_subscribes_before_it_requests_with_a_token() {
    let mut world = World::new(StartPosition::Start, ReplayKind::Response);
    world.step();
    world.machine.on_recording(Ok(Some(recording(0, None))));
    world.step();
    world.machine.on_replay_subscription(Ok(()));
    assert_eq!(world.step(), [Action::StartResponseReplay { position: 0 }]);
    world.on_replay();
    world.step();
    assert_eq!(world.machine.state(), PersistentState::Replay);
}

#[test]
fn recording_that_does_not_fit_fails() {
    let check = |start, outcome| {
        let mut world = World::new(start, ReplayKind::Fixed);
        world.step();
        world.machine.on_recording(Ok(outcome));
        world.step();
        assert_eq!(world.machine.state(), PersistentState::Failed);
        match world.events().pop() {
            Some(PersistentEvent::Failed(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let at = StartPosition::At;
    assert!(matches!(
        check(StartPosition::Start, None),
        PersistentError::RecordingNotFound { recording_id: 3 }
    ));
    let mut other = recording(0, None);
    other.stream_id = 10;
    assert!(matches!(
        check(StartPosition::Start, Some(other)),
        PersistentError::StreamIdMismatch { .. }
    ));
    for (position, recording) in [(96, recording(128, None)), (4096, recording(0, Some(2048)))] {
        assert!(matches!(
            check(at(position), Some(recording)),
            PersistentError::InvalidStartPosition { .. }
        ));
    }
}

#[test]
fn refused_replay_fails_unless_the_reason_passes() {
    for (code, fails) in [
        (ErrorCode::InvalidPosition, true),
        (ErrorCode::UnknownRecording, true),
        (ErrorCode::Generic, true),
        (ErrorCode::MaxReplays, false),
    ] {
        let mut world = World::new(StartPosition::Start, ReplayKind::Fixed);
        world.step();
        world.machine.on_recording(Ok(Some(recording(0, None))));
        world.step();
        world.machine.on_replay(Err(refused(code)));
        assert_eq!(
            world.machine.state() == PersistentState::Failed,
            fails,
            "{code}"
        );
        if !fails {
            assert_eq!(world.step(), [], "not at once");
            assert_eq!(world.wait(LATER), [Action::ListRecording]);
        }
    }
}

#[test]
fn lost_live_stream_is_replaced_by_a_replay_from_the_position() {
    let mut world = World::live(4096);
    world.machine.on_consumed(8192);
    world.facts.live = Some(ImageFacts {
        is_closed: true,
        ..image(8192).unwrap()
    });
    assert_eq!(world.step(), [Action::DropLive, Action::ListRecording]);
    assert_eq!(world.events(), [PersistentEvent::LeftLive]);
    world.machine.on_recording(Ok(Some(recording(0, None))));
    assert_eq!(world.step(), [Action::StartReplay { position: 8192 }]);
    // The recorder is still behind what was read live: no failure.
    world
        .machine
        .on_replay(Err(refused(ErrorCode::InvalidPosition)));
    assert_eq!(world.wait(LATER), [Action::ListRecording]);
    // The recording has stopped there: the publisher is awaited.
    world
        .machine
        .on_recording(Ok(Some(recording(0, Some(8192)))));
    assert_eq!(world.step(), [Action::AddLiveSubscription]);
    world.machine.on_live_subscription(Ok(()));
    world.step();
    assert_eq!(world.machine.state(), PersistentState::AwaitLive);
    // It comes back, and has moved on: the part between is replayed.
    world.facts.live = image(10_240);
    assert_eq!(world.step(), [Action::DropLive, Action::ListRecording]);
    world.machine.on_recording(Ok(Some(recording(0, None))));
    assert_eq!(world.step(), [Action::StartReplay { position: 8192 }]);
}

#[test]
fn recording_that_has_lost_what_was_read_live_fails() {
    let mut world = World::live(4096);
    world.machine.on_consumed(8192);
    world.facts.live = None;
    world.step();
    world
        .machine
        .on_recording(Ok(Some(recording(0, Some(6144)))));
    assert_eq!(world.machine.state(), PersistentState::Failed);
}

#[test]
fn lost_archive_is_awaited_unless_live() {
    let mut world = World::replaying(1024);
    world.consume(2048);
    world.facts.is_archive_connected = false;
    world.step();
    assert_eq!(world.machine.state(), PersistentState::AwaitArchive);
    world.facts.is_archive_connected = true;
    assert_eq!(world.step(), [Action::ListRecording]);
    world.machine.on_recording(Ok(Some(recording(0, None))));
    assert_eq!(world.step(), [Action::StartReplay { position: 2048 }]);

    let mut world = World::live(4096);
    world.facts.is_archive_connected = false;
    assert_eq!(world.step(), []);
    assert_eq!(world.machine.state(), PersistentState::Live);
}

#[test]
fn replay_that_ends_or_does_not_arrive_is_set_up_again() {
    let mut world = World::replaying(1024);
    world.consume(2048);
    world.facts.replay = Some(ImageFacts {
        is_closed: true,
        ..image(2048).unwrap()
    });
    world.step();
    assert_eq!(world.wait(LATER), [Action::ListRecording]);

    let mut world = World::replaying(1024);
    world.facts.replay = None;
    assert_eq!(world.wait(1), []);
    assert_eq!(world.wait(TIMEOUT - 1), []);
    world.wait(1);
    assert_eq!(
        world.events(),
        [PersistentEvent::Error(PersistentError::NoReplayImage)]
    );
    assert_eq!(world.wait(LATER), [Action::ListRecording]);
}

#[test]
fn live_stream_that_does_not_arrive_is_reported_once() {
    let mut world = World::replaying(1024);
    world.machine.on_max_position(Ok(1024));
    world.step();
    world.machine.on_live_subscription(Ok(()));
    for _ in 0..3 {
        world.wait(TIMEOUT);
    }
    assert_eq!(world.machine.state(), PersistentState::Replay);
    assert_eq!(
        world.events(),
        [PersistentEvent::Error(PersistentError::NoLiveImage)]
    );
}

#[test]
fn live_stream_lost_during_the_switch_leaves_the_replay() {
    let mut world = World::replaying(1024);
    world.machine.on_max_position(Ok(1024));
    world.step();
    world.machine.on_live_subscription(Ok(()));
    world.facts.live = image(4096);
    world.step();
    assert_eq!(world.machine.state(), PersistentState::AttemptSwitch);
    world.facts.live = Some(ImageFacts {
        is_closed: true,
        ..image(4096).unwrap()
    });
    assert_eq!(world.step(), [Action::DropLive]);
    assert_eq!(world.machine.state(), PersistentState::Replay);
}

/// Polls both images of a stream whose fragments end at these positions, as the subscription does, with every join position
/// and pace. Each fragment is delivered once, in order.
#[test]
fn switch_delivers_each_fragment_once() {
    let ends: Vec<i64> = (1..=12).map(|index| index * 32).collect();
    for join in 0..ends.len() {
        for pace in 1..4 {
            let (mut live, mut replay) = (join as i64 * 32, 0);
            let mut delivered = Vec::new();
            let mut switch = Switch::default();
            let mut is_live = false;
            while !is_live {
                while let Some(end) = ends.iter().find(|end| **end > live) {
                    if !switch.skip_live(*end, replay) {
                        break;
                    }
                    live = *end;
                }
                for _ in 0..pace {
                    let Some(end) = ends.iter().find(|end| **end > replay) else {
                        break;
                    };
                    if switch.is_last(*end) {
                        is_live = true;
                        break;
                    }
                    delivered.push(*end);
                    replay = *end;
                }
                is_live |= live == replay;
            }
            delivered.extend(ends.iter().filter(|end| **end > live));
            assert_eq!(delivered, ends, "join at fragment {join}, {pace} at a time");
        }
    }
}
