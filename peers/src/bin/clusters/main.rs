// SPDX-License-Identifier: Apache-2.0
//! A member of our cluster, and loads on a cluster of either implementation by our client.

#![forbid(unsafe_code)]

mod counters;
mod echo;
mod fill;
mod member;
mod outage;
mod service;
mod session;
mod stall;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};
use taran_bench::side::RunError;
use taran_peers::bench::{Found, conclude, end_with_parent};

use session::{Load, Session};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run a member with driver, archive and an echo service until the end of standard input; options are environment variables
    Run {
        /// Bytes of the service's state
        #[arg(long, default_value_t = 0)]
        state: usize,
    },
    /// Open a session, and print the leader
    Leader(Load),
    /// Measure round trips at a fixed rate
    Echo(Load),
    /// Print the leader, then measure the longest time without an answer until another member has led for a while
    Outage(Load),
    /// Print the leader, then measure the longest added latency until the end of standard input
    Stall(Load),
    /// Send messages until the log has grown by a number of bytes
    Fill {
        #[command(flatten)]
        load: Load,
        /// Bytes by which the log grows
        #[arg(long)]
        bytes: u64,
    },
    /// Wait until the member with an Aeron directory has what its leader has committed
    Follow {
        /// Aeron directory of the leader
        leader_dir: PathBuf,
        /// Aeron directory of the member
        aeron_dir: PathBuf,
        /// Process id of the member
        pid: u32,
    },
    /// Let the leader with this Aeron directory take a snapshot
    Snapshot { aeron_dir: PathBuf },
    /// Let our leader with this Aeron directory hand leadership over
    Transfer { aeron_dir: PathBuf },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = end_with_parent();
    conclude(match &arguments.task {
        Task::Run { state } => member::run(*state, &stop).map(|()| None),
        Task::Leader(load) => leader(load, stop).map(|()| None),
        Task::Echo(load) => echo::measure(load, stop),
        Task::Outage(load) => outage::measure(load, stop),
        Task::Stall(load) => stall::measure(load, &stop),
        Task::Fill { load, bytes } => done(fill::run(load, *bytes, stop)),
        Task::Follow {
            leader_dir,
            aeron_dir,
            pid,
        } => done(counters::follow(leader_dir, aeron_dir, *pid)),
        Task::Snapshot { aeron_dir } => done(counters::snapshot(aeron_dir)),
        Task::Transfer { aeron_dir } => done(counters::transfer(aeron_dir)),
    })
}

fn leader(load: &Load, stop: Arc<AtomicBool>) -> Result<(), RunError> {
    let session = Session::open(load, stop)?;
    println!("LEADER {}", session.leader());
    session.close()
}

/// Tells the parent process that an action is done.
fn done(result: Result<(), RunError>) -> Found {
    result.map(|()| {
        println!("DONE");
        None
    })
}
