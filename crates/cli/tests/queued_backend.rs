// SPDX-License-Identifier: Apache-2.0
//! Whole drivers on a backend with queues and frames of its own: each agent uses only the queue that it owns, in every
//! threading mode. The backend fails if two threads use one queue.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/network.rs"]
mod network;
#[allow(dead_code, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/queue.rs"]
mod queue;
#[allow(dead_code, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/transport.rs"]
mod transport;

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use network::{RingNetwork, Wire};
use taran::{Client, Publication, Subscription};
use taran_driver::{DriverContext, MediaDriver};
use taran_net::{Backends, Network, SocketNetwork};
use taran_protocol::option::ThreadingMode;

const MESSAGES: u64 = 5_000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A driver on a host of the wire, and a client.
struct Host {
    client: Client,
    driver: MediaDriver,
}

impl Host {
    fn start(network: impl Network + 'static, mode: ThreadingMode) -> Self {
        let context = DriverContext::new().network(network).threading_mode(mode);
        let driver = MediaDriver::launch_embedded(context).unwrap();
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .connect()
            .unwrap();
        Self { client, driver }
    }

    fn stop(self) {
        let Self { client, driver } = self;
        drop(client);
        drop(driver);
    }
}

/// Sends numbered messages and receives them in order.
fn exchange(publication: &Publication, subscription: &mut Subscription) {
    let deadline = Instant::now() + TIMEOUT;
    let (mut sent, mut received) = (0_u64, 0_u64);
    while received < MESSAGES {
        assert!(Instant::now() < deadline, "{received} of {sent} arrived");
        while sent < MESSAGES && publication.offer(&sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        let take = |message: &[u8], _: &taran::Header<'_>| {
            assert_eq!(message, received.to_le_bytes());
            received += 1;
        };
        if subscription.poll(take, 64).unwrap() == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn agents_of_every_threading_mode_use_queues_of_their_own() {
    for mode in [
        ThreadingMode::Dedicated,
        ThreadingMode::SharedNetwork,
        ThreadingMode::Shared,
    ] {
        let wire = Wire::default();
        let [near, far] = [1, 2].map(|last| {
            let address = Ipv4Addr::new(10, 0, 0, last);
            let network = RingNetwork::new(&wire, address.into());
            // Each driver has sockets, too: its agents wait for both.
            Host::start(Backends::new(network).with(SocketNetwork::new()), mode)
        });
        let channel = "aeron:udp?endpoint=10.0.0.2:40123|taran.net=ring";
        let mut subscription = far.client.add_subscription(channel, 1).unwrap();
        let publication = near.client.add_publication(channel, 1).unwrap();
        exchange(&publication, &mut subscription);
        drop((publication, subscription));
        near.stop();
        far.stop();
        assert!(wire.is_clean(), "no frame is lost: {mode:?}");
    }
}
