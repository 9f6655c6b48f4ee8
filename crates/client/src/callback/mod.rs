// SPDX-License-Identifier: Apache-2.0
//! A user's function that the conductor calls and that any thread may disable.
//!
//! Contract: [`Callback::call`] runs the function, [`Callback::disable`] ends it for good. After `disable` has returned
//! the function does not run; a call in progress on another thread is waited for. Inside the function itself `disable`
//! returns at once, and the function is dropped when that call ends.

mod list;

pub(crate) use list::CallbackList;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Returns a number that identifies the calling thread among all live threads; never 0.
pub(crate) fn thread_token() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The message of a panic in the user's function.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// A callback that can be disabled.
pub(crate) struct Callback<F: ?Sized> {
    function: Mutex<Option<Box<F>>>,
    disabled: AtomicBool,
    /// Token of the thread that runs the function; 0 if none does.
    running_thread: AtomicUsize,
}

impl<F: ?Sized> Callback<F> {
    pub(crate) fn new(function: Option<Box<F>>) -> Self {
        let disabled = AtomicBool::new(function.is_none());
        Self {
            function: Mutex::new(function),
            disabled,
            running_thread: AtomicUsize::new(0),
        }
    }

    /// Calls `with` with the function unless it is disabled.
    pub(crate) fn call(&self, with: impl FnOnce(&mut F)) -> Result<(), Panicked> {
        if self.disabled.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut slot = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(function) = slot
            .as_mut()
            .filter(|_| !self.disabled.load(Ordering::Acquire))
        else {
            return Ok(());
        };
        self.running_thread.store(thread_token(), Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| with(function)));
        self.running_thread.store(0, Ordering::Relaxed);
        // Disabled from inside: the closure and its captures are dropped after the lock was released.
        let ended = if self.disabled.load(Ordering::Acquire) {
            slot.take()
        } else {
            None
        };
        drop(slot);
        drop(ended);
        outcome.map_err(|payload| Panicked(panic_text(payload.as_ref())))
    }

    /// Disables the function; waits for a call in progress on another thread.
    pub(crate) fn disable(&self) {
        self.disabled.store(true, Ordering::Release);
        // Relaxed: only this thread can have stored its own token.
        if self.running_thread.load(Ordering::Relaxed) == thread_token() {
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
            .field("disabled", &self.disabled)
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
    fn disable_ends_the_calls_and_drops_the_function() {
        let sum = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&sum);
        let callback = callback(move |n| {
            seen.fetch_add(n, Ordering::Relaxed);
        });
        callback.call(|f| f(3)).unwrap();
        callback.call(|f| f(4)).unwrap();
        callback.disable();
        callback.call(|f| f(5)).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 7);
        assert_eq!(
            Arc::strong_count(&sum),
            1,
            "the closure's captures are dropped"
        );
    }

    #[test]
    fn disable_inside_the_function_takes_effect_after_the_call() {
        let callback = Arc::new(callback(|_| ()));
        let inner = Arc::clone(&callback);
        callback.call(|_| inner.disable()).unwrap();
        let mut called = false;
        callback.call(|_| called = true).unwrap();
        assert!(!called);
        assert!(callback.function.lock().unwrap().is_none());
    }

    #[test]
    fn disable_waits_for_a_call_in_progress() {
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
        callback.disable();
        assert!(left.load(Ordering::SeqCst));
        caller.join().unwrap();
    }

    #[test]
    fn call_returns_a_panic_and_keeps_the_function() {
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
