//! An agent that rests, and whoever rings for it: loom fails a model in which somebody sleeps for ever. (Nobody rings for a
//! thread that waits for another one's end: loom would take that for the end.)

use loom::thread;
use taran_core::agent::AgentWaker;
use taran_core::queue::{self, spsc};

use super::explore;

/// Comes to the doors, takes turns, and parks after those that found nothing, until so much has come. What a real agent
/// parks for ends some time; here it does not.
fn rest_until(wakers: &[AgentWaker], receivers: &mut [queue::Receiver<u32>], sum: u32) {
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
fn an_agent_that_just_starts_does_not_sleep_over_a_command() {
    explore(4, || {
        let (mut sender, receiver) = spsc(4);
        let waker = AgentWaker::default();
        let own = waker.clone();
        let agent = thread::spawn(move || rest_until(&[own], &mut [receiver], 1));
        send(&mut sender, &waker);
        agent.join().unwrap();
    });
}

#[test]
fn an_agent_that_rests_is_woken_by_each_command() {
    explore(4, || {
        let (mut sender, receiver) = spsc(4);
        let waker = AgentWaker::default();
        let own = waker.clone();
        let agent = thread::spawn(move || rest_until(&[own], &mut [receiver], 3));
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
        let agents = thread::spawn(move || rest_until(&wakers, &mut receivers, 2));
        send(&mut first, &one);
        sending.join().unwrap();
        agents.join().unwrap();
    });
}
