// SPDX-License-Identifier: Apache-2.0
//! Subscriptions: polls.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use taran::{
    Action as TaranAction, ControlledFragmentAssembler, FragmentAssembler, Header as FrameHeader,
    ImageView, PollError,
};

use crate::error::{closed, in_use, of_poll};
use crate::release;

#[pyclass(frozen, module = "taran")]
pub(crate) struct Subscription(Mutex<Option<Polled>>);

struct Polled {
    subscription: taran::Subscription,
    assembler: FragmentAssembler,
    controlled_assembler: ControlledFragmentAssembler,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let polled = self
            .0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        release(|| drop(polled));
    }
}

/// The failure of a poll or of its handler.
struct Failed(PyErr);

impl From<PollError> for Failed {
    fn from(error: PollError) -> Self {
        Self(of_poll(error))
    }
}

#[pyclass(frozen, get_all, module = "taran")]
pub(crate) struct Header {
    position: i64,
    reserved_value: i64,
    session_id: i32,
    stream_id: i32,
    term_id: i32,
    term_offset: i32,
    flags: u8,
}

impl Header {
    fn of(header: &FrameHeader<'_>) -> Self {
        Self {
            position: header.position(),
            reserved_value: header.reserved_value(),
            session_id: header.session_id(),
            stream_id: header.stream_id(),
            term_id: header.term_id(),
            term_offset: header.term_offset(),
            flags: header.flags(),
        }
    }
}

#[pyclass(frozen, get_all, module = "taran")]
pub(crate) struct Image {
    correlation_id: i64,
    position: i64,
    session_id: i32,
    stream_id: i32,
    source_identity: String,
}

impl Image {
    pub(crate) fn of(image: &ImageView) -> Self {
        Self {
            correlation_id: image.correlation_id(),
            position: image.position(),
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            source_identity: image.source_identity().to_owned(),
        }
    }
}

#[pyclass(frozen, eq, from_py_object, module = "taran")]
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::upper_case_acronyms, reason = "constants of Python")]
pub(crate) enum Action {
    ABORT,
    BREAK,
    COMMIT,
    CONTINUE,
}

impl From<Action> for TaranAction {
    fn from(action: Action) -> Self {
        match action {
            Action::ABORT => Self::Abort,
            Action::BREAK => Self::Break,
            Action::COMMIT => Self::Commit,
            Action::CONTINUE => Self::Continue,
        }
    }
}

impl Subscription {
    pub(crate) fn new(subscription: taran::Subscription) -> Self {
        Self(Mutex::new(Some(Polled {
            subscription,
            assembler: FragmentAssembler::new(),
            controlled_assembler: ControlledFragmentAssembler::new(),
        })))
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Polled>>> {
        match self.0.try_lock() {
            Ok(polled) => Ok(polled),
            Err(TryLockError::Poisoned(polled)) => Ok(PoisonError::into_inner(polled)),
            Err(TryLockError::WouldBlock) => Err(in_use()),
        }
    }

    fn with<R>(&self, with: impl FnOnce(&mut Polled) -> Result<R, Failed>) -> PyResult<R> {
        with(self.lock()?.as_mut().ok_or_else(closed)?).map_err(|failed| failed.0)
    }
}

/// Calls a handler with a fragment or message.
fn deliver(
    handler: &Bound<'_, PyAny>,
    data: &[u8],
    header: &FrameHeader<'_>,
) -> Result<(), Failed> {
    let data = PyBytes::new(handler.py(), data);
    handler
        .call1((data, Header::of(header)))
        .map(drop)
        .map_err(Failed)
}

/// Calls a handler that returns an action. The fragment of an exception, which is kept, is not consumed.
fn control(
    handler: &Bound<'_, PyAny>,
    raised: &mut Option<PyErr>,
    data: &[u8],
    header: &FrameHeader<'_>,
) -> TaranAction {
    if raised.is_some() {
        return TaranAction::Abort;
    }
    let data = PyBytes::new(handler.py(), data);
    let action = handler
        .call1((data, Header::of(header)))
        .and_then(|action| action.extract::<Action>().map_err(PyErr::from));
    match action {
        Ok(action) => action.into(),
        Err(error) => {
            *raised = Some(error);
            TaranAction::Abort
        }
    }
}

#[pymethods]
impl Subscription {
    #[pyo3(signature = (handler, fragment_limit=10))]
    fn poll(&self, handler: &Bound<'_, PyAny>, fragment_limit: usize) -> PyResult<usize> {
        self.with(|polled| {
            polled.subscription.try_poll(
                |data, header| deliver(handler, data, header),
                fragment_limit,
            )
        })
    }

    #[pyo3(signature = (handler, fragment_limit=10))]
    fn poll_messages(&self, handler: &Bound<'_, PyAny>, fragment_limit: usize) -> PyResult<usize> {
        self.with(|polled| {
            let Polled {
                subscription,
                assembler,
                ..
            } = polled;
            let handler = assembler
                .try_wrap(|data: &[u8], header: &FrameHeader<'_>| deliver(handler, data, header));
            subscription.try_poll(handler, fragment_limit)
        })
    }

    #[pyo3(signature = (handler, fragment_limit=10))]
    fn controlled_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
    ) -> PyResult<usize> {
        self.with(|polled| {
            let mut raised = None;
            let fragments = polled.subscription.controlled_poll(
                |data, header| control(handler, &mut raised, data, header),
                fragment_limit,
            )?;
            raised.map_or(Ok(fragments), |error| Err(Failed(error)))
        })
    }

    #[pyo3(signature = (handler, fragment_limit=10))]
    fn controlled_poll_messages(
        &self,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
    ) -> PyResult<usize> {
        self.with(|polled| {
            let Polled {
                subscription,
                controlled_assembler,
                ..
            } = polled;
            let mut raised = None;
            let wrapped = controlled_assembler.wrap(|data: &[u8], header: &FrameHeader<'_>| {
                control(handler, &mut raised, data, header)
            });
            let fragments = subscription.controlled_poll(wrapped, fragment_limit)?;
            raised.map_or(Ok(fragments), |error| Err(Failed(error)))
        })
    }

    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        self.with(|polled| Ok(polled.subscription.is_connected()))
    }

    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        let polled = self.lock()?;
        Ok(polled
            .as_ref()
            .is_none_or(|polled| polled.subscription.is_closed()))
    }

    #[getter]
    fn image_count(&self) -> PyResult<usize> {
        self.with(|polled| Ok(polled.subscription.image_count()))
    }

    fn close(&self) -> PyResult<()> {
        let polled = self.lock()?.take();
        release(|| drop(polled));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close()
    }
}
