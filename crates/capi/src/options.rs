// SPDX-License-Identifier: Apache-2.0
//! Options and handlers of a client or an embedded driver.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use taran::{Client, ClientBuilder};
use taran_driver::{DriverContext, DriverError};

use crate::call::{Context, free, object, status, text};
use crate::error::{Failure, c_string, code_of_client_error, code_of_close};

/// Receives the errors of a client that no call returns, with their code and text. Runs on the client's thread.
pub type taran_error_handler_t =
    Option<unsafe extern "C" fn(context: *mut c_void, code: i32, text: *const c_char)>;

/// Receives the end of a client, once: TARAN_ERROR_CLOSED, or TARAN_ERROR_DRIVER_LOST with the reason as a text. All objects of the
/// client are closed. Runs on the client's thread, or in the call that closes the client.
pub type taran_close_handler_t =
    Option<unsafe extern "C" fn(context: *mut c_void, code: i32, text: *const c_char)>;

type Notify = unsafe extern "C" fn(*mut c_void, i32, *const c_char);

/// Options of a client or of an embedded driver, and handlers of a client. May be used several times.
#[derive(Debug)]
pub struct taran_options_t(Mutex<Options>);

#[derive(Debug, Default)]
struct Options {
    properties: Vec<(String, String)>,
    on_error: Option<(Notify, Context)>,
    on_close: Option<(Notify, Context)>,
}

/// Calls a handler with a code and a text.
fn notify((handler, context): (Notify, Context), code: i32, text: &str) {
    let text = c_string(text);
    // SAFETY: the caller of `taran_options_on_...` promises that the handler may be called until the client is closed, and the
    // client calls none after that. The text lives until the handler returns.
    unsafe { handler(context.0, code, text.as_ptr()) }
}

impl taran_options_t {
    fn lock(&self) -> MutexGuard<'_, Options> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a builder with the options of the environment and these.
    pub(crate) fn client(options: Option<&Self>) -> ClientBuilder {
        let mut builder = Client::builder();
        let Some(options) = options else {
            return builder;
        };
        let options = options.lock();
        for (name, value) in &options.properties {
            builder = builder.property(name, value);
        }
        if let Some(handler) = options.on_error {
            builder = builder.on_error(move |error| {
                notify(
                    handler,
                    code_of_client_error(error) as i32,
                    &error.to_string(),
                );
            });
        }
        if let Some(handler) = options.on_close {
            builder = builder.on_close(move |reason| {
                let (code, lost) = code_of_close(reason);
                let text = lost.map_or("the client was closed".to_owned(), |lost| lost.to_string());
                notify(handler, code as i32, &text);
            });
        }
        builder
    }

    /// Returns a context with the options of the environment and these.
    pub(crate) fn driver(options: Option<&Self>) -> Result<DriverContext, DriverError> {
        let mut context = DriverContext::from_environment()?;
        if let Some(options) = options {
            for (name, value) in &options.lock().properties {
                context = context.option(name, value);
            }
        }
        Ok(context)
    }
}

/// Returns options without any set: a client or driver with them has the options of the environment (AERON_DIR, ...) and the
/// defaults.
#[unsafe(no_mangle)]
pub extern "C" fn taran_options_new() -> *mut taran_options_t {
    Box::into_raw(Box::new(taran_options_t(Mutex::default())))
}

/// Sets an option by its name as a property, such as "aeron.dir", "aeron.driver.timeout" or "aeron.client.name"; it overrides the
/// environment. Names and values are checked when a client or driver is made with them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_options_set(
    options: *const taran_options_t,
    name: *const c_char,
    value: *const c_char,
) -> i32 {
    status(|| {
        // SAFETY: the handle and the texts follow the rules of the header.
        let (options, name, value) = unsafe { (object(options)?, text(name)?, text(value)?) };
        let property = (name.to_owned(), value.to_owned());
        options.lock().properties.push(property);
        Ok(())
    })
}

/// Sets the handler of the errors of a client that no call returns. Without one, or with NULL, they are written to standard error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_options_on_error(
    options: *const taran_options_t,
    handler: taran_error_handler_t,
    context: *mut c_void,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let options = unsafe { object(options) }?;
        options.lock().on_error = handler.map(|handler| (handler as Notify, Context(context)));
        Ok(())
    })
}

/// Sets the handler of the end of a client. NULL for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_options_on_close(
    options: *const taran_options_t,
    handler: taran_close_handler_t,
    context: *mut c_void,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let options = unsafe { object(options) }?;
        options.lock().on_close = handler.map(|handler| (handler as Notify, Context(context)));
        Ok(())
    })
}

/// Frees the options. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_options_free(options: *mut taran_options_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { free(options, |_| Ok::<_, Failure>(())) }
    })
}
