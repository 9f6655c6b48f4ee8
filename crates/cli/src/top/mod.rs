// SPDX-License-Identifier: Apache-2.0
//! `taran top`: the streams of a driver on a live screen, with rates, lags and losses.

mod screen;
mod terminal;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::attach::{Attached, DriverState, Target};
use crate::failure::Failure;
use crate::interrupt;
use crate::live::Sampler;
use crate::values;

use screen::{Action, Screen};
use terminal::Terminal;

/// Longest wait for a key, so that signals and the end of a driver are noticed.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
For each stream: bytes per second, how many bytes the slowest part of this driver lags behind, NAKs per second,
bytes lost so far (repaired or not), and what limits its publication, on lines of its own where the terminal is too narrow
and has room for them. The lines at the top sum up the driver.

  q       end                     /       show streams whose channel or ids contain a text; empty: all
  s       next order              n       hide streams that neither moved nor lag
  l       limits on lines of their own, for many streams too
  arrows  scroll, also page up and page down

  taran top                             the streams of the default driver, every second
  taran top -d /dev/shm/other -u 250 --sort lag

Without a terminal, use 'taran stat', 'taran streams' or 'taran backlog', which print lines and JSON.

Exit status: 0 ended by q or a signal, 1 no driver, or it has ended, or no terminal, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Interval between two refreshes; a bare number is milliseconds
    #[arg(short = 'u', long, value_name = "TIME", default_value = "1s", value_parser = values::interval)]
    interval: Duration,

    /// Order of the streams
    #[arg(long, value_enum, default_value = "rate")]
    sort: Order,

    /// Show only streams whose channel, stream id or session id contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// Hide streams that neither moved nor lag
    #[arg(long)]
    nonzero: bool,
}

/// Order of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// Quickest first
    Rate,
    /// Furthest behind first
    Lag,
    /// Most losses first
    Loss,
    /// By stream id
    Stream,
}

/// Shows the screen until a key or signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::Other(
            "'taran top' needs a terminal for its screen and keys; 'taran stat --once', 'taran streams' and 'taran \
             backlog' print lines"
                .to_owned(),
        ));
    }
    let attached = Attached::open(&arguments.target)?;
    let stop = interrupt::flag()?;
    let mut sampler = Sampler::new();
    let mut screen = Screen::new(arguments.sort, arguments.filter.clone(), arguments.nonzero);
    let mut terminal = Terminal::enter()?;
    while !stop.load(Ordering::Relaxed) && attached.state() == DriverState::Alive {
        let sampled = Instant::now();
        let sample = sampler.take(&attached);
        terminal.draw(|size| screen.lines(&sample, size))?;
        while !stop.load(Ordering::Relaxed) {
            let left = arguments.interval.saturating_sub(sampled.elapsed());
            if left.is_zero() {
                break;
            }
            let Some(key) = terminal.key(left.min(KEY_WAIT))? else {
                continue;
            };
            if screen.press(key) == Action::End {
                return Ok(ExitCode::SUCCESS);
            }
            terminal.draw(|size| screen.lines(&sample, size))?;
        }
    }
    // The terminal is left before the reason is printed.
    drop(terminal);
    if !stop.load(Ordering::Relaxed) {
        attached.check_alive()?;
    }
    Ok(ExitCode::SUCCESS)
}
