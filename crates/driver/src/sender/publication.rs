//! The sender's half of a network publication.
//!
//! Driven by its endpoint: [`SenderPublication::start`] once, [`SenderPublication::poll`] whenever it has one
//! (`poll_schedule`), and one `on_…` method for each kind of control frame (`answers`). Output goes to the endpoint's wire, the
//! counters and the shared atomics.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::memory::{Region, prefetch_value};
use taran_net::Transmit;
use taran_protocol::log::TailSnapshot;
use taran_protocol::position::{FRAME_ALIGNMENT, TermGeometry};

use super::coalescer::{DatagramCoalescer, QueuedDatagram, SendOutcome};
use super::flow_control::{self, FlowControl};
use super::liveness_table::LivenessTable;
use super::retransmit::RetransmitHandler;
use super::send_plan::{Bounds, MAX_RUNS, SegmentRun, SendPlan};
use super::send_transport::SendTransport;
use super::setup_heartbeat::send_control_batch;
use crate::boundary::{
    EndpointId, PublicationId, SenderCounters, SenderFlowControlSpec, SenderPublicationSpec,
};
use crate::control_batch::{BatchId, ControlFrameBatch};
use crate::error_reporter::ErrorReporter;
use crate::poll_schedule::{IdleUntil, Pollable, Slot};
use crate::timestamps::SendTimestamp;
use crate::token_bucket::{TokenBucket, rtt_replies};

/// Time between SETUPs, and between heartbeats.
pub(super) const SETUP_HEARTBEAT_INTERVAL_NS: i64 = 100_000_000;

/// The sender's half of a network publication: built by the conductor, owned by the sender.
#[derive(Debug)]
pub struct SenderPublication {
    // What every turn touches.
    pub(super) position: i64,
    pub(super) limit: i64,
    /// Where it was when it last sent something, or the limit of then if padding led beyond it.
    pub(super) max_advertised_position: i64,
    pub(super) sent_ns: i64,
    pub(super) bounds: Bounds,
    pub(super) geometry: TermGeometry,
    pub(super) needs_setup: bool,
    pub(super) has_initial_connection: bool,
    pub(super) count_next_back_pressure: bool,
    /// The socket did not take all that there was.
    pub(super) had_short_send: bool,
    /// Its next datagram waits for nobody's: the last one that did was refused.
    pub(super) send_uncoalesced: bool,
    /// Its last turn could send nothing, whatever there is, before a receiver moves the limit.
    pub(super) is_flow_controlled: bool,
    // What happens a few times a second.
    pub(super) setup_sent_ns: i64,
    /// Of its last sign of life, if that was collected.
    pub(super) queued_heartbeat: Option<BatchId>,
    pub(super) is_setup_elicited: bool,
    pub(super) has_receivers: bool,
    pub(super) has_required_receivers: bool,
    /// Ids of those that spoke lately.
    pub(super) receivers: LivenessTable<i64>,
    pub(super) retransmits: RetransmitHandler,
    pub(super) rtt_replies: TokenBucket,
    pub(super) flow_control: Box<dyn FlowControl>,
    pub(super) spies: Vec<Counter>,
    /// Who asked for the SETUP of a response last.
    pub(super) peer: Option<SocketAddr>,
    pub(super) spec: SenderPublicationSpec,
}

/// What a publication works with besides itself.
pub(super) struct PublicationContext<'a> {
    pub(super) now: Now,
    pub(super) transport: &'a mut SendTransport,
    pub(super) counters: &'a SenderCounters,
    pub(super) reporter: &'a mut ErrorReporter,
    pub(super) control_batch: &'a mut ControlFrameBatch,
    /// Trains beyond its first that a lone publication may send in this duty cycle.
    pub(super) extra_batches: &'a mut usize,
    /// Where lone datagrams may wait for those of others.
    pub(super) coalesce: Option<CoalesceContext<'a>>,
}

/// Others on the same endpoint that send a datagram now and then.
pub(super) struct CoalesceContext<'a> {
    pub(super) coalescer: &'a mut DatagramCoalescer,
    /// Streams with a lone datagram in this duty cycle …
    pub(super) lone: usize,
    /// … and in the last one. It is worth to wait where there are several.
    pub(super) singles_before: usize,
    /// Of the publication whose turn it is.
    pub(super) slot: Slot,
}

