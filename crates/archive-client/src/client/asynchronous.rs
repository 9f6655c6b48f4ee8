// SPDX-License-Identifier: Apache-2.0
//! A client for asynchronous tasks, on any runtime.
//!
//! Contract: a thread polls the connection, and completes the calls, whose wakers wake their tasks. A task that makes a
//! request takes the lock of the connection for the time of one offer; no lock is held while a task waits.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;

use taran::idle::{Backoff, IdleStrategy};
use taran::{Clock, SystemClock};

use super::{ArchiveConnection, ArchiveEvent, ReplayParams, ReplaySession};
use crate::session::RequestError;

/// A client of an archive for asynchronous tasks.
///
/// It is cheap to clone, and any number of tasks may use it at once. A thread of its own receives the answers, so that the
/// session lives without being polled. The thread ends when the last clone is dropped. Requests end with an error at the
/// message timeout of the context.
///
/// ```no_run
/// use taran_archive_client::{ArchiveContext, AsyncArchive};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let context = ArchiveContext::new().control_channel("aeron:ipc").response_channel("aeron:ipc");
/// let archive = AsyncArchive::start(context.connect(&client)?.into_connection())?;
/// let position = archive.max_recorded_position(0).await?;
/// # drop(position);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncArchive(Arc<Owner>);

/// Ends the thread when the last clone is dropped.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    connection: Mutex<ArchiveConnection>,
    /// The task that waits for an event.
    event_waker: Mutex<Option<Waker>>,
    is_ended: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ArchiveConnection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let (mut clock, mut idle) = (SystemClock::new(), Backoff::default());
        // Acquire: pairs with the release in the drop of the owner.
        while !self.is_ended.load(Ordering::Acquire) {
            let now_ns = clock.now().nanos;
            let mut connection = self.lock();
            let work = connection.client().run_invoked().unwrap_or(0) + connection.poll(now_ns);
            let has_news = connection.has_events() || !connection.is_connected();
            drop(connection);
            if has_news {
                let waker = self
                    .event_waker
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            idle.idle(work, &mut std::thread::park_timeout);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The last clone may be dropped by a waker, on the thread itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl AsyncArchive {
    /// Starts the thread that receives the answers of an established connection.
    ///
    /// # Errors
    /// The operating system did not start the thread.
    pub fn start(connection: ArchiveConnection) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            connection: Mutex::new(connection),
            event_waker: Mutex::new(None),
            is_ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("taran-archive-client".to_owned())
            .spawn(move || of_thread.run())?;
        let thread = Some(thread);
        Ok(Self(Arc::new(Owner { shared, thread })))
    }

    /// Calls `request` with the connection, for a request without waiting. The [`Call`](super::Call) that it returns can be
    /// awaited.
    pub fn with_connection<T>(&self, request: impl FnOnce(&mut ArchiveConnection) -> T) -> T {
        let outcome = request(&mut self.0.shared.lock());
        if let Some(thread) = &self.0.thread {
            thread.thread().unpark();
        }
        outcome
    }

    /// Returns true until the archive is lost.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.shared.lock().is_connected()
    }

    /// Starts a replay; see [`ArchiveConnection::start_replay`].
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn start_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ReplaySession, RequestError> {
        let call = self.with_connection(|connection| {
            connection.start_replay(recording_id, replay_channel, replay_stream_id, params)
        });
        call.await
    }

    /// Waits for the next event: a signal, or an error of a recording, replay or replication. Returns `None` when the archive
    /// is lost. One task at a time may wait.
    pub async fn next_event(&self) -> Option<ArchiveEvent> {
        poll_fn(|context| {
            // Stored first: an event that comes after the check wakes the task.
            let shared = &self.0.shared;
            let mut waker = shared
                .event_waker
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *waker = Some(context.waker().clone());
            drop(waker);
            let mut connection = shared.lock();
            match connection.next_event() {
                Some(event) => Poll::Ready(Some(event)),
                None if !connection.is_connected() => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }
}
