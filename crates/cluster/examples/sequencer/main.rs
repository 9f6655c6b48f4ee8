// SPDX-License-Identifier: Apache-2.0
//! A sequencer: gives the messages of all clients one order, sends them to all clients, and heartbeats by a timer, so that a
//! client notices what it has missed, and asks for it.
//!
//! ```text
//! cargo run --release -p taran-cluster --example sequencer
//! ```
//!
//! starts a cluster of one member with driver and archive in this process, and a client, which reads the lines `publish TEXT`,
//! `resend NUMBER`, `wait` (for a heartbeat) and `snapshot`. `docs/cluster.md` says how to run it on three members.

mod service;
#[path = "../support/mod.rs"]
mod support;

use std::io::{self, BufRead, BufReader, Write};

use self::service::{Event, Request, Sequencer};
use self::support::Failure;
use self::support::client::Dialogue;
use self::support::program::{self, Output};

/// Turns lines into requests, and prints events.
#[derive(Debug)]
struct Lines {
    /// Number of the last request. Its upper half is random, so that clients have different numbers.
    number: u64,
    awaits_heartbeat: bool,
}

impl Lines {
    fn new() -> Self {
        Self {
            number: u64::from(fastrand::u32(..)) << 32,
            awaits_heartbeat: false,
        }
    }
}

impl Dialogue for Lines {
    fn request(&mut self, line: &str) -> Result<Option<Vec<u8>>, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        self.awaits_heartbeat = verb == "wait";
        let request = match verb {
            "wait" => return Ok(None),
            "publish" => Request::Publish(rest.as_bytes()),
            "resend" => match rest.parse() {
                Ok(from) => Request::Resend(from),
                Err(_) => Err(format!("resend {rest}: needs the number of a message"))?,
            },
            _ => Err(format!("{verb}: use publish, resend, wait or snapshot"))?,
        };
        self.number += 1;
        Ok(Some(request.encode(self.number)))
    }

    fn on_message(&mut self, message: &[u8], output: &mut dyn Write) -> io::Result<bool> {
        match Event::decode(message) {
            Some(Event::Message {
                sequence,
                request,
                text,
                ..
            }) => {
                writeln!(output, "{sequence}: {}", String::from_utf8_lossy(text))?;
                Ok(request == self.number)
            }
            Some(Event::Heartbeat { next }) if self.awaits_heartbeat => {
                self.awaits_heartbeat = false;
                writeln!(output, "heartbeat: message {next} is next")?;
                Ok(true)
            }
            Some(Event::Resent { request, oldest }) if request == self.number => {
                writeln!(output, "resent; the oldest that is kept is {oldest}")?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

pub(crate) fn run(
    arguments: &[String],
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), Failure> {
    let (service, output) = (Sequencer::default(), Output::new(output));
    program::run(arguments, input, output, service, &mut Lines::new())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments, BufReader::new(io::stdin()), io::stdout())
}