impl PublicationContext<'_> {
    /// Whether a plan's lone datagram waits for those of others. All that wait leave before any other data.
    fn try_coalesce(&mut self, plan: &SendPlan, term: &Region) -> bool {
        let Some(coalesce) = &mut self.coalesce else {
            return false;
        };
        let lone = plan.single_datagram();
        coalesce.lone += usize::from(lone.is_some());
        let is_worth_it = coalesce.lone.max(coalesce.singles_before) > 1;
        let joins = lone.filter(|run| {
            is_worth_it
                && run.frames.length <= DatagramCoalescer::MAX_DATAGRAM_LENGTH
                && coalesce.coalescer.has_capacity()
        });
        let length = joins.map_or(0, |run| run.frames.length as usize);
        if coalesce.coalescer.has_datagrams()
            && (joins.is_none() || !coalesce.coalescer.fits(length))
        {
            self.flush_coalescer();
        }
        let (Some(run), Some(coalesce)) = (joins, &mut self.coalesce) else {
            return false;
        };
        let datagram = term.bytes(run.offset, length);
        let advance = i64::from(run.frames.advance());
        coalesce.coalescer.push(datagram, coalesce.slot, advance);
        true
    }

    /// Sends what waits.
    pub(super) fn flush_coalescer(&mut self) {
        if let Some(coalesce) = &mut self.coalesce
            && coalesce.coalescer.has_datagrams()
            && !coalesce
                .coalescer
                .flush(self.transport, self.now, self.reporter)
        {
            self.counters.short_sends.increment();
        }
    }
}

/// What came of one batch.
struct BatchResult {
    bytes: usize,
    /// There may be more where that came from.
    is_full: bool,
}

impl BatchResult {
    const NONE: Self = Self {
        bytes: 0,
        is_full: false,
    };
}

impl SenderPublication {
    /// A publication that has sent nothing yet.
    #[must_use]
    pub fn new(mut spec: SenderPublicationSpec) -> Self {
        let none = SenderFlowControlSpec::Max {
            retransmit_window_multiple: 1,
        };
        let flow_control = flow_control::build(std::mem::replace(&mut spec.flow_control, none));
        Self {
            position: spec.start_position,
            limit: spec.start_position,
            max_advertised_position: spec.start_position,
            sent_ns: 0,
            bounds: Bounds {
                window: 0,
                mtu: spec.mtu as i32,
                datagrams: spec.max_datagrams_per_send.unwrap_or(i32::MAX),
            },
            geometry: spec.log.geometry(),
            needs_setup: true,
            has_initial_connection: false,
            count_next_back_pressure: false,
            had_short_send: false,
            send_uncoalesced: false,
            is_flow_controlled: false,
            setup_sent_ns: 0,
            queued_heartbeat: None,
            is_setup_elicited: false,
            has_receivers: false,
            has_required_receivers: false,
            receivers: LivenessTable::expiring_at(spec.connection_timeout_ns),
            retransmits: RetransmitHandler::new(spec.retransmit, spec.log.term_length()),
            rtt_replies: rtt_replies(),
            flow_control,
            spies: Vec::new(),
            peer: None,
            spec,
        }
    }

    /// Identity.
    #[must_use]
    pub fn id(&self) -> PublicationId {
        self.spec.id
    }

    /// The endpoint it belongs to.
    #[must_use]
    pub fn endpoint(&self) -> EndpointId {
        self.spec.endpoint
    }

    /// Session and stream.
    pub(super) fn key(&self) -> (i32, i32) {
        (self.spec.session_id, self.spec.stream_id)
    }

    /// The sender has it now. The first SETUP leaves in the first turn.
    pub(super) fn start(&mut self, now: Now) {
        self.setup_sent_ns = now.nanos - SETUP_HEARTBEAT_INTERVAL_NS - 1;
        self.sent_ns = now.nanos - SETUP_HEARTBEAT_INTERVAL_NS - 1;
    }

    /// One duty cycle (docs/spec/wire.md §3.2). Returns the bytes of data sent.
    pub(super) fn poll(&mut self, context: &mut PublicationContext<'_>) -> usize {
        context.transport.set_peer(self.peer);
        if self.needs_setup {
            self.send_setup(context);
        }
        let sent = self.send_data(context);
        if sent == 0 {
            self.on_idle(context);
        }
        self.resend(context);
        sent
    }

    /// Whether more is to be sent as soon as there is room or time.
    pub(super) fn is_pending(&self) -> bool {
        self.had_short_send || self.retransmits.is_pending()
    }

