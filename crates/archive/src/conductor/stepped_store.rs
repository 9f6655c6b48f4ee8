// SPDX-License-Identifier: Apache-2.0
//! A catalog store that applies one change per duty cycle of the caller, without a thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::catalog_store::{CatalogStore, StoreStatus, Ticket};
use crate::files::{CatalogFile, Change};

/// The half of the store that applies changes.
pub(crate) struct StoreState {
    file: Option<CatalogFile>,
    changes: VecDeque<Change>,
    submitted: Ticket,
    applied: Ticket,
    status: StoreStatus,
}

impl StoreState {
    pub(crate) fn new(file: CatalogFile) -> Self {
        Self {
            file: Some(file),
            changes: VecDeque::new(),
            submitted: 0,
            applied: 0,
            status: StoreStatus::Working,
        }
    }

    /// Applies a change, if there is one; returns the amount of work.
    pub(crate) fn step(&mut self) -> usize {
        let (Some(file), Some(change)) = (&mut self.file, self.changes.front()) else {
            return 0;
        };
        if matches!(self.status, StoreStatus::Failed(_)) {
            return 0;
        }
        match file.apply(change) {
            Ok(()) => {
                self.changes.pop_front();
                self.applied += 1;
                self.status = StoreStatus::Working;
                1
            }
            Err(error) if error.is_full() => {
                self.status = StoreStatus::Held(error.to_string());
                0
            }
            Err(error) => {
                self.status = StoreStatus::Failed(error.to_string());
                1
            }
        }
    }
}

/// The conductor's half of the store.
pub(crate) struct SteppedStore(Arc<Mutex<StoreState>>);

impl SteppedStore {
    pub(crate) fn new(state: Arc<Mutex<StoreState>>) -> Self {
        Self(state)
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CatalogStore for SteppedStore {
    fn submit(&mut self, change: Change) -> Ticket {
        let mut state = self.lock();
        state.changes.push_back(change);
        state.submitted += 1;
        state.submitted
    }

    fn applied(&self) -> Ticket {
        self.lock().applied
    }

    fn status(&self) -> StoreStatus {
        self.lock().status.clone()
    }

    fn close(&mut self) -> bool {
        let mut state = self.lock();
        while state.step() > 0 {}
        if let Some(file) = state.file.take()
            && let Err(error) = file.close()
        {
            state.status = StoreStatus::Failed(error.to_string());
        }
        true
    }
}
