// SPDX-License-Identifier: Apache-2.0
//! Measures the cost of an idle duty cycle of an invoked driver (`INVOKER`): first without streams, then with a
//! connected publication and subscription over the loopback interface.
//!
//!     cargo run --release -p taran-bench --example duty_cycle [CORE]
//!
//! A run is 500 batches of 1,000 cycles. Each batch is timed as a whole; between batches the client is invoked,
//! untimed. The output is the median batch of the median run of seven, with the minimum and the maximum of the runs.
//! Heartbeats and status messages occur in few batches, so the median excludes them and most interference by the
//! machine.

use std::error::Error;
use std::time::{Duration, Instant};

use taran::{Client, Pending};
use taran_core::affinity;
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::ThreadingMode;

const RUNS: usize = 7;
const BATCHES: usize = 500;
const CYCLES: u32 = 1_000;
const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:24325";
const STREAM: i32 = 1001;
/// Timeout for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(core) = std::env::args().nth(1) {
        affinity::pin_current_thread(core.parse()?)?;
    }
    let mut agents = Agents::start()?;
    report("no streams", &mut agents);

    let subscription = agents.client.async_add_subscription(CHANNEL, STREAM)?;
    let subscription = agents.wait_for(subscription)?;
    let publication = agents
        .client
        .async_add_exclusive_publication(CHANNEL, STREAM)?;
    let publication = agents.wait_for(publication)?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while !(publication.is_connected() && subscription.is_connected()) {
        if Instant::now() > deadline {
            return Err("publication and subscription do not connect".into());
        }
        agents.duty_cycle();
    }
    report("a publication and its subscription", &mut agents);
    Ok(())
}

/// The driver and the client, both invoked by the calling thread.
struct Agents {
    client: Client,
    driver: MediaDriver,
}

impl Agents {
    fn start() -> Result<Self, Box<dyn Error>> {
        let driver = MediaDriver::launch_embedded(
            DriverContext::new().threading_mode(ThreadingMode::Invoker),
        )?;
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .invoker(true)
            .connect()?;
        Ok(Self { client, driver })
    }

    fn duty_cycle(&mut self) {
        self.driver.invoke();
        self.client.invoke();
    }

    /// Waits for a registration. The client reports a timeout if the driver does not respond.
    fn wait_for<T>(&mut self, mut pending: Pending<T>) -> Result<T, taran::CommandError> {
        loop {
            if let Some(result) = pending.poll() {
                return result;
            }
            self.duty_cycle();
        }
    }

    /// Returns the nanoseconds per cycle in the median batch.
    fn run(&mut self) -> f64 {
        let batches = (0..BATCHES).map(|_| {
            self.client.invoke();
            let began = Instant::now();
            for _ in 0..CYCLES {
                self.driver.invoke();
            }
            began.elapsed().as_secs_f64() * 1e9 / f64::from(CYCLES)
        });
        let mut batches: Vec<f64> = batches.collect();
        batches.sort_by(f64::total_cmp);
        batches[BATCHES / 2]
    }
}

fn report(description: &str, agents: &mut Agents) {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| agents.run()).collect();
    runs.sort_by(f64::total_cmp);
    println!(
        "{description}: {:.0} ns per cycle ({:.0} to {:.0})",
        runs[RUNS / 2],
        runs[0],
        runs[RUNS - 1]
    );
}
