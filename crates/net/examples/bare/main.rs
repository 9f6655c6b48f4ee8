// SPDX-License-Identifier: Apache-2.0
//! Baseline of the transport: two pinned threads exchange datagrams over the loopback, by the calls that the driver
//! uses, and do nothing else.
//!
//!     cargo run --release -p taran-net --example bare [SENDER'S CORE] [RECEIVER'S CORE]
//!
//! Prints medians of seven runs with minimum and maximum: the throughput of GSO batches of datagrams of 1,344 bytes in
//! 10^9 payload bytes per second, and round-trip times of 100,000 datagrams of 320 bytes per second in microseconds.

mod echo;
mod stream;

use std::error::Error;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use taran_net::{Network, SocketNetwork, SocketSpec, Transport};

type Failure = Box<dyn Error + Send + Sync>;

const RUNS: usize = 7;
/// Socket buffer length in bytes.
const BUFFER: usize = 2 * 1024 * 1024;

fn main() -> Result<(), Failure> {
    let mut cores = [0, 1];
    for (core, argument) in cores.iter_mut().zip(std::env::args().skip(1)) {
        *core = argument.parse()?;
    }
    stream::compare(cores)?;
    echo::measure(cores)
}

/// Returns two sockets that are connected to each other.
fn pair() -> Result<[Box<dyn Transport>; 2], Failure> {
    let mut network = SocketNetwork::new();
    let bound = SocketSpec::bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .with_buffers(Some(BUFFER), Some(BUFFER));
    let mut one = network.open(&bound)?;
    let other = network.open(&bound.connected(one.local_address()))?;
    one.connect(other.local_address())?;
    Ok([other, one])
}

/// Minimum, median and maximum of several runs.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let at = |index: usize| runs.get(index).copied().unwrap_or(f64::NAN);
        Self {
            least: at(0),
            median: at(runs.len() / 2),
            most: at(runs.len().saturating_sub(1)),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            least,
            median,
            most,
        } = self;
        write!(f, "{median:.2} ({least:.2} to {most:.2})")
    }
}
