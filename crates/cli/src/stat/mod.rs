// SPDX-License-Identifier: Apache-2.0
//! `taran stat`: the counters of a driver, live (docs/spec/uri-and-configuration.md §5.5).

mod exposition;
mod filter;
mod frame;
mod json;
mod metrics;
mod serve;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::attach::{self, Attached, DriverState, Target};
use crate::failure::Failure;
use crate::output;
use crate::values;

use exposition::Format;
use filter::Filter;
use frame::{Columns, Rates};
use json::Snapshot;

/// Moves the cursor to the top left corner and clears the screen.
pub(crate) const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Filters are regular expressions; they match anywhere unless anchored with ^ and $. A counter is shown if it matches all
of them. A counter without the attribute (a system counter has no stream) does not match a filter for it.

  taran stat                            every counter, every second
  taran stat --once --type ^0$          the system counters, once
  taran stat --rates --nonzero          what moves, per second
  taran stat --stream ^1001$            the positions of stream 1001
  taran stat -d /dev/shm/other -u 200   another driver, five times per second
  taran stat --listen 127.0.0.1:9464    serve metrics to Prometheus and similar, until interrupted
  taran stat --listen 127.0.0.1:9464 -d /dev/shm/a --also /dev/shm/b      those of two drivers

Types: 0 system, 1 pub-lmt, 2 snd-pos, 3 rcv-hwm, 4 sub-pos, 5 rcv-pos, 6 snd-channel, 7 rcv-channel, 9 snd-lmt,
11 client-heartbeat, 12 pub-pos, 13 snd-bpe, 14 local addresses, 19 snd-naks-received, 20 rcv-naks-sent.

On a terminal the screen is cleared for each refresh; otherwise refreshes are separated by an empty line. For a driver
that has ended, its last counters are shown once; the exit status is 1, with a message on standard error.

Exit status: 0 shown, 1 no driver, or it has ended, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Interval between two refreshes; a bare number is milliseconds
    #[arg(short = 'u', long, value_name = "TIME", default_value = "1s", value_parser = values::interval)]
    interval: Duration,

    /// Repeat until interrupted
    #[arg(short = 'w', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    watch: bool,

    /// Print one refresh, as with -w false; with --rates two, an interval apart
    #[arg(long)]
    once: bool,

    /// Print the change of each counter per second, since the refresh before
    #[arg(long, conflicts_with_all = ["json", "metrics"])]
    rates: bool,

    /// Leave out counters with the value 0
    #[arg(long, conflicts_with_all = ["json", "metrics"])]
    nonzero: bool,

    #[command(flatten)]
    filter: Filter,

    /// Print one JSON document per refresh, on a line of its own
    #[arg(long, conflicts_with_all = ["openmetrics", "listen"])]
    json: bool,

    /// Print the counters once, as OpenMetrics text
    #[arg(long, group = "metrics")]
    openmetrics: bool,

    /// Serve the counters over HTTP at this address, path /metrics, as OpenMetrics or Prometheus text, whichever the scraper
    /// accepts; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", group = "metrics")]
    listen: Option<String>,

    /// Directory of another driver whose metrics are added; may be repeated. All samples then have the label 'directory'
    #[arg(long, value_name = "DIR", requires = "metrics")]
    also: Vec<PathBuf>,
}

/// Prints the counters once or until interrupted, or serves them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(address) = &arguments.listen {
        // A driver may start later, end, and be restarted.
        serve::run(address, targets(arguments), arguments.filter.clone())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.also.is_empty() {
        let drivers = attach::open_all(&targets(arguments));
        let format = Format::OpenMetrics;
        output::text(&metrics::report_all(&drivers, &arguments.filter, format))?;
        for (_, attached) in drivers {
            attached?.check_alive()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let attached = Attached::open(&arguments.target)?;
    if arguments.openmetrics {
        let format = Format::OpenMetrics;
        output::text(&metrics::report(&attached, &arguments.filter, format))?;
        attached.check_alive()?;
        return Ok(ExitCode::SUCCESS);
    }
    let counters = attached.counters();
    let repeats = arguments.watch && !arguments.once;
    let clear = repeats && !arguments.json && io::stdout().is_terminal();
    let mut columns = Columns {
        nonzero: arguments.nonzero,
        rates: arguments.rates.then(Rates::default),
    };
    // A rate needs two refreshes.
    let mut refreshes = match (repeats, arguments.rates) {
        (true, _) => u64::MAX,
        (false, true) => 2,
        (false, false) => 1,
    };
    let mut first = true;
    loop {
        let state = attached.state();
        if arguments.json {
            output::json(&Snapshot::take(&attached, &counters, &arguments.filter))?;
        } else {
            let mut text = String::new();
            if clear {
                text.push_str(CLEAR_SCREEN);
            } else if !first {
                text.push('\n');
            }
            frame::write(
                &mut text,
                &attached,
                &counters,
                &arguments.filter,
                &mut columns,
            );
            output::text(&text)?;
        }
        if state != DriverState::Alive {
            attached.check_alive()?;
        }
        refreshes -= 1;
        if refreshes == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        first = false;
        thread::sleep(arguments.interval);
    }
}

/// Returns the selected driver and the additional ones.
fn targets(arguments: &Arguments) -> Vec<Target> {
    let also = arguments.also.iter().map(|directory| Target {
        aeron_dir: Some(directory.clone()),
        ..arguments.target
    });
    std::iter::once(arguments.target.clone())
        .chain(also)
        .collect()
}
