//! Sessions that are chosen: by id, by the tag of another publication, and by who subscribes; and streams that begin in
//! the middle (docs/spec/wire.md §7.2, §7.3, docs/spec/uri-and-configuration.md §1.6).

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::type_id;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::ExclusiveAppender;

use crate::bench::{Bench, Ready};
use crate::told::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const TERM: i64 = 64 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// Adds a subscription, and returns the images it is told of within a second.
fn images(bench: &mut Bench, client_id: i64, channel: &str) -> Vec<Available> {
    bench.drain();
    let correlation_id = bench.id();
    bench.send(&Command::AddSubscription {
        client_id,
        correlation_id,
        stream_id: 10,
        channel,
    });
    bench.run_for(SECOND);
    let mut found = available(&bench.messages());
    found.retain(|image| image.subscription_id == correlation_id);
    found
}

fn close(bench: &mut Bench, client_id: i64, publication: &Ready) {
    let command = Command::RemovePublication {
        client_id,
        correlation_id: bench.id(),
        registration_id: publication.correlation_id,
        revoke: false,
    };
    bench.ask(&command);
}

#[test]
fn a_tag_stands_for_session_mtu_and_term_length_of_what_it_names() {
    let mut bench = Bench::new();
    let client = bench.client();
    let named = format!("{UDP}|tags=1,2|mtu=2048|term-length=128k|session-id=-77");
    let first = bench.add_publication(client, &named, 10).unwrap();
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
        let second = bench.add_publication(client, &channel, stream_id).unwrap();
        assert_eq!(second.session_id, -77, "{channel}");
        let log = bench.log(&second.log);
        assert_eq!((log.mtu(), log.term_length()), (2048, 131_072), "{channel}");
    }
}

#[test]
fn a_tag_that_cannot_be_followed_is_refused_with_the_reason() {
    let mut bench = Bench::new();
    let client = bench.client();
    let named = format!("{UDP}|tags=1,2");
    bench.add_publication(client, &named, 10).unwrap();
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
        let refused = bench.add_publication(client, &channel, 11).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{channel}");
        assert!(refused.text.contains(says), "{}", refused.text);
        assert!(refused.text.contains(&channel), "{}", refused.text);
    }
    // On the stream of the publication itself the session is shared, or taken.
    let same = format!("{UDP}|session-id=tag:2");
    assert!(bench.add_publication(client, &same, 10).is_ok());
    let refused = bench.add_exclusive(client, &same, 10).unwrap_err();
    assert!(
        refused.text.contains("already in exclusive use"),
        "{}",
        refused.text
    );
}

#[test]
fn a_subscription_gets_the_session_it_asks_for_and_no_other() {
    for channel in [UDP, "aeron:ipc"] {
        let mut bench = Bench::new();
        let client = bench.client();
        let separator = if channel.contains('?') { '|' } else { '?' };
        for session in [5, 6] {
            let publish = format!("{channel}{separator}session-id={session}");
            bench.add_exclusive(client, &publish, 10).unwrap();
        }
        let only = format!("{channel}{separator}session-id=6");
        let found = images(&mut bench, client, &only);
        let sessions: Vec<i32> = found.iter().map(|image| image.session_id).collect();
        assert_eq!(sessions, [6], "{channel}");
        let none = format!("{channel}{separator}session-id=7");
        assert!(images(&mut bench, client, &none).is_empty(), "{channel}");
        // Who asks for all gets them, and one image serves both who want the same.
        let mut all = images(&mut bench, client, channel);
        all.sort_by_key(|image| image.session_id);
        assert_eq!(all.len(), 2, "{channel}");
        assert_eq!(all[1].image_id, found[0].image_id, "{channel}");
    }
}

#[test]
fn a_session_that_was_nobodys_is_taken_up_when_somebody_asks_for_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    let publish = format!("{UDP}|session-id=5");
    bench.add_exclusive(client, &publish, 10).unwrap();
    let other = format!("{UDP}|session-id=6");
    assert!(images(&mut bench, client, &other).is_empty());
    assert_eq!(images(&mut bench, client, &publish).len(), 1);
}

