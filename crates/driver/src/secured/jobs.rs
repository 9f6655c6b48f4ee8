// SPDX-License-Identifier: Apache-2.0
//! Queues to the thread that computes handshakes, so that the conductor does not.

use std::sync::mpsc::{Receiver, Sender, channel};

use taran_core::agent::AgentWaker;
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
    conductor: AgentWaker,
}

/// End of the queues that the thread has.
#[derive(Debug)]
pub(crate) struct JobRunner {
    requests: Receiver<JobRequest>,
    results: Sender<JobResult<P>>,
    conductor: AgentWaker,
}

impl JobQueues {
    /// Returns both ends, and a sender to close the runner with.
    pub(crate) fn new() -> (Self, JobRunner, Sender<JobRequest>) {
        let (to_runner, requests) = channel();
        let (to_conductor, results) = channel();
        let conductor = AgentWaker::default();
        let queues = Self {
            requests: to_runner.clone(),
            results,
            under_way: 0,
            conductor: conductor.clone(),
        };
        let runner = JobRunner {
            requests,
            results: to_conductor,
            conductor,
        };
        (queues, runner, to_runner)
    }

    /// Returns the waker of the conductor, which the thread uses for each result.
    pub(super) fn conductor_waker(&self) -> AgentWaker {
        self.conductor.clone()
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
            self.conductor.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use taran_core::agent::register_wait;
    use taran_secure::Secret;
    use taran_secure::frame::Announce;
    use taran_secure::identity::{Identity, public_key_text};
    use taran_secure::keeper::{Entropy, Keeper, KeeperOptions, Output, Port, ReceiverConfig};
    use taran_secure::trust::TrustStore;
    use zerocopy::IntoBytes;

    use super::super::keeper_sender::tests::Waits;
    use super::*;

    struct Counted(u8);

    impl Entropy for Counted {
        fn fill(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                self.0 = self.0.wrapping_mul(5).wrapping_add(3);
                *byte = self.0;
            }
        }
    }

    /// Returns the job of an INIT, which an announcement causes.
    fn job() -> Box<Job<P>> {
        let [own, peer] = [7, 8].map(|byte| Identity::from_private::<P>(Secret::new([byte; 32])));
        let key = public_key_text::<P>(peer.public());
        let trust = TrustStore::parse::<P>(&format!("{key} peer publish=*\n")).unwrap();
        let entropy = Box::new(Counted(1));
        let mut keeper = Keeper::<P>::new(own, trust, KeeperOptions::default(), entropy);
        keeper.defer_jobs();
        let config = ReceiverConfig {
            address: ([10, 0, 0, 2], 40_123).into(),
            group: 1,
            tag: [0; 4],
            receiver_id: 1,
            control: None,
            is_group: false,
            peers: None,
        };
        keeper.add_receiver(1, config);
        keeper.add_subscription(1, None, 10);
        let announce = Announce::hint(0, peer.fingerprint(), 1, 5, 10);
        let source = ([10, 0, 0, 1], 40_000).into();
        keeper.on_datagram(1, Port::Receiver(1), source, announce.as_bytes());
        let jobs = std::iter::from_fn(|| keeper.next_output()).find_map(|output| match output {
            Output::Job(job) => Some(Box::new(job)),
            _ => None,
        });
        jobs.expect("an announcement of a trusted sender starts a handshake")
    }

    #[test]
    fn run_ends_the_wait_of_the_conductor_for_each_result() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let (mut queues, runner, requests) = JobQueues::new();
        queues.conductor_waker().register();
        for _ in 0..2 {
            queues.submit(*job());
        }
        requests.send(JobRequest::Close).unwrap();
        runner.run();
        assert_eq!(ended.count(), 2);
        assert_eq!(std::iter::from_fn(|| queues.next_result()).count(), 2);
        assert!(queues.is_idle());
    }
}
