// SPDX-License-Identifier: Apache-2.0
//! Unblocking a ring after a producer died between claim and commit, and repairing it after another process damaged it
//! (docs/spec/shared-memory.md §3.5).

use super::{
    Corrupt,
    layout::{Buffer, HEADER_LENGTH, PADDING, aligned},
    reader::Reader,
};
use crate::sync::Ordering;

/// Drops the contents of the ring if its tail, or the record at its head, is not one that a producer writes.
pub(super) fn repair(reader: &mut Reader<true>) -> Option<Corrupt> {
    let index = reader.index();
    // Loaded before the tail: if a producer stored it, the tail behind its claim is visible too.
    let length = reader.buffer.length(index).load(Ordering::Acquire);
    let is_sound = reader.claimed_block().is_some_and(|block| {
        let record = length.unsigned_abs() as usize;
        record == 0 || (HEADER_LENGTH..=block).contains(&record)
    });
    (!is_sound).then(|| reader.discard(length))
}

/// Turns the unpublished record at the head into padding.
pub(super) fn unblock(reader: &mut Reader<true>) -> bool {
    let Some(claimed) = reader.claimed() else {
        reader.discard(0);
        return true;
    };
    if claimed == 0 {
        return false;
    }
    let index = reader.index();
    let block = claimed.min(reader.buffer.to_end(index));
    // The partner is the release in `Buffer::begin`.
    let length = reader.buffer.length(index).load(Ordering::Acquire);
    if length > 0 {
        return false;
    }
    if length < 0 {
        let record = length.unsigned_abs() as usize;
        if record < HEADER_LENGTH || record > block {
            reader.discard(length);
        } else {
            reader.buffer.publish(index, length.wrapping_neg(), PADDING);
        }
        return true;
    }
    let Some(length) = unmarked(&reader.buffer, reader.head, block, claimed) else {
        return false;
    };
    reader.buffer.publish(index, length, PADDING);
    true
}

/// Returns the length of a claim at the head whose producer has not stored a length. It ends where the next record
/// begins, or at the end of the ring. None if the end is unknown; a later record will determine it.
fn unmarked(buffer: &Buffer, head: i64, block: usize, claimed: usize) -> Option<i32> {
    let is_zero = |offset: usize| {
        let index = buffer.index(head.wrapping_add(offset as i64));
        buffer.length(index).load(Ordering::Acquire) == 0
    };
    let next = (HEADER_LENGTH..claimed)
        .step_by(HEADER_LENGTH)
        .find(|offset| !is_zero(*offset));
    let length = match next {
        Some(next) => next.min(block),
        // There may be no later record: dead claims can fill the whole ring.
        None if is_full(buffer, head, claimed) => block,
        None => return None,
    };
    // Checked again, backwards: the producer may have continued meanwhile.
    let still = (0..length).step_by(HEADER_LENGTH).rev().all(is_zero);
    still.then(|| i32::try_from(length).ok()).flatten()
}

/// Returns true if the longest message fits neither at the tail nor at the beginning.
fn is_full(buffer: &Buffer, head: i64, claimed: usize) -> bool {
    let longest = aligned(HEADER_LENGTH + buffer.max_message_length());
    let to_end = buffer.to_end(buffer.index(head.wrapping_add(claimed as i64)));
    longest > buffer.capacity() - claimed
        || (longest > to_end && longest > buffer.index(head).offset())
}
