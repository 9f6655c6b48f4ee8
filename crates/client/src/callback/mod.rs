//! A user's function that the conductor calls and that anyone may take away.
//!
//! The contract: [`Callback::call`] runs it, [`Callback::take_away`] ends it. Once `take_away` has returned, the
//! function does not run and never will again; a call in progress on another thread is waited for. Only inside the
//! function itself `take_away` returns at once, and the function is dropped when it returns.

mod list;

pub(crate) use list::CallbackList;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A number that no other live thread has.
pub(crate) fn thread_token() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The user's function panicked; its message.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

pub(crate) struct Callback<F: ?Sized> {
    function: Mutex<Option<Box<F>>>,
    gone: AtomicBool,
    /// Token of the thread that is inside the function; 0 when none is.
    runner: AtomicUsize,
}

impl<F: ?Sized> Callback<F> {
    pub(crate) fn new(function: Option<Box<F>>) -> Self {
        let gone = AtomicBool::new(function.is_none());
        Self {
            function: Mutex::new(function),
            gone,
            runner: AtomicUsize::new(0),
        }
    }

    /// Lends the function to `with` unless it was taken away.
    pub(crate) fn call(&self, with: impl FnOnce(&mut F)) -> Result<(), Panicked> {
        if self.gone.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut slot = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(function) = slot.as_mut().filter(|_| !self.gone.load(Ordering::Acquire)) else {
            return Ok(());
        };
        self.runner.store(thread_token(), Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| with(function)));
        self.runner.store(0, Ordering::Relaxed);
        // Taken away from inside: what the closure owns is dropped only after the lock is free.
        let ended = if self.gone.load(Ordering::Acquire) {
            slot.take()
        } else {
            None
        };
        drop(slot);
        drop(ended);
        outcome.map_err(|payload| Panicked(panic_text(payload.as_ref())))
    }

    pub(crate) fn take_away(&self) {
        self.gone.store(true, Ordering::Release);
        // Relaxed is enough: only this very thread can have stored its own token.
        if self.runner.load(Ordering::Relaxed) == thread_token() {
            return;
        }
        let ended = self
            .function
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(ended);
    }
}

impl<F: ?Sized> std::fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("gone", &self.gone)
            .finish_non_exhaustive()
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicI32;
    use std::sync::mpsc;

    type Function = dyn FnMut(i32) + Send;

    fn callback(function: impl FnMut(i32) + Send + 'static) -> Callback<Function> {
        Callback::new(Some(Box::new(function)))
    }

    #[test]
    fn is_called_until_it_is_taken_away() {
        let sum = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&sum);
        let callback = callback(move |n| {
            seen.fetch_add(n, Ordering::Relaxed);
        });
        callback.call(|f| f(3)).unwrap();
        callback.call(|f| f(4)).unwrap();
        callback.take_away();
        callback.call(|f| f(5)).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 7);
        assert_eq!(
            Arc::strong_count(&sum),
            1,
            "what the closure owned is dropped"
        );
    }

    #[test]
    fn can_take_itself_away() {
        let callback = Arc::new(callback(|_| ()));
        let inner = Arc::clone(&callback);
        callback.call(|_| inner.take_away()).unwrap();
        let mut called = false;
        callback.call(|_| called = true).unwrap();
        assert!(!called);
        assert!(callback.function.lock().unwrap().is_none());
    }

    #[test]
    fn taking_away_waits_for_the_call_in_progress() {
        let (entered, wait_entered) = mpsc::channel();
        let (leave, wait_leave) = mpsc::channel::<()>();
        let left = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&left);
        let callback = Arc::new(callback(move |_| {
            entered.send(()).unwrap();
            wait_leave.recv().unwrap();
            done.store(true, Ordering::SeqCst);
        }));
        let caller = std::thread::spawn({
            let callback = Arc::clone(&callback);
            move || callback.call(|f| f(1)).unwrap()
        });
        wait_entered.recv().unwrap();
        leave.send(()).unwrap();
        callback.take_away();
        assert!(left.load(Ordering::SeqCst));
        caller.join().unwrap();
    }

    #[test]
    fn a_panic_is_a_result_and_the_function_stays() {
        let callback = callback(|n| assert!(n != 1, "one is too few"));
        assert!(
            callback
                .call(|f| f(1))
                .unwrap_err()
                .0
                .contains("one is too few")
        );
        callback.call(|f| f(2)).unwrap();
    }
}
