// SPDX-License-Identifier: Apache-2.0
//! Tests of the dispatcher alone.

use super::*;

const STREAM: i32 = 1001;
const SECOND: i64 = 1_000_000_000;

fn subscribed() -> Dispatcher {
    let mut dispatcher = Dispatcher::new(usize::MAX, 1);
    dispatcher.add_subscription(STREAM, None);
    dispatcher
}

fn abandoned(dispatcher: &mut Dispatcher, session_id: Option<i32>) -> Vec<usize> {
    let mut slots = Vec::new();
    dispatcher.remove_subscription(STREAM, session_id, |slot| slots.push(slot));
    slots
}

#[test]
fn unknown_stream_is_dropped() {
    let mut dispatcher = subscribed();
    assert_eq!(dispatcher.on_data(7, 5, false, 0), DataAction::Drop);
    assert_eq!(dispatcher.on_setup(7, 5), SetupAction::Drop);
}

#[test]
fn data_without_session_elicits_setup_once_per_second() {
    let mut dispatcher = subscribed();
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::ElicitSetup
    );
    assert_eq!(dispatcher.on_data(7, STREAM, false, 1), DataAction::Drop);
    dispatcher.expire(SECOND - 1);
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, SECOND - 1),
        DataAction::Drop
    );
    dispatcher.expire(SECOND);
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, SECOND),
        DataAction::ElicitSetup
    );
}

#[test]
fn end_of_stream_without_session_elicits_nothing() {
    let mut dispatcher = subscribed();
    assert_eq!(dispatcher.on_data(7, STREAM, true, 0), DataAction::Drop);
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::ElicitSetup
    );
}

#[test]
fn session_passes_from_setup_to_cool_down() {
    let mut dispatcher = subscribed();
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::ElicitSetup
    );
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::CreateImage);
    dispatcher.on_image_requested(7, STREAM);
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::Drop);
    assert_eq!(dispatcher.on_data(7, STREAM, false, 0), DataAction::Drop);
    dispatcher.expire(2 * SECOND);
    assert_eq!(dispatcher.on_data(7, STREAM, false, 0), DataAction::Drop);
    assert!(dispatcher.add_image(7, STREAM, 3));
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::Image(3)
    );
    assert_eq!(dispatcher.on_data(7, STREAM, true, 0), DataAction::Image(3));
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::Image(3));
    dispatcher.remove_image(7, STREAM, 3, true);
    assert_eq!(dispatcher.on_data(7, STREAM, false, 0), DataAction::Drop);
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::Drop);
    dispatcher.remove_cool_down(7, STREAM);
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::CreateImage);
}

#[test]
fn refused_image_can_be_requested_again() {
    let mut dispatcher = subscribed();
    dispatcher.on_image_requested(7, STREAM);
    dispatcher.on_image_refused(7, STREAM);
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::CreateImage);
    assert_eq!(dispatcher.creating, 0);
}

#[test]
fn session_specific_subscription_accepts_only_its_session() {
    let mut dispatcher = Dispatcher::new(usize::MAX, 1);
    dispatcher.add_subscription(STREAM, Some(7));
    assert_eq!(dispatcher.on_setup(7, STREAM), SetupAction::CreateImage);
    assert_eq!(dispatcher.on_setup(8, STREAM), SetupAction::Drop);
    dispatcher.add_subscription(STREAM, None);
    assert_eq!(dispatcher.on_setup(8, STREAM), SetupAction::CreateImage);
}

#[test]
fn last_subscription_removes_images_and_cool_downs() {
    let mut dispatcher = subscribed();
    dispatcher.add_subscription(STREAM, Some(7));
    for (session_id, slot) in [(7, 0), (8, 1), (9, 2)] {
        assert!(dispatcher.add_image(session_id, STREAM, slot));
    }
    dispatcher.remove_image(9, STREAM, 2, true);
    assert_eq!(abandoned(&mut dispatcher, None), [1]);
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::Image(0)
    );
    assert_eq!(dispatcher.on_data(8, STREAM, false, 0), DataAction::Drop);
    assert_eq!(abandoned(&mut dispatcher, Some(7)), [0]);
    assert!(!dispatcher.has_interest());
    dispatcher.add_subscription(STREAM, None);
    assert_eq!(dispatcher.on_setup(9, STREAM), SetupAction::CreateImage);
    assert!(!Dispatcher::new(1, 1).add_image(7, STREAM, 0));
}

#[test]
fn remove_image_keeps_newer_image_of_session() {
    let mut dispatcher = subscribed();
    assert!(dispatcher.add_image(7, STREAM, 1));
    dispatcher.remove_image(7, STREAM, 0, true);
    assert_eq!(
        dispatcher.on_data(7, STREAM, false, 0),
        DataAction::Image(1)
    );
}

#[test]
fn session_limit_bounds_images_per_stream() {
    let mut dispatcher = Dispatcher::new(1, 1);
    dispatcher.add_subscription(STREAM, None);
    assert!(dispatcher.add_image(7, STREAM, 0));
    assert_eq!(dispatcher.on_setup(8, STREAM), SetupAction::LimitReached);
    dispatcher.remove_image(7, STREAM, 0, false);
    assert_eq!(dispatcher.on_setup(8, STREAM), SetupAction::CreateImage);
    dispatcher.on_image_requested(8, STREAM);
    assert_eq!(dispatcher.on_setup(9, STREAM), SetupAction::LimitReached);
    dispatcher.on_image_refused(8, STREAM);
    assert_eq!(dispatcher.on_setup(9, STREAM), SetupAction::CreateImage);
}

#[test]
fn invented_sessions_use_bounded_memory() {
    let mut dispatcher = subscribed();
    let elicited = (0..1_000_000)
        .filter(|&session_id| {
            dispatcher.on_data(session_id, STREAM, false, 0) == DataAction::ElicitSetup
        })
        .count();
    assert_eq!(elicited, MAX_PENDING);
    let mut asked = 0;
    for session_id in 0..1_000_000 {
        if dispatcher.on_setup(session_id, STREAM) == SetupAction::CreateImage {
            dispatcher.on_image_requested(session_id, STREAM);
            asked += 1;
        }
    }
    assert_eq!(asked, MAX_CREATING);
    dispatcher.expire(SECOND);
    assert!(dispatcher.pending.is_empty());
    assert_eq!(dispatcher.streams[&STREAM].sessions.len(), MAX_CREATING);
}
