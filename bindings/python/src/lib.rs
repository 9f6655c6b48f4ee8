// SPDX-License-Identifier: Apache-2.0
//! Python package `taran`: the client and an embedded driver.
//!
//! `python/taran/_taran.pyi` has the types and documentation for Python; a test checks it against this module.
//!
//! The interpreter's lock is released in calls that wait: for the driver, for a handler on the client's thread, or for room in a
//! stream. It is kept in polls, whose handlers need it. Handlers of the client's thread take it; what they raise is written to
//! standard error by `sys.unraisablehook`.

mod claim;
mod client;
mod counter;
mod driver;
mod error;
mod publication;
mod subscription;

use pyo3::prelude::*;

/// Runs a function that may wait for a handler, without the interpreter's lock.
fn release(run: impl FnOnce() + Send) {
    let mut run = Some(run);
    let mut go = || {
        if let Some(run) = run.take() {
            run();
        }
    };
    // Without an interpreter, at its end, there is no lock to release.
    if Python::try_attach(|py| py.detach(&mut go)).is_none() {
        go();
    }
}

#[pymodule]
fn _taran(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(client::connect, module)?)?;
    module.add_class::<client::Client>()?;
    module.add_class::<publication::Publication>()?;
    module.add_class::<claim::Claim>()?;
    module.add_class::<subscription::Subscription>()?;
    module.add_class::<subscription::Header>()?;
    module.add_class::<subscription::Image>()?;
    module.add_class::<subscription::Action>()?;
    module.add_class::<counter::Counter>()?;
    module.add_class::<counter::CounterInfo>()?;
    module.add_class::<driver::Driver>()?;
    error::add(module)
}
