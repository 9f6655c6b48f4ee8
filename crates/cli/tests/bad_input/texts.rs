// SPDX-License-Identifier: Apache-2.0
//! Assertions on error texts.

use std::fmt::Display;

use taran::{CommandError, ErrorCode, RegistrationError};

/// Checks that the text contains all parts.
#[track_caller]
pub(crate) fn assert_says(error: &impl Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// Returns the driver's rejection of a command.
#[track_caller]
pub(crate) fn rejection<T>(result: Result<T, CommandError>) -> RegistrationError {
    match result {
        Ok(_) => panic!("the command was accepted"),
        Err(CommandError::Registration(rejected)) => rejected,
        Err(other) => panic!("not rejected by the driver: {other}"),
    }
}

/// Checks that the driver rejects the command with this code, and that the text contains all parts.
#[track_caller]
pub(crate) fn assert_rejected<T>(result: Result<T, CommandError>, code: ErrorCode, parts: &[&str]) {
    let rejected = rejection(result);
    assert_eq!(rejected.code, code, "{rejected}");
    assert_says(&rejected, parts);
}
