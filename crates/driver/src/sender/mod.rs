// SPDX-License-Identifier: Apache-2.0
//! The sender: from the term buffer to the wire.
//!
//! A duty cycle polls every active publication and some idle ones (`poll_schedule`). A publication takes what clients
//! have committed to the term buffer, up to the limit of flow control, and passes those bytes to the socket without a
//! copy: one run of equal datagrams is one transmit. Only single datagrams of several streams are copied, to share one
//! GSO send (`coalescer`). Control frames are received when nothing was sent, unless the last poll found none a moment
//! ago, and every few cycles otherwise.
//!
//! Reading order, as a message travels: [`Sender::do_work`] here, [`SendEndpoint`],
//! [`SenderPublication`], `send_plan` (what is sent next), `send_transport` (where to); then the feedback of receivers:
//! `control`, `control_handlers`, `flow_control`, `retransmit`.

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

use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_core::queue;
use taran_net::{Poller, ReceiveBatch};

use crate::boundary::{ConductorEvent, EventSender, SenderCommand, SenderCounters, poll_commands};
use crate::clock_jumps::ClockWatch;
use crate::error_reporter::ErrorReporter;
use crate::interval_timer::IntervalTimer;
use crate::park_multiplier::NO_ENDPOINTS_MULTIPLIER;
use crate::poll_backoff::PollBackoff;
use crate::poll_schedule::WorkTracker;
use coalescer::DatagramCoalescer;

pub(crate) use endpoint::SendEndpoint;
pub use flow_control::{FlowControl, FlowControlRequest, FlowControlSupplier, StatusReport};
pub(crate) use liveness_table::MAX_LIVE_ENTRIES;
pub(crate) use publication::SenderPublication;
pub(crate) use stream_log::StreamLog;

/// Slots of a batch of control frames. They are short, so that a slot holds a burst of them.
const CONTROL_BATCH: usize = 8;
/// Maximum number of batches of control frames per poll of a channel, as long as they are full of status messages: ten
/// thousand receivers send fifty thousand per second, and what overflows the socket buffer is lost.
const CONTROL_BATCHES: usize = 8;
/// Time without polls of the control sockets after an empty one, unless a publication is flow-control blocked. An empty
/// poll costs about 0.2 us. Delays NAKs and status messages by at most this time, where their
/// own delays and intervals are a hundred times longer.
const CONTROL_BACKOFF_NS: i64 = 2_000;
/// Batches beyond its first that a publication may send in a duty cycle if it was the only one that sent in the last.
const MAX_EXTRA_BATCHES: usize = 3;

/// Parameters of the sender.
#[derive(Debug)]
pub(crate) struct SenderSpec {
    /// Commands from the conductor.
    pub(crate) commands: queue::Receiver<SenderCommand>,
    /// Poller of the sockets that receive control frames. Its waker is used when a command was sent.
    pub(crate) poller: Box<dyn Poller>,
    /// Events to the conductor.
    pub(crate) events: queue::Sender<ConductorEvent>,
    /// System counters.
    pub(crate) counters: SenderCounters,
    /// Tracker of duty cycle times.
    pub(crate) cycle: DutyCycleTracker,
    /// Handler of network errors.
    pub(crate) errors: ErrorHandler,
    /// `aeron.send.to.status.poll.ratio`, default 6: duty cycles after which control sockets are polled at the latest.
    pub(crate) status_poll_ratio: u32,
    /// Time after which control sockets are polled at the latest: half of `aeron.rcv.status.message.timeout`.
    pub(crate) status_poll_interval_ns: i64,
    /// `aeron.driver.reresolution.check.interval`, default 1 s: interval of the check for silent peers; 0 disables it.
    pub(crate) re_resolution_check_interval_ns: i64,
}

/// Sender agent. Does nothing except in `do_work`.
#[derive(Debug)]
pub struct Sender {
    #[expect(clippy::vec_box, reason = "passed as a box by commands and events")]
    endpoints: Vec<Box<SendEndpoint>>,
    counters: SenderCounters,
    reporter: ErrorReporter,
    event_sender: EventSender,
    commands: queue::Receiver<SenderCommand>,
    poller: Box<dyn Poller>,
    cycle: DutyCycleTracker,
    /// Duty cycles that sent something since control sockets were polled.
    cycles_since_poll: u32,
    /// Back-off after an empty poll of the control sockets.
    control_backoff: PollBackoff,
    /// True if a publication that was polled can send nothing before it gets a status message.
    is_flow_controlled: bool,
    /// True if the last poll may have left control frames in a socket.
    has_backlog: bool,
    /// True if the last duty cycle did not poll the control sockets.
    has_skipped_poll: bool,
    last_poll_ns: i64,
    poll_ratio: u32,
    poll_interval_ns: i64,
    re_resolution_timer: IntervalTimer,
    batch: ReceiveBatch,
    work_tracker: WorkTracker,
    coalescer: DatagramCoalescer,
    /// True if no more than one publication sent in the last duty cycle.
    single_active_publication: bool,
    /// Watch of the wall clock, if anything is sealed.
    clock: Option<ClockWatch>,
}

/// State of the sender that is lent to an endpoint in a duty cycle.
struct SendContext<'a> {
    now: Now,
    counters: &'a SenderCounters,
    reporter: &'a mut ErrorReporter,
    events: &'a mut EventSender,
    extra_batches: usize,
    coalescer: &'a mut DatagramCoalescer,
    /// Number of publications that sent something.
    sending: usize,
    /// Number of publications whose connection state has changed, or whose position a spy has advanced.
    news: usize,
    /// True if a publication can send nothing before it gets a status message.
    is_flow_controlled: bool,
}

