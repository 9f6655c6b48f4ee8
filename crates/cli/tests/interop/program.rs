// SPDX-License-Identifier: Apache-2.0
//! External programs that communicate with a test by lines.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for each line of a program.
const TIMEOUT: Duration = Duration::from_secs(240);

/// A running program. Dropping it kills it.
pub(crate) struct Program {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Program {
    /// Starts `command`; `name` appears in error messages.
    pub(crate) fn start(name: &str, command: &mut Command) -> Program {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        let output = child.stdout.take().expect("stdout is piped");
        let errors = child.stderr.take().expect("stderr is piped");
        let stderr_sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let _ = stderr_sender.send(format!("stderr: {line}"));
            }
        });
        Program {
            name: name.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line that starts with `word`; returns the rest of the line.
    pub(crate) fn expect(&mut self, word: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = line.strip_prefix(word).map(|rest| rest.trim().to_owned());
                    self.seen.push(line);
                    if let Some(rest) = found {
                        return rest;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.fail(&format!("no line {word:?} in time")),
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(&format!("ended without a line {word:?}"));
                }
            }
        }
    }

    /// Returns the value of `key=value` in a line.
    pub(crate) fn value<T: std::str::FromStr>(line: &str, key: &str) -> T {
        line.split_whitespace()
            .find_map(|field| field.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
            .unwrap_or_else(|| panic!("no {key}= in {line:?}"))
    }

    /// Closes the program's standard input, which makes most programs end.
    pub(crate) fn release(&mut self) {
        self.input = None;
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a running process can be killed");
        self.child.wait().expect("a killed process ends");
    }

    /// Waits for the end and checks for success; returns all output lines.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let status = self.end();
        if !status.success() {
            self.fail(&format!("ended with {status}"));
        }
        std::mem::take(&mut self.seen)
    }

    /// Waits for the end and checks for failure; returns all output.
    pub(crate) fn fails(mut self) -> String {
        let status = self.end();
        if status.success() {
            self.fail("ended with success");
        }
        std::mem::take(&mut self.seen).join("\n")
    }

    /// Waits for the end, and reads all output.
    fn end(&mut self) -> ExitStatus {
        self.release();
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            match self.child.try_wait().expect("the process is ours") {
                Some(status) => break status,
                None if Instant::now() > deadline => self.fail("did not end in time"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        self.seen.extend(self.lines.iter());
        status
    }

    /// Collects the output so far.
    fn collect_output(&mut self) {
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until
            && let Ok(line) = self.lines.recv_timeout(Duration::from_millis(50))
        {
            self.seen.push(line);
        }
    }

    fn fail(&mut self, reason: &str) -> ! {
        self.collect_output();
        let seen = std::mem::take(&mut self.seen);
        panic!("{}: {reason}; it said:\n{}", self.name, seen.join("\n"));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.collect_output();
        // Prints the output for diagnosis, unless this program has failed and printed it already.
        if thread::panicking() && !self.seen.is_empty() {
            eprintln!(
                "{} of a test that failed said:\n{}",
                self.name,
                self.seen.join("\n")
            );
        }
    }
}
