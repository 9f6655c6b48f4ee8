// SPDX-License-Identifier: Apache-2.0
//! The samples that pages follow.
//!
//! Contract: [`Feed::publish`] takes the views of one thread, in order. `Place::follow` runs on the thread of each page: it writes
//! the history, the latest sample, and then later ones. A page that is slow gets the latest sample and none of those before it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::history::History;
use super::view::View;
use crate::http::EventWriter;

/// Pages that are served at a time.
const MAX_FOLLOWERS: usize = 32;
/// Interval at which a page that waits for a sample is checked for having disconnected.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a comment is sent if there is no sample, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The latest sample and the history.
pub(super) struct Feed {
    published: Mutex<Published>,
    changed: Condvar,
    followers: AtomicUsize,
}

struct Published {
    sequence: u64,
    sample: Arc<str>,
    history: History,
}

/// Place of a page among those that are served. Released when dropped.
pub(super) struct Place(Arc<Feed>);

impl Feed {
    pub(super) fn new(drivers: usize, interval: Duration) -> Self {
        Self {
            published: Mutex::new(Published {
                sequence: 0,
                sample: Arc::from("{}"),
                history: History::new(drivers, interval),
            }),
            changed: Condvar::new(),
            followers: AtomicUsize::new(0),
        }
    }

    /// Makes a view the latest one.
    pub(super) fn publish(&self, view: &View) {
        // Maps have texts as keys, and no part of the view fails to serialize.
        let sample = serde_json::to_string(view).unwrap_or_else(|_| "{}".to_owned());
        let mut published = self.lock();
        published.history.push(view);
        published.sample = Arc::from(sample);
        published.sequence += 1;
        drop(published);
        self.changed.notify_all();
    }

    /// Returns the latest view as JSON.
    pub(super) fn latest(&self) -> Arc<str> {
        Arc::clone(&self.lock().sample)
    }

    /// Returns a place for a page; `None` if there are too many.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let has_room = |followers| (followers < MAX_FOLLOWERS).then_some(followers + 1);
        self.followers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room)
            .ok()?;
        Some(Place(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        // What is published is replaced as a whole.
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Writes events until the page disconnects.
    pub(super) fn follow(&self, writer: &mut EventWriter) -> io::Result<()> {
        let (mut sequence, history, mut sample) = {
            let published = self.0.lock();
            let history = serde_json::to_string(&published.history)?;
            (published.sequence, history, Arc::clone(&published.sample))
        };
        writer.write(&event("history", sequence, &history))?;
        loop {
            writer.write(&event("sample", sequence, &sample))?;
            let mut written = Instant::now();
            (sequence, sample) = loop {
                if let Some(next) = self.next(sequence) {
                    break next;
                }
                writer.check_open()?;
                if written.elapsed() >= KEEP_ALIVE {
                    writer.write(":\n\n")?;
                    written = Instant::now();
                }
            };
        }
    }

    /// Waits for the sample after the one with this number; `None` if there is none soon.
    fn next(&self, sequence: u64) -> Option<(u64, Arc<str>)> {
        let published = self.0.lock();
        let (published, _) = self
            .0
            .changed
            .wait_timeout_while(published, CHECK_INTERVAL, |published| {
                published.sequence == sequence
            })
            .unwrap_or_else(PoisonError::into_inner);
        (published.sequence != sequence)
            .then(|| (published.sequence, Arc::clone(&published.sample)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns an event. JSON of one line has no line ends, which would end the data.
fn event(name: &str, sequence: u64, data: &str) -> String {
    format!("event: {name}\nid: {sequence}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_is_refused_when_all_places_are_taken() {
        let feed = Arc::new(Feed::new(1, Duration::from_secs(1)));
        let places: Vec<_> = (0..MAX_FOLLOWERS).map(|_| feed.enter()).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(feed.enter().is_none());
        drop(places);
        assert!(feed.enter().is_some());
    }
}
