// SPDX-License-Identifier: Apache-2.0
//! Concurrency of all threads of a driver and its clients in one process, over IPC and UDP, while resources are added
//! and removed. Also run by `cargo xtask tsan`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran::{Client, Publication, Subscription};
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::ThreadingMode;

use crate::{await_true, connect};

const PUBLISHERS: u32 = 2;
const MESSAGES: u32 = 300;

/// Returns a channel at a loopback address that is specific to this process.
fn udp(port: u16) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("aeron:udp?endpoint=127.{high}.{low}.9:{port}|term-length=64k")
}

/// Sets the flag when it is dropped, also on unwinding, so that the other threads end.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Builds a message with the publisher's number and the message number; some are longer than a datagram.
fn message(publisher: u32, number: u32) -> Vec<u8> {
    let length = 8 + (number * 97 % 4_000) as usize;
    let head = [publisher, number].map(u32::to_le_bytes).concat();
    head.into_iter().cycle().take(length).collect()
}

fn publish(publication: &Publication, publisher: u32) {
    for number in 0..MESSAGES {
        let message = message(publisher, number);
        await_true("room", || match publication.offer(&message) {
            Ok(_) => true,
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                false
            }
        });
    }
}

fn read(mut subscription: Subscription) {
    let mut assembler = taran::FragmentAssembler::new();
    let mut next = [0; PUBLISHERS as usize];
    await_true("every message", || {
        let polled = subscription.poll(
            assembler.wrap(|received, _| {
                let publisher = u32::from_le_bytes(received[..4].try_into().unwrap());
                let number = &mut next[publisher as usize];
                assert_eq!(received, message(publisher, *number));
                *number += 1;
            }),
            10,
        );
        polled.unwrap();
        next == [MESSAGES; PUBLISHERS as usize]
    });
}

/// Adds and removes resources until the flag is set.
fn add_and_remove(client: &Client, port: u16, stopped: &AtomicBool) {
    while !stopped.load(Ordering::Relaxed) {
        let spy = client.add_subscription(format!("aeron-spy:{}", udp(port)), 12);
        let publication = client.add_exclusive_publication(udp(port), 12).unwrap();
        let counter = client.add_counter(2_000, b"", "passing").unwrap();
        drop((spy.unwrap(), publication, counter));
    }
}

fn run_streams(mode: ThreadingMode, port: u16) {
    let context = DriverContext::new()
        .threading_mode(mode)
        .ipc_term_buffer_length(64 * 1024);
    let driver = MediaDriver::launch_embedded(context).unwrap();
    let clients = [(); 2].map(|()| connect(&driver, |builder| builder));
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = StopOnDrop(&stopped);
        let churn = scope.spawn(|| add_and_remove(&clients[1], port + 1, &stopped));
        let mut workers = Vec::new();
        for (channel, stream_id) in [("aeron:ipc".to_owned(), 10), (udp(port), 11)] {
            let subscription = clients[1].add_subscription(&channel, stream_id).unwrap();
            let publication = clients[0].add_publication(&channel, stream_id).unwrap();
            for publisher in 0..PUBLISHERS {
                let publication = publication.clone();
                workers.push(scope.spawn(move || publish(&publication, publisher)));
            }
            workers.push(scope.spawn(move || read(subscription)));
        }
        let outcomes: Vec<_> = workers
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        drop(stop);
        churn.join().unwrap();
        outcomes.into_iter().for_each(Result::unwrap);
    });
}

#[test]
fn dedicated_threads_carry_streams_during_adds_and_removals() {
    run_streams(ThreadingMode::Dedicated, 40_123);
}

#[test]
fn shared_thread_carries_streams_during_adds_and_removals() {
    run_streams(ThreadingMode::Shared, 40_223);
}
