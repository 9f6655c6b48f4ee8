// SPDX-License-Identifier: Apache-2.0
//! Child processes of a measurement.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;

/// Prefix of driver directories; the process id of the run follows.
const DIRECTORY: &str = "/dev/shm/taran-compare-";
/// Time that a program has to exit after the end of its input; then it is killed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Child process. It exits at the end of its standard input, which is closed on drop or when this process dies. On drop it is
/// killed if it does not exit in time.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    name: String,
}

impl Program {
    /// Starts the process and reads its standard output line by line.
    pub(crate) fn start(mut command: Command, name: &str) -> Result<Program, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // In a process group of its own, so that Ctrl-C does not end it before it has cleaned up.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = command.get_program().to_string_lossy();
                format!("{program} cannot be run: {error}")
            })?;
        let lines = child.stdout.take().map(lines).ok_or("no standard output")?;
        Ok(Program {
            child,
            lines,
            name: name.to_owned(),
        })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line of output, or an error after the timeout.
    pub(crate) fn line(&mut self, timeout: Duration) -> Result<String, String> {
        self.line_beside(timeout, None)
    }

    /// Returns the next line of output, or an error after the timeout or as soon as the other program fails.
    pub(crate) fn line_beside(
        &mut self,
        timeout: Duration,
        mut other: Option<&mut Program>,
    ) -> Result<String, String> {
        let deadline = Instant::now() + timeout;
        loop {
            interrupt::check()?;
            if let Some(other) = &mut other
                && let Some(status) = other.has_ended()?
                && !status.success()
            {
                return Err(format!("{} ended with {status}, see above", other.name));
            }
            match self.lines.recv_timeout(interrupt::POLL_INTERVAL) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("{} ended early, see above", self.name));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(format!("{} printed nothing for {timeout:?}", self.name));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the exit status if the process has exited.
    pub(crate) fn has_ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| error.to_string())
    }

    /// Closes standard input, which tells the process to end. Does not wait.
    pub(crate) fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Kills the process, as `kill -9` does, and waits for its exit.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Closes standard input, and returns the exit status of the process; kills it and fails if it does not exit in time.
    pub(crate) fn end(&mut self) -> Result<ExitStatus, String> {
        self.close_input();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.has_ended()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                self.kill();
                return Err(format!(
                    "{} did not exit within {TIMEOUT:?} and was killed",
                    self.name
                ));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Err(reason) = self.end() {
            eprintln!("{reason}");
        }
    }
}

fn lines(output: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while matches!(output.read_line(&mut line), Ok(read) if read > 0) {
            if send.send(line.trim_end().to_owned()).is_err() {
                // Drains the pipe so that the process does not block on it.
                let _ = output.read_to_end(&mut Vec::new());
                return;
            }
            line.clear();
        }
    });
    receive
}

/// Returns the path of a driver directory of this run; an existing directory is removed.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(format!("{DIRECTORY}{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// Returns the path of a directory of archives or clusters of this run, on the disk of the current directory; an existing directory is
/// removed.
pub(crate) fn archive_directory(name: &str) -> PathBuf {
    let directory = archives().join(format!("{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// Returns the folder of all archive directories.
fn archives() -> PathBuf {
    std::env::current_dir()
        .unwrap_or_default()
        .join("target/compare-archives")
}

/// Removes the directories of runs that were killed.
pub(crate) fn remove_leftovers() {
    remove_leftovers_of(Path::new("/dev/shm"), DIRECTORY);
    let archives = archives();
    let prefix = format!("{}/", archives.display());
    remove_leftovers_of(&archives, &prefix);
}

/// Removes what runs that were killed have left in a folder, with names of this prefix and their process ids.
fn remove_leftovers_of(folder: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let rest = path.to_str().and_then(|path| path.strip_prefix(prefix));
        let id = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if id.is_some_and(is_dead) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Returns true if no process has this id.
pub(crate) fn is_dead(id: u32) -> bool {
    !Path::new(&format!("/proc/{id}")).exists()
}
