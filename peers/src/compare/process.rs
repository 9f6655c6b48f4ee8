//! Programs that a measurement starts, and that end with it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;

/// What the directories of drivers begin with; the process id of their run follows.
const DIRECTORY: &str = "/dev/shm/taran-compare-";
/// How long a program may take to end once its input has ended.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A program. It ends when its standard input does, which is when this is dropped or gone; if not, it is made to.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    what: String,
}

impl Program {
    /// Starts it. What it says on standard output is read line by line.
    pub(crate) fn start(mut command: Command, what: &str) -> Result<Program, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A key that ends the comparison must not end its programs before they have cleaned up.
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
            what: what.to_owned(),
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line, within some time.
    pub(crate) fn line(&mut self, timeout: Duration) -> Result<String, String> {
        self.line_beside(timeout, None)
    }

    /// The same, unless another program fails in the meantime.
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
                return Err(format!("{} ended with {status}, see above", other.what));
            }
            match self.lines.recv_timeout(interrupt::POLL_INTERVAL) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("{} ended early, see above", self.what));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(format!("{} said nothing for {timeout:?}", self.what));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| error.to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + TIMEOUT;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                eprintln!("{} does not end, and is killed", self.what);
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(5));
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
                // Whoever writes more must not wait for a reader.
                let _ = output.read_to_end(&mut Vec::new());
                return;
            }
            line.clear();
        }
    });
    receive
}

/// A directory for a driver of this run, which does not exist.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(format!("{DIRECTORY}{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// Removes the directories of runs that were killed: such a run could not do it.
pub(crate) fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let rest = path.to_str().and_then(|path| path.strip_prefix(DIRECTORY));
        let id = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if id.is_some_and(is_dead) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Whether there is no such process any more.
pub(crate) fn is_dead(id: u32) -> bool {
    !Path::new(&format!("/proc/{id}")).exists()
}
