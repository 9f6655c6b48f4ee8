// SPDX-License-Identifier: Apache-2.0
//! The members, as processes of `taran cluster`.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// Time for the orderly end of all members. Those that still run then are killed.
const END_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Lines of a failed member's output that are shown.
const SHOWN_LINES: usize = 10;

/// First port of the members.
const PORT: usize = 20_000;
/// Distance of the ports of two members.
const PORTS_PER_MEMBER: usize = 10;

/// Options of all members: small buffers, and no threads that several members on one machine would have to share.
const OPTIONS: [&str; 11] = [
    "aeron.threading.mode=SHARED",
    "aeron.dir.delete.on.start=true",
    "aeron.dir.delete.on.shutdown=true",
    "aeron.term.buffer.sparse.file=true",
    "aeron.archive.threading.mode=SHARED",
    "aeron.archive.segment.file.length=1m",
    "aeron.archive.low.storage.space.threshold=1m",
    "aeron.cluster.log.channel=aeron:udp?term-length=256k",
    "aeron.cluster.ingress.channel=aeron:udp?term-length=64k",
    "aeron.archive.replication.channel=aeron:udp?endpoint=127.0.0.1:0",
    "aeron.cluster.replication.channel=aeron:udp?endpoint=127.0.0.1:0",
];

/// Processes and directories of the members. Dropping it kills the members, and deletes the temporary directory.
#[derive(Debug)]
pub(super) struct Members {
    address: Ipv4Addr,
    processes: Vec<Option<Child>>,
    /// Directory in memory, for drivers.
    runtime: PathBuf,
    /// Directory for archives and states; that of the drivers unless the user has chosen one.
    state: PathBuf,
}

impl Members {
    /// Starts this many members.
    pub(super) fn start(count: usize, dir: Option<&Path>) -> Result<Self, Failure> {
        if let Some(dir) = dir {
            check_empty(dir)?;
        }
        let pid = std::process::id();
        let runtime = Path::new("/dev/shm").join(format!("taran-demo-{pid}"));
        fs::create_dir(&runtime).map_err(|error| cannot("create", &runtime, &error))?;
        let state = dir.unwrap_or(&runtime).to_path_buf();
        let mut members = Self {
            address: own_address(pid),
            processes: (0..count).map(|_| None).collect(),
            runtime,
            state,
        };
        for id in 0..count {
            members.launch(id)?;
        }
        Ok(members)
    }

    /// Returns the directory for drivers.
    pub(super) fn runtime_dir(&self) -> &Path {
        &self.runtime
    }

    /// Returns the directory of the driver of a member.
    pub(super) fn driver_dir(&self, id: usize) -> PathBuf {
        member_dir(&self.runtime, id).join("driver")
    }

    /// Returns the endpoints for clients.
    pub(super) fn ingress(&self) -> String {
        let endpoints =
            (0..self.processes.len()).map(|id| format!("{id}={}", self.endpoint(id, 0)));
        endpoints.collect::<Vec<_>>().join(",")
    }

    /// Kills a member. Returns its process id.
    pub(super) fn kill(&mut self, id: usize) -> Result<u32, Failure> {
        let Some(mut process) = self.processes.get_mut(id).and_then(Option::take) else {
            return Err(Failure::Other(format!(
                "member {id} cannot be killed: it does not run"
            )));
        };
        let pid = process.id();
        process
            .kill()
            .and_then(|()| process.wait())
            .map_err(|error| {
                Failure::Other(format!("member {id}, pid {pid} cannot be killed: {error}"))
            })?;
        Ok(pid)
    }

    /// Starts a member again that was killed. Returns its process id.
    pub(super) fn restart(&mut self, id: usize) -> Result<u32, Failure> {
        self.launch(id)
    }

