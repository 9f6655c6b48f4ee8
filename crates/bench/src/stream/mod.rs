//! The throughput benchmark: one process publishes as fast as it is let, on one stream or several, another one receives
//! and counts.

mod publisher;
mod subscriber;

pub use publisher::publish;
pub use subscriber::subscribe;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use taran_protocol::frame::DATA_HEADER_LENGTH;

/// A throughput run.
#[derive(Debug, Clone)]
pub struct StreamConfig {
    /// Channels of this end: one, but several where a subscriber is to be several receivers.
    pub channels: Vec<String>,
    /// The first stream on each of them.
    pub stream_id: i32,
    /// How many streams there are on each, one number after the other.
    pub streams: u16,
    /// Whether each stream has one message between two turns of the driver, in place of one stream as many as it is let.
    pub trickle: bool,
    /// Payload bytes of a message, at least [`crate::payload::MIN_LENGTH`].
    pub length: usize,
    /// Time that is measured.
    pub duration: Duration,
    /// Time before it that is not.
    pub warmup: Duration,
    /// Directory of a running driver; `None` embeds one.
    pub aeron_dir: Option<PathBuf>,
    /// Options of an embedded driver, by name.
    pub driver_options: Vec<(String, String)>,
    /// How an embedded driver runs: the name of a threading mode.
    pub threading: String,
    /// Core of this end's thread.
    pub cpu: Option<usize>,
    /// How long to wait for the other end.
    pub patience: Duration,
}

/// Bytes of frames that an end takes in one go, and most messages.
const BURST_BYTES: usize = 128 * 1024;
const BURST_MAX: usize = 1024;

impl StreamConfig {
    /// Messages that an end publishes or reads between two turns of a driver on its thread: whatever their length, about
    /// what a driver sends or receives in one.
    pub(crate) fn burst(&self) -> usize {
        let frame = (self.length + DATA_HEADER_LENGTH as usize).next_multiple_of(32);
        (BURST_BYTES / frame).clamp(1, BURST_MAX)
    }

    /// What this end opens: a channel and a stream at a time.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (&str, i32)> {
        self.channels.iter().flat_map(move |channel| {
            (0..self.streams)
                .map(move |index| (channel.as_str(), self.stream_id + i32::from(index)))
        })
    }
}

/// What one end has seen, on all streams together. Its text form is one line, so that one process can tell another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReport {
    /// Messages in the measured time.
    pub messages: u64,
    /// Payload bytes of each.
    pub length: usize,
    /// The measured time.
    pub elapsed: Duration,
    /// Publisher: sends that met back-pressure. Subscriber: messages missing, repeated or with wrong bytes.
    pub troubles: u64,
}

impl StreamReport {
    /// Messages a second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of messages are far below 2^53
    pub fn rate(&self) -> f64 {
        self.messages as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Payload bytes a second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // lengths are far below 2^53
    pub fn bytes_rate(&self) -> f64 {
        self.rate() * self.length as f64
    }
}

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "STREAM messages={} length={} nanos={} troubles={}",
            self.messages,
            self.length,
            self.elapsed.as_nanos(),
            self.troubles
        )
    }
}

impl FromStr for StreamReport {
    type Err = String;

    fn from_str(line: &str) -> Result<StreamReport, String> {
        let field = |key: &str| {
            line.split_whitespace()
                .find_map(|field| {
                    field
                        .strip_prefix(key)?
                        .strip_prefix('=')?
                        .parse::<u64>()
                        .ok()
                })
                .ok_or_else(|| format!("no number {key}= in {line:?}"))
        };
        Ok(StreamReport {
            messages: field("messages")?,
            length: usize::try_from(field("length")?).map_err(|error| error.to_string())?,
            elapsed: Duration::from_nanos(field("nanos")?),
            troubles: field("troubles")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_line() {
        let report = StreamReport {
            messages: 1_000_000,
            length: 288,
            elapsed: Duration::from_millis(250),
            troubles: 3,
        };
        assert_eq!(report.to_string().parse(), Ok(report));
        assert!((report.rate() - 4_000_000.0).abs() < 0.001);
        assert!("STREAM messages=1".parse::<StreamReport>().is_err());
    }
}
