// SPDX-License-Identifier: Apache-2.0
//! The error handler shared by many threads.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ErrorLog, ErrorLogFull, ErrorObservation, read};
use crate::counters::Counter;
use crate::memory::Region;

/// With a full log, one error per interval goes to the fallback; the others are counted.
const FALLBACK_INTERVAL_MS: i64 = 1000;

/// Records errors of any thread: each goes to the log and increments the errors counter; errors that do not fit the log
/// go to a fallback. Clones are the same handler. Takes a lock: not for the hot path.
#[derive(Clone)]
pub struct ErrorHandler {
    shared: Arc<SharedHandler>,
}

struct SharedHandler {
    errors: Counter,
    state: Mutex<State>,
    observer: Option<Observer>,
}

type Observer = Box<dyn Fn(&ObservedError<'_>) + Send + Sync>;

struct State {
    log: ErrorLog,
    fallback: Box<dyn FnMut(&Unlogged<'_>) + Send>,
    unlogged: u64,
    reported_unlogged: u64,
    reported_at: Option<i64>,
}

/// One observation of an error, for an observer of an [`ErrorHandler`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedError<'a> {
    /// The time, in milliseconds since the epoch.
    pub epoch_ms: i64,
    /// The error code.
    pub code: i32,
    /// The description.
    pub description: &'a str,
    /// Reason why it is not in the log, if it is not.
    pub unlogged: Option<ErrorLogFull>,
}

impl fmt::Display for ObservedError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.description)
    }
}

/// An error that does not fit the log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unlogged<'a> {
    /// The error code.
    pub code: i32,
    /// The description.
    pub description: &'a str,
    /// Reason why it is not in the log.
    pub reason: ErrorLogFull,
    /// Number of unlogged errors since the last call that were not passed to the fallback.
    pub left_out: u64,
}

impl fmt::Display for Unlogged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            description,
            reason,
            left_out,
        } = self;
        write!(
            f,
            "error {code}: {description} ({reason}; {left_out} others not shown)"
        )
    }
}

