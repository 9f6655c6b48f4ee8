// SPDX-License-Identifier: Apache-2.0
use std::cell::Cell;

use super::*;

/// Returns a log with three frames of 64, 64 and 32 bytes, padding up to 256, and another frame.
fn filled() -> LogBuffers {
    let log = log();
    let term = log.term(0);
    let mut at = put_with_flags(term, 0, DataHeader::BEGIN, b"one");
    at = put_with_flags(term, at, DataHeader::END, b"two");
    at = put(term, at, b"");
    at = put_padding(term, at, 256 - at);
    put(term, at, b"four");
    log
}

fn texts(term: &Region, offset: i32, limit: usize) -> (Vec<Vec<u8>>, Polled) {
    let mut texts = Vec::new();
    let polled = poll(term, offset, limit, |frame| {
        texts.push(frame.payload().to_vec());
    })
    .unwrap();
    (texts, polled)
}

#[test]
fn poll_delivers_frames_in_order_and_skips_padding() {
    let log = filled();
    let (all, polled) = texts(log.term(0), 0, 10);
    assert_eq!(all, [&b"one"[..], b"two", b"", b"four"]);
    assert_eq!(
        polled,
        Polled {
            fragments: 4,
            offset: 320
        }
    );
    assert_eq!(
        texts(log.term(0), 0, 2).1,
        Polled {
            fragments: 2,
            offset: 128
        }
    );
    assert_eq!(
        texts(log.term(0), 0, 0).1,
        Polled {
            fragments: 0,
            offset: 0
        }
    );
    assert_eq!(texts(log.term(0), 160, 1).0, [b"four"]);
    assert_eq!(
        texts(log.term(0), 320, 1).1,
        Polled {
            fragments: 0,
            offset: 320
        }
    );
    assert_eq!(texts(log.term(0), TERM_LENGTH, 1).1.fragments, 0);
}

#[test]
fn poll_frame_exposes_header() {
    let log = filled();
    let polled = poll(log.term(0), 64, 1, |frame| {
        assert_eq!(
            (frame.offset(), frame.length(), frame.aligned_length()),
            (64, 35, 64)
        );
        assert_eq!(
            (frame.flags(), frame.is_padding()),
            (DataHeader::END, false)
        );
        let header = frame.header();
        assert_eq!(
            (header.session_id.get(), header.stream_id.get()),
            (SESSION, STREAM)
        );
        assert_eq!((header.term_id.get(), header.term_offset.get()), (100, 64));
        assert_eq!(
            (frame.bytes().len(), &frame.bytes()[32..]),
            (35, &b"two"[..])
        );
    });
    assert_eq!(polled.unwrap().fragments, 1);
}

#[test]
fn poll_bounded_stops_before_frame_at_limit() {
    let log = filled();
    let bounded = |limit| poll_bounded(log.term(0), 0, limit, 10, |_| {}).unwrap();
    assert_eq!(
        bounded(0),
        Polled {
            fragments: 0,
            offset: 0
        }
    );
    assert_eq!(
        bounded(-1),
        Polled {
            fragments: 0,
            offset: 0
        }
    );
    assert_eq!(
        bounded(64),
        Polled {
            fragments: 1,
            offset: 64
        }
    );
    assert_eq!(
        bounded(65),
        Polled {
            fragments: 2,
            offset: 128
        }
    );
    assert_eq!(
        bounded(i32::MAX),
        Polled {
            fragments: 4,
            offset: 320
        }
    );
}

fn controlled(actions: &[Action]) -> (Polled, Vec<i32>) {
    let log = filled();
    let mut actions = actions.iter();
    let mut commits = Vec::new();
    let polled = poll_controlled(
        log.term(0),
        0,
        TERM_LENGTH,
        10,
        |_| *actions.next().unwrap_or(&Action::Continue),
        |offset| commits.push(offset),
    );
    (polled.unwrap(), commits)
}

