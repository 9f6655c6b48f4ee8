// SPDX-License-Identifier: Apache-2.0
//! A media driver in the process of the caller.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use taran_driver::{DriverContext, DriverError as LaunchError, MediaDriver};

use crate::error::of_driver;
use crate::release;

#[pyclass(frozen, module = "taran")]
pub(crate) struct Driver {
    driver: Mutex<Option<MediaDriver>>,
    directory: PathBuf,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let driver = self.take();
        release(|| drop(driver));
    }
}

impl Driver {
    fn take(&self) -> Option<MediaDriver> {
        self.driver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn launch(
        py: Python<'_>,
        directory: Option<PathBuf>,
        options: Option<HashMap<String, String>>,
        launch: fn(DriverContext) -> Result<MediaDriver, LaunchError>,
    ) -> PyResult<Self> {
        let started = py.detach(|| {
            let mut context = DriverContext::from_environment()?;
            for (name, value) in options.into_iter().flatten() {
                context = context.option(&name, value);
            }
            if let Some(directory) = directory {
                context = context.aeron_dir(directory);
            }
            launch(context)
        });
        let driver = started.map_err(of_driver)?;
        let directory = driver.aeron_dir().to_owned();
        Ok(Self {
            driver: Mutex::new(Some(driver)),
            directory,
        })
    }
}

#[pymethods]
impl Driver {
    #[staticmethod]
    #[pyo3(signature = (directory=None, *, options=None))]
    fn start(
        py: Python<'_>,
        directory: Option<PathBuf>,
        options: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        Self::launch(py, directory, options, MediaDriver::launch)
    }

    #[staticmethod]
    #[pyo3(signature = (*, options=None))]
    fn start_embedded(py: Python<'_>, options: Option<HashMap<String, String>>) -> PyResult<Self> {
        Self::launch(py, None, options, MediaDriver::launch_embedded)
    }

    #[getter]
    fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    #[getter]
    fn is_running(&self) -> bool {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver
            .as_ref()
            .is_some_and(|driver| driver.termination().is_none())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.take() {
            Some(driver) => py.detach(|| driver.close()).map_err(of_driver),
            None => Ok(()),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }
}
