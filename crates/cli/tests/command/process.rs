// SPDX-License-Identifier: Apache-2.0
//! Runs `taran` processes in directories of their own.

#[path = "../shared/signal.rs"]
mod signal;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taran_core::memory::{CreateOptions, FileStorage, Region, Storage};
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc, CncSpec};
use taran_protocol::command::Command as DriverCommand;

pub(crate) use signal::signal;

/// Time limit for anything that a process does.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Directory of one test, removed with its contents when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Returns a path that no other test uses; the directory is not created yet.
    pub(crate) fn new(name: &str) -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Directory(PathBuf::from(format!(
            "/dev/shm/taran-test-{process}-{number}-{name}"
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into the directory, which is created if missing.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        std::fs::create_dir_all(&self.0).expect("the directory can be made");
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the file can be written");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a `taran` command with these arguments and without options from the environment of the test.
pub(crate) fn taran(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("AERON_") || name.starts_with("TARAN_"))
        {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Exit code and output of a process that has ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Outcome {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Checks that standard error contains the text.
    #[track_caller]
    pub(crate) fn assert_stderr(&self, text: &str) -> &Outcome {
        assert!(self.stderr.contains(text), "no {text:?} in {self:?}");
        self
    }

    /// Checks that standard error is empty.
    #[track_caller]
    pub(crate) fn assert_silent(&self) -> &Outcome {
        assert_eq!(self.stderr, "", "{self:?}");
        self
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Outcome {
    Process::start(command).wait()
}

/// A process whose output is read in the background. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("taran can be run");
        let stdout = child.stdout.take().map(read_in_background);
        let stderr = child.stderr.take().map(read_in_background);
        Process {
            child,
            stdout,
            stderr,
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Outcome {
        let status = self.await_end();
        let text = |reader: Option<JoinHandle<String>>| {
            reader
                .map(|reader| reader.join().expect("the reader ends"))
                .unwrap_or_default()
        };
        Outcome {
            code: status.code(),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        }
    }

    fn await_end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self
                .child
                .try_wait()
                .expect("the process can be waited for")
            {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "process {} does not end",
                self.child.id()
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Returns true if it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    })
}

/// A driver process.
pub(crate) struct Driver {
    process: Process,
    cnc: Cnc,
}

impl Driver {
    /// Starts `taran driver` with these options, and waits until it accepts clients.
    pub(crate) fn start(directory: &Path, options: &[&str]) -> Driver {
        let defines: Vec<String> = options.iter().map(|option| format!("-D{option}")).collect();
        let arguments: Vec<&str> = defines.iter().map(String::as_str).collect();
        let mut command = taran(&["driver"]);
        command.args(arguments).env("AERON_DIR", directory);
        Driver::start_with(&mut command, directory)
    }

    /// Starts a command that runs a driver in `directory`, and waits until its startup is complete.
    pub(crate) fn start_with(command: &mut Command, directory: &Path) -> Driver {
        let mut process = Process::start(command);
        let path = directory.join(CNC_FILE_NAME);
        let pid = i64::from(process.child.id());
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The file of an earlier driver may still exist.
            if let Ok(cnc) = open(&path)
                && cnc.spec().driver_pid == pid
                && has_started(directory)
            {
                return Driver { process, cnc };
            }
            assert!(
                !process.has_ended(),
                "the driver has ended: {:?}",
                process.wait()
            );
            assert!(
                Instant::now() < deadline,
                "no driver in {}",
                directory.display()
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Returns true if it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        !self.process.has_ended()
    }

    /// Requests its termination as a client does.
    pub(crate) fn request_termination(&self, token: &[u8]) {
        let producer = Producer::open(&self.cnc.to_driver).expect("the ring is sound");
        let mut bytes = Vec::new();
        let type_id = DriverCommand::TerminateDriver {
            client_id: -1,
            correlation_id: producer.next_correlation_id(),
            token,
        }
        .encode(&mut bytes);
        producer.write(type_id, &bytes).expect("the ring has room");
    }

    /// Waits until it has consumed all commands.
    pub(crate) fn await_commands_taken(&self) {
        let producer = Producer::open(&self.cnc.to_driver).expect("the ring is sound");
        let deadline = Instant::now() + TIMEOUT;
        while producer.size() > 0 {
            assert!(Instant::now() < deadline, "the driver takes no commands");
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Sends a signal and waits for the end of the process.
    pub(crate) fn stop(self, signal: &str) -> Outcome {
        self.process.signal(signal);
        self.wait()
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(self) -> Outcome {
        self.process.wait()
    }
}

/// Returns true if the driver has released its startup lock, and with it the descriptor.
fn has_started(directory: &Path) -> bool {
    FileStorage.try_lock(directory).is_ok()
}

fn open(path: &Path) -> Result<Cnc, String> {
    let region = FileStorage.open(path).map_err(|error| error.to_string())?;
    Cnc::open(&region).map_err(|error| error.to_string())
}

/// Creates the `cnc.dat` of a driver without a process.
pub(crate) fn forge(directory: &Path, heartbeat_ms: i64) -> (Region, Cnc) {
    std::fs::create_dir_all(directory).expect("a file can be forged");
    let spec = CncSpec {
        driver_pid: 4_711,
        ..CncSpec::default()
    };
    let path = directory.join("cnc.dat");
    let region = FileStorage
        .create(&path, spec.file_length() as u64, CreateOptions::SPARSE)
        .expect("a file can be forged");
    let cnc = Cnc::create(&region, &spec).expect("a file can be forged");
    Consumer::open(&cnc.to_driver)
        .expect("a file can be forged")
        .set_heartbeat_ms(heartbeat_ms);
    cnc.publish();
    (region, cnc)
}
