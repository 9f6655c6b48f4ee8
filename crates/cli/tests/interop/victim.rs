// SPDX-License-Identifier: Apache-2.0
//! A Taran client in its own process, to be killed. The process is this test program, started again.

use std::path::Path;
use std::process::Command;

use crate::exchange::{await_true, connect};
use crate::pattern;
use crate::program::Program;

/// Variable with the arguments of the process; without it, the test below does nothing.
const ORDER: &str = "TARAN_TEST_VICTIM";
const SEPARATOR: char = '\n';

/// Starts a client that publishes ten messages of 64 bytes, claims one more if `claim`, and waits to be killed.
pub(crate) fn start(dir: &Path, channel: &str, stream_id: i32, claim: bool) -> Program {
    let order = [
        dir.display().to_string(),
        channel.to_owned(),
        stream_id.to_string(),
        claim.to_string(),
    ];
    Program::start(
        "victim",
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "victim::victim_waits_to_be_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(ORDER, order.join(&SEPARATOR.to_string())),
    )
}

#[test]
#[ignore = "a process that other tests start and kill"]
fn victim_waits_to_be_killed() {
    let Ok(order) = std::env::var(ORDER) else {
        return;
    };
    let [dir, channel, stream_id, claim] = order
        .split(SEPARATOR)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let client = connect(Path::new(dir));
    let publication = client
        .add_publication(channel, stream_id.parse().unwrap())
        .unwrap();
    let mut message = [0; 64];
    for sequence in 0..10 {
        pattern::fill(&mut message, 0, sequence, false);
        await_true("room", || publication.offer(&message).is_ok());
    }
    // Held until the end of the process, so that it is never committed.
    let mut claims = Vec::new();
    if claim == "true" {
        await_true("room for a claim", || {
            publication
                .try_claim(64)
                .map(|claim| claims.push(claim))
                .is_ok()
        });
    }
    println!("\nWAITING client={}", client.client_id());
    let _ = std::io::stdin().read_line(&mut String::new());
}
