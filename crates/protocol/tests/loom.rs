//! Appenders, readers, rotation and unblocking under every interleaving.
//!
//! Run with `cargo xtask loom`. Terms are 128 bytes here, so that they fill up after a few frames. Loom reports a race
//! when a reader gets to bytes that a publisher still writes.
//!
//! Whoever only looks runs in the thread that is started last: loom finds the interleavings of two threads by what the
//! later one of its first schedule depends on, and misses some when that is the one that writes.

#![cfg(loom)]

use loom::thread;
use taran_core::memory::Region;
use taran_core::sync::{Arc, AtomicI64, Ordering};
use taran_protocol::log::{
    AppendError, ExclusiveAppender, LogBuffers, LogKind, LogSpec, SharedAppender, poll,
};

const TERM_LENGTH: i32 = 128;
const FRAME: i64 = 64;

fn new_log(start_position: i64) -> LogBuffers {
    let spec = LogSpec {
        mtu: 64,
        ..LogSpec::new(LogKind::Concurrent, 7, 8, -1, TERM_LENGTH)
    };
    let region = Region::anonymous(spec.file_length()).expect("memory");
    LogBuffers::create(&region, &spec, start_position).expect("a log")
}

/// Appends one message, however often the log turns.
fn append(appender: &SharedAppender, message: u8) -> i64 {
    loop {
        let Some(tail) = appender.tail() else {
            thread::yield_now();
            continue;
        };
        match appender.append(tail, &[message; 4], None) {
            Ok(position) => return position,
            Err(error) => assert_eq!(error, AppendError::AdminAction),
        }
    }
}

/// All messages from `position` on, and where they end.
fn messages(log: &LogBuffers, mut position: i64) -> (Vec<u8>, i64) {
    let mut messages = Vec::new();
    loop {
        let term_id = log.geometry().term_id(position);
        let offset = log.geometry().term_offset(position);
        let polled = poll(log.term_at(position), offset, 10, |frame| {
            assert_eq!(frame.header().term_id.get(), term_id);
            assert_eq!(frame.header().term_offset.get(), frame.offset());
            let payload = frame.payload();
            assert!(payload.len() == 4 && payload.iter().all(|byte| *byte == payload[0]));
            messages.push(payload[0]);
        })
        .expect("sound frames");
        if polled.offset == offset {
            return (messages, position);
        }
        position += i64::from(polled.offset - offset);
    }
}

/// Starts a publisher of one message for each number, and returns what they got.
fn publish_at_once<const N: usize>(log: &LogBuffers, numbers: [u8; N]) -> [i64; N] {
    let threads = numbers.map(|number| {
        let appender = SharedAppender::new(log.clone());
        thread::spawn(move || append(&appender, number))
    });
    threads.map(|thread| thread.join().expect("no panic"))
}

/// Two publishers and one place left in the term: one of them turns the log, or both do.
#[test]
fn two_publishers_share_a_log_and_turn_it_once() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let mut positions = publish_at_once(&log, [1, 2]);
        positions.sort_unstable();
        assert_eq!(positions, [start + FRAME, start + 2 * FRAME]);
        let (mut seen, end) = messages(&log, start);
        seen.sort_unstable();
        assert_eq!((seen, end), (vec![1, 2], log.producer_position()));
        assert_eq!(log.active_term_count(), 1);
    });
}

/// Half a place is left: whoever begins inside pads it, the other one begins outside, and both turn the log.
#[test]
fn the_rest_of_a_term_is_padded_once() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME / 2;
        let log = new_log(start);
        publish_at_once(&log, [1, 2]);
        let (mut seen, end) = messages(&log, start);
        seen.sort_unstable();
        assert_eq!(
            (seen, end),
            (vec![1, 2], i64::from(TERM_LENGTH) + 2 * FRAME)
        );
        assert_eq!(log.active_term_count(), 1);
    });
}

/// A reader sees nothing of a frame, or all of it, and frames in order.
#[test]
fn readers_see_whole_frames_only() {
    loom::model(|| {
        let log = new_log(0);
        let appender = SharedAppender::new(log.clone());
        let publisher = thread::spawn(move || {
            append(&appender, 1);
            let tail = appender.tail().expect("no rotation");
            let mut claim = appender.claim(tail, 4).expect("room");
            claim.copy_from_slice(&[2; 4]);
            claim.commit();
        });
        let reader = {
            let log = log.clone();
            thread::spawn(move || {
                let (first, position) = messages(&log, 0);
                let (second, position) = messages(&log, position);
                ([first, second].concat(), position)
            })
        };
        publisher.join().expect("no panic");
        let (seen, position) = reader.join().expect("no panic");
        let (rest, end) = messages(&log, position);
        assert_eq!([seen, rest].concat(), [1, 2]);
        assert_eq!(end, 2 * FRAME);
    });
}

