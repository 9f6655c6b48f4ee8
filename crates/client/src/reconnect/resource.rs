//! A resource that is made anew on each driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::clock::Now;

use super::RETRY_NS;
use crate::client::Client;
use crate::error::CommandError;
use crate::pending::Pending;

/// State that the client and the handle of a resource share.
#[derive(Debug)]
struct Slot<T> {
    /// Changes with each resource that is made or lost.
    version: AtomicU64,
    change: Mutex<Change<T>>,
}

#[derive(Debug)]
struct Change<T> {
    /// A resource that the handle has not taken yet.
    made: Option<T>,
    /// Number of resources made so far.
    generation: u64,
    /// Reason why the last attempt to add the resource failed.
    failure: Option<CommandError>,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Change<T>> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the handle look at the change, whose lock the caller holds.
    fn bump_version(&self, _held: &Change<T>) {
        // Release: pairs with the acquire in `Reconnecting::get`.
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A publication, subscription or counter of a [`ReconnectingClient`](super::ReconnectingClient), which exists while
/// there is a driver.
///
/// Dropping it closes the resource; it is not added again.
#[derive(Debug)]
pub struct Reconnecting<T> {
    slot: Arc<Slot<T>>,
    current: Option<T>,
    version: u64,
    generation: u64,
}

impl<T> Reconnecting<T> {
    /// Returns the resource on the current driver; `None` while it is being added, and while there is no driver. Takes
    /// no lock unless that has changed.
    ///
    /// A lost driver is noticed in the next duty cycle of the client. Until then calls fail with an error whose `lost`
    /// is some.
    #[inline]
    pub fn get(&mut self) -> Option<&mut T> {
        // Acquire: pairs with the release in `Slot::bump_version`.
        let version = self.slot.version.load(Ordering::Acquire);
        if version != self.version {
            self.update();
        }
        self.current.as_mut()
    }

    #[cold]
    fn update(&mut self) {
        let made = {
            let mut change = self.slot.lock();
            // The version changes under the lock only, so it is that of this change.
            self.version = self.slot.version.load(Ordering::Relaxed);
            self.generation = change.generation;
            change.made.take()
        };
        // The old resource is dropped after the lock was released.
        self.current = made;
    }

    /// Returns the number of times that the resource was made, as of the last [`get`](Self::get): 1 on the first driver.
    /// When it changes, a stream has started anew, without the destinations that were added to the last one.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns why the last attempt to add the resource failed; `None` after it was added. It is tried again once per
    /// second.
    #[must_use]
    pub fn failure(&self) -> Option<CommandError> {
        self.slot.lock().failure.clone()
    }
}

/// Sends the command that adds a resource.
type Add<T> = Box<dyn Fn(&Client) -> Result<Pending<T>, CommandError> + Send>;

/// Adds a resource to each driver.
pub(super) struct Restorer<T> {
    add: Add<T>,
    slot: Arc<Slot<T>>,
    progress: Restoring<T>,
}

enum Restoring<T> {
    /// To be added at this time.
    Missing {
        next_attempt_ns: i64,
    },
    Adding(Pending<T>),
    Added,
}

/// A resource of any kind.
pub(super) trait Restore: Send {
    /// Adds the resource if the driver does not have it. Returns the amount of work done.
    fn do_work(&mut self, client: &Client, now: Now) -> usize;
    /// Discards the resource, whose driver is lost.
    fn on_lost(&mut self);
    /// Returns true if the application has dropped the handle.
    fn is_dropped(&self) -> bool;
}

impl<T: Send> Restorer<T> {
    pub(super) fn new(add: Add<T>) -> (Reconnecting<T>, Self) {
        let slot = Arc::new(Slot {
            version: AtomicU64::new(0),
            change: Mutex::new(Change {
                made: None,
                generation: 0,
                failure: None,
            }),
        });
        let handle = Reconnecting {
            slot: Arc::clone(&slot),
            current: None,
            version: 0,
            generation: 0,
        };
        let restorer = Self {
            add,
            slot,
            progress: Restoring::Missing {
                next_attempt_ns: i64::MIN,
            },
        };
        (handle, restorer)
    }

    fn fail(&mut self, error: CommandError, now: Now) {
        self.slot.lock().failure = Some(error);
        self.progress = Restoring::Missing {
            next_attempt_ns: now.nanos.saturating_add(RETRY_NS),
        };
    }
}

impl<T: Send> Restore for Restorer<T> {
    fn do_work(&mut self, client: &Client, now: Now) -> usize {
        match &mut self.progress {
            Restoring::Added => 0,
            Restoring::Missing { next_attempt_ns } if now.nanos < *next_attempt_ns => 0,
            Restoring::Missing { .. } => {
                match (self.add)(client) {
                    Ok(pending) => self.progress = Restoring::Adding(pending),
                    Err(error) => self.fail(error, now),
                }
                1
            }
            Restoring::Adding(pending) => match pending.poll() {
                None => 0,
                Some(Ok(made)) => {
                    {
                        let mut change = self.slot.lock();
                        change.made = Some(made);
                        change.generation += 1;
                        change.failure = None;
                        self.slot.bump_version(&change);
                    }
                    self.progress = Restoring::Added;
                    1
                }
                Some(Err(error)) => {
                    self.fail(error, now);
                    1
                }
            },
        }
    }

    fn on_lost(&mut self) {
        let unused = {
            let mut change = self.slot.lock();
            self.slot.bump_version(&change);
            change.made.take()
        };
        drop(unused);
        self.progress = Restoring::Missing {
            next_attempt_ns: i64::MIN,
        };
    }

    fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }
}
