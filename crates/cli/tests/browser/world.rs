// SPDX-License-Identifier: Apache-2.0
//! Clients with streams that the page shows: a trading desk, and many streams.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taran::{Client, Publication, Subscription};

use crate::own_address::own_address;

/// Port of the streams over UDP; below the ephemeral port range.
const PORT: u16 = 9_471;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Streams with a thread that sends and receives. It ends when this is dropped.
pub(crate) struct World {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn client(directory: &Path, name: &str) -> Client {
    Client::builder()
        .aeron_dir(directory)
        .client_name(name)
        .driver_timeout(TIMEOUT)
        .connect()
        .expect("the driver takes clients")
}

/// A publication with the messages that each turn of the thread sends.
struct Flow {
    publication: Publication,
    messages: usize,
    bytes: usize,
}

impl World {
    /// Prices over UDP and IPC that are read, orders whose reader is stuck, and a stream without a reader.
    pub(crate) fn desk(directory: &Path) -> World {
        let prices = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        );
        let ipc = "aeron:ipc?term-length=64k";
        let feed = client(directory, "market-data[4711]");
        let strategy = client(directory, "strategy[4712]");
        // Markup in a name is text on the page.
        let risk = client(directory, "risk<img src=x onerror=alert(1)>");
        let mut read = Vec::new();
        let mut flows = Vec::new();
        let mut add = |from: &Client, channel: &str, stream_id, messages, bytes| {
            let publication = from
                .add_publication(channel, stream_id)
                .expect("a publication");
            flows.push(Flow {
                publication,
                messages,
                bytes,
            });
        };
        for (stream_id, messages) in [(1001, 40), (1002, 4)] {
            read.push(
                strategy
                    .add_subscription(&prices, stream_id)
                    .expect("a subscription"),
            );
            read.push(
                risk.add_subscription(&prices, stream_id)
                    .expect("a subscription"),
            );
            add(&feed, &prices, stream_id, messages, 200);
        }
        let stuck = risk.add_subscription(ipc, 2001).expect("a subscription");
        add(&strategy, ipc, 2001, 20, 300);
        read.push(feed.add_subscription(ipc, 2002).expect("a subscription"));
        add(&strategy, ipc, 2002, 1, 64);
        add(&feed, ipc, 3001, 0, 64);
        World::run(vec![feed, strategy, risk], flows, read, vec![stuck])
    }

    /// Streams over IPC, of which each second one moves.
    pub(crate) fn many(directory: &Path, count: i32) -> World {
        let ipc = "aeron:ipc?term-length=64k";
        let clients: Vec<Client> = (0..8)
            .map(|number| client(directory, &format!("service-{number}[{}]", 100 + number)))
            .collect();
        let mut read = Vec::new();
        let mut flows = Vec::new();
        for number in 0..count {
            let of = |offset: i32| &clients[((number + offset) % 8) as usize];
            read.push(of(3).add_subscription(ipc, number).expect("a subscription"));
            flows.push(Flow {
                publication: of(0).add_publication(ipc, number).expect("a publication"),
                messages: usize::from(number % 2 == 0),
                bytes: 32 + number as usize,
            });
        }
        World::run(clients, flows, read, Vec::new())
    }

    fn run(
        clients: Vec<Client>,
        flows: Vec<Flow>,
        mut read: Vec<Subscription>,
        unread: Vec<Subscription>,
    ) -> World {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let message = [7; 1_024];
            while !stopped.load(Ordering::Relaxed) {
                for flow in &flows {
                    for _ in 0..flow.messages {
                        // Back-pressure is part of the world.
                        let _ = flow.publication.offer(&message[..flow.bytes]);
                    }
                }
                for subscription in &mut read {
                    // The driver may have been killed.
                    let _ = subscription.poll(|_, _| (), 1_000);
                }
                thread::sleep(Duration::from_millis(2));
            }
            drop((flows, read, unread, clients));
        });
        World {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
