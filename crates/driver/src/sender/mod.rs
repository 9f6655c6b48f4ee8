//! The sender: from the term buffer to the wire.
//!
//! One duty cycle gives a turn to every publication that sends, and to some of those that do not (`poll_schedule`). A turn takes
//! what clients have committed to the term buffer, as far as the receiver's window reaches, and hands the very bytes to
//! the socket: one run of equal datagrams is one transmit, whatever it holds. Only lone datagrams of several streams are
//! copied, to share one (`coalescer`). Receivers are listened to when nothing was
//! sent and they were not silent a moment ago, and often enough otherwise. The order of reading is the order of the message:
//! [`Sender::do_work`](taran_core::agent::Agent::do_work) here, [`SendEndpoint`], [`SenderPublication`], `plan` (what goes
//! out next), `wire` (where to); then the way back: `control`, `answers`, `flow_control`, `retransmit`.

mod coalescer;
mod commands;
mod control;
mod control_handlers;
mod destinations;
mod endpoint;
mod flow_control;
mod liveness_table;
mod publication;
mod retransmit;
mod send_plan;
mod send_transport;
mod setup_heartbeat;
mod stream_log;
#[cfg(test)]
mod tests;

use std::os::fd::RawFd;
use std::time::Duration;

use taran_core::agent::{Agent, AgentWaker, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_core::queue;
use taran_net::ReceiveBatch;

use crate::boundary::{ConductorEvent, EventSender, SenderCommand, SenderCounters, poll_commands};
use crate::error_reporter::ErrorReporter;
use crate::interval_timer::IntervalTimer;
use crate::poll_backoff::PollBackoff;
use crate::poll_schedule::WorkTracker;
use crate::socket_wait::{NO_ENDPOINTS_MULTIPLIER, any_may_be_readable, wait_for_any};
use coalescer::DatagramCoalescer;

pub use endpoint::SendEndpoint;
pub use flow_control::{FlowControl, FlowControlRequest, FlowControlSupplier, StatusReport};
pub(crate) use liveness_table::MAX_LIVE_ENTRIES;
pub use publication::SenderPublication;
pub use stream_log::StreamLog;

/// Control frames are short: few slots hold a burst of them.
const CONTROL_BATCH: usize = 8;
/// Most batches of control frames taken in one look at a channel, as long as they are full of status messages: ten thousand
/// receivers send fifty thousand a second, and what finds no room in the socket is lost.
const CONTROL_BATCHES: usize = 8;
/// Control sockets that were silent are left alone for so long, unless somebody cannot go on before he hears from them: a
/// look costs some 0.2 us, half of what all else of an idle turn does. What is said there meanwhile is heard so much later,
/// beside NAK delays and intervals of status messages that are a hundred times longer.
const CONTROL_BACKOFF_NS: i64 = 2_000;
/// Trains beyond its first that a publication may send in a duty cycle if it was the only one that sent in the last.
const MAX_EXTRA_BATCHES: usize = 3;

/// What the sender is built from.
#[derive(Debug)]
pub struct SenderSpec {
    /// From the conductor.
    pub commands: queue::Receiver<SenderCommand>,
    /// Rung by whoever sends them.
    pub doorbell: AgentWaker,
    /// To the conductor.
    pub events: queue::Sender<ConductorEvent>,
    /// System counters.
    pub counters: SenderCounters,
    /// Duty cycle times.
    pub cycle: DutyCycleTracker,
    /// Where network errors are recorded.
    pub errors: ErrorHandler,
    /// `aeron.send.to.status.poll.ratio`, 6: control sockets are polled at least every so many duty cycles …
    pub status_poll_ratio: u32,
    /// … and after this time: half of `aeron.rcv.status.message.timeout`.
    pub status_poll_interval_ns: i64,
    /// `aeron.driver.reresolution.check.interval`, 1 s: how often peers are looked for that fell silent; 0: never.
    pub reresolution_check_interval_ns: i64,
}

/// The agent that sends. Driven by `do_work` alone.
#[derive(Debug)]
pub struct Sender {
    #[expect(clippy::vec_box, reason = "arrives and leaves as a box")]
    endpoints: Vec<Box<SendEndpoint>>,
    counters: SenderCounters,
    reporter: ErrorReporter,
    outbox: EventSender,
    commands: queue::Receiver<SenderCommand>,
    doorbell: AgentWaker,
    cycle: DutyCycleTracker,
    /// Duty cycles that sent something.
    cycles_since_poll: u32,
    /// Behind looks at the control sockets that found nothing.
    control_backoff: PollBackoff,
    /// A publication that had a turn can send nothing before a receiver says something.
    is_flow_controlled: bool,
    /// The last look did not take all that receivers had said.
    has_backlog: bool,
    last_poll_ns: i64,
    poll_ratio: u32,
    poll_interval_ns: i64,
    re_resolution_timer: IntervalTimer,
    batch: ReceiveBatch,
    fds: Vec<RawFd>,
    work_tracker: WorkTracker,
    coalescer: DatagramCoalescer,
    /// No more than one publication sent in the last duty cycle.
    single_active_publication: bool,
}

/// What the sender lends to an endpoint for a turn.
struct SendContext<'a> {
    now: Now,
    counters: &'a SenderCounters,
    reporter: &'a mut ErrorReporter,
    events: &'a mut EventSender,
    extra_batches: usize,
    coalescer: &'a mut DatagramCoalescer,
    /// Publications that sent something.
    sending: usize,
    /// One can send nothing before a receiver says something.
    is_flow_controlled: bool,
}

