// SPDX-License-Identifier: Apache-2.0
//! Runs messages through one invoked driver over the loopback interface, plain or sealed, for a profiler that counts
//! instructions: the difference of both is what transport security costs outside of the kernel.
//!
//!     cargo build --release -p taran-bench --features secure --example sealed_path
//!     valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*exchange*' \
//!         target/release/examples/sealed_path secured 288 1 10000
//!
//! Arguments: `plain` or `secured`, the length of the messages, their number in a burst, and the number of bursts. A burst is
//! offered, then the driver is invoked until all of it was received; an empty burst is a duty cycle that finds no work. The
//! driver trusts its own key.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use taran::{Client, ExclusivePublication, Pending, Subscription};
use taran_driver::{DriverContext, DriverKeys, MediaDriver};
use taran_protocol::option::ThreadingMode;
use taran_secure::Secret;
use taran_secure::identity::{Identity, public_key_text};
use taran_secure::keeper::Entropy;
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::TrustStore;

const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:24326|term-length=1m";
const STREAM: i32 = 1001;
/// Bursts that are not counted, so that buffers and prediction are warm.
const WARM_UP: usize = 200;
/// Timeout for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Numbers in place of random bytes: nothing here is secret.
struct Numbers(u64);

impl Entropy for Numbers {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, length, burst, bursts] = arguments.as_slice() else {
        return Err("arguments: plain|secured LENGTH MESSAGES BURSTS".into());
    };
    let is_secured = match kind.as_str() {
        "plain" => false,
        "secured" => true,
        other => return Err(format!("`{other}` is neither `plain` nor `secured`").into()),
    };
    let (length, burst, bursts) = (length.parse()?, burst.parse()?, bursts.parse::<usize>()?);
    let mut path = Path::connect(is_secured)?;
    let message = vec![7; length];
    for _ in 0..WARM_UP {
        path.warm_up(&message, burst)?;
    }
    let began = Instant::now();
    let mut cycles = 0;
    for _ in 0..bursts {
        cycles += path.exchange(black_box(&message), burst)?;
    }
    let elapsed = began.elapsed().as_secs_f64() * 1e9;
    println!(
        "{kind}: {bursts} bursts of {burst} messages of {length} bytes, {cycles} duty cycles, {:.0} ns per burst",
        elapsed / bursts as f64
    );
    Ok(())
}

/// A driver, a client, and a stream from the one to the other over UDP; all invoked by the calling thread.
struct Path {
    client: Client,
    driver: MediaDriver,
    publication: ExclusivePublication,
    subscription: Subscription,
}

impl Path {
    fn connect(is_secured: bool) -> Result<Self, Box<dyn Error>> {
        let mut context = DriverContext::new().threading_mode(ThreadingMode::Invoker);
        if is_secured {
            let identity = Identity::from_private::<DefaultProvider>(Secret::new([7; 32]));
            let key = public_key_text::<DefaultProvider>(identity.public());
            let line = format!("{key} self publish=* subscribe=*\n");
            let trust = TrustStore::parse::<DefaultProvider>(&line)?;
            context = context
                .option("taran.secure.mode", "all")
                .keys(DriverKeys::new(identity, trust, Box::new(Numbers(1))));
        }
        let driver = MediaDriver::launch_embedded(context)?;
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .invoker(true)
            .connect()?;
        let mut agents = (driver, client);
        let subscription = agents.1.async_add_subscription(CHANNEL, STREAM)?;
        let subscription = wait_for(&mut agents, subscription)?;
        let publication = agents.1.async_add_exclusive_publication(CHANNEL, STREAM)?;
        let publication = wait_for(&mut agents, publication)?;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        while !(publication.is_connected() && subscription.is_connected()) {
            if Instant::now() > deadline {
                return Err("publication and subscription do not connect".into());
            }
            agents.0.invoke();
            agents.1.invoke();
        }
        let (driver, client) = agents;
        Ok(Self {
            client,
            driver,
            publication,
            subscription,
        })
    }

    #[inline(never)]
    fn warm_up(&mut self, message: &[u8], burst: usize) -> Result<(), Box<dyn Error>> {
        self.pass(message, burst)?;
        Ok(())
    }

    /// Sends and receives a burst, and returns the number of duty cycles. A profiler counts what happens in here.
    #[inline(never)]
    fn exchange(&mut self, message: &[u8], burst: usize) -> Result<usize, Box<dyn Error>> {
        self.pass(message, burst)
    }

    #[inline(always)]
    fn pass(&mut self, message: &[u8], burst: usize) -> Result<usize, Box<dyn Error>> {
        let (mut sent, mut received, mut cycles) = (0, 0, 0);
        loop {
            while sent < burst {
                match self.publication.offer(message) {
                    Ok(_) => sent += 1,
                    Err(error) if error.is_retryable() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            self.driver.invoke();
            received += self.subscription.poll(
                |fragment, _| {
                    black_box(fragment.len());
                },
                burst,
            )?;
            cycles += 1;
            if received >= burst {
                break;
            }
        }
        self.client.invoke();
        Ok(cycles)
    }
}

/// Waits for a registration. The client reports a timeout if the driver does not respond.
fn wait_for<T>(
    (driver, client): &mut (MediaDriver, Client),
    mut pending: Pending<T>,
) -> Result<T, taran::CommandError> {
    loop {
        if let Some(result) = pending.poll() {
            return result;
        }
        driver.invoke();
        client.invoke();
    }
}
