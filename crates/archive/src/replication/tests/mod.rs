// SPDX-License-Identifier: Apache-2.0
//! Replications with a scripted source.

mod chaos;

use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, RecordingSignal};
use taran_archive_client::{Recording, ReplaySession, RequestError};

use super::*;

const TIMEOUT: i64 = 10_000_000_000;
const TERM: i64 = 65_536;
const MTU: i32 = 1_408;
const SOURCE_ID: i64 = 7;
const NEW_ID: i64 = 3;
const STREAM: i32 = 1_001;
const SESSION: i32 = -5;

fn replay() -> ReplaySession {
    ReplaySession::from_id(4 << 32 | 9)
}

fn plan() -> Plan {
    Plan {
        source_recording_id: SOURCE_ID,
        destination: None,
        stop_position: None,
        io_max_length: None,
        session_id: None,
        is_live: false,
        is_manual: false,
        timeout_ns: TIMEOUT,
    }
}

fn live() -> Plan {
    Plan {
        is_live: true,
        is_manual: true,
        ..plan()
    }
}

fn source(start: i64, stop: Option<i64>) -> Recording {
    Recording {
        recording_id: SOURCE_ID,
        start_timestamp: 1,
        stop_timestamp: stop,
        start_position: start,
        stop_position: stop,
        initial_term_id: 11,
        segment_file_length: 1 << 20,
        term_buffer_length: 1 << 16,
        mtu_length: MTU,
        session_id: SESSION,
        stream_id: STREAM,
        stripped_channel: "aeron:ipc".to_owned(),
        original_channel: "aeron:ipc".to_owned(),
        source_identity: "aeron:ipc".to_owned(),
    }
}

/// The owner of a replication. What the source answers is scripted by the test.
struct World {
    replication: Replication,
    facts: Facts,
}

impl World {
    fn new(plan: Plan) -> Self {
        Self {
            replication: Replication::new(plan),
            facts: Facts {
                now_ns: 0,
                is_source_connected: false,
                is_subscribed: true,
                is_endpoint_known: false,
                image: None,
            },
        }
    }

    /// Steps until nothing is decided; returns what was.
    fn step(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.replication.step(&self.facts)).collect()
    }

    fn connected(plan: Plan) -> Self {
        let mut world = Self::new(plan);
        assert_eq!(world.step(), [Action::Connect]);
        world.facts.is_source_connected = true;
        world.replication.on_connected(Ok(()));
        assert_eq!(world.step(), [Action::Describe]);
        world
    }

    /// A replication to a new recording whose descriptor is stored.
    fn stored(plan: Plan, source: &Recording) -> (Self, Vec<Action>) {
        let mut world = Self::connected(plan);
        world
            .replication
            .on_described(Ok(Some(source.clone())), None);
        let store = Action::Store {
            source: Box::new(source.clone()),
            replaced: None,
        };
        assert_eq!(world.step(), [store]);
        world.replication.on_stored(Ok(NEW_ID));
        let actions = world.step();
        assert_eq!(
            actions[0],
            signal(RecordingSignal::REPLICATE, source.start_position)
        );
        (world, actions[1..].to_vec())
    }

    /// A replication whose replay is asked for.
    fn replaying(plan: Plan, source: &Recording) -> (Self, Vec<Action>) {
        let (mut world, actions) = Self::stored(plan, source);
        if plan.is_live {
            assert_eq!(actions, [Action::AskPosition]);
            world.replication.on_source_position(Ok(Some(10 * TERM)));
            assert_eq!(world.step(), [extend(SESSION)]);
        } else {
            let session_id = plan.session_id.unwrap_or(SESSION);
            assert_eq!(actions, [extend(session_id)]);
        }
        world.replication.on_extended(true);
        if plan.is_manual {
            assert_eq!(world.step(), [Action::AddReplayDestination]);
            world.replication.on_destination(Ok(()));
        }
        assert_eq!(world.step(), []);
        world.facts.is_endpoint_known = true;
        let actions = world.step();
        world.replication.on_replay(Ok(replay()));
        (world, actions)
    }

    fn replicating(plan: Plan, source: &Recording) -> Self {
        let (mut world, _) = Self::replaying(plan, source);
        world.at(source.start_position);
        assert_eq!(world.step(), []);
        world
    }

    fn at(&mut self, position: i64) {
        let image = self.facts.image.get_or_insert(ImageFacts {
            taken: 0,
            recorded: 0,
            term_length: TERM,
            active_transports: 1,
        });
        (image.taken, image.recorded) = (position, position);
    }

    fn transports(&mut self, count: i32) {
        if let Some(image) = &mut self.facts.image {
            image.active_transports = count;
        }
    }

    fn wait(&mut self) -> Vec<Action> {
        self.facts.now_ns += 1_000_000_000;
        self.step()
    }
}

