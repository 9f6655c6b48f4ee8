// SPDX-License-Identifier: Apache-2.0
//! Command line of the benchmarks, common to all implementations.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand};
use taran_bench::client_idle::ClientIdle;
use taran_bench::echo::{EchoConfig, Role};
use taran_bench::ping::PingConfig;
use taran_bench::side::{LaunchDriver, SideSpec};
use taran_bench::stream::StreamConfig;

/// First stream id of all benchmarks; the replies of round trips use the next one.
pub const STREAM_ID: i32 = 1_001;
/// Time limit for connecting, which includes a driver that creates ten thousand streams.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for the last replies of scheduled round trips.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// One end of a benchmark.
#[derive(Subcommand, Debug, Clone)]
pub enum End {
    /// Send at full rate
    Publish(Common),
    /// Receive and count
    Subscribe(Common),
    /// Send one message at a time and wait for its reply
    Ping(Common),
    /// Reply to every message of a ping
    Pong(Common),
}

impl End {
    /// Returns the arguments.
    #[must_use]
    pub fn common(&self) -> &Common {
        match self {
            End::Publish(common)
            | End::Subscribe(common)
            | End::Ping(common)
            | End::Pong(common) => common,
        }
    }
}

/// Arguments of all benchmarks.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Channel of the messages; given several times, a subscriber has one subscription for each
    #[arg(long, required = true)]
    pub channel: Vec<String>,
    /// Channel of the replies; default: the channel of the messages
    #[arg(long)]
    pub reply_channel: Option<String>,
    /// Number of streams
    #[arg(long, default_value_t = 1)]
    pub streams: u16,
    /// Send one message per stream and duty cycle of the driver
    #[arg(long)]
    pub trickle: bool,
    /// Payload bytes of a message
    #[arg(long, default_value_t = 288)]
    pub length: usize,
    /// Duration of the measurement in milliseconds
    #[arg(long, default_value_t = 1_000)]
    pub measure_ms: u64,
    /// Duration of the warm-up in milliseconds
    #[arg(long, default_value_t = 500)]
    pub warmup_ms: u64,
    /// Cores to which the benchmark's threads are pinned
    #[arg(long, value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Idle strategy of the benchmark's threads: yield or spin
    #[arg(long, default_value_t)]
    pub client_idle: ClientIdle,
    /// Aeron directory of a running driver; without it, a driver is embedded on the benchmark's thread
    #[arg(long)]
    pub aeron_dir: Option<PathBuf>,
}

impl Common {
    /// Returns the configuration of the client side.
    #[must_use]
    pub fn side(&self, launch_driver: LaunchDriver, stop: Arc<AtomicBool>) -> SideSpec {
        SideSpec {
            aeron_dir: self.aeron_dir.clone(),
            threading: INVOKER.to_owned(),
            driver_options: Vec::new(),
            launch_driver,
            cpu: self.cpus.first().copied(),
            idle: self.client_idle,
            stop,
        }
    }

    /// Returns the configuration of a stream benchmark.
    #[must_use]
    pub fn stream(&self) -> StreamConfig {
        StreamConfig {
            channels: self.channel.clone(),
            stream_id: STREAM_ID,
            streams: self.streams,
            trickle: self.trickle,
            length: self.length,
            duration: Duration::from_millis(self.measure_ms),
            warmup: Duration::from_millis(self.warmup_ms),
            aeron_dir: self.aeron_dir.clone(),
            driver_options: Vec::new(),
            threading: INVOKER.to_owned(),
            cpu: self.cpus.first().copied(),
            timeout: TIMEOUT,
        }
    }

    /// Returns the configuration of a ping-pong.
    #[must_use]
    pub fn ping(&self) -> PingConfig {
        PingConfig {
            channel: self.request_channel(),
            reply_channel: self.reply_channel(),
            stream_id: STREAM_ID,
            length: self.length,
            duration: Duration::from_millis(self.measure_ms),
            warmup: Duration::from_millis(self.warmup_ms),
            timeout: TIMEOUT,
        }
    }

    /// Returns the configuration of scheduled round trips.
    #[must_use]
    pub fn echo(&self, rate: u64, launch_driver: LaunchDriver) -> EchoConfig {
        EchoConfig {
            role: Role::Both,
            channel: self.request_channel(),
            stream_id: STREAM_ID,
            reply_channel: self.reply_channel(),
            reply_stream_id: STREAM_ID + 1,
            rate,
            length: self.length,
            duration: Duration::from_millis(self.measure_ms),
            warmup: Duration::from_millis(self.warmup_ms),
            aeron_dir: self.aeron_dir.clone(),
            launch_driver,
            idle: self.client_idle,
            threading: INVOKER.to_owned(),
            cpus: self.cpus.clone(),
            timeout: REPLY_TIMEOUT,
            progress: false,
            ..EchoConfig::default()
        }
    }

    fn request_channel(&self) -> String {
        self.channel.first().cloned().unwrap_or_default()
    }

    fn reply_channel(&self) -> String {
        self.reply_channel
            .clone()
            .unwrap_or_else(|| self.request_channel())
    }
}

const INVOKER: &str = "INVOKER";