    /// As long as whole trains are there, if nobody else sends: what a publisher has just written is sent from the cache,
    /// what it has written long ago from memory.
    fn send_data(&mut self, context: &mut PublicationContext<'_>) -> usize {
        (self.had_short_send, self.is_flow_controlled) = (false, false);
        let mut batch = self.send_batch(context);
        let mut sent = batch.bytes;
        while batch.is_full && self.limit > self.position && *context.extra_batches > 0 {
            *context.extra_batches -= 1;
            batch = self.send_batch(context);
            sent += batch.bytes;
        }
        sent
    }

    /// The road: straight from the term buffer to the wire, but for a lone datagram that has coalesce (docs/spec/wire.md §3.4).
    fn send_batch(&mut self, context: &mut PublicationContext<'_>) -> BatchResult {
        let window = self.limit - self.position;
        if window <= 0 {
            self.is_flow_controlled = true;
            self.back_pressure(context);
            return BatchResult::NONE;
        }
        let term = self.spec.log.term_at(self.position);
        let offset = self.geometry.term_offset(self.position);
        if !SendPlan::has_data(term, offset) {
            return BatchResult::NONE;
        }
        let bounds = Bounds {
            window,
            ..self.bounds
        };
        let plan = match SendPlan::scan(term, offset, bounds) {
            Ok(plan) => plan,
            Err(error) => {
                context
                    .reporter
                    .report_corrupt(context.now, context.transport.channel(), &error);
                return BatchResult::NONE;
            }
        };
        if plan.is_empty() {
            if plan.is_blocked() {
                self.is_flow_controlled = true;
                self.back_pressure(context);
            }
            return BatchResult::NONE;
        }
        if context.control_batch.contains(self.queued_heartbeat) {
            send_control_batch(context);
        }
        stamp(self.spec.send_timestamp.as_ref(), &plan, term);
        if !self.send_uncoalesced && context.try_coalesce(&plan, term) {
            return BatchResult {
                bytes: plan.bytes(),
                is_full: false,
            };
        }
        let accepted = transmit(&plan, term, context);
        self.had_short_send = accepted < plan.bytes();
        self.send_uncoalesced &= self.had_short_send;
        if self.had_short_send {
            context.counters.short_sends.increment();
        }
        if accepted > 0 {
            self.on_sent(plan.advance(accepted), accepted, context);
        }
        BatchResult {
            bytes: accepted,
            is_full: accepted == plan.bytes() && plan.is_full(),
        }
    }

    /// What became of a datagram that waited for others.
    pub(super) fn on_coalesced_result(
        &mut self,
        datagram: QueuedDatagram,
        context: &mut PublicationContext<'_>,
    ) {
        if datagram.outcome == SendOutcome::Sent {
            self.on_sent(datagram.advance, datagram.length, context);
            return;
        }
        self.had_short_send = true;
        self.send_uncoalesced = datagram.outcome == SendOutcome::Rejected;
        // As if it had sent nothing, which is so.
        self.on_idle(context);
    }

    /// So many bytes went out, with which the stream moves so far.
    fn on_sent(&mut self, advance: i64, bytes: usize, context: &PublicationContext<'_>) {
        self.position += advance;
        self.max_advertised_position = self.position.min(self.limit);
        self.publish_position();
        self.retransmits.on_data_sent(bytes);
        self.sent_ns = context.now.nanos;
        self.count_next_back_pressure = true;
        context.counters.bytes_sent.add_exclusive(bytes as i64);
    }

    fn publish_position(&self) {
        self.spec.shared.sender_position(self.position);
        self.spec.sender_position.set(self.position);
    }

    /// Counted once, then not again before data went out.
    #[cold]
    fn back_pressure(&mut self, context: &PublicationContext<'_>) {
        if self.count_next_back_pressure {
            self.count_next_back_pressure = false;
            self.spec.back_pressure_events.increment();
            context.counters.flow_control_limits.increment();
        }
    }

    fn on_idle(&mut self, context: &mut PublicationContext<'_>) {
        if self.has_initial_connection
            && context.now.nanos - self.sent_ns > SETUP_HEARTBEAT_INTERVAL_NS
        {
            self.send_heartbeat(context);
        }
        if !self.spies.is_empty() && self.spec.spies_simulate_connection && !self.has_receivers {
            self.follow_spies();
        }
        let limit = self.flow_control.on_idle(self.limit, context.now.nanos);
        self.set_limit(limit);
        self.receivers.remove_expired(context.now.nanos, |_| {});
        self.receivers_changed();
    }

