// SPDX-License-Identifier: Apache-2.0
//! Untethered subscriptions of the Taran client on the official driver, on a Taran driver and between them
//! (docs/spec/wire.md §2.10).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{ImageHandlers, Subscription};

use crate::exchange::{connect, udp};
use crate::require_java;
use crate::stream_ends;

const STREAM: i32 = 1_004;
const LENGTH: usize = 1_000;
/// More messages than a log holds.
const MANY: u64 = 200;
const TIMEOUT: Duration = Duration::from_secs(240);

/// A subscription and the message numbers it has received, consecutive within an image.
struct Reader {
    subscription: Subscription,
    next: u64,
    read: u64,
    available_count: Arc<AtomicUsize>,
    unavailable_count: Arc<AtomicUsize>,
    images: usize,
}

impl Reader {
    fn new(client: &taran::Client, channel: &str) -> Reader {
        let (available_count, unavailable_count) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (coming, going) = (Arc::clone(&available_count), Arc::clone(&unavailable_count));
        let handlers = ImageHandlers::new()
            .on_available(move |_| {
                coming.fetch_add(1, Ordering::SeqCst);
            })
            .on_unavailable(move |_| {
                going.fetch_add(1, Ordering::SeqCst);
            });
        let subscription = client.add_subscription_with(channel, STREAM, handlers);
        Reader {
            subscription: subscription.unwrap(),
            next: 0,
            read: 0,
            available_count,
            unavailable_count,
            images: 1,
        }
    }

    fn available_count(&self) -> usize {
        self.available_count.load(Ordering::SeqCst)
    }

    fn unavailable_count(&self) -> usize {
        self.unavailable_count.load(Ordering::SeqCst)
    }

    fn poll(&mut self) {
        let polled = self.subscription.poll(
            |message, _| {
                let number = u64::from_le_bytes(message[..8].try_into().unwrap());
                if number != self.next {
                    // Numbers are skipped only after a detachment, and only forward.
                    self.images += 1;
                    assert!(number > self.next, "{number} after {}", self.next);
                }
                assert!(message.iter().skip(8).all(|byte| *byte == number as u8));
                self.next = number + 1;
                self.read += 1;
            },
            10,
        );
        polled.expect("the driver lives");
    }
}

/// A stream with one subscriber that keeps up and an untethered one that does not.
fn run(from: &Path, to: &Path, channel: &str) {
    eprintln!("{} -> {}: {channel}", from.display(), to.display());
    let (publishing, subscribing) = (connect(from), connect(to));
    let mut tethered = Reader::new(&subscribing, channel);
    let mut loose = Reader::new(&subscribing, &format!("{channel}|tether=false"));
    let publication = publishing.add_publication(channel, STREAM).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let mut sent = 0;
    let mut until = |tethered: &mut Reader, what: &str, done: &mut dyn FnMut(u64) -> bool| {
        while !done(sent) {
            let mut message = [sent as u8; LENGTH];
            message[..8].copy_from_slice(&sent.to_le_bytes());
            match publication.offer(&message) {
                Ok(_) => sent += 1,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    thread::yield_now();
                }
            }
            tethered.poll();
            assert!(Instant::now() < deadline, "timed out waiting for {what}");
        }
        sent
    };
    until(&mut tethered, "both to begin", &mut |_| {
        loose.poll();
        loose.read >= 10
    });
    // The untethered subscriber stops, blocks the stream for a while, and is detached.
    let behind = until(&mut tethered, "word of the end", &mut |_| {
        loose.unavailable_count() == 1
    });
    let (read, next) = (loose.read, loose.next);
    assert!(read >= 10 && loose.images == 1);
    // The stream continues, and the subscriber rejoins at the current position.
    let all = until(&mut tethered, "its return", &mut |sent| {
        loose.poll();
        loose.available_count() >= 2 && loose.read > read + 10 && sent >= behind + MANY
    });
    assert!(
        loose.next > next + 10 && loose.images >= 2,
        "nothing was missed"
    );
    while tethered.read < all {
        tethered.poll();
        assert!(Instant::now() < deadline, "{} of {all}", tethered.read);
    }
    assert_eq!(
        (
            tethered.images,
            tethered.available_count(),
            tethered.unavailable_count()
        ),
        (1, 1, 0)
    );
}

#[test]
fn untethered_subscriber_falls_behind_and_rejoins() {
    require_java!();
    let (ours, theirs) = (stream_ends::ours(), stream_ends::theirs());
    let (ours, theirs) = (ours.dir(), theirs.dir());
    for (from, to) in [
        (ours, ours),
        (ours, theirs),
        (theirs, ours),
        (theirs, theirs),
    ] {
        run(from, to, &udp("|term-length=64k"));
    }
    for driver in [ours, theirs] {
        run(driver, driver, "aeron:ipc?term-length=64k");
    }
}
