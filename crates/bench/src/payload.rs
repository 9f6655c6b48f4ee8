// SPDX-License-Identifier: Apache-2.0
//! Payload of a benchmark message: due time, sequence number, and filler bytes that reveal damage.

/// Length of the due time and the sequence number; the minimum length of a message.
pub const MIN_LENGTH: usize = 16;

/// Writes message `sequence`, due at `due_ns`, over all of `message` (at least [`MIN_LENGTH`] bytes).
#[inline]
pub fn write(message: &mut [u8], due_ns: i64, sequence: u64) {
    let (head, body) = message.split_at_mut(MIN_LENGTH);
    head[..8].copy_from_slice(&due_ns.to_le_bytes());
    head[8..].copy_from_slice(&sequence.to_le_bytes());
    // Written in words of 8 bytes: most messages are too short for a call to pay off.
    let word = [filler(sequence); 8];
    let mut words = body.chunks_exact_mut(word.len());
    for part in &mut words {
        part.copy_from_slice(&word);
    }
    for byte in words.into_remainder() {
        *byte = filler(sequence);
    }
}

/// Difference between a received message and the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The length differs from the one that was sent.
    Length(usize),
    /// A byte after the header differs from what was sent.
    Content,
}

/// Returns the due time and the sequence number of a message of `length` bytes.
///
/// # Errors
/// [`Damage`] if the length or a byte differs from what [`write()`] wrote.
#[inline]
pub fn read(message: &[u8], length: usize) -> Result<(i64, u64), Damage> {
    if message.len() != length || length < MIN_LENGTH {
        return Err(Damage::Length(message.len()));
    }
    let (head, body) = message.split_at(MIN_LENGTH);
    let mut word = [0; 8];
    word.copy_from_slice(&head[..8]);
    let due_ns = i64::from_le_bytes(word);
    word.copy_from_slice(&head[8..]);
    let sequence = u64::from_le_bytes(word);
    let expected = filler(sequence);
    // One pass without a branch per byte, so that the compiler can vectorise it.
    let difference = body
        .iter()
        .fold(0, |difference, byte| difference | (byte ^ expected));
    if difference == 0 {
        Ok((due_ns, sequence))
    } else {
        Err(Damage::Content)
    }
}

#[inline]
fn filler(sequence: u64) -> u8 {
    (sequence % 251) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_after_write_returns_due_time_and_sequence() {
        let mut message = vec![0; 288];
        write(&mut message, 42, 7);
        assert_eq!(read(&message, 288), Ok((42, 7)));
    }

    #[test]
    fn read_of_damaged_message_fails() {
        let mut message = vec![0; 64];
        write(&mut message, 42, 7);
        assert_eq!(read(&message[..63], 64), Err(Damage::Length(63)));
        message[63] ^= 1;
        assert_eq!(read(&message, 64), Err(Damage::Content));
    }

    #[test]
    fn read_of_header_only_message_succeeds() {
        let mut message = vec![0; MIN_LENGTH];
        write(&mut message, -1, u64::MAX);
        assert_eq!(read(&message, MIN_LENGTH), Ok((-1, u64::MAX)));
    }
}
