// SPDX-License-Identifier: Apache-2.0
//! Tests of both rings against a model, and of the behaviour in which they differ.

mod hostile;
mod layout;
mod model;
mod stress;
mod unblock;

use super::{TRAILER_LENGTH, many_to_one, one_to_one};
use crate::{memory::Region, sync::Ordering};

/// Offsets of the trailer's fields, repeated here so that the tests do not depend on the code.
const TAIL: usize = 128;
const HEAD_CACHE: usize = 256;
const HEAD: usize = 384;

/// Returns the memory of a new ring.
fn ring(capacity: usize) -> Region {
    Region::anonymous(capacity + TRAILER_LENGTH).unwrap()
}

fn many_to_one(region: &Region) -> (many_to_one::Producer, many_to_one::Consumer) {
    (
        many_to_one::Producer::open(region).unwrap(),
        many_to_one::Consumer::open(region).unwrap(),
    )
}

fn one_to_one(region: &Region) -> (one_to_one::Producer, one_to_one::Consumer) {
    (
        one_to_one::Producer::open(region).unwrap(),
        one_to_one::Consumer::open(region).unwrap(),
    )
}

fn word(region: &Region, offset: usize) -> i32 {
    region.atomic_i32(offset).load(Ordering::Relaxed)
}

fn set_word(region: &Region, offset: usize, value: i32) {
    region.atomic_i32(offset).store(value, Ordering::Relaxed);
}

fn trailer(region: &Region, field: usize) -> i64 {
    region
        .atomic_i64(region.len() - TRAILER_LENGTH + field)
        .load(Ordering::Relaxed)
}

fn set_trailer(region: &Region, field: usize, value: i64) {
    region
        .atomic_i64(region.len() - TRAILER_LENGTH + field)
        .store(value, Ordering::Relaxed);
}

/// Reads once and returns the messages.
fn drain(consumer: &mut many_to_one::Consumer) -> Vec<(i32, Vec<u8>)> {
    let mut messages = Vec::new();
    consumer
        .read(usize::MAX, |type_id, payload| {
            messages.push((type_id, payload.to_vec()));
        })
        .unwrap();
    messages
}
