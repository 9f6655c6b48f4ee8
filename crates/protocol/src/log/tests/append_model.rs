// SPDX-License-Identifier: Apache-2.0
//! Random operations against a model: messages are polled whole and in order across several rotations.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Parts(Vec<usize>),
    Claim(usize, bool),
    Padding(usize),
    Poll(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![3 => 0usize..400, 1 => 1300usize..1500, 1 => 0usize..=8192];
    prop_oneof![
        4 => length().prop_map(Step::Append),
        2 => proptest::collection::vec(0usize..2000, 0..4).prop_map(Step::Parts),
        2 => (0usize..=1376, any::<bool>()).prop_map(|(length, commit)| Step::Claim(length, commit)),
        1 => (0usize..4000).prop_map(Step::Padding),
        3 => (1usize..40).prop_map(Step::Poll),
    ]
}

/// Common interface of both appenders.
enum Appender {
    Shared(SharedAppender),
    Exclusive(ExclusiveAppender),
}

impl Appender {
    fn log(&self) -> &LogBuffers {
        match self {
            Self::Shared(appender) => appender.log(),
            Self::Exclusive(appender) => appender.log(),
        }
    }

    fn position(&self) -> i64 {
        match self {
            Self::Shared(appender) => appender.tail().unwrap().position(),
            Self::Exclusive(appender) => appender.position(),
        }
    }

    fn append(&mut self, parts: &[&[u8]]) -> Result<i64, AppendError> {
        match self {
            Self::Shared(appender) => appender.append_parts(appender.tail().unwrap(), parts, None),
            Self::Exclusive(appender) => appender.append_parts(parts, None),
        }
    }

    fn claim(&mut self, length: usize) -> Result<FrameClaim<'_>, AppendError> {
        match self {
            Self::Shared(appender) => appender.claim(appender.tail().unwrap(), length),
            Self::Exclusive(appender) => appender.claim(length),
        }
    }

    fn pad(&mut self, length: usize) -> Result<i64, AppendError> {
        match self {
            Self::Shared(appender) => Ok(appender.tail().unwrap().position()),
            Self::Exclusive(appender) => appender.append_padding(length),
        }
    }
}

/// Appender with its log, the model and a subscriber.
struct ModelTest {
    appender: Appender,
    expected: VecDeque<Vec<u8>>,
    next_byte: u8,
    position: i64,
    clean: i64,
    partial: Vec<u8>,
}

impl ModelTest {
    fn new(appender: Appender, position: i64) -> Self {
        let (expected, partial) = (VecDeque::new(), Vec::new());
        Self {
            appender,
            expected,
            next_byte: 0,
            position,
            clean: position,
            partial,
        }
    }

    fn message(&mut self, length: usize) -> Vec<u8> {
        self.next_byte = self.next_byte.wrapping_add(1);
        let first = self.next_byte;
        (0..length)
            .map(|index| first.wrapping_add((index % 251) as u8))
            .collect()
    }

    /// Appends a message given in parts, and retries once after a rotation.
    fn offer(&mut self, message: Vec<u8>, parts: &[usize]) {
        let mut rest = &message[..];
        let mut cut = Vec::new();
        for &part in parts {
            let (head, tail) = rest.split_at(part);
            cut.push(head);
            rest = tail;
        }
        cut.push(rest);
        let result = match self.appender.append(&cut) {
            Err(AppendError::AdminAction) => self.appender.append(&cut),
            other => other,
        };
        assert_eq!(result.unwrap(), self.appender.position());
        self.expected.push_back(message);
    }

    fn claim(&mut self, length: usize, commit: bool) {
        let message = self.message(length);
        let mut attempts = 2;
        let position = loop {
            match self.appender.claim(length) {
                Ok(mut claim) if commit => {
                    claim.copy_from_slice(&message);
                    break claim.commit();
                }
                Ok(claim) => break claim.position(),
                Err(error) => assert_eq!(error, AppendError::AdminAction),
            }
            attempts -= 1;
            assert!(attempts > 0, "a log rotates at most once per append");
        };
        assert_eq!(position, self.appender.position());
        if commit {
            self.expected.push_back(message);
        }
    }

