//! Users' functions of one kind, of which there may be any number.

use std::sync::{Arc, Mutex, PoisonError};

use super::Callback;

/// Functions that are called one after the other, in the order in which they were added. Once [`CallbackList::remove`]
/// or [`CallbackList::take_away`] has returned, what it took away does not run and never will again, as with a
/// [`Callback`].
pub(crate) struct CallbackList<F: ?Sized> {
    entries: Mutex<Entries<F>>,
}

struct Entries<F: ?Sized> {
    is_over: bool,
    list: Vec<(i64, Arc<Callback<F>>)>,
}

impl<F: ?Sized> CallbackList<F> {
    /// With a function that nobody removes, or none.
    pub(crate) fn new(id: i64, first: Option<Box<F>>) -> Self {
        let list = first.map(|function| (id, Arc::new(Callback::new(Some(function)))));
        Self {
            entries: Mutex::new(Entries {
                is_over: false,
                list: list.into_iter().collect(),
            }),
        }
    }

    /// False if all were taken away: the function will not run.
    pub(crate) fn add(&self, id: i64, function: Box<F>) -> bool {
        let callback = Arc::new(Callback::new(Some(function)));
        let mut entries = self.lock();
        if entries.is_over {
            return false;
        }
        entries.list.push((id, callback));
        true
    }

    /// False if there is none with that id.
    pub(crate) fn remove(&self, id: i64) -> bool {
        let removed = {
            let mut entries = self.lock();
            let index = entries.list.iter().position(|(known, _)| *known == id);
            index.map(|index| entries.list.remove(index).1)
        };
        // Not under the lock: it waits for a call in progress, which may add or remove.
        removed.inspect(|callback| callback.take_away()).is_some()
    }

    /// Ends all of them, and those that would be added later.
    pub(crate) fn take_away(&self) {
        let list = {
            let mut entries = self.lock();
            entries.is_over = true;
            std::mem::take(&mut entries.list)
        };
        for (_, callback) in list {
            callback.take_away();
        }
    }

    /// The functions there are at this moment; nothing is allocated where there is none.
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
