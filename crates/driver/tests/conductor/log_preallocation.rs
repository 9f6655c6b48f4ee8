// SPDX-License-Identifier: Apache-2.0
//! Preallocation of log files for queued commands: the logs of many publications are created together.

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::response::Response;

use crate::fixture::DriverFixture;

const IPC: &str = "aeron:ipc";

fn send_add(driver: &DriverFixture, client_id: i64, channel: &str, stream_id: i32) {
    driver.send(&Command::AddPublication {
        client_id,
        correlation_id: driver.id(),
        stream_id,
        channel,
    });
}

/// Returns the number of publications announced since the last call.
fn announced(driver: &mut DriverFixture) -> usize {
    let messages = driver.messages();
    let ready = messages
        .iter()
        .filter(|message| matches!(message.get(), Response::PublicationReady { .. }));
    ready.count()
}

/// Returns a client with a pending name lookup and publications queued behind it.
fn waiting(driver: &mut DriverFixture, count: i32) -> i64 {
    let client_id = driver.client();
    send_add(driver, client_id, "aeron:udp?endpoint=server:40123", 1_000);
    for stream_id in 0..count {
        send_add(driver, client_id, IPC, stream_id);
    }
    driver.settle();
    client_id
}

fn mapped(driver: &DriverFixture) -> i64 {
    driver.system(SystemCounter::BytesCurrentlyMapped)
}

#[test]
fn logs_of_many_publications_are_created_together() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    for stream_id in 0..40 {
        send_add(&driver, client_id, IPC, stream_id);
    }
    let (mut ready, mut cycles) = (0, 0);
    while ready < 40 {
        let now = driver.now();
        driver.parts.conductor.do_work(now);
        ready += announced(&mut driver);
        cycles += 1;
        assert!(cycles < 1_000, "{ready} are ready");
    }
    // A file is ready in the next cycle, so sequential creation would take at least one cycle per publication.
    assert!(cycles <= 40 / 4 + 5, "{cycles}");
}

#[test]
fn logs_of_deferred_commands_are_preallocated() {
    let mut driver = DriverFixture::new();
    waiting(&mut driver, 20);
    assert_eq!(driver.log_files().len(), 20);
    assert_eq!(announced(&mut driver), 0);
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    driver.hosts.answer("server", &answer);
    driver.settle();
    assert_eq!(announced(&mut driver), 21);
    assert_eq!(driver.log_files().len(), 21);
}

#[test]
fn closed_client_leaves_no_preallocated_log() {
    let mut driver = DriverFixture::new();
    let before = mapped(&driver);
    let client_id = waiting(&mut driver, 20);
    assert!(mapped(&driver) > before);
    driver.send(&Command::ClientClose {
        client_id,
        correlation_id: driver.id(),
    });
    driver.settle();
    assert!(driver.log_files().is_empty());
    assert_eq!(mapped(&driver), before);
}

#[test]
fn commands_for_one_publication_preallocate_one_log() {
    let mut driver = DriverFixture::new();
    let client_id = waiting(&mut driver, 1);
    for _ in 0..20 {
        send_add(&driver, client_id, IPC, 0);
    }
    driver.settle();
    assert_eq!(driver.log_files().len(), 1);
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    driver.hosts.answer("server", &answer);
    driver.settle();
    assert_eq!(announced(&mut driver), 22);
    assert_eq!(driver.log_files().len(), 2);
}

#[test]
fn unused_preallocated_log_is_removed() {
    let mut driver = DriverFixture::new();
    let client_id = waiting(&mut driver, 1);
    let before = driver.log_files().len();
    // Another client adds the publication first.
    let other = driver.client();
    driver.add_publication(other, IPC, 0).unwrap();
    assert_eq!(driver.log_files().len(), before + 1);
    driver
        .hosts
        .answer("server", &Err("no such name".to_owned()));
    driver.settle();
    assert_eq!(announced(&mut driver), 1);
    assert_eq!(driver.log_files().len(), 1, "client {client_id} shares it");
}

/// The term length of the channel determines the preallocated log.
#[test]
fn preallocated_log_has_term_length_of_channel() {
    let mut driver = DriverFixture::new();
    let client_id = waiting(&mut driver, 0);
    send_add(&driver, client_id, "aeron:ipc?term-length=128k", 5);
    driver.settle();
    driver
        .hosts
        .answer("server", &Err("no such name".to_owned()));
    driver.settle();
    let messages = driver.messages();
    let log = messages.iter().find_map(|message| match message.get() {
        Response::PublicationReady { log_name, .. } => Some(log_name.to_owned()),
        _ => None,
    });
    assert_eq!(driver.log(&log.unwrap()).term_length(), 128 * 1024);
}
