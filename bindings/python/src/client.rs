// SPDX-License-Identifier: Apache-2.0
//! The client.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use taran::{CommandError, CountersReader, ImageHandlers, ImageView};

use crate::counter::{Counter, CounterInfo};
use crate::error::{NoSuchCounter, of_client, of_close, of_command, of_connect};
use crate::publication::Publication;
use crate::release;
use crate::subscription::{Image, Subscription};

#[pyclass(frozen, module = "taran")]
pub(crate) struct Client(taran::Client);

impl Drop for Client {
    fn drop(&mut self) {
        release(|| self.0.close());
    }
}

/// Calls a handler on the client's thread. Nothing is called when the interpreter ends.
fn call<'a, A>(handler: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<A> + 'a)
where
    A: for<'py> IntoPyObject<'py>,
{
    Python::try_attach(|py| {
        let called = argument(py).and_then(|argument| handler.call1(py, (argument,)));
        if let Err(error) = called {
            error.write_unraisable(py, Some(handler.bind(py)));
        }
    });
}

/// A number of seconds, as Python counts time.
pub(crate) fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| PyValueError::new_err(format!("a time of {value} s: {error}")))
}

#[pyfunction]
#[pyo3(signature = (directory=None, *, name=None, driver_timeout=None, options=None, on_error=None, on_close=None))]
pub(crate) fn connect(
    py: Python<'_>,
    directory: Option<PathBuf>,
    name: Option<String>,
    driver_timeout: Option<f64>,
    options: Option<std::collections::HashMap<String, String>>,
    on_error: Option<Py<PyAny>>,
    on_close: Option<Py<PyAny>>,
) -> PyResult<Client> {
    let mut builder = taran::Client::builder();
    for (name, value) in options.into_iter().flatten() {
        builder = builder.property(name, value);
    }
    if let Some(directory) = directory {
        builder = builder.aeron_dir(directory);
    }
    if let Some(name) = name {
        builder = builder.client_name(name);
    }
    if let Some(timeout) = driver_timeout {
        builder = builder.driver_timeout(seconds(timeout)?);
    }
    if let Some(handler) = on_error {
        builder = builder.on_error(move |error| {
            call(&handler, |py| Ok(of_client(error).into_value(py)));
        });
    }
    if let Some(handler) = on_close {
        builder = builder.on_close(move |reason| {
            call(&handler, |py| {
                Ok(of_close(reason).map(|error| error.into_value(py)))
            });
        });
    }
    let client = py.detach(|| builder.connect()).map_err(of_connect)?;
    Ok(Client(client))
}

impl Client {
    /// Returns the counters of the driver of a client that is open.
    fn reader(&self) -> PyResult<&CountersReader> {
        match self.0.close_reason() {
            Some(reason) => Err(of_command(CommandError::from(reason))),
            None => Ok(self.0.counters()),
        }
    }
}

#[pymethods]
impl Client {
    #[getter]
    fn id(&self) -> i64 {
        self.0.client_id()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn directory(&self) -> PathBuf {
        self.0.aeron_dir().to_owned()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn add_publication(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
    ) -> PyResult<Publication> {
        let added = py.detach(|| self.0.add_publication(channel, stream_id));
        Ok(Publication::shared(added.map_err(of_command)?))
    }

    fn add_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
    ) -> PyResult<Publication> {
        let added = py.detach(|| self.0.add_exclusive_publication(channel, stream_id));
        Ok(Publication::exclusive(added.map_err(of_command)?))
    }

    #[pyo3(signature = (channel, stream_id, *, on_available=None, on_unavailable=None))]
    fn add_subscription(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
        on_available: Option<Py<PyAny>>,
        on_unavailable: Option<Py<PyAny>>,
    ) -> PyResult<Subscription> {
        let mut handlers = ImageHandlers::new();
        if let Some(handler) = on_available {
            handlers = handlers
                .on_available(move |image: &ImageView| call(&handler, |_| Ok(Image::of(image))));
        }
        if let Some(handler) = on_unavailable {
            handlers = handlers
                .on_unavailable(move |image: &ImageView| call(&handler, |_| Ok(Image::of(image))));
        }
        let added = py.detach(|| self.0.add_subscription_with(channel, stream_id, handlers));
        Ok(Subscription::new(added.map_err(of_command)?))
    }

    #[pyo3(signature = (type_id, label, *, key=None))]
    fn add_counter(
        &self,
        py: Python<'_>,
        type_id: i32,
        label: &str,
        key: Option<Vec<u8>>,
    ) -> PyResult<Counter> {
        let key = key.unwrap_or_default();
        let added = py.detach(|| self.0.add_counter(type_id, &key, label));
        Ok(Counter::new(added.map_err(of_command)?))
    }

    fn read_counter(&self, counter_id: i32) -> PyResult<i64> {
        self.reader()?.value(counter_id).ok_or_else(|| {
            NoSuchCounter::new_err(format!(
                "the driver has no counter with id {counter_id}; 'taran stat' lists all"
            ))
        })
    }

    fn counters(&self) -> PyResult<Vec<CounterInfo>> {
        let reader = self.reader()?;
        let mut counters = Vec::new();
        reader.for_each(|meta| {
            // Freed since: no longer one of the driver.
            if let Some(value) = reader.value(meta.id) {
                counters.push(CounterInfo::new(meta, value));
            }
        });
        Ok(counters)
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
