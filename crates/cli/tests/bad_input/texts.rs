//! What a text has to say.

use std::fmt::Display;

use taran::{AddError, ErrorCode, RegistrationError};

/// The text says all of this.
#[track_caller]
pub(crate) fn assert_says(error: &impl Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// The driver's refusal of a command.
#[track_caller]
pub(crate) fn refusal<T>(result: Result<T, AddError>) -> RegistrationError {
    match result {
        Ok(_) => panic!("nothing was refused"),
        Err(AddError::Registration(refused)) => refused,
        Err(other) => panic!("not refused by the driver: {other}"),
    }
}

/// The driver refuses with this code, and the text says all of this.
#[track_caller]
pub(crate) fn assert_refused<T>(result: Result<T, AddError>, code: ErrorCode, parts: &[&str]) {
    let refused = refusal(result);
    assert_eq!(refused.code, code, "{refused}");
    assert_says(&refused, parts);
}
