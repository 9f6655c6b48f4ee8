//! What a turn costs that finds nothing to do: that of a driver whose user runs it (`INVOKER`), without any stream, and
//! with a publication and its subscription over the loopback, connected.
//!
//!     cargo run --release -p taran-bench --example turn [CORE]
//!
//! A run is 500 batches of 1,000 turns, timed batch by batch; between batches the client has its turn, untimed. Printed is
//! the median batch of the median run of seven, with the least and the most of the runs: heartbeats and status messages are
//! in few batches, and what else the machine does is not in the median.

use std::error::Error;
use std::time::{Duration, Instant};

use taran::{Client, Context, Pending};
use taran_core::affinity;
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::ThreadingMode;

const RUNS: usize = 7;
const BATCHES: usize = 500;
const TURNS: u32 = 1_000;
const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:24325";
const STREAM: i32 = 1001;
/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(core) = std::env::args().nth(1) {
        affinity::pin_current_thread(core.parse()?)?;
    }
    let mut thread = Thread::start()?;
    report("no streams", &mut thread);

    let subscription = thread.client.async_add_subscription(CHANNEL, STREAM)?;
    let subscription = thread.wait_for(subscription)?;
    let publication = thread
        .client
        .async_add_exclusive_publication(CHANNEL, STREAM)?;
    let publication = thread.wait_for(publication)?;
    let deadline = Instant::now() + PATIENCE;
    while !(publication.is_connected() && subscription.is_connected()) {
        if Instant::now() > deadline {
            return Err("the two ends do not connect".into());
        }
        thread.turn();
    }
    report("a publication and its subscription", &mut thread);
    Ok(())
}

/// All that runs on the thread.
struct Thread {
    client: Client,
    driver: MediaDriver,
}

impl Thread {
    fn start() -> Result<Self, Box<dyn Error>> {
        let driver = MediaDriver::launch_embedded(
            DriverContext::new().threading_mode(ThreadingMode::Invoker),
        )?;
        let client = Context::new()
            .aeron_dir(driver.aeron_dir())
            .invoker(true)
            .connect()?;
        Ok(Self { client, driver })
    }

    fn turn(&mut self) {
        self.driver.invoke();
        self.client.invoke();
    }

    /// The client gives up by itself when the driver does not answer.
    fn wait_for<T>(&mut self, mut pending: Pending<T>) -> Result<T, taran::AddError> {
        loop {
            if let Some(result) = pending.poll() {
                return result;
            }
            self.turn();
        }
    }

    /// Nanoseconds of a turn in the median batch.
    fn run(&mut self) -> f64 {
        let batches = (0..BATCHES).map(|_| {
            self.client.invoke();
            let began = Instant::now();
            for _ in 0..TURNS {
                self.driver.invoke();
            }
            began.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS)
        });
        let mut batches: Vec<f64> = batches.collect();
        batches.sort_by(f64::total_cmp);
        batches[BATCHES / 2]
    }
}

fn report(what: &str, thread: &mut Thread) {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| thread.run()).collect();
    runs.sort_by(f64::total_cmp);
    println!(
        "{what}: {:.0} ns a turn ({:.0} to {:.0})",
        runs[RUNS / 2],
        runs[0],
        runs[RUNS - 1]
    );
}
