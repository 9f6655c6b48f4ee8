//! The end of each story: the network is whole, drivers return, and whoever lives must be heard; then all is closed, and
//! nothing may be left.

use std::net::SocketAddr;
use std::time::Duration;

use super::answers::EXPECTED;
use super::flows::Flow;
use super::teller::Teller;
use super::{Deed, Publish, Subscribe, Timed};
use crate::HostIndex;
use crate::check::liveness;
use crate::network::LinkFaults;

/// Time after the network was made whole within which each live flow must have moved again. Into it fall the return of
/// drivers that are dead, and new clients; then the timeouts of images (10 s), of rejected ones (10 s), of clients and drivers
/// (10 s each) that have to be over before, and time for what was not sent.
pub const BOUND: Duration = Duration::from_secs(60);

/// Longer than it takes those who are dead to be noticed; what is live then, lives on.
const NOTICED: Duration = Duration::from_secs(25);

/// Longer than a client looks for a driver that is there.
const CONNECTED: Duration = Duration::from_secs(12);

/// Longer than the timeouts of a driver and steps of clocks together.
const RETURNED: Duration = Duration::from_secs(120);

/// What is new at the end has labels from here on.
const NEWCOMERS: u32 = 1_000_000;

impl Teller {
    /// Brings the story to its end.
    pub(super) fn end(&mut self) {
        let healed = self.world.elapsed();
        self.make_whole();
        self.bring_newcomers();
        self.run_for(NOTICED);
        if let Err(violation) = self.look_for_unanswered() {
            panic!("{violation}\n{}", self.world.describe());
        }
        self.await_flows(healed + BOUND, healed);
        self.take_coverage();
        self.world.close_all();
        self.coverage.simulated = self.world.elapsed();
        self.world.expect_nothing_left();
        for host in self.hosts() {
            self.world.expect_errors_counted(host);
        }
        if !self.corrupts {
            self.world.expect_no_errors_but(EXPECTED);
        }
    }

    fn make_whole(&mut self) {
        self.heal_all();
        self.world.set_faults(LinkFaults::default());
        for (from, to) in self
            .hosts()
            .flat_map(|from| self.hosts().map(move |to| (from, to)))
        {
            let [from, to] = [from, to].map(|host| self.world.network_id(host));
            self.world.network().set_link_faults(from, to, None);
        }
        for host in self.hosts() {
            self.world.stall_host(host, Duration::ZERO);
            if !self.world.has_driver(host) {
                self.awaited.insert(host.number());
            }
        }
        let attentive = self.attentive(0);
        for subscriber in self.subscribers.values_mut() {
            self.world.subscriber_mut(subscriber.id).set_laziness(0.1);
            subscriber.attentive = attentive.min(subscriber.attentive);
        }
        for publisher in self.publishers.values() {
            self.world.publisher_mut(publisher.id).hurry();
        }
        let until = self.world.elapsed() + RETURNED;
        while !self.awaited.is_empty() {
            let returned = self.world.elapsed() < until;
            assert!(
                returned,
                "drivers do not return: those of hosts {:?}",
                self.awaited
            );
            self.run_for(Duration::from_millis(500));
        }
    }

    /// Each host gets a new client, which publishes to the next host and hears the one before, and itself.
    fn bring_newcomers(&mut self) {
        let hosts = self.hosts().count();
        self.world.trust_content();
        let mut events = Vec::new();
        let mut deed = |deed| events.push(Timed { at_ms: 0, deed });
        for host in 0..hosts {
            let client = NEWCOMERS + host as u32;
            deed(Deed::Connect { client, host });
        }
        self.play(&events, &mut |_| {});
        self.await_newcomers();
        events.clear();
        for host in 0..hosts {
            let number = NEWCOMERS + host as u32;
            let client = number;
            let channel = |host| {
                let address = self.world.address(HostIndex::at(host));
                format!("aeron:udp?endpoint={}", SocketAddr::new(address, 42_000))
            };
            let (there, here) = (channel((host + 1) % hosts), channel(host));
            let mut deed = |deed| events.push(Timed { at_ms: 0, deed });
            for (offset, from, to) in [
                (0, there, here),
                (100, "aeron:ipc".to_owned(), "aeron:ipc".to_owned()),
            ] {
                let label = number + offset;
                let stream = 9_000 + offset as i32;
                deed(Deed::Publish(Publish {
                    publisher: label,
                    client,
                    channel: from,
                    stream,
                    messages: 20,
                    ..Publish::default()
                }));
                deed(Deed::Subscribe(Subscribe {
                    subscriber: label,
                    client,
                    channel: to,
                    stream,
                    ..Subscribe::default()
                }));
            }
        }
        self.play(&events, &mut |_| {});
    }

