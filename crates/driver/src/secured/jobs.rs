// SPDX-License-Identifier: Apache-2.0
//! Queues to the thread that computes handshakes, so that the conductor does not.

use std::sync::mpsc::{Receiver, Sender, channel};

use taran_secure::keeper::{Job, JobResult};

use super::messages::P;

/// Request to the thread.
#[derive(Debug)]
pub(crate) enum JobRequest {
    /// Compute a result.
    Run(Box<Job<P>>),
    /// End.
    Close,
}

/// End of the queues that the conductor has.
#[derive(Debug)]
pub(crate) struct JobQueues {
    requests: Sender<JobRequest>,
    results: Receiver<JobResult<P>>,
    /// Jobs without a result; the keeper bounds them.
    under_way: usize,
}

/// End of the queues that the thread has.
#[derive(Debug)]
pub(crate) struct JobRunner {
    requests: Receiver<JobRequest>,
    results: Sender<JobResult<P>>,
}

impl JobQueues {
    /// Returns both ends, and a sender to close the runner with.
    pub(crate) fn new() -> (Self, JobRunner, Sender<JobRequest>) {
        let (to_runner, requests) = channel();
        let (to_conductor, results) = channel();
        let queues = Self {
            requests: to_runner.clone(),
            results,
            under_way: 0,
        };
        let runner = JobRunner {
            requests,
            results: to_conductor,
        };
        (queues, runner, to_runner)
    }

    pub(super) fn submit(&mut self, job: Job<P>) {
        // The runner ends after the conductor; if it failed, handshakes are as if lost.
        if self.requests.send(JobRequest::Run(Box::new(job))).is_ok() {
            self.under_way += 1;
        }
    }

    pub(super) fn next_result(&mut self) -> Option<JobResult<P>> {
        if self.under_way == 0 {
            return None;
        }
        let result = self.results.try_recv().ok()?;
        self.under_way -= 1;
        Some(result)
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.under_way == 0
    }
}

impl JobRunner {
    /// Computes results until it is closed.
    pub(crate) fn run(self) {
        while let Ok(JobRequest::Run(job)) = self.requests.recv() {
            if self.results.send(job.run()).is_err() {
                return;
            }
        }
    }
}
