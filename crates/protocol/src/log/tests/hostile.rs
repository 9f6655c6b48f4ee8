// SPDX-License-Identifier: Apache-2.0
//! Logs filled with random values by another process: no operation panics, hangs or accesses memory outside its term.

use proptest::prelude::*;

use super::*;
use crate::position::RawTail;

const OFFSETS: i32 = TERM_LENGTH / 32;

/// Edge-case numbers and random ones.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![
        4 => -70_000i32..70_000,
        2 => (0..OFFSETS).prop_map(|index| index * 32),
        1 => Just(TERM_LENGTH),
        1 => Just(i32::MAX),
        1 => Just(i32::MIN),
        1 => any::<i32>(),
    ]
}

fn position() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => (-3i64..9, number()).prop_map(|(term, offset)| term * i64::from(TERM_LENGTH) + i64::from(offset)),
        1 => any::<i64>(),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ]
}

proptest! {
    #[test]
    fn open_with_random_metadata_never_panics(words in proptest::collection::vec((0usize..128, number()), 0..12)) {
        let spec = spec(LogKind::Concurrent);
        let region = Region::anonymous(spec.file_length()).unwrap();
        LogBuffers::create(&region, &spec, 0).unwrap();
        for (word, value) in words {
            region.atomic_i32(region.len() - 4096 + word * 4).store(value, Ordering::Relaxed);
        }
        if let Ok(log) = LogBuffers::open(&region) {
            prop_assert_eq!(log.term_length(), TERM_LENGTH);
            let _ = log.producer_position();
            let _ = ExclusiveAppender::new(log.clone());
            if let Some(tail) = SharedAppender::new(log.clone()).tail() {
                let _ = SharedAppender::new(log).append(tail, b"hello", None);
            }
        }
    }

    #[test]
    fn readers_with_random_frames_never_panic(
        lengths in proptest::collection::vec((0..OFFSETS, number(), any::<bool>()), 1..60),
        offset in number(), limit in number()
    ) {
        let log = log();
        let term = log.term(0);
        for (index, length, pad) in lengths {
            put_length(term, index * 32, length);
            term.write(index as usize * 32 + 6, &[u8::from(!pad)]);
        }
        let inside = |frame: &LogFrame<'_>| frame.offset() + frame.aligned_length() <= TERM_LENGTH;
        if let Ok(polled) = poll(term, offset, 100, |frame| assert!(inside(&frame) && frame.bytes().len() >= 32)) {
            prop_assert!(polled.offset >= offset && polled.offset <= TERM_LENGTH);
        }
        let _ = poll_controlled(term, offset, limit, 9, |_| Action::Commit, |at| assert!(at <= TERM_LENGTH));
        let _ = peek(term, offset, limit, |_| Action::Continue);
        if let Ok(Some(block)) = poll_block(term, offset, limit) {
            prop_assert!(block.bytes().len() == block.length() as usize);
        }
        if let Ok(rebuilt) = find_gap(term, offset, limit) {
            prop_assert!(rebuilt.offset >= offset && rebuilt.offset <= TERM_LENGTH);
            if let Some(gap) = rebuilt.gap {
                prop_assert!(gap.length > 0 && gap.offset + gap.length <= TERM_LENGTH);
                let _ = fill_gap(&log, 100, gap);
            }
        }
        for scanned in [
            scan(term, offset, limit),
            scan_run(term, offset, &RunLimit { datagram: 1408, window: limit, datagrams: 64, bytes: 65_504 }),
        ] {
            if let Ok(Scan::Ready(run)) = scanned {
                prop_assert!(run.segment > 0 && run.length >= run.segment && run.padding >= 0);
                prop_assert!(run.length <= limit && offset + run.advance() <= TERM_LENGTH);
            }
        }
    }

    #[test]
    fn unblock_and_clean_at_random_position_never_panic(
        lengths in proptest::collection::vec((0usize..3, 0..OFFSETS, number()), 0..20),
        tails in proptest::array::uniform3((number(), any::<u32>())),
        count in number(), from in position(), to in position()
    ) {
        let log = log();
        for (partition, index, length) in lengths {
            put_length(log.term(partition), index * 32, length);
        }
        for (partition, (term_id, offset)) in tails.into_iter().enumerate() {
            log.metadata().tails[partition].store(RawTail::new(term_id, offset).0, Ordering::Relaxed);
        }
        log.metadata().active_term_count.store(count, Ordering::Relaxed);
        let _ = log.producer_position();
        let _ = log.unblock(from);
        let clean = log.clean(from, to);
        prop_assert!(clean >= from && clean <= to.max(from));
    }
}