    /// All of them find their drivers.
    fn await_newcomers(&mut self) {
        let until = self.world.elapsed() + CONNECTED;
        let clients = |it: &Self| -> Vec<_> {
            let new = it.clients.range(NEWCOMERS..);
            new.map(|(_, client)| *client).collect()
        };
        while let Some(client) = clients(self).into_iter().find(|it| !self.is_live(*it)) {
            assert!(
                self.world.elapsed() < until,
                "a new client does not find its driver: {:?}",
                self.world.client_state(client)
            );
            self.run_for(Duration::from_millis(200));
        }
    }

    /// Those that are new must all be heard, else there is nothing to hold anybody to.
    fn expect_newcomers(&self, flows: &[Flow]) {
        let new = flows.iter().filter(|flow| self.is_new(flow)).count();
        let wanted = 2 * self.hosts().count();
        assert!(
            new >= wanted,
            "{new} flows of new clients live, not {wanted}\n{}",
            self.world.describe()
        );
    }

    /// Each live flow gets new messages, and has to deliver them and all before.
    fn await_flows(&mut self, until: Duration, healed: Duration) {
        let mut flows = self.live_flows();
        self.expect_newcomers(&flows);
        if self.corrupts {
            // What was damaged may never be whole again; what is new is.
            flows.retain(|flow| self.is_new(flow));
        }
        for flow in &flows {
            self.coverage.count(format!("live flows: {}", flow.kind));
            self.world.publisher_mut(flow.publisher).more(3);
        }
        loop {
            flows.retain(|flow| !self.world.has_all(flow.subscriber, flow.publisher));
            let elapsed = self.world.elapsed();
            if flows.is_empty() {
                self.coverage.slowest_recovery = elapsed - healed;
                return;
            }
            let stuck = flows.iter().map(|flow| flow.text.as_str());
            if let Err(violation) = liveness::check(stuck, elapsed, until) {
                panic!("{violation}\n{}", self.world.describe());
            }
            self.run_for(Duration::from_millis(100));
        }
    }

    fn is_new(&self, flow: &Flow) -> bool {
        let mut new = self.publishers.range(NEWCOMERS..);
        new.any(|(_, publisher)| publisher.id == flow.publisher)
    }

    fn take_coverage(&mut self) {
        for host in self.hosts() {
            self.take_leave(host);
        }
        self.world.add_to(&mut self.coverage);
        for publisher in self.publishers.values() {
            let publisher = self.world.publisher(publisher.id);
            self.coverage
                .add("destinations that came or went", publisher.granted());
            if publisher.was_back_pressured() {
                self.coverage.count("publishers that were held back");
            }
            if let Some(failure) = publisher.failure() {
                self.coverage.count(format!(
                    "refused publication: {}",
                    super::attempt::shape(&failure.to_string())
                ));
            }
        }
        for subscriber in self.subscribers.values() {
            let subscriber = self.world.subscriber(subscriber.id);
            self.coverage
                .add("sources and rejections granted", subscriber.granted());
            if let Some(failure) = subscriber.failure() {
                self.coverage.count(format!(
                    "refused subscription: {}",
                    super::attempt::shape(&failure.to_string())
                ));
            }
        }
    }
}
