// SPDX-License-Identifier: Apache-2.0
//! `taran members`: state and control of a member of a cluster, through its files, counters and control stream
//! (docs/spec/cluster.md §9.2 and §11.5).

mod control;
mod describe;
mod files;
mod node;
mod records;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::values;

pub(crate) use node::{ELECTION_CLOSED, LEADER, state_name};

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
DIR is the directory of the member, aeron.cluster.dir; the member may be one of Taran or Aeron.

  taran members describe /var/lib/cluster
  taran members list /var/lib/cluster --json
  taran members snapshot /var/lib/cluster
  taran members transfer /var/lib/cluster --to 2

'describe', 'list', 'is-leader' and the verbs that change the cluster need a running member: 'snapshot', 'suspend', 'resume',
'transfer', 'shutdown' and 'abort' that of the leader, 'validate-recording-log' any. 'transfer' needs a leader of Taran.
'recording-log', 'recovery-plan', 'errors' and 'pid' read files. 'invalidate-latest-snapshot', 'sort-recording-log' and
'seed-recording-log' change files of a member that is stopped.

Exit status: 0 done (is-leader: it leads), 1 failed (is-leader: it does not lead), 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

/// A member, by its directory.
#[derive(Args, Debug)]
struct Target {
    /// Directory of the member
    dir: PathBuf,

    /// Time to wait for the member; a bare number is milliseconds
    #[arg(short = 't', long, value_name = "TIME", default_value = "30s", value_parser = values::millis)]
    timeout: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct Transfer {
    #[command(flatten)]
    target: Target,

    /// Member that is to lead; without it any that has the whole log
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    to: Option<i32>,
}

/// Files of a member, by its directory.
#[derive(Args, Debug)]
struct Stored {
    /// Directory of the member
    dir: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct Plan {
    #[command(flatten)]
    stored: Stored,

    /// Number of services
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=10))]
    services: u8,
}

/// Files of a member, and its archive.
#[derive(Args, Debug)]
struct Recovery {
    #[command(flatten)]
    plan: Plan,

    /// Time to wait for the archive, which may be stopped; a bare number is milliseconds
    #[arg(short = 't', long, value_name = "TIME", default_value = "2s", value_parser = values::millis)]
    timeout: Duration,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the members, as this one knows them
    List(Target),
    /// Say which member leads, which members are behind, and why an election goes on
    Describe(Target),
    /// Print the process id of the member
    Pid(Stored),
    /// Show terms and snapshots in the recording log
    RecordingLog(Stored),
    /// Show what the member would start from
    RecoveryPlan(Recovery),
    /// Show the distinct errors of the member
    Errors(Stored),
    /// Tell by the exit status whether the member leads
    IsLeader(Target),
    /// Take a snapshot on all members
    Snapshot(Target),
    /// Stop taking messages of clients
    Suspend(Target),
    /// Take messages of clients again
    Resume(Target),
    /// Hand leadership over to another member
    Transfer(Transfer),
    /// Take a snapshot, then end all members
    Shutdown(Target),
    /// End all members without a snapshot
    Abort(Target),
    /// Invalidate snapshots whose recordings the archive does not have
    ValidateRecordingLog(Target),
    /// Mark the latest snapshot invalid, so that the member starts from the one before
    InvalidateLatestSnapshot(Stored),
    /// Write the recording log anew, in the order of terms and positions
    SortRecordingLog(Stored),
    /// Write a recording log with the latest snapshot only, for a log that starts anew at position 0
    SeedRecordingLog(Plan),
}

/// Runs the tool.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.verb {
        Verb::List(target) => describe::list(target),
        Verb::Describe(target) => describe::describe(target),
        Verb::IsLeader(target) => describe::is_leader(target),
        Verb::Pid(stored) => records::pid(stored),
        Verb::RecordingLog(stored) => records::recording_log(stored),
        Verb::RecoveryPlan(recovery) => records::recovery_plan(recovery),
        Verb::Errors(stored) => records::errors(stored),
        Verb::Snapshot(target) => control::run(target, control::Action::Snapshot),
        Verb::Suspend(target) => control::run(target, control::Action::Suspend),
        Verb::Resume(target) => control::run(target, control::Action::Resume),
        Verb::Transfer(transfer) => control::transfer(transfer),
        Verb::Shutdown(target) => control::run(target, control::Action::Shutdown),
        Verb::Abort(target) => control::run(target, control::Action::Abort),
        Verb::ValidateRecordingLog(target) => control::validate(target),
        Verb::InvalidateLatestSnapshot(stored) => files::invalidate_latest_snapshot(stored),
        Verb::SortRecordingLog(stored) => files::sort(stored),
        Verb::SeedRecordingLog(plan) => files::seed(plan),
    }
}