fn signal(signal: RecordingSignal, position: i64) -> Action {
    Action::Signal {
        signal,
        recording_id: NEW_ID,
        names_subscription: false,
        position,
    }
}

fn sync(position: i64) -> Action {
    Action::Signal {
        signal: RecordingSignal::SYNC,
        recording_id: NEW_ID,
        names_subscription: true,
        position,
    }
}

fn end() -> Action {
    signal(RecordingSignal::ReplicateEnd, NULL_VALUE)
}

fn extend(session_id: i32) -> Action {
    Action::Extend {
        recording_id: NEW_ID,
        stream_id: STREAM,
        session_id,
    }
}

/// Splits a failure from what follows.
fn failure(actions: &[Action]) -> (ErrorCode, &str, &[Action]) {
    match actions {
        [Action::Fail { code, text }, rest @ ..] => (*code, text, rest),
        other => panic!("{other:?}"),
    }
}

#[test]
fn stopped_source_is_copied_to_a_new_recording() {
    let source = source(64, Some(4_096));
    let (mut world, actions) = World::replaying(plan(), &source);
    let start = Action::StartReplay {
        stream_id: STREAM,
        position: 64,
        length: None,
        session_id: SESSION,
        io_max_length: None,
    };
    assert_eq!(actions, [start]);
    assert_eq!(world.step(), []);
    assert_eq!(world.replication.state(), State::AwaitImage);
    world.at(64);
    assert_eq!(world.step(), []);
    world.at(4_064);
    assert_eq!(world.step(), []);
    world.at(4_096);
    assert_eq!(
        world.step(),
        [
            sync(4_096),
            Action::StopReplay(replay()),
            Action::StopRecording,
            end(),
            Action::End
        ]
    );
}

#[test]
fn replication_is_in_sync_when_the_end_is_recorded_and_not_before() {
    let mut world = World::replicating(plan(), &source(0, Some(4_096)));
    world.at(4_096);
    if let Some(image) = &mut world.facts.image {
        image.recorded = 4_064;
    }
    assert_eq!(world.step(), []);
    world.at(4_096);
    assert_eq!(world.step()[0], sync(4_096));
}

#[test]
fn replay_that_ends_before_its_image_was_seen_is_complete() {
    let (mut world, _) = World::replaying(plan(), &source(0, Some(96)));
    world.replication.on_recording_ended(96, false);
    assert_eq!(world.step()[0], sync(96));
}

#[test]
fn replay_that_ends_early_leaves_a_part_without_an_error() {
    let mut world = World::replicating(plan(), &source(0, Some(4_096)));
    world.replication.on_recording_ended(64, false);
    assert_eq!(
        world.step(),
        [
            Action::StopReplay(replay()),
            Action::StopRecording,
            end(),
            Action::End
        ]
    );
}

#[test]
fn destination_is_extended_from_its_stop_position() {
    let mut world = World::connected(Plan {
        destination: Some(NEW_ID),
        ..plan()
    });
    let extent = Extent {
        start: 0,
        stop: 2_048,
    };
    world
        .replication
        .on_described(Ok(Some(source(0, Some(4_096)))), Some(extent));
    assert_eq!(world.step(), [extend(SESSION)]);
    world.replication.on_extended(true);
    world.facts.is_endpoint_known = true;
    let actions = world.step();
    assert!(
        matches!(
            actions[..],
            [Action::StartReplay {
                position: 2_048,
                ..
            }]
        ),
        "{actions:?}"
    );
}

#[test]
fn empty_destination_gets_the_metadata_of_the_source_without_a_signal() {
    let mut world = World::connected(Plan {
        destination: Some(NEW_ID),
        ..plan()
    });
    let extent = Extent {
        start: 32,
        stop: 32,
    };
    let source = source(64, None);
    world
        .replication
        .on_described(Ok(Some(source.clone())), Some(extent));
    let store = Action::Store {
        source: Box::new(source),
        replaced: Some(NEW_ID),
    };
    assert_eq!(world.step(), [store]);
    world.replication.on_stored(Ok(NEW_ID));
    assert_eq!(world.step(), [extend(SESSION)]);
}

