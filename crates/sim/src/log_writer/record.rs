// SPDX-License-Identifier: Apache-2.0
//! Records: length (u32), checksum (u64 at offset 8), sequence number (u64 at offset 16), payload.

/// Length of a segment file in bytes.
pub(super) const SEGMENT: usize = 4096;

/// Length of the header in bytes.
pub(super) const HEADER: usize = 24;

const ALIGNMENT: usize = 8;

/// Returns the length of a record in a segment.
pub(super) fn record_len(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(ALIGNMENT)
}

/// Returns a hash of the sequence number and the payload, by words of eight bytes.
fn checksum(sequence: u64, payload: &[u8]) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (words, rest) = payload.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let seed = mix(sequence, payload.len() as u64);
    mix(words.fold(seed, mix), u64::from_le_bytes(last))
}

/// Writes a record to the start of a buffer, and returns its length.
pub(super) fn encode(buffer: &mut [u8], sequence: u64, payload: &[u8]) -> usize {
    let len = record_len(payload.len());
    let record = &mut buffer[..len];
    record.fill(0);
    record[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    record[8..16].copy_from_slice(&checksum(sequence, payload).to_le_bytes());
    record[16..24].copy_from_slice(&sequence.to_le_bytes());
    record[HEADER..HEADER + payload.len()].copy_from_slice(payload);
    len
}

/// Returns payload and length of the record at the start of some bytes, if it is there and has this sequence number.
pub(super) fn decode(bytes: &[u8], sequence: u64, verify: bool) -> Option<(&[u8], usize)> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?);
    let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
    let payload = bytes.get(HEADER..HEADER.checked_add(len)?)?;
    let number = |offset: usize| Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?));
    let is_valid =
        number(16)? == sequence && (!verify || number(8)? == checksum(sequence, payload));
    is_valid.then(|| (payload, record_len(len)))
}
