// SPDX-License-Identifier: Apache-2.0
//! A queue that executes on the caller's thread, at times of the caller's clock.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::resume_unwind;
use std::sync::Arc;

use crate::{Disk, DiskFile, ErrorKind, Operation};

use super::engine::{Engine, Step, Submission};
use super::{Completion, DiskQueue, QueuedFile, RejectReason, Rejected, Request};

/// Times of one operation, in nanoseconds after its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceTime {
    /// The operation takes effect: a power cut before it finds nothing done.
    pub effect_ns: i64,
    /// The completion can be polled. Not before the effect.
    pub completion_ns: i64,
}

impl ServiceTime {
    /// Creates the times of an operation.
    #[must_use]
    pub const fn new(effect_ns: i64, completion_ns: i64) -> Self {
        Self {
            effect_ns,
            completion_ns,
        }
    }
}

/// Durations of operations on a simulated device.
pub trait ServiceTimes: Debug {
    /// Returns the times of an operation that transfers `len` bytes and starts at `now_ns`.
    fn service_time(&mut self, operation: Operation, len: usize, now_ns: i64) -> ServiceTime;
}

/// All operations take no time.
impl ServiceTimes for () {
    fn service_time(&mut self, _: Operation, _: usize, _: i64) -> ServiceTime {
        ServiceTime::default()
    }
}

/// A [`DiskQueue`] without threads: requests are executed by [`poll`](DiskQueue::poll), with the order and group commit of
/// [`ThreadedQueue`](super::ThreadedQueue), and their completions are delivered at times that [`ServiceTimes`] decides.
/// The same calls give the same results: simulators use it.
///
/// A panic in the disk is a defect of the disk and is passed on to the caller of `poll`, so that it fails the test. Its
/// request completes at the next call, with [`ErrorKind::Panicked`].
#[derive(Debug)]
pub struct InlineQueue<T> {
    identity: Arc<()>,
    times: T,
    workers: Box<[Worker]>,
    next_worker: usize,
    /// Requests that each worker accepts.
    depth: usize,
    now_ns: i64,
}

/// A device queue: executes one step at a time.
#[derive(Debug)]
struct Worker {
    engine: Engine,
    /// Requests without a polled completion.
    in_flight: usize,
    current: Option<Current>,
    /// Completions that are polled from their time on, in order of time.
    done: VecDeque<(i64, Completion)>,
}

/// The step being served.
#[derive(Debug)]
struct Current {
    /// `None` once the operation was executed.
    step: Option<Step>,
    start_ns: i64,
    effect_ns: i64,
    completion_ns: i64,
}

impl<T: ServiceTimes> InlineQueue<T> {
    /// Creates a queue as [`ThreadedQueue`](super::ThreadedQueue) does: `workers` operations are served at a time, and
    /// `depth` requests per worker accepted, rounded up to a power of two; both at least one.
    pub fn new(disk: &Arc<dyn Disk>, workers: usize, depth: usize, times: T) -> Self {
        let depth = depth.max(1).next_power_of_two();
        Self {
            identity: Arc::new(()),
            times,
            workers: (0..workers.max(1))
                .map(|_| Worker {
                    engine: Engine::new(Arc::clone(disk), depth),
                    in_flight: 0,
                    current: None,
                    done: VecDeque::with_capacity(depth),
                })
                .collect(),
            next_worker: 0,
            depth,
            now_ns: i64::MIN,
        }
    }
}

impl Worker {
    /// Executes all that takes effect until `now_ns`. The first step starts at that time, later ones when the one before
    /// is complete.
    ///
    /// # Panics
    /// If the disk panics, after the step has ended.
    fn advance(&mut self, now_ns: i64, times: &mut impl ServiceTimes) {
        let mut free_ns = now_ns;
        loop {
            if let Some(current) = &mut self.current {
                if current.effect_ns > now_ns {
                    return;
                }
                if let Some(step) = current.step.take() {
                    let (done, at) = (&mut self.done, current.completion_ns);
                    let service_ns = at.saturating_sub(current.start_ns);
                    let mut panic = None;
                    self.engine.execute(step, &mut |completion| {
                        if let Err(error) = &completion.result
                            && let ErrorKind::Panicked { message } = &error.kind
                        {
                            panic = Some(message.clone());
                        }
                        done.push_back((
                            at,
                            Completion {
                                service_ns,
                                ..completion
                            },
                        ));
                    });
                    if let Some(message) = panic {
                        // The panic hook was called when the disk panicked.
                        resume_unwind(Box::new(message));
                    }
                }
                if current.completion_ns > now_ns {
                    return;
                }
                free_ns = current.completion_ns;
                self.current = None;
            }
            let Some(step) = self.engine.next() else {
                return;
            };
            let time = times.service_time(step.operation(), step.transfer_len(), free_ns);
            let effect_ns = free_ns.saturating_add(time.effect_ns.max(0));
            self.current = Some(Current {
                step: Some(step),
                start_ns: free_ns,
                effect_ns,
                completion_ns: effect_ns.max(free_ns.saturating_add(time.completion_ns)),
            });
        }
    }

    fn next_deadline_ns(&self, now_ns: i64) -> i64 {
        let served = match &self.current {
            Some(current) if current.step.is_some() => current.effect_ns,
            Some(current) => current.completion_ns,
            None if self.engine.is_idle() => i64::MAX,
            None => now_ns,
        };
        let done = self.done.front().map_or(i64::MAX, |(at, _)| *at);
        served.min(done)
    }
}

impl<T: ServiceTimes> DiskQueue for InlineQueue<T> {
    fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile {
        let worker = worker_of_file(&mut self.next_worker, self.workers.len());
        QueuedFile::new(file, &self.identity, worker)
    }

    fn submit(&mut self, token: u64, request: Request) -> Result<(), Rejected> {
        let Some(worker) = request.worker_in(&self.identity) else {
            return Err(Rejected {
                reason: RejectReason::OtherQueue,
                request,
            });
        };
        let worker = &mut self.workers[worker];
        if worker.in_flight == self.depth {
            return Err(Rejected {
                reason: RejectReason::Full,
                request,
            });
        }
        worker.in_flight += 1;
        worker.engine.accept(Submission { token, request });
        Ok(())
    }

    fn poll(&mut self, now_ns: i64) -> Option<Completion> {
        self.now_ns = self.now_ns.max(now_ns);
        for worker in &mut self.workers {
            worker.advance(self.now_ns, &mut self.times);
        }
        let earliest = self
            .workers
            .iter_mut()
            .filter_map(|worker| Some((worker.done.front()?.0, worker)))
            .min_by_key(|(at, _)| *at);
        let (at, worker) = earliest?;
        if at > self.now_ns {
            return None;
        }
        let (_, completion) = worker.done.pop_front()?;
        worker.in_flight -= 1;
        Some(completion)
    }

    fn in_flight(&self) -> usize {
        self.workers.iter().map(|worker| worker.in_flight).sum()
    }

    fn next_deadline_ns(&self) -> i64 {
        self.workers
            .iter()
            .map(|worker| worker.next_deadline_ns(self.now_ns))
            .min()
            .unwrap_or(i64::MAX)
    }
}

/// Returns the worker of the next file: names have the first worker for themselves if there are several.
pub(super) fn worker_of_file(next: &mut usize, workers: usize) -> usize {
    let of_files = workers.saturating_sub(1).max(1);
    let worker = workers - of_files + *next % of_files;
    *next = next.wrapping_add(1);
    worker
}