#[test]
fn destination_that_ends_where_the_source_does_is_in_sync_at_once() {
    let mut world = World::connected(Plan {
        destination: Some(NEW_ID),
        ..plan()
    });
    let extent = Extent { start: 0, stop: 96 };
    world
        .replication
        .on_described(Ok(Some(source(0, Some(96)))), Some(extent));
    assert_eq!(
        world.step(),
        [signal(RecordingSignal::SYNC, 96), end(), Action::End]
    );
    let (_, actions) = World::stored(plan(), &source(64, Some(64)));
    assert_eq!(
        actions,
        [signal(RecordingSignal::SYNC, 64), end(), Action::End]
    );
}

#[test]
fn stop_position_bounds_the_replay_and_is_not_in_sync() {
    let wanted = Plan {
        stop_position: Some(2_048),
        session_id: Some(77),
        io_max_length: Some(MTU),
        ..plan()
    };
    let (mut world, actions) = World::replaying(wanted, &source(64, None));
    let start = Action::StartReplay {
        stream_id: STREAM,
        position: 64,
        length: Some(2_048 - 64),
        session_id: 77,
        io_max_length: Some(MTU),
    };
    assert_eq!(actions, [start]);
    world.at(2_048);
    assert_eq!(
        world.step(),
        [
            Action::StopReplay(replay()),
            Action::StopRecording,
            end(),
            Action::End
        ]
    );
}

#[test]
fn stop_position_before_the_destination_is_refused() {
    let wanted = Plan {
        stop_position: Some(32),
        ..plan()
    };
    let (_, actions) = World::stored(wanted, &source(64, None));
    let (code, text, rest) = failure(&actions);
    assert_eq!(
        (code, rest),
        (ErrorCode::Generic, &[end(), Action::End][..])
    );
    assert!(text.contains("stop position 32"), "{text}");
    let (_, actions) = World::stored(wanted, &source(32, None));
    assert_eq!(actions, [end(), Action::End]);
}

#[test]
fn refused_connection_fails_with_its_code() {
    let mut world = World::new(plan());
    assert_eq!(world.step(), [Action::Connect]);
    world.replication.on_connected(Err("no answer".to_owned()));
    let actions = world.step();
    let (code, text, rest) = failure(&actions);
    assert_eq!(
        (code, text),
        (ErrorCode::ReplicationConnectionFailure, "no answer")
    );
    // No destination was made.
    let ended = Action::Signal {
        signal: RecordingSignal::ReplicateEnd,
        recording_id: NULL_VALUE,
        names_subscription: false,
        position: NULL_VALUE,
    };
    assert_eq!(rest, [ended, Action::End]);
}

#[test]
fn unusable_source_or_destination_is_an_error() {
    let mut world = World::connected(plan());
    world.replication.on_described(Ok(None), None);
    assert_eq!(failure(&world.step()).0, ErrorCode::UnknownRecording);

    let mut world = World::connected(Plan {
        destination: Some(NEW_ID),
        ..plan()
    });
    world
        .replication
        .on_described(Ok(Some(source(0, None))), None);
    assert_eq!(failure(&world.step()).0, ErrorCode::UnknownRecording);

    let mut world = World::connected(Plan {
        io_max_length: Some(MTU - 1),
        ..plan()
    });
    world
        .replication
        .on_described(Ok(Some(source(0, None))), None);
    let actions = world.step();
    let (code, text, _) = failure(&actions);
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.contains("1407") && text.contains("1408"), "{text}");
}

#[test]
fn failed_request_to_the_source_fails_with_its_text() {
    let mut world = World::connected(plan());
    world
        .replication
        .on_described(Err(RequestError::Disconnected), None);
    let actions = world.step();
    let (code, text, _) = failure(&actions);
    assert_eq!(code, ErrorCode::Generic);
    assert_eq!(text, RequestError::Disconnected.to_string());

    let (mut world, _) = World::stored(plan(), &source(0, None));
    world.replication.on_extended(true);
    world.facts.is_endpoint_known = true;
    world.step();
    world.replication.on_replay(Err(RequestError::Disconnected));
    let actions = world.step();
    let (_, _, rest) = failure(&actions);
    assert_eq!(rest, [Action::StopRecording, end(), Action::End]);
}

#[test]
fn refused_extension_ends_without_a_second_error() {
    let (mut world, _) = World::stored(plan(), &source(0, None));
    world.replication.on_extended(false);
    assert_eq!(world.step(), [end(), Action::End]);
}

