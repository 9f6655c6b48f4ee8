//! The subscribing process, as the publishing one sees it.

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

/// How long it may take to notice that it is to end.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// A process of this program that subscribes. Ended when dropped.
pub(super) struct Subscriber {
    child: Child,
    lines: Receiver<String>,
}

impl Subscriber {
    /// Starts it.
    pub(super) fn start(config: &StreamConfig) -> Result<Subscriber, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::Other(format!("cannot find the program that runs: {error}"))
        })?;
        let mut command = Command::new(program);
        command
            .args(["bench", "stream", "--role", "subscriber", "--for-parent"])
            .args(["--length", &config.length.to_string()])
            .args(["--duration", &nanos(config.duration)])
            .args(["--warmup", &nanos(config.warmup)])
            .args(["--patience", &nanos(config.patience)])
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

    /// Waits until its subscription stands, while `side` runs on: its driver may be the one of this side.
    pub(super) fn await_ready(&mut self, side: &mut Side) -> Result<(), Failure> {
        match self.line(side)? {
            line if line == READY => Ok(()),
            line => Err(Failure::Other(format!(
                "the subscribing process said {line:?} in place of {READY}"
            ))),
        }
    }

    /// Waits for its report.
    pub(super) fn report(&mut self, side: &mut Side) -> Result<StreamReport, Failure> {
        self.line(side)?.parse().map_err(Failure::Other)
    }

    fn line(&mut self, side: &mut Side) -> Result<String, Failure> {
        loop {
            match self.lines.try_recv() {
                Ok(line) => return Ok(line),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::Other(
                        "the subscribing process ended early, see above".to_owned(),
                    ));
                }
                Err(TryRecvError::Empty) => {}
            }
            side.turn().map_err(failure)?;
            // Leaves the core to the other process where there is only one.
            thread::yield_now();
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // The end of its input is the sign to end, in an orderly way.
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(STEP);
        }
    }
}

fn nanos(duration: Duration) -> String {
    format!("{}ns", duration.as_nanos())
}
