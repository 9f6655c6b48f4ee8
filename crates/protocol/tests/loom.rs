// SPDX-License-Identifier: Apache-2.0
//! Loom models of appenders, readers, rotation and unblocking.
//!
//! Run with `cargo xtask loom`. Terms are 128 bytes here, so that they fill up after a few frames. Loom reports a race
//! when a reader accesses bytes that a publisher is still writing.
//!
//! Threads that only read are spawned last: loom derives the interleavings of two threads from the dependencies of the
//! later one in its first schedule, and misses some if that thread writes.

#![cfg(loom)]

use loom::thread;
use taran_core::memory::Region;
use taran_core::sync::{Arc, AtomicI64, Ordering};
use taran_protocol::frame::{DataHeader, Frame, FrameHeader, FrameType, IntoBytes as _};
use taran_protocol::log::{
    AppendError, ExclusiveAppender, LogBuffers, LogKind, LogSpec, SharedAppender, insert, poll,
};

const TERM_LENGTH: i32 = 128;
const FRAME: i64 = 64;

fn new_log(start_position: i64) -> LogBuffers {
    log_of(LogKind::Concurrent, start_position)
}

fn log_of(kind: LogKind, start_position: i64) -> LogBuffers {
    log_with(kind, TERM_LENGTH, start_position)
}

fn log_with(kind: LogKind, term_length: i32, start_position: i64) -> LogBuffers {
    let spec = LogSpec {
        mtu: 64,
        ..LogSpec::new(kind, 7, 8, -1, term_length)
    };
    let region = Region::anonymous(spec.file_length()).expect("memory");
    LogBuffers::create(&region, &spec, start_position).expect("a log")
}

/// Appends one message, and retries after each rotation.
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

/// Returns all messages from `position` and the position after them.
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
        .expect("valid frames");
        if polled.offset == offset {
            return (messages, position);
        }
        position += i64::from(polled.offset - offset);
    }
}

/// Spawns a reader that polls twice. Returns the messages it read and its final position.
fn read_twice(log: &LogBuffers) -> thread::JoinHandle<(Vec<u8>, i64)> {
    let log = log.clone();
    thread::spawn(move || {
        let (first, position) = messages(&log, 0);
        let (second, position) = messages(&log, position);
        ([first, second].concat(), position)
    })
}

/// Publishes one message per number from concurrent threads. Returns the positions.
fn publish_at_once<const N: usize>(log: &LogBuffers, numbers: [u8; N]) -> [i64; N] {
    let threads = numbers.map(|number| {
        let appender = SharedAppender::new(log.clone());
        thread::spawn(move || append(&appender, number))
    });
    threads.map(|thread| thread.join().expect("no panic"))
}

/// The term has space for one frame: one publisher rotates the log, or both do.
#[test]
fn two_publishers_at_term_end_rotate_once() {
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

/// The term has space for half a frame: the publisher whose range starts inside pads it, the other one starts beyond
/// the end, and both rotate.
#[test]
fn two_publishers_at_term_end_pad_once() {
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

/// A reader sees a whole frame or nothing of it, and frames in order.
#[test]
fn reader_sees_committed_frames_in_order() {
    loom::model(|| {
        let log = new_log(0);
        let appender = SharedAppender::new(log.clone());
        let publisher = thread::spawn(move || {
            append(&appender, 1);
            let tail = appender.tail().expect("no rotation");
            let mut claim = appender.claim(tail, 4).expect("space");
            claim.copy_from_slice(&[2; 4]);
            claim.commit();
        });
        let reader = read_twice(&log);
        publisher.join().expect("no panic");
        let (seen, position) = reader.join().expect("no panic");
        let (rest, end) = messages(&log, position);
        assert_eq!([seen, rest].concat(), [1, 2]);
        assert_eq!(end, 2 * FRAME);
    });
}

/// Spawns a driver that reads the producer position twice.
fn track_position(log: &LogBuffers, start: i64) -> thread::JoinHandle<()> {
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

/// The driver reads the position of an exclusive publisher during rotation.
#[test]
fn producer_position_of_exclusive_publisher_is_monotonic() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let mut appender = ExclusiveAppender::new(log.clone()).expect("valid tails");
        let publisher = thread::spawn(move || {
            assert_eq!(appender.append(&[1; 4], None), Ok(start + FRAME));
            assert_eq!(
                appender.append(&[2; 4], None),
                Err(AppendError::AdminAction)
            );
            assert_eq!(appender.append(&[2; 4], None), Ok(start + 2 * FRAME));
        });
        let driver = track_position(&log, start);
        publisher.join().expect("no panic");
        driver.join().expect("no panic");
        assert_eq!(log.producer_position(), start + 2 * FRAME);
        assert_eq!(messages(&log, start).0, [1, 2]);
    });
}

