//! `taran stat`: the counters of a driver, live (docs/spec/uri-and-configuration.md §5.5).

mod filter;
mod frame;
mod json;
mod openmetrics;
mod places;
mod request;
mod serve;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::attach::{Attached, Life, Target};
use crate::failure::Failure;
use crate::output;
use crate::values;

use filter::Filter;
use json::Snapshot;

/// Moves to the corner and clears what is there.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Filters are regular expressions, found anywhere unless anchored with ^ and $; a counter is shown if it passes all of
them. A counter without the attribute (a system counter has no stream) does not pass a filter for it.

  taran stat                            every counter, each second
  taran stat -w false --type ^0$        the system counters, once
  taran stat --stream ^1001$            the positions of stream 1001
  taran stat -d /dev/shm/other -u 200   another driver, five times a second
  taran stat --listen 127.0.0.1:9464    metrics for Prometheus and its like, until interrupted

Types: 0 system, 1 pub-lmt, 2 snd-pos, 3 rcv-hwm, 4 sub-pos, 5 rcv-pos, 6 snd-channel, 7 rcv-channel, 9 snd-lmt,
11 client-heartbeat, 12 pub-pos, 13 snd-bpe, 14 local addresses, 19 snd-naks-received, 20 rcv-naks-sent.

On a terminal the screen is cleared for each refresh; otherwise an empty line separates them.
What a driver that is gone left behind is shown once; then the exit status is 1 and standard error says so.

Exit status: 0 shown, 1 no driver, or it went away, 2 wrong usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Time between two refreshes; a bare number is milliseconds
    #[arg(short = 'u', long, value_name = "TIME", default_value = "1s", value_parser = values::millis)]
    interval: Duration,

    /// Whether to go on until interrupted
    #[arg(short = 'w', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    watch: bool,

    #[command(flatten)]
    filter: Filter,

    /// Print one JSON document for each refresh, in a line of its own
    #[arg(long, conflicts_with_all = ["openmetrics", "listen"])]
    json: bool,

    /// Print the counters once, as OpenMetrics text
    #[arg(long)]
    openmetrics: bool,

    /// Serve the counters as OpenMetrics text over HTTP at this address, path /metrics; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
}

/// Shows them until interrupted, or once.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(address) = &arguments.listen {
        // A driver may come later, and go, and come again.
        serve::run(address, arguments.target.clone(), arguments.filter.clone())?;
        return Ok(ExitCode::SUCCESS);
    }
    let attached = Attached::open(&arguments.target)?;
    if arguments.openmetrics {
        output::text(&openmetrics::report(&attached, &arguments.filter))?;
        attached.check_alive()?;
        return Ok(ExitCode::SUCCESS);
    }
    let counters = attached.counters();
    let clear = arguments.watch && !arguments.json && io::stdout().is_terminal();
    let mut first = true;
    loop {
        let life = attached.life();
        if arguments.json {
            output::json(&Snapshot::take(&attached, &counters, &arguments.filter))?;
        } else {
            let mut text = String::new();
            if clear {
                text.push_str(CLEAR_SCREEN);
            } else if !first {
                text.push('\n');
            }
            frame::write(&mut text, &attached, &counters, &arguments.filter);
            output::text(&text)?;
        }
        if life != Life::Alive {
            attached.check_alive()?;
        }
        if !arguments.watch {
            return Ok(ExitCode::SUCCESS);
        }
        first = false;
        thread::sleep(arguments.interval);
    }
}
