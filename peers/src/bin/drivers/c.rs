// SPDX-License-Identifier: Apache-2.0
//! The official C driver, as a process or embedded on the thread of its caller.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusteron_media_driver::bindings::{
    aeron_driver_close, aeron_driver_context_close, aeron_driver_context_init,
    aeron_driver_context_set_dir, aeron_driver_context_set_dir_delete_on_shutdown,
    aeron_driver_context_set_threading_mode, aeron_driver_context_t, aeron_driver_init,
    aeron_driver_main_do_work, aeron_driver_main_idle_strategy, aeron_driver_start, aeron_driver_t,
    aeron_errmsg, aeron_threading_mode_enum,
};
use taran_bench::side::{EmbeddedDriver, RunError, SideSpec};

/// Runs a driver with the options of the environment until the stop flag is set.
pub(crate) fn run(stop: &AtomicBool) -> Result<(), RunError> {
    let mut driver = Driver::prepare(PathBuf::new())?;
    driver.start()?;
    while !stop.load(Ordering::Relaxed) {
        driver.do_work_and_idle()?;
    }
    Ok(())
}

/// Starts a driver in invoker mode in a new directory.
pub(crate) fn embed(_: &SideSpec) -> Result<Box<dyn EmbeddedDriver>, RunError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let id = std::process::id();
    let mut driver = Driver::prepare(PathBuf::from(format!(
        "/dev/shm/taran-compare-{id}-{number}"
    )))?;
    driver.set_invoker_mode()?;
    driver.start()?;
    Ok(Box::new(driver))
}

#[derive(Debug)]
struct Driver {
    context: *mut aeron_driver_context_t,
    driver: *mut aeron_driver_t,
    directory: PathBuf,
}

// SAFETY: the library keeps nothing of an invoked driver in thread-local storage but texts of errors, and only one thread
// at a time has this.
unsafe impl Send for Driver {}

impl Driver {
    fn prepare(directory: PathBuf) -> Result<Driver, RunError> {
        let mut driver = Driver {
            context: ptr::null_mut(),
            driver: ptr::null_mut(),
            directory,
        };
        // SAFETY: the context is closed by `drop`.
        done(unsafe { aeron_driver_context_init(&raw mut driver.context) })?;
        Ok(driver)
    }

    fn set_invoker_mode(&mut self) -> Result<(), RunError> {
        let path = CString::new(self.directory.as_os_str().as_bytes())
            .map_err(|error| RunError::Config(error.to_string()))?;
        let mode = aeron_threading_mode_enum::AERON_THREADING_MODE_INVOKER;
        // SAFETY: the context is open and has no driver yet; the library copies the path.
        unsafe {
            done(aeron_driver_context_set_dir(self.context, path.as_ptr()))?;
            done(aeron_driver_context_set_threading_mode(self.context, mode))?;
            let context = self.context;
            done(aeron_driver_context_set_dir_delete_on_shutdown(
                context, true,
            ))
        }
    }

    fn start(&mut self) -> Result<(), RunError> {
        // SAFETY: the context is open, and has no other driver; `true` leaves the main loop to the caller.
        unsafe {
            done(aeron_driver_init(&raw mut self.driver, self.context))?;
            done(aeron_driver_start(self.driver, true))
        }
    }

    fn do_work_and_idle(&mut self) -> Result<(), RunError> {
        // SAFETY: the driver was started and is not closed before `drop`.
        unsafe {
            let work = aeron_driver_main_do_work(self.driver);
            done(work)?;
            aeron_driver_main_idle_strategy(self.driver, work);
        }
        Ok(())
    }
}

impl EmbeddedDriver for Driver {
    fn aeron_dir(&self) -> &Path {
        &self.directory
    }

    #[inline]
    fn invoke(&mut self) -> Result<(), RunError> {
        // SAFETY: the driver was started and is not closed before `drop`.
        done(unsafe { aeron_driver_main_do_work(self.driver) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // SAFETY: each is closed once, the driver first; the library takes null for nothing to do.
        unsafe {
            if !self.driver.is_null() {
                aeron_driver_close(self.driver);
            }
            if !self.context.is_null() {
                aeron_driver_context_close(self.context);
            }
        }
    }
}

#[inline]
fn done(code: i32) -> Result<(), RunError> {
    if code >= 0 {
        return Ok(());
    }
    // SAFETY: the library keeps a text that ends with a zero for each thread.
    let text = unsafe { CStr::from_ptr(aeron_errmsg()) };
    Err(RunError::Peer(text.to_string_lossy().into_owned()))
}