/// Spawns a driver that unblocks the log.
fn unblock(log: &LogBuffers, position: i64) -> thread::JoinHandle<bool> {
    let log = log.clone();
    thread::spawn(move || log.unblock(position))
}

/// The driver pads over the claim of a dead publisher while another one publishes after it.
#[test]
fn unblock_dead_claim_pads_it() {
    loom::model(|| {
        let log = new_log(0);
        let appender = SharedAppender::new(log.clone());
        let tail = appender.tail().expect("no rotation");
        std::mem::forget(appender.claim(tail, 4).expect("space"));
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

/// The driver completes the rotation of a dead publisher while another publisher rotates too. (If that one also started
/// a frame, the driver could not distinguish it from a dead one; hence the long unblock timeout.)
#[test]
fn unblock_and_publisher_rotate_full_term_once() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let appender = SharedAppender::new(log.clone());
        append(&appender, 1);
        let publisher = thread::spawn(move || {
            // One attempt: it rotates the log or finds it rotated.
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
        assert_eq!(log.producer_position(), start + 2 * FRAME);
    });
}

/// The driver reads the position of a shared publisher during rotation.
#[test]
fn producer_position_of_shared_publisher_is_monotonic() {
    loom::model(|| {
        let start = i64::from(TERM_LENGTH) - FRAME;
        let log = new_log(start);
        let publisher = {
            let appender = SharedAppender::new(log.clone());
            thread::spawn(move || (append(&appender, 1), append(&appender, 2)))
        };
        let driver = track_position(&log, start);
        publisher.join().expect("no panic");
        driver.join().expect("no panic");
        assert_eq!(log.producer_position(), start + 2 * FRAME);
    });
}

/// A publisher enters a used term: it waits for the limit and then finds zeros.
#[test]
fn cleaned_term_is_zero_once_limit_is_raised() {
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

/// An exclusive publisher enters a used term that was not cleaned: a reader sees its messages or nothing.
#[test]
fn exclusive_append_into_used_term_hides_old_frames() {
    loom::model(|| {
        let used = 3 * i64::from(TERM_LENGTH);
        let log = log_of(LogKind::Exclusive, 0);
        let mut appender = ExclusiveAppender::new(log.clone()).expect("a valid tail");
        let mut append = move |message: u8| {
            while appender.append(&[message; 4], None).is_err() {}
            appender.position()
        };
        while append(1) < used {}
        let publisher = thread::spawn(move || (append(2), append(3)));
        let reader = {
            let log = log.clone();
            thread::spawn(move || messages(&log, used).0)
        };
        publisher.join().expect("no panic");
        let seen = reader.join().expect("no panic");
        assert!([&[][..], &[2], &[2, 3]].contains(&&seen[..]), "{seen:?}");
        assert_eq!(messages(&log, used), (vec![2, 3], used + 2 * FRAME));
    });
}

/// Length of terms that hold a fragmented message: an eighth of it, the maximum message length, exceeds one frame.
const WIDE: i32 = 512;

/// Returns the publisher of a log full of stale frames with message 1, `ahead` bytes beyond the first full rotation.
fn publisher_of_used(ahead: i64) -> ExclusiveAppender {
    let log = log_with(LogKind::Exclusive, WIDE, 0);
    let mut appender = ExclusiveAppender::new(log).expect("a valid tail");
    while appender.position() < 3 * i64::from(WIDE) + ahead {
        let _ = appender.append(&[1; 4], None);
    }
    appender
}

/// Returns the first byte and the length of each payload from `position`.
fn payloads(log: &LogBuffers, mut position: i64) -> Vec<(u8, usize)> {
    let mut payloads = Vec::new();
    loop {
        let offset = log.geometry().term_offset(position);
        let polled = poll(log.term_at(position), offset, 10, |frame| {
            payloads.push((frame.payload()[0], frame.payload().len()));
        })
        .expect("valid frames");
        if polled.offset == offset {
            return payloads;
        }
        position += i64::from(polled.offset - offset);
    }
}

/// Runs a publisher in a used log concurrently with a reader. Asserts that the reader sees a prefix of `expected`, and
/// no stale frame.
fn assert_hides_old_frames(
    ahead: i64,
    publish: impl Fn(&mut ExclusiveAppender) + Copy + Send + Sync + 'static,
    expected: &'static [(u8, usize)],
) {
    loom::model(move || {
        let mut appender = publisher_of_used(ahead);
        let (log, used) = (appender.log().clone(), appender.position());
        let publisher = thread::spawn(move || publish(&mut appender));
        let reader = {
            let log = log.clone();
            thread::spawn(move || payloads(&log, used))
        };
        publisher.join().expect("no panic");
        let seen = reader.join().expect("no panic");
        assert!(expected.starts_with(&seen), "{seen:?}");
        assert_eq!(payloads(&log, used), expected);
    });
}

/// A fragmented message is appended to a used term.
#[test]
fn exclusive_fragments_into_used_term_hide_old_frames() {
    let fragments = |appender: &mut ExclusiveAppender| {
        // The previous term is full.
        while appender.append(&[2; 36], None).is_err() {}
    };
    assert_hides_old_frames(0, fragments, &[(2, 32), (2, 4)]);
}

/// Frames of any length, across the end of a term, into used terms: the slots of the next ones are cleared at a distance.
#[test]
fn exclusive_frames_across_a_term_end_hide_old_frames() {
    let frames = |appender: &mut ExclusiveAppender| {
        for message in [&[2; 4][..], &[3; 20], &[4; 4]] {
            while appender.append(message, None).is_err() {}
        }
    };
    let expected = &[(2, 4), (3, 20), (4, 4)];
    assert_hides_old_frames(i64::from(WIDE) - 2 * FRAME, frames, expected);
}

/// A block of frames is appended to a used term.
#[test]
fn append_block_into_used_term_hides_old_frames() {
    let block = |appender: &mut ExclusiveAppender| {
        let block = datagram(appender.log(), appender.position(), 2);
        appender.append_block(&block).expect("space");
    };
    assert_hides_old_frames(0, block, &[(2, 4)]);
}

/// A message does not fit the rest of a term: the padding leads the reader into the next term, which was used too.
#[test]
fn exclusive_rotation_into_used_term_hides_old_frames() {
    let rotate = |appender: &mut ExclusiveAppender| {
        let result = appender.append(&[3; 36], None);
        assert_eq!(result, Err(AppendError::AdminAction));
    };
    assert_hides_old_frames(i64::from(WIDE) - FRAME, rotate, &[]);
}

/// An aborted claim becomes padding: a reader sees nothing of it or skips all of it.
#[test]
fn aborted_claim_is_skipped() {
    loom::model(|| {
        let log = new_log(0);
        let publisher = {
            let appender = SharedAppender::new(log.clone());
            thread::spawn(move || {
                let tail = appender.tail().expect("no rotation");
                appender.claim(tail, 4).expect("space").abort();
                append(&appender, 1);
            })
        };
        let reader = {
            let log = log.clone();
            thread::spawn(move || messages(&log, 0))
        };
        publisher.join().expect("no panic");
        let (seen, position) = reader.join().expect("no panic");
        let (rest, end) = messages(&log, position);
        assert_eq!(([seen, rest].concat(), end), (vec![1], 2 * FRAME));
    });
}

/// A publisher reserved space and died before it started a frame. The driver pads over the space once it sees a frame
/// after it, and never over frames of live publishers. (In the model these are fast; a publisher that waits for the
/// whole unblock timeout after a reservation is treated as dead too.)
#[test]
fn unblock_reserved_space_without_header_keeps_live_frames() {
    const SHORT: i64 = 32;
    loom::model(|| {
        let log = new_log(0);
        log.metadata().tails[0].fetch_add(SHORT, Ordering::AcqRel);
        let publisher = {
            let appender = SharedAppender::new(log.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let tail = appender.tail().expect("no rotation");
                    appender.append(tail, &[], None).expect("space");
                }
            })
        };
        let driver = {
            let log = log.clone();
            thread::spawn(move || {
                // All space is reserved; only the last frame may not have been started yet.
                let all_reserved = log.producer_position() == i64::from(TERM_LENGTH);
                all_reserved && log.unblock(0)
            })
        };
        publisher.join().expect("no panic");
        if !driver.join().expect("no panic") {
            assert!(log.unblock(0));
        }
        let mut frames = Vec::new();
        poll(log.term(0), 0, 4, |frame| frames.push(frame.offset())).expect("valid frames");
        assert_eq!(frames, [32, 64, 96], "live frames are kept");
        assert_eq!(
            log.term(0).atomic_i32(0).load(Ordering::Acquire),
            SHORT as i32
        );
    });
}

/// Returns a datagram with message `number` for the frame at `position`.
fn datagram(log: &LogBuffers, position: i64, number: u8) -> Vec<u8> {
    let header = DataHeader {
        header: FrameHeader::new(36, DataHeader::UNFRAGMENTED, FrameType::DATA),
        term_offset: log.geometry().term_offset(position).into(),
        session_id: 7.into(),
        stream_id: 8.into(),
        term_id: log.geometry().term_id(position).into(),
        reserved_value: 0.into(),
    };
    let mut bytes = [header.as_bytes(), &[number; 4]].concat();
    bytes.resize(FRAME as usize, 0);
    bytes
}

/// Inserts a datagram as the receiver does.
fn receive(log: &LogBuffers, position: i64, number: u8) -> bool {
    let bytes = datagram(log, position, number);
    let Ok(Frame::Data(frame)) = Frame::parse(&bytes) else {
        panic!("a data frame");
    };
    let frames = frame.validate(TERM_LENGTH).expect("whole frames");
    insert(log.term_at(position), &frames)
}

/// Datagrams arrive out of order and duplicated; a reader sees a whole frame or nothing of it, and frames in order.
#[test]
fn inserted_packets_are_seen_whole_and_in_order() {
    loom::model(|| {
        let log = log_of(LogKind::Image, 0);
        let receiver = {
            let log = log.clone();
            thread::spawn(move || {
                assert!(receive(&log, FRAME, 2));
                assert!(receive(&log, 0, 1));
                assert!(!receive(&log, FRAME, 3), "the first copy wins");
            })
        };
        let reader = read_twice(&log);
        receiver.join().expect("no panic");
        let (seen, position) = reader.join().expect("no panic");
        let (rest, end) = messages(&log, position);
        assert_eq!(([seen, rest].concat(), end), (vec![1, 2], 2 * FRAME));
    });
}

/// The receiver clears the slot after each packet that it inserts into a used term: a reader sees the inserted frames
/// or nothing, never a stale frame.
#[test]
fn insert_into_used_term_hides_old_frames() {
    const LOG: i64 = 3 * TERM_LENGTH as i64;
    loom::model(|| {
        let log = log_of(LogKind::Image, 0);
        assert!(receive(&log, 0, 8) && receive(&log, FRAME, 9));
        let receiver = {
            let log = log.clone();
            thread::spawn(move || {
                for (position, number) in [(LOG - FRAME, 1), (LOG, 2)] {
                    log.clear_slot(position + FRAME);
                    assert!(receive(&log, position, number));
                }
            })
        };
        let reader = {
            let log = log.clone();
            thread::spawn(move || messages(&log, LOG - FRAME).0)
        };
        receiver.join().expect("no panic");
        let seen = reader.join().expect("no panic");
        assert!([&[][..], &[1], &[1, 2]].contains(&&seen[..]), "{seen:?}");
    });
}
