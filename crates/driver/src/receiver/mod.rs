// SPDX-License-Identifier: Apache-2.0
//! Receiver agent: moves frames from sockets into term buffers.
//!
//! A duty cycle receives what has arrived on every socket, in large batches, and inserts it into the logs of the
//! images; a segment run that the kernel delivers as one GRO batch is inserted as a whole. Then the images are polled,
//! according to their poll schedule, to find gaps and to send NAKs and status messages.
//!
//! Reading order follows a datagram: [`Receiver::do_work`] here,
//! [`ReceiveEndpoint`], `direct_receive` (a stream whose next datagrams are predicted), `frames`, `segment_run`,
//! `dispatcher` (which image), [`ReceiverImage`], `term_rebuilder` (into the log). What goes back to the sender is in
//! `gap_repair` and `feedback`.

mod commands;
mod direct_receive;
mod dispatcher;
mod endpoint;
mod feedback;
mod frames;
mod gap_repair;
mod identity;
mod image;
mod image_connections;
mod image_index;
mod loss_detector;
mod membership;
mod nak_delay;
mod response_setup;
mod segment_run;
mod setup_reply_budget;
mod setup_request;
mod status_schedule;
mod subscribers;
mod term_rebuilder;
#[cfg(test)]
mod tests;
mod transport;
mod window_throttle;

use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_core::loss_report::LossReport;
use taran_core::queue;
use taran_net::{Poller, ReceiveBatch};

use crate::boundary::{
    ConductorEvent, EventSender, ReceiverCommand, ReceiverCounters, poll_commands,
};
use crate::clock_jumps::ClockWatch;
use crate::error_reporter::ErrorReporter;
use crate::interval_timer::IntervalTimer;
use crate::park_multiplier::NO_ENDPOINTS_MULTIPLIER;
use crate::poll_schedule::WorkTracker;

pub(crate) use endpoint::ReceiveEndpoint;
pub(crate) use image::ReceiverImage;
pub(crate) use transport::ReceiveTransport;

/// Maximum slots of a receive batch; each slot holds a GRO batch of up to 64 KiB. Also the maximum number of segment
/// runs received directly into a log per poll of a socket.
const BATCH: usize = 16;

/// Parts from which a [`Receiver`] is built.
#[derive(Debug)]
pub(crate) struct ReceiverSpec {
    /// Commands of the conductor.
    pub(crate) commands: queue::Receiver<ReceiverCommand>,
    /// Poller of the sockets. Its waker is used when the conductor sends a command.
    pub(crate) poller: Box<dyn Poller>,
    /// Events for the conductor.
    pub(crate) events: queue::Sender<ConductorEvent>,
    /// System counters.
    pub(crate) counters: ReceiverCounters,
    /// Duty cycle tracker.
    pub(crate) cycle: DutyCycleTracker,
    /// Log of network errors.
    pub(crate) errors: ErrorHandler,
    /// Loss report; the receiver is its only writer.
    pub(crate) losses: LossReport,
    /// Interval at which explicit control addresses are checked for silence:
    /// `aeron.driver.reresolution.check.interval`, default 1 s; 0 disables the check.
    pub(crate) re_resolution_check_interval_ns: i64,
}

/// Receiver agent. Does nothing except in `do_work`.
#[derive(Debug)]
pub struct Receiver {
    #[expect(clippy::vec_box, reason = "passed as a box by commands and events")]
    endpoints: Vec<Box<ReceiveEndpoint>>,
    counters: ReceiverCounters,
    reporter: ErrorReporter,
    losses: LossReport,
    event_sender: EventSender,
    commands: queue::Receiver<ReceiverCommand>,
    poller: Box<dyn Poller>,
    cycle: DutyCycleTracker,
    silence_check: IntervalTimer,
    batch: ReceiveBatch,
    /// The sockets in the order in which the poller knows them.
    polled: Vec<PolledTransport>,
    work_tracker: WorkTracker,
    /// Watch of the wall clock, if anything is sealed.
    clock: Option<ClockWatch>,
}