#[test]
fn the_last_who_wants_a_session_takes_its_image_along() {
    let mut bench = Bench::new();
    let client = bench.client();
    let publish = format!("{UDP}|session-id=5");
    bench.add_exclusive(client, &publish, 10).unwrap();
    let one = images(&mut bench, client, &publish).remove(0);
    let all = images(&mut bench, client, UDP).remove(0);
    let remove = |bench: &mut Bench, subscription| {
        bench.ask(&Command::RemoveSubscription {
            client_id: client,
            correlation_id: bench.id(),
            registration_id: subscription,
        });
        bench.run_for(SECOND * 2);
    };
    remove(&mut bench, all.subscription_id);
    assert!(unavailable(&bench.messages()).is_empty());
    let images_left = |bench: &Bench| {
        let files = bench.log_files().into_iter();
        files.filter(|name| name.contains("/images/")).count()
    };
    assert_eq!(images_left(&bench), 1, "one subscription still reads it");
    remove(&mut bench, one.subscription_id);
    bench.run_for(SECOND * 12);
    assert_eq!(images_left(&bench), 0);
}

#[test]
fn a_stream_begins_where_its_channel_says() {
    for (channel, separator) in [(UDP, '|'), ("aeron:ipc", '?')] {
        let mut bench = Bench::new();
        let client = bench.client();
        let publish = format!(
            "{channel}{separator}term-length=64k|init-term-id=-5|term-id=2|term-offset=4096"
        );
        let publication = bench.add_exclusive(client, &publish, 10).unwrap();
        let start = 7 * TERM + 4096;
        for meta in bench.counters() {
            if [type_id::PUBLISHER_LIMIT, type_id::SENDER_POSITION].contains(&meta.type_id) {
                assert_eq!(bench.value(meta.id), start, "{}", meta.label);
            }
        }
        let image = images(&mut bench, client, channel).remove(0);
        assert_eq!(bench.value(image.position_counter_id), start, "{channel}");
        let log = bench.log(&publication.log);
        assert_eq!(log.geometry().initial_term_id(), -5);
        let mut appender = ExclusiveAppender::new(log).unwrap();
        assert_eq!(appender.position(), start, "{channel}");
        appender.append(&[1; 100], None).unwrap();
        bench.run_for(SECOND);
        let image_log = bench.log(&image.log);
        let frame = image_log.term_at(start);
        let length = frame
            .atomic_i32(4096)
            .load(std::sync::atomic::Ordering::Acquire);
        assert_eq!(length, 132, "{channel}");
        assert!(bench.errors().is_empty(), "{:?}", bench.errors());
    }
}

#[test]
fn a_stream_goes_on_where_another_ended() {
    let mut bench = Bench::new();
    let client = bench.client();
    let first = format!("{UDP}|session-id=5|term-length=64k");
    let publication = bench.add_exclusive(client, &first, 10).unwrap();
    let image = images(&mut bench, client, UDP).remove(0);
    let log = bench.log(&publication.log);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    for _ in 0..10 {
        appender.append(&[1; 100], None).unwrap();
    }
    bench.run_for(SECOND);
    let end = appender.position();
    bench.set(image.position_counter_id, end);
    close(&mut bench, client, &publication);
    bench.run_for(SECOND * 8);
    assert_eq!(unavailable(&bench.messages()).len(), 1);
    let geometry = log.geometry();
    let resumed = format!(
        "{first}|init-term-id={}|term-id={}|term-offset={}",
        geometry.initial_term_id(),
        geometry.term_id(end),
        geometry.term_offset(end)
    );
    bench.send(&Command::AddExclusivePublication {
        client_id: client,
        correlation_id: bench.id(),
        stream_id: 10,
        channel: &resumed,
    });
    bench.run_for(SECOND);
    let image = available(&bench.messages()).remove(0);
    assert_eq!(bench.value(image.position_counter_id), end);
}
