// SPDX-License-Identifier: Apache-2.0
//! The frame of each call from C: panics end here, errors become codes, arguments are checked.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::{Failure, remember, taran_error_t};

/// Runs the body of a function that returns a number of at least 0, or an error code.
pub(crate) fn number(body: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    // What the body leaves behind after a panic is closed or freed by its owner, never trusted: AssertUnwindSafe.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Failure::new(
            taran_error_t::TARAN_ERROR_BUG,
            format!("the library has failed, which is a bug; please report it: {text}"),
        ))
    });
    outcome.unwrap_or_else(|failure| remember(failure).into())
}

/// Like [`number`], for a function that returns 0 or an error code.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    // Codes are 32 bits wide.
    number(|| body().map(|()| 0)) as i32
}

/// Like [`number`], for a function that returns 1 for true, 0 for false, or an error code.
pub(crate) fn truth(body: impl FnOnce() -> Result<bool, Failure>) -> i32 {
    number(|| body().map(i64::from)) as i32
}

/// Returns the object behind a handle.
///
/// # Safety
/// The handle is null, or was returned by this library and not freed; it is not freed while the reference lives.
pub(crate) unsafe fn object<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or(Failure::invalid(
        "the handle is NULL: the call that should have returned it failed, or it was never set",
    ))
}

/// Returns a text of the caller.
///
/// # Safety
/// The pointer is null or points to a text that ends with 0 and does not change while the reference lives.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid("a text is NULL"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::invalid("a text is not UTF-8"))
}

/// Returns bytes of the caller; NULL with the length 0 stands for none.
///
/// # Safety
/// The pointer is null, or points to as many bytes as `length` says, which do not change while the reference lives.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::invalid(
            "the data is NULL, but its length is not 0",
        ));
    }
    if length > isize::MAX as usize {
        return Err(Failure::invalid(
            "the length of the data exceeds the memory",
        ));
    }
    // SAFETY: the caller's promise; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// Writes a result to where the caller wants it.
///
/// # Safety
/// The pointer is null, or points to writable memory for the value.
pub(crate) unsafe fn write<T>(pointer: *mut T, value: T) -> Result<(), Failure> {
    check_result(pointer)?;
    // SAFETY: the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Checks a pointer to a result before something is created for it.
pub(crate) fn check_result<T>(pointer: *mut T) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid("the pointer to the result is NULL"));
    }
    Ok(())
}

/// Moves a new object to the heap and writes its handle to where the caller wants it.
///
/// # Safety
/// As for [`write`].
pub(crate) unsafe fn give<T>(pointer: *mut *mut T, object: T) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe { write(pointer, Box::into_raw(Box::new(object))) }
}

/// Frees an object unless `check` finds it in use. NULL is no object.
///
/// # Safety
/// As for [`object`]; after a success the handle is not used again.
pub(crate) unsafe fn free<T>(
    handle: *mut T,
    check: impl FnOnce(&T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise. The reference ends with this statement.
    check(unsafe { &*handle })?;
    // SAFETY: `give` made the handle of a box. No other call uses the object: `check` and the caller's promise.
    drop(unsafe { Box::from_raw(handle) });
    Ok(())
}

/// An object that one call at a time uses, until it is closed.
///
/// The result of a call may borrow from the object for longer than the call, as a claim does from an exclusive publication. While it
/// does, no call may make a `&mut` of the object, even if it writes nothing: by Rust's aliasing rules that ends the borrow. So the
/// calls of such an object pass a check, which runs under the lock and before anything refers to the object.
#[derive(Debug)]
pub(crate) struct Single<T>(Mutex<Option<T>>);

impl<T> Single<T> {
    pub(crate) fn new(object: T) -> Self {
        Self(Mutex::new(Some(object)))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Failure> {
        match self.0.try_lock() {
            Ok(guard) => Ok(guard),
            // A panic of an earlier call was returned by it.
            Err(TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => Err(Failure::in_use()),
        }
    }

    /// Calls `with` with the object; fails if it is closed, or if another call uses it.
    pub(crate) fn with<R>(
        &self,
        with: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.with_if(|| Ok(()), with)
    }

    /// Like [`with`](Self::with), unless `check` fails.
    pub(crate) fn with_if<R>(
        &self,
        check: impl FnOnce() -> Result<(), Failure>,
        with: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut object = self.lock()?;
        check()?;
        with(object.as_mut().ok_or(Failure::closed())?)
    }

    /// Takes the object, which is closed from now on; `None` if it was closed before.
    pub(crate) fn take(&self) -> Result<Option<T>, Failure> {
        self.take_if(|| Ok(()))
    }

    /// Like [`take`](Self::take), unless `check` fails.
    pub(crate) fn take_if(
        &self,
        check: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Option<T>, Failure> {
        let mut object = self.lock()?;
        check()?;
        Ok(object.take())
    }
}

/// The context of a handler of the caller: passed through, never read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: the pointer is only passed back to the handler. The header says on which thread handlers run, so that the caller
// chooses a context for that.
unsafe impl Send for Context {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error_with_its_text() {
        let code = number(|| panic!("of the test"));
        assert_eq!(code, taran_error_t::TARAN_ERROR_BUG as i64);
        // SAFETY: the text of the call above.
        let text = unsafe { CStr::from_ptr(crate::error::taran_last_error()) };
        assert!(text.to_str().unwrap().ends_with("of the test"));
    }

    #[test]
    fn single_object_is_used_by_one_call_and_closed_once() {
        let single = Single::new(7);
        let nested = single.with(|_| single.with(|_| Ok(())));
        assert_eq!(nested.unwrap_err().code, taran_error_t::TARAN_ERROR_IN_USE);
        let close_in_use = single.with(|_| single.take());
        assert!(close_in_use.is_err(), "is not closed");
        assert_eq!(single.take().unwrap(), Some(7));
        assert_eq!(single.take().unwrap(), None);
        let closed = single.with(|_| Ok(())).unwrap_err();
        assert_eq!(closed.code, taran_error_t::TARAN_ERROR_CLOSED);
    }

    /// Under Miri, this fails if a refused call makes a `&mut` of the object.
    #[test]
    fn refused_call_leaves_a_borrow_from_the_object_valid() {
        let single = Single::new([1, 2]);
        let borrow: *const i32 = single.with(|object| Ok(&raw const object[0])).unwrap();
        // SAFETY: the object is in `single` until the end of the test, and no call from here on makes a `&mut` of it.
        let borrow = unsafe { &*borrow };
        let refused = single.with_if(|| Err(Failure::in_use()), |object| Ok(object[0]));
        assert!(refused.is_err());
        assert!(single.take_if(|| Err(Failure::in_use())).is_err());
        assert_eq!(*borrow, 1);
    }

    #[test]
    fn object_that_a_panicking_call_used_is_usable() {
        let single = Single::new(7);
        assert!(number(|| single.with(|_| panic!("of the test"))) < 0);
        assert_eq!(number(|| single.with(|object| Ok(*object))), 7);
    }
}
