// SPDX-License-Identifier: Apache-2.0
//! A client for asynchronous tasks, on any runtime.
//!
//! Contract: a thread polls the connection and keeps what it receives in a bounded queue; it wakes the task that waits for a message,
//! for an event, or for room. A task that sends takes the lock of the connection for the time of one offer; no lock is held while a
//! task waits.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use taran::idle::{Backoff, IdleStrategy};
use taran::{Action, Clock, SystemClock};

use super::{ClusterConnection, ClusterOfferError, ConnectClusterError};
use crate::session::{ClosedReason, ClusterEvent, ClusterState};

/// Received messages that wait for a task. While there are more, the cluster is back-pressured.
const QUEUE_LIMIT: usize = 1024;

/// A session with a cluster for asynchronous tasks.
///
/// It is cheap to clone, and any number of tasks may send. A thread of its own receives, sends keep-alives and follows the leader, so
/// that the session lives without being polled. The thread ends, and the session is closed, when the last clone is dropped.
///
/// ```no_run
/// use taran_cluster_client::{AsyncCluster, ClusterContext};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let context = ClusterContext::new("0=localhost:20110");
/// let cluster = AsyncCluster::start(context.connect(&client)?.into_connection())?;
/// cluster.offer(b"hello").await?;
/// let answer = cluster.next_message().await?;
/// # drop(answer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncCluster(Arc<Owner>);

/// Ends the thread when the last clone is dropped.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    connection: ClusterConnection,
    messages: VecDeque<Vec<u8>>,
    message_waker: Option<Waker>,
    event_waker: Option<Waker>,
    send_wakers: Vec<Waker>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    is_ended: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let (mut clock, mut idle) = (SystemClock::new(), Backoff::default());
        // Acquire: pairs with the release in the drop of the owner.
        while !self.is_ended.load(Ordering::Acquire) {
            let now_ns = clock.now().nanos;
            let mut inner = self.lock();
            let Inner {
                connection,
                messages,
                ..
            } = &mut *inner;
            let invoked = connection.client().run_invoked().unwrap_or(0);
            let work = invoked
                + connection.controlled_poll(now_ns, |message, _| {
                    if messages.len() >= QUEUE_LIMIT {
                        return Action::Abort;
                    }
                    messages.push_back(message.to_vec());
                    Action::Continue
                });
            let is_closed = connection.closed_reason().is_some();
            let has_messages = !messages.is_empty() || is_closed;
            let has_events = connection.has_events() || is_closed;
            let mut wakers = Vec::new();
            if has_messages {
                wakers.extend(inner.message_waker.take());
            }
            if has_events {
                wakers.extend(inner.event_waker.take());
            }
            // Each tries again: room is no state that is worth watching.
            wakers.append(&mut inner.send_wakers);
            drop(inner);
            for waker in wakers {
                waker.wake();
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

fn register(waker: &mut Option<Waker>, context: &Context<'_>) {
    *waker = Some(context.waker().clone());
}

impl AsyncCluster {
    /// Starts the thread that receives. The session may still be opening.
    ///
    /// # Errors
    /// The operating system did not start the thread.
    pub fn start(connection: ClusterConnection) -> Result<Self, ConnectClusterError> {
        let shared = Arc::new(Shared {
            inner: Mutex::new(Inner {
                connection,
                messages: VecDeque::new(),
                message_waker: None,
                event_waker: None,
                send_wakers: Vec::new(),
            }),
            is_ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("taran-cluster-client".to_owned())
            .spawn(move || of_thread.run())
            .map_err(ConnectClusterError::Thread)?;
        let thread = Some(thread);
        Ok(Self(Arc::new(Owner { shared, thread })))
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        self.0.shared.lock().connection.state()
    }

    /// Returns the id of the session; none before the first one.
    #[must_use]
    pub fn session_id(&self) -> Option<i64> {
        self.0.shared.lock().connection.session_id()
    }

    /// Calls `request` with the connection, for a request without waiting.
    pub fn with_connection<T>(&self, request: impl FnOnce(&mut ClusterConnection) -> T) -> T {
        let outcome = request(&mut self.0.shared.lock().connection);
        if let Some(thread) = &self.0.thread {
            thread.thread().unpark();
        }
        outcome
    }

    /// Sends a message to the cluster, and waits for room and for a leader. Returns its number, from 1.
    ///
    /// # Errors
    /// The session is closed, or the message is too long.
    pub async fn offer(&self, message: &[u8]) -> Result<u64, ClusterOfferError> {
        poll_fn(|context| {
            let mut inner = self.0.shared.lock();
            match inner.connection.offer(message) {
                Err(error) if error.is_retryable() => {
                    inner.send_wakers.push(context.waker().clone());
                    Poll::Pending
                }
                outcome => Poll::Ready(outcome),
            }
        })
        .await
    }

    /// Waits for the next application message. One task at a time may wait.
    ///
    /// # Errors
    /// The session is closed, and all messages were returned.
    pub async fn next_message(&self) -> Result<Vec<u8>, ClosedReason> {
        poll_fn(|context| {
            let mut inner = self.0.shared.lock();
            if let Some(message) = inner.messages.pop_front() {
                return Poll::Ready(Ok(message));
            }
            if let Some(reason) = inner.connection.closed_reason() {
                return Poll::Ready(Err(reason.clone()));
            }
            register(&mut inner.message_waker, context);
            Poll::Pending
        })
        .await
    }

    /// Waits for the next event. Returns `None` when the session is closed and all events were returned. One task at a time may
    /// wait.
    pub async fn next_event(&self) -> Option<ClusterEvent> {
        poll_fn(|context| {
            let mut inner = self.0.shared.lock();
            if let Some(event) = inner.connection.next_event() {
                return Poll::Ready(Some(event));
            }
            if inner.connection.closed_reason().is_some() {
                return Poll::Ready(None);
            }
            register(&mut inner.event_waker, context);
            Poll::Pending
        })
        .await
    }
}
