// SPDX-License-Identifier: Apache-2.0
//! A media driver in the process of the caller.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;

use taran_driver::{DriverContext, DriverError, MediaDriver};

use crate::call::{Single, check_result, free, give, object, status, truth};
use crate::error::{Failure, taran_error_t};
use crate::options::taran_options_t;

/// A media driver that runs on threads of this process.
#[derive(Debug)]
pub struct taran_driver_t {
    driver: Single<MediaDriver>,
    directory: CString,
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Self::new(taran_error_t::TARAN_ERROR_DRIVER, error.to_string())
    }
}

/// # Safety
/// The pointers follow the rules of the header.
unsafe fn start(
    options: *const taran_options_t,
    driver: *mut *mut taran_driver_t,
    launch: impl FnOnce(DriverContext) -> Result<MediaDriver, DriverError>,
) -> i32 {
    status(|| {
        check_result(driver)?;
        // SAFETY: the caller's promise; NULL stands for no options.
        let options = unsafe { options.as_ref() };
        let started = launch(taran_options_t::driver(options)?)?;
        // A path of the system has no byte that is 0.
        let directory =
            CString::new(started.aeron_dir().as_os_str().as_bytes()).unwrap_or_default();
        let started = taran_driver_t {
            driver: Single::new(started),
            directory,
        };
        // SAFETY: the caller's promise.
        unsafe { give(driver, started) }
    })
}

/// Starts a driver in the directory of the option aeron.dir, or in the default one. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_start(
    options: *const taran_options_t,
    driver: *mut *mut taran_driver_t,
) -> i32 {
    // SAFETY: the pointers follow the rules of the header.
    unsafe { start(options, driver, MediaDriver::launch) }
}

/// Starts a driver in a directory of its own, which it deletes when it closes: for tests, and for programs that need no other
/// process. taran_driver_directory() returns the directory for the option aeron.dir of clients. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_start_embedded(
    options: *const taran_options_t,
    driver: *mut *mut taran_driver_t,
) -> i32 {
    // SAFETY: the pointers follow the rules of the header.
    unsafe { start(options, driver, MediaDriver::launch_embedded) }
}

/// Returns the directory of the driver; NULL for a NULL handle. Valid until the handle is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_directory(driver: *const taran_driver_t) -> *const c_char {
    let mut directory = std::ptr::null();
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        directory = unsafe { object(driver) }?.directory.as_ptr();
        Ok(())
    });
    directory
}

/// Returns 1 while the driver runs, 0 when it was closed or has ended by itself: a client may end it, or an agent has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_is_running(driver: *const taran_driver_t) -> i32 {
    truth(|| {
        // SAFETY: the handle follows the rules of the header.
        let driver = unsafe { object(driver) }?;
        match driver
            .driver
            .with(|driver| Ok(driver.termination().is_none()))
        {
            Err(failure) if failure.code == taran_error_t::TARAN_ERROR_CLOSED => Ok(false),
            running => running,
        }
    })
}

/// Closes the driver, and waits for its threads. Its clients lose it. A second close has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_close(driver: *const taran_driver_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let driver = unsafe { object(driver) }?;
        if let Some(driver) = driver.driver.take()? {
            driver.close()?;
        }
        Ok(())
    })
}

/// Closes the driver unless it is closed, and frees its handle. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_driver_free(driver: *mut taran_driver_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { free(driver, |driver| driver.driver.take().map(drop)) }
    })
}
