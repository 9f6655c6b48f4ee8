// SPDX-License-Identifier: Apache-2.0
//! The condition that one task waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use taran_core::counters::Counter;

use super::reactor::Reactor;
use crate::Position;
use crate::image::ImageView;
use crate::publication::{PublicationCore, PublicationState};
use crate::subscription::{Subscription, SubscriptionState};

/// A condition in shared memory and the task to wake when it holds. Armed by the task, checked by the reactor.
#[derive(Debug)]
pub(super) struct Watch {
    condition: Condition,
    wait: Mutex<Wait>,
}

#[derive(Debug)]
enum Condition {
    /// The images have changed, one of them has a frame to consume, or the subscription is closed.
    Received(Arc<SubscriptionState>),
    /// The limit is above the position, or the publication is closed.
    Writable {
        state: Arc<PublicationState>,
        limit: Counter,
    },
}

#[derive(Debug, Default)]
struct Wait {
    /// The task to wake; `None` if none waits.
    waker: Option<Waker>,
    /// True while the reactor has the watch in its list.
    listed: bool,
    /// The images that the subscription has polled, and their version.
    images: Vec<ImageView>,
    version: u64,
    /// Position of the publication after the attempt that failed.
    position: Position,
}

/// The watch of one subscription or publication, and the reactor that checks it.
#[derive(Debug)]
pub(super) struct Registration {
    watch: Arc<Watch>,
    reactor: Reactor,
    /// True if the watch may have a waker.
    armed: bool,
}

impl Registration {
    pub(super) fn of_subscription(subscription: &Subscription, reactor: &Reactor) -> Self {
        let condition = Condition::Received(Arc::clone(subscription.state()));
        Self::new(condition, reactor)
    }

    pub(super) fn of_publication(publication: &PublicationCore, reactor: &Reactor) -> Self {
        let condition = Condition::Writable {
            state: Arc::clone(&publication.state),
            limit: publication.limit.clone(),
        };
        Self::new(condition, reactor)
    }

    fn new(condition: Condition, reactor: &Reactor) -> Self {
        let wait = Mutex::default();
        Self {
            watch: Arc::new(Watch { condition, wait }),
            reactor: reactor.clone(),
            armed: false,
        }
    }

    /// Wakes a task when the limit of a publication is above `position`.
    pub(super) fn arm_at(&mut self, waker: &Waker, position: Position) {
        self.arm_with(waker, |wait| wait.position = position);
    }

    /// Wakes a task when there is something that the last poll of `subscription` has not seen.
    pub(super) fn arm_after_poll(&mut self, waker: &Waker, subscription: &Subscription) {
        self.arm_with(waker, |wait| {
            let version = subscription.polled_version();
            if wait.version != version || !wait.listed {
                wait.version = version;
                wait.images.clear();
                wait.images.extend(subscription.polled_images().cloned());
            }
        });
    }

    fn arm_with(&mut self, waker: &Waker, update: impl FnOnce(&mut Wait)) {
        self.armed = true;
        let mut wait = self.watch.lock();
        update(&mut wait);
        let replaced = wait.set_waker(waker);
        let was_listed = std::mem::replace(&mut wait.listed, true);
        drop(wait);
        // Dropping a waker can run code of the runtime, so no lock is held.
        drop(replaced);
        if !was_listed {
            self.reactor.add(&self.watch);
        }
    }

    /// Forgets the task. Takes no lock unless the watch was armed.
    pub(super) fn disarm(&mut self) {
        if std::mem::take(&mut self.armed) {
            let waker = self.watch.lock().waker.take();
            drop(waker);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// State of a watch as the reactor has found it.
pub(super) enum Checked {
    /// The condition does not hold.
    Waiting,
    /// The condition holds: the task has to be woken. The watch has left the list.
    Ready(Waker),
    /// No task waits any more. The watch has left the list.
    Disarmed,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Wait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the condition.
    pub(super) fn check(&self) -> Checked {
        let mut wait = self.lock();
        if wait.waker.is_some() && !self.holds(&wait) {
            return Checked::Waiting;
        }
        wait.listed = false;
        // The logs of ended images are not kept mapped by a watch that is not armed.
        wait.images.clear();
        match wait.waker.take() {
            Some(waker) => Checked::Ready(waker),
            None => Checked::Disarmed,
        }
    }

    fn holds(&self, wait: &Wait) -> bool {
        match &self.condition {
            // A closed subscription has a new version too.
            Condition::Received(state) => {
                state.version() != wait.version || wait.images.iter().any(ImageView::has_frame)
            }
            Condition::Writable { state, limit } => {
                state.is_closed() || limit.get() > wait.position
            }
        }
    }
}

impl Wait {
    /// Stores the waker of the task; returns the one that it replaces.
    fn set_waker(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.waker {
            Some(current) if current.will_wake(waker) => None,
            _ => self.waker.replace(waker.clone()),
        }
    }
}
