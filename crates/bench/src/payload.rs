//! What a benchmark message carries: when it was due, which one it is, and bytes that show any damage.

/// Bytes of the timestamp and the sequence number: the shortest message.
pub const MIN_LENGTH: usize = 16;

/// Writes message `sequence`, due at `due_ns`, over the whole of `message` (at least [`MIN_LENGTH`] bytes).
#[inline]
pub fn write(message: &mut [u8], due_ns: i64, sequence: u64) {
    let (head, body) = message.split_at_mut(MIN_LENGTH);
    head[..8].copy_from_slice(&due_ns.to_le_bytes());
    head[8..].copy_from_slice(&sequence.to_le_bytes());
    // Word by word: most messages are too short to be worth a call.
    let word = [filler(sequence); 8];
    let mut words = body.chunks_exact_mut(word.len());
    for part in &mut words {
        part.copy_from_slice(&word);
    }
    for byte in words.into_remainder() {
        *byte = filler(sequence);
    }
}

/// Why a message that came back is not the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The message has another length than was sent.
    Length(usize),
    /// A byte after the header differs from what was sent.
    Content,
}

/// The due time and sequence number of a message of `length` bytes, or what is wrong with it.
///
/// # Errors
/// [`Damage`] where the length or a byte is not what [`write()`] made.
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
    let wanted = filler(sequence);
    // One pass without a branch per byte, which the compiler turns into vector code.
    let difference = body
        .iter()
        .fold(0, |difference, byte| difference | (byte ^ wanted));
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
    fn reads_what_was_written() {
        let mut message = vec![0; 288];
        write(&mut message, 42, 7);
        assert_eq!(read(&message, 288), Ok((42, 7)));
    }

    #[test]
    fn sees_damage() {
        let mut message = vec![0; 64];
        write(&mut message, 42, 7);
        assert_eq!(read(&message[..63], 64), Err(Damage::Length(63)));
        message[63] ^= 1;
        assert_eq!(read(&message, 64), Err(Damage::Content));
    }

    #[test]
    fn the_shortest_message_is_the_header() {
        let mut message = vec![0; MIN_LENGTH];
        write(&mut message, -1, u64::MAX);
        assert_eq!(read(&message, MIN_LENGTH), Ok((-1, u64::MAX)));
    }
}
