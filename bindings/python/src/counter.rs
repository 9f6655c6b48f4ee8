// SPDX-License-Identifier: Apache-2.0
//! Counters: those of the client, and all of the driver.

use pyo3::prelude::*;
use taran::{CommandError, CounterMeta};

use crate::error::{closed, of_command};

#[pyclass(frozen, module = "taran")]
pub(crate) struct Counter(taran::Counter);

impl Counter {
    pub(crate) fn new(counter: taran::Counter) -> Self {
        Self(counter)
    }

    fn open(&self) -> PyResult<&taran::Counter> {
        match self.0.close_reason().map(|reason| reason.lost()) {
            None => Ok(&self.0),
            Some(None) => Err(closed()),
            Some(Some(lost)) => Err(of_command(CommandError::DriverLost(lost))),
        }
    }
}

#[pymethods]
impl Counter {
    #[getter]
    fn id(&self) -> i32 {
        self.0.id()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn get(&self) -> PyResult<i64> {
        Ok(self.open()?.get())
    }

    fn set(&self, value: i64) -> PyResult<()> {
        self.open()?.set(value);
        Ok(())
    }

    fn add(&self, delta: i64) -> PyResult<i64> {
        Ok(self.open()?.add(delta))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}

#[pyclass(frozen, get_all, module = "taran")]
pub(crate) struct CounterInfo {
    id: i32,
    type_id: i32,
    registration_id: i64,
    owner_id: i64,
    value: i64,
    label: String,
    key: Py<pyo3::types::PyBytes>,
}

impl CounterInfo {
    pub(crate) fn new(meta: &CounterMeta, value: i64) -> Self {
        Self {
            id: meta.id,
            type_id: meta.type_id,
            registration_id: meta.registration_id,
            owner_id: meta.owner_id,
            value,
            label: meta.label.as_str().to_owned(),
            key: Python::attach(|py| pyo3::types::PyBytes::new(py, &meta.key).unbind()),
        }
    }
}

#[pymethods]
impl CounterInfo {
    fn __repr__(&self) -> String {
        format!(
            "<taran.CounterInfo {}: {} {:?}>",
            self.id, self.value, self.label
        )
    }
}