/// Starts a driver that looks where the publisher is.
fn follow(log: &LogBuffers, start: i64) -> thread::JoinHandle<()> {
    let log = log.clone();
    thread::spawn(move || {
        let mut last = start;
        for _ in 0..2 {
            let position = log.producer_position();
            assert!(position >= last && position <= start + 2 * FRAME);
            last = position;
        }
    })
}

/// The driver sees where an exclusive publisher is, while that turns the log.
#[test]
fn the_driver_follows_an_exclusive_publisher() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let mut appender = ExclusiveAppender::new(log.clone()).expect("sound tails");
        let publisher = thread::spawn(move || {
            assert_eq!(appender.append(&[1; 4], None), Ok(start + FRAME));
            assert_eq!(
                appender.append(&[2; 4], None),
                Err(AppendError::AdminAction)
            );
            assert_eq!(appender.append(&[2; 4], None), Ok(start + 2 * FRAME));
        });
        let driver = follow(&log, start);
        publisher.join().expect("no panic");
        driver.join().expect("no panic");
        assert_eq!(log.producer_position(), start + 2 * FRAME);
        assert_eq!(messages(&log, start).0, [1, 2]);
    });
}

/// Starts a driver that unblocks.
fn unblock(log: &LogBuffers, position: i64) -> thread::JoinHandle<bool> {
    let log = log.clone();
    thread::spawn(move || log.unblock(position))
}

/// The driver pads over a claim whose publisher died, while another one publishes behind it.
#[test]
fn a_dead_claim_is_padded_over() {
    loom::model(|| {
        let log = new_log(0);
        let appender = SharedAppender::new(log.clone());
        let tail = appender.tail().expect("no rotation");
        std::mem::forget(appender.claim(tail, 4).expect("room"));
        let publisher = {
            let appender = SharedAppender::new(log.clone());
            thread::spawn(move || append(&appender, 1))
        };
        let driver = unblock(&log, 0);
        publisher.join().expect("no panic");
        assert!(driver.join().expect("no panic"));
        assert_eq!(messages(&log, 0), (vec![1], 2 * FRAME));
    });
}

/// The driver does the rotation that a dead publisher left undone, while another publisher does it, too. (Were that one
/// to begin a frame as well, the driver could not tell it from a dead one: it waits long before it unblocks.)
#[test]
fn driver_and_publisher_turn_a_full_log() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let appender = SharedAppender::new(log.clone());
        append(&appender, 1);
        let publisher = thread::spawn(move || {
            // One attempt: it turns the log, or it finds it turned.
            let tail = appender.tail();
            let sent = tail.is_some_and(|tail| appender.append(tail, &[2; 4], None).is_ok());
            (appender, sent)
        });
        let driver = unblock(&log, start + FRAME);
        let (appender, sent) = publisher.join().expect("no panic");
        driver.join().expect("no panic");
        assert_eq!(log.active_term_count(), 1);
        if !sent {
            append(&appender, 2);
        }
        assert_eq!(messages(&log, start), (vec![1, 2], start + 2 * FRAME));
    });
}

/// The driver sees where shared publishers are, while one turns the log.
#[test]
fn the_driver_follows_a_shared_publisher() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let publisher = {
            let appender = SharedAppender::new(log.clone());
            thread::spawn(move || (append(&appender, 1), append(&appender, 2)))
        };
        let driver = follow(&log, start);
        publisher.join().expect("no panic");
        driver.join().expect("no panic");
        assert_eq!(log.producer_position(), start + 2 * FRAME);
    });
}

/// A publisher comes into a term that was used before: it waits for the limit, and finds zeros.
#[test]
fn a_used_term_is_clean_when_the_limit_allows_it() {
    loom::model(|| {
        let used = 3 * i64::from(TERM_LENGTH);
        let log = new_log(0);
        let appender = SharedAppender::new(log.clone());
        for _ in 0..6 {
            append(&appender, 1);
        }
        assert_eq!(log.producer_position(), used);
        let limit = Arc::new(AtomicI64::new(used));
        let driver = {
            let (log, limit) = (log.clone(), Arc::clone(&limit));
            thread::spawn(move || {
                assert_eq!(log.clean(0, i64::from(TERM_LENGTH)), i64::from(TERM_LENGTH));
                limit.store(used + FRAME, Ordering::Release);
            })
        };
        let publisher = thread::spawn(move || {
            while limit.load(Ordering::Acquire) <= used {
                thread::yield_now();
            }
            append(&appender, 2)
        });
        driver.join().expect("no panic");
        assert_eq!(publisher.join().expect("no panic"), used + FRAME);
        assert_eq!(messages(&log, used), (vec![2], used + FRAME));
    });
}
