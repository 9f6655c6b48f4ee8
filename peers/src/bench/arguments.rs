//! The command line of the benchmarks, the same for everybody's driver and client.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand};
use taran_bench::echo::{EchoConfig, Role};
use taran_bench::ping::PingConfig;
use taran_bench::side::{LaunchDriver, SideSpec};
use taran_bench::stream::StreamConfig;

/// The first stream of all benchmarks; the way back of round trips has the next number.
pub const STREAM_ID: i32 = 1_001;
/// How long to wait for the other side, and for a driver that may have ten thousand streams to make.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long round trips by schedule may take at the end.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// One end of a benchmark.
#[derive(Subcommand, Debug, Clone)]
pub enum End {
    /// Send as fast as one is let
    Publish(Common),
    /// Receive and count
    Subscribe(Common),
    /// One message there and back, again and again
    Ping(Common),
    /// The other end of it
    Pong(Common),
}

impl End {
    /// What it is told.
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

/// What every benchmark is told.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// The road, or the one there; given several times, a subscriber is several receivers
    #[arg(long, required = true)]
    pub channel: Vec<String>,
    /// The road back, where it is another one
    #[arg(long)]
    pub reply_channel: Option<String>,
    /// How many streams there are
    #[arg(long, default_value_t = 1)]
    pub streams: u16,
    /// Each stream has one message between two turns of the driver
    #[arg(long)]
    pub trickle: bool,
    /// Payload bytes of a message
    #[arg(long, default_value_t = 288)]
    pub length: usize,
    /// Milliseconds that are measured
    #[arg(long, default_value_t = 1_000)]
    pub measure_ms: u64,
    /// Milliseconds before them
    #[arg(long, default_value_t = 500)]
    pub warmup_ms: u64,
    /// Cores of the benchmark's threads
    #[arg(long, value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// The directory of a driver that runs; without it, one is embedded and lives on the benchmark's thread
    #[arg(long)]
    pub aeron_dir: Option<PathBuf>,
}

impl Common {
    /// The client's side.
    #[must_use]
    pub fn side(&self, launch_driver: LaunchDriver, stop: Arc<AtomicBool>) -> SideSpec {
        SideSpec {
            aeron_dir: self.aeron_dir.clone(),
            threading: INVOKER.to_owned(),
            driver_options: Vec::new(),
            launch_driver,
            cpu: self.cpus.first().copied(),
            stop,
        }
    }

    /// For streams.
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

    /// For a ping-pong.
    #[must_use]
    pub fn ping(&self) -> PingConfig {
        PingConfig {
            channel: self.there(),
            reply_channel: self.back(),
            stream_id: STREAM_ID,
            length: self.length,
            duration: Duration::from_millis(self.measure_ms),
            warmup: Duration::from_millis(self.warmup_ms),
            timeout: TIMEOUT,
        }
    }

    /// For round trips by schedule.
    #[must_use]
    pub fn echo(&self, rate: u64, launch_driver: LaunchDriver) -> EchoConfig {
        EchoConfig {
            role: Role::Both,
            channel: self.there(),
            stream_id: STREAM_ID,
            reply_channel: self.back(),
            reply_stream_id: STREAM_ID + 1,
            rate,
            length: self.length,
            duration: Duration::from_millis(self.measure_ms),
            warmup: Duration::from_millis(self.warmup_ms),
            aeron_dir: self.aeron_dir.clone(),
            launch_driver,
            threading: INVOKER.to_owned(),
            cpus: self.cpus.clone(),
            timeout: REPLY_TIMEOUT,
            progress: false,
            ..EchoConfig::default()
        }
    }

    fn there(&self) -> String {
        self.channel.first().cloned().unwrap_or_default()
    }

    fn back(&self) -> String {
        self.reply_channel.clone().unwrap_or_else(|| self.there())
    }
}

const INVOKER: &str = "INVOKER";
