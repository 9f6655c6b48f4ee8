// SPDX-License-Identifier: Apache-2.0
//! An agent that parks, and threads that wake it: loom fails a model in which a thread sleeps forever. (No thread is
//! woken that waits for the end of another one: loom would take the wake-up for that end.)

use loom::thread;
use taran_core::agent::AgentWaker;
use taran_core::queue::{self, spsc};

use super::explore;

/// Registers with the wakers, runs duty cycles, and parks after those without work, until the sum of the received
/// values is `sum`. Parks of a real agent end after a timeout; those of this one do not.
fn run_until_received(wakers: &[AgentWaker], receivers: &mut [queue::Receiver<u32>], sum: u32) {
    wakers.iter().for_each(AgentWaker::register);
    let mut taken = 0;
    while taken < sum {
        let came: u32 = receivers
            .iter_mut()
            .filter_map(queue::Receiver::try_recv)
            .sum();
        taken += came;
        if came == 0 {
            thread::park();
        }
    }
}

fn send(sender: &mut queue::Sender<u32>, waker: &AgentWaker) {
    sender.try_send(1).unwrap();
    waker.wake();
}

#[test]
fn starting_agent_does_not_miss_a_command() {
    explore(4, || {
        let (mut sender, receiver) = spsc(4);
        let waker = AgentWaker::default();
        let own = waker.clone();
        let agent = thread::spawn(move || run_until_received(&[own], &mut [receiver], 1));
        send(&mut sender, &waker);
        agent.join().unwrap();
    });
}

#[test]
fn parked_agent_is_woken_by_each_command() {
    explore(4, || {
        let (mut sender, receiver) = spsc(4);
        let waker = AgentWaker::default();
        let own = waker.clone();
        let agent = thread::spawn(move || run_until_received(&[own], &mut [receiver], 3));
        for _ in 0..3 {
            send(&mut sender, &waker);
        }
        agent.join().unwrap();
    });
}

#[test]
fn two_agents_on_one_thread_are_both_woken() {
    explore(3, || {
        let (mut first, first_receiver) = spsc(2);
        let (mut second, second_receiver) = spsc(2);
        let wakers = [AgentWaker::default(), AgentWaker::default()];
        let [one, other] = wakers.clone();
        let sending = thread::spawn(move || send(&mut second, &other));
        let mut receivers = [first_receiver, second_receiver];
        let agents = thread::spawn(move || run_until_received(&wakers, &mut receivers, 2));
        send(&mut first, &one);
        sending.join().unwrap();
        agents.join().unwrap();
    });
}