impl ErrorHandler {
    /// A handler that writes to `log`, adds to `errors`, and calls `fallback` for errors that a full
    /// log does not take: at most once a second, on the thread of the error. The fallback must not
    /// use the handler.
    pub fn new(
        log: ErrorLog,
        errors: Counter,
        fallback: impl FnMut(&Unlogged<'_>) + Send + 'static,
    ) -> Self {
        Self::build(log, errors, Box::new(fallback), None)
    }

    /// A handler that writes to `log`, adds to `errors`, and calls `observer` for each observation, also if the log is full:
    /// on the thread of the error, after the observation was recorded. The observer must not block. An error that the
    /// observer itself records with the handler is recorded, but not observed.
    pub fn observed(
        log: ErrorLog,
        errors: Counter,
        observer: impl Fn(&ObservedError<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self::build(log, errors, Box::new(|_| ()), Some(Box::new(observer)))
    }

    fn build(
        log: ErrorLog,
        errors: Counter,
        fallback: Box<dyn FnMut(&Unlogged<'_>) + Send>,
        observer: Option<Observer>,
    ) -> Self {
        let state = State {
            log,
            fallback,
            unlogged: 0,
            reported_unlogged: 0,
            reported_at: None,
        };
        Self {
            shared: Arc::new(SharedHandler {
                errors,
                state: Mutex::new(state),
                observer,
            }),
        }
    }

    /// As [`Self::new`], with standard error as the fallback.
    pub fn or_stderr(log: ErrorLog, errors: Counter) -> Self {
        Self::new(log, errors, |unlogged| eprintln!("{unlogged}"))
    }

    /// A handler with a small private log and counter, and standard error as the fallback: for tests.
    ///
    /// # Panics
    /// When the operating system has no memory left for a few pages.
    pub fn detached() -> Self {
        let region = Region::anonymous(64 * 1024).expect("a few pages of memory");
        Self::or_stderr(ErrorLog::open(region), Counter::detached())
    }

    /// Records one observation of an error.
    pub fn on_error(&self, now_epoch_ms: i64, code: i32, description: &str) {
        self.shared.errors.increment();
        // A panic in the fallback leaves no inconsistent state.
        let mut state = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let recorded = state.log.record(now_epoch_ms, code, description);
        if let Err(reason) = recorded {
            state.report_unlogged(now_epoch_ms, code, description, reason);
        }
        drop(state);
        if let Some(observer) = &self.shared.observer
            && let Some(_observing) = Observing::enter(Arc::as_ptr(&self.shared))
        {
            observer(&ObservedError {
                epoch_ms: now_epoch_ms,
                code,
                description,
                unlogged: recorded.err(),
            });
        }
    }

    /// Calls `visit` for each distinct error in the log that was observed at `since_ms` (milliseconds since the epoch) or
    /// later. Returns the number of errors.
    pub fn for_each(&self, since_ms: i64, visit: impl FnMut(&ErrorObservation)) -> usize {
        let region = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .log
            .region()
            .clone();
        read(&region, since_ms, visit)
    }

    /// Returns the number of observations, logged or not.
    pub fn count(&self) -> i64 {
        self.shared.errors.get()
    }

    /// Returns the number of observations that did not fit the log.
    pub fn unlogged(&self) -> u64 {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unlogged
    }
}

thread_local! {
    /// The handlers whose observers the thread is calling, the innermost one last.
    static OBSERVING: RefCell<Vec<*const SharedHandler>> = const { RefCell::new(Vec::new()) };
}

/// A call of an observer, which must not lead to another one of the same observer.
struct Observing;

impl Observing {
    /// Returns `None` if the thread is in a call of the handler's observer.
    fn enter(handler: *const SharedHandler) -> Option<Self> {
        OBSERVING.with_borrow_mut(|handlers| {
            let is_new = !handlers.contains(&handler);
            is_new.then(|| {
                handlers.push(handler);
                Self
            })
        })
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        OBSERVING.with_borrow_mut(Vec::pop);
    }
}

impl State {
    fn report_unlogged(&mut self, now_ms: i64, code: i32, description: &str, reason: ErrorLogFull) {
        self.unlogged += 1;
        // A wall clock that was set back must not silence the fallback: hence the absolute value.
        let is_suppressed = self
            .reported_at
            .is_some_and(|at| now_ms.abs_diff(at) < FALLBACK_INTERVAL_MS.unsigned_abs());
        if is_suppressed {
            return;
        }
        let left_out = self.unlogged - 1 - self.reported_unlogged;
        self.reported_unlogged = self.unlogged;
        self.reported_at = Some(now_ms);
        (self.fallback)(&Unlogged {
            code,
            description,
            reason,
            left_out,
        });
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorHandler")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn handler(length: usize) -> (ErrorHandler, Region, Arc<Mutex<Vec<String>>>) {
        let region = Region::anonymous(length).unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let log = ErrorLog::open(region.clone());
        let fallback = move |error: &Unlogged<'_>| sink.lock().unwrap().push(error.to_string());
        (
            ErrorHandler::new(log, Counter::detached(), fallback),
            region,
            lines,
        )
    }

    #[test]
    fn threads_share_the_log() {
        let (handler, region, lines) = handler(4096);
        thread::scope(|scope| {
            for code in 0..4 {
                let handler = handler.clone();
                scope.spawn(move || (0..100).for_each(|turn| handler.on_error(turn, code, "same")));
            }
        });
        let mut counts = Vec::new();
        assert_eq!(read(&region, 0, |error| counts.push(error.count)), 4);
        assert_eq!(counts, [100; 4]);
        assert_eq!(handler.count(), 400);
        assert!(lines.lock().unwrap().is_empty());
    }

    #[test]
    fn unlogged_errors_are_counted_and_passed_on_once_a_second() {
        let (handler, region, lines) = handler(32);
        handler.on_error(0, 1, "fits");
        for now in [5, 6, 7, 1005, 1006, 2005, -9000] {
            handler.on_error(now, 2, "does not fit");
        }
        assert_eq!(read(&region, 0, |_| ()), 1);
        assert_eq!((handler.count(), handler.unlogged()), (8, 7));
        let lines = lines.lock().unwrap();
        let left_out: Vec<_> = lines
            .iter()
            .map(|line| line.split("; ").nth(1).unwrap())
            .collect();
        assert_eq!(
            left_out,
            ["0", "2", "1", "0"].map(|n| format!("{n} others not shown)"))
        );
        assert!(lines[0].starts_with("error 2: does not fit (the error log is full"));
    }

    #[test]
    fn observer_sees_each_observation_logged_or_not() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let log = ErrorLog::open(Region::anonymous(32).unwrap());
        let handler = ErrorHandler::observed(log, Counter::detached(), move |error| {
            let is_logged = error.unlogged.is_none();
            sink.lock()
                .unwrap()
                .push((error.epoch_ms, error.to_string(), is_logged));
        });
        handler.on_error(5, 1, "fits");
        handler.on_error(6, 1, "fits");
        handler.on_error(7, 2, "does not fit");
        let expected = [
            (5, "error 1: fits".to_owned(), true),
            (6, "error 1: fits".to_owned(), true),
            (7, "error 2: does not fit".to_owned(), false),
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
        assert_eq!((handler.count(), handler.unlogged()), (3, 1));
        let mut logged = Vec::new();
        assert_eq!(handler.for_each(0, |error| logged.push(error.count)), 1);
        assert_eq!(handler.for_each(7, |_| ()), 0);
        assert_eq!(logged, [2]);
    }

    #[test]
    fn error_recorded_by_an_observer_is_logged_and_not_observed() {
        let own: Arc<Mutex<Option<ErrorHandler>>> = Arc::default();
        let (handle, observed) = (Arc::clone(&own), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&observed);
        let log = ErrorLog::open(Region::anonymous(4096).unwrap());
        let handler = ErrorHandler::observed(log, Counter::detached(), move |error| {
            seen.lock().unwrap().push(error.code);
            let handler = handle.lock().unwrap().clone().unwrap();
            let text = format!("cannot report {}", error.code);
            handler.on_error(error.epoch_ms, error.code, &text);
            assert_ne!(error.code, 2, "requested panic");
        });
        *own.lock().unwrap() = Some(handler.clone());
        handler.on_error(0, 1, "first");
        let panicking = handler.clone();
        let thread = thread::spawn(move || {
            let call = || panicking.on_error(0, 2, "second");
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
            // The observer is called again after its panic.
            panicking.on_error(0, 3, "third");
        });
        thread.join().unwrap();
        *own.lock().unwrap() = None; // the handler owns the observer
        assert_eq!(*observed.lock().unwrap(), [1, 2, 3]);
        let mut logged = Vec::new();
        handler.for_each(0, |error| logged.push(error.text.clone()));
        let expected = [
            "first",
            "cannot report 1",
            "second",
            "cannot report 2",
            "third",
            "cannot report 3",
        ];
        assert_eq!(logged, expected);
    }

    #[test]
    fn panicking_fallback_does_not_end_the_handler() {
        let log = ErrorLog::open(Region::anonymous(8).unwrap());
        let handler = ErrorHandler::new(log, Counter::detached(), |_| panic!("fallback"));
        let thread = {
            let handler = handler.clone();
            thread::spawn(move || handler.on_error(0, 0, ""))
        };
        assert!(thread.join().is_err());
        handler.on_error(1, 0, "");
        assert_eq!((handler.count(), handler.unlogged()), (2, 2));
    }
}
