// SPDX-License-Identifier: Apache-2.0
//! Applying changes of the catalog to its file, off the conductor's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::files::{CatalogFile, Change};
use crate::recorder::CLOSE_TIMEOUT;

/// Time between attempts to change the catalog on a full disk.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two looks at the thread at the end.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Number of a change, counted from 1.
pub(crate) type Ticket = u64;

/// State of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreStatus {
    /// Changes are applied.
    Working,
    /// The disk is full: changes wait for space.
    Held(String),
    /// Memory is ahead of the file for good: the archive has to end.
    Failed(String),
}

/// Applies changes to the file of the catalog in their order, without making the caller wait.
pub(crate) trait CatalogStore: Send {
    /// Accepts a change, and returns its number.
    fn submit(&mut self, change: Change) -> Ticket;

    /// Returns the number of the last change that is applied, and as durable as the sync level asks for.
    fn applied(&self) -> Ticket;

    /// Returns the state.
    fn status(&self) -> StoreStatus;

    /// Waits until all changes are applied and durable; for the end of the archive. Returns false if the disk does not answer,
    /// so that changes are still under way.
    fn close(&mut self) -> bool;
}

#[derive(Debug)]
struct Progress {
    applied: AtomicU64,
    status: Mutex<StoreStatus>,
}

/// A store with a thread of its own.
#[derive(Debug)]
pub(crate) struct ThreadedCatalogStore {
    progress: Arc<Progress>,
    changes: Option<Sender<Change>>,
    submitted: Ticket,
    thread: Option<JoinHandle<()>>,
}

impl ThreadedCatalogStore {
    /// Starts the thread.
    pub(crate) fn start(file: CatalogFile) -> io::Result<Self> {
        let progress = Arc::new(Progress {
            applied: AtomicU64::new(0),
            status: Mutex::new(StoreStatus::Working),
        });
        let (changes, receiver) = channel();
        let of_thread = Arc::clone(&progress);
        let thread = thread::Builder::new()
            .name("archive-catalog".to_owned())
            .spawn(move || of_thread.run(file, &receiver))?;
        Ok(Self {
            progress,
            changes: Some(changes),
            submitted: 0,
            thread: Some(thread),
        })
    }
}

impl Progress {
    fn run(&self, mut file: CatalogFile, changes: &Receiver<Change>) {
        let mut waiting = VecDeque::new();
        let (mut is_open, mut is_held) = (true, false);
        loop {
            // While the disk is full, the next attempt comes after a pause, or as the last one.
            let received = match (waiting.is_empty(), is_held) {
                (true, _) => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (false, true) => changes.recv_timeout(RETRY_INTERVAL),
                (false, false) => Err(RecvTimeoutError::Timeout),
            };
            match received {
                Ok(change) => waiting.push_back(change),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_open = false,
            }
            let Some(change) = waiting.front() else { break };
            match file.apply(change) {
                Ok(()) => {
                    waiting.pop_front();
                    // Release: the partner of the acquire in `applied`.
                    self.applied.fetch_add(1, Ordering::Release);
                    if is_held {
                        is_held = false;
                        self.set_status(StoreStatus::Working);
                    }
                }
                Err(error) if error.is_full() && is_open => {
                    is_held = true;
                    self.set_status(StoreStatus::Held(error.to_string()));
                }
                Err(error) => {
                    self.set_status(StoreStatus::Failed(error.to_string()));
                    return;
                }
            }
        }
        if let Err(error) = file.close() {
            self.set_status(StoreStatus::Failed(error.to_string()));
        }
    }

    fn set_status(&self, status: StoreStatus) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

impl CatalogStore for ThreadedCatalogStore {
    fn submit(&mut self, change: Change) -> Ticket {
        self.submitted += 1;
        if let Some(changes) = &self.changes {
            // The thread ends before only with the status `Failed`.
            let _ = changes.send(change);
        }
        self.submitted
    }

    fn applied(&self) -> Ticket {
        // Acquire: the partner of the release in `run`.
        self.progress.applied.load(Ordering::Acquire)
    }

    fn status(&self) -> StoreStatus {
        let status = self.progress.status.lock();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&mut self) -> bool {
        self.changes = None;
        let Some(thread) = self.thread.take() else {
            return true;
        };
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(CLOSE_POLL_INTERVAL);
        }
        // A panic of the thread has been printed.
        drop(thread.join());
        true
    }
}

impl Drop for ThreadedCatalogStore {
    fn drop(&mut self) {
        self.close();
    }
}
