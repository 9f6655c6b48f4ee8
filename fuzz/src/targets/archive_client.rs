// SPDX-License-Identifier: Apache-2.0
//! A hostile archive of a client: the source of a replication, or the archive of an application.

use taran_archive_client::protocol::Event;
use taran_archive_client::session::{
    CallSpec, Calls, Connect, ConnectOptions, ConnectProgress, Expected, Routed,
};

use crate::script::Script;

const DEADLINE_NS: i64 = 1_000;
const TIMEOUT_NS: i64 = 100;
/// Largest number of messages; longer scripts are cut.
const STEPS_MAX: usize = 64;
/// Requests of a session.
const EXPECTED: [Expected; 6] = [
    Expected::Value,
    Expected::Recordings { count: 1 },
    Expected::Recordings { count: 1_000 },
    Expected::Subscriptions { count: 2 },
    Expected::Value,
    Expected::Recordings { count: 0 },
];

/// Connects to an archive that sends what a script says, then sends requests to it. The attempt ends, and each request ends
/// exactly once.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut next_id = 1;
    let options = ConnectOptions {
        response_channel: "aeron:udp?endpoint=localhost:4000".to_owned(),
        response_stream_id: 20,
        client_info: "name=fuzz".to_owned(),
        deadline_ns: DEADLINE_NS,
    };
    let mut connect = Connect::new(options, b"me".to_vec(), next_id);
    let mut now_ns = 0;
    let established = loop {
        match connect.progress(now_ns) {
            ConnectProgress::Connected(established) => break established,
            ConnectProgress::Failed(_) => {
                let request = connect.request();
                assert!(
                    request.is_none(),
                    "a failed attempt has {request:?} to send"
                );
                return;
            }
            ConnectProgress::Pending => (),
        }
        assert!(
            now_ns < DEADLINE_NS,
            "the attempt is later than its deadline"
        );
        if connect.request().is_some() && script.u8() & 3 != 3 {
            connect.on_sent();
        }
        if script.is_over() {
            now_ns = DEADLINE_NS;
        }
        let message = message(&mut script, &[7], next_id);
        if let Ok(event) = Event::decode(&message) {
            connect.on_event(&event, || {
                next_id += 1;
                next_id
            });
        }
        now_ns += 1;
    };

    let session = established.control_session_id;
    let mut calls = Calls::new(session);
    let first = next_id + 1;
    for (token, expected) in EXPECTED.into_iter().enumerate() {
        next_id += 1;
        let spec = CallSpec {
            correlation_id: next_id,
            request: "fuzz",
            expected,
            timeout_ns: TIMEOUT_NS,
        };
        calls.begin(spec, token);
    }
    let mut ended = [0; EXPECTED.len()];
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        let correlation_id = first + script.below(EXPECTED.len() + 1) as i64;
        let message = message(&mut script, &[session, session, session, 7], correlation_id);
        if let Ok(event) = Event::decode(&message)
            && let Routed::Completed(completion) = calls.on_event(&event, now_ns)
        {
            assert_eq!(completion.correlation_id, first + completion.token as i64);
            ended[completion.token] += 1;
        }
        now_ns += i64::from(script.u8() & 7);
        while let Some(completion) = calls.expire(now_ns) {
            assert!(completion.outcome.is_err());
            ended[completion.token] += 1;
        }
    }
    let left = calls.len();
    assert_eq!(left, ended.iter().filter(|count| **count == 0).count());
    while let Some(completion) = calls.fail_next(&taran_archive_client::RequestError::Disconnected)
    {
        ended[completion.token] += 1;
    }
    assert!(
        calls.is_empty() && ended.iter().all(|count| *count == 1),
        "{ended:?}"
    );
}

/// Reads a message; mostly, its ids are those that the client waits for.
fn message(script: &mut Script<'_>, sessions: &[i64], correlation_id: i64) -> Vec<u8> {
    let choice = script.u8();
    let mut bytes = script.chunk().to_vec();
    if choice & 1 == 0 && bytes.len() >= 24 {
        let session = sessions[usize::from(choice >> 2) % sessions.len()];
        bytes[8..16].copy_from_slice(&session.to_le_bytes());
    }
    if choice & 2 == 0 && bytes.len() >= 24 {
        bytes[16..24].copy_from_slice(&correlation_id.to_le_bytes());
    }
    bytes
}
