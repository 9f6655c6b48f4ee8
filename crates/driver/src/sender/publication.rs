//! The sender's half of a network publication.
//!
//! Driven by its endpoint: [`SenderPublication::start`] once, [`SenderPublication::turn`] whenever it has one
//! (`poll_schedule`), and one `on_…` method for each kind of control frame (`answers`). Output goes to the endpoint's wire, the
//! counters and the shared atomics.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::memory::{Region, prefetch_value};
use taran_net::Transmit;
use taran_protocol::log::TailSnapshot;
use taran_protocol::position::{FRAME_ALIGNMENT, TermGeometry};

use super::announce::send_control_batch;
use super::convoy::{Convoy, Fate, Passenger};
use super::flow_control::{self, FlowControl};
use super::plan::{Bounds, MAX_RUNS, Plan, Run};
use super::present::Present;
use super::retransmit::Retransmits;
use super::wire::Wire;
use crate::boundary::{
    EndpointId, PublicationId, SenderCounters, SenderFlowControlSpec, SenderPublicationSpec,
};
use crate::control_batch::{BatchId, ControlFrameBatch};
use crate::error_reporter::ErrorReporter;
use crate::poll_schedule::{IdleUntil, Pollable, Slot};
use crate::timestamps::SendTimestamp;
use crate::token_bucket::{TokenBucket, rtt_replies};

/// Time between SETUPs, and between heartbeats.
pub(super) const ANNOUNCE_INTERVAL_NS: i64 = 100_000_000;

/// The sender's half of a network publication: built by the conductor, owned by the sender.
#[derive(Debug)]
pub struct SenderPublication {
    // What every turn touches.
    pub(super) position: i64,
    pub(super) limit: i64,
    /// Where it was when it last sent something, or the limit of then if padding led beyond it.
    pub(super) invited: i64,
    pub(super) sent_ns: i64,
    pub(super) bounds: Bounds,
    pub(super) geometry: TermGeometry,
    pub(super) needs_setup: bool,
    pub(super) has_initial_connection: bool,
    pub(super) counts_back_pressure: bool,
    /// The socket did not take all that there was.
    pub(super) is_short: bool,
    /// Its next datagram waits for nobody's: the last one that did was refused.
    pub(super) is_alone: bool,
    /// Its last turn could send nothing, whatever there is, before a receiver moves the limit.
    pub(super) is_held_up: bool,
    // What happens a few times a second.
    pub(super) setup_sent_ns: i64,
    /// Of its last sign of life, if that was collected.
    pub(super) queued_heartbeat: Option<BatchId>,
    pub(super) is_setup_elicited: bool,
    pub(super) has_receivers: bool,
    pub(super) has_required_receivers: bool,
    /// Ids of those that spoke lately.
    pub(super) receivers: Present<i64>,
    pub(super) retransmits: Retransmits,
    pub(super) rtt_replies: TokenBucket,
    pub(super) flow_control: Box<dyn FlowControl>,
    pub(super) spies: Vec<Counter>,
    /// Who asked for the SETUP of a response last.
    pub(super) peer: Option<SocketAddr>,
    pub(super) spec: SenderPublicationSpec,
}

/// What a publication works with besides itself.
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    pub(super) wire: &'a mut Wire,
    pub(super) counters: &'a SenderCounters,
    pub(super) reporter: &'a mut ErrorReporter,
    pub(super) control_batch: &'a mut ControlFrameBatch,
    /// Trains beyond its first that a lone publication may send in this duty cycle.
    pub(super) spare_trains: &'a mut usize,
    /// Where lone datagrams may wait for those of others.
    pub(super) company: Option<Company<'a>>,
}

/// Others on the same endpoint that send a datagram now and then.
pub(super) struct Company<'a> {
    pub(super) convoy: &'a mut Convoy,
    /// Streams with a lone datagram in this duty cycle …
    pub(super) lone: usize,
    /// … and in the last one. It is worth to wait where there are several.
    pub(super) lone_before: usize,
    /// Of the publication whose turn it is.
    pub(super) seat: Slot,
}

