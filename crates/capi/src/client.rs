// SPDX-License-Identifier: Apache-2.0
//! The client.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use taran::Client;

use crate::call::{check_result, free, give, number, object, status, truth};
use crate::error::Failure;
use crate::options::taran_options_t;

/// A connection to a media driver. Any number of threads may use it at once.
#[derive(Debug)]
pub struct taran_client_t {
    client: Client,
    /// Calls that are running: a handler that runs inside one of them must not free the handle.
    calls: AtomicUsize,
}

/// A call with a client.
pub(crate) struct Call<'a>(&'a taran_client_t);

impl<'a> Call<'a> {
    /// # Safety
    /// As for [`object`].
    pub(crate) unsafe fn of(handle: *const taran_client_t) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        let client: &'a taran_client_t = unsafe { object(handle) }?;
        // The count is only compared on the thread of the calls that it is about.
        client.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Self(client))
    }

    fn is_nested(&self) -> bool {
        self.0.calls.load(Ordering::Relaxed) > 1
    }
}

impl Deref for Call<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0.client
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connects to a running driver; waits for one for at most the option aeron.driver.timeout. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_connect(
    options: *const taran_options_t,
    client: *mut *mut taran_client_t,
) -> i32 {
    status(|| {
        check_result(client)?;
        // SAFETY: the handle follows the rules of the header; NULL stands for no options.
        let options = unsafe { options.as_ref() };
        let connected = taran_options_t::client(options).connect()?;
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe {
            give(
                client,
                taran_client_t {
                    client: connected,
                    calls: AtomicUsize::new(0),
                },
            )
        }
    })
}

/// Closes the client and all its publications, subscriptions and counters. The on_close handler runs inside this call. Waits for a
/// handler that runs on another thread; after that none runs. Inside a handler it does not wait for that one, and none but on_close
/// runs after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_close(client: *const taran_client_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { Call::of(client) }?.close();
        Ok(())
    })
}

/// Closes the client and frees its handle. Handles of its publications, subscriptions and counters stay valid, as closed ones, and
/// are freed separately. NULL is allowed. Fails with TARAN_ERROR_IN_USE inside a handler that another call with this handle runs
/// (on_close, that of taran_client_for_each_counter).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_free(client: *mut taran_client_t) -> i32 {
    status(|| {
        if !client.is_null() {
            // SAFETY: the handle follows the rules of the header.
            let call = unsafe { Call::of(client) }?;
            if call.is_nested() {
                return Err(Failure::in_use());
            }
            call.close();
        }
        // SAFETY: the handle follows the rules of the header, and no call with it is running.
        unsafe { free(client, |_| Ok(())) }
    })
}

/// Returns 1 if the client was closed or has lost its driver, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_is_closed(client: *const taran_client_t) -> i32 {
    // SAFETY: the handle follows the rules of the header.
    truth(|| Ok(unsafe { Call::of(client) }?.is_closed()))
}

/// Returns the id by which the driver and its tools know the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_id(client: *const taran_client_t) -> i64 {
    // SAFETY: the handle follows the rules of the header.
    number(|| Ok(unsafe { Call::of(client) }?.client_id()))
}
