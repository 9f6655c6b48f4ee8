//! Messages: what they say is known from their number, as the official clients of the interop project have it.

/// Lengths of messages, in turn. The longest takes several frames.
pub(crate) const LENGTHS: &[usize] = &[64, 300, 1_000, 17, 5_000];

/// Of messages that are answered frame by frame: none takes more than one.
pub(crate) const SHORT: &[usize] = &[64, 300, 1_000, 17];

/// Message `number` of a stream with such lengths.
pub(crate) fn message(lengths: &[usize], number: u64) -> Vec<u8> {
    let length = lengths[(number % lengths.len() as u64) as usize];
    let byte = |index: usize| (number.wrapping_mul(31)).wrapping_add(index as u64 * 7) as u8;
    (0..length).map(byte).collect()
}

/// The number of a message that is `next` or comes after it. Bytes repeat after 256 messages and lengths after those
/// that there are: as long as fewer are missing there is one answer.
pub(crate) fn number_of(bytes: &[u8], lengths: &[usize], next: u64) -> Option<u64> {
    let repeats = 256 * lengths.len() as u64;
    (next..next + repeats).find(|number| {
        bytes.first() == Some(&(number.wrapping_mul(31) as u8))
            && bytes == message(lengths, *number)
    })
}
