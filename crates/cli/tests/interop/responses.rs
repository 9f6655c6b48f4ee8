// SPDX-License-Identifier: Apache-2.0
//! Requests and responses on response channels, between a Taran driver and the official one, with both clients.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use taran::{OfferError, Publication};

use crate::drivers::Driver;
use crate::exchange::{Party, await_true, connect, port};
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

const REQUESTS: i32 = 1_001;
const ANSWERS: i32 = 1_002;
const COUNT: u64 = 500;

/// Channels of the requests and the responses.
#[derive(Clone, Debug)]
struct Channels {
    requests: String,
    answers: String,
}

impl Channels {
    fn udp() -> Self {
        Self {
            requests: format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=64k", port()),
            answers: format!(
                "aeron:udp?control-mode=response|control=127.0.0.1:{}",
                port()
            ),
        }
    }

    fn ipc() -> Self {
        Self {
            requests: "aeron:ipc?term-length=64k".to_owned(),
            answers: "aeron:ipc?control-mode=response".to_owned(),
        }
    }

    fn arguments(&self, dir: &Path) -> Vec<String> {
        vec![
            argument("dir", dir.display()),
            argument("channel", &self.requests),
            argument("reply", &self.answers),
            argument("stream", REQUESTS),
            argument("reply-stream", ANSWERS),
            argument("count", COUNT),
            argument("timeout", 120),
        ]
    }
}

fn retry(mut offer: impl FnMut() -> Result<(), OfferError>) {
    await_true("room for a message", || match offer() {
        Ok(()) => true,
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            false
        }
    });
}

/// Sends each request back as its response until stopped.
fn serve(channels: &Channels, dir: &Path, running: &AtomicBool) {
    let client = connect(dir);
    let mut requests = client
        .add_subscription(&channels.requests, REQUESTS)
        .unwrap();
    let mut answers: HashMap<i32, Publication> = HashMap::new();
    while running.load(Ordering::Relaxed) {
        for image in requests.image_views() {
            answers.entry(image.session_id()).or_insert_with(|| {
                let id = image.correlation_id();
                let channel = format!("{}|response-correlation-id={id}", channels.answers);
                client.add_publication(&channel, ANSWERS).unwrap()
            });
        }
        let fragments = requests
            .poll(
                |message, header| {
                    let publication = &answers[&header.session_id()];
                    while running.load(Ordering::Relaxed) && publication.offer(message).is_err() {
                        thread::yield_now();
                    }
                },
                10,
            )
            .unwrap();
        if fragments == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends requests and checks each response.
fn ask(channels: &Channels, dir: &Path) {
    let client = connect(dir);
    let mut answers = client.add_subscription(&channels.answers, ANSWERS).unwrap();
    let id = answers.registration_id();
    let channel = format!("{}|response-correlation-id={id}", channels.requests);
    let requests = client.add_publication(&channel, REQUESTS).unwrap();
    await_true("answers", || answers.is_connected());
    assert_eq!(answers.image_count(), 1);
    let request = |number: u64| [[requests.session_id() as u64; 4], [number; 4]].concat();
    let bytes = |number: u64| -> Vec<u8> {
        let status_messages = request(number).into_iter();
        status_messages.flat_map(u64::to_le_bytes).collect()
    };
    let mut answered = 0;
    for number in 0..COUNT {
        retry(|| requests.offer(&bytes(number)).map(drop));
        let _ = answers.poll(
            |message, _| {
                assert_eq!(message, bytes(answered), "answer {answered}");
                answered += 1;
            },
            10,
        );
    }
    await_true("the last answer", || {
        let _ = answers.poll(
            |message, _| {
                assert_eq!(message, bytes(answered), "answer {answered}");
                answered += 1;
            },
            10,
        );
        answered == COUNT
    });
}

/// One server with two concurrent requesters, one of each kind.
fn exchange(channels: &Channels, server: (Party, &Path), requesters: &Path) {
    eprintln!("{:?} answers on {channels:?}", server.0);
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let mut program: Option<Program> = None;
        match server.0 {
            Party::Java => {
                let mut answering = java::start("answer", &channels.arguments(server.1));
                answering.expect("READY");
                program = Some(answering);
            }
            Party::Rust => {
                scope.spawn(|| serve(channels, server.1, &running));
            }
        }
        let ours = scope.spawn(|| ask(channels, requesters));
        let theirs = java::start("ask", &channels.arguments(requesters)).finish();
        let answered = format!("ANSWERED {COUNT}");
        assert!(theirs.contains(&answered), "{theirs:#?}");
        let asked = ours.join();
        running.store(false, Ordering::Relaxed);
        asked.expect("our requester is answered");
        if let Some(program) = program {
            program.finish();
        }
    });
}

fn ours() -> Driver {
    Driver::taran(
        "answers-ours",
        &[("AERON_PUBLICATION_LINGER_TIMEOUT", "1s")],
    )
}

fn theirs() -> Driver {
    Driver::official(
        "answers-theirs",
        &[("aeron.publication.linger.timeout", "1s")],
    )
}

#[test]
fn taran_server_responds_to_official_requesters() {
    require_java!();
    let (ours, theirs) = (ours(), theirs());
    for server in [Party::Java, Party::Rust] {
        exchange(&Channels::udp(), (server, ours.dir()), theirs.dir());
    }
}

#[test]
fn official_server_responds_to_taran_requesters() {
    require_java!();
    let (ours, theirs) = (ours(), theirs());
    for server in [Party::Java, Party::Rust] {
        exchange(&Channels::udp(), (server, theirs.dir()), ours.dir());
    }
}

/// With both clients on each side, over UDP and over IPC.
fn within(driver: &Driver) {
    for server in [Party::Java, Party::Rust] {
        for channels in [Channels::ipc(), Channels::udp()] {
            exchange(&channels, (server, driver.dir()), driver.dir());
        }
    }
}

#[test]
fn responses_within_taran_driver_reach_their_requesters() {
    require_java!();
    within(&ours());
}

#[test]
fn responses_within_official_driver_reach_their_requesters() {
    require_java!();
    within(&theirs());
}
