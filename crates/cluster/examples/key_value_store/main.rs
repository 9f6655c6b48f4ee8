// SPDX-License-Identifier: Apache-2.0
//! A key-value store that survives the loss of a member.
//!
//! ```text
//! cargo run --release -p taran-cluster --example key_value_store
//! ```
//!
//! starts a cluster of one member with driver and archive in this process, and a client, which reads the lines `put KEY VALUE`,
//! `get KEY`, `delete KEY` and `snapshot`. `docs/cluster.md` says how to run it on three members, and explains the service.

mod store;
#[path = "../support/mod.rs"]
mod support;

use std::io::{self, BufRead, BufReader, Write};

use self::store::{Answer, KeyValueStore, Request};
use self::support::Failure;
use self::support::client::Dialogue;
use self::support::program::{self, Output};

/// Turns lines into requests, and answers into lines. Requests are numbered, so that the store can drop repetitions.
#[derive(Debug, Default)]
struct Lines {
    number: u64,
    /// Of the request that awaits its answer.
    key: String,
}

impl Dialogue for Lines {
    fn request(&mut self, line: &str) -> Result<Option<Vec<u8>>, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let request = match verb {
            "put" => Request::Put {
                key: key.as_bytes(),
                value: value.as_bytes(),
            },
            "get" => Request::Get {
                key: key.as_bytes(),
            },
            "delete" => Request::Delete {
                key: key.as_bytes(),
            },
            _ => Err(format!("{verb}: use put, get, delete or snapshot"))?,
        };
        self.number += 1;
        self.key = key.to_owned();
        Ok(Some(request.encode(self.number)))
    }

    fn on_message(&mut self, message: &[u8], output: &mut dyn Write) -> io::Result<bool> {
        let key = &self.key;
        match Answer::decode(message) {
            // The answer to a request that was sent twice comes twice.
            Some((number, _)) if number != self.number => return Ok(false),
            Some((_, Answer::Stored)) => writeln!(output, "{key}: stored")?,
            Some((_, Answer::Deleted)) => writeln!(output, "{key}: deleted")?,
            Some((_, Answer::Missing)) => writeln!(output, "{key}: not there")?,
            Some((_, Answer::Value(value))) => {
                writeln!(output, "{key}: {}", String::from_utf8_lossy(value))?;
            }
            Some((_, Answer::Invalid)) => {
                writeln!(output, "{key}: the request was not understood")?;
            }
            None => return Ok(false),
        }
        Ok(true)
    }
}

pub(crate) fn run(
    arguments: &[String],
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), Failure> {
    let (service, output) = (KeyValueStore::default(), Output::new(output));
    program::run(arguments, input, output, service, &mut Lines::default())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments, BufReader::new(io::stdin()), io::stdout())
}
