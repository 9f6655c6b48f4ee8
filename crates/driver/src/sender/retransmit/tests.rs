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

fn stretch(position: i64, length: i64) -> StreamRange {
    StreamRange { position, length }
}

/// What a turn sends again, at most 1000 bytes of each stretch.
fn turn(retransmits: &mut RetransmitHandler, now_ns: i64) -> Vec<StreamRange> {
    let mut sent = Vec::new();
    retransmits.poll(now_ns, |rest, _| {
        sent.push(stretch(rest.position, rest.length.min(1000)));
        RetransmitOutcome::Sent(rest.length.min(1000))
    });
    sent
}

#[test]
fn a_nak_is_answered_at_once_and_its_repetition_ignored_until_linger_ends() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(
        retransmits.on_nak(stretch(64, 320), 0),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 0), [stretch(64, 320)]);
    assert_eq!(turn(&mut retransmits, 1), []);
    assert_eq!(
        retransmits.on_nak(stretch(64, 320), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(stretch(128, 32), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(stretch(64, 320), 10 * MS + 1),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 10 * MS + 1), [stretch(64, 320)]);
}

#[test]
fn a_long_answer_takes_several_turns() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 0),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 0), [stretch(0, 1000)]);
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 0),
        NakOutcome::Suppressed
    );
    assert_eq!(turn(&mut retransmits, 1), [stretch(1000, 1000)]);
    assert_eq!(turn(&mut retransmits, 2), [stretch(2000, 500)]);
    assert_eq!(turn(&mut retransmits, 3), []);
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 10 * MS),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 10 * MS + 1),
        NakOutcome::Accepted
    );
}

#[test]
fn what_cannot_be_sent_is_left_to_the_next_nak() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 0),
        NakOutcome::Accepted
    );
    retransmits.poll(0, |_, _| RetransmitOutcome::Blocked(0));
    assert_eq!(turn(&mut retransmits, 1), []);
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 1),
        NakOutcome::Accepted
    );
    retransmits.poll(1, |_, _| RetransmitOutcome::Blocked(1000));
    assert_eq!(
        retransmits.on_nak(stretch(0, 1000), 2),
        NakOutcome::Suppressed
    );
    assert_eq!(
        retransmits.on_nak(stretch(0, 2500), 2),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 2), [stretch(1000, 1000)]);
}

#[test]
fn an_answer_of_nothing_is_no_answer() {
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    retransmits.on_nak(stretch(0, 64), 0);
    retransmits.poll(0, |_, _| RetransmitOutcome::Blocked(0));
    assert!(!retransmits.is_pending());
    assert_eq!(retransmits.on_nak(stretch(0, 64), 0), NakOutcome::Accepted);
}

#[test]
fn unicast_turns_to_the_newest_nak() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    assert_eq!(retransmits.on_nak(stretch(0, 64), 0), NakOutcome::Accepted);
    turn(&mut retransmits, 0);
    assert_eq!(
        retransmits.on_nak(stretch(640, 64), 1),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 1), [stretch(640, 64)]);
}

#[test]
fn more_than_can_be_kept_apart_become_one_with_what_lies_between() {
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    for (position, verdict) in [
        (0, NakOutcome::Accepted),
        (1_000, NakOutcome::Accepted),
        (5_000, NakOutcome::Accepted),
        (2_000, NakOutcome::Accepted),
        (5_200, NakOutcome::Overflow),
        (8_000, NakOutcome::Overflow),
    ] {
        assert_eq!(retransmits.on_nak(stretch(position, 64), 0), verdict);
    }
    let sent = turn(&mut retransmits, 0);
    assert_eq!(
        sent,
        [
            stretch(0, 1_000),
            stretch(1_000, 64),
            stretch(2_000, 64),
            stretch(5_000, 264),
        ]
    );
    assert_eq!(turn(&mut retransmits, 0), [stretch(8_000, 64)]);
}

#[test]
fn what_follows_an_answer_is_not_suppressed_with_it() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    retransmits.on_nak(stretch(640, 64), 0);
    turn(&mut retransmits, 0);
    assert_eq!(
        retransmits.on_nak(stretch(640, 320), 1),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 1), [stretch(704, 256)]);
    retransmits.on_nak(stretch(1_280, 64), 1);
    assert_eq!(
        retransmits.on_nak(stretch(1_280, 320), 1),
        NakOutcome::Accepted
    );
    assert_eq!(turn(&mut retransmits, 1), [stretch(1_280, 320)]);
}

