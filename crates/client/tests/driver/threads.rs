//! All threads of a driver and of its clients in one process: what they share, over each kind of road, while things come
//! and go. That is also what `cargo xtask tsan` looks at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran::{Client, Publication, Subscription};
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::ThreadingMode;

use crate::{await_true, connect};

const PUBLISHERS: u32 = 2;
const MESSAGES: u32 = 300;

/// A channel at an address of this process's own: all that begin with 127 are this machine.
fn udp(port: u16) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("aeron:udp?endpoint=127.{high}.{low}.9:{port}|term-length=64k")
}

/// Says that it is over, also when something goes wrong: nobody waits for those who come and go.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A message that says who wrote it, and which one it is; some are longer than a datagram.
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

/// Makes things and gives them back until told to stop.
fn come_and_go(client: &Client, port: u16, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let spy = client.add_subscription(format!("aeron-spy:{}", udp(port)), 12);
        let publication = client.add_exclusive_publication(udp(port), 12).unwrap();
        let counter = client.add_counter(2_000, b"", "passing").unwrap();
        drop((spy.unwrap(), publication, counter));
    }
}

fn carry(mode: ThreadingMode, port: u16) {
    let context = DriverContext::new()
        .threading_mode(mode)
        .ipc_term_buffer_length(64 * 1024);
    let driver = MediaDriver::launch_embedded(context).unwrap();
    let clients = [(); 2].map(|()| connect(&driver, |context| context));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Ends(&is_over);
        let passing = scope.spawn(|| come_and_go(&clients[1], port + 1, &is_over));
        let mut at_work = Vec::new();
        for (channel, stream_id) in [("aeron:ipc".to_owned(), 10), (udp(port), 11)] {
            let subscription = clients[1].add_subscription(&channel, stream_id).unwrap();
            let publication = clients[0].add_publication(&channel, stream_id).unwrap();
            for publisher in 0..PUBLISHERS {
                let publication = publication.clone();
                at_work.push(scope.spawn(move || publish(&publication, publisher)));
            }
            at_work.push(scope.spawn(move || read(subscription)));
        }
        let outcomes: Vec<_> = at_work
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        drop(ends);
        passing.join().unwrap();
        outcomes.into_iter().for_each(Result::unwrap);
    });
}

#[test]
fn streams_are_carried_while_others_come_and_go() {
    carry(ThreadingMode::Dedicated, 40_123);
}

#[test]
fn one_thread_for_all_agents_does_the_same() {
    carry(ThreadingMode::Shared, 40_223);
}