#[test]
fn extension_that_meets_a_closing_endpoint_is_repeated_with_growing_pauses() {
    let (mut world, actions) = World::stored(plan(), &source(0, Some(TERM)));
    assert_eq!(actions, [extend(SESSION)]);
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let begin = world.facts.now_ns;
        world
            .replication
            .on_extension_unavailable("the endpoint is closing".to_owned());
        assert_eq!(world.step(), []);
        let mut actions = Vec::new();
        while actions.is_empty() {
            world.facts.now_ns += 10_000_000;
            actions = world.step();
        }
        assert_eq!(actions, [extend(SESSION)]);
        attempts.push((world.facts.now_ns - begin) / 1_000_000);
        // One attempt at a time.
        assert_eq!(world.wait(), []);
        world.facts.now_ns -= 1_000_000_000;
    }
    assert_eq!(attempts, [20, 40, 80, 160]);
    world.replication.on_extended(true);
    world.facts.is_endpoint_known = true;
    assert!(matches!(world.step()[..], [Action::StartReplay { .. }]));
}

#[test]
fn endpoint_that_stays_closing_ends_the_replication_with_its_reason() {
    let (mut world, _) = World::stored(plan(), &source(0, Some(TERM)));
    let actions = loop {
        world
            .replication
            .on_extension_unavailable("the endpoint is closing".to_owned());
        let actions = world.wait();
        if !matches!(actions[..], [] | [Action::Extend { .. }]) {
            break actions;
        }
    };
    let (code, text, rest) = failure(&actions);
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.contains("timeout after 10 s"), "{text}");
    assert!(text.contains("the endpoint is closing"), "{text}");
    assert_eq!(rest, [end(), Action::End]);
}

#[test]
fn destination_that_cannot_be_added_yet_is_repeated() {
    let (mut world, _) = World::stored(live(), &source(0, None));
    world.replication.on_source_position(Ok(Some(0)));
    world.step();
    world.replication.on_extended(true);
    assert_eq!(world.step(), [Action::AddReplayDestination]);
    world
        .replication
        .on_destination_unavailable("closing".to_owned());
    assert_eq!(world.step(), []);
    assert_eq!(world.wait(), [Action::AddReplayDestination]);
    world.replication.on_destination(Ok(()));
    world.facts.is_endpoint_known = true;
    assert!(matches!(world.step()[..], [Action::StartReplay { .. }]));
}

#[test]
fn closed_recording_subscription_ends_without_a_second_error() {
    let mut world = World::replicating(plan(), &source(0, None));
    world.facts.is_subscribed = false;
    let actions = world.step();
    assert_eq!(actions.last(), Some(&Action::End));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Fail { .. }))
    );
}

#[test]
fn recording_that_failed_ends_without_a_second_error() {
    let mut world = World::replicating(live(), &source(0, None));
    world.replication.on_recording_ended(32, true);
    let actions = world.step();
    assert_eq!(actions.last(), Some(&Action::End));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Fail { .. }))
    );
}

#[test]
fn each_step_that_waits_for_the_driver_has_a_deadline() {
    let expired = |mut world: World, expected: &str| {
        assert_eq!(world.step(), []);
        world.facts.now_ns += TIMEOUT - 1;
        assert_eq!(world.step(), []);
        world.facts.now_ns += 1;
        let actions = world.step();
        let (code, text, _) = failure(&actions);
        assert_eq!(code, ErrorCode::Generic);
        assert!(text.contains(expected), "{text}");
    };
    let source = source(0, None);
    let (world, _) = World::stored(plan(), &source);
    expired(world, "subscription");

    let (mut world, _) = World::stored(
        Plan {
            is_manual: true,
            ..plan()
        },
        &source,
    );
    world.replication.on_extended(true);
    assert_eq!(world.step(), [Action::AddReplayDestination]);
    expired(world, "destination");

    let (mut world, _) = World::stored(plan(), &source);
    world.replication.on_extended(true);
    expired(world, "port");

    let (world, _) = World::replaying(plan(), &source);
    expired(world, "image");
}

#[test]
fn replication_without_news_waits_for_ever() {
    let mut world = World::replicating(plan(), &source(0, None));
    for _ in 0..100 {
        assert_eq!(world.wait(), []);
    }
}

#[test]
fn lost_source_fails_unless_all_is_there() {
    let mut world = World::replicating(plan(), &source(0, Some(64)));
    world.facts.is_source_connected = false;
    let actions = world.step();
    let (code, text, rest) = failure(&actions);
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.contains("lost"), "{text}");
    assert_eq!(rest.last(), Some(&Action::End));

    let mut world = World::replicating(plan(), &source(0, Some(64)));
    world.facts.is_source_connected = false;
    world.at(64);
    assert_eq!(world.step()[0], sync(64));
}

