// SPDX-License-Identifier: Apache-2.0
//! The sender's half of a network publication.
//!
//! Driven by its endpoint: [`SenderPublication::start`] once, [`SenderPublication::poll`] when it is scheduled
//! (`poll_schedule`), and one `on_…` method per kind of control frame (`control_handlers`). Output goes to the
//! endpoint's transport, the counters and the shared atomics.

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

/// Interval of SETUPs, and of heartbeats.
pub(super) const SETUP_HEARTBEAT_INTERVAL_NS: i64 = 100_000_000;

/// The sender's half of a network publication: built by the conductor, owned by the sender.
#[derive(Debug)]
#[doc(alias = "NetworkPublication")]
pub(crate) struct SenderPublication {
    // Used in every poll.
    pub(super) position: i64,
    pub(super) limit: i64,
    /// Highest position that a receiver may have reached: the position after the last send, or the limit at that time
    /// if padding reached beyond it.
    pub(super) max_advertised_position: i64,
    pub(super) sent_ns: i64,
    pub(super) bounds: Bounds,
    pub(super) geometry: TermGeometry,
    pub(super) needs_setup: bool,
    pub(super) has_initial_connection: bool,
    pub(super) count_next_back_pressure: bool,
    /// True if the socket did not take all of the last send.
    pub(super) had_short_send: bool,
    /// True if the next datagram is not coalesced, because the last coalesced one was rejected.
    pub(super) send_uncoalesced: bool,
    /// True if nothing can be sent before a receiver advances the limit, as of the last poll.
    pub(super) is_flow_controlled: bool,
    /// True if the limit has changed since the last attempt to send.
    has_new_limit: bool,
    /// True if the connection state has changed, or a spy has advanced the position, since the last
    /// [`take_news`](Self::take_news).
    has_news: bool,
    // Used a few times per second.
    pub(super) setup_sent_ns: i64,
    /// Batch of the last heartbeat, if that was queued.
    pub(super) queued_heartbeat: Option<BatchId>,
    pub(super) is_setup_elicited: bool,
    pub(super) has_receivers: bool,
    pub(super) has_required_receivers: bool,
    /// Ids of live receivers.
    pub(super) receivers: LivenessTable<i64>,
    pub(super) retransmits: RetransmitHandler,
    pub(super) rtt_replies: TokenBucket,
    pub(super) flow_control: Box<dyn FlowControl>,
    pub(super) spies: Vec<Counter>,
    /// Source of the last request for the SETUP of a response.
    pub(super) peer: Option<SocketAddr>,
    pub(super) spec: SenderPublicationSpec,
}

/// State of the endpoint and the sender that is lent to a publication.
pub(super) struct PublicationContext<'a> {
    pub(super) now: Now,
    pub(super) transport: &'a mut SendTransport,
    pub(super) counters: &'a SenderCounters,
    pub(super) reporter: &'a mut ErrorReporter,
    pub(super) control_batch: &'a mut ControlFrameBatch,
    /// Batches beyond its first that the only active publication may send in this duty cycle.
    pub(super) extra_batches: &'a mut usize,
    /// Set if single datagrams may be coalesced with those of other publications.
    pub(super) coalesce: Option<CoalesceContext<'a>>,
}

/// Coalescing state of an endpoint in one duty cycle.
pub(super) struct CoalesceContext<'a> {
    pub(super) coalescer: &'a mut DatagramCoalescer,
    /// Publications with a single datagram in this duty cycle.
    pub(super) singles: usize,
    /// The same in the last duty cycle. Datagrams are coalesced where there are several.
    pub(super) singles_before: usize,
    /// Slot of the publication that is polled.
    pub(super) slot: Slot,
}

impl PublicationContext<'_> {
    /// Queues the single datagram of a plan. Returns false if the plan has to be sent by itself; queued datagrams are
    /// flushed before any other data is sent.
    fn try_coalesce(&mut self, plan: &SendPlan, term: &Region) -> bool {
        let Some(coalesce) = &mut self.coalesce else {
            return false;
        };
        let single = plan.single_datagram();
        coalesce.singles += usize::from(single.is_some());
        let is_worth_it = coalesce.singles.max(coalesce.singles_before) > 1;
        let coalesced = single.filter(|run| {
            is_worth_it
                && run.frames.length <= DatagramCoalescer::MAX_DATAGRAM_LENGTH
                && coalesce.coalescer.has_capacity()
        });
        let length = coalesced.map_or(0, |run| run.frames.length as usize);
        if coalesce.coalescer.has_datagrams()
            && (coalesced.is_none() || !coalesce.coalescer.fits(length))
        {
            self.flush_coalescer();
        }
        let (Some(run), Some(coalesce)) = (coalesced, &mut self.coalesce) else {
            return false;
        };
        let datagram = term.bytes(run.offset, length);
        let advance = i64::from(run.frames.advance());
        coalesce.coalescer.push(datagram, coalesce.slot, advance);
        true
    }

    /// Sends the queued datagrams.
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

/// Result of one send batch.
struct BatchResult {
    bytes: usize,
    /// True if more data may be committed.
    is_full: bool,
}

impl BatchResult {
    const NONE: Self = Self {
        bytes: 0,
        is_full: false,
    };
}