impl Turn<'_> {
    /// Whether a plan's lone datagram waits for those of others. All that wait leave before any other data.
    fn takes_along(&mut self, plan: &Plan, term: &Region) -> bool {
        let Some(company) = &mut self.company else {
            return false;
        };
        let lone = plan.lone();
        company.lone += usize::from(lone.is_some());
        let is_worth_it = company.lone.max(company.lone_before) > 1;
        let joins = lone.filter(|run| {
            is_worth_it && run.frames.length <= Convoy::LONGEST && company.convoy.is_open()
        });
        let length = joins.map_or(0, |run| run.frames.length as usize);
        if company.convoy.waits() && (joins.is_none() || !company.convoy.has_room(length)) {
            self.send_convoy();
        }
        let (Some(run), Some(company)) = (joins, &mut self.company) else {
            return false;
        };
        let datagram = term.bytes(run.offset, length);
        let advance = i64::from(run.frames.advance());
        company.convoy.take(datagram, company.seat, advance);
        true
    }

    /// Sends what waits.
    pub(super) fn send_convoy(&mut self) {
        if let Some(company) = &mut self.company
            && company.convoy.waits()
            && !company.convoy.leave(self.wire, self.now, self.reporter)
        {
            self.counters.short_sends.increment();
        }
    }
}

/// What came of one batch.
struct Train {
    bytes: usize,
    /// There may be more where that came from.
    is_full: bool,
}

