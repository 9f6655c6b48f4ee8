// SPDX-License-Identifier: Apache-2.0
//! Claims: messages that are written in place.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use self_cell::{MutBorrow, self_cell};
use taran::{BufferClaim, ExclusivePublication, OfferError, Position, Publication};

use crate::error::{closed, of_offer};
use crate::publication::{Slot, with_bytes};

/// The claim of a publication; `None` once it is committed.
type Space<'a> = Option<BufferClaim<'a>>;

self_cell!(
    struct SharedClaim {
        owner: Publication,
        #[not_covariant]
        dependent: Space,
    }
);

self_cell!(
    struct ExclusiveClaim {
        owner: MutBorrow<Box<ExclusivePublication>>,
        #[not_covariant]
        dependent: Space,
    }
);

enum Open {
    Shared(SharedClaim),
    /// With the place that its publication returns to.
    Exclusive(ExclusiveClaim, Arc<Mutex<Slot>>),
}

impl Open {
    fn with<R>(&mut self, with: impl FnOnce(&mut Space<'_>) -> R) -> R {
        match self {
            Self::Shared(claim) => claim.with_dependent_mut(|_, space| with(space)),
            Self::Exclusive(claim, _) => claim.with_dependent_mut(|_, space| with(space)),
        }
    }

    /// Ends the claim, which is aborted unless it was committed.
    fn end(self) {
        if let Self::Exclusive(claim, slot) = self {
            let publication = claim.into_owner().into_inner();
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Slot::Open(publication);
        }
    }
}

#[pyclass(frozen, module = "taran")]
pub(crate) struct Claim {
    open: Mutex<Option<Open>>,
    #[pyo3(get)]
    length: usize,
    #[pyo3(get)]
    position: Position,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(open) = self.take() {
            open.end();
        }
    }
}

impl Claim {
    fn new(mut open: Open) -> Self {
        let (length, position) = open.with(|space| {
            space
                .as_ref()
                .map_or((0, 0), |space| (space.len(), space.position()))
        });
        Self {
            open: Mutex::new(Some(open)),
            length,
            position,
        }
    }

    pub(crate) fn shared(publication: Publication, length: usize) -> PyResult<Self> {
        let claim = SharedClaim::try_new(publication, |publication| {
            publication.try_claim(length).map(Some)
        });
        Ok(Self::new(Open::Shared(claim.map_err(of_offer)?)))
    }

    /// Returns the publication if the claim fails.
    pub(crate) fn exclusive(
        publication: Box<ExclusivePublication>,
        length: usize,
        slot: Arc<Mutex<Slot>>,
    ) -> Result<Self, (Box<ExclusivePublication>, OfferError)> {
        let claim =
            ExclusiveClaim::try_new_or_recover(MutBorrow::new(publication), |publication| {
                publication.borrow_mut().try_claim(length).map(Some)
            });
        match claim {
            Ok(claim) => Ok(Self::new(Open::Exclusive(claim, slot))),
            Err((publication, error)) => Err((publication.into_inner(), error)),
        }
    }

    fn take(&self) -> Option<Open> {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[pymethods]
impl Claim {
    #[pyo3(signature = (data, offset=0))]
    fn write(&self, data: &Bound<'_, PyAny>, offset: usize) -> PyResult<()> {
        with_bytes(data, |data| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().ok_or_else(closed)?.with(|space| {
                let end = offset.saturating_add(data.len());
                let place = space
                    .as_mut()
                    .and_then(|space| space.get_mut(offset..end))
                    .ok_or_else(|| {
                        PyIndexError::new_err(format!(
                            "bytes {offset} to {end} are outside of the claim, which has {}",
                            self.length
                        ))
                    })?;
                place.copy_from_slice(data);
                Ok(())
            })
        })
    }

    fn commit(&self) -> PyResult<Position> {
        let mut open = self.take().ok_or_else(closed)?;
        let position = open.with(|space| space.take().map(BufferClaim::commit));
        open.end();
        position.ok_or_else(closed)
    }

    fn abort(&self) {
        if let Some(open) = self.take() {
            open.end();
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        if exception_type.is_none() {
            if let Some(mut open) = self.take() {
                open.with(|space| space.take().map(BufferClaim::commit));
                open.end();
            }
        } else {
            self.abort();
        }
    }
}