    /// Without a receiver the furthest spy moves the stream (docs/spec/wire.md §2.12).
    fn follow_spies(&mut self) {
        // A spy's position is written by a client process: nobody has read what was not published, nor a part of a
        // frame.
        let published = self.spec.log.producer_position();
        let furthest = self
            .spies
            .iter()
            .map(|spy| spy.get() & !i64::from(FRAME_ALIGNMENT - 1))
            .filter(|&position| position <= published)
            .max();
        if let Some(furthest) = furthest.filter(|&position| position > self.position) {
            self.position = furthest.min(self.geometry.max_position());
            self.max_advertised_position = self.position;
            self.publish_position();
        }
        self.set_limit(self.position);
    }

    pub(super) fn add_spy(&mut self, position: Counter) {
        self.spies.push(position);
    }

    pub(super) fn remove_spy(&mut self, counter_id: i32) {
        self.spies.retain(|spy| spy.id() != counter_id);
    }

    /// Whether its SETUP asked for a response channel.
    pub(super) fn wants_response(&self) -> bool {
        self.spec.wants_response
    }

    pub(super) fn term_length(&self) -> i32 {
        self.geometry.term_length()
    }

    pub(super) fn position_of(&self, term_id: i32, term_offset: i32) -> i64 {
        self.geometry.position(term_id, term_offset)
    }

    /// Tells the conductor, if there is news.
    pub(super) fn receivers_changed(&mut self) {
        let has_receivers = !self.receivers.is_empty();
        let has_required = self.flow_control.has_required_receivers();
        if (has_receivers, has_required) != (self.has_receivers, self.has_required_receivers) {
            self.has_receivers = has_receivers;
            self.has_required_receivers = has_required;
            self.spec
                .shared
                .sender_receivers(has_receivers, has_required);
        }
    }

    pub(super) fn set_limit(&mut self, limit: i64) {
        if limit != self.limit {
            self.limit = limit;
            self.spec.sender_limit.set(limit);
        }
    }
}

impl Pollable for SenderPublication {
    type Wake = TailSnapshot;

    /// A publication that has sent everything and may send more has nothing to do before its publisher moves the tail, its
    /// next heartbeat is due or a receiver times out.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<TailSnapshot>> {
        let is_quiet = self.has_initial_connection
            && !self.needs_setup
            && !self.is_flow_controlled
            && !self.is_pending()
            && self.spies.is_empty()
            && !self.is_flow_control_due(now_ns);
        let deadline_ns = (self.sent_ns.saturating_add(SETUP_HEARTBEAT_INTERVAL_NS))
            .min(self.receivers.unchanged_until_ns())
            .min(self.flow_control.next_deadline_ns());
        let wake = is_quiet.then(|| self.spec.log.snapshot_if_drained(self.position))?;
        Some(IdleUntil {
            deadline_ns,
            wake: wake?,
        })
    }

    fn prefetch(&self) {
        let offset = self.geometry.term_offset(self.position) as usize;
        let term = self.spec.log.term_at(self.position);
        term.prefetch(offset, 1);
        prefetch_value(&*self.flow_control);
    }
}

/// Writes the time into the frames of a plan, just before they go out.
pub(super) fn stamp(timestamp: Option<&SendTimestamp>, plan: &SendPlan, term: &Region) {
    if let Some(timestamp) = timestamp {
        for run in plan.runs() {
            timestamp.write(term, run.offset, run.offset + run.frames.length as usize);
        }
    }
}

/// Sends a plan; a lone run, which is the common case, without setting up a batch.
pub(super) fn transmit(
    plan: &SendPlan,
    term: &Region,
    context: &mut PublicationContext<'_>,
) -> usize {
    let of_run = |run: &SegmentRun| {
        let frames = run.frames;
        Transmit::connected(term.bytes(run.offset, frames.length as usize))
            .segmented(frames.segment as usize)
    };
    match plan.runs() {
        [] => 0,
        [run] => context
            .transport
            .send(&mut [of_run(run)], context.now, context.reporter),
        runs => {
            let mut batch = [Transmit::connected(&[]); MAX_RUNS];
            for (transmit, run) in batch.iter_mut().zip(runs) {
                *transmit = of_run(run);
            }
            context
                .transport
                .send(&mut batch[..runs.len()], context.now, context.reporter)
        }
    }
}
