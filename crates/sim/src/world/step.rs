//! Progress of time.

use std::time::Duration;

use taran_core::agent::Agent as _;
use taran_core::clock::{Now, saturating_nanos};

use super::{Owned, World};
use crate::check::Violation;
use crate::history::{Agent, Event};
use crate::process::{AgentId, Turn};

/// One of this many duty cycles is omitted, and one is repeated.
const IRREGULARITY: u32 = 12;

/// An agent of the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Conductor(usize),
    Sender(usize),
    Receiver(usize),
    Client(usize),
    Publisher(usize),
    Subscriber(usize),
    Process(AgentId),
}

impl World {
    /// Advances the clock and runs one duty cycle of each agent. Returns the amount of work done.
    ///
    /// # Panics
    /// If an invariant is violated.
    pub fn step(&mut self) -> usize {
        self.step_within(Duration::MAX)
    }

    /// As [`step`](Self::step), with a limit on the time step, for scenarios that act at times of their own.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn step_within(&mut self, most: Duration) -> usize {
        let now_ns = self.clock.read().nanos;
        let next_arrival_ns = self.network.next_arrival().map(|arrival| arrival - now_ns);
        let by = self.time_stepper.next_ns(next_arrival_ns);
        let by = by.min(saturating_nanos(most));
        self.clock.advance(Duration::from_nanos(by.unsigned_abs()));
        let now = self.clock.read();
        self.history.mix(now.nanos);
        let mut order = self.shuffle();
        let mut work = 0;
        for actor in order.drain(..) {
            match self.run_actor(actor, now) {
                Ok(done) => work += done,
                Err(violation) => panic!("{violation}"),
            }
        }
        self.order = order;
        if work > 0 {
            self.check_drivers();
        }
        self.check_invariants();
        self.time_stepper.record_work(work);
        work
    }

    /// Checks all drivers, because clients have moved their positions.
    fn check_drivers(&mut self) {
        for (index, host) in self.hosts.iter_mut().enumerate() {
            let Some(driver) = &mut host.driver else {
                continue;
            };
            let id = host.network.id();
            let checked = self
                .network
                .with_traffic(id, |traffic| driver.check_against_traffic(traffic));
            if let Err(violation) = checked {
                panic!("host {index}: {violation}");
            }
        }
    }

    /// Runs steps for some time.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn run_for(&mut self, time: Duration) {
        let until = self.clock.read().nanos + saturating_nanos(time);
        while self.clock.read().nanos < until {
            self.step();
        }
    }

    /// Runs steps until `condition` holds.
    ///
    /// # Panics
    /// As [`step`](Self::step), and if the time is up before.
    pub fn run_until(&mut self, what: &str, within: Duration, condition: impl Fn(&Self) -> bool) {
        let until = self.clock.read().nanos + saturating_nanos(within);
        while !condition(self) {
            if self.clock.read().nanos > until {
                panic!("not within {within:?}: {what}\n{}", self.describe());
            }
            self.step();
        }
    }

    /// Returns all agents in random order, some omitted and some repeated.
    fn shuffle(&mut self) -> Vec<Actor> {
        let mut order = std::mem::take(&mut self.order);
        let hosts = self.hosts.iter().enumerate();
        for (index, _) in hosts.filter(|(_, host)| host.driver.is_some()) {
            order.extend([
                Actor::Conductor(index),
                Actor::Sender(index),
                Actor::Receiver(index),
            ]);
        }
        let clients = self.clients.iter().enumerate();
        let live = clients.filter(|(_, client)| !client.is_over());
        order.extend(live.map(|(index, _)| Actor::Client(index)));
        let publishers = self.publishers.iter().enumerate();
        let live = publishers.filter(|(_, publisher)| !publisher.it.is_over());
        order.extend(live.map(|(index, _)| Actor::Publisher(index)));
        let subscribers = self.subscribers.iter().enumerate();
        let live = subscribers.filter(|(_, subscriber)| !subscriber.it.is_over());
        order.extend(live.map(|(index, _)| Actor::Subscriber(index)));
        let mut agents = std::mem::take(&mut self.agents);
        self.processes.agents(&mut agents);
        order.extend(agents.drain(..).map(Actor::Process));
        self.agents = agents;
        for index in 0..order.len() {
            if self.random.u32(0..IRREGULARITY) == 0 {
                let other = self.random.usize(0..order.len());
                order[index] = order[other];
            } else {
                let other = self.random.usize(index..order.len());
                order.swap(index, other);
            }
        }
        order
    }

    /// Returns true for an agent of a paused process.
    fn is_stalled(&self, actor: Actor, now: Now) -> bool {
        let client = match actor {
            Actor::Conductor(host) | Actor::Sender(host) | Actor::Receiver(host) => {
                return now.nanos < self.hosts[host].stalled_until_ns;
            }
            Actor::Process(agent) => {
                return now.nanos < self.processes.slot(agent.process).stalled_until_ns;
            }
            Actor::Client(client) => client,
            Actor::Publisher(index) => self.publishers[index].client.0,
            Actor::Subscriber(index) => self.subscribers[index].client.0,
        };
        now.nanos < self.clients[client].stalled_until_ns
    }

    fn run_actor(&mut self, actor: Actor, now: Now) -> Result<usize, Violation> {
        if self.is_stalled(actor, now) {
            return Ok(0);
        }
        match actor {
            Actor::Conductor(host) => self.run_driver_agent(host, Agent::Conductor, now),
            Actor::Sender(host) => self.run_driver_agent(host, Agent::Sender, now),
            Actor::Receiver(host) => self.run_driver_agent(host, Agent::Receiver, now),
            Actor::Client(client) => {
                let slot = &mut self.clients[client];
                let work = slot.do_work(self.hosts[slot.host.0].at(now));
                if work > 0 {
                    self.history
                        .record(now.nanos, Event::Client { client, work });
                }
                Ok(work)
            }
            Actor::Publisher(index) => {
                let Owned { client, it } = &mut self.publishers[index];
                let client = self.clients[client.0].connected();
                Ok(it.do_work(client, now.nanos, &mut self.ledger, &mut self.history))
            }
            Actor::Subscriber(index) => {
                let Owned { client, it } = &mut self.subscribers[index];
                let client = self.clients[client.0].connected();
                it.do_work(client, now.nanos, &self.ledger, &mut self.history)
            }
            Actor::Process(agent) => self.run_agent(agent, now),
        }
    }

    /// Runs one duty cycle of an agent of a process.
    fn run_agent(&mut self, id: AgentId, now: Now) -> Result<usize, Violation> {
        let AgentId { process, agent } = id;
        let slot = self.processes.slot_mut(process);
        if !slot.is_alive {
            return Ok(0);
        }
        let mut turn = Turn {
            agent,
            now: self.hosts[slot.env.host().0].at(now),
            world_ns: now.nanos,
            env: &mut slot.env,
            history: &mut self.history,
            shared: &mut self.shared,
        };
        let work = slot.process.do_work(&mut turn)?;
        if work > 0 {
            let event = Event::Process {
                process: process.0,
                agent,
                work,
            };
            self.history.record(now.nanos, event);
        }
        Ok(work)
    }

    fn run_driver_agent(
        &mut self,
        host: usize,
        agent: Agent,
        now: Now,
    ) -> Result<usize, Violation> {
        let at = self.hosts[host].at(now);
        let Some(driver) = &mut self.hosts[host].driver else {
            return Ok(0);
        };
        let parts = &mut driver.parts;
        if agent == Agent::Conductor {
            driver.conductor_stalls.on_duty_cycle(at.nanos);
        }
        let work = match agent {
            Agent::Conductor => parts.conductor.do_work(at),
            Agent::Sender => parts.sender.do_work(at),
            Agent::Receiver => parts.receiver.do_work(at),
        };
        // Receivers observe subscriber positions even if they do no work.
        if work == 0 && agent != Agent::Receiver {
            return Ok(0);
        }
        let checked = match agent {
            Agent::Conductor => driver.check_after_conductor(),
            Agent::Receiver if work == 0 => driver.check_after_idle_receiver(),
            _ => driver.check(),
        };
        if work > 0 {
            self.history
                .record(now.nanos, Event::Driver { host, agent, work });
        }
        checked.map_err(|Violation(what)| Violation(format!("host {host}: {what}")))?;
        Ok(work)
    }

    /// Describes the state of the world, for a failure.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        let mut line = |what: String| {
            text.push_str("  ");
            text.push_str(&what);
            text.push('\n');
        };
        for publisher in self.publishers.iter().map(|it| &it.it) {
            line(format!(
                "publisher of {:?}: open {}, connected {}, {} offered (done {}), at {} of {}, refusal {:?}, failure {:?}",
                publisher.key(),
                publisher.is_open(),
                publisher.is_connected(),
                publisher.offered(),
                publisher.is_done(),
                publisher.position(),
                publisher.limit(),
                publisher.refusal(),
                publisher.failure(),
            ));
        }
        for subscriber in self.subscribers.iter().map(|it| &it.it) {
            line(format!(
                "subscriber: open {}, failure {:?}, error {:?}, ended {:?}",
                subscriber.is_open(),
                subscriber.failure(),
                subscriber.error(),
                subscriber.ended()
            ));
            for image in subscriber.images() {
                line(format!("  {:?} at {}", image.key(), image.position()));
            }
        }
        for (index, host) in self.hosts.iter().enumerate() {
            let Some(driver) = &host.driver else { continue };
            line(format!("counters of host {index}:"));
            driver.parts.counters.for_each(|counter| {
                let value = driver.parts.counters.value(counter.id).unwrap_or_default();
                if counter.id > 45 || value != 0 {
                    line(format!("  {:>3} {value:>20} {}", counter.id, counter.label));
                }
            });
        }
        for (id, slot) in self.processes.slots() {
            let state = if slot.is_alive { "" } else { " (dead)" };
            let what = slot.process.describe();
            line(format!("process {}{state}: {what}", id.0));
        }
        line(format!("network: {:?}", self.network.counts()));
        text
    }
}
