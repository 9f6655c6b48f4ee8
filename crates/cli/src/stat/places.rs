//! Who is served at a time. Of those who have not said what they want the one that came first makes room for who comes
//! when all places are taken: connections that say nothing keep nobody out.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places.
#[derive(Debug)]
pub(super) struct Places {
    count: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Those whose requests are still read, the oldest first.
    listened_to: VecDeque<(u64, Arc<TcpStream>)>,
    answered: usize,
    next_id: u64,
}

/// One of them, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    is_answered: bool,
}

impl Places {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count,
            taken: Mutex::default(),
        })
    }

    /// A place for a connection; `None` where all the others are being answered.
    pub(super) fn take(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Place> {
        let mut taken = self.lock();
        if taken.listened_to.len() + taken.answered >= self.count {
            let (_, oldest) = taken.listened_to.pop_front()?;
            // Wakes whoever reads from it.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let id = taken.next_id;
        taken.next_id += 1;
        taken.listened_to.push_back((id, Arc::clone(stream)));
        Some(Place {
            places: Arc::clone(self),
            id,
            is_answered: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing panics while it is held.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Its request is there: from now on nobody takes the place away. False if somebody has.
    pub(super) fn keep(&mut self) -> bool {
        let mut taken = self.places.lock();
        if taken.forget(self.id) {
            taken.answered += 1;
            self.is_answered = true;
        }
        self.is_answered
    }
}

impl Taken {
    /// Whether it was there.
    fn forget(&mut self, id: u64) -> bool {
        let before = self.listened_to.len();
        self.listened_to.retain(|(other, _)| *other != id);
        self.listened_to.len() < before
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if self.is_answered {
            taken.answered -= 1;
        } else {
            taken.forget(self.id);
        }
    }
}
