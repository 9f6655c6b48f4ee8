// SPDX-License-Identifier: Apache-2.0
//! `taran streams`: the streams of a driver with all their counters (docs/spec/uri-and-configuration.md §5.7).

pub(crate) mod model;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use crate::attach::{Attached, Target};
use crate::failure::Failure;
use crate::output;
use crate::printable;

use model::Stream;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
One line per stream: session id, stream id, channel, then each counter as name:registration id:value. Positions are in
bytes since the start of the stream.

  pub-pos, pub-lmt      position of a publisher, and the limit up to which it may write
  snd-pos, snd-lmt      position of the sender, and the limit up to which flow control lets it send
  rcv-hwm, rcv-pos      highest position received, and the position up to which nothing is missing
  sub-pos               position up to which a subscriber has consumed
  snd-bpe, snd-naks-received, rcv-naks-sent   times that flow control stopped the sender; NAKs received and sent

For a driver that has ended, its last streams are shown; the exit status is 1, with a message on standard error.

Exit status: 0 shown, 1 no driver, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the streams.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let attached = Attached::open(&arguments.target)?;
    let streams = model::collect(&attached.counters());
    if arguments.json {
        output::json(&streams)?;
    } else {
        output::text(&report(&streams))?;
    }
    attached.check_alive()?;
    Ok(ExitCode::SUCCESS)
}

fn report(streams: &[Stream]) -> String {
    if streams.is_empty() {
        return "no streams\n".to_owned();
    }
    let mut text = String::new();
    for stream in streams {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "sessionId={} streamId={} channel={} :",
            stream.session_id,
            stream.stream_id,
            printable::one_line(&stream.channel)
        );
        for counter in &stream.counters {
            let _ = write!(
                text,
                " {}:{}:{}",
                printable::one_line(&counter.name),
                counter.registration_id,
                counter.value
            );
        }
        text.push('\n');
    }
    text
}
