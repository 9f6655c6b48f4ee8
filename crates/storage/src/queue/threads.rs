// SPDX-License-Identifier: Apache-2.0
//! A queue whose operations run on threads.
//!
//! Each worker thread has a queue of submissions and one of completions, both with one sender and one receiver
//! ([`taran_core::queue`]). The owner counts requests in flight per worker, so that a completion always finds room. A
//! worker without work parks; a submission unparks it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use taran_core::agent::AgentWaker;
use taran_core::queue::{Receiver, Sender, spsc};
use taran_core::sync::{AtomicBool, Ordering, thread};

use crate::{Disk, DiskFile};

use super::engine::{Engine, Submission};
use super::inline::worker_of_file;
use super::{Completion, DiskQueue, QueuedFile, RejectReason, Rejected, Request};

/// Time between two looks at a thread that is to end.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Options of a [`ThreadedQueue`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadedQueueOptions {
    /// Threads, at least one. With two or more, the first one serves names, so that creating a file delays no write; files
    /// are spread over the others.
    pub workers: usize,
    /// Requests in flight per worker, at least one; rounded up to a power of two.
    pub depth: usize,
    /// Prefix of the names of the threads.
    pub name: String,
    /// Woken when there are completions, for an owner that parks.
    pub waker: Option<AgentWaker>,
    /// Time for which dropping the queue waits for accepted requests. Threads whose device does not answer by then go on
    /// without an owner, until it does or the process ends. [`Duration::MAX`]: without a limit.
    pub close_timeout: Duration,
}

impl Default for ThreadedQueueOptions {
    /// Four workers with 256 requests each: a sync occupies its worker for milliseconds, and the journal of a file system
    /// serves the syncs of several files with one write.
    fn default() -> Self {
        Self {
            workers: 4,
            depth: 256,
            name: "disk".to_owned(),
            waker: None,
            close_timeout: Duration::MAX,
        }
    }
}

/// A [`DiskQueue`] whose operations run on threads. Dropping it ends the threads after all accepted requests, and waits for
/// that, for [`close_timeout`](ThreadedQueueOptions::close_timeout) at most.
#[derive(Debug)]
pub struct ThreadedQueue {
    identity: Arc<()>,
    workers: Box<[Worker]>,
    next_worker: usize,
    /// The worker whose completions are polled next.
    next_poll: usize,
    close_timeout: Duration,
}

/// The owner's end of a worker.
#[derive(Debug)]
struct Worker {
    submissions: Sender<Submission>,
    completions: Receiver<Completion>,
    in_flight: usize,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// Set by the owner after its last submission.
    stop: AtomicBool,
    /// Set by the worker's thread when it ends.
    stopped: AtomicBool,
}

impl ThreadedQueue {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system's error if it refuses a thread.
    pub fn start(disk: &Arc<dyn Disk>, options: &ThreadedQueueOptions) -> io::Result<Self> {
        let workers: io::Result<Box<[Worker]>> = (0..options.workers.max(1))
            .map(|index| Worker::start(disk, options, index))
            .collect();
        Ok(Self {
            identity: Arc::new(()),
            workers: workers?,
            next_worker: 0,
            next_poll: 0,
            close_timeout: options.close_timeout,
        })
    }
}

impl Drop for ThreadedQueue {
    fn drop(&mut self) {
        if self.close_timeout == Duration::MAX {
            // Each worker waits for its thread.
            return;
        }
        let deadline = Instant::now().checked_add(self.close_timeout);
        for worker in &self.workers {
            worker.stop();
        }
        for worker in &mut self.workers {
            worker.leave_after(deadline);
        }
    }
}

impl Worker {
    fn start(
        disk: &Arc<dyn Disk>,
        options: &ThreadedQueueOptions,
        index: usize,
    ) -> io::Result<Self> {
        let depth = options.depth.max(1);
        let (submissions, receiver) = spsc(depth);
        let (sender, completions) = spsc(depth);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let service = Service {
            engine: Engine::new(Arc::clone(disk), submissions.capacity()),
            submissions: receiver,
            completions: sender,
            waker: options.waker.clone(),
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new()
            .name(format!("{}-{index}", options.name))
            .spawn(move || service.run())?;
        Ok(Self {
            submissions,
            completions,
            in_flight: 0,
            shared,
            thread: Some(thread),
        })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Worker {
    fn stop(&self) {
        // Releases all submissions to the acquire in `Service::run`.
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Waits for the end of the thread, and leaves it to itself at the deadline.
    fn leave_after(&mut self, deadline: Option<Instant>) {
        while !self.shared.stopped.load(Ordering::Acquire) {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                drop(self.thread.take());
                return;
            }
            std::thread::sleep(CLOSE_POLL_INTERVAL);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // An error is a panic of the thread, which it has printed.
            let _ = thread.join();
        }
    }
}

/// The thread's end of a worker.
struct Service {
    engine: Engine,
    submissions: Receiver<Submission>,
    completions: Sender<Completion>,
    waker: Option<AgentWaker>,
    shared: Arc<Shared>,
}

impl Service {
    fn run(mut self) {
        loop {
            // Acquires the release in `Worker::drop`: after that, the queue holds all submissions there will be.
            let stop = self.shared.stop.load(Ordering::Acquire);
            while let Some(submission) = self.submissions.try_recv() {
                self.engine.accept(submission);
            }
            match self.engine.next() {
                Some(step) => {
                    let start = Instant::now();
                    let completions = &mut self.completions;
                    self.engine.execute(step, &mut |completion| {
                        let completion = Completion {
                            service_ns: nanoseconds(start.elapsed()),
                            ..completion
                        };
                        // There is room: the owner accepts no more requests than this queue holds completions.
                        let sent = completions.try_send(completion);
                        debug_assert!(sent.is_ok(), "a completion without room");
                    });
                    if let Some(waker) = &self.waker {
                        waker.wake();
                    }
                }
                None if stop => return,
                None => thread::park(),
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl DiskQueue for ThreadedQueue {
    fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile {
        let worker = worker_of_file(&mut self.next_worker, self.workers.len());
        QueuedFile::new(file, &self.identity, worker)
    }

    fn submit(&mut self, token: u64, request: Request) -> Result<(), Rejected> {
        let rejected = |reason, request| Err(Rejected { reason, request });
        let Some(worker) = request.worker_in(&self.identity) else {
            return rejected(RejectReason::OtherQueue, request);
        };
        let worker = &mut self.workers[worker];
        if worker.in_flight == worker.submissions.capacity() {
            return rejected(RejectReason::Full, request);
        }
        if worker.shared.stopped.load(Ordering::Acquire) {
            return rejected(RejectReason::Stopped, request);
        }
        match worker.submissions.try_send(Submission { token, request }) {
            Ok(()) => {
                worker.in_flight += 1;
                worker.wake();
                Ok(())
            }
            Err(submission) => rejected(RejectReason::Full, submission.request),
        }
    }

    fn poll(&mut self, _: i64) -> Option<Completion> {
        for _ in 0..self.workers.len() {
            let worker = &mut self.workers[self.next_poll];
            if let Some(completion) = worker.completions.try_recv() {
                worker.in_flight -= 1;
                return Some(completion);
            }
            self.next_poll = (self.next_poll + 1) % self.workers.len();
        }
        None
    }

    fn in_flight(&self) -> usize {
        self.workers.iter().map(|worker| worker.in_flight).sum()
    }

    fn next_deadline_ns(&self) -> i64 {
        i64::MAX
    }
}
