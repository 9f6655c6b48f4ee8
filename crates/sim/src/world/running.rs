//! Letting time pass.

use std::time::Duration;

use taran_core::agent::Agent as _;
use taran_core::clock::{Now, saturating_nanos};

use super::{Owned, World};
use crate::check::Violation;
use crate::history::{Agent, Event};

/// Of how many turns an agent gets none, and of how many it gets two.
const IRREGULAR: u32 = 12;

/// Something that takes turns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Conductor(usize),
    Sender(usize),
    Receiver(usize),
    Client(usize),
    Publisher(usize),
    Subscriber(usize),
}

impl World {
    /// One step: time passes, then everybody takes a turn. Returns how much was done.
    ///
    /// # Panics
    /// If something does not hold that must always hold.
    pub fn step(&mut self) -> usize {
        self.step_within(Duration::MAX)
    }

    /// [`step`](Self::step), in which no more time passes than this: for who does something himself at his own times.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn step_within(&mut self, most: Duration) -> usize {
        let now_ns = self.clock.read().nanos;
        let next_arrival_ns = self.network.next_arrival().map(|arrival| arrival - now_ns);
        let by = self.pace.next_ns(next_arrival_ns);
        let by = by.min(saturating_nanos(most));
        self.clock.advance(Duration::from_nanos(by.unsigned_abs()));
        let now = self.clock.read();
        self.history.mix(now.nanos);
        let mut order = self.shuffle();
        let mut work = 0;
        for actor in order.drain(..) {
            match self.turn(actor, now) {
                Ok(done) => work += done,
                Err(violation) => panic!("{violation}"),
            }
        }
        self.order = order;
        if work > 0 {
            self.look();
        }
        self.pace.worked(work);
        work
    }

    /// Looks at all drivers: clients have moved what is theirs.
    fn look(&mut self) {
        for (index, host) in self.hosts.iter_mut().enumerate() {
            let Some(driver) = &mut host.driver else {
                continue;
            };
            let id = host.network.id();
            let looked = self
                .network
                .with_traffic(id, |edge| driver.check_against_traffic(edge));
            if let Err(violation) = looked {
                panic!("host {index}: {violation}");
            }
        }
    }

    /// Steps for some time.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn run_for(&mut self, time: Duration) {
        let until = self.clock.read().nanos + saturating_nanos(time);
        while self.clock.read().nanos < until {
            self.step();
        }
    }

    /// Steps until `condition` holds.
    ///
    /// # Panics
    /// As [`step`](Self::step), and if the time is over before.
    pub fn run_until(&mut self, what: &str, within: Duration, condition: impl Fn(&Self) -> bool) {
        let until = self.clock.read().nanos + saturating_nanos(within);
        while !condition(self) {
            if self.clock.read().nanos > until {
                panic!("not within {within:?}: {what}\n{}", self.describe());
            }
            self.step();
        }
    }

    /// Everybody in a random order, some left out, some twice.
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
        for index in 0..order.len() {
            if self.random.u32(0..IRREGULAR) == 0 {
                let other = self.random.usize(0..order.len());
                order[index] = order[other];
            } else {
                let other = self.random.usize(index..order.len());
                order.swap(index, other);
            }
        }
        order
    }

    /// True for an agent of a process that is stopped.
    fn is_stalled(&self, actor: Actor, now: Now) -> bool {
        let client = match actor {
            Actor::Conductor(host) | Actor::Sender(host) | Actor::Receiver(host) => {
                return now.nanos < self.hosts[host].stalled_until_ns;
            }
            Actor::Client(client) => client,
            Actor::Publisher(index) => self.publishers[index].client.0,
            Actor::Subscriber(index) => self.subscribers[index].client.0,
        };
        now.nanos < self.clients[client].stalled_until_ns
    }

    fn turn(&mut self, actor: Actor, now: Now) -> Result<usize, Violation> {
        if self.is_stalled(actor, now) {
            return Ok(0);
        }
        match actor {
            Actor::Conductor(host) => self.drive(host, Agent::Conductor, now),
            Actor::Sender(host) => self.drive(host, Agent::Sender, now),
            Actor::Receiver(host) => self.drive(host, Agent::Receiver, now),
            Actor::Client(client) => {
                let slot = &mut self.clients[client];
                let work = slot.turn(self.hosts[slot.host.0].at(now));
                if work > 0 {
                    self.history.note(now.nanos, Event::Client { client, work });
                }
                Ok(work)
            }
            Actor::Publisher(index) => {
                let Owned { client, it } = &mut self.publishers[index];
                let client = self.clients[client.0].connected();
                Ok(it.turn(client, now.nanos, &mut self.ledger, &mut self.history))
            }
            Actor::Subscriber(index) => {
                let Owned { client, it } = &mut self.subscribers[index];
                let client = self.clients[client.0].connected();
                it.turn(client, now.nanos, &self.ledger, &mut self.history)
            }
        }
    }

    fn drive(&mut self, host: usize, agent: Agent, now: Now) -> Result<usize, Violation> {
        let at = self.hosts[host].at(now);
        let Some(driver) = &mut self.hosts[host].driver else {
            return Ok(0);
        };
        let parts = &mut driver.parts;
        if agent == Agent::Conductor {
            driver.rest.turned(at.nanos);
        }
        let work = match agent {
            Agent::Conductor => parts.conductor.do_work(at),
            Agent::Sender => parts.sender.do_work(at),
            Agent::Receiver => parts.receiver.do_work(at),
        };
        // Receivers see how far subscribers are also when they do nothing about it yet.
        if work == 0 && agent != Agent::Receiver {
            return Ok(0);
        }
        let looked = match agent {
            Agent::Conductor => driver.look_anew(),
            Agent::Receiver if work == 0 => driver.look_settled(),
            _ => driver.look(),
        };
        if work > 0 {
            self.history
                .note(now.nanos, Event::Driver { host, agent, work });
        }
        looked.map_err(|Violation(what)| Violation(format!("host {host}: {what}")))?;
        Ok(work)
    }

    /// How things stand, for a failure.
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
        line(format!("network: {:?}", self.network.counts()));
        text
    }
}