impl Sender {
    /// Runs one duty cycle and returns the amount of work done.
    pub fn do_work(&mut self, now: Now) -> usize {
        self.cycle.begin_cycle(now.nanos);
        if let Some(clock) = &mut self.clock {
            clock.observe(now);
        }
        let commands = poll_commands(|| self.take_command(now));
        let short_sends = self.counters.short_sends.get();
        let (sent, news) = self.send(now);
        if sent > 0 {
            self.poller.flush();
        }
        self.work_tracker.record(commands + sent, now.nanos);
        let had_short_send = self.counters.short_sends.get() != short_sends;
        self.has_skipped_poll = !had_short_send && !self.is_poll_due(sent, now);
        let received = if self.has_skipped_poll {
            0
        } else {
            self.poll_control(now)
        };
        commands + sent + news + received
    }
}

impl Agent for Sender {
    /// The agent never ends by itself.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        Ok(self.do_work(now))
    }

    fn role_name(&self) -> &str {
        "sender"
    }

    fn on_start(&mut self) {
        self.poller.start();
    }

    /// Ends early when a control frame or a command arrives. Clients publish to memory, which does not end it.
    fn park(&mut self, max: Duration) {
        self.poller.wait(max);
    }

    /// Without endpoints there is nothing to poll, and the conductor wakes the sender.
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

    fn next_deadline_ns(&self) -> Option<i64> {
        let has_input = !self.commands.is_empty() || !self.event_sender.is_empty();
        if has_input || self.has_skipped_poll {
            return Some(i64::MIN);
        }
        let mut next_ns = if self.endpoints.is_empty() {
            i64::MAX
        } else {
            self.re_resolution_timer.next_deadline_ns()
        };
        for endpoint in &self.endpoints {
            next_ns = next_ns.min(endpoint.next_deadline_ns()?);
        }
        Some(next_ns)
    }
}

impl Sender {
    /// Returns true if there are no endpoints and no queued events.
    fn has_no_work_sources(&self) -> bool {
        self.endpoints.is_empty() && self.event_sender.is_empty()
    }

    /// Returns a sender without endpoints.
    #[must_use]
    pub(crate) fn new(spec: SenderSpec) -> Self {
        Self {
            endpoints: Vec::new(),
            reporter: ErrorReporter::new(spec.errors),
            event_sender: EventSender::new(
                spec.events,
                spec.counters.failed_offers_to_conductor.clone(),
            ),
            counters: spec.counters,
            commands: spec.commands,
            poller: spec.poller,
            cycle: spec.cycle,
            cycles_since_poll: 0,
            control_backoff: PollBackoff::new(CONTROL_BACKOFF_NS),
            is_flow_controlled: false,
            has_backlog: false,
            has_skipped_poll: false,
            last_poll_ns: i64::MIN,
            poll_ratio: spec.status_poll_ratio,
            poll_interval_ns: spec.status_poll_interval_ns,
            re_resolution_timer: IntervalTimer::new(spec.re_resolution_check_interval_ns),
            batch: ReceiveBatch::new(CONTROL_BATCH),
            work_tracker: WorkTracker::default(),
            coalescer: DatagramCoalescer::new(),
            single_active_publication: true,
            clock: None,
        }
    }

    /// Lets the sender watch the wall clock.
    pub(crate) fn watch_clock(&mut self, watch: ClockWatch) {
        self.clock = Some(watch);
    }

    /// Sends what is due. Returns the bytes of data sent, and the number of publications whose connection state has changed,
    /// or whose position a spy has advanced.
    fn send(&mut self, now: Now) -> (usize, usize) {
        let load = self.work_tracker.load(now.nanos);
        let mut context = SendContext {
            now,
            counters: &self.counters,
            reporter: &mut self.reporter,
            events: &mut self.event_sender,
            extra_batches: if self.single_active_publication {
                MAX_EXTRA_BATCHES
            } else {
                0
            },
            coalescer: &mut self.coalescer,
            sending: 0,
            news: 0,
            is_flow_controlled: false,
        };
        let endpoints = self.endpoints.iter_mut();
        let sent = endpoints
            .map(|endpoint| endpoint.send(load, &mut context))
            .sum();
        self.single_active_publication = context.sending <= 1;
        self.is_flow_controlled = context.is_flow_controlled;
        (sent, context.news)
    }

    /// Returns true if control sockets are to be polled: every few cycles while data is sent; in each cycle otherwise,
    /// unless the back-off is active and no publication is flow-control blocked (docs/spec/wire.md §8).
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
            events: &mut self.event_sender,
            extra_batches: 0,
            coalescer: &mut self.coalescer,
            sending: 0,
            news: 0,
            is_flow_controlled: false,
        };
        let received = self.poller.poll(&mut |index| {
            let Some(endpoint) = self.endpoints.get_mut(index) else {
                return 0;
            };
            let count = endpoint.poll_control(&mut self.batch, &mut context);
            self.has_backlog |= count >= CONTROL_BATCHES * CONTROL_BATCH;
            count
        });
        self.control_backoff.on_poll(now.nanos, received > 0);
        if self.re_resolution_timer.is_due(now.nanos) {
            for endpoint in &mut self.endpoints {
                endpoint.check_re_resolution(&mut context);
            }
        }
        received
    }
}
