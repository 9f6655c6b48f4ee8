// SPDX-License-Identifier: Apache-2.0
use super::*;

const MS: i64 = 1_000_000;
const UNICAST: RetransmitSpec = RetransmitSpec {
    max_actions: 1,
    delay_ns: 0,
    linger_ns: 10 * MS,
};
const GROUP: RetransmitSpec = RetransmitSpec {
    max_actions: 2,
    ..UNICAST
};

fn range(position: i64, length: i64) -> StreamRange {
    StreamRange { position, length }
}

/// Returns what a poll retransmits, at most 1000 bytes of each range.
fn poll(retransmits: &mut RetransmitHandler, now_ns: i64) -> Vec<StreamRange> {
    let mut sent = Vec::new();
    retransmits.poll(now_ns, |rest, _| {
        sent.push(range(rest.position, rest.length.min(1000)));
        RetransmitOutcome::Sent(rest.length.min(1000))
    });
    sent
}

#[test]
fn nak_is_answered_at_once_and_repetition_suppressed_until_linger_ends() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(retransmits.on_nak(range(64, 320), 0), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 0), [range(64, 320)]);
    assert_eq!(poll(&mut retransmits, 1), []);
    assert_eq!(
        retransmits.on_nak(range(64, 320), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(range(128, 32), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(range(64, 320), 10 * MS + 1),
        NakOutcome::Accepted
    );
    assert_eq!(poll(&mut retransmits, 10 * MS + 1), [range(64, 320)]);
}

#[test]
fn long_range_takes_several_polls() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(retransmits.on_nak(range(0, 2500), 0), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 0), [range(0, 1000)]);
    assert_eq!(
        retransmits.on_nak(range(0, 2500), 0),
        NakOutcome::Suppressed
    );
    assert_eq!(poll(&mut retransmits, 1), [range(1000, 1000)]);
    assert_eq!(poll(&mut retransmits, 2), [range(2000, 500)]);
    assert_eq!(poll(&mut retransmits, 3), []);
    assert_eq!(
        retransmits.on_nak(range(0, 2500), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(range(0, 2500), 10 * MS + 1),
        NakOutcome::Accepted
    );
}

#[test]
fn blocked_range_is_left_to_next_nak() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(retransmits.on_nak(range(0, 2500), 0), NakOutcome::Accepted);
    retransmits.poll(0, |_, _| RetransmitOutcome::Blocked(0));
    assert_eq!(poll(&mut retransmits, 1), []);
    assert_eq!(retransmits.on_nak(range(0, 2500), 1), NakOutcome::Accepted);
    retransmits.poll(1, |_, _| RetransmitOutcome::Blocked(1000));
    assert_eq!(
        retransmits.on_nak(range(0, 1000), 2),
        NakOutcome::Suppressed
    );
    assert_eq!(retransmits.on_nak(range(0, 2500), 2), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 2), [range(1000, 1000)]);
}

#[test]
fn blocked_range_without_bytes_does_not_linger() {
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    retransmits.on_nak(range(0, 64), 0);
    retransmits.poll(0, |_, _| RetransmitOutcome::Blocked(0));
    assert!(!retransmits.is_pending());
    assert_eq!(retransmits.on_nak(range(0, 64), 0), NakOutcome::Accepted);
}

#[test]
fn unicast_keeps_only_last_range_lingering() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(retransmits.on_nak(range(0, 64), 0), NakOutcome::Accepted);
    poll(&mut retransmits, 0);
    assert_eq!(retransmits.on_nak(range(640, 64), 1), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 1), [range(640, 64)]);
}

#[test]
fn too_many_ranges_are_merged() {
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    for (position, outcome) in [
        (0, NakOutcome::Accepted),
        (1_000, NakOutcome::Accepted),
        (5_000, NakOutcome::Accepted),
        (2_000, NakOutcome::Accepted),
        (5_200, NakOutcome::Overflow),
        (8_000, NakOutcome::Overflow),
    ] {
        assert_eq!(retransmits.on_nak(range(position, 64), 0), outcome);
    }
    let sent = poll(&mut retransmits, 0);
    assert_eq!(
        sent,
        [
            range(0, 1_000),
            range(1_000, 64),
            range(2_000, 64),
            range(5_000, 264),
        ]
    );
    assert_eq!(poll(&mut retransmits, 0), [range(8_000, 64)]);
}