/// A socket: index of its endpoint, and its slot there.
#[derive(Clone, Copy, Debug)]
struct PolledTransport {
    endpoint: usize,
    slot: usize,
}

/// State that the receiver lends to an endpoint for one duty cycle.
struct ReceiveContext<'a> {
    now: Now,
    counters: &'a ReceiverCounters,
    reporter: &'a mut ErrorReporter,
    losses: &'a mut LossReport,
    events: &'a mut EventSender,
}

impl Receiver {
    /// Runs one duty cycle and returns the amount of work done.
    pub fn do_work(&mut self, now: Now) -> usize {
        self.cycle.begin_cycle(now.nanos);
        if let Some(clock) = &mut self.clock {
            clock.observe(now);
        }
        let commands = poll_commands(|| self.take_command(now));
        let mut context = ReceiveContext {
            now,
            counters: &self.counters,
            reporter: &mut self.reporter,
            losses: &mut self.losses,
            events: &mut self.event_sender,
        };
        let received = self.poller.poll(&mut |index| {
            let Some(&PolledTransport { endpoint, slot }) = self.polled.get(index) else {
                return 0;
            };
            self.endpoints[endpoint].poll(slot, &mut self.batch, &mut context)
        });
        let mut work = commands + received;
        let checks_silence = self.silence_check.is_due(now.nanos);
        let load = self.work_tracker.load(now.nanos);
        for endpoint in &mut self.endpoints {
            work += endpoint.poll_images(load, &mut context);
            if checks_silence {
                endpoint.check_control_silence(&mut context);
            }
        }
        self.work_tracker.record(work, now.nanos);
        work
    }
}

impl Agent for Receiver {
    /// The agent never ends by itself.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        Ok(self.do_work(now))
    }

    fn role_name(&self) -> &str {
        "receiver"
    }

    fn on_start(&mut self) {
        self.poller.start();
    }

    /// Returns early when a datagram or a command arrives. Progress of subscribers does not end the park: they write to shared
    /// memory only.
    fn park(&mut self, max: Duration) {
        self.poller.wait(max);
    }

    /// Without endpoints there is nothing to poll, and the conductor wakes the receiver with each command.
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
        if !self.commands.is_empty() || !self.event_sender.is_empty() {
            return Some(i64::MIN);
        }
        let mut next_ns = if self.endpoints.is_empty() {
            i64::MAX
        } else {
            self.silence_check.next_deadline_ns()
        };
        for endpoint in &self.endpoints {
            next_ns = next_ns.min(endpoint.next_deadline_ns()?);
        }
        Some(next_ns)
    }
}

impl Receiver {
    /// Returns true if there is no socket to poll and no event waiting for room in the queue to the conductor.
    fn has_no_work_sources(&self) -> bool {
        self.endpoints.is_empty() && self.event_sender.is_empty()
    }

    /// Creates a receiver without endpoints.
    #[must_use]
    pub(crate) fn new(spec: ReceiverSpec) -> Self {
        Self {
            endpoints: Vec::new(),
            reporter: ErrorReporter::new(spec.errors),
            losses: spec.losses,
            event_sender: EventSender::new(
                spec.events,
                spec.counters.failed_offers_to_conductor.clone(),
            ),
            counters: spec.counters,
            commands: spec.commands,
            poller: spec.poller,
            cycle: spec.cycle,
            silence_check: IntervalTimer::new(spec.re_resolution_check_interval_ns),
            batch: ReceiveBatch::new(BATCH),
            polled: Vec::new(),
            work_tracker: WorkTracker::default(),
            clock: None,
        }
    }

    /// Lets the receiver watch the wall clock.
    pub(crate) fn watch_clock(&mut self, watch: ClockWatch) {
        self.clock = Some(watch);
    }
}
