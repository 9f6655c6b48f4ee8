// SPDX-License-Identifier: Apache-2.0
//! The throughput benchmark: one process publishes as fast as flow control allows, on one or several streams; another
//! one receives, counts and checks.

mod publisher;
mod subscriber;

pub use publisher::publish;
pub use subscriber::subscribe;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use taran_protocol::frame::DATA_HEADER_LENGTH;

/// Configuration of a throughput run.
#[derive(Debug, Clone)]
pub struct StreamConfig {
    /// Channels of this process: one, or several if a subscriber has to act as several receivers.
    pub channels: Vec<String>,
    /// First stream id on each channel.
    pub stream_id: i32,
    /// Number of streams on each channel, with consecutive ids.
    pub streams: u16,
    /// Publishes one message on each stream per duty cycle instead of a burst on one stream.
    pub trickle: bool,
    /// Payload length of a message in bytes, at least [`crate::payload::MIN_LENGTH`].
    pub length: usize,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Duration of the unmeasured run before it.
    pub warmup: Duration,
    /// Directory of a running driver. `None` embeds one.
    pub aeron_dir: Option<PathBuf>,
    /// Options of an embedded driver: name and value.
    pub driver_options: Vec<(String, String)>,
    /// Threading mode of an embedded driver, by name.
    pub threading: String,
    /// Core of the benchmark's thread.
    pub cpu: Option<usize>,
    /// Timeout for the connection.
    pub timeout: Duration,
}

/// Maximum frame bytes per burst.
const BURST_BYTES: usize = 128 * 1024;
/// Maximum number of messages per burst.
const BURST_MAX: usize = 1024;

impl StreamConfig {
    /// Returns the number of messages to publish or poll between two duty cycles of a driver on the same thread: at any
    /// message length about as much as a driver sends or receives in one duty cycle.
    pub(crate) fn burst(&self) -> usize {
        let frame = (self.length + DATA_HEADER_LENGTH as usize).next_multiple_of(32);
        (BURST_BYTES / frame).clamp(1, BURST_MAX)
    }

    /// Returns each channel and stream id to open.
    pub(crate) fn channel_streams(&self) -> impl Iterator<Item = (&str, i32)> {
        self.channels.iter().flat_map(move |channel| {
            (0..self.streams)
                .map(move |index| (channel.as_str(), self.stream_id + i32::from(index)))
        })
    }
}

/// Result of one process, over all its streams. Its text form is one line, for exchange between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReport {
    /// Number of messages in the measured time.
    pub messages: u64,
    /// Payload length of a message in bytes.
    pub length: usize,
    /// Measured time.
    pub elapsed: Duration,
    /// Publisher: sends rejected by back-pressure. Subscriber: messages missing, duplicated or corrupt.
    pub troubles: u64,
}

impl StreamReport {
    /// Returns the rate in messages per second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of messages are far below 2^53
    pub fn rate(&self) -> f64 {
        self.messages as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the rate in payload bytes per second.
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
    fn report_line_parses_to_the_same_report() {
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