#[test]
fn range_behind_lingering_one_is_not_suppressed() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    retransmits.on_nak(range(640, 64), 0);
    poll(&mut retransmits, 0);
    assert_eq!(retransmits.on_nak(range(640, 320), 1), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 1), [range(704, 256)]);
    retransmits.on_nak(range(1_280, 64), 1);
    assert_eq!(
        retransmits.on_nak(range(1_280, 320), 1),
        NakOutcome::Accepted
    );
    assert_eq!(poll(&mut retransmits, 1), [range(1_280, 320)]);
}

#[test]
fn range_behind_cursor_waits_for_next_pass() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    let mut expected = 0;
    for number in 0..10 {
        // Nothing lingers.
        let now_ns = number * 20 * MS;
        retransmits.on_nak(range(0, 3_000), now_ns);
        for sent in poll(&mut retransmits, now_ns) {
            assert_eq!(sent, range(expected, 1_000));
            expected = (expected + 1_000) % 3_000;
        }
    }
}

#[test]
fn ranges_of_group_share_bytes_of_a_poll() {
    let long = i64::from(MAX_BATCH_BYTES);
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    retransmits.on_nak(range(0, 2 * long), 0);
    retransmits.on_nak(range(4 * long, 64), 0);
    let mut poll_once = || {
        let mut sent = Vec::new();
        retransmits.poll(0, |rest, _| {
            sent.push((rest.position, rest.length.min(long)));
            RetransmitOutcome::Sent(rest.length.min(long))
        });
        sent
    };
    assert_eq!(poll_once(), [(0, long)]);
    assert_eq!(poll_once(), [(long, long)]);
    assert_eq!(poll_once(), [(4 * long, 64)]);
}

#[test]
fn delayed_range_is_sent_after_delay() {
    let mut retransmits = RetransmitHandler::new(
        RetransmitSpec {
            delay_ns: 5,
            ..UNICAST
        },
        1 << 30,
    );
    assert_eq!(retransmits.on_nak(range(0, 64), 0), NakOutcome::Accepted);
    assert_eq!(poll(&mut retransmits, 5), []);
    assert_eq!(retransmits.on_nak(range(0, 64), 5), NakOutcome::Suppressed);
    assert_eq!(poll(&mut retransmits, 6), [range(0, 64)]);
}

#[test]
fn retransmission_is_limited_by_sent_bytes_and_rate() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 64 * 1024);
    let ask = |retransmits: &mut RetransmitHandler, from: i64, count: i64, now_ns: i64| {
        let mut sent = 0;
        for number in from..from + count {
            // Each for something else.
            retransmits.on_nak(range(number * 1_000, 1_000), now_ns);
            sent += poll(retransmits, now_ns)
                .iter()
                .map(|it| it.length)
                .sum::<i64>();
        }
        sent
    };
    let second = MIN_BYTES_PER_SECOND;
    assert_eq!(
        ask(&mut retransmits, 0, 2_000, 0),
        (second / 1_000 + 1) * 1_000
    );
    assert_eq!(
        retransmits.on_nak(range(3_000_000, 1_000), 0),
        NakOutcome::Overflow
    );
    retransmits.on_data_sent(100_000);
    let repeated = ask(&mut retransmits, 5_000, 2_000, 0);
    assert!((399_000..=401_000).contains(&repeated), "{repeated}");
    let repeated = ask(&mut retransmits, 9_000, 2_000, 500 * MS);
    assert!(
        (second / 2 - 1_000..=second / 2 + 1_000).contains(&repeated),
        "{repeated}"
    );
}

/// Stream of frames, with forged NAKs of arbitrary ranges and a receiver that misses one frame.
mod forger {
    use proptest::prelude::*;

    use super::*;

    const TERM: i32 = 1 << 16;
    /// Retransmittable bytes of the stream.
    const WINDOW: i64 = (TERM / 2 + TERM / 8) as i64;
    const CYCLE_NS: i64 = MS / 10;

    struct Stream {
        starts: Vec<i64>,
        missing: i64,
        /// Bytes that were sent again since the receiver asked.
        since: Option<i64>,
        is_served: bool,
    }

    impl Stream {
        fn end_of(&self, start: i64) -> Option<i64> {
            let next = self.starts.partition_point(|&other| other <= start);
            self.starts.get(next).copied()
        }