#[test]
fn what_was_passed_waits_for_the_next_lap() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 1 << 30);
    let mut expected = 0;
    for number in 0..10 {
        // Nothing lingers.
        let now_ns = number * 20 * MS;
        retransmits.on_nak(stretch(0, 3_000), now_ns);
        for sent in turn(&mut retransmits, now_ns) {
            assert_eq!(sent, stretch(expected, 1_000));
            expected = (expected + 1_000) % 3_000;
        }
    }
}

#[test]
fn the_answers_of_a_group_share_the_bytes_of_a_turn() {
    let long = i64::from(MAX_BATCH_BYTES);
    let mut retransmits = RetransmitHandler::new(GROUP, 1 << 30);
    retransmits.on_nak(stretch(0, 2 * long), 0);
    retransmits.on_nak(stretch(4 * long, 64), 0);
    let mut turn = || {
        let mut sent = Vec::new();
        retransmits.poll(0, |rest, _| {
            sent.push((rest.position, rest.length.min(long)));
            RetransmitOutcome::Sent(rest.length.min(long))
        });
        sent
    };
    assert_eq!(turn(), [(0, long)]);
    assert_eq!(turn(), [(long, long)]);
    assert_eq!(turn(), [(4 * long, 64)]);
}

#[test]
fn a_delay_is_waited_for_strictly() {
    let mut retransmits = RetransmitHandler::new(
        RetransmitSpec {
            delay_ns: 5,
            ..UNICAST
        },
        1 << 30,
    );
    assert_eq!(retransmits.on_nak(stretch(0, 64), 0), NakOutcome::Accepted);
    assert_eq!(turn(&mut retransmits, 5), []);
    assert_eq!(
        retransmits.on_nak(stretch(0, 64), 5),
        NakOutcome::Suppressed
    );
    assert_eq!(turn(&mut retransmits, 6), [stretch(0, 64)]);
}

#[test]
fn what_is_sent_again_is_limited_by_what_is_sent_and_by_time() {
    let mut retransmits = RetransmitHandler::new(UNICAST, 64 * 1024);
    let ask = |retransmits: &mut RetransmitHandler, from: i64, count: i64, now_ns: i64| {
        let mut sent = 0;
        for number in from..from + count {
            // Each for something else.
            retransmits.on_nak(stretch(number * 1_000, 1_000), now_ns);
            sent += turn(retransmits, now_ns)
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
        retransmits.on_nak(stretch(3_000_000, 1_000), 0),
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

/// A stream of frames, a forger who asks for whatever he likes, and a receiver who misses one frame.
mod forger {
    use proptest::prelude::*;

    use super::*;

    const TERM: i32 = 1 << 16;
    /// So much of the stream can be sent again.
    const WINDOW: i64 = (TERM / 2 + TERM / 8) as i64;
    const TURN_NS: i64 = MS / 10;

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

        /// As the sender does: whole frames, so many as go into a train.
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
        stretch(position, length.min(most))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn does_not_keep_a_receiver_from_what_it_misses(
            seed in any::<u64>(),
            max_actions in prop_oneof![Just(1), Just(2), Just(16)],
            forged_per_turn in 1_usize..40,
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
            // Nobody misses what has not been sent.
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
            for turn in 0..20_000 {
                now_ns += TURN_NS;
                let oldest = head - WINDOW;
                for _ in 0..forged_per_turn {
                    retransmits.on_nak(ask(&mut random, &stream, oldest, head), now_ns);
                }
                if turn > 300 && turn % 100 == 1 {
                    stream.since.get_or_insert(0);
                    retransmits.on_nak(stretch(stream.missing, frame), now_ns);
                }
                for _ in 0..forged_per_turn {
                    retransmits.on_nak(ask(&mut random, &stream, oldest, head), now_ns);
                }
                if turn == 300 {
                    stream.is_served = false;
                }
                retransmits.poll(now_ns, |rest, _| stream.resend(rest, oldest));
                if turn > 300 && stream.is_served {
                    break;
                }
                if moves && head + 1_408 <= limit && turn % 8 == 0 {
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
