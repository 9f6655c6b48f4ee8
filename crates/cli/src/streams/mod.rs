//! `taran streams`: the streams of a driver, with all their counters (docs/spec/uri-and-configuration.md §5.7).

pub(crate) mod model;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use crate::attach::{Attached, Target};
use crate::failure::Failure;
use crate::output;
use crate::printable;

use model::Stream;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
One line for each stream: session id, stream id, channel, then each counter as name:registration id:value. Positions are
bytes since the beginning of the stream.

  pub-pos, pub-lmt      how far publishers are, and how far they may go
  snd-pos, snd-lmt      how far the sender is, and how far its receivers let it go
  rcv-hwm, rcv-pos      the highest byte received, and up to where nothing is missing
  sub-pos               how far a subscriber has read
  snd-bpe, snd-naks-received, rcv-naks-sent   how often it was held back, and what was lost

The streams of a driver that is gone are shown as well; then the exit status is 1 and standard error says so.

Exit status: 0 shown, 1 no driver, 2 wrong usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows them.
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
