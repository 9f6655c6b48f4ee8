// SPDX-License-Identifier: Apache-2.0
//! Counters: those of the client, and all of the driver.

use std::ffi::{c_char, c_void};

use taran::{Client, CommandError, Counter, CountersReader};

use crate::call::{bytes, check_result, free, give, object, status, text, write};
use crate::client::{Call, taran_client_t};
use crate::error::{Failure, c_string, taran_error_t};

/// A counter of this client. Any number of threads may use it at once. Calls fail with TARAN_ERROR_CLOSED after the close, and with
/// TARAN_ERROR_DRIVER_LOST if the client has lost its driver before, which has freed the counter or will not read it again.
#[derive(Debug)]
pub struct taran_counter_t(Counter);

/// A counter of the driver. The texts and bytes are valid until the handler returns.
#[repr(C)]
#[derive(Debug)]
pub struct taran_counter_info_t {
    /// Value when it was read.
    pub value: i64,
    /// Registration id, such as that of a publication.
    pub registration_id: i64,
    /// Id of the client that owns the counter.
    pub owner_id: i64,
    /// Id of the counter.
    pub id: i32,
    /// Type of the counter; those of applications are 1000 and more.
    pub type_id: i32,
    /// Text for people.
    pub label: *const c_char,
    /// Key, laid out by type.
    pub key: *const u8,
    /// Length of the key in bytes: 112.
    pub key_length: usize,
}

/// Receives a counter; returns 0 to end the iteration, another value to go on.
pub type taran_counter_handler_t =
    Option<unsafe extern "C" fn(context: *mut c_void, counter: *const taran_counter_info_t) -> i32>;

/// Adds a counter and waits for the driver. Types from 1000 on are for applications. `key` has at most 112 bytes, and may be NULL
/// with the length 0; `label` has at most 380 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_add_counter(
    client: *const taran_client_t,
    type_id: i32,
    key: *const u8,
    key_length: usize,
    label: *const c_char,
    counter: *mut *mut taran_counter_t,
) -> i32 {
    status(|| {
        check_result(counter)?;
        // SAFETY: the handle, the bytes and the text follow the rules of the header.
        let (client, key, label) =
            unsafe { (Call::of(client)?, bytes(key, key_length)?, text(label)?) };
        let added = client.add_counter(type_id, key, label)?;
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { give(counter, taran_counter_t(added)) }
    })
}

/// # Safety
/// The handle follows the rules of the header.
unsafe fn open<'a>(counter: *const taran_counter_t) -> Result<&'a Counter, Failure> {
    // SAFETY: the caller's promise.
    let counter = &unsafe { object(counter) }?.0;
    match counter.close_reason().map(|reason| reason.lost()) {
        None => Ok(counter),
        Some(None) => Err(Failure::closed()),
        Some(Some(lost)) => Err(CommandError::DriverLost(lost).into()),
    }
}

/// Writes the id of the counter, by which tools and other clients find it, to `id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_id(counter: *const taran_counter_t, id: *mut i32) -> i32 {
    // SAFETY: the pointers follow the rules of the header.
    status(|| unsafe { write(id, open(counter)?.id()) })
}

/// Writes the value of the counter to `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_get(
    counter: *const taran_counter_t,
    value: *mut i64,
) -> i32 {
    // SAFETY: the pointers follow the rules of the header.
    status(|| unsafe { write(value, open(counter)?.get()) })
}

/// Sets the value: a process that reads it also sees all earlier writes of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_set(counter: *const taran_counter_t, value: i64) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { open(counter) }?.set(value);
        Ok(())
    })
}

/// Adds `delta` to the value, wrapping around.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_add(counter: *const taran_counter_t, delta: i64) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { open(counter) }?.add(delta);
        Ok(())
    })
}

/// Closes the counter: the driver frees it. A second close has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_close(counter: *const taran_counter_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(counter) }?.0.close();
        Ok(())
    })
}

/// Closes the counter unless it is closed, and frees its handle. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_counter_free(counter: *mut taran_counter_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { free(counter, |_| Ok(())) }
    })
}

/// Returns the counters of the driver of a client that is open.
fn counters(client: &Client) -> Result<&CountersReader, Failure> {
    match client.close_reason() {
        Some(reason) => Err(CommandError::from(reason).into()),
        None => Ok(client.counters()),
    }
}

/// Writes the value of any counter of the driver to `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_read_counter(
    client: *const taran_client_t,
    id: i32,
    value: *mut i64,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let client = unsafe { Call::of(client) }?;
        let counters = counters(&client)?;
        let read = counters.value(id).ok_or_else(|| {
            Failure::new(
                taran_error_t::TARAN_ERROR_NO_SUCH_COUNTER,
                format!("the driver has no counter with id {id}; 'taran stat' lists all"),
            )
        })?;
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { write(value, read) }
    })
}

/// Calls `handler` with each counter of the driver, in the order of their ids, in this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_for_each_counter(
    client: *const taran_client_t,
    handler: taran_counter_handler_t,
    context: *mut c_void,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let client = unsafe { Call::of(client) }?;
        let counters = counters(&client)?;
        let handler = handler.ok_or(Failure::invalid("the handler is NULL"))?;
        counters.find(|meta| {
            let label = c_string(meta.label.as_str());
            let info = taran_counter_info_t {
                value: counters.value(meta.id).unwrap_or_default(),
                registration_id: meta.registration_id,
                owner_id: meta.owner_id,
                id: meta.id,
                type_id: meta.type_id,
                label: label.as_ptr(),
                key: meta.key.as_ptr(),
                key_length: meta.key.len(),
            };
            // SAFETY: a function of the caller, with its context; what it gets lives until it returns.
            unsafe { handler(context, &raw const info) == 0 }
        });
        Ok(())
    })
}
