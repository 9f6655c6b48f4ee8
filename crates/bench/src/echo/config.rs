//! What to run.

use std::path::PathBuf;
use std::time::Duration;

use crate::payload;
use crate::side::{Embed, embed};

/// Which part of the benchmark this process plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Both sides, each on a core of its own.
    Both,
    /// Sends and measures.
    Client,
    /// Sends back, until it is interrupted.
    Server,
}

/// An echo run. [`EchoConfig::default`] is the main benchmark: 288-byte messages at 100,000/s over UDP loopback,
/// two embedded drivers, one core for each side.
#[derive(Debug, Clone)]
pub struct EchoConfig {
    /// Which part this process plays.
    pub role: Role,
    /// From the client to the server.
    pub channel: String,
    /// Stream on `channel`.
    pub stream_id: i32,
    /// From the server back to the client.
    pub reply_channel: String,
    /// Stream on `reply_channel`.
    pub reply_stream_id: i32,
    /// Messages a second.
    pub rate: u64,
    /// Payload bytes of a message, at least [`payload::MIN_LENGTH`].
    pub length: usize,
    /// Messages that are due together.
    pub batch: u64,
    /// Length of one measured iteration.
    pub duration: Duration,
    /// Measured iterations; their round trips go into one histogram.
    pub iterations: u32,
    /// Time at the same rate before measuring.
    pub warmup: Duration,
    /// Directory of a running driver; `None` embeds one for each side, or one for both where a channel is IPC.
    pub aeron_dir: Option<PathBuf>,
    /// Options of embedded drivers, by name.
    pub driver_options: Vec<(String, String)>,
    /// What makes embedded drivers.
    pub embed: Embed,
    /// How embedded drivers run: the name of a threading mode.
    pub threading: String,
    /// Cores of the client's and the server's side; empty: not pinned.
    pub cpus: Vec<usize>,
    /// How long to wait for the other side at the start, and for the last messages at the end.
    pub patience: Duration,
    /// Show progress on standard error.
    pub progress: bool,
}

impl Default for EchoConfig {
    fn default() -> Self {
        EchoConfig {
            role: Role::Both,
            channel: "aeron:udp?endpoint=127.0.0.1:20121".to_owned(),
            stream_id: 1_001,
            reply_channel: "aeron:udp?endpoint=127.0.0.1:20123".to_owned(),
            reply_stream_id: 1_002,
            rate: 100_000,
            length: 288,
            batch: 1,
            duration: Duration::from_secs(5),
            iterations: 1,
            warmup: Duration::from_secs(2),
            aeron_dir: None,
            driver_options: Vec::new(),
            embed,
            threading: "INVOKER".to_owned(),
            cpus: vec![0, 1],
            patience: Duration::from_secs(10),
            progress: true,
        }
    }
}

impl EchoConfig {
    /// Whether the two sides meet in one driver, because a channel goes through its memory.
    #[must_use]
    pub fn is_ipc(&self) -> bool {
        [&self.channel, &self.reply_channel]
            .iter()
            .any(|channel| channel.starts_with("aeron:ipc"))
    }

    /// What cannot be run, as a text that says what to change.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.length < payload::MIN_LENGTH {
            return Err(format!(
                "length is {} bytes; a message carries its due time and number, so it needs at least {}",
                self.length,
                payload::MIN_LENGTH
            ));
        }
        if self.rate == 0 || self.batch == 0 || self.iterations == 0 || self.duration.is_zero() {
            return Err("rate, batch, iterations and duration must not be zero".to_owned());
        }
        Ok(())
    }
}
