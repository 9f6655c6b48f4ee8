// SPDX-License-Identifier: Apache-2.0
//! Pollers.

use std::time::Duration;

use taran_core::agent::AgentWaker;

use super::{MAX_POLLS, Suite, must};
use crate::{AgentRole, ReceiveBatch, Transmit};

impl Suite<'_> {
    /// A poller reports the transports that have something to receive, and starts transmissions.
    pub(super) fn poller(&mut self) {
        let mut senders = must(self.near.network.poller(AgentRole::Sender));
        let mut receivers = must(self.far().network.poller(AgentRole::Receiver));
        senders.start();
        receivers.start();
        let mut nothing = |index: usize| -> usize { panic!("{index} is not in the set") };
        assert_eq!(receivers.poll(&mut nothing), 0, "there are no transports");

        let mut transports: Vec<_> = (0..12)
            .map(|_| {
                let far = self.far();
                must(far.network.open(&far.any().used_by(AgentRole::Receiver)))
            })
            .collect();
        let sources: Vec<_> = transports.iter().map(|each| each.poll_source()).collect();
        receivers.set_sources(&sources);
        let mut sender = self.open(&self.near.any().used_by(AgentRole::Sender));
        let mut batch = ReceiveBatch::new(4);
        for targets in [&[4][..], &[0, 11, 7], &[], &[3, 3]] {
            for &target in targets {
                let to = transports[target].local_address();
                must(sender.send(&[Transmit::to(to, &[target as u8])]));
            }
            senders.flush();
            let mut arrived = Vec::new();
            for _ in 0..MAX_POLLS {
                if arrived.len() >= targets.len() {
                    break;
                }
                let mut reported = Vec::new();
                let sum = receivers.poll(&mut |index| {
                    reported.push(index);
                    let taken = must(transports[index].receive(&mut batch));
                    arrived.extend(
                        batch
                            .datagrams()
                            .map(|datagram| (index, datagram.payload[0])),
                    );
                    taken
                });
                assert!(
                    reported.is_sorted_by(|left, right| left < right),
                    "in ascending order, each once: {reported:?}"
                );
                if sum == 0 {
                    (self.settle)();
                }
            }
            let mut expected: Vec<_> = targets.iter().map(|&at| (at, at as u8)).collect();
            expected.sort_unstable();
            arrived.sort_unstable();
            assert_eq!(arrived, expected, "what a transport receives is its own");
        }

        // Another agent of the thread has a waker of its own.
        let other_agent = AgentWaker::default();
        other_agent.register();
        for waker in [receivers.waker(), other_agent.task_waker()] {
            waker.wake();
            // Hangs for as long as a suite may take if the wake is lost.
            receivers.wait(Duration::from_secs(3_600));
        }

        // The set is replaced, also by a part of it.
        receivers.set_sources(&sources[5..6]);
        let to = transports[5].local_address();
        must(sender.send(&[Transmit::to(to, b"x")]));
        senders.flush();
        let mut taken = 0;
        for _ in 0..MAX_POLLS {
            taken += receivers.poll(&mut |index| {
                assert_eq!(index, 0);
                must(transports[5].receive(&mut batch))
            });
            if taken > 0 {
                break;
            }
            (self.settle)();
        }
        assert_eq!(taken, 1);
        receivers.set_sources(&[]);
    }
}
