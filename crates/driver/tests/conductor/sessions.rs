// SPDX-License-Identifier: Apache-2.0
//! Session ids chosen by id, by tag and by subscription, and streams with an initial position
//! (docs/spec/wire.md §7.2, §7.3, docs/spec/uri-and-configuration.md §1.6).

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::type_id;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::ExclusiveAppender;

use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const TERM: i64 = 64 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// Adds a subscription and returns its images after one second.
fn images(driver: &mut DriverFixture, client_id: i64, channel: &str) -> Vec<Available> {
    driver.drain();
    let correlation_id = driver.id();
    driver.send(&Command::AddSubscription {
        client_id,
        correlation_id,
        stream_id: 10,
        channel,
    });
    driver.run_for(SECOND);
    let mut found = available(&driver.messages());
    found.retain(|image| image.subscription_id == correlation_id);
    found
}

fn close(driver: &mut DriverFixture, client_id: i64, publication: &Ready) {
    let command = Command::RemovePublication {
        client_id,
        correlation_id: driver.id(),
        registration_id: publication.correlation_id,
        revoke: false,
    };
    driver.ask(&command);
}

#[test]
fn session_tag_selects_session_mtu_and_term_length() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let named = format!("{UDP}|tags=1,2|mtu=2048|term-length=128k|session-id=-77");
    let first = driver.add_publication(client, &named, 10).unwrap();
    assert_eq!(first.session_id, -77);
    for (channel, stream_id) in [
        (format!("{UDP}|session-id=tag:2"), 11),
        ("aeron:udp?tags=1|session-id=tag:2".to_owned(), 12),
        (
            "aeron:udp?endpoint=localhost:40999|session-id=tag:2".to_owned(),
            10,
        ),
        (
            format!("{UDP}|session-id=tag:2|mtu=2k|term-length=131072"),
            13,
        ),
        ("aeron:ipc?session-id=tag:2".to_owned(), 10),
    ] {
        let second = driver.add_publication(client, &channel, stream_id).unwrap();
        assert_eq!(second.session_id, -77, "{channel}");
        let log = driver.log(&second.log);
        assert_eq!((log.mtu(), log.term_length()), (2048, 131_072), "{channel}");
    }
}

#[test]
fn invalid_session_tag_is_rejected_with_reason() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let named = format!("{UDP}|tags=1,2");
    driver.add_publication(client, &named, 10).unwrap();
    for (channel, says) in [
        (
            format!("{UDP}|session-id=tag:3"),
            "session-id=tag:3 must reference a network publication",
        ),
        (format!("{UDP}|session-id=tag:2|mtu=2k"), "mtu=2048"),
        (
            format!("{UDP}|session-id=tag:2|term-length=1m"),
            "term-length=1048576",
        ),
    ] {
        let refused = driver.add_publication(client, &channel, 11).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{channel}");
        assert!(refused.text.contains(says), "{}", refused.text);
        assert!(refused.text.contains(&channel), "{}", refused.text);
    }
    // On the stream of the publication itself the session is shared, or taken.
    let same = format!("{UDP}|session-id=tag:2");
    assert!(driver.add_publication(client, &same, 10).is_ok());
    let refused = driver.add_exclusive(client, &same, 10).unwrap_err();
    assert!(
        refused.text.contains("already in exclusive use"),
        "{}",
        refused.text
    );
}

#[test]
fn session_specific_subscription_receives_its_session_only() {
    for channel in [UDP, "aeron:ipc"] {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        let separator = if channel.contains('?') { '|' } else { '?' };
        for session in [5, 6] {
            let publish = format!("{channel}{separator}session-id={session}");
            driver.add_exclusive(client, &publish, 10).unwrap();
        }
        let only = format!("{channel}{separator}session-id=6");
        let found = images(&mut driver, client, &only);
        let sessions: Vec<i32> = found.iter().map(|image| image.session_id).collect();
        assert_eq!(sessions, [6], "{channel}");
        let none = format!("{channel}{separator}session-id=7");
        assert!(images(&mut driver, client, &none).is_empty(), "{channel}");
        // A subscription without a session id receives all; an image is shared by all subscriptions to its session.
        let mut all = images(&mut driver, client, channel);
        all.sort_by_key(|image| image.session_id);
        assert_eq!(all.len(), 2, "{channel}");
        assert_eq!(all[1].image_id, found[0].image_id, "{channel}");
    }
}

