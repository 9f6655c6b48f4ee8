// SPDX-License-Identifier: Apache-2.0
//! Real threads: concurrent offers on one publication, the conductor on its own thread, concurrent closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taran::{Client, ClientBuilder, FragmentAssembler, ImageHandlers, MemoryStorage, SystemClock};

use crate::fake_driver::{DIRECTORY, FakeDriver};

/// A fake driver that runs on its own thread.
struct ThreadedDriver {
    storage: MemoryStorage,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ThreadedDriver {
    fn start() -> Self {
        let mut driver = FakeDriver::start(SystemClock::new());
        let (storage, stop) = (driver.storage.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if driver.do_work() == 0 {
                    thread::yield_now();
                }
                driver.update_heartbeat();
            }
        });
        Self {
            storage,
            stop,
            thread: Some(thread),
        }
    }

    fn builder(&self) -> ClientBuilder {
        ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(DIRECTORY)
            .storage(Arc::new(self.storage.clone()))
    }

    fn connect(&self) -> Client {
        self.builder().connect().unwrap()
    }
}

impl Drop for ThreadedDriver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Builds message `number` of thread `sender`: the two numbers, and bytes derived from them.
fn message(sender: u32, number: u32, buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend(sender.to_le_bytes());
    buffer.extend(number.to_le_bytes());
    let length = number.wrapping_mul(2_654_435_761).wrapping_add(sender) % 3000;
    buffer.extend((0..length).map(|index| (index ^ number ^ sender) as u8));
}

#[test]
fn concurrent_offers_arrive_whole_and_in_order_per_thread() {
    const SENDERS: u32 = 4;
    const MESSAGES: u32 = 3_000;
    let driver = ThreadedDriver::start();
    let client = driver.connect();
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    let publication = client.add_publication("aeron:ipc", 10).unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let publication = publication.clone();
            thread::spawn(move || {
                let mut buffer = Vec::new();
                for number in 0..MESSAGES {
                    message(sender, number, &mut buffer);
                    loop {
                        let outcome = match number % 3 {
                            0 if buffer.len() <= publication.max_payload_length() => {
                                publication.try_claim(buffer.len()).map(|mut claim| {
                                    claim.copy_from_slice(&buffer);
                                    claim.commit()
                                })
                            }
                            1 => publication.offer_parts(&[&buffer[..3], &buffer[3..]]),
                            _ => publication.offer(&buffer),
                        };
                        match outcome {
                            Ok(_) => break,
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = [0u32; SENDERS as usize];
    let mut assembler = FragmentAssembler::new();
    let mut expected = Vec::new();
    while next.iter().sum::<u32>() < SENDERS * MESSAGES {
        let check = assembler.wrap(|received, _| {
            let sender = u32::from_le_bytes(received[..4].try_into().unwrap());
            message(sender, next[sender as usize], &mut expected);
            assert_eq!(received, expected);
            next[sender as usize] += 1;
        });
        if subscription.poll(check, 50).unwrap() == 0 {
            thread::yield_now();
        }
    }
    for sender in senders {
        sender.join().unwrap();
    }
}

#[test]
fn handles_are_send_or_sync() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    shared::<Client>();
    shared::<taran::Publication>();
    shared::<taran::Counter>();
    shared::<taran::ImageView>();
    sent::<taran::ExclusivePublication>();
    sent::<taran::Subscription>();
    sent::<taran::Image>();
    sent::<taran::Pending<taran::Subscription>>();
    sent::<ClientBuilder>();
}

#[test]
fn blocking_calls_are_woken_by_response() {
    let driver = ThreadedDriver::start();
    // If a response did not wake the thread from this sleep, the first call would time out.
    let builder = driver.builder().idle_sleep(Duration::from_secs(60));
    let client = builder.connect().unwrap();
    for stream_id in 0..20 {
        client.add_publication("aeron:ipc", stream_id).unwrap();
    }
    assert_eq!(client.next_available_session_id(1), Ok(4242));
}

#[test]
fn no_callback_runs_after_close_returned() {
    let driver = ThreadedDriver::start();
    let mut called = 0;
    for round in 0..20 {
        let client = driver.connect();
        let (calls, closed, late) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (count, is_closed, is_late) =
            (Arc::clone(&calls), Arc::clone(&closed), Arc::clone(&late));
        // A panic in a callback is caught, so a failure is reported through `late`.
        let handlers = ImageHandlers::new().on_available(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            for _ in 0..2 {
                is_late.fetch_or(is_closed.load(Ordering::SeqCst), Ordering::SeqCst);
                thread::sleep(Duration::from_micros(200));
            }
        });
        let subscription = client
            .add_subscription_with("aeron:ipc", 10, handlers)
            .unwrap();
        let publisher = driver.connect();
        let publications: Vec<_> = (0..3)
            .map(|_| {
                publisher
                    .async_add_exclusive_publication("aeron:ipc", 10)
                    .unwrap()
            })
            .collect();
        // Closes before the first call, or between two calls.
        while calls.load(Ordering::SeqCst) < round % 3 {
            thread::yield_now();
        }
        if round % 2 == 0 {
            subscription.close();
        } else {
            client.close();
        }
        closed.store(true, Ordering::SeqCst);
        for publication in publications {
            publication.wait().unwrap();
        }
        called += calls.load(Ordering::SeqCst);
        assert!(!late.load(Ordering::SeqCst), "called back after close");
    }
    assert!(called > 0);
}

#[test]
fn concurrent_closes_wait_for_close_handler() {
    let driver = ThreadedDriver::start();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let client = driver
        .builder()
        .on_close(move |_| {
            thread::sleep(Duration::from_millis(20));
            count.fetch_add(1, Ordering::SeqCst);
        })
        .connect()
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                client.close();
                assert_eq!(
                    calls.load(Ordering::SeqCst),
                    1,
                    "each closer waits for the end"
                );
            });
        }
    });
}

#[test]
fn callback_may_drop_last_client() {
    let driver = ThreadedDriver::start();
    let (ended, wait) = std::sync::mpsc::channel();
    let slot: Arc<std::sync::Mutex<Option<Client>>> = Arc::default();
    let own = Arc::clone(&slot);
    let client = driver
        .builder()
        .on_available_image(move |_| drop(own.lock().unwrap().take()))
        .on_close(move |end| ended.send(end).unwrap())
        .connect()
        .unwrap();
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    let pending = client.async_add_publication("aeron:ipc", 10).unwrap();
    *slot.lock().unwrap() = Some(client);
    assert_eq!(
        wait.recv_timeout(Duration::from_secs(10)),
        Ok(taran::CloseReason::Closed)
    );
    assert!(subscription.poll(|_, _| (), 1).is_err());
    drop(pending);
}
