// SPDX-License-Identifier: Apache-2.0
//! The keeper of a driver that secures something, and its ways to agents, jobs and counters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::queue;
use taran_protocol::counter::SecureCounter;
use taran_protocol::event::EventCode;
use taran_secure::keeper::{Counts, Keeper, Output, Port, Rotation};
use taran_secure::pattern::Patterns;

use super::jobs::JobQueues;
use super::keeper_sender::{ConductorWaker, KeeperSender};
use super::messages::{Input, KeyUpdate, P, PortInput, Stream};
use super::policy::Mode;
use super::registry::Registry;
use super::reports::Reports;
use super::security::SecurityCommand;
use crate::clock_jumps::{ClockJumps, ClockWatch};
use crate::conductor::Counters;
use crate::event_log::FieldValue;

/// Messages of an agent taken in a duty cycle.
const INPUTS_PER_CYCLE: usize = 64;
/// Messages to a port that wait in its queue; more wait with the conductor.
const UPDATES: usize = 64;
/// Longest time between two ticks of the keeper in nanoseconds.
const TICK_NS: u64 = 1_000_000_000;
/// Names of peers in the label of a counter.
const NAMES_MAX: usize = 8;

/// Returns a time as the keeper counts it.
pub(super) fn nanos(now: Now) -> u64 {
    now.nanos.max(0).cast_unsigned()
}

/// The keeper, and everything between it and the driver.
pub(super) struct Active {
    pub(super) mode: Mode,
    pub(super) allow_plain: Patterns,
    pub(super) keeper: Keeper<P>,
    pub(super) identity: (taran_secure::derive::Fingerprint, u64),
    pub(super) registry: Arc<Mutex<Registry>>,
    pub(super) to_keeper: ToKeeper,
    /// Messages of the agents; frames of links come through queues of their own.
    pub(super) inputs: Vec<queue::Receiver<PortInput>>,
    pub(super) ports: BTreeMap<Port, PortQueue>,
    pub(super) groups: BTreeMap<i64, ReceiveGroup>,
    /// Sessions of responses, and the peers that named them, per send endpoint and stream of requests.
    pub(super) responses: BTreeMap<(u64, Stream), (i32, String)>,
    /// Wakers of sender and receiver.
    pub(super) wakers: Option<[Waker; 2]>,
    /// Waker of the conductor.
    pub(super) waker: ConductorWaker,
    pub(super) counters: Vec<Counter>,
    pub(super) counted: Counts,
    pub(super) reports: Reports,
    pub(super) random: fastrand::Rng,
    pub(super) commands: queue::Receiver<SecurityCommand>,
    pub(super) jumps: ClockJumps,
    pub(super) clock: ClockWatch,
    /// Jumps of the wall clock that were answered with other keys.
    pub(super) redrawn: u64,
    /// The agents tell of the next failed open.
    pub(super) tells_failure: Arc<AtomicBool>,
    /// Thread for the computations of handshakes; without it the keeper runs them.
    pub(super) jobs: Option<JobQueues>,
    /// Counters of channels that are gone.
    pub(super) freed: Vec<Counter>,
    /// Messages wait for room in the queue of their port.
    pub(super) is_waiting: bool,
    /// True from the answer to a jump of the wall clock, at the beginning of a duty cycle, until it counts as work of that.
    pub(super) has_redrawn: bool,
    /// Time of the next tick of the keeper.
    pub(super) tick_at: u64,
    /// The keeper got an input since the last tick was planned.
    pub(super) is_dirty: bool,
}

/// Ways of the agents to the keeper.
pub(super) struct ToKeeper {
    pub(super) sender: KeeperSender,
    pub(super) receiver: KeeperSender,
    pub(super) conductor: KeeperSender,
}

/// Way to the layer of a port.
pub(super) struct PortQueue {
    queue: queue::Sender<KeyUpdate>,
    waiting: VecDeque<KeyUpdate>,
    pub(super) channel: String,
    /// Number of links, with the names of their peers in the label.
    links: Option<Counter>,
    /// A link came or went.
    is_changed: bool,
}

