// SPDX-License-Identifier: Apache-2.0
//! Messages with contents derived from their number, as in the official clients of the interop project.

/// Message lengths, used in rotation. The longest takes several frames.
pub(crate) const LENGTHS: &[usize] = &[64, 300, 1_000, 17, 5_000];

/// Lengths of messages that are echoed frame by frame: each fits one frame.
pub(crate) const SHORT: &[usize] = &[64, 300, 1_000, 17];

/// Returns message `number` of a stream with these lengths.
pub(crate) fn message(lengths: &[usize], number: u64) -> Vec<u8> {
    let length = lengths[(number % lengths.len() as u64) as usize];
    let byte = |index: usize| (number.wrapping_mul(31)).wrapping_add(index as u64 * 7) as u8;
    (0..length).map(byte).collect()
}

/// Returns the number of a message that is `next` or follows it. Contents repeat after 256 messages per length; the
/// result is unique if fewer messages are missing.
pub(crate) fn number_of(bytes: &[u8], lengths: &[usize], next: u64) -> Option<u64> {
    let repeats = 256 * lengths.len() as u64;
    (next..next + repeats).find(|number| {
        bytes.first() == Some(&(number.wrapping_mul(31) as u8))
            && bytes == message(lengths, *number)
    })
}