impl SenderPublication {
    /// Returns a publication that has sent nothing.
    #[must_use]
    pub(crate) fn new(mut spec: SenderPublicationSpec) -> Self {
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
            has_new_limit: false,
            has_news: false,
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

    /// Returns the id.
    #[must_use]
    pub(crate) fn id(&self) -> PublicationId {
        self.spec.id
    }

    /// Returns the id of its endpoint.
    #[must_use]
    pub(crate) fn endpoint(&self) -> EndpointId {
        self.spec.endpoint
    }

    /// Returns session id and stream id.
    pub(super) fn key(&self) -> (i32, i32) {
        (self.spec.session_id, self.spec.stream_id)
    }

    /// Called when the sender takes the publication over. The first poll sends the first SETUP.
    pub(super) fn start(&mut self, now: Now) {
        self.setup_sent_ns = now.nanos - SETUP_HEARTBEAT_INTERVAL_NS - 1;
        self.sent_ns = now.nanos - SETUP_HEARTBEAT_INTERVAL_NS - 1;
    }

    /// Does the work of one duty cycle. Returns the bytes of data sent (docs/spec/wire.md §3.2).
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

    /// Returns true if, since the last call, the connection state has changed or a spy has advanced the position: the conductor
    /// reads both.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Returns true if data is waiting for the socket, or a retransmission is pending.
    pub(super) fn is_pending(&self) -> bool {
        self.had_short_send || self.retransmits.is_pending()
    }

    /// Sends a batch, and more if no other publication is active: data that was just published is still in the cache.
    fn send_data(&mut self, context: &mut PublicationContext<'_>) -> usize {
        (self.had_short_send, self.is_flow_controlled) = (false, false);
        self.has_new_limit = false;
        let mut batch = self.send_batch(context);
        let mut sent = batch.bytes;
        while batch.is_full && self.limit > self.position && *context.extra_batches > 0 {
            *context.extra_batches -= 1;
            batch = self.send_batch(context);
            sent += batch.bytes;
        }
        sent
    }

    /// Hot path. Sends directly from the term buffer, except for a single datagram that is coalesced (docs/spec/wire.md
    /// §3.4).
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

    /// Handles the outcome of a coalesced datagram.
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
        // Nothing was sent in this cycle.
        self.on_idle(context);
    }

    /// Records that `bytes` were sent, which advances the position by `advance`.
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

    /// Counts a stall once, until data is sent again.
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

    /// Advances the position to that of the furthest spy, where there is no receiver (docs/spec/wire.md §2.12).
    fn follow_spies(&mut self) {
        // A spy's position is written by a client process: it is ignored beyond the published position, and rounded
        // down to the frame alignment.
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
            self.has_news = true;
        }
        self.set_limit(self.position);
    }

    pub(super) fn add_spy(&mut self, position: Counter) {
        self.spies.push(position);
    }

    pub(super) fn remove_spy(&mut self, counter_id: i32) {
        self.spies.retain(|spy| spy.id() != counter_id);
    }

    /// Returns true if its SETUP asks for a response channel.
    pub(super) fn wants_response(&self) -> bool {
        self.spec.wants_response
    }

    pub(super) fn term_length(&self) -> i32 {
        self.geometry.term_length()
    }

    pub(super) fn position_of(&self, term_id: i32, term_offset: i32) -> i64 {
        self.geometry.position(term_id, term_offset)
    }

    /// Publishes the connection state to the conductor if it has changed.
    pub(super) fn receivers_changed(&mut self) {
        let has_receivers = !self.receivers.is_empty();
        let has_required = self.flow_control.has_required_receivers();
        if (has_receivers, has_required) != (self.has_receivers, self.has_required_receivers) {
            self.has_receivers = has_receivers;
            self.has_required_receivers = has_required;
            self.has_news = true;
            self.spec
                .shared
                .sender_receivers(has_receivers, has_required);
        }
    }

    pub(super) fn set_limit(&mut self, limit: i64) {
        if limit != self.limit {
            self.limit = limit;
            self.has_new_limit = true;
            self.spec.sender_limit.set(limit);
        }
    }
}

impl Pollable for SenderPublication {
    type Wake = TailSnapshot;

    /// A publication that has sent everything and may send more has nothing to do before its publisher moves the tail,
    /// its next heartbeat is due or a receiver times out.
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

    fn next_deadline_ns(&self) -> i64 {
        if self.had_short_send || self.has_new_limit {
            return i64::MIN;
        }
        let after = |sent_ns: i64| sent_ns.saturating_add(SETUP_HEARTBEAT_INTERVAL_NS + 1);
        let setup_ns = if self.needs_setup {
            after(self.setup_sent_ns)
        } else {
            i64::MAX
        };
        let heartbeat_ns = if self.has_initial_connection {
            after(self.sent_ns)
        } else {
            i64::MAX
        };
        setup_ns
            .min(heartbeat_ns)
            .min(self.receivers.unchanged_until_ns().saturating_add(1))
            .min(self.flow_control.next_deadline_ns().saturating_add(1))
            .min(self.retransmits.next_deadline_ns())
    }

    fn prefetch(&self) {
        let offset = self.geometry.term_offset(self.position) as usize;
        let term = self.spec.log.term_at(self.position);
        term.prefetch(offset, 1);
        prefetch_value(&*self.flow_control);
    }
}

/// Writes the send timestamp into the frames of a plan.
pub(super) fn stamp(timestamp: Option<&SendTimestamp>, plan: &SendPlan, term: &Region) {
    if let Some(timestamp) = timestamp {
        for run in plan.runs() {
            timestamp.write(term, run.offset, run.offset + run.frames.length as usize);
        }
    }
}

/// Sends a plan. A single run, the common case, needs no batch.
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
