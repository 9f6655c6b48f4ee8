// SPDX-License-Identifier: Apache-2.0
//! `taran cluster`: a member of a cluster as a process, beside a media driver and an archive, or with them: in place of the
//! official consensus module and `ClusteredMediaDriver` (`docs/cluster.md`).

mod container;
mod demo;
mod echo;
mod parent;
mod run;

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use crate::driver::Settings;
use crate::failure;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Options have the names and defaults of the official consensus module, except that the periods of elections and heartbeats
are shorter: a dead leader is replaced within half a second. Their environment variables are the names in upper case with
_ for the dots. Precedence: -D over property files (a later file over an earlier one), property files over the
environment. An empty value resets an option to its default. An invalid value is an error.

A cluster of three members on this machine, with a client, to look at:

  taran cluster demo

A cluster of one member, with driver and archive in the same process:

  taran cluster --driver --archive \\
      -Daeron.cluster.members=0,localhost:20110,localhost:20220,localhost:20330,localhost:20440,localhost:8010 \\
      -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 \\
      -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0

Without --archive the member needs a running archive, Taran or Aeron, and without --driver also a running media driver on
this machine: aeron.dir, by default /dev/shm/aeron-<user>. With --archive or --driver the process takes the options of
'taran archive' or 'taran driver', too; their threading modes may not be INVOKER.

The member runs the service of --service in its process. With --service none its services run in containers: processes
of their own, of Taran or Aeron, on the same driver; aeron.cluster.service.count of them (1). Such a container is

  taran cluster --container --service echo -Daeron.cluster.service.id=0

Services of your own are written in Rust against the trait Service of the crate taran-cluster.

SIGINT and SIGTERM end it in order: first the member, so that the others elect a leader at once, then archive and driver.

Exit status: 0 after a signal or an orderly termination of the cluster, 1 if it could not start or failed."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    settings: Settings,

    /// Run a media driver in the same process
    #[arg(long, requires = "archive")]
    driver: bool,

    /// Run an archive in the same process
    #[arg(long)]
    archive: bool,

    /// Run only the service, as a container beside the consensus module of this machine, of Taran or Aeron
    #[arg(long, conflicts_with_all = ["driver", "archive"])]
    container: bool,

    /// Service of the member
    #[arg(long, value_enum, default_value = "echo")]
    service: ServiceKind,

    /// End in order when this process, the parent, ends
    #[arg(long, hide = true, value_name = "PID")]
    parent: Option<u32>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a cluster on this machine with a client that shows its answers, and a failover on request
    Demo(demo::Arguments),
}

/// Services that come with the command.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceKind {
    /// Sends each message back to its client
    Echo,
    /// As echo, with the number of messages so far behind each (8 bytes, little-endian)
    Count,
    /// Services run in containers of their own
    None,
}

/// Runs a member until it is stopped.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if let Some(Command::Demo(arguments)) = &arguments.command {
        return failure::exit_code(demo::run(arguments));
    }
    let result = if arguments.container {
        container::run(arguments)
    } else {
        run::run(arguments)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ERROR: cluster: {error}");
            ExitCode::FAILURE
        }
    }
}