    fn poll(&mut self, limit: usize) {
        let log = self.appender.log();
        let geometry = log.geometry();
        let (expected, partial) = (&mut self.expected, &mut self.partial);
        let term = log.term_at(self.position);
        let offset = geometry.term_offset(self.position);
        let polled = poll(term, offset, limit, |frame| {
            let header = frame.header();
            assert_eq!(header.term_id.get(), geometry.term_id(self.position));
            assert_eq!(
                (header.term_offset.get(), header.session_id.get()),
                (frame.offset(), SESSION)
            );
            if frame.flags() & DataHeader::BEGIN != 0 {
                assert!(partial.is_empty());
            }
            partial.extend_from_slice(frame.payload());
            if frame.flags() & DataHeader::END != 0 {
                assert_eq!(Some(std::mem::take(partial)), expected.pop_front());
            }
        })
        .unwrap();
        self.position += i64::from(polled.offset - offset);
        // As the driver does, clean behind the subscriber, so that a partition is zero when it is reused.
        while self.clean < self.position && !log.clears_ahead() {
            let clean = log.clean(self.clean, self.position);
            if clean == self.clean {
                break;
            }
            self.clean = clean;
        }
    }

    fn run(&mut self, steps: Vec<Step>) {
        for step in steps {
            // Publisher limit: half a term ahead of the subscriber.
            while self.appender.position() > self.position + i64::from(TERM_LENGTH / 2) {
                self.poll(10);
            }
            match step {
                Step::Append(length) => {
                    let message = self.message(length);
                    self.offer(message, &[]);
                }
                Step::Parts(parts) => {
                    let message = self.message(parts.iter().sum());
                    self.offer(message, &parts);
                }
                Step::Claim(length, commit) => self.claim(length, commit),
                Step::Padding(length) => {
                    if self.appender.pad(length) == Err(AppendError::AdminAction) {
                        self.appender.pad(length).unwrap();
                    }
                }
                Step::Poll(limit) => self.poll(limit),
            }
        }
        while self.position < self.appender.position() {
            self.poll(100);
        }
        assert!(self.expected.is_empty() && self.partial.is_empty());
        assert_eq!(self.position, self.appender.log().producer_position());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn append_random_messages_are_polled_unchanged(
        steps in proptest::collection::vec(step(), 1..400),
        start_term in prop_oneof![Just(0i64), Just(5), Just((1 << 31) - 400)],
        start_offset in 0i64..2048, exclusive in any::<bool>()
    ) {
        let position = start_term * i64::from(TERM_LENGTH) + start_offset * 32;
        let appender = if exclusive {
            let log = new_log(LogKind::Exclusive, position);
            fill_with_old_frames(&log, position);
            Appender::Exclusive(ExclusiveAppender::new(log).unwrap())
        } else {
            Appender::Shared(SharedAppender::new(new_log(LogKind::Concurrent, position)))
        };
        ModelTest::new(appender, position).run(steps);
    }
}

#[test]
fn append_from_many_threads_keeps_order_per_thread() {
    const THREADS: u8 = 3;
    const MESSAGES: u32 = 20_000;
    let appender = SharedAppender::new(log());
    let limit = taran_core::sync::AtomicI64::new(i64::from(TERM_LENGTH / 2));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (appender, limit) = (appender.clone(), &limit);
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let length = 5 + (number as usize * 37) % 1900;
                    let mut message = vec![thread; length];
                    message[1..5].copy_from_slice(&number.to_le_bytes());
                    loop {
                        let limit = limit.load(Ordering::Acquire);
                        let Some(tail) = appender.tail() else {
                            continue;
                        };
                        if tail.position() < limit && appender.append(tail, &message, None).is_ok()
                        {
                            break;
                        }
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; THREADS as usize];
        let mut partial = Vec::new();
        let (log, mut position) = (appender.log(), 0i64);
        while next != [MESSAGES; THREADS as usize] {
            let offset = log.geometry().term_offset(position);
            let polled = poll(log.term_at(position), offset, 100, |frame| {
                partial.extend_from_slice(frame.payload());
                if frame.flags() & DataHeader::END != 0 {
                    let message = std::mem::take(&mut partial);
                    let thread = message[0];
                    let number = u32::from_le_bytes(message[1..5].try_into().unwrap());
                    assert_eq!(number, next[usize::from(thread)]);
                    assert_eq!(message.len(), 5 + (number as usize * 37) % 1900);
                    assert!(message[5..].iter().all(|&byte| byte == thread));
                    next[usize::from(thread)] += 1;
                }
            })
            .unwrap();
            let end = position + i64::from(polled.offset - offset);
            while position < end {
                position = log.clean(position, end);
            }
            limit.store(position + i64::from(TERM_LENGTH / 2), Ordering::Release);
            if polled.fragments == 0 {
                std::thread::yield_now();
            }
        }
        assert!(log.active_term_count() > 100);
    });
}
