// SPDX-License-Identifier: Apache-2.0
//! `taran loss`: the loss report of a driver (docs/spec/uri-and-configuration.md §5.6).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_core::loss_report::{LossObservation, read};
use taran_core::memory::Region;

use crate::attach::{Attached, Target};
use crate::date;
use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::printable;

/// File name of the report in a driver's directory.
const FILE: &str = "loss-report.dat";

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
One line of comma-separated values per stream with loss: number of observations, bytes lost, time of the first and the
last observation, session id, stream id, channel, and source address. Loss repaired by retransmission is counted too.

For a driver that has ended, its last report is shown; the exit status is 1, with a message on standard error.

Exit status: 0 shown, 1 no driver or no such file, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Read this report instead of a driver's
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Loss {
    observations: i64,
    bytes_lost: i64,
    first_observation_ms: i64,
    last_observation_ms: i64,
    session_id: i32,
    stream_id: i32,
    channel: String,
    source: String,
}

impl Loss {
    fn of(observation: &LossObservation) -> Self {
        Self {
            observations: observation.count,
            bytes_lost: observation.bytes_lost,
            first_observation_ms: observation.first_ms,
            last_observation_ms: observation.last_ms,
            session_id: observation.session_id,
            stream_id: observation.stream_id,
            channel: observation.channel.clone(),
            source: observation.source.clone(),
        }
    }
}

/// Prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.file {
        show(&load(file.clone())?, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let attached = Attached::open(&arguments.target)?;
    show(&load(attached.directory.join(FILE))?, arguments.json)?;
    attached.check_alive()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the bytes lost by session id and stream id, as far as the report of a driver can be read.
pub(crate) fn bytes_lost(directory: &Path) -> HashMap<(i32, i32), i64> {
    let mut lost = HashMap::new();
    for loss in load(directory.join(FILE)).unwrap_or_default() {
        let bytes = lost
            .entry((loss.session_id, loss.stream_id))
            .or_insert(0_i64);
        *bytes = bytes.saturating_add(loss.bytes_lost);
    }
    lost
}

fn show(losses: &[Loss], json: bool) -> Result<(), Failure> {
    if json {
        output::json(&losses)
    } else {
        output::text(&report(losses))
    }
}

/// Copies the file into memory, so that read permission suffices.
fn load(path: PathBuf) -> Result<Vec<Loss>, Failure> {
    let bytes = input::read(&path).map_err(|source| Failure::File { path, source })?;
    let mut losses = Vec::new();
    if !bytes.is_empty() {
        let region =
            Region::anonymous(bytes.len()).map_err(|error| Failure::Other(error.to_string()))?;
        region.write(0, &bytes);
        read(&region, |observation| losses.push(Loss::of(observation)));
    }
    Ok(losses)
}

fn report(losses: &[Loss]) -> String {
    let mut text = "OBSERVATION_COUNT,TOTAL_BYTES_LOST,FIRST_OBSERVATION,LAST_OBSERVATION,SESSION_ID,STREAM_ID,CHANNEL,\
                    SOURCE\n"
        .to_owned();
    for loss in losses {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{}",
            loss.observations,
            loss.bytes_lost,
            date::format(loss.first_observation_ms),
            date::format(loss.last_observation_ms),
            loss.session_id,
            loss.stream_id,
            field(&loss.channel),
            field(&loss.source)
        );
    }
    let _ = writeln!(text, "{} loss entries", losses.len());
    text
}

/// Returns the text as a CSV value: in quotes if it contains a comma or a quote.
fn field(text: &str) -> String {
    let text = printable::one_line(text);
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_one_line_per_stream() {
        let loss = Loss {
            observations: 3,
            bytes_lost: 4_224,
            first_observation_ms: 0,
            last_observation_ms: 1,
            session_id: -1,
            stream_id: 1001,
            channel: "aeron:udp?endpoint=localhost:1|alias=a,b".to_owned(),
            source: "127.0.0.1:5".to_owned(),
        };
        let text = report(&[loss]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("3,4224,19"), "{text}");
        assert!(
            lines[1].ends_with(",-1,1001,\"aeron:udp?endpoint=localhost:1|alias=a,b\",127.0.0.1:5"),
            "{text}"
        );
        assert_eq!(lines[2], "1 loss entries");
    }
}
