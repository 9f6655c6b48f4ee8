// SPDX-License-Identifier: Apache-2.0
//! Handle of the subscribing child process in the publishing one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use taran_bench::side::Side;
use taran_bench::stream::{StreamConfig, StreamReport};

use crate::failure::Failure;

use super::super::failure;
use super::child::READY;

/// Timeout for the end of the child after its standard input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A child process of this program that subscribes. It is ended when this handle is dropped.
pub(super) struct Subscriber {
    child: Child,
    lines: Receiver<String>,
}

impl Subscriber {
    /// Starts the child process.
    pub(super) fn start(config: &StreamConfig) -> Result<Subscriber, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::Other(format!("cannot find the running executable: {error}"))
        })?;
        let mut command = Command::new(program);
        command
            .args(["bench", "stream", "--role", "subscriber", "--for-parent"])
            .args(["--length", &config.length.to_string()])
            .args(["--duration", &nanos(config.duration)])
            .args(["--warmup", &nanos(config.warmup)])
            .args(["--patience", &nanos(config.timeout)])
            .args([
                "--cpus",
                &config.cpu.map_or("none".to_owned(), |cpu| cpu.to_string()),
            ]);
        for channel in &config.channels {
            command.args(["--channel", channel]);
        }
        if let Some(directory) = &config.aeron_dir {
            command.arg("--aeron-dir").arg(directory);
        } else {
            command.args(["--threading", &config.threading]);
            for (name, value) in &config.driver_options {
                command.args(["--driver-option", &format!("{name}={value}")]);
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::Other(format!("cannot start the subscribing process: {error}"))
            })?;
        let (send, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Subscriber { child, lines })
    }

    /// Waits until the subscription is registered. `side` keeps running, because the child may use its driver.
    pub(super) fn await_ready(&mut self, side: &mut Side) -> Result<(), Failure> {
        match self.line(side)? {
            line if line == READY => Ok(()),
            line => Err(Failure::Other(format!(
                "the subscribing process wrote {line:?} instead of {READY}"
            ))),
        }
    }

    /// Waits for the child's report.
    pub(super) fn report(&mut self, side: &mut Side) -> Result<StreamReport, Failure> {
        self.line(side)?.parse().map_err(Failure::Other)
    }

    /// Ends the child before its time; returns its report of the time before.
    pub(super) fn interrupt(&mut self) -> Result<StreamReport, Failure> {
        drop(self.child.stdin.take());
        let line = self.lines.recv_timeout(EXIT_TIMEOUT);
        // Without a report, the child was interrupted before it measured.
        let line = line.map_err(|_| Failure::Interrupted)?;
        line.parse().map_err(Failure::Other)
    }

    fn line(&mut self, side: &mut Side) -> Result<String, Failure> {
        loop {
            match self.lines.try_recv() {
                Ok(line) => return Ok(line),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::Other(
                        "the subscribing process ended early; its error is above".to_owned(),
                    ));
                }
                Err(TryRecvError::Empty) => {}
            }
            side.duty_cycle().map_err(failure)?;
            // Yields the core to the child if there is only one.
            thread::yield_now();
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // The end of its input makes the child end in an orderly way.
        drop(self.child.stdin.take());
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn nanos(duration: Duration) -> String {
    format!("{}ns", duration.as_nanos())
}
