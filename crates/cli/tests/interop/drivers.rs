//! Drivers as other processes: ours and the official one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::java::{self, argument, directory};
use crate::program::Program;

/// A driver that a test talks to. Dropping it stops it and removes its directory.
pub(crate) enum Driver {
    /// `taran driver`.
    Taran(TaranDriver),
    /// `io.aeron.driver.MediaDriver`.
    Official(OfficialDriver),
}

impl Driver {
    /// Our driver, with `AERON_*` variables besides the directory.
    pub(crate) fn taran(name: &str, variables: &[(&str, &str)]) -> Driver {
        Driver::Taran(TaranDriver::start(name, variables))
    }

    /// The official driver, with properties besides the directory.
    pub(crate) fn official(name: &str, properties: &[(&str, &str)]) -> Driver {
        Driver::Official(OfficialDriver::start(name, properties))
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Driver::Taran(driver) => &driver.dir,
            Driver::Official(driver) => &driver.dir,
        }
    }
}

pub(crate) struct TaranDriver {
    dir: PathBuf,
    child: Child,
}

impl TaranDriver {
    fn start(name: &str, variables: &[(&str, &str)]) -> TaranDriver {
        let dir = directory(name);
        let child = Command::new(env!("CARGO_BIN_EXE_taran"))
            .arg("driver")
            .env_clear()
            .env("AERON_DIR", &dir)
            .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("taran starts");
        TaranDriver { dir, child }
    }
}

impl Drop for TaranDriver {
    fn drop(&mut self) {
        terminate(&mut self.child);
        let complaints: Vec<String> = self
            .child
            .stderr
            .take()
            .map(|stderr| {
                BufReader::new(stderr)
                    .lines()
                    .map_while(Result::ok)
                    .collect()
            })
            .unwrap_or_default();
        let _ = std::fs::remove_dir_all(&self.dir);
        if !std::thread::panicking() {
            assert!(
                complaints.is_empty(),
                "taran driver wrote to stderr: {complaints:?}"
            );
        }
    }
}

/// SIGTERM, then, after some seconds without effect, SIGKILL.
fn terminate(child: &mut Child) {
    let _ = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}

pub(crate) struct OfficialDriver {
    dir: PathBuf,
    // Its end is the end of the driver.
    _process: Program,
}

impl OfficialDriver {
    fn start(name: &str, properties: &[(&str, &str)]) -> OfficialDriver {
        let dir = directory(name);
        let options: Vec<String> = properties
            .iter()
            .map(|(property, value)| format!("-D{property}={value}"))
            .collect();
        let mut process = java::start_with("driver", &options, &[argument("dir", dir.display())]);
        process.expect("READY");
        OfficialDriver {
            dir,
            _process: process,
        }
    }
}

impl Drop for OfficialDriver {
    fn drop(&mut self) {
        // The directory outlives a killed process, and is nobody else's.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
