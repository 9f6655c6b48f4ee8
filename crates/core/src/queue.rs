// SPDX-License-Identifier: Apache-2.0
//! A bounded, wait-free single-producer single-consumer queue between two agents of one process.
//!
//! Each end keeps its own position and a copy of the other end's, and reads the other end's cache line only if the
//! queue looks full or empty by the copy.

use std::{fmt, mem::MaybeUninit};

use crate::sync::{Arc, AtomicUsize, CachePadded, Ordering, UnsafeCell};

/// Creates a queue for at least `capacity` values; the capacity is rounded up to a power of two.
///
/// ```
/// let (mut sender, mut receiver) = taran_core::queue::spsc(2);
/// assert_eq!(Ok(()), sender.try_send("one"));
/// assert_eq!(Ok(()), sender.try_send("two"));
/// assert_eq!(Err("three"), sender.try_send("three"));
/// assert_eq!(Some("one"), receiver.try_recv());
/// ```
pub fn spsc<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.next_power_of_two();
    let slots = (0..capacity)
        .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
        .collect();
    let shared = Arc::new(Shared {
        head: CachePadded(AtomicUsize::new(0)),
        tail: CachePadded(AtomicUsize::new(0)),
        slots,
    });
    let sender = Sender {
        shared: Arc::clone(&shared),
        tail: 0,
        cached_head: 0,
    };
    let receiver = Receiver {
        shared,
        head: 0,
        cached_tail: 0,
    };
    (sender, receiver)
}

struct Shared<T> {
    /// Values taken so far, wrapping. Written by the receiver.
    head: CachePadded<AtomicUsize>,
    /// Values sent so far, wrapping. Written by the sender. The slots `[head, tail)` hold values.
    tail: CachePadded<AtomicUsize>,
    /// The length is a power of two.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot is accessed by the sender while it lies outside of `[head, tail)`, and by the receiver while it lies
// inside; the release stores of `head` and `tail` hand it over. A value moves from one thread to the other.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Takes the value out of a slot.
    ///
    /// # Safety
    ///
    /// `position` lies in `[head, tail)`, this thread has acquired `tail`, and it moves `head` past it next.
    #[inline]
    unsafe fn take(&self, position: usize) -> T {
        // SAFETY: the caller guarantees that the slot holds a value, is not being written, and is taken once.
        self.slot(position)
            .with(|slot| unsafe { slot.read().assume_init() })
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (mut head, tail) = (
            self.head.load(Ordering::Relaxed),
            self.tail.load(Ordering::Relaxed),
        );
        while head != tail {
            // SAFETY: both ends are dropped, and dropping the last `Arc` made their writes visible here.
            drop(unsafe { self.take(head) });
            head = head.wrapping_add(1);
        }
    }
}

/// The sending end.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    cached_head: usize,
}

impl<T> Sender<T> {
    /// Sends a value, or returns it if the queue is full.
    #[inline]
    pub fn try_send(&mut self, value: T) -> Result<(), T> {
        let capacity = self.shared.slots.len();
        if self.tail.wrapping_sub(self.cached_head) == capacity {
            // Acquires the receiver's release in `try_recv`: it has read the slots before `head`.
            self.cached_head = self.shared.head.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.cached_head) == capacity {
                return Err(value);
            }
        }
        // SAFETY: the slot lies outside of `[head, tail)`, so the receiver does not touch it and it holds no value.
        self.shared.slot(self.tail).with_mut(|slot| unsafe {
            (*slot).write(value);
        });
        self.tail = self.tail.wrapping_add(1);
        // Releases the slot to the acquire in `try_recv`.
        self.shared.tail.store(self.tail, Ordering::Release);
        Ok(())
    }

    /// Returns the number of values in the queue, or a higher one if the receiver is active.
    pub fn len(&self) -> usize {
        self.tail
            .wrapping_sub(self.shared.head.load(Ordering::Relaxed))
    }

    /// Returns true if the receiver has taken all values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity in values.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The receiving end.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    cached_tail: usize,
}

impl<T> Receiver<T> {
    /// Takes the oldest value, if any.
    #[inline]
    pub fn try_recv(&mut self) -> Option<T> {
        if self.head == self.cached_tail {
            // Acquires the sender's release in `try_send`: it has written the slots before `tail`.
            self.cached_tail = self.shared.tail.load(Ordering::Acquire);
            if self.head == self.cached_tail {
                return None;
            }
        }
        // SAFETY: the slot lies in `[head, tail)` as acquired above or earlier, and `head` moves past it right below.
        let value = unsafe { self.shared.take(self.head) };
        self.head = self.head.wrapping_add(1);
        // Releases the slot to the acquire in `try_send`.
        self.shared.head.store(self.head, Ordering::Release);
        Some(value)
    }

    /// Returns the number of values in the queue, or a lower one if the sender is active.
    pub fn len(&self) -> usize {
        self.shared
            .tail
            .load(Ordering::Relaxed)
            .wrapping_sub(self.head)
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity in values.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::{collections::VecDeque, thread};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn capacity_is_a_power_of_two() {
        for (asked, got) in [(0, 1), (1, 1), (2, 2), (3, 4), (1000, 1024)] {
            assert_eq!(got, spsc::<u8>(asked).0.capacity());
        }
    }

    #[test]
    fn values_left_in_the_queue_are_dropped_once() {
        let value = std::sync::Arc::new(());
        let (mut sender, mut receiver) = spsc(4);
        for _ in 0..6 {
            let _ = sender.try_send(std::sync::Arc::clone(&value));
            let _ = sender.try_send(std::sync::Arc::clone(&value));
            receiver.try_recv();
        }
        assert_eq!(1 + receiver.len(), std::sync::Arc::strong_count(&value));
        drop(sender);
        assert!(receiver.try_recv().is_some());
        drop(receiver);
        assert_eq!(1, std::sync::Arc::strong_count(&value));
    }

    #[test]
    fn two_threads_see_every_value_in_order() {
        // Miri is a thousand times slower.
        const COUNT: u64 = if cfg!(miri) { 200 } else { 200_000 };
        let (mut sender, mut receiver) = spsc(64);
        let sending = thread::spawn(move || {
            for value in 0..COUNT {
                while sender.try_send(Box::new(value)).is_err() {
                    thread::yield_now();
                }
            }
        });
        for expected in 0..COUNT {
            let value = loop {
                match receiver.try_recv() {
                    Some(value) => break value,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(expected, *value);
        }
        sending.join().unwrap();
        assert!(receiver.try_recv().is_none());
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "properties take hours there")]
        fn behaves_as_a_bounded_deque(capacity in 1_usize..9, sends in prop::collection::vec(any::<bool>(), 0..200)) {
            let (mut sender, mut receiver) = spsc(capacity);
            let mut model = VecDeque::new();
            for (value, send) in sends.into_iter().enumerate() {
                if send {
                    let expected = if model.len() < sender.capacity() { Ok(()) } else { Err(value) };
                    prop_assert_eq!(expected, sender.try_send(value));
                    if expected.is_ok() {
                        model.push_back(value);
                    }
                } else {
                    prop_assert_eq!(model.pop_front(), receiver.try_recv());
                }
                prop_assert_eq!((model.len(), model.len()), (sender.len(), receiver.len()));
            }
        }
    }
}
