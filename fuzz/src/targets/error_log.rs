// SPDX-License-Identifier: Apache-2.0
//! The distinct error log as tools read it: arbitrary bytes, and a damaged log that a driver continues to write.

use taran_core::error_log::{self, ErrorLog};

use crate::{allocation, memory};

/// Length of an error's header.
const HEADER_LENGTH: usize = 24;

/// Reads a log, then the rest of it behind what a driver has just written.
pub fn run(bytes: &[u8]) {
    let Some(region) = memory::region(bytes) else {
        return;
    };
    let budget = 2 * bytes.len() + 64;
    let mut last = i64::MIN;
    let visited = allocation::within(budget, || {
        error_log::read(&region, i64::MIN, |error| {
            assert!(error.text.is_ascii() && error.text.len() <= bytes.len());
            last = last.max(error.last_ms);
        })
    });
    assert!(visited <= bytes.len().div_ceil(HEADER_LENGTH));
    let since = error_log::read(&region, last, |error| assert!(error.last_ms >= last));
    assert!(since <= visited);

    // A driver that starts with a damaged file: its record can be read, whatever bytes follow.
    let mut log = ErrorLog::open(region.clone());
    if log.record(7, 1, "first").is_ok() {
        let mut texts = Vec::new();
        error_log::read(&region, i64::MIN, |error| texts.push(error.text.clone()));
        assert_eq!(texts.first().map(String::as_str), Some("first"));
    }
}
