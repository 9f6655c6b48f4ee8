// SPDX-License-Identifier: Apache-2.0
//! Publications, shared and exclusive.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use taran::idle::Yield;
use taran::{ExclusivePublication, OfferError, Position, Publication as SharedPublication};

use crate::claim::Claim;
use crate::client::seconds;
use crate::error::{claimed, closed, in_use, of_offer};
use crate::release;

/// Longest wait without a look at signals, so that Ctrl-C ends a wait.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

#[pyclass(frozen, module = "taran")]
pub(crate) struct Publication(Kind);

enum Kind {
    Shared(SharedPublication),
    Exclusive(Arc<Mutex<Slot>>),
}

/// Place of an exclusive publication. A claim takes it from here and brings it back.
pub(crate) enum Slot {
    Open(Box<ExclusivePublication>),
    Claimed,
    Closed,
}

/// The bytes of a bytes-like object; those of `bytes` without a copy.
pub(crate) fn with_bytes<R>(
    data: &Bound<'_, PyAny>,
    with: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return with(bytes.as_bytes());
    }
    // Another thread could change the bytes meanwhile: a copy.
    with(&PyBuffer::<u8>::get(data)?.to_vec(data.py())?)
}

impl Publication {
    pub(crate) fn shared(publication: SharedPublication) -> Self {
        Self(Kind::Shared(publication))
    }

    pub(crate) fn exclusive(publication: ExclusivePublication) -> Self {
        let slot = Slot::Open(Box::new(publication));
        Self(Kind::Exclusive(Arc::new(Mutex::new(slot))))
    }

    fn with<R>(
        &self,
        shared: impl FnOnce(&SharedPublication) -> Result<R, OfferError>,
        exclusive: impl FnOnce(&mut ExclusivePublication) -> Result<R, OfferError>,
    ) -> PyResult<R> {
        match &self.0 {
            Kind::Shared(publication) => shared(publication).map_err(of_offer),
            Kind::Exclusive(slot) => match &mut *lock(slot)? {
                Slot::Open(publication) => exclusive(publication).map_err(of_offer),
                Slot::Claimed => Err(claimed()),
                Slot::Closed => Err(closed()),
            },
        }
    }

    fn get<R>(
        &self,
        shared: impl FnOnce(&SharedPublication) -> R,
        exclusive: impl FnOnce(&ExclusivePublication) -> R,
    ) -> PyResult<R> {
        self.with(
            |publication| Ok(shared(publication)),
            |publication| Ok(exclusive(publication)),
        )
    }
}

fn lock(slot: &Mutex<Slot>) -> PyResult<std::sync::MutexGuard<'_, Slot>> {
    match slot.try_lock() {
        Ok(slot) => Ok(slot),
        Err(TryLockError::Poisoned(slot)) => Ok(PoisonError::into_inner(slot)),
        Err(TryLockError::WouldBlock) => Err(in_use()),
    }
}

#[pymethods]
impl Publication {
    fn offer(&self, data: &Bound<'_, PyAny>) -> PyResult<Position> {
        with_bytes(data, |message| {
            self.with(
                |publication| publication.offer(message),
                |publication| publication.offer(message),
            )
        })
    }

    fn offer_for(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<Position> {
        let deadline = Instant::now()
            .checked_add(seconds(timeout)?)
            .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("the timeout is too long"))?;
        with_bytes(data, |message| {
            loop {
                let until = deadline.min(Instant::now() + SIGNAL_CHECK);
                let offered = py.detach(|| {
                    self.with(
                        |publication| publication.offer_until(message, until, &mut Yield),
                        |publication| publication.offer_until(message, until, &mut Yield),
                    )
                });
                match offered {
                    Err(error)
                        if until < deadline
                            && error.is_instance_of::<crate::error::RetryableError>(py) =>
                    {
                        py.check_signals()?;
                    }
                    offered => return offered,
                }
            }
        })
    }

    fn try_claim(&self, length: usize) -> PyResult<Claim> {
        match &self.0 {
            Kind::Shared(publication) => Claim::shared(publication.clone(), length),
            Kind::Exclusive(shared_slot) => {
                let mut slot = lock(shared_slot)?;
                match std::mem::replace(&mut *slot, Slot::Claimed) {
                    Slot::Open(publication) => {
                        Claim::exclusive(publication, length, Arc::clone(shared_slot)).map_err(
                            |(publication, error)| {
                                *slot = Slot::Open(publication);
                                of_offer(error)
                            },
                        )
                    }
                    Slot::Claimed => Err(claimed()),
                    Slot::Closed => {
                        *slot = Slot::Closed;
                        Err(closed())
                    }
                }
            }
        }
    }

    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        self.get(
            SharedPublication::is_connected,
            ExclusivePublication::is_connected,
        )
    }

    #[getter]
    fn is_closed(&self) -> bool {
        match &self.0 {
            Kind::Shared(publication) => publication.is_closed(),
            Kind::Exclusive(slot) => match &*slot.lock().unwrap_or_else(PoisonError::into_inner) {
                Slot::Open(publication) => publication.is_closed(),
                Slot::Claimed => false,
                Slot::Closed => true,
            },
        }
    }

    #[getter]
    fn position(&self) -> PyResult<Position> {
        self.get(SharedPublication::position, ExclusivePublication::position)
    }

    #[getter]
    fn position_limit(&self) -> PyResult<Position> {
        self.get(
            SharedPublication::position_limit,
            ExclusivePublication::position_limit,
        )
    }

    #[getter]
    fn session_id(&self) -> PyResult<i32> {
        self.get(
            SharedPublication::session_id,
            ExclusivePublication::session_id,
        )
    }

    #[getter]
    fn max_message_length(&self) -> PyResult<usize> {
        self.get(
            SharedPublication::max_message_length,
            ExclusivePublication::max_message_length,
        )
    }

    #[getter]
    fn max_payload_length(&self) -> PyResult<usize> {
        self.get(
            SharedPublication::max_payload_length,
            ExclusivePublication::max_payload_length,
        )
    }

    fn close(&self) -> PyResult<()> {
        match &self.0 {
            Kind::Shared(publication) => release(|| publication.close()),
            Kind::Exclusive(slot) => {
                let mut slot = lock(slot)?;
                if matches!(*slot, Slot::Claimed) {
                    return Err(claimed());
                }
                *slot = Slot::Closed;
            }
        }
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
