// SPDX-License-Identifier: Apache-2.0
//! A resource that is made anew on each driver.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::clock::Now;

use super::RETRY_NS;
use super::destinations::{Destinations, Resource};
use super::refusal::is_final;
use crate::client::Client;
use crate::client_core::check_channel;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::Subscription;
use crate::trace::event;

/// State that the client and the handle of a resource share.
#[derive(Debug)]
struct Slot<T> {
    /// Changes with each resource that is made or lost.
    version: AtomicU64,
    /// Changes with the wanted destinations.
    wanted_version: AtomicU64,
    change: Mutex<Change<T>>,
}

#[derive(Debug)]
struct Change<T> {
    /// A resource that the handle has not taken yet.
    made: Option<T>,
    /// Number of resources made so far.
    generation: u64,
    /// Reason why the driver does not have the resource, or else the failure of the first destination that is not as wanted.
    failure: Option<CommandError>,
    /// True if the driver has refused the resource with that failure, and is not asked again.
    is_refused: bool,
    /// Destinations of each resource that is made.
    wanted: Vec<String>,
    /// The task that waits for a resource.
    #[cfg(feature = "async")]
    waker: Option<std::task::Waker>,
    /// True until the task has got the refusal.
    #[cfg(feature = "async")]
    has_new_refusal: bool,
    /// True after the client was dropped: no further resource is made.
    #[cfg(feature = "async")]
    has_ended: bool,
}

impl<T> Change<T> {
    /// Returns the failure if the driver has refused the resource with it.
    fn refusal(&self) -> Option<CommandError> {
        self.failure.clone().filter(|_| self.is_refused)
    }

    /// Takes the waker of the task that waits, to be used without the lock.
    #[cfg(feature = "async")]
    fn take_waker(&mut self) -> Option<std::task::Waker> {
        self.waker.take()
    }

