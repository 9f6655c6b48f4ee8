// SPDX-License-Identifier: Apache-2.0
//! `taran driver-info`: identity and state of a driver, and its termination (docs/spec/uri-and-configuration.md §5.4,
//! §5.5).

use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;

use crate::attach::{Attached, DriverState, Target};
use crate::date;
use crate::failure::Failure;
use crate::output;
use crate::values;

/// Interval of checks whether the driver has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taran driver-info                     version, process, state, heartbeat
  taran driver-info --pid               only the process id
  taran driver-info --terminate         request termination and wait until the driver has ended

A driver accepts a termination request only if aeron.driver.termination.validator=allow; otherwise it ignores the
request silently. In that case, send it SIGTERM.

Exit status: 0 alive, or terminated as requested; 1 no driver, it has ended, or did not terminate; 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Print only the process id
    #[arg(short = 'P', long, conflicts_with = "terminate")]
    pid: bool,

    /// Request termination of the driver and wait until it has ended
    #[arg(short = 'T', long)]
    terminate: bool,

    /// Token for the driver's termination validator
    #[arg(long, value_name = "TEXT", default_value = "", requires = "terminate")]
    token: String,

    /// Time to wait for the termination; a bare number is milliseconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::millis, requires = "terminate")]
    wait: Duration,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Info {
    cnc_file: String,
    cnc_version: String,
    /// Version and commit from the label of the driver's version counter.
    software: Option<String>,
    pid: i64,
    state: &'static str,
    start_ms: i64,
    /// `None` after an orderly shutdown.
    heartbeat_ms: Option<i64>,
    heartbeat_age_ms: Option<i64>,
    client_liveness_timeout_ns: i64,
    file_page_size: i32,
}

/// Shows a driver or terminates it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let attached = Attached::open(&arguments.target)?;
    if arguments.terminate {
        return terminate(&attached, arguments);
    }
    let info = Info::of(&attached);
    if arguments.json {
        output::json(&info)?;
    } else if arguments.pid {
        output::text(&format!("{}\n", info.pid))?;
    } else {
        output::text(&report(&info))?;
    }
    attached.check_alive()?;
    Ok(ExitCode::SUCCESS)
}

impl Info {
    fn of(attached: &Attached) -> Self {
        let spec = attached.cnc.spec();
        let heartbeat_age_ms = attached.heartbeat_age_ms();
        let software = attached
            .counters()
            .label(SystemCounter::AeronVersion.id())
            .and_then(|label| {
                let (_, software) = label.as_str().split_once(": ")?;
                Some(software.to_owned())
            });
        Self {
            cnc_file: attached.cnc_path().display().to_string(),
            cnc_version: attached.version().to_string(),
            software,
            pid: attached.pid(),
            state: match attached.state() {
                DriverState::Alive => "alive",
                DriverState::ShutDown => "shut down",
                DriverState::Dead => "dead",
                DriverState::Silent => "silent",
            },
            start_ms: spec.start_timestamp_ms,
            heartbeat_ms: heartbeat_age_ms.map(|_| attached.heartbeat_ms()),
            heartbeat_age_ms,
            client_liveness_timeout_ns: spec.client_liveness_timeout_ns,
            file_page_size: spec.page_size,
        }
    }
}

fn report(info: &Info) -> String {
    let mut text = String::new();
    let heartbeat = match (info.heartbeat_ms, info.heartbeat_age_ms) {
        (Some(heartbeat), Some(age)) => format!("{} ({age} ms ago)", date::format(heartbeat)),
        _ => "none (shut down)".to_owned(),
    };
    let lines = [
        ("cnc file", info.cnc_file.clone()),
        ("version", info.cnc_version.clone()),
        (
            "software",
            info.software
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
        ("pid", info.pid.to_string()),
        ("state", info.state.to_owned()),
        ("start", date::format(info.start_ms)),
        ("activity", heartbeat),
    ];
    for (name, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:>8}: {value}");
    }
    text
}

fn terminate(attached: &Attached, arguments: &Arguments) -> Result<ExitCode, Failure> {
    attached.check_alive()?;
    let mut bytes = Vec::new();
    let command = Command::TerminateDriver {
        client_id: -1,
        correlation_id: attached.next_correlation_id(),
        token: arguments.token.as_bytes(),
    };
    let type_id = command.encode(&mut bytes);
    attached.send(type_id, &bytes)?;
    let requested = Instant::now();
    loop {
        match attached.state() {
            DriverState::ShutDown => break,
            DriverState::Dead => attached.check_alive()?,
            DriverState::Alive | DriverState::Silent => {}
        }
        if requested.elapsed() >= arguments.wait {
            return Err(Failure::NotTerminated {
                directory: attached.directory.clone(),
                pid: attached.pid(),
                waited: arguments.wait,
            });
        }
        thread::sleep(POLL_INTERVAL);
    }
    let info = Info::of(attached);
    if arguments.json {
        output::json(&info)?;
    } else {
        output::text(&format!("the driver with pid {} has ended\n", info.pid))?;
    }
    Ok(ExitCode::SUCCESS)
}
