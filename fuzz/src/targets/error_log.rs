//! The distinct error log as tools read it: any bytes, and bytes beside which a driver goes on writing.

use taran_core::error_log::{self, ErrorLog};

use crate::{allocation, memory};

/// Of an error's header.
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

    // A driver that starts in a damaged file: what it writes is there, whatever follows.
    let mut log = ErrorLog::open(region.clone());
    if log.record(7, 1, "first").is_ok() {
        let mut texts = Vec::new();
        error_log::read(&region, i64::MIN, |error| texts.push(error.text.clone()));
        assert_eq!(texts.first().map(String::as_str), Some("first"));
    }
}
