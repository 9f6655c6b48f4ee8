// SPDX-License-Identifier: Apache-2.0
//! A Taran driver as an external process: `taran driver`, configured by `AERON_*` variables only, ended by the
//! termination command. It must write nothing to standard error and record no unexpected error.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::error_log;
use taran_core::memory::{FileStorage, Storage};
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::command::Command as DriverCommand;

use crate::java::directory;

/// Time limit for the end of the driver, generous because the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct TaranDriver {
    dir: PathBuf,
    child: Child,
    expected: Mutex<Vec<String>>,
    /// Its mapped memory, if the test ends the driver.
    ended_by_test: Mutex<Option<Cnc>>,
}

impl TaranDriver {
    pub(crate) fn start(name: &str, variables: &[(&str, &str)]) -> TaranDriver {
        let dir = directory(name);
        let child = Command::new(env!("CARGO_BIN_EXE_taran"))
            .arg("driver")
            .env_clear()
            .env("AERON_DIR", &dir)
            .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
            .env("AERON_DRIVER_TERMINATION_VALIDATOR", "allow")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("taran starts");
        TaranDriver {
            dir,
            child,
            expected: Mutex::default(),
            ended_by_test: Mutex::default(),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn expect_error(&self, text: &str) {
        self.expected.lock().unwrap().push(text.to_owned());
    }

    /// Declares that the test ends the driver.
    pub(crate) fn expect_end(&self) {
        let cnc = self.cnc().expect("a driver that runs");
        *self.ended_by_test.lock().unwrap() = Some(cnc);
    }

    /// Returns the unexpected errors, and the expected ones that are missing.
    fn error_log_differences(&self, cnc: &Cnc) -> Vec<String> {
        let expected = self.expected.lock().unwrap();
        let mut entries = Vec::new();
        error_log::read(&cnc.error_log, 0, |error| entries.push(error.text.clone()));
        let missing = expected
            .iter()
            .filter(|text| !entries.iter().any(|entry| entry.contains(*text)))
            .map(|text| format!("nothing in the error log about {text:?}"));
        let missing: Vec<String> = missing.collect();
        let unexpected = entries
            .iter()
            .filter(|entry| !expected.iter().any(|text| entry.contains(text)))
            .map(|entry| format!("in the error log: {entry}"));
        unexpected.chain(missing).collect()
    }

    /// Ends the driver by the termination command, or by a signal if that fails. The error log is read after its end:
    /// the mapping outlives the file.
    fn end(&mut self) -> Vec<String> {
        let ended_by_test = self.ended_by_test.lock().unwrap().take();
        if let Some(cnc) = ended_by_test {
            let differences = self.await_end();
            let mut error_log_differences = self.error_log_differences(&cnc);
            error_log_differences.extend(differences.err());
            return error_log_differences;
        }
        if let Ok(Some(_)) = self.child.try_wait() {
            return vec!["it had ended by itself".to_owned()];
        }
        match self.cnc() {
            Ok(cnc) => {
                let differences = self.terminate(&cnc);
                let mut error_log_differences = self.error_log_differences(&cnc);
                error_log_differences.extend(differences.err());
                error_log_differences
            }
            Err(error) => {
                self.kill();
                vec![format!("it has no directory to ask it in: {error}")]
            }
        }
    }

    fn terminate(&mut self, cnc: &Cnc) -> Result<(), String> {
        match request_termination(cnc) {
            Ok(()) => self.await_end(),
            Err(error) => {
                self.kill();
                Err(format!("it cannot be asked to end: {error}"))
            }
        }
    }

    fn await_end(&mut self) -> Result<(), String> {
        if self.has_ended_within(TIMEOUT) {
            return Ok(());
        }
        self.kill();
        Err("it did not end when asked to".to_owned())
    }

    fn kill(&mut self) {
        let process = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &process]).status();
        if !self.has_ended_within(Duration::from_secs(10)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn cnc(&self) -> Result<Cnc, String> {
        let path = self.dir.join(CNC_FILE_NAME);
        let region = FileStorage.open(&path).map_err(|error| error.to_string())?;
        Cnc::open(&region).map_err(|error| error.to_string())
    }

    fn has_ended_within(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }
}

fn request_termination(cnc: &Cnc) -> Result<(), String> {
    let producer = Producer::open(&cnc.to_driver).map_err(|error| error.to_string())?;
    let mut command = Vec::new();
    let type_id = DriverCommand::TerminateDriver {
        client_id: -1,
        correlation_id: producer.next_correlation_id(),
        token: b"",
    }
    .encode(&mut command);
    let written = producer.write(type_id, &command);
    written.map_err(|error| error.to_string())
}

impl Drop for TaranDriver {
    fn drop(&mut self) {
        let mut error_log_differences = self.end();
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        if !said.is_empty() {
            error_log_differences.push(format!("on standard error: {said}"));
        }
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => {}
            ended => error_log_differences.push(format!("it ended with {ended:?}")),
        }
        if self.dir.exists() {
            error_log_differences.push("it left its directory behind".to_owned());
            let _ = std::fs::remove_dir_all(&self.dir);
        }
        let error_log_differences = error_log_differences.join("\n");
        if thread::panicking() {
            eprintln!("taran driver of a test that failed: {error_log_differences}");
        } else {
            assert!(
                error_log_differences.is_empty(),
                "taran driver: {error_log_differences}"
            );
        }
    }
}
