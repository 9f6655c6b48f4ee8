// SPDX-License-Identifier: Apache-2.0
//! Any number of callbacks of one kind.

use std::sync::{Arc, Mutex, PoisonError};

use super::Callback;

/// Callbacks that are called in the order in which they were added. After [`CallbackList::remove`] or
/// [`CallbackList::disable`] has returned, the removed callbacks do not run, as with a [`Callback`].
pub(crate) struct CallbackList<F: ?Sized> {
    entries: Mutex<Entries<F>>,
}

struct Entries<F: ?Sized> {
    is_disabled: bool,
    list: Vec<(i64, Arc<Callback<F>>)>,
}

impl<F: ?Sized> CallbackList<F> {
    /// Creates a list with an optional first callback.
    pub(crate) fn new(id: i64, first: Option<Box<F>>) -> Self {
        let list = first.map(|function| (id, Arc::new(Callback::new(Some(function)))));
        Self {
            entries: Mutex::new(Entries {
                is_disabled: false,
                list: list.into_iter().collect(),
            }),
        }
    }

    /// Adds a callback. Returns false if the list is disabled.
    pub(crate) fn add(&self, id: i64, function: Box<F>) -> bool {
        let callback = Arc::new(Callback::new(Some(function)));
        let mut entries = self.lock();
        if entries.is_disabled {
            return false;
        }
        entries.list.push((id, callback));
        true
    }

    /// Removes a callback. Returns false if there is none with that id.
    pub(crate) fn remove(&self, id: i64) -> bool {
        let removed = {
            let mut entries = self.lock();
            let index = entries.list.iter().position(|(known, _)| *known == id);
            index.map(|index| entries.list.remove(index).1)
        };
        // Not under the lock: this waits for a call in progress, which may add or remove callbacks.
        removed.inspect(|callback| callback.disable()).is_some()
    }

    /// Disables all callbacks and rejects later ones.
    pub(crate) fn disable(&self) {
        let list = {
            let mut entries = self.lock();
            entries.is_disabled = true;
            std::mem::take(&mut entries.list)
        };
        for (_, callback) in list {
            callback.disable();
        }
    }

    /// Returns the current callbacks; does not allocate if there are none.
    pub(crate) fn all(&self) -> Vec<Arc<Callback<F>>> {
        let entries = self.lock();
        let callbacks = entries
            .list
            .iter()
            .map(|(_, callback)| Arc::clone(callback));
        callbacks.collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries<F>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: ?Sized> std::fmt::Debug for CallbackList<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallbackList")
            .field("length", &self.lock().list.len())
            .finish_non_exhaustive()
    }
}
