// SPDX-License-Identifier: Apache-2.0
//! Configuration of an echo run.

use std::path::PathBuf;
use std::time::Duration;

use crate::client_idle::ClientIdle;
use crate::payload;
use crate::side::{LaunchDriver, launch_embedded};

/// Part of the benchmark that runs in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Both sides, each on its own core.
    Both,
    /// Sends and measures.
    Client,
    /// Echoes until interrupted.
    Server,
}

/// Configuration of an echo run. [`EchoConfig::default`] is the main benchmark: 288-byte messages at 100,000/s over UDP
/// loopback, two embedded drivers, one core for each side.
#[derive(Debug, Clone)]
pub struct EchoConfig {
    /// Part that runs in this process.
    pub role: Role,
    /// Channel from the client to the server.
    pub channel: String,
    /// Stream on `channel`.
    pub stream_id: i32,
    /// Channel from the server to the client.
    pub reply_channel: String,
    /// Stream on `reply_channel`.
    pub reply_stream_id: i32,
    /// Messages per second.
    pub rate: u64,
    /// Payload length of a message in bytes, at least [`payload::MIN_LENGTH`].
    pub length: usize,
    /// Messages that are due at the same time.
    pub batch: u64,
    /// Duration of one measured iteration.
    pub duration: Duration,
    /// Number of measured iterations; their round trips go into one histogram.
    pub iterations: u32,
    /// Duration of the unmeasured run at the same rate before the first iteration.
    pub warmup: Duration,
    /// Directory of a running driver. `None` embeds one driver for each side, or one for both if a channel is IPC.
    pub aeron_dir: Option<PathBuf>,
    /// Options of embedded drivers: name and value.
    pub driver_options: Vec<(String, String)>,
    /// Launches embedded drivers.
    pub launch_driver: LaunchDriver,
    /// Threading mode of embedded drivers, by name.
    pub threading: String,
    /// Cores of the client and the server side; empty if threads are not pinned.
    pub cpus: Vec<usize>,
    /// Idle strategy of both sides if their drivers run elsewhere or on own threads.
    pub idle: ClientIdle,
    /// Timeout for the connection at the start and for the last messages at the end.
    pub timeout: Duration,
    /// True to print progress on standard error.
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
            launch_driver: launch_embedded,
            threading: "INVOKER".to_owned(),
            cpus: vec![0, 1],
            idle: ClientIdle::Yield,
            timeout: Duration::from_secs(10),
            progress: true,
        }
    }
}

impl EchoConfig {
    /// Returns true if both sides use one driver, because a channel is IPC.
    #[must_use]
    pub fn is_ipc(&self) -> bool {
        [&self.channel, &self.reply_channel]
            .iter()
            .any(|channel| channel.starts_with("aeron:ipc"))
    }

    /// Checks the values; the error text says what to change.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), String> {
        if self.length < payload::MIN_LENGTH {
            return Err(format!(
                "length is {} bytes; the minimum is {}, for the due time and the sequence number",
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
