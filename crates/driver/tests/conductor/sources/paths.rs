// SPDX-License-Identifier: Apache-2.0
//! A stream that arrives over two sources of one subscription.

use super::*;

#[test]
fn stream_over_two_paths_is_one_image_with_status_on_both() {
    let (mut driver, _, mut sender) = two_paths();
    Sender::send_setup(&driver, 0);
    Sender::send_setup(&driver, 1);
    driver.settle();
    let log = joined(&mut driver);
    Sender::send_setup(&driver, 1);
    for path in 0..2 {
        Sender::send_heartbeat(&driver, path, 0xC0, 0);
    }
    driver.run_for(TICK);
    let [first, second] = sender.status_messages();
    assert!(
        first.len() >= 4 && second.len() >= 4,
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 2);

    // A silent path first receives no status messages, and later is not counted.
    for _ in 0..60 {
        Sender::send_heartbeat(&driver, 0, 0xC0, 0);
        driver.run_for(TICK / 10);
    }
    sender.status_messages();
    for _ in 0..50 {
        Sender::send_heartbeat(&driver, 0, 0xC0, 0);
        driver.run_for(TICK / 10);
    }
    let [first, second] = sender.status_messages();
    assert!(
        first.len() >= 20 && second.is_empty(),
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 1);

    // It becomes active again.
    Sender::send_heartbeat(&driver, 1, 0xC0, 0);
    driver.run_for(TICK);
    assert!(!sender.status_messages()[1].is_empty());
    assert_eq!(log.active_transport_count(), 2);
}

#[test]
fn stream_over_two_paths_ends_with_both() {
    let (mut driver, _, mut sender) = two_paths();
    Sender::send_setup(&driver, 0);
    driver.settle();
    let log = joined(&mut driver);
    for path in 0..2 {
        Sender::send_heartbeat(&driver, path, 0xC0, 0);
    }
    driver.settle();
    Sender::send_heartbeat(&driver, 0, 0xE0, 0);
    driver.settle();
    assert_eq!(log.end_of_stream_position(), i64::MAX);
    sender.status_messages();
    Sender::send_heartbeat(&driver, 1, 0xE0, 0);
    driver.settle();
    assert_eq!(log.end_of_stream_position(), 0);
    assert_eq!(
        sender.status_messages(),
        [vec![true], vec![true]],
        "both receive end-of-stream status messages"
    );
}

#[test]
fn image_survives_the_removal_of_one_path() {
    let (mut driver, subscription, mut sender) = two_paths();
    for path in 0..2 {
        Sender::send_setup(&driver, path);
        driver.settle();
        Sender::send_heartbeat(&driver, path, 0xC0, 0);
    }
    driver.settle();
    let log = joined(&mut driver);
    remove(&mut driver, subscription, FIRST).unwrap();
    sender.status_messages();
    Sender::send_heartbeat(&driver, 1, 0xC0, 0);
    driver.run_for(TICK);
    let [first, second] = sender.status_messages();
    assert!(
        first.is_empty() && second.len() >= 4,
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 1);
    // The remaining path determines the end of the stream.
    Sender::send_heartbeat(&driver, 1, 0xE0, 0);
    driver.settle();
    assert_eq!(log.end_of_stream_position(), 0);
}

/// A source that sends only SETUP frames gets a few status messages, and is counted as long as it exists.
#[test]
fn removed_path_with_setups_only_is_not_counted() {
    let (mut driver, subscription, mut sender) = two_paths();
    Sender::send_setup(&driver, 0);
    driver.settle();
    let log = joined(&mut driver);
    driver.run_for(TICK * 2);
    assert_eq!(
        sender.status_messages()[0].len(),
        3,
        "the budget of one SETUP"
    );
    assert_eq!(log.active_transport_count(), 1);
    remove(&mut driver, subscription, FIRST).unwrap();
    driver.run_for(TICK);
    assert_eq!(log.active_transport_count(), 0);
}
