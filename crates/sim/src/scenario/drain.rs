// SPDX-License-Identifier: Apache-2.0
//! The end of each scenario: the network is restored, drivers are started again, and every live flow must make
//! progress; then everything is closed and nothing may be left.

use std::net::SocketAddr;
use std::time::Duration;

use super::commands::EXPECTED_ERRORS;
use super::flows::Flow;
use super::runner::Runner;
use super::{Op, Publish, Subscribe, TimedOp};
use crate::HostIndex;
use crate::check::liveness;
use crate::network::LinkFaults;

/// Bound after the restoration of the network within which each live flow must have made progress. It covers the
/// restart of drivers and the connection of new clients, the timeouts of images (10 s), rejected images (10 s), clients
/// and drivers (10 s each), and the delivery of the backlog.
pub const RECOVERY_BOUND: Duration = Duration::from_secs(60);

/// Longer than the detection of dead clients and drivers takes; flows that are live then stay live.
const DETECTION_TIME: Duration = Duration::from_secs(25);

/// Longer than a client waits for a running driver.
const CONNECT_BOUND: Duration = Duration::from_secs(12);

/// Longer than the driver timeout and the steps of clocks together.
const RESTART_BOUND: Duration = Duration::from_secs(120);

/// First label of clients, publishers and subscribers that are added at the end.
const FIRST_NEW_LABEL: u32 = 1_000_000;

