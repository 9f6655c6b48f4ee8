//! The making of errors, kept out of the way of messages that have none.

use super::DecodeError;

/// Gives back what it gets. What an error needs is put together where it is called, and that is never where messages
/// without errors come along: nothing of it is computed ahead of the check.
#[cold]
#[inline(never)]
const fn aside<T: Copy>(parts: T) -> T {
    parts
}

#[inline(always)]
pub(super) const fn wrong_schema(expected: u64, actual: u64) -> DecodeError {
    let (expected, actual) = aside((expected, actual));
    DecodeError::WrongSchema { expected, actual }
}

#[inline(always)]
pub(super) const fn wrong_template(expected: u64, actual: u64) -> DecodeError {
    let (expected, actual) = aside((expected, actual));
    DecodeError::WrongTemplate { expected, actual }
}

#[inline(always)]
pub(super) const fn short(what: &'static str, needed: u64, actual: usize) -> DecodeError {
    let (what, needed, actual) = aside((what, needed, actual));
    DecodeError::Short {
        what,
        needed,
        actual,
    }
}

#[inline(always)]
pub(super) const fn block_too_short(what: &'static str, needed: usize, actual: u64) -> DecodeError {
    let (what, needed, actual) = aside((what, needed, actual));
    DecodeError::BlockTooShort {
        what,
        needed,
        actual,
    }
}

#[inline(always)]
pub(super) const fn bad_count(
    what: &'static str,
    (min, max): (u64, u64),
    actual: u64,
) -> DecodeError {
    let (what, min, max, actual) = aside((what, min, max, actual));
    DecodeError::BadCount {
        what,
        min,
        max,
        actual,
    }
}

#[inline(always)]
pub(super) const fn too_long(what: &'static str, max: u64, actual: u64) -> DecodeError {
    let (what, max, actual) = aside((what, max, actual));
    DecodeError::TooLong { what, max, actual }
}
