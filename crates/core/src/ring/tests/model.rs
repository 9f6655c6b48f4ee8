// SPDX-License-Identifier: Apache-2.0
//! Property tests: both rings behave as a bounded queue of messages for any order of calls.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::{super::*, *};

#[derive(Clone, Debug)]
enum Call {
    Write { length: usize },
    Abort { length: usize },
    Read { limit: usize, action: Action },
    Unblock,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let action = prop_oneof![
        4 => Just(Action::Continue),
        1 => Just(Action::Abort),
        1 => Just(Action::Break),
        1 => Just(Action::Commit),
    ];
    let call = prop_oneof![
        6 => (0_usize..40).prop_map(|length| Call::Write { length }),
        1 => (0_usize..33).prop_map(|length| Call::Abort { length }),
        4 => (0_usize..5, action).prop_map(|(limit, action)| Call::Read { limit, action }),
        1 => Just(Call::Unblock),
    ];
    prop::collection::vec(call, 0..300)
}

/// The operations that both kinds of ring share.
trait Ring {
    fn write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), WriteError>;
    fn abort(&mut self, length: usize) -> Result<(), WriteError>;
    fn read(
        &mut self,
        limit: usize,
        handler: &mut dyn FnMut(i32, &[u8]) -> Action,
    ) -> Result<usize, Corrupt>;
    fn unblock(&mut self) -> bool;
    fn positions(&self) -> (i64, i64);
}

impl Ring for (many_to_one::Producer, many_to_one::Consumer) {
    fn write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), WriteError> {
        self.0.write(type_id, payload)
    }
    fn abort(&mut self, length: usize) -> Result<(), WriteError> {
        self.0.try_claim(1, length).map(drop)
    }
    fn read(
        &mut self,
        limit: usize,
        handler: &mut dyn FnMut(i32, &[u8]) -> Action,
    ) -> Result<usize, Corrupt> {
        self.1.controlled_read(limit, handler)
    }
    fn unblock(&mut self) -> bool {
        self.1.unblock()
    }
    fn positions(&self) -> (i64, i64) {
        (self.1.head(), self.1.tail())
    }
}

impl Ring for (one_to_one::Producer, one_to_one::Consumer) {
    fn write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), WriteError> {
        self.0.write(type_id, payload)
    }
    fn abort(&mut self, length: usize) -> Result<(), WriteError> {
        self.0.try_claim(1, length).map(drop)
    }
    fn read(
        &mut self,
        limit: usize,
        handler: &mut dyn FnMut(i32, &[u8]) -> Action,
    ) -> Result<usize, Corrupt> {
        self.1.controlled_read(limit, handler)
    }
    fn unblock(&mut self) -> bool {
        false
    }
    fn positions(&self) -> (i64, i64) {
        (self.1.head(), self.1.tail())
    }
}

const CAPACITY: usize = 256;

fn check(mut ring: impl Ring, calls: Vec<Call>) -> Result<(), TestCaseError> {
    let mut model = VecDeque::new();
    let mut number = 0_i32;
    for call in calls {
        match call {
            Call::Write { length } => {
                number += 1;
                let payload: Vec<u8> = (0..length)
                    .map(|byte| (byte as i32 + number) as u8)
                    .collect();
                match ring.write(number, &payload) {
                    Ok(()) => model.push_back((number, payload)),
                    Err(WriteError::TooLong { .. }) => prop_assert!(length > CAPACITY / 8),
                    Err(WriteError::Full) => {
                        let (head, tail) = ring.positions();
                        prop_assert!(tail > head, "an empty ring takes any message");
                    }
                    Err(error) => prop_assert!(false, "{}", error),
                }
            }
            Call::Abort { length } => {
                prop_assert!(matches!(ring.abort(length), Ok(()) | Err(WriteError::Full)));
            }
            Call::Read { limit, action } => {
                let mut seen = Vec::new();
                let count = ring.read(limit, &mut |type_id, payload| {
                    seen.push((type_id, payload.to_vec()));
                    action
                });
                prop_assert!(seen.len() <= limit);
                let expected: Vec<_> = model.iter().take(seen.len()).cloned().collect();
                prop_assert_eq!(&expected, &seen);
                let consumed = if action == Action::Abort {
                    0
                } else {
                    seen.len()
                };
                prop_assert_eq!(Ok(consumed), count);
                model.drain(..consumed);
            }
            Call::Unblock => prop_assert!(!ring.unblock(), "no producer is blocked"),
        }
        let (head, tail) = ring.positions();
        prop_assert!((0..=CAPACITY as i64).contains(&(tail - head)));
    }
    while ring.positions().0 != ring.positions().1 {
        ring.read(usize::MAX, &mut |type_id, payload| {
            assert_eq!(Some((type_id, payload.to_vec())), model.pop_front());
            Action::Continue
        })?;
    }
    prop_assert!(model.is_empty());
    Ok(())
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn many_to_one_is_a_queue(calls in calls()) {
        check(many_to_one(&ring(CAPACITY)), calls)?;
    }

    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn one_to_one_is_a_queue(calls in calls()) {
        check(one_to_one(&ring(CAPACITY)), calls)?;
    }
}
