// SPDX-License-Identifier: Apache-2.0
//! Ending the wait of an agent's thread early.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

use crate::sync::Mutex;
use crate::sync::thread::{self, Thread};

/// Ends the wait of an agent's thread early, so that work from another thread does not wait for the end of a park: the
/// park of the thread, and the waits that its agents registered with [`register_wait`]. Costs an atomic swap and an
/// uncontended lock while the thread is awake.
#[derive(Clone, Debug)]
pub struct ThreadWaker {
    thread: Thread,
    waits: Arc<ThreadWaits>,
}

impl ThreadWaker {
    pub(super) fn new(thread: Thread, waits: Arc<ThreadWaits>) -> Self {
        Self { thread, waits }
    }

    /// A waker for the calling thread.
    pub fn for_current_thread() -> Self {
        Self::new(thread::current(), ThreadWaits::of_current_thread())
    }

    /// Ends the current wait, or the next one if the thread is awake.
    pub fn wake(&self) {
        self.thread.unpark();
        self.waits.wake();
    }
}

/// Ends the waits of an agent that is created before its thread is known: shared by the agent and the senders of its
/// work. Clones are the same waker.
///
/// If a sender enqueues work and then calls [`wake`](Self::wake), the agent sees the work before it waits for long: the
/// lock orders `wake` and [`register`](Self::register), and work enqueued before a `wake` without a registered thread
/// is visible to the first duty cycle.
#[derive(Clone, Debug, Default)]
pub struct AgentWaker(Arc<Registered>);

#[derive(Debug, Default)]
struct Registered(Mutex<Option<ThreadWaker>>);

impl AgentWaker {
    /// Registers the calling thread, in an agent's `on_start`.
    pub fn register(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(ThreadWaker::for_current_thread());
    }

    /// Ends the current wait of the agent, or the next one. Does nothing before the agent was started: its first duty
    /// cycle is yet to come.
    pub fn wake(&self) {
        self.0.wake_thread();
    }

    /// Returns this waker in the form that the standard library knows.
    pub fn task_waker(&self) -> Waker {
        Arc::clone(&self.0).into()
    }
}

impl Registered {
    fn wake_thread(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake();
        }
    }
}

impl Wake for Registered {
    fn wake(self: Arc<Self>) {
        self.wake_thread();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_thread();
    }
}

/// Registers a wait of the calling thread that is not a park, such as one for sockets: until the result is dropped, each
/// [`ThreadWaker`] and [`AgentWaker`] of the thread also uses `waker`, which ends the current wait or the next one. Called
/// before the first such wait, in an agent's `on_start`.
///
/// `waker` must not itself use a waker of the thread.
#[must_use = "the wait is registered until this is dropped"]
pub fn register_wait(waker: Waker) -> WaitRegistration {
    let waits = ThreadWaits::of_current_thread();
    let mut registered = waits.lock();
    let id = registered.next_id;
    registered.next_id += 1;
    registered.wakers.push((id, waker));
    drop(registered);
    WaitRegistration { waits, id }
}

/// A registered wait of a thread. It may be dropped on any thread.
#[derive(Debug)]
pub struct WaitRegistration {
    waits: Arc<ThreadWaits>,
    id: u64,
}

impl Drop for WaitRegistration {
    fn drop(&mut self) {
        self.waits.lock().wakers.retain(|(id, _)| *id != self.id);
    }
}

/// The registered waits of one thread. The lock orders a registration and a wake-up that misses it: what was enqueued
/// before that wake-up is visible to the duty cycle after the registration.
///
/// Not modelled by loom: nothing is registered in its models.
#[derive(Debug, Default)]
pub(super) struct ThreadWaits(std::sync::Mutex<RegisteredWaits>);

#[derive(Debug, Default)]
struct RegisteredWaits {
    next_id: u64,
    wakers: Vec<(u64, Waker)>,
}

thread_local! {
    static WAITS: RefCell<Arc<ThreadWaits>> = RefCell::default();
}

impl ThreadWaits {
    /// Returns the waits of the calling thread. (Those of a thread whose local values are destroyed are lost.)
    fn of_current_thread() -> Arc<Self> {
        let waits = WAITS.try_with(|waits| Arc::clone(&waits.borrow()));
        waits.unwrap_or_default()
    }

    /// Makes these the waits of the calling thread, at its start: for a thread whose waker exists before it.
    pub(super) fn become_current(self: Arc<Self>) {
        WAITS.with(|waits| waits.replace(self));
    }

    pub(super) fn wake(&self) {
        for (_, waker) in &self.lock().wakers {
            waker.wake_by_ref();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RegisteredWaits> {
        // No update can be left incomplete by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wakes {
        fn get(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn wakers_of_a_thread_end_its_registered_waits() {
        let (before, after) = (AgentWaker::default(), AgentWaker::default());
        before.register();
        let [first, second] = [Arc::<Wakes>::default(), Arc::default()];
        let first_wait = register_wait(Arc::clone(&first).into());
        let second_wait = register_wait(Arc::clone(&second).into());
        after.register();
        before.wake();
        after.task_waker().wake();
        ThreadWaker::for_current_thread().wake();
        assert_eq!((first.get(), second.get()), (3, 3));

        std::thread::spawn(|| drop(first_wait)).join().unwrap();
        before.wake();
        assert_eq!((first.get(), second.get()), (3, 4));
        drop(second_wait);
        before.wake();
        assert_eq!((first.get(), second.get()), (3, 4));
    }

    #[test]
    fn waits_of_other_threads_are_not_ended() {
        let wakes = Arc::<Wakes>::default();
        let _wait = register_wait(Arc::clone(&wakes).into());
        let other = std::thread::spawn(ThreadWaker::for_current_thread);
        other.join().unwrap().wake();
        assert_eq!(wakes.get(), 0);
    }
}
