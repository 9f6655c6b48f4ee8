// SPDX-License-Identifier: Apache-2.0
//! Construction of errors in cold functions, outside of the path of valid messages.

use super::DecodeError;

/// Returns its argument. Being cold, it keeps the construction of an error out of the path of valid messages: no part
/// of the error is computed ahead of the check.
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