        /// Retransmits whole frames, as many as fit a batch, as the sender does.
        fn resend(&mut self, rest: StreamRange, oldest: i64) -> RetransmitOutcome {
            assert!(
                self.starts.binary_search(&rest.position).is_ok(),
                "{rest:?}"
            );
            let mut at = rest.position;
            while let Some(end) = self.end_of(at)
                && end <= rest.end().max(oldest)
                && end - rest.position <= i64::from(MAX_BATCH_BYTES)
            {
                self.is_served |= at == self.missing && at >= oldest;
                at = end;
            }
            let advanced = at - rest.position;
            self.since = self.since.map(|since| since + advanced);
            if advanced == 0 {
                RetransmitOutcome::Blocked(0)
            } else {
                RetransmitOutcome::Sent(advanced)
            }
        }
    }

    fn ask(random: &mut fastrand::Rng, stream: &Stream, oldest: i64, head: i64) -> StreamRange {
        let from = stream.starts.partition_point(|&start| start < oldest);
        let to = stream.starts.partition_point(|&start| start < head);
        let position = stream.starts[random.usize(from..to)];
        let position = match random.u8(0..4) {
            0 => stream.starts[from],
            1 => stream.missing,
            _ => position,
        };
        let most = (head - position).min(i64::from(TERM / 2));
        let length = match random.u8(0..3) {
            0 => 32,
            1 => most,
            _ => random.i64(32..=most.max(32)),
        };
        range(position, length.min(most))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn does_not_keep_a_receiver_from_what_it_misses(
            seed in any::<u64>(),
            max_actions in prop_oneof![Just(1), Just(2), Just(16)],
            forged_per_cycle in 1_usize..40,
            delay_ns in prop_oneof![Just(0), Just(MS)],
            moves in any::<bool>(),
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut starts = vec![0];
            while *starts.last().unwrap() < 40 * i64::from(TERM) {
                let longest = if random.u8(0..20) == 0 { 256 } else { 44 };
                starts.push(starts.last().unwrap() + 32 * random.i64(1..longest));
            }
            let mut stream = Stream { starts, missing: 0, since: None, is_served: false };
            let spec = RetransmitSpec { max_actions, delay_ns, linger_ns: 10 * MS };
            let mut retransmits = RetransmitHandler::new(spec, TERM);
            // The receiver is as far back as its window lets it be, and what comes then is held up by it.
            let mut head = 4 * i64::from(TERM);
            let from = head - random.i64(2_000..32_000);
            // Only sent data can be missing.
            let mut place = stream.starts.partition_point(|&start| start < from);
            while stream.end_of(stream.starts[place]).unwrap() > head {
                place -= 1;
            }
            stream.missing = stream.starts[place];
            let frame = stream.end_of(stream.missing).unwrap() - stream.missing;
            let limit = stream.missing + i64::from(TERM / 2);
            let mut now_ns = 0;
            // The allowance is gone before.
            retransmits.bucket.available(0);
            retransmits.bucket.consume(MIN_BYTES_PER_SECOND);
            for cycle in 0..20_000 {
                now_ns += CYCLE_NS;
                let oldest = head - WINDOW;
                for _ in 0..forged_per_cycle {
                    retransmits.on_nak(ask(&mut random, &stream, oldest, head), now_ns);
                }
                if cycle > 300 && cycle % 100 == 1 {
                    stream.since.get_or_insert(0);
                    retransmits.on_nak(range(stream.missing, frame), now_ns);
                }
                for _ in 0..forged_per_cycle {
                    retransmits.on_nak(ask(&mut random, &stream, oldest, head), now_ns);
                }
                if cycle == 300 {
                    stream.is_served = false;
                }
                retransmits.poll(now_ns, |rest, _| stream.resend(rest, oldest));
                if cycle > 300 && stream.is_served {
                    break;
                }
                if moves && head + 1_408 <= limit && cycle % 8 == 0 {
                    head += 1_408;
                    retransmits.on_data_sent(1_408);
                }
            }
            prop_assert!(stream.is_served, "never");
            let since = stream.since.unwrap_or(0);
            prop_assert!(since <= 2 * WINDOW + i64::from(MAX_BATCH_BYTES), "after {since} bytes");
        }
    }
}
