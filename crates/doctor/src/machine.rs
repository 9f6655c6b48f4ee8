// SPDX-License-Identifier: Apache-2.0
//! Access to a machine: files of `/proc` and `/sys`, and the few facts that need a system call.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use taran_core::affinity;

/// Longest file that is read, in bytes; files of `/proc` and `/sys` are far shorter.
const MAX_FILE: u64 = 4 << 20;
/// Shortest gap that counts as time taken away.
const GAP: Duration = Duration::from_micros(20);

/// A machine to examine. Paths are absolute, such as `/proc/stat`.
pub trait Machine {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// The error of the system; `NotFound` if there is no such file.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Returns the names of the entries of a directory, sorted.
    ///
    /// # Errors
    /// The error of the system; `NotFound` if there is no such directory.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Returns size and free space of the file system that holds a path.
    ///
    /// # Errors
    /// The error of the system.
    fn space(&self, path: &str) -> io::Result<Space>;

    /// Waits between two samples of the kernel's counters.
    fn wait(&self, time: Duration);

    /// Reads the clock on each CPU for a time and returns the gaps, in the order of the CPUs.
    ///
    /// # Errors
    /// For each CPU the error of the system, for example if the process may not run there.
    fn gaps(&self, cpus: &[usize], time: Duration) -> Vec<io::Result<Gaps>>;
}

/// Space of a file system in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Size of the file system.
    pub total: u64,
    /// Free space for this user.
    pub free: u64,
}

/// Time during which a thread that only reads the clock did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gaps {
    /// Longest gap in nanoseconds.
    pub longest_ns: u64,
    /// Sum of the gaps of at least 20 us, in nanoseconds.
    pub lost_ns: u64,
    /// Duration of the probe in nanoseconds.
    pub elapsed_ns: u64,
}

impl Gaps {
    /// Returns the share of the time that gaps took, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.lost_ns as f64 / self.elapsed_ns.max(1) as f64
    }
}

/// The machine that runs this process. Files are read below a root, which is `/` except in tests.
#[derive(Debug, Clone)]
pub struct LiveMachine {
    root: PathBuf,
}

impl LiveMachine {
    /// Creates a view of this machine with its own files.
    #[must_use]
    pub fn new() -> LiveMachine {
        LiveMachine::below(Path::new("/"))
    }

    /// Creates a view of this machine with the files below `root`.
    #[must_use]
    pub fn below(root: &Path) -> LiveMachine {
        LiveMachine {
            root: root.to_path_buf(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Default for LiveMachine {
    fn default() -> Self {
        LiveMachine::new()
    }
}

impl Machine for LiveMachine {
    fn read(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.path(path))?
            .take(MAX_FILE)
            .read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn space(&self, path: &str) -> io::Result<Space> {
        // The directory may not exist yet: the file system is that of the nearest ancestor.
        let mut path = self.path(path);
        while !path.exists() && path.pop() {}
        let stat = rustix::fs::statvfs(&path)?;
        Ok(Space {
            total: stat.f_frsize.saturating_mul(stat.f_blocks),
            free: stat.f_frsize.saturating_mul(stat.f_bavail),
        })
    }

    fn wait(&self, time: Duration) {
        thread::sleep(time);
    }

    fn gaps(&self, cpus: &[usize], time: Duration) -> Vec<io::Result<Gaps>> {
        thread::scope(|scope| {
            let threads: Vec<_> = cpus
                .iter()
                .map(|cpu| scope.spawn(move || watch(*cpu, time)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err(io::Error::other("the probe panicked")))
                })
                .collect()
        })
    }
}

fn watch(cpu: usize, time: Duration) -> io::Result<Gaps> {
    affinity::pin_current_thread(cpu).map_err(io::Error::other)?;
    let begin = Instant::now();
    let (mut last, mut longest, mut lost) = (begin, Duration::ZERO, Duration::ZERO);
    while last - begin < time {
        let now = Instant::now();
        let gap = now - last;
        longest = longest.max(gap);
        if gap >= GAP {
            lost += gap;
        }
        last = now;
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(Gaps {
        longest_ns: nanos(longest),
        lost_ns: nanos(lost),
        elapsed_ns: nanos(last - begin),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_machine_below_a_root_reads_its_files_only() {
        let root = std::env::temp_dir().join(format!("taran-doctor-root-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/sys")).unwrap();
        fs::write(root.join("proc/cmdline"), "isolcpus=2\n").unwrap();
        let machine = LiveMachine::below(&root);
        assert_eq!(machine.read("/proc/cmdline").unwrap(), "isolcpus=2\n");
        assert_eq!(machine.list("/proc").unwrap(), ["cmdline", "sys"]);
        let absent = machine.read("/proc/stat").unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(machine.space("/proc/not/there").unwrap().total > 0);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn gaps_of_a_missing_cpu_is_an_error_beside_those_of_others() {
        let cpu = affinity::allowed_cpus()[0];
        let gaps = LiveMachine::new().gaps(&[cpu, 100_000], Duration::from_millis(2));
        assert!(
            gaps[0]
                .as_ref()
                .is_ok_and(|gaps| gaps.elapsed_ns >= 2_000_000)
        );
        assert!(gaps[1].is_err());
    }
}
