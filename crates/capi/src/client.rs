// SPDX-License-Identifier: Apache-2.0
//! The client.

use taran::Client;

use crate::call::{check_result, free, give, number, object, status, truth};
use crate::options::taran_options_t;

/// A connection to a media driver. Any number of threads may use it at once.
#[derive(Debug)]
pub struct taran_client_t(pub(crate) Client);

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
        unsafe { give(client, taran_client_t(connected)) }
    })
}

/// Closes the client and all its publications, subscriptions and counters. Waits for a handler that runs on another thread; after
/// that none runs. Inside a handler it returns at once, and no handler runs after that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_close(client: *const taran_client_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(client) }?.0.close();
        Ok(())
    })
}

/// Closes the client and frees its handle. Handles of its publications, subscriptions and counters stay valid, as closed ones, and
/// are freed separately. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_free(client: *mut taran_client_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe {
            free(client, |client| {
                client.0.close();
                Ok(())
            })
        }
    })
}

/// Returns 1 if the client was closed or has lost its driver, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_is_closed(client: *const taran_client_t) -> i32 {
    // SAFETY: the handle follows the rules of the header.
    truth(|| Ok(unsafe { object(client) }?.0.is_closed()))
}

/// Returns the id by which the driver and its tools know the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_id(client: *const taran_client_t) -> i64 {
    // SAFETY: the handle follows the rules of the header.
    number(|| Ok(unsafe { object(client) }?.0.client_id()))
}