#[test]
fn unsubscribed_session_is_received_once_subscribed() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let publish = format!("{UDP}|session-id=5");
    driver.add_exclusive(client, &publish, 10).unwrap();
    let other = format!("{UDP}|session-id=6");
    assert!(images(&mut driver, client, &other).is_empty());
    assert_eq!(images(&mut driver, client, &publish).len(), 1);
}

#[test]
fn last_subscription_of_session_frees_its_image() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let publish = format!("{UDP}|session-id=5");
    driver.add_exclusive(client, &publish, 10).unwrap();
    let one = images(&mut driver, client, &publish).remove(0);
    let all = images(&mut driver, client, UDP).remove(0);
    let remove = |driver: &mut DriverFixture, subscription| {
        driver.ask(&Command::RemoveSubscription {
            client_id: client,
            correlation_id: driver.id(),
            registration_id: subscription,
        });
        driver.run_for(SECOND * 2);
    };
    remove(&mut driver, all.subscription_id);
    assert!(unavailable(&driver.messages()).is_empty());
    let images_left = |driver: &DriverFixture| {
        let files = driver.log_files().into_iter();
        files.filter(|name| name.contains("/images/")).count()
    };
    assert_eq!(images_left(&driver), 1, "one subscription still reads it");
    remove(&mut driver, one.subscription_id);
    driver.run_for(SECOND * 12);
    assert_eq!(images_left(&driver), 0);
}

#[test]
fn stream_starts_at_position_of_channel() {
    for (channel, separator) in [(UDP, '|'), ("aeron:ipc", '?')] {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        let publish = format!(
            "{channel}{separator}term-length=64k|init-term-id=-5|term-id=2|term-offset=4096"
        );
        let publication = driver.add_exclusive(client, &publish, 10).unwrap();
        let start = 7 * TERM + 4096;
        for meta in driver.counters() {
            if [type_id::PUBLISHER_LIMIT, type_id::SENDER_POSITION].contains(&meta.type_id) {
                assert_eq!(driver.value(meta.id), start, "{}", meta.label);
            }
        }
        let image = images(&mut driver, client, channel).remove(0);
        assert_eq!(driver.value(image.position_counter_id), start, "{channel}");
        let log = driver.log(&publication.log);
        assert_eq!(log.geometry().initial_term_id(), -5);
        let mut appender = ExclusiveAppender::new(log).unwrap();
        assert_eq!(appender.position(), start, "{channel}");
        appender.append(&[1; 100], None).unwrap();
        driver.run_for(SECOND);
        let image_log = driver.log(&image.log);
        let frame = image_log.term_at(start);
        let length = frame
            .atomic_i32(4096)
            .load(std::sync::atomic::Ordering::Acquire);
        assert_eq!(length, 132, "{channel}");
        assert!(driver.errors().is_empty(), "{:?}", driver.errors());
    }
}

#[test]
fn stream_continues_at_end_of_another() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let first = format!("{UDP}|session-id=5|term-length=64k");
    let publication = driver.add_exclusive(client, &first, 10).unwrap();
    let image = images(&mut driver, client, UDP).remove(0);
    let log = driver.log(&publication.log);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    for _ in 0..10 {
        appender.append(&[1; 100], None).unwrap();
    }
    driver.run_for(SECOND);
    let end = appender.position();
    driver.set(image.position_counter_id, end);
    close(&mut driver, client, &publication);
    driver.run_for(SECOND * 8);
    assert_eq!(unavailable(&driver.messages()).len(), 1);
    let geometry = log.geometry();
    let resumed = format!(
        "{first}|init-term-id={}|term-id={}|term-offset={}",
        geometry.initial_term_id(),
        geometry.term_id(end),
        geometry.term_offset(end)
    );
    driver.send(&Command::AddExclusivePublication {
        client_id: client,
        correlation_id: driver.id(),
        stream_id: 10,
        channel: &resumed,
    });
    driver.run_for(SECOND);
    let image = available(&driver.messages()).remove(0);
    assert_eq!(driver.value(image.position_counter_id), end);
}