/// Transports and subscriptions of a receive endpoint.
#[derive(Default)]
pub(super) struct ReceiveGroup {
    pub(super) transports: BTreeSet<i64>,
    pub(super) subscriptions: BTreeSet<(Option<i32>, i32)>,
}

impl Active {
    pub(super) fn add_port(&mut self, port: Port, channel: &str) -> queue::Receiver<KeyUpdate> {
        let (sender, receiver) = queue::spsc(UPDATES);
        let queue = PortQueue {
            queue: sender,
            waiting: VecDeque::new(),
            channel: channel.to_owned(),
            links: None,
            is_changed: true,
        };
        self.ports.insert(port, queue);
        receiver
    }

    /// Removes a port. Returns true if there was one.
    pub(super) fn remove_port(&mut self, port: Port) -> bool {
        let Some(removed) = self.ports.remove(&port) else {
            return false;
        };
        self.freed.extend(removed.links);
        self.count_transports(-1);
        self.reports.forget(port);
        self.is_dirty = true;
        true
    }

    fn counter(&self, which: SecureCounter) -> &Counter {
        &self.counters[which as usize]
    }

    pub(super) fn count_transports(&self, change: i64) {
        self.counter(SecureCounter::Transports).add(change);
    }

    /// Returns true if nothing waits for the conductor.
    pub(super) fn is_idle(&self) -> bool {
        self.inputs.iter().all(queue::Receiver::is_empty)
            && self.commands.is_empty()
            && self.jobs.as_ref().is_none_or(JobQueues::is_idle)
    }

