// SPDX-License-Identifier: Apache-2.0
//! A client in its own process that publishes steadily and reports how it ended. The process is this test program,
//! started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use taran::{CloseReason, Lost};

use crate::fixture::{TIMEOUT, connect};
use crate::message::Producer;
use crate::process::signal;

/// Variable with the arguments of the process; without it, the test below does nothing.
const ORDER: &str = "TARAN_TEST_SUBJECT";
const PAUSE: Duration = Duration::from_millis(1);

/// A running process. Killed when dropped.
pub(crate) struct PublisherProcess {
    child: Child,
    /// The process ends when this is closed.
    _input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl PublisherProcess {
    /// Starts a process that publishes on this stream as producer 0.
    pub(crate) fn start(directory: &Path, channel: &str, stream_id: i32) -> PublisherProcess {
        PublisherProcess::begin(&mut PublisherProcess::command(
            directory, channel, stream_id,
        ))
    }

    /// Returns the command of the process, for modification.
    pub(crate) fn command(directory: &Path, channel: &str, stream_id: i32) -> Command {
        let spec = format!("{}\n{channel}\n{stream_id}", directory.display());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "publisher_process::publishes_until_closed",
                "--ignored",
                "--nocapture",
            ])
            .env(ORDER, spec);
        command
    }

    /// Starts the process with this command.
    pub(crate) fn begin(command: &mut Command) -> PublisherProcess {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        PublisherProcess {
            _input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for the line that reports how it ended.
    pub(crate) fn end(&mut self) -> String {
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).unwrap();
            assert!(length > 0, "the subject ended without a word");
            if let Some(end) = line.strip_prefix("ENDED ") {
                return end.trim().to_owned();
            }
        }
    }
}

impl Drop for PublisherProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a process that other tests start"]
fn publishes_until_closed() {
    let Ok(spec) = std::env::var(ORDER) else {
        return;
    };
    // Ends when the parent has died.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(1);
    });
    let [directory, channel, stream_id] = spec.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let client = connect(Path::new(directory));
    let publication = client
        .add_publication(channel, stream_id.parse().unwrap())
        .unwrap();
    let mut producer = Producer::new(0);
    let end = Instant::now() + TIMEOUT;
    while client.close_reason().is_none() && Instant::now() < end {
        let mut message = [0; 200];
        producer.write(&mut message);
        if publication.offer(&message).is_ok() {
            producer.accepted();
        }
        std::thread::sleep(PAUSE);
    }
    let end = match client.close_reason() {
        Some(CloseReason::Lost(Lost::ClientTimeout { .. })) => "given up",
        Some(CloseReason::Lost(Lost::ServiceInterval { .. })) => "slept too long",
        Some(CloseReason::Lost(Lost::DriverTimeout { .. })) => "driver silent",
        Some(CloseReason::Lost(Lost::DriverShutdown)) => "driver shut down",
        _ => "not at all",
    };
    println!("\nENDED {end}");
}
