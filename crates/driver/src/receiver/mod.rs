//! The receiver: from the wire to the term buffer.
//!
//! One duty cycle takes what has arrived on every socket, in large batches, and puts it where subscribers read it: a
//! train of datagrams that the kernel delivers as one piece goes into the log in one piece. Then images get a turn
//! (`rounds`) to find what is missing and to tell its sender how far the subscribers are. The order of reading is the order of the
//! message: [`Receiver::do_work`](taran_core::agent::Agent::do_work) here, [`ReceiveEndpoint`], `in_place` for a stream that
//! is expected to go on, `frames`, `train`, `dispatcher`
//! (whose it is), [`ReceiverImage`], `insertion` (into the log); then the way back: `repair`, `feedback`.

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

use std::os::fd::RawFd;
use std::time::Duration;

use taran_core::agent::{Agent, Doorbell, DutyCycle};
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_core::loss_report::LossReport;
use taran_core::queue;
use taran_net::ReceiveBatch;

use crate::boundary::{ConductorEvent, Outbox, ReceiverCommand, ReceiverCounters, take_commands};
use crate::every::Every;
use crate::faults::Faults;
use crate::park::{REST, may_have_arrived, wait_for_any};
use crate::rounds::Tempo;

pub use endpoint::ReceiveEndpoint;
pub use image::ReceiverImage;
pub use transport::ReceiveTransport;

/// Slots of a batch at most; each holds a train of up to 64 KiB. And most trains that one look receives in place.
const BATCH: usize = 16;

/// What the receiver is built from.
#[derive(Debug)]
pub struct ReceiverSpec {
    /// From the conductor.
    pub commands: queue::Receiver<ReceiverCommand>,
    /// Rung by whoever sends them.
    pub doorbell: Doorbell,
    /// To the conductor.
    pub events: queue::Sender<ConductorEvent>,
    /// System counters.
    pub counters: ReceiverCounters,
    /// Duty cycle times.
    pub cycle: DutyCycle,
    /// Where network errors are recorded.
    pub errors: ErrorHandler,
    /// Where losses are recorded; the receiver is its only writer.
    pub losses: LossReport,
    /// `aeron.driver.reresolution.check.interval`, 1 s: how often peers are looked for that fell silent; 0: never.
    pub reresolution_check_interval_ns: i64,
}

/// The agent that receives. Driven by `do_work` alone.
#[derive(Debug)]
pub struct Receiver {
    #[expect(clippy::vec_box, reason = "arrives and leaves as a box")]
    endpoints: Vec<Box<ReceiveEndpoint>>,
    counters: ReceiverCounters,
    faults: Faults,
    losses: LossReport,
    outbox: Outbox,
    commands: queue::Receiver<ReceiverCommand>,
    doorbell: Doorbell,
    cycle: DutyCycle,
    silence_check: Every,
    batch: ReceiveBatch,
    fds: Vec<RawFd>,
    transports: usize,
    tempo: Tempo,
}

/// What the receiver lends to an endpoint for a turn.
struct ReceiveContext<'a> {
    now: Now,
    counters: &'a ReceiverCounters,
    faults: &'a mut Faults,
    losses: &'a mut LossReport,
    events: &'a mut Outbox,
}

impl Agent for Receiver {
    fn do_work(&mut self, now: Now) -> usize {
        self.cycle.begin_turn(now.nanos);
        let commands = take_commands(|| self.take_command(now));
        let mut context = ReceiveContext {
            now,
            counters: &self.counters,
            faults: &mut self.faults,
            losses: &mut self.losses,
            events: &mut self.outbox,
        };
        let mut work = commands;
        if may_have_arrived(&self.fds, self.transports) {
            for endpoint in &mut self.endpoints {
                work += endpoint.poll(&mut self.batch, &mut context);
            }
        }
        let checks_silence = self.silence_check.is_due(now.nanos);
        let pace = self.tempo.pace(now.nanos);
        for endpoint in &mut self.endpoints {
            work += endpoint.poll_images(pace, &mut context);
            if checks_silence {
                endpoint.check_control_silence(&mut context);
            }
        }
        self.tempo.note(work, now.nanos);
        work
    }

    fn role_name(&self) -> &str {
        "receiver"
    }

    fn on_start(&mut self) {
        self.doorbell.attend();
    }

    /// Ends early when something arrives. What subscribers consume cannot end it: they write to memory.
    fn park(&mut self, max: Duration) {
        wait_for_any(&self.fds, max);
    }

    /// Without endpoints there is nothing to look at, and the conductor rings.
    fn patience(&self) -> u32 {
        if self.has_no_work_sources() { REST } else { 1 }
    }

    fn on_rest(&mut self) {
        self.cycle.pause();
    }
}

impl Receiver {
    /// Nothing to look at, and nothing that waits to be told.
    fn has_no_work_sources(&self) -> bool {
        self.endpoints.is_empty() && self.outbox.is_empty()
    }

    /// A receiver without endpoints.
    #[must_use]
    pub fn new(spec: ReceiverSpec) -> Self {
        Self {
            endpoints: Vec::new(),
            faults: Faults::new(spec.errors),
            losses: spec.losses,
            outbox: Outbox::new(
                spec.events,
                spec.counters.failed_offers_to_conductor.clone(),
            ),
            counters: spec.counters,
            commands: spec.commands,
            doorbell: spec.doorbell,
            cycle: spec.cycle,
            silence_check: Every::new(spec.reresolution_check_interval_ns),
            batch: ReceiveBatch::new(BATCH),
            fds: Vec::new(),
            transports: 0,
            tempo: Tempo::default(),
        }
    }
}