impl Train {
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
            invited: spec.start_position,
            sent_ns: 0,
            bounds: Bounds {
                window: 0,
                mtu: spec.mtu as i32,
                datagrams: spec.max_datagrams_per_send.unwrap_or(i32::MAX),
            },
            geometry: spec.log.geometry(),
            needs_setup: true,
            has_initial_connection: false,
            counts_back_pressure: false,
            is_short: false,
            is_alone: false,
            is_held_up: false,
            setup_sent_ns: 0,
            queued_heartbeat: None,
            is_setup_elicited: false,
            has_receivers: false,
            has_required_receivers: false,
            receivers: Present::up_to(spec.connection_timeout_ns),
            retransmits: Retransmits::new(spec.retransmit, spec.log.term_length()),
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
        self.setup_sent_ns = now.nanos - ANNOUNCE_INTERVAL_NS - 1;
        self.sent_ns = now.nanos - ANNOUNCE_INTERVAL_NS - 1;
    }

    /// One duty cycle (docs/spec/wire.md §3.2). Returns the bytes of data sent.
    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> usize {
        turn.wire.speak_to(self.peer);
        if self.needs_setup {
            self.setup(turn);
        }
        let sent = self.send_data(turn);
        if sent == 0 {
            self.idle(turn);
        }
        self.resend(turn);
        sent
    }

    /// Whether more is to be sent as soon as there is room or time.
    pub(super) fn is_pending(&self) -> bool {
        self.is_short || self.retransmits.is_pending()
    }

    /// As long as whole trains are there, if nobody else sends: what a publisher has just written is sent from the cache,
    /// what it has written long ago from memory.
    fn send_data(&mut self, turn: &mut Turn<'_>) -> usize {
        (self.is_short, self.is_held_up) = (false, false);
        let mut train = self.send_train(turn);
        let mut sent = train.bytes;
        while train.is_full && self.limit > self.position && *turn.spare_trains > 0 {
            *turn.spare_trains -= 1;
            train = self.send_train(turn);
            sent += train.bytes;
        }
        sent
    }

    /// The road: straight from the term buffer to the wire, but for a lone datagram that has company (docs/spec/wire.md §3.4).
    fn send_train(&mut self, turn: &mut Turn<'_>) -> Train {
        let window = self.limit - self.position;
        if window <= 0 {
            self.is_held_up = true;
            self.back_pressure(turn);
            return Train::NONE;
        }
        let term = self.spec.log.term_at(self.position);
        let offset = self.geometry.term_offset(self.position);
        if !Plan::is_worth_making(term, offset) {
            return Train::NONE;
        }
        let bounds = Bounds {
            window,
            ..self.bounds
        };
        let plan = match Plan::scan(term, offset, bounds) {
            Ok(plan) => plan,
            Err(error) => {
                turn.reporter
                    .report_corrupt(turn.now, turn.wire.channel(), &error);
                return Train::NONE;
            }
        };
        if plan.is_empty() {
            if plan.is_blocked() {
                self.is_held_up = true;
                self.back_pressure(turn);
            }
            return Train::NONE;
        }
        if turn.control_batch.contains(self.queued_heartbeat) {
            send_control_batch(turn);
        }
        stamp(self.spec.send_timestamp.as_ref(), &plan, term);
        if !self.is_alone && turn.takes_along(&plan, term) {
            return Train {
                bytes: plan.bytes(),
                is_full: false,
            };
        }
        let accepted = transmit(&plan, term, turn);
        self.is_short = accepted < plan.bytes();
        self.is_alone &= self.is_short;
        if self.is_short {
            turn.counters.short_sends.increment();
        }
        if accepted > 0 {
            self.went(plan.advance(accepted), accepted, turn);
        }
        Train {
            bytes: accepted,
            is_full: accepted == plan.bytes() && plan.is_full(),
        }
    }

    /// What became of a datagram that waited for others.
    pub(super) fn has_left(&mut self, passenger: Passenger, turn: &mut Turn<'_>) {
        if passenger.fate == Fate::Went {
            self.went(passenger.advance, passenger.length, turn);
            return;
        }
        self.is_short = true;
        self.is_alone = passenger.fate == Fate::Refused;
        // As if it had sent nothing, which is so.
        self.idle(turn);
    }

    /// So many bytes went out, with which the stream moves so far.
    fn went(&mut self, advance: i64, bytes: usize, turn: &Turn<'_>) {
        self.position += advance;
        self.invited = self.position.min(self.limit);
        self.publish_position();
        self.retransmits.sent(bytes);
        self.sent_ns = turn.now.nanos;
        self.counts_back_pressure = true;
        turn.counters.bytes_sent.add_exclusive(bytes as i64);
    }

    fn publish_position(&self) {
        self.spec.shared.sender_position(self.position);
        self.spec.sender_position.set(self.position);
    }

    /// Counted once, then not again before data went out.
    #[cold]
    fn back_pressure(&mut self, turn: &Turn<'_>) {
        if self.counts_back_pressure {
            self.counts_back_pressure = false;
            self.spec.back_pressure_events.increment();
            turn.counters.flow_control_limits.increment();
        }
    }

    fn idle(&mut self, turn: &mut Turn<'_>) {
        if self.has_initial_connection && turn.now.nanos - self.sent_ns > ANNOUNCE_INTERVAL_NS {
            self.heartbeat(turn);
        }
        if !self.spies.is_empty() && self.spec.spies_simulate_connection && !self.has_receivers {
            self.follow_spies();
        }
        let limit = self.flow_control.on_idle(self.limit, turn.now.nanos);
        self.set_limit(limit);
        self.receivers.forget_silent(turn.now.nanos, |_| {});
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
            self.invited = self.position;
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
            && !self.is_held_up
            && !self.is_pending()
            && self.spies.is_empty()
            && !self.awaits_look(now_ns);
        let deadline_ns = (self.sent_ns.saturating_add(ANNOUNCE_INTERVAL_NS))
            .min(self.receivers.unchanged_until_ns())
            .min(self.flow_control.idles_until_ns());
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
pub(super) fn stamp(timestamp: Option<&SendTimestamp>, plan: &Plan, term: &Region) {
    if let Some(timestamp) = timestamp {
        for run in plan.runs() {
            timestamp.write(term, run.offset, run.offset + run.frames.length as usize);
        }
    }
}

/// Sends a plan; a lone run, which is the common case, without setting up a batch.
pub(super) fn transmit(plan: &Plan, term: &Region, turn: &mut Turn<'_>) -> usize {
    let of_run = |run: &Run| {
        let frames = run.frames;
        Transmit::connected(term.bytes(run.offset, frames.length as usize))
            .segmented(frames.segment as usize)
    };
    match plan.runs() {
        [] => 0,
        [run] => turn.wire.send(&mut [of_run(run)], turn.now, turn.reporter),
        runs => {
            let mut batch = [Transmit::connected(&[]); MAX_RUNS];
            for (transmit, run) in batch.iter_mut().zip(runs) {
                *transmit = of_run(run);
            }
            turn.wire
                .send(&mut batch[..runs.len()], turn.now, turn.reporter)
        }
    }
}