impl Runner<'_> {
    /// Ends the scenario.
    pub(super) fn drain(&mut self) {
        self.repair_hosts();
        if !self.suite.has_streams() {
            self.finish_suite();
            self.world.add_to(&mut self.coverage);
            self.coverage.simulated = self.world.elapsed();
            return;
        }
        let restored = self.world.elapsed();
        self.restore_network();
        self.add_new_clients();
        self.run_for(DETECTION_TIME);
        if let Err(violation) = self.check_all_answered() {
            panic!("{violation}\n{}", self.world.describe());
        }
        self.finish_suite();
        self.await_flows(restored + RECOVERY_BOUND, restored);
        self.collect_coverage();
        self.world.close_all();
        self.coverage.simulated = self.world.elapsed();
        self.world.expect_nothing_left();
        for host in self.hosts() {
            self.world.expect_errors_counted(host);
        }
        if !self.corrupts {
            self.world.expect_no_errors_but(EXPECTED_ERRORS);
        }
    }

    fn finish_suite(&mut self) {
        if let Err(violation) = self.suite.finish_world(&mut self.world) {
            panic!("{violation}\n{}", self.world.describe());
        }
    }

    fn restore_network(&mut self) {
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
                self.pending_starts.insert(host.number());
            }
        }
        let fast_since = self.fast_since(0);
        for subscriber in self.subscribers.values_mut() {
            self.world.subscriber_mut(subscriber.id).set_skip_rate(0.1);
            subscriber.fast_since = fast_since.min(subscriber.fast_since);
        }
        for publisher in self.publishers.values() {
            self.world.publisher_mut(publisher.id).drop_pauses();
        }
        let until = self.world.elapsed() + RESTART_BOUND;
        while !self.pending_starts.is_empty() {
            let returned = self.world.elapsed() < until;
            assert!(
                returned,
                "drivers do not start on hosts {:?}",
                self.pending_starts
            );
            self.run_for(Duration::from_millis(500));
        }
    }

    /// Adds a client to each host, which publishes to the next host and to its own, and subscribes to the previous host
    /// and to its own.
    fn add_new_clients(&mut self) {
        let hosts = self.hosts().count();
        self.world.enable_content_checks();
        let mut ops = Vec::new();
        let mut op = |op| ops.push(TimedOp { at_ms: 0, op });
        for host in 0..hosts {
            let client = FIRST_NEW_LABEL + host as u32;
            op(Op::Connect { client, host });
        }
        self.apply_all(&ops, &mut |_| {});
        self.await_new_clients();
        ops.clear();
        for host in 0..hosts {
            let number = FIRST_NEW_LABEL + host as u32;
            let client = number;
            let channel = |host| {
                let address = self.world.address(HostIndex::at(host));
                format!("aeron:udp?endpoint={}", SocketAddr::new(address, 42_000))
            };
            let (there, here) = (channel((host + 1) % hosts), channel(host));
            let mut op = |op| ops.push(TimedOp { at_ms: 0, op });
            for (offset, from, to) in [
                (0, there, here),
                (100, "aeron:ipc".to_owned(), "aeron:ipc".to_owned()),
            ] {
                let label = number + offset;
                let stream = 9_000 + offset as i32;
                op(Op::Publish(Publish {
                    publisher: label,
                    client,
                    channel: from,
                    stream,
                    messages: 20,
                    ..Publish::default()
                }));
                op(Op::Subscribe(Subscribe {
                    subscriber: label,
                    client,
                    channel: to,
                    stream,
                    ..Subscribe::default()
                }));
            }
        }
        self.apply_all(&ops, &mut |_| {});
    }

    /// Waits until all new clients have connected.
    fn await_new_clients(&mut self) {
        let until = self.world.elapsed() + CONNECT_BOUND;
        let clients = |it: &Self| -> Vec<_> {
            let new = it.clients.range(FIRST_NEW_LABEL..);
            new.map(|(_, client)| *client).collect()
        };
        while let Some(client) = clients(self).into_iter().find(|it| !self.is_live(*it)) {
            assert!(
                self.world.elapsed() < until,
                "a new client does not connect: {:?}",
                self.world.client_state(client)
            );
            self.run_for(Duration::from_millis(200));
        }
    }

    /// Checks that all flows of new clients are live; otherwise the liveness check would have nothing to verify.
    fn expect_new_flows(&self, flows: &[Flow]) {
        let new = flows.iter().filter(|flow| self.is_new(flow)).count();
        let wanted = 2 * self.hosts().count();
        assert!(
            new >= wanted,
            "{new} flows of new clients are live, {wanted} expected\n{}",
            self.world.describe()
        );
    }

    /// Publishes on each live flow and waits until everything is delivered.
    fn await_flows(&mut self, until: Duration, restored: Duration) {
        let mut flows = self.live_flows();
        self.expect_new_flows(&flows);
        if self.corrupts {
            // Damaged streams may never be complete again; new ones must be.
            flows.retain(|flow| self.is_new(flow));
        }
        for flow in &flows {
            self.coverage.count(format!("live flows: {}", flow.kind));
            self.world.publisher_mut(flow.publisher).publish_more(3);
        }
        loop {
            flows.retain(|flow| !self.world.has_all(flow.subscriber, flow.publisher));
            let elapsed = self.world.elapsed();
            if flows.is_empty() {
                self.coverage.slowest_recovery = elapsed - restored;
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
        let mut new = self.publishers.range(FIRST_NEW_LABEL..);
        new.any(|(_, publisher)| publisher.id == flow.publisher)
    }

    fn collect_coverage(&mut self) {
        for host in self.hosts() {
            self.record_driver_end(host);
        }
        self.world.add_to(&mut self.coverage);
        for publisher in self.publishers.values() {
            let publisher = self.world.publisher(publisher.id);
            self.coverage
                .add("destination requests granted", publisher.granted());
            if publisher.was_back_pressured() {
                self.coverage.count("publishers back-pressured");
            }
            if let Some(failure) = publisher.failure() {
                self.coverage.count(format!(
                    "refused publication: {}",
                    super::execute::failure_kind(&failure.to_string())
                ));
            }
        }
        for subscriber in self.subscribers.values() {
            let subscriber = self.world.subscriber(subscriber.id);
            self.coverage.add(
                "source and rejection requests granted",
                subscriber.granted(),
            );
            if let Some(failure) = subscriber.failure() {
                self.coverage.count(format!(
                    "refused subscription: {}",
                    super::execute::failure_kind(&failure.to_string())
                ));
            }
        }
    }
}