    /// Returns the next time at which [`poll`](Self::poll) has an effect, if no message comes before.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        if !self.is_idle() || self.is_dirty || self.is_waiting {
            i64::MIN
        } else {
            i64::try_from(self.tick_at).unwrap_or(i64::MAX)
        }
    }

    pub(super) fn poll(&mut self, now: u64, counters: &mut Counters) -> usize {
        if self.reports.is_new_second(now) {
            self.tells_failure.store(true, Ordering::Relaxed);
            self.waker.refill();
        }
        self.waker.begin_poll();
        let mut work = self.take_commands(now) + usize::from(std::mem::take(&mut self.has_redrawn));
        while let Some(result) = self.jobs.as_mut().and_then(JobQueues::next_result) {
            self.keeper.on_job_done(now, result);
            work += 1;
        }
        if self.inputs.iter().any(|inputs| !inputs.is_empty()) {
            work += self.take_inputs(now);
        }
        if work > 0 || self.is_dirty || now >= self.tick_at {
            self.keeper.on_tick(now);
            work += self.take_outputs(now);
            let deadline = self.keeper.next_deadline().unwrap_or(u64::MAX);
            self.tick_at = deadline.min(now + TICK_NS).max(now + 1);
            self.is_dirty = false;
            self.publish_counts();
            self.publish_links(counters);
        }
        work + self.flush()
    }

    /// Takes messages of the agents, a bounded number of each. Returns their number.
    fn take_inputs(&mut self, now: u64) -> usize {
        let mut work = 0;
        for index in 0..self.inputs.len() {
            for _ in 0..INPUTS_PER_CYCLE {
                let Some(PortInput { port, input }) = self.inputs[index].try_recv() else {
                    break;
                };
                self.on_input(now, port, input);
                work += 1;
            }
        }
        work
    }

    /// Draws everything anew if the wall clock has jumped: what was drawn before seals nothing any more.
    pub(super) fn begin_cycle(&mut self, now: Now) {
        self.clock.observe(now);
        let jumps = self.jumps.count();
        if jumps == self.redrawn {
            return;
        }
        let now = nanos(now);
        self.take_outputs(now);
        self.redrawn = jumps;
        self.keeper.redraw(now);
        self.announce_identity();
        self.take_outputs(now);
        self.has_redrawn = true;
        self.is_dirty = true;
        let count = [FieldValue::Long(jumps.cast_signed())];
        self.reports.log(EventCode::SecureKeysRedrawn, &count);
        self.reports.add(
            now,
            "the wall clock was set by more than a second: all keys are drawn anew, in case another copy of this \
             machine goes on with them"
                .to_owned(),
        );
    }

    fn take_commands(&mut self, now: u64) -> usize {
        let mut work = 0;
        while let Some(command) = self.commands.try_recv() {
            work += 1;
            match command {
                SecurityCommand::Keys(identity, trust) => {
                    let keys = i32::try_from(trust.peers().len()).unwrap_or(i32::MAX);
                    self.keeper.set_trust(now, trust);
                    self.keeper.set_identity(now, *identity);
                    self.announce_identity();
                    let keys = [FieldValue::Int(keys)];
                    self.reports.log(EventCode::SecureTrustReloaded, &keys);
                }
                SecurityCommand::Rotate => self.keeper.rotate_all(now),
                SecurityCommand::Problem(text) => self.reports.add(now, text),
            }
        }
        work
    }

    /// Passes identity and number of this run to all send endpoints.
    fn announce_identity(&mut self) {
        let identity = (self.keeper.fingerprint(), self.keeper.incarnation());
        if self.identity == identity {
            return;
        }
        self.identity = identity;
        for (port, queue) in &mut self.ports {
            if matches!(port, Port::Sender(_)) {
                let update = KeyUpdate::Identity(identity.0, identity.1);
                queue.waiting.push_back(update);
                self.is_waiting = true;
            }
        }
    }

    fn on_input(&mut self, now: u64, port: Port, input: Input) {
        let keeper = &mut self.keeper;
        match (input, port) {
            (Input::Datagram { source, bytes }, _) => {
                keeper.on_datagram(now, port, source, &bytes);
            }
            (
                Input::UnknownKey {
                    source,
                    id: key,
                    length,
                },
                Port::Receiver(id),
            ) => keeper.on_unknown_key(now, id, source, key, length),
            (Input::FirstOpen(key), Port::Receiver(id)) => keeper.on_first_open(now, id, key),
            (Input::WantsEpoch(key), Port::Receiver(id)) => keeper.on_failures(now, id, key),
            (Input::OtherAddress { link, source }, _) => {
                keeper.on_other_address(now, port, link, source);
            }
            (Input::SetupRequest { control }, _) => keeper.on_setup_request(now, port, control),
            (Input::WantsRotation((session_id, stream_id)), Port::Sender(id)) => {
                keeper.rotate(now, id, session_id, stream_id, Rotation::Limit);
            }
            (
                Input::ResponseSetup {
                    link,
                    stream,
                    session_id,
                },
                Port::Sender(id),
            ) => {
                if let Some(peer) = keeper.peer_of(id, link) {
                    let response = (session_id, peer.to_owned());
                    self.responses.insert((id, stream), response);
                }
            }
            (Input::Plain { source, frame_type }, _) => {
                let channel = channel_of(&self.ports, port);
                self.reports
                    .on_plain(now, (port, channel), source, frame_type);
            }
            (Input::FailedOpen { source }, _) => {
                let channel = channel_of(&self.ports, port);
                self.reports.log(
                    EventCode::SecureOpenFailed,
                    &[FieldValue::Address(Some(source)), FieldValue::Text(channel)],
                );
            }
            // The layers of other ports do not send these.
            _ => {}
        }
    }

    /// Passes the outputs of the keeper on. Returns their number.
    pub(super) fn take_outputs(&mut self, now: u64) -> usize {
        let mut count = 0;
        while let Some(output) = self.keeper.next_output() {
            count += 1;
            match output {
                Output::Event(event) => {
                    let channel = channel_of(&self.ports, event.port());
                    self.reports
                        .on_event(now, &event, channel, self.keeper.trust());
                    if event.is_about_link()
                        && let Some(queue) = self.ports.get_mut(&event.port())
                    {
                        queue.is_changed = true;
                    }
                }
                Output::Job(job) => {
                    if let Some(jobs) = &mut self.jobs {
                        jobs.submit(job);
                    }
                }
                other => {
                    if let Some((port, update)) = KeyUpdate::of(other, self.redrawn)
                        && let Some(queue) = self.ports.get_mut(&port)
                    {
                        queue.waiting.push_back(update);
                        self.is_waiting = true;
                    }
                }
            }
        }
        if count > 0 {
            self.flush();
        }
        count
    }

    /// Moves messages to the queues of their ports, and wakes the agents. Returns the number of messages.
    fn flush(&mut self) -> usize {
        if !self.is_waiting {
            return 0;
        }
        self.is_waiting = false;
        let mut moved = [0, 0];
        for (port, queue) in &mut self.ports {
            while let Some(update) = queue.waiting.pop_front() {
                if let Err(update) = queue.queue.try_send(update) {
                    queue.waiting.push_front(update);
                    self.is_waiting = true;
                    break;
                }
                // The conductor itself takes those of name resolution.
                match port {
                    Port::Sender(_) => moved[0] += 1,
                    Port::Receiver(_) => moved[1] += 1,
                    Port::Resolver => {}
                }
            }
        }
        if let Some(wakers) = &self.wakers {
            for (waker, moved) in wakers.iter().zip(moved) {
                if moved > 0 {
                    waker.wake_by_ref();
                }
            }
        }
        moved.iter().sum()
    }

    /// Adds what the keeper has counted to the counters.
    fn publish_counts(&mut self) {
        let counts = *self.keeper.counts();
        let before = std::mem::replace(&mut self.counted, counts);
        for (which, now, then) in [
            (
                SecureCounter::FailedOpens,
                counts.failed_opens + counts.invalid,
                before.failed_opens + before.invalid,
            ),
            (
                SecureCounter::OutOfBounds,
                counts.out_of_bounds,
                before.out_of_bounds,
            ),
            (
                SecureCounter::Handshakes,
                counts.handshakes,
                before.handshakes,
            ),
            (
                SecureCounter::HandshakesRefused,
                counts.refused,
                before.refused,
            ),
            (SecureCounter::CookiesSent, counts.cookies, before.cookies),
            (SecureCounter::Rotations, counts.rotations, before.rotations),
        ] {
            let change = now.wrapping_sub(then);
            if change > 0 {
                self.counter(which).add(change.cast_signed());
            }
        }
        let links = i64::try_from(self.keeper.link_count()).unwrap_or(i64::MAX);
        self.counter(SecureCounter::Links).set(links);
    }

    /// Updates the counters of channels whose links came or went.
    pub(super) fn publish_links(&mut self, counters: &mut Counters) {
        for counter in self.freed.drain(..) {
            counters.free(counter.id());
        }
        for (port, queue) in &mut self.ports {
            if !std::mem::replace(&mut queue.is_changed, false) {
                continue;
            }
            let peers = self.keeper.peers(*port);
            let links = i64::try_from(peers.len()).unwrap_or(i64::MAX);
            let label = links_label(&peers, &queue.channel);
            let id = match *port {
                Port::Sender(id) | Port::Receiver(id) => id.cast_signed(),
                Port::Resolver => 0,
            };
            if let Some(counter) = &queue.links {
                counters.set_label(counter.id(), &label);
            } else {
                // Without room for it the other counters tell the number of all links.
                queue.links = counters.secure_channel(id, &label).ok();
            }
            if let Some(counter) = &queue.links {
                counter.set(links);
            }
        }
    }
}

fn channel_of(ports: &BTreeMap<Port, PortQueue>, port: Port) -> &str {
    ports.get(&port).map_or("", |queue| &queue.channel)
}

/// Returns the label of the counter of links of a channel.
fn links_label(peers: &[&str], channel: &str) -> String {
    let names: BTreeSet<&str> = peers.iter().copied().collect();
    let mut label = String::from("secure: peers=");
    for (index, name) in names.iter().take(NAMES_MAX).enumerate() {
        label.push_str(if index == 0 { "" } else { "," });
        label.push_str(name);
    }
    if names.len() > NAMES_MAX {
        // Writing to a string does not fail.
        let _ = write!(label, ",and {} more", names.len() - NAMES_MAX);
    }
    label.push(' ');
    label.push_str(channel);
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_label_names_each_peer_once_and_is_bounded() {
        assert_eq!(links_label(&[], "aeron:udp"), "secure: peers= aeron:udp");
        assert_eq!(links_label(&["b", "a", "b"], "c"), "secure: peers=a,b c");
        let names: Vec<String> = (10..30).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let label = links_label(&names, "c");
        assert_eq!(label, "secure: peers=10,11,12,13,14,15,16,17,and 12 more c");
    }
}
