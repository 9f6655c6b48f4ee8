// SPDX-License-Identifier: Apache-2.0
//! Jumps to the next deadline.

use std::time::Duration;

use crate::process::{CycleContext, HostEnv, Process};
use crate::{HostIndex, HostSpec, ProcessId, PublisherSpec, SubscriberSpec, Violation, World};

/// Interval of the timer in nanoseconds.
const INTERVAL_NS: i64 = 100_000_000;

/// A process with a timer, which records how late it is served.
struct Timer {
    deadline_ns: i64,
    cycles: u64,
    delays_ns: Vec<i64>,
    knows_deadline: bool,
}

impl Timer {
    fn start(env: &mut HostEnv) -> Self {
        Self {
            deadline_ns: env.now().nanos + INTERVAL_NS,
            cycles: 0,
            delays_ns: Vec::new(),
            knows_deadline: true,
        }
    }
}

impl Process for Timer {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        self.cycles += 1;
        let delay_ns = context.now().nanos - self.deadline_ns;
        if delay_ns < 0 {
            return Ok(0);
        }
        self.delays_ns.push(delay_ns);
        self.deadline_ns += INTERVAL_NS;
        Ok(1)
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        self.knows_deadline.then_some(self.deadline_ns)
    }

    fn describe(&self) -> String {
        format!("timer at {} ns", self.deadline_ns)
    }
}

fn world(seed: u64) -> (World, HostIndex, ProcessId) {
    let mut world = World::new(seed);
    let ahead = HostSpec::new().clocks_ahead(Duration::from_secs(1_000));
    let host = world.add_host_without_driver(ahead);
    let id = world.spawn(host, Timer::start);
    (world, host, id)
}

#[test]
fn time_jumps_to_deadlines_with_jitter_from_the_seed() {
    let run = |seed| {
        let (mut world, _, id) = world(seed);
        world.run_for(Duration::from_secs(100));
        assert_eq!(world.elapsed(), Duration::from_secs(100));
        let timer = world.process::<Timer>(id);
        (timer.cycles, timer.delays_ns.clone())
    };
    let (cycles, delays_ns) = run(1);
    assert!(
        (990..=1_000).contains(&delays_ns.len()),
        "{}",
        delays_ns.len()
    );
    // A step for the timer, one after its work, a few early ones.
    assert!(cycles < 4_000, "{cycles} duty cycles");
    let exact = delays_ns.iter().filter(|delay| **delay == 0).count();
    assert!((700..970).contains(&exact), "{exact} on time");
    assert!(delays_ns.iter().any(|delay| *delay > 1_000_000));
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn world_with_a_process_without_deadline_runs_in_short_steps() {
    let (mut world, host, id) = world(1);
    let other = world.spawn(host, Timer::start);
    world.process_mut::<Timer>(other).knows_deadline = false;
    world.process_mut::<Timer>(other).deadline_ns = i64::MAX;
    world.run_for(Duration::from_secs(10));
    let cycles = world.process::<Timer>(other).cycles;
    assert!(cycles > 1_000, "{cycles} duty cycles");
    assert!(world.process::<Timer>(id).delays_ns.len() > 90);

    // The dead one needs none.
    world.kill(other);
    let before = world.process::<Timer>(id).cycles;
    world.run_for(Duration::from_secs(10));
    assert!(world.process::<Timer>(id).cycles - before < 400);
}

#[test]
fn paused_process_is_served_when_its_pause_ends() {
    let (mut world, _, id) = world(3);
    world.stall(id, Duration::from_secs(5));
    world.run_for(Duration::from_millis(4_999));
    assert_eq!(world.process::<Timer>(id).cycles, 0);
    world.run_for(Duration::from_millis(501));
    assert!(world.process::<Timer>(id).delays_ns.len() > 50);
}

#[test]
fn deadline_in_the_past_without_work_does_not_stop_time() {
    let (mut world, _, id) = world(4);
    let timer = world.process_mut::<Timer>(id);
    timer.deadline_ns = i64::MAX;
    timer.knows_deadline = true;
    world.run_for(Duration::from_secs(3_600));
    assert!(world.process::<Timer>(id).cycles < 2_000);

    struct Restless;
    impl Process for Restless {
        fn do_work(&mut self, _: &mut CycleContext<'_>) -> Result<usize, Violation> {
            Ok(0)
        }

        fn next_deadline_ns(&self) -> Option<i64> {
            Some(i64::MIN)
        }

        fn describe(&self) -> String {
            "restless".to_owned()
        }
    }
    let host = world.host_of_process(id);
    world.spawn(host, |_| Restless);
    world.run_for(Duration::from_secs(1));
}

#[test]
fn time_jumps_in_a_world_with_drivers_and_clients() {
    let mut world = World::new(5);
    let hosts = [0; 2].map(|_| world.add_host(HostSpec::new()));
    let [publishing, subscribing] = hosts.map(|host| world.connect(host));
    let channel = "aeron:udp?endpoint=host1:40123";
    let subscriber = world.subscribe(subscribing, SubscriberSpec::new(channel, 1));
    let publisher = world.publish(publishing, PublisherSpec::new(channel, 1).messages(100));
    world.run_until("all is delivered", Duration::from_secs(10), |world| {
        world.has_all(subscriber, publisher)
    });
    // A process that is run in each step and has nothing to do.
    let meter = world.spawn(hosts[0], Timer::start);
    world.process_mut::<Timer>(meter).deadline_ns = i64::MAX;
    world.run_for(Duration::from_secs(100));
    let cycles = world.process::<Timer>(meter).cycles;
    // Ten heartbeats and five status messages per second, and their arrivals.
    assert!((2_000..20_000).contains(&cycles), "{cycles} steps");
    assert!(world.has_all(subscriber, publisher));
}

/// A process that works twice as often as its deadline tells.
struct Hasty {
    next_ns: i64,
}

impl Process for Hasty {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let is_due = context.now().nanos >= self.next_ns;
        if is_due {
            self.next_ns = context.now().nanos + INTERVAL_NS;
        }
        Ok(usize::from(is_due))
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        Some(self.next_ns + INTERVAL_NS)
    }

    fn describe(&self) -> String {
        "hasty".to_owned()
    }
}

#[test]
#[should_panic(expected = "before its next deadline, and nothing else had changed")]
fn process_that_works_before_its_deadline_is_found() {
    let (mut world, host, _) = world(6);
    world.spawn(host, |_| Hasty { next_ns: 0 });
    world.run_for(Duration::from_secs(60));
}
