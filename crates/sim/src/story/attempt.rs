//! Playing a story to its end, whatever happens.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

use super::teller::Teller;
use super::{Coverage, Plan};
use crate::World;

thread_local! {
    /// What the last panic of this thread said, and where it was.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// A story that did not go as it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, without numbers and names: the same for the same defect in another story.
    pub kind: String,
    /// What is wrong.
    pub text: String,
}

/// What looks at a world after each event, and panics if it sees something wrong.
pub type Look<'l> = &'l mut dyn FnMut(&World);

/// From now on panics are remembered with their place, and not printed by threads that are making a story short.
pub fn silence_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        LAST.set(Some(info.to_string()));
        if !IS_SILENT.get() {
            before(info);
        }
    }));
}

/// Whether worlds of this thread may print what happened to them.
pub(crate) fn is_silent() -> bool {
    IS_SILENT.get()
}

/// Does something without a word.
pub(super) fn silently<R>(what: impl FnOnce() -> R) -> R {
    let before = IS_SILENT.replace(true);
    let result = what();
    IS_SILENT.set(before);
    result
}

/// Plays a story to its end.
///
/// # Errors
/// A check failed, or something panicked.
pub fn attempt(plan: &Plan) -> Result<Coverage, Failure> {
    attempt_with(plan, &mut |_| {})
}

/// The same; `look` sees the world after each event.
///
/// # Errors
/// As [`attempt()`].
pub fn attempt_with(plan: &Plan, look: Look<'_>) -> Result<Coverage, Failure> {
    LAST.set(None);
    let played = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut teller = Teller::new(plan);
        teller.play(&plan.events, look);
        teller.end();
        teller.coverage
    }));
    played.map_err(|panic| {
        let text = LAST.take().unwrap_or_else(|| said(&*panic));
        Failure {
            kind: shape(&text),
            text,
        }
    })
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let literal = || panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(literal)
        .unwrap_or_else(|| "a panic".to_owned())
}

/// A text without what differs from case to case: numbers, and what stands in brackets. Of several lines the first that
/// says more than where.
pub(super) fn shape(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| !line.starts_with("thread ") && !line.starts_with("panicked at"));
    let mut shape = String::new();
    let mut depth = 0;
    for letter in line.unwrap_or(text).chars() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ if depth > 0 => {}
            '0'..='9' => {
                if !shape.ends_with('#') {
                    shape.push('#');
                }
            }
            '-' if shape.ends_with(' ') => {}
            _ => shape.push(letter),
        }
    }
    shape.truncate(
        shape
            .char_indices()
            .nth(160)
            .map_or(shape.len(), |(at, _)| at),
    );
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_defect_has_the_same_shape() {
        let one = shape("StreamKey { session_id: -7 }: an image position decreased from 640 to -1");
        assert_eq!(
            one,
            shape("StreamKey { session_id: 8 }: an image position decreased from 1 to 99")
        );
        assert_ne!(
            one,
            shape("StreamKey { session_id: 8 }: message number 3 differs from byte 1 on")
        );
    }
}
