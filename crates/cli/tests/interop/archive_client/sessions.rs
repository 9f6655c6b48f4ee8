// SPDX-License-Identifier: Apache-2.0
//! Control sessions: channels, credentials, loss.

use taran::{Clock, SystemClock};
use taran_archive_client::protocol::ErrorCode;
use taran_archive_client::session::SessionError;
use taran_archive_client::{ConnectError, Credentials, ReconnectingArchive, RequestError};

use super::fixture::TestArchive;
use crate::exchange::await_true;
use crate::java::argument;
use crate::require_java;

#[test]
fn client_connects_over_udp_ipc_and_response_channels() {
    require_java!();
    connect_over_all_channels(&TestArchive::beside_taran("archive-channels", &[]));
}

#[test]
fn client_connects_to_taran_over_udp_ipc_and_response_channels() {
    connect_over_all_channels(&TestArchive::taran("taran-channels"));
}

fn connect_over_all_channels(archive: &TestArchive) {
    let client = archive.client();
    let contexts = [
        archive.udp(),
        TestArchive::ipc(),
        archive.responses(),
        TestArchive::ipc().response_channel("aeron:ipc?control-mode=response"),
    ];
    let mut connected: Vec<_> = contexts
        .iter()
        .map(|context| context.clone().client_name("interop"))
        .map(|context| context.connect(&client).unwrap())
        .collect();
    let ids: Vec<_> = connected
        .iter_mut()
        .map(|archive| archive.archive_id().unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    let first = connected[0].connection();
    assert_eq!(first.connected_archive_id(), Some(ids[0]));
    assert_eq!(first.archive_version().to_string(), "1.12.0");
    // Each session is one of the archive's, with the client's name.
    let mut labels = Vec::new();
    client.counters().for_each(|counter| {
        if counter.type_id == 113 {
            labels.push(counter.label.as_str().to_owned());
        }
    });
    assert_eq!(labels.len(), 4, "{labels:?}");
    assert!(labels.iter().all(|label| label.contains("name=interop")));
    // The archive closes a session whose client leaves.
    drop(connected);
    await_true("the end of the sessions", || {
        let mut sessions = 0;
        client
            .counters()
            .for_each(|counter| sessions += usize::from(counter.type_id == 113));
        sessions == 0
    });
}

/// Answers a challenge with its reverse.
struct Reversing;

impl Credentials for Reversing {
    fn credentials(&mut self) -> Vec<u8> {
        b"me".to_vec()
    }

    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8> {
        challenge.iter().rev().copied().collect()
    }
}

#[test]
fn client_answers_the_challenge_of_the_archive() {
    require_java!();
    let auth = [argument("auth", "challenge")];
    let archive = TestArchive::beside_taran("archive-challenge", &auth);
    let client = archive.client();
    let mut connected = archive
        .udp()
        .credentials(Reversing)
        .connect(&client)
        .unwrap();
    connected.archive_id().unwrap();
    // Accepted credentials, but no answer to the challenge; and credentials that are rejected.
    for credentials in [b"me".to_vec(), b"you".to_vec()] {
        let rejected = archive.udp().credentials(credentials).connect(&client);
        match rejected.unwrap_err() {
            ConnectError::Session(SessionError::Rejected { code, .. }) => {
                assert_eq!(code, ErrorCode::AuthenticationRejected);
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn client_connects_again_when_the_archive_comes_back() {
    require_java!();
    connect_again(TestArchive::beside_taran("archive-comes-back", &[]));
}

#[test]
fn client_connects_again_when_taran_comes_back() {
    connect_again(TestArchive::taran("taran-comes-back"));
}

fn connect_again(mut archive: TestArchive) {
    let client = archive.client();
    let mut clock = SystemClock::new();
    let mut reconnecting = ReconnectingArchive::new(archive.udp(), client).unwrap();
    await_true("the connection", || {
        reconnecting.do_work(clock.now().nanos);
        reconnecting.is_connected()
    });
    archive.kill();
    let mut call = reconnecting.connection().unwrap().archive_id();
    let mut outcome = None;
    await_true("the loss", || {
        reconnecting.do_work(clock.now().nanos);
        outcome = call.poll();
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Err(RequestError::Disconnected)));
    assert!(!reconnecting.is_connected());
    archive.launch();
    await_true("the second connection", || {
        reconnecting.do_work(clock.now().nanos);
        reconnecting.is_connected()
    });
    assert_eq!(reconnecting.generation(), 2);
    let mut call = reconnecting.connection().unwrap().archive_id();
    await_true("an answer", || {
        reconnecting.do_work(clock.now().nanos);
        call.poll().is_some_and(|id| id.is_ok())
    });
}
