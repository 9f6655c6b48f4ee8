// SPDX-License-Identifier: Apache-2.0
//! `taran doctor`: checks whether the machine is fit for low latency.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use taran_core::directory::default_directory;
use taran_doctor::{
    CpuList, LiveMachine, Machine, Plan, Profile, Purpose, RecordedMachine, Recorder, Report,
    examine, fix_script,
};
use taran_protocol::uri::value::parse_size;

use crate::failure::Failure;
use crate::output;
use crate::values::millis;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads files of /proc and /sys, changes nothing, and needs no privileges; what it could not see is reported as 'unseen'.
Each check prints what it found, and for a deviation what is wanted, why, and how to change it now and for good
(docs/machine.md). The CPUs are those of the driver and its clients; without --cpus the isolated ones, else the first two.

  taran doctor
  taran doctor --cpus 2-5 --interface ens1f0 --mtu 8960
  taran doctor --purpose cluster --data /data/archive --fsync 2
  taran doctor --fix-script > fix.sh        print commands; read them before you run them

Exit status: 0 fine, 3 at least one warning, 4 at least one failure, 1 the check could not run, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// Kind of machine, which decides how serious a deviation is [default: recognised]
    #[arg(long, value_enum)]
    profile: Option<ProfileName>,

    /// Software that the machine has to run
    #[arg(long, value_enum, default_value = "echo")]
    purpose: PurposeName,

    /// CPUs of the driver and its clients, such as 2-5,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Network interface [default: that of the default route]
    #[arg(long, value_name = "NAME", value_parser = interface)]
    interface: Option<String>,

    /// Datagram length of the driver in bytes (aeron.mtu.length)
    #[arg(long, value_name = "BYTES", default_value = "1408", value_parser = size)]
    mtu: u64,

    /// Streams go over IPv6
    #[arg(long)]
    ipv6: bool,

    /// Length of a term in bytes
    #[arg(long, value_name = "BYTES", default_value = "16m", value_parser = size)]
    term_length: u64,

    /// Number of publications and images at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    logs: u64,

    /// Socket buffers that the driver asks for (aeron.socket.so_rcvbuf and so_sndbuf)
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = size)]
    socket_buffer: u64,

    /// Page size of log files (aeron.file.page.size)
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = size)]
    page_size: u64,

    /// Directory of the driver [default: AERON_DIR, else /dev/shm/aeron-<user>]
    #[arg(short = 'd', long, value_name = "DIR")]
    aeron_dir: Option<PathBuf>,

    /// Directory of an archive or a cluster; may be repeated
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,

    /// Bytes that are going to be recorded
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = size)]
    record: u64,

    /// File sync level of archive and cluster
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=2))]
    fsync: u8,

    /// Check the permissions of a profiler, too
    #[arg(long)]
    perf: bool,

    /// Drivers use transport security (taran.secure.mode): check where keys can leave their memory, and the MTU
    #[arg(long)]
    secured: bool,

    /// Duration of each of two probes (load and drops, then gaps); 0 leaves them out
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = millis)]
    probe: Duration,

    /// Print one JSON document
    #[arg(long, conflicts_with = "fix_script")]
    json: bool,

    /// Print a shell script with the changes instead of the findings; nothing is run
    #[arg(long)]
    fix_script: bool,

    /// Write all that was read into a file, to examine it elsewhere with --replay
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record_to: Option<PathBuf>,

    /// Examine a machine from a file that --record-to wrote
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    Latency,
    Throughput,
    Laptop,
    Container,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PurposeName {
    Echo,
    Archive,
    Cluster,
    Rpc,
}

/// Runs the checks and prints the findings.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments);
    let report = match &arguments.replay {
        Some(path) => {
            let file = |source| Failure::File {
                path: path.clone(),
                source,
            };
            let text = fs::read_to_string(path).map_err(file)?;
            let machine = RecordedMachine::parse(&text)
                .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
            examine(&machine, &plan)
        }
        None => live(arguments, &plan)?,
    };
    if arguments.fix_script {
        output::text(&fix_script(&report))?;
    } else if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&format!("{report}\n"))?;
    }
    Ok(ExitCode::from(report.exit_code()))
}

/// Examines this machine, and writes what was read if that is asked for.
fn live(arguments: &Arguments, plan: &Plan) -> Result<Report, Failure> {
    let machine = LiveMachine::new();
    if let Err(error) = machine.read("/proc/self/status") {
        return Err(Failure::Other(format!(
            "cannot read /proc/self/status: {error}; mount /proc"
        )));
    }
    let Some(path) = &arguments.record_to else {
        return Ok(examine(&machine, plan));
    };
    let recorder = Recorder::new(&machine);
    let report = examine(&recorder, plan);
    fs::write(path, recorder.text())
        .map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))?;
    Ok(report)
}

fn plan(arguments: &Arguments) -> Plan {
    let from_environment = || std::env::var_os("AERON_DIR").map(PathBuf::from);
    let aeron_dir = arguments.aeron_dir.clone().or_else(from_environment);
    let aeron_dir = aeron_dir.unwrap_or_else(default_directory);
    Plan {
        profile: arguments.profile.map(|profile| match profile {
            ProfileName::Latency => Profile::Latency,
            ProfileName::Throughput => Profile::Throughput,
            ProfileName::Laptop => Profile::Laptop,
            ProfileName::Container => Profile::Container,
        }),
        purpose: match arguments.purpose {
            PurposeName::Echo => Purpose::Echo,
            PurposeName::Archive => Purpose::Archive,
            PurposeName::Cluster => Purpose::Cluster,
            PurposeName::Rpc => Purpose::Rpc,
        },
        cpus: arguments.cpus.clone(),
        interface: arguments.interface.clone(),
        mtu: arguments.mtu,
        is_ipv6: arguments.ipv6,
        term_length: arguments.term_length,
        logs: arguments.logs,
        socket_buffer: arguments.socket_buffer,
        page_size: arguments.page_size,
        aeron_dir,
        data: arguments.data.clone(),
        record_bytes: arguments.record,
        fsync: arguments.fsync,
        is_profiled: arguments.perf,
        is_secured: arguments.secured,
        probe: arguments.probe,
    }
}

fn interface(text: &str) -> Result<String, String> {
    if taran_doctor::is_interface_name(text) {
        Ok(text.to_owned())
    } else {
        Err("needs the name of a network interface, such as eth0".to_owned())
    }
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text)
        .ok()
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| "needs a number of bytes, such as 1408, 8k or 16m".to_owned())
}
