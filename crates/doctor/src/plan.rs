// SPDX-License-Identifier: Apache-2.0
//! Purpose of a machine: what the checks compare it with.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::cpu_list::CpuList;

/// Kind of machine, which decides how serious a deviation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Low latency on a machine of its own: each row as in the table.
    Latency,
    /// Throughput: what only affects latency is one level less serious.
    Throughput,
    /// A developer's machine: what only affects latency is a hint.
    Laptop,
    /// A container: what belongs to the host is a hint.
    Container,
}

/// Software that the machine has to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A driver and an echo node or a client: four cores.
    Echo,
    /// An archive beside a driver.
    Archive,
    /// A cluster node: driver, archive, consensus module and service on eight cores.
    Cluster,
    /// Comparisons with systems that use TCP.
    Rpc,
}

/// Plan of an examination.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Profile; `None` recognises container and laptop, else assumes latency.
    pub profile: Option<Profile>,
    /// Software that the machine has to run.
    pub purpose: Purpose,
    /// CPUs of benchmark or driver; `None` takes the isolated ones, else the first two that are allowed.
    pub cpus: Option<CpuList>,
    /// Network interface; `None` takes that of the default route.
    pub interface: Option<String>,
    /// Bytes of a datagram of a driver: option `aeron.mtu.length`.
    pub mtu: u64,
    /// True if streams go over IPv6.
    pub is_ipv6: bool,
    /// Length of a term in bytes.
    pub term_length: u64,
    /// Number of logs at the same time.
    pub logs: u64,
    /// Socket buffers that the drivers ask for, in bytes; 0 if they take the system's default.
    pub socket_buffer: u64,
    /// Page size of log files in bytes: option `aeron.file.page.size`.
    pub page_size: u64,
    /// Directory of the driver.
    pub aeron_dir: PathBuf,
    /// Directories of archives and clusters.
    pub data: Vec<PathBuf>,
    /// Bytes that are going to be recorded.
    pub record_bytes: u64,
    /// File sync level of archive and cluster, 0 to 2.
    pub fsync: u8,
    /// True if a profiler is going to be used.
    pub is_profiled: bool,
    /// True if drivers use transport security.
    pub is_secured: bool,
    /// Duration of each of the two probes; zero leaves out what needs them.
    pub probe: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            profile: None,
            purpose: Purpose::Echo,
            cpus: None,
            interface: None,
            mtu: 1_408,
            is_ipv6: false,
            term_length: 16 << 20,
            logs: 4,
            socket_buffer: 0,
            page_size: 4_096,
            aeron_dir: PathBuf::from("/dev/shm/aeron"),
            data: Vec::new(),
            record_bytes: 0,
            fsync: 0,
            is_profiled: false,
            is_secured: false,
            probe: Duration::from_secs(2),
        }
    }
}

impl Plan {
    /// Returns the bytes of shared memory that all logs take: three terms and a page of metadata each.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        let log = self.term_length.saturating_mul(3).saturating_add(4_096);
        log.saturating_mul(self.logs)
    }

    /// Returns true if files are written whose durability matters.
    #[must_use]
    pub fn has_storage(&self) -> bool {
        !self.data.is_empty() || matches!(self.purpose, Purpose::Archive | Purpose::Cluster)
    }
}