    /// Without the feature no task waits.
    #[cfg(not(feature = "async"))]
    #[expect(clippy::unused_self, reason = "the same call as with the feature")]
    fn take_waker(&mut self) -> Option<std::task::Waker> {
        None
    }
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Change<T>> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, and then ends the wait of the task.
    fn update(&self, make: impl FnOnce(&mut Change<T>)) {
        let waker = {
            let mut change = self.lock();
            make(&mut change);
            change.take_waker()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
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
///
/// ```
/// # use taran::{Client, ReconnectingClient};
/// # use taran_driver::{DriverContext, MediaDriver};
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let directory = driver.aeron_dir().to_path_buf();
/// # let mut client = ReconnectingClient::new(move || Client::builder().aeron_dir(&directory));
/// let mut publication = client.add_publication("aeron:udp?control-mode=manual|control=127.0.0.1:0", 1001);
/// // The publication has these destinations on each driver, from the start.
/// publication.add_destination("aeron:udp?endpoint=127.0.0.1:40456")?;
/// publication.add_destination("aeron:udp?endpoint=127.0.0.1:40457")?;
/// while publication.get()?.is_none() {
///     client.invoke()?;
/// }
/// assert_eq!((1, None), (publication.generation(), publication.failure()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reconnecting<T> {
    slot: Arc<Slot<T>>,
    current: Option<T>,
    /// Reason why the current driver does not have the resource and is not asked again.
    refusal: Option<CommandError>,
    version: u64,
    generation: u64,
}

impl<T> Reconnecting<T> {
    /// Returns the resource on the current driver; `None` while it is being added, and while there is no driver. Takes
    /// no lock unless that has changed.
    ///
    /// A lost driver is noticed in the next duty cycle of the client. Until then calls fail with an error whose `lost`
    /// is some.
    ///
    /// # Errors
    /// The current driver cannot add the resource, for a reason that does not pass by itself: the error
    /// [is permanent](CommandError::is_permanent), and is not [`ErrorCode::InvalidChannel`](crate::ErrorCode::InvalidChannel) for a
    /// channel that
    ///
    /// * names other streams (`tags`, `session-id`, `response-correlation-id`), which can come and go, or
    /// * has a host name in `endpoint`, `control` or `interface`: official Java drivers use that code for an unknown host, too.
    ///
    /// Each call returns the error until the driver is lost; the resource is added again on the next connection. What fails for
    /// another reason is tried again once per second, and is no error: see [`failure`](Self::failure).
    #[inline]
    pub fn get(&mut self) -> Result<Option<&mut T>, CommandError> {
        // Acquire: pairs with the release in `Slot::bump_version`.
        let version = self.slot.version.load(Ordering::Acquire);
        if version != self.version {
            self.update();
        }
        match &mut self.current {
            Some(current) => Ok(Some(current)),
            None => self.refusal.clone().map_or(Ok(None), Err),
        }
    }

    #[cold]
    fn update(&mut self) {
        let (made, refusal) = {
            let mut change = self.slot.lock();
            // The version changes under the lock only, so it is that of this change.
            self.version = self.slot.version.load(Ordering::Relaxed);
            self.generation = change.generation;
            (change.made.take(), change.refusal())
        };
        self.refusal = refusal;
        // The old resource is dropped after the lock was released.
        self.current = made;
    }

    /// Returns the number of times that the resource was made, as of the last [`get`](Self::get): 1 on the first driver.
    /// When it changes, a stream has started anew.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns why the last attempt to add the resource failed or, if the driver has the resource, why the last attempt to add
    /// or remove a destination failed: of the first destination that is still not as wanted. `None` once the driver has all of
    /// them as wanted. What failed is tried again once per second. Only an addition that is refused for a reason that does not
    /// pass by itself, as [`get`](Self::get) defines it, is tried again on the next connection.
    #[must_use]
    pub fn failure(&self) -> Option<CommandError> {
        self.slot.lock().failure.clone()
    }

    fn change_wanted(&self, change: impl FnOnce(&mut Vec<String>)) {
        change(&mut self.slot.lock().wanted);
        // Release: pairs with the acquire in `Restorer::update_destinations`.
        self.slot.wanted_version.fetch_add(1, Ordering::Release);
    }
}

/// Implements the methods for destinations for the resources that can have any.
macro_rules! with_destinations {
    ($($resource:ty),+) => {
        $(
            impl Reconnecting<$resource> {
                /// Adds a destination to the resource on this and each later driver; its channel has
                /// `control-mode=manual`. Does not wait: the duty cycle of the client sends the command, and
                #[doc = "[`get`](Self::get) returns a resource made anew after each of its destinations was added or has"]
                /// failed ([`failure`](Self::failure)). A destination that was refused for good is tried again on the
                /// next connection. Has no effect if the resource has the destination.
                ///
                /// The driver has each destination once, also after a command whose answer was lost: it is removed before
                /// it is added again.
                ///
                /// # Errors
                /// The channel is too long for a command.
                pub fn add_destination(&self, channel: impl AsRef<str>) -> Result<(), CommandError> {
                    let channel = channel.as_ref();
                    check_channel(channel)?;
                    self.change_wanted(|wanted| {
                        if !wanted.iter().any(|known| known == channel) {
                            wanted.push(channel.to_owned());
                        }
                    });
                    Ok(())
                }

                /// Removes a destination by the channel that it was added with, from the resource on this and each later
                /// driver. Does not wait; repeated until the driver has removed it ([`failure`](Self::failure)).
                pub fn remove_destination(&self, channel: impl AsRef<str>) {
                    self.change_wanted(|wanted| wanted.retain(|known| known != channel.as_ref()));
                }

                /// Returns the channels of the destinations, in the order in which they were added.
                #[must_use]
                pub fn destinations(&self) -> Vec<String> {
                    self.slot.lock().wanted.clone()
                }
            }
        )+
    };
}

with_destinations!(Publication, ExclusivePublication, Subscription);

/// Sends the command that adds a resource.
pub(super) type Add<T> = Box<dyn Fn(&Client) -> Result<Pending<T>, CommandError> + Send>;

/// Adds a resource to each driver.
pub(super) struct Restorer<T> {
    add: Add<T>,
    /// Channel of a publication or subscription.
    channel: Option<String>,
    slot: Arc<Slot<T>>,
    progress: Restoring<T>,
    destinations: Destinations,
}

enum Restoring<T> {
    /// To be added at this time.
    Missing {
        next_attempt_ns: i64,
    },
    Adding(Pending<T>),
    /// The resource exists; its destinations are being added.
    Completing(T),
    /// The handle has the resource.
    Added,
    /// It cannot be added on this connection.
    Refused,
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

impl<T: Resource> Restorer<T> {
    /// Creates the handle and its restorer. `channel` is that of a publication or subscription.
    pub(super) fn new(add: Add<T>, channel: Option<String>) -> (Reconnecting<T>, Self) {
        let slot = Arc::new(Slot {
            version: AtomicU64::new(0),
            wanted_version: AtomicU64::new(0),
            change: Mutex::new(Change {
                made: None,
                generation: 0,
                failure: None,
                is_refused: false,
                wanted: Vec::new(),
                #[cfg(feature = "async")]
                waker: None,
                #[cfg(feature = "async")]
                has_new_refusal: false,
                #[cfg(feature = "async")]
                has_ended: false,
            }),
        });
        let handle = Reconnecting {
            slot: Arc::clone(&slot),
            current: None,
            refusal: None,
            version: 0,
            generation: 0,
        };
        let restorer = Self {
            add,
            channel,
            slot,
            progress: Restoring::Missing {
                next_attempt_ns: i64::MIN,
            },
            destinations: Destinations::default(),
        };
        (handle, restorer)
    }

    /// Adds and removes destinations. Returns the amount of work done.
    fn update_destinations(&mut self, now: Now) -> usize {
        // Acquire: pairs with the release in `Reconnecting::change_wanted`.
        let version = self.slot.wanted_version.load(Ordering::Acquire);
        if self.destinations.is_outdated(version) {
            let wanted = self.slot.lock().wanted.clone();
            self.destinations.set_wanted(wanted, version);
        }
        let work = self.destinations.do_work(now);
        if work > 0 {
            // The resource itself is there.
            self.slot.lock().failure = self.destinations.failure().cloned();
        }
        work
    }

    /// Passes a resource with all its destinations to the handle.
    fn hand_over(&mut self, made: T) {
        self.slot.update(|change| {
            change.made = Some(made);
            change.generation += 1;
            change.failure = self.destinations.failure().cloned();
            self.slot.bump_version(change);
        });
    }

    fn fail(&mut self, error: CommandError, now: Now) {
        if is_final(&error, self.channel.as_deref()) {
            self.refuse(error);
            return;
        }
        self.slot.lock().failure = Some(error);
        self.progress = Restoring::Missing {
            next_attempt_ns: now.nanos.saturating_add(RETRY_NS),
        };
    }

    /// Passes the refusal of the driver to the handle.
    fn refuse(&mut self, error: CommandError) {
        event!(
            warn,
            "the media driver refuses a resource",
            channel = self.channel.as_deref().unwrap_or("none"),
            error = error
        );
        self.progress = Restoring::Refused;
        self.slot.update(|change| {
            change.failure = Some(error);
            change.is_refused = true;
            #[cfg(feature = "async")]
            {
                change.has_new_refusal = true;
            }
            self.slot.bump_version(change);
        });
    }
}

impl<T: Resource> Restore for Restorer<T> {
    fn do_work(&mut self, client: &Client, now: Now) -> usize {
        match &mut self.progress {
            Restoring::Added => self.update_destinations(now),
            Restoring::Refused => 0,
            Restoring::Completing(_) => {
                let work = self.update_destinations(now);
                if !self.destinations.is_settled() {
                    return work;
                }
                if let Restoring::Completing(made) =
                    mem::replace(&mut self.progress, Restoring::Added)
                {
                    self.hand_over(made);
                }
                work + 1
            }
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
                    self.destinations.begin(made.destination_port());
                    self.progress = Restoring::Completing(made);
                    // A resource without destinations is handed over in this cycle.
                    1 + self.do_work(client, now)
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
            change.is_refused = false;
            #[cfg(feature = "async")]
            {
                change.has_new_refusal = false;
            }
            self.slot.bump_version(&change);
            change.made.take()
        };
        drop(unused);
        self.destinations.end();
        self.progress = Restoring::Missing {
            next_attempt_ns: i64::MIN,
        };
    }

    fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }
}

#[cfg(feature = "async")]
impl<T> Drop for Restorer<T> {
    /// Ends the wait of a task for a resource that will never be made.
    fn drop(&mut self) {
        self.slot.update(|change| change.has_ended = true);
    }
}

#[cfg(feature = "async")]
impl<T> Reconnecting<T> {
    /// Takes the resource that was made last out of the handle: waits while there is none, and returns `None` after the
    /// client was dropped. Returns the refusal of a driver once.
    pub(crate) fn poll_take(
        &mut self,
        context: &std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<T, CommandError>>> {
        use std::task::Poll;
        // Cloning and dropping a waker can run code of the runtime, so no lock is held.
        let mut waker = Some(context.waker().clone());
        let mut change = self.slot.lock();
        self.version = self.slot.version.load(Ordering::Relaxed);
        self.generation = change.generation;
        if let Some(made) = self.current.take().or_else(|| change.made.take()) {
            return Poll::Ready(Some(Ok(made)));
        }
        if mem::take(&mut change.has_new_refusal)
            && let Some(refusal) = change.refusal()
        {
            return Poll::Ready(Some(Err(refusal)));
        }
        if change.has_ended {
            return Poll::Ready(None);
        }
        mem::swap(&mut change.waker, &mut waker);
        drop(change);
        Poll::Pending
    }
}
