// SPDX-License-Identifier: Apache-2.0
//! No publication is reported as not connected without a reason.
//!
//! Input: for each check whether a publication is connected, and the undisturbed subscribers that have an image of it;
//! the scenario knows these. Small windows, slow readers and link faults are not reasons.

use super::{Violation, violation};

/// Checks a publication that is no longer connected against its readers.
///
/// # Errors
/// It still has one.
pub fn check(
    was_connected: bool,
    is_connected: bool,
    readers: impl IntoIterator<Item = String>,
) -> Result<(), Violation> {
    if !was_connected || is_connected {
        return Ok(());
    }
    match readers.into_iter().next() {
        Some(reader) => violation!("a connection is lost without a reason: {reader} has an image"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_connection_with_a_reader_is_a_violation() {
        let reader = || ["a".to_owned()];
        check(true, true, reader()).unwrap();
        check(false, false, reader()).unwrap();
        check(true, false, []).unwrap();
        let Violation(found) = check(true, false, reader()).unwrap_err();
        assert!(found.contains("a has an image"), "{found}");
    }
}