#[test]
fn poll_controlled_follows_handler_actions() {
    use Action::{Abort, Break, Commit, Continue};
    let polled = |fragments, offset| Polled { fragments, offset };
    assert_eq!(controlled(&[]), (polled(4, 320), vec![]));
    assert_eq!(controlled(&[Abort]), (polled(0, 0), vec![]));
    assert_eq!(controlled(&[Continue, Abort]), (polled(1, 64), vec![]));
    assert_eq!(controlled(&[Continue, Break]), (polled(2, 128), vec![]));
    assert_eq!(
        controlled(&[Commit, Commit, Abort]),
        (polled(2, 128), vec![64, 128])
    );
    // Padding before an aborted frame is consumed.
    assert_eq!(
        controlled(&[Continue, Continue, Continue, Abort]),
        (polled(3, 256), vec![])
    );
}

#[test]
fn peek_ends_on_message_boundary() {
    let log = filled();
    let seen = Cell::new(0);
    let peek_until = |stop: usize, action| {
        seen.set(0);
        peek(log.term(0), 0, TERM_LENGTH, |_| {
            seen.set(seen.get() + 1);
            if seen.get() == stop {
                action
            } else {
                Action::Continue
            }
        })
        .unwrap()
    };
    assert_eq!(peek_until(1, Action::Break), 0);
    assert_eq!(peek_until(2, Action::Abort), 0);
    assert_eq!(peek_until(2, Action::Break), 128);
    assert_eq!(peek_until(4, Action::Abort), 256);
    assert_eq!(peek_until(9, Action::Abort), 320);
    assert_eq!(peek(log.term(0), 0, 64, |_| Action::Continue), Ok(0));
}

#[test]
fn poll_block_returns_whole_frames() {
    let log = filled();
    let block = |offset, limit| {
        poll_block(log.term(0), offset, limit)
            .unwrap()
            .map(|block| (block.offset(), block.length(), block.bytes().len()))
    };
    assert_eq!(block(0, 1000), Some((0, 160, 160)));
    assert_eq!(block(0, 159), Some((0, 128, 128)));
    assert_eq!(block(0, 64), Some((0, 64, 64)));
    assert_eq!(block(0, 63), None);
    assert_eq!(block(160, 32), Some((160, 96, 96)));
    assert_eq!(block(256, i32::MAX), Some((256, 64, 64)));
    assert_eq!(block(320, 1000), None);
    assert_eq!(block(TERM_LENGTH, 1000), None);
    let first = poll_block(log.term(0), 64, 1000).unwrap().unwrap();
    assert_eq!(first.header().term_offset.get(), 64);
}

#[test]
fn readers_with_hostile_frame_or_offset_fail() {
    let log = log();
    let term = log.term(0);
    let end = put(term, 0, b"sound");
    for length in hostile_lengths(end) {
        put_length(term, end, length);
        let corrupt = CorruptFrame {
            offset: end,
            length,
        };
        assert_eq!(poll(term, end, 10, |_| panic!()), Err(corrupt));
        assert_eq!(
            texts(term, 0, 10).1,
            Polled {
                fragments: 1,
                offset: end
            }
        );
        assert_eq!(
            poll_controlled(term, end, TERM_LENGTH, 9, |_| panic!(), |_| ()),
            Err(corrupt)
        );
        assert_eq!(peek(term, end, TERM_LENGTH, |_| panic!()), Err(corrupt));
        assert_eq!(poll_block(term, end, 100).unwrap_err(), corrupt);
        assert_eq!(poll_block(term, 0, 1000).unwrap().unwrap().length(), end);
    }
    for length in [-1, -32, i32::MIN] {
        put_length(term, end, length);
        assert_eq!(poll(term, end, 10, |_| panic!()).unwrap().fragments, 0);
    }
    for offset in [-32, 1, 33, TERM_LENGTH + 32, i32::MAX, i32::MIN] {
        assert!(poll(term, offset, 10, |_| panic!()).is_err());
        assert!(poll_block(term, offset, 10).is_err());
    }
}