impl Agent for Sender {
    fn do_work(&mut self, now: Now) -> usize {
        self.cycle.begin_cycle(now.nanos);
        let commands = poll_commands(|| self.take_command(now));
        let short_sends = self.counters.short_sends.get();
        let sent = self.send(now);
        self.work_tracker.record(commands + sent, now.nanos);
        let had_short_send = self.counters.short_sends.get() != short_sends;
        let heard = if had_short_send || self.is_poll_due(sent, now) {
            self.poll_control(now)
        } else {
            0
        };
        commands + sent + heard
    }

    fn role_name(&self) -> &str {
        "sender"
    }

    fn on_start(&mut self) {
        self.doorbell.register();
    }

    /// Ends early when a receiver speaks. What clients publish cannot end it: they write to memory.
    fn park(&mut self, max: Duration) {
        wait_for_any(&self.fds, max);
    }

    /// Without endpoints there is nothing to look at, and the conductor rings.
    fn park_multiplier(&self) -> u32 {
        if self.has_no_work_sources() {
            NO_ENDPOINTS_MULTIPLIER
        } else {
            1
        }
    }

    fn on_long_park(&mut self) {
        self.cycle.pause();
    }
}

impl Sender {
    /// Nothing to look at, and nothing that waits to be told.
    fn has_no_work_sources(&self) -> bool {
        self.endpoints.is_empty() && self.outbox.is_empty()
    }

    /// A sender without endpoints.
    #[must_use]
    pub fn new(spec: SenderSpec) -> Self {
        Self {
            endpoints: Vec::new(),
            reporter: ErrorReporter::new(spec.errors),
            outbox: EventSender::new(
                spec.events,
                spec.counters.failed_offers_to_conductor.clone(),
            ),
            counters: spec.counters,
            commands: spec.commands,
            doorbell: spec.doorbell,
            cycle: spec.cycle,
            cycles_since_poll: 0,
            control_backoff: PollBackoff::new(CONTROL_BACKOFF_NS),
            is_flow_controlled: false,
            has_backlog: false,
            last_poll_ns: i64::MIN,
            poll_ratio: spec.status_poll_ratio,
            poll_interval_ns: spec.status_poll_interval_ns,
            re_resolution_timer: IntervalTimer::new(spec.reresolution_check_interval_ns),
            batch: ReceiveBatch::new(CONTROL_BATCH),
            fds: Vec::new(),
            work_tracker: WorkTracker::default(),
            coalescer: DatagramCoalescer::new(),
            single_active_publication: true,
        }
    }

    fn send(&mut self, now: Now) -> usize {
        let load = self.work_tracker.load(now.nanos);
        let mut context = SendContext {
            now,
            counters: &self.counters,
            reporter: &mut self.reporter,
            events: &mut self.outbox,
            extra_batches: if self.single_active_publication {
                MAX_EXTRA_BATCHES
            } else {
                0
            },
            coalescer: &mut self.coalescer,
            sending: 0,
            is_flow_controlled: false,
        };
        let endpoints = self.endpoints.iter_mut();
        let sent = endpoints
            .map(|endpoint| endpoint.send(load, &mut context))
            .sum();
        self.single_active_publication = context.sending <= 1;
        self.is_flow_controlled = context.is_flow_controlled;
        sent
    }

    /// While data flows, receivers are heard every so often (docs/spec/wire.md §8); while none does, in each duty cycle, unless they
    /// were silent a moment ago and nobody waits for them.
    fn is_poll_due(&mut self, sent: usize, now: Now) -> bool {
        let is_due = if sent > 0 {
            self.cycles_since_poll += 1;
            self.cycles_since_poll >= self.poll_ratio
        } else {
            !self.control_backoff.is_active(now.nanos) || self.is_flow_controlled
        };
        let is_overdue = now.nanos.saturating_sub(self.last_poll_ns) > self.poll_interval_ns;
        is_due || self.has_backlog || is_overdue
    }

    fn poll_control(&mut self, now: Now) -> usize {
        self.cycles_since_poll = 0;
        self.has_backlog = false;
        self.last_poll_ns = now.nanos;
        let mut context = SendContext {
            now,
            counters: &self.counters,
            reporter: &mut self.reporter,
            events: &mut self.outbox,
            extra_batches: 0,
            coalescer: &mut self.coalescer,
            sending: 0,
            is_flow_controlled: false,
        };
        let mut heard = 0;
        if any_may_be_readable(&self.fds, self.endpoints.len()) {
            for endpoint in &mut self.endpoints {
                let taken = endpoint.poll_control(&mut self.batch, &mut context);
                self.has_backlog |= taken >= CONTROL_BATCHES * CONTROL_BATCH;
                heard += taken;
            }
        }
        self.control_backoff.on_poll(now.nanos, heard > 0);
        if self.re_resolution_timer.is_due(now.nanos) {
            for endpoint in &mut self.endpoints {
                endpoint.check_re_resolution(&mut context);
            }
        }
        heard
    }
}
