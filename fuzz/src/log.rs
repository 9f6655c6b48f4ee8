// SPDX-License-Identifier: Apache-2.0
//! Writes of a hostile process to a log buffer, generated from scripts.

use taran::{Header, Subscription};
use taran_core::memory::Region;
use taran_protocol::log::LOG_METADATA_LENGTH;

use crate::script::Script;

/// Term length of most logs here, in bytes.
pub const TERM_LENGTH: i32 = 64 * 1024;
/// Interesting positions.
pub const POSITIONS: [i64; 8] = [0, 32, 65_504, 65_536, 131_072, 1 << 47, -32, i64::MAX];

const OFFSETS: [i64; 6] = [0, 32, 64, 1024, 32_768, 65_504];
const LENGTHS: [i64; 10] = [0, 32, 33, 64, 1024, -64, 31, 65_536, 65_472, 1_408];

/// Writes a frame header anywhere in a term: length, flags, type and position.
pub fn frame(log: &Region, script: &mut Script<'_>) {
    let partition = script.below(3);
    let term_length = (log.len() - LOG_METADATA_LENGTH) / 3;
    let offset = script.near(&OFFSETS) as usize & (term_length - 32);
    let at = partition * term_length + offset;
    let kind = script.u8();
    let length = script.near(&LENGTHS) as i32;
    if kind & 8 == 0 {
        log.write(at + 4, &[0, kind & 0xF0, kind & 1, 0]);
        log.write(at + 8, &(offset as i32).to_le_bytes());
        log.write(at + 20, &(script.near(&[0, 1, 2, -1]) as i32).to_le_bytes());
    }
    log.write(at, &length.to_le_bytes());
}

/// Writes a field of the log metadata.
pub fn metadata(log: &Region, script: &mut Script<'_>) {
    const FIELDS: [usize; 16] = [
        0, 8, 16, 24, 128, 136, 140, 256, 264, 272, 276, 280, 284, 320, 464, 496,
    ];
    let start = log.len() - LOG_METADATA_LENGTH;
    let at = match script.u8() {
        known @ 0..0x80 => FIELDS[usize::from(known) % FIELDS.len()],
        _ => usize::from(script.u16() & 0xFF8),
    };
    let value = match script.u8() {
        0..0x80 => script.near(&POSITIONS),
        // A raw tail: term id above, offset below.
        _ => {
            script.near(&[0, 1, -1, i64::from(i32::MAX)]) << 32
                | (script.near(&OFFSETS) & 0xFFFF_FFFF)
        }
    };
    log.write(start + at, &value.to_le_bytes());
}

/// Polls a subscription and checks that all fragments are within the bounds of their term.
///
/// # Panics
/// If one is not.
pub fn poll(subscription: &mut Subscription, mut each: impl FnMut(&Header<'_>)) {
    let polled = subscription.poll(
        |part, header| {
            assert_eq!(header.frame_length() as usize, part.len() + 32);
            assert!(part.len() + 32 <= header.image().term_length());
            each(header);
        },
        32,
    );
    assert!(polled.is_ok());
}