    /// Checks that no member has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for id in 0..self.processes.len() {
            let Some(process) = &mut self.processes[id] else {
                continue;
            };
            if let Some(status) = process.try_wait()? {
                self.processes[id] = None;
                return Err(self.ended(id, status));
            }
        }
        Ok(())
    }

    /// Ends all members in order.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        for process in self.processes.iter().flatten() {
            // It fails only if the member has ended, which the wait finds.
            let _ = kill_process(Pid::from_child(process), Signal::TERM);
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for id in 0..self.processes.len() {
            let Some(mut process) = self.processes[id].take() else {
                continue;
            };
            let status = loop {
                match process.try_wait()? {
                    Some(status) => break status,
                    None if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
                    None => {
                        process.kill()?;
                        break process.wait()?;
                    }
                }
            };
            if !status.success() {
                return Err(self.ended(id, status));
            }
        }
        Ok(())
    }

    fn launch(&mut self, id: usize) -> Result<u32, Failure> {
        let (runtime, state) = (member_dir(&self.runtime, id), self.state_dir(id));
        for dir in [&runtime, &state] {
            fs::create_dir_all(dir).map_err(|error| cannot("create", dir, &error))?;
        }
        let log = self.log(id);
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(|error| cannot("create", &log, &error))?;
        let errors = output.try_clone()?;
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os() {
            let is_option = |name: &str| name.starts_with("AERON_") || name.starts_with("TARAN_");
            if name.to_str().is_some_and(is_option) {
                command.env_remove(name);
            }
        }
        command
            .args(["cluster", "--driver", "--archive", "--service", "echo"])
            .arg(format!("--parent={}", std::process::id()))
            .args(OPTIONS.map(|option| format!("-D{option}")))
            .args([
                format!("-Daeron.dir={}", runtime.join("driver").display()),
                format!("-Daeron.archive.dir={}", state.join("archive").display()),
                format!("-Daeron.cluster.dir={}", state.join("cluster").display()),
                format!("-Daeron.cluster.member.id={id}"),
                format!("-Daeron.cluster.members={}", self.list()),
                format!(
                    "-Daeron.archive.control.channel=aeron:udp?endpoint={}",
                    self.endpoint(id, 4)
                ),
            ])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in a terminal is for the demo alone, which ends the members after the client.
            .process_group(0);
        let process = command
            .spawn()
            .map_err(|error| Failure::Other(format!("member {id} cannot be started: {error}")))?;
        let pid = process.id();
        self.processes[id] = Some(process);
        Ok(pid)
    }

    /// Returns the members in the form of `aeron.cluster.members`.
    fn list(&self) -> String {
        let members = (0..self.processes.len()).map(|id| {
            let endpoints: Vec<String> = (0..5).map(|part| self.endpoint(id, part)).collect();
            format!("{id},{}", endpoints.join(","))
        });
        members.collect::<Vec<_>>().join("|")
    }

    fn endpoint(&self, id: usize, part: usize) -> String {
        format!("{}:{}", self.address, PORT + id * PORTS_PER_MEMBER + part)
    }

    fn state_dir(&self, id: usize) -> PathBuf {
        member_dir(&self.state, id)
    }

    fn log(&self, id: usize) -> PathBuf {
        self.state_dir(id).join("output.log")
    }

    fn ended(&self, id: usize, status: ExitStatus) -> Failure {
        let output = fs::read_to_string(self.log(id)).unwrap_or_default();
        let lines: Vec<&str> = output.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n  ");
        Failure::Other(format!(
            "member {id} has ended with {status}; the end of its output:\n  {last}"
        ))
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.processes.len();
        writeln!(
            f,
            "taran cluster demo: members {count}, directory {}, ingress {}",
            self.state.display(),
            self.ingress()
        )?;
        for (id, process) in self.processes.iter().enumerate() {
            let pid = process.as_ref().map_or(0, Child::id);
            let dir = self.state_dir(id).join("cluster");
            writeln!(
                f,
                "member {id}: pid {pid}, taran members describe {}",
                dir.display()
            )?;
        }
        Ok(())
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Err(error) = fs::remove_dir_all(&self.runtime) {
            eprintln!("taran: {}", cannot("delete", &self.runtime, &error));
        }
    }
}

/// Returns a loopback address that only the process with this id uses: process ids of Linux have 22 bits.
fn own_address(pid: u32) -> Ipv4Addr {
    let [_, high, middle, low] = pid.to_be_bytes();
    Ipv4Addr::new(127, 128 | (high & 0x3f), middle, low)
}

fn member_dir(root: &Path, id: usize) -> PathBuf {
    root.join(format!("member-{id}"))
}

fn check_empty(dir: &Path) -> Result<(), Failure> {
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(Failure::Usage(format!(
            "--dir {} is not empty: the demo begins with a new cluster; name a new directory",
            dir.display()
        ))),
        Err(error) => Err(cannot("read", dir, &error)),
    }
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Other(format!("cannot {verb} {}: {error}", path.display()))
}
