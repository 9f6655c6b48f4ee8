// SPDX-License-Identifier: Apache-2.0
//! Execution of a scenario with capture of failures.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

use super::runner::Runner;
use super::{Coverage, Scenario, Suite};
use crate::World;

thread_local! {
    /// Message and location of the last panic of this thread.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Failure of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Description without numbers and names: equal for the same defect in different scenarios.
    pub kind: String,
    /// Full description.
    pub text: String,
}

/// Callback that inspects the world after each operation and panics on an error.
pub type Observer<'l> = &'l mut dyn FnMut(&World);

/// Installs a panic hook that captures message and location, and prints nothing on threads that shrink a scenario.
pub fn silence_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        LAST_PANIC.set(Some(info.to_string()));
        if !IS_SILENT.get() {
            before(info);
        }
    }));
}

/// Returns true if this thread suppresses panic output.
pub(crate) fn is_silent() -> bool {
    IS_SILENT.get()
}

/// Runs a function without panic output on this thread, after [`silence_panics`].
pub fn without_panic_output<R>(function: impl FnOnce() -> R) -> R {
    let before = IS_SILENT.replace(true);
    let result = function();
    IS_SILENT.set(before);
    result
}

/// Runs a scenario to its end.
///
/// # Errors
/// A check failed, or something panicked.
pub fn run(scenario: &Scenario) -> Result<Coverage, Failure> {
    Suite::streams().run(scenario)
}

/// The same; `observer` is called with the world after each operation.
///
/// # Errors
/// As [`run()`].
pub fn run_with(scenario: &Scenario, observer: Observer<'_>) -> Result<Coverage, Failure> {
    Suite::streams().run_with(scenario, observer)
}

/// Runs a scenario of a suite.
pub(super) fn run_suite(
    suite: &Suite,
    scenario: &Scenario,
    observer: Observer<'_>,
) -> Result<Coverage, Failure> {
    suite.check(scenario).map_err(|text| Failure {
        kind: failure_kind(&text),
        text,
    })?;
    LAST_PANIC.set(None);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut runner = Runner::new(suite, scenario);
        runner.apply_all(&scenario.ops, observer);
        runner.drain();
        runner.coverage
    }));
    outcome.map_err(|panic| {
        let text = LAST_PANIC.take().unwrap_or_else(|| panic_message(&*panic));
        Failure {
            kind: failure_kind(&text),
            text,
        }
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let literal = || panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(literal)
        .unwrap_or_else(|| "a panic".to_owned())
}

/// Returns a text without the parts that differ from case to case: numbers and bracketed parts. Uses the first line
/// that contains more than a location.
pub(super) fn failure_kind(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| !line.starts_with("thread ") && !line.starts_with("panicked at"));
    let mut kind = String::new();
    let mut depth = 0;
    for letter in line.unwrap_or(text).chars() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ if depth > 0 => {}
            '0'..='9' => {
                if !kind.ends_with('#') {
                    kind.push('#');
                }
            }
            '-' if kind.ends_with(' ') => {}
            _ => kind.push(letter),
        }
    }
    kind.truncate(
        kind.char_indices()
            .nth(160)
            .map_or(kind.len(), |(at, _)| at),
    );
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_defect_has_the_same_kind() {
        let one = failure_kind(
            "StreamKey { session_id: -7 }: an image position decreased from 640 to -1",
        );
        assert_eq!(
            one,
            failure_kind("StreamKey { session_id: 8 }: an image position decreased from 1 to 99")
        );
        assert_ne!(
            one,
            failure_kind("StreamKey { session_id: 8 }: message number 3 differs from byte 1 on")
        );
    }
}