#[test]
fn error_of_the_source_fails() {
    let mut world = World::replicating(plan(), &source(0, Some(64)));
    world.replication.on_source_error("checksum".to_owned());
    let actions = world.step();
    assert_eq!(failure(&actions).1, "checksum");
    world.replication.on_source_error("again".to_owned());
    assert_eq!(world.step(), []);
}

#[test]
fn requested_stop_ends_every_state_without_an_error() {
    let source = source(0, None);
    for (mut world, expected) in [
        (World::new(plan()), vec![]),
        (World::connected(plan()), vec![]),
        (World::stored(plan(), &source).0, vec![]),
        (
            World::replicating(plan(), &source),
            vec![Action::StopReplay(replay()), Action::StopRecording],
        ),
        (
            World::replicating(live(), &source),
            vec![Action::StopReplay(replay()), Action::StopRecording],
        ),
    ] {
        world.replication.stop();
        world.replication.stop();
        let actions = world.step();
        assert_eq!(actions[..actions.len() - 2], expected);
        assert_eq!(actions.last(), Some(&Action::End));
        // Answers that come later change nothing.
        world.replication.on_described(Ok(None), None);
        world.replication.on_extended(true);
        world.replication.on_replay(Ok(replay()));
        world.replication.on_destination(Err("late".to_owned()));
        assert_eq!(world.step(), []);
    }
}

#[test]
fn live_stream_is_joined_near_the_end_and_replaces_the_replay() {
    let mut world = World::replicating(live(), &source(0, None));
    world.at(10 * TERM);
    assert_eq!(world.step(), [Action::AskPosition]);
    assert_eq!(world.wait(), []);
    // More than a quarter of a term away.
    world.replication.on_source_position(Ok(Some(11 * TERM)));
    assert_eq!(world.step(), []);
    world.at(11 * TERM - TERM / 4);
    assert_eq!(world.step(), [Action::AddLiveDestination]);
    world.replication.on_destination(Ok(()));
    assert_eq!(world.step(), []);
    // At the position, but nothing has come from the live stream.
    world.at(11 * TERM);
    assert_eq!(world.wait(), []);
    assert_eq!(world.wait(), [Action::AskPosition]);
    world.transports(2);
    world.replication.on_source_position(Ok(Some(11 * TERM)));
    assert_eq!(
        world.step(),
        [
            Action::RemoveReplayDestination,
            signal(RecordingSignal::MERGE, 11 * TERM),
            Action::StopReplay(replay()),
            end(),
            Action::End
        ]
    );
}

#[test]
fn stopped_source_has_no_live_stream() {
    let (_, actions) = World::stored(live(), &source(0, Some(64)));
    assert_eq!(failure(&actions).0, ErrorCode::Generic);

    let (mut world, _) = World::stored(live(), &source(0, None));
    world.replication.on_source_position(Ok(None));
    assert_eq!(failure(&world.step()).0, ErrorCode::Generic);

    let mut world = World::replicating(live(), &source(0, None));
    world.at(10 * TERM);
    assert_eq!(world.step(), [Action::AskPosition]);
    world.replication.on_source_position(Ok(None));
    assert_eq!(failure(&world.step()).0, ErrorCode::Generic);
}

#[test]
fn replay_that_ends_before_the_merge_is_an_error() {
    let mut world = World::replicating(live(), &source(0, None));
    world.replication.on_recording_ended(TERM, false);
    let actions = world.step();
    let (code, text, _) = failure(&actions);
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.contains("live stream"), "{text}");
}

#[test]
fn source_that_does_not_answer_is_asked_three_times() {
    let mut world = World::replicating(live(), &source(0, None));
    world.at(10 * TERM);
    let timeout = || {
        Err(RequestError::Timeout {
            request: "get a recorded position",
            after: std::time::Duration::from_secs(10),
        })
    };
    assert_eq!(world.step(), [Action::AskPosition]);
    for _ in 0..2 {
        world.replication.on_source_position(timeout());
        assert_eq!(world.wait(), [Action::AskPosition]);
    }
    world.replication.on_source_position(timeout());
    assert_eq!(failure(&world.step()).0, ErrorCode::Generic);
}

#[test]
fn refused_destination_is_an_error() {
    let mut world = World::replicating(live(), &source(0, None));
    world.at(10 * TERM);
    world.step();
    world.replication.on_source_position(Ok(Some(10 * TERM)));
    assert_eq!(world.step(), [Action::AddLiveDestination]);
    world
        .replication
        .on_destination(Err("no such host".to_owned()));
    let actions = world.step();
    assert_eq!(failure(&actions).1, "no such host");
}
