// SPDX-License-Identifier: Apache-2.0
//! Progress of long work, on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;

/// Interval of updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// Option for progress.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct ProgressOption {
    /// Show the progress, also if standard error is not a terminal
    #[arg(long)]
    progress: bool,
}

/// Progress of one piece of work. On a terminal, one line is rewritten.
#[derive(Debug)]
pub(super) struct Progress {
    is_shown: bool,
    is_terminal: bool,
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(option: ProgressOption) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            is_shown: is_terminal || option.progress,
            is_terminal,
            shown: None,
        }
    }

    /// Shows a text, unless another one was shown just before.
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL);
        if self.is_shown && is_due {
            self.print(&text());
            self.shown = Some(Instant::now());
        }
    }

    /// Shows the last text.
    pub(super) fn end(&mut self, text: impl FnOnce() -> String) {
        if self.is_shown {
            self.print(&text());
            if self.is_terminal {
                eprintln!();
            }
        }
        self.is_shown = false;
    }

    fn print(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        // If printing fails, there is no other output to report it on.
        let _ = if self.is_terminal {
            write!(out, "\r\x1b[K{text}")
        } else {
            writeln!(out, "{text}")
        };
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The work has failed: its error starts on a line of its own.
        if self.is_shown && self.is_terminal && self.shown.is_some() {
            eprintln!();
        }
    }
}

/// Returns how much of a range is done, such as `12.0 of 48.0 MiB, 25 %`.
pub(super) fn part(done: i64, total: Option<i64>) -> String {
    let mib = |bytes: i64| bytes as f64 / (1024.0 * 1024.0);
    match total {
        Some(total) if total > 0 => format!(
            "{:.1} of {:.1} MiB, {} %",
            mib(done),
            mib(total),
            (i128::from(done) * 100 / i128::from(total)).clamp(0, 100)
        ),
        _ => format!("{:.1} MiB", mib(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_has_percent_if_the_total_is_known() {
        assert_eq!(part(12 << 20, Some(48 << 20)), "12.0 of 48.0 MiB, 25 %");
        assert_eq!(part(1 << 19, None), "0.5 MiB");
        assert_eq!(
            part(i64::MAX, Some(1)),
            format!("{:.1} of 0.0 MiB, 100 %", i64::MAX as f64 / 1048576.0)
        );
        assert_eq!(part(0, Some(0)), "0.0 MiB");
    }
}
