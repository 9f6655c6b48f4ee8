//! The sender's half of a network publication.
//!
//! Driven by its endpoint: [`SenderPublication::start`] once, [`SenderPublication::turn`] in every duty cycle, and one
//! `on_…` method for each kind of control frame. Output goes to the endpoint's wire, the counters and the shared atomics.

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::memory::Region;
use taran_net::Transmit;
use taran_protocol::frame::{DataHeader, I32, IntoBytes, Setup};
use taran_protocol::position::TermGeometry;

use super::flow_control::{self, FlowControl, StatusReport};
use super::plan::{Bounds, MAX_RUNS, Plan, Run};
use super::receivers::Receivers;
use super::retransmit::{Retransmits, Stretch, Verdict};
use super::wire::Wire;
use crate::boundary::{EndpointId, PublicationId, SenderCounters, SenderPublicationSpec};
use crate::faults::Faults;

/// Time between SETUPs, and between heartbeats.
const ANNOUNCE_INTERVAL_NS: i64 = 100_000_000;

/// Upper bound of the receiver window that retransmission limits are derived from (spec/02 §3.8).
const RETRANSMIT_WINDOW_MAX: i64 = 131_072;

/// The sender's half of a network publication: built by the conductor, owned by the sender.
#[derive(Debug)]
pub struct SenderPublication {
    // What every turn touches.
    position: i64,
    limit: i64,
    sent_ns: i64,
    bounds: Bounds,
    geometry: TermGeometry,
    needs_setup: bool,
    has_initial_connection: bool,
    counts_back_pressure: bool,
    // What happens a few times a second.
    setup_sent_ns: i64,
    is_setup_elicited: bool,
    has_receivers: bool,
    has_required_receivers: bool,
    receivers: Receivers,
    retransmits: Retransmits,
    flow_control: Box<dyn FlowControl>,
    spies: Vec<Counter>,
    spec: SenderPublicationSpec,
}

/// What a publication works with besides itself.
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    pub(super) wire: &'a mut Wire,
    pub(super) counters: &'a SenderCounters,
    pub(super) faults: &'a mut Faults,
}

impl SenderPublication {
    /// A publication that has sent nothing yet.
    #[must_use]
    pub fn new(spec: SenderPublicationSpec) -> Self {
        Self {
            position: spec.start_position,
            limit: spec.start_position,
            sent_ns: 0,
            bounds: Bounds {
                window: 0,
                mtu: spec.mtu as i32,
                datagrams: spec.max_datagrams_per_turn.unwrap_or(i32::MAX),
            },
            geometry: spec.log.geometry(),
            needs_setup: true,
            has_initial_connection: false,
            counts_back_pressure: false,
            setup_sent_ns: 0,
            is_setup_elicited: false,
            has_receivers: false,
            has_required_receivers: false,
            receivers: Receivers::new(spec.connection_timeout_ns),
            retransmits: Retransmits::new(spec.retransmit),
            flow_control: flow_control::build(&spec.flow_control),
            spies: Vec::new(),
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

    pub(super) fn session_id(&self) -> i32 {
        self.spec.session_id
    }

    pub(super) fn stream_id(&self) -> i32 {
        self.spec.stream_id
    }

    /// The sender has it now. The first SETUP leaves in the first turn.
    pub(super) fn start(&mut self, now: Now) {
        self.setup_sent_ns = now.nanos - ANNOUNCE_INTERVAL_NS - 1;
        self.sent_ns = now.nanos - ANNOUNCE_INTERVAL_NS - 1;
    }

    /// One duty cycle (spec/02 §3.2). Returns the bytes of data sent.
    pub(super) fn turn(&mut self, turn: &mut Turn<'_>) -> usize {
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

    /// The road: straight from the term buffer to the wire (spec/02 §3.4).
    fn send_data(&mut self, turn: &mut Turn<'_>) -> usize {
        let window = self.limit - self.position;
        if window <= 0 {
            self.back_pressure(turn);
            return 0;
        }
        let term = self.spec.log.term_at(self.position);
        let bounds = Bounds {
            window,
            ..self.bounds
        };
        let plan = match Plan::scan(term, self.geometry.term_offset(self.position), bounds) {
            Ok(plan) => plan,
            Err(error) => {
                turn.faults
                    .report_corrupt(turn.now, turn.wire.channel(), &error);
                return 0;
            }
        };
        if plan.is_empty() {
            if plan.is_blocked() {
                self.back_pressure(turn);
            }
            return 0;
        }
        let accepted = transmit(&plan, term, turn);
        if accepted < plan.bytes() {
            turn.counters.short_sends.increment();
        }
        if accepted > 0 {
            self.position += plan.advance(accepted);
            self.spec.sender_position.set(self.position);
            self.sent_ns = turn.now.nanos;
            self.counts_back_pressure = true;
            turn.counters.bytes_sent.add_exclusive(accepted as i64);
        }
        accepted
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
        if self.receivers.expire(turn.now.nanos) {
            self.receivers_changed();
        }
    }

    /// Without a receiver the furthest spy moves the stream (spec/02 §2.12).
    fn follow_spies(&mut self) {
        // A spy's position is written by a client process: what no stream can reach is not believed.
        let possible = ..=self.geometry.max_position();
        let furthest = self
            .spies
            .iter()
            .map(Counter::get)
            .filter(|position| possible.contains(position))
            .max();
        if let Some(furthest) = furthest.filter(|&position| position > self.position) {
            self.position = furthest;
            self.spec.sender_position.set(furthest);
        }
        self.set_limit(self.position);
    }

    /// Describes the stream at the sender's position (spec/02 §3.3).
    fn setup(&mut self, turn: &mut Turn<'_>) {
        if turn.now.nanos - self.setup_sent_ns <= ANNOUNCE_INTERVAL_NS {
            return;
        }
        self.setup_sent_ns = turn.now.nanos;
        if self.is_setup_elicited {
            self.flow_control
                .on_requested_setup(self.limit, turn.now.nanos);
        }
        let group = if self.spec.is_group { Setup::GROUP } else { 0 };
        let response = if self.spec.wants_response {
            Setup::SEND_RESPONSE_SETUP
        } else {
            0
        };
        let setup = Setup {
            header: Setup::header(group | response),
            term_offset: self.geometry.term_offset(self.position).into(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            initial_term_id: self.geometry.initial_term_id().into(),
            active_term_id: self.geometry.term_id(self.position).into(),
            term_length: self.geometry.term_length().into(),
            mtu: I32::new(self.bounds.mtu),
            ttl: self.spec.ttl.into(),
        };
        send_frame(setup.as_bytes(), turn);
        if self.is_setup_elicited && self.has_receivers {
            self.is_setup_elicited = false;
        }
        self.needs_setup = !self.has_initial_connection || self.is_setup_elicited;
    }

    /// Says where the stream is when there is nothing to say, and whether it ended there (spec/02 §3.5).
    fn heartbeat(&mut self, turn: &mut Turn<'_>) {
        let shared = &self.spec.shared;
        let flags = if shared.is_revoked() {
            DataHeader::UNFRAGMENTED | DataHeader::EOS | DataHeader::REVOKED
        } else if shared.is_end_of_stream() && self.spec.signals_end_of_stream {
            DataHeader::UNFRAGMENTED | DataHeader::EOS
        } else {
            DataHeader::UNFRAGMENTED
        };
        let heartbeat = DataHeader::heartbeat(
            flags,
            self.spec.session_id,
            self.spec.stream_id,
            self.geometry.term_id(self.position),
            self.geometry.term_offset(self.position),
        );
        let sent = send_frame(heartbeat.as_bytes(), turn);
        turn.counters.bytes_sent.add_exclusive(sent as i64);
        turn.counters.heartbeats_sent.increment();
        self.sent_ns = turn.now.nanos;
    }

    /// A receiver asks what the stream is.
    pub(super) fn on_setup_request(&mut self, group_tag: Option<i64>) {
        if !self.spec.shared.is_end_of_stream() {
            self.is_setup_elicited = true;
            self.needs_setup = true;
            self.flow_control.on_setup_requested(group_tag);
        }
    }

    /// True if a consumption position can be true: it is not further than half a term from the sender's (spec/02 §4.2).
    pub(super) fn is_plausible(&self, position: i64) -> bool {
        let half = i64::from(self.geometry.term_length() / 2);
        (self.position - half..=self.position + half).contains(&position)
    }

    /// A receiver says where it is.
    pub(super) fn on_status(&mut self, report: &StatusReport, now: Now) {
        if report.is_end_of_stream {
            self.receivers.remove(report.receiver_id);
            if !self.spec.is_group {
                self.spec.shared.sender_unicast_end_of_stream();
            }
        } else {
            self.receivers.heard(report.receiver_id, now.nanos);
        }
        let limit = self.flow_control.on_status(report, self.limit, now.nanos);
        self.set_limit(limit);
        self.receivers_changed();
        if !self.has_initial_connection {
            self.has_initial_connection = true;
            self.needs_setup = self.is_setup_elicited;
            self.spec.shared.sender_initial_connection();
        }
    }

    /// A receiver rejected the stream. True if it was a receiver of this publication until now.
    pub(super) fn on_error(&mut self, receiver_id: i64, group_tag: Option<i64>, now: Now) -> bool {
        self.flow_control
            .on_error(receiver_id, group_tag, now.nanos);
        let was_known = self.receivers.remove(receiver_id);
        if was_known {
            self.receivers_changed();
        }
        was_known
    }

    /// A receiver misses something; the range was checked against the term.
    pub(super) fn on_nak(
        &mut self,
        term_id: i32,
        term_offset: i32,
        length: i32,
        turn: &mut Turn<'_>,
    ) {
        self.spec.naks_received.increment();
        let position = self.geometry.position(term_id, term_offset);
        let term_length = i64::from(self.geometry.term_length());
        let multiple = i64::from(self.flow_control.retransmit_window_multiple());
        let asked = i64::from(length)
            .min(multiple * RETRANSMIT_WINDOW_MAX.min(term_length / 2))
            .min(self.position - position);
        let oldest =
            self.position - term_length / 2 - i64::from(self.geometry.max_message_length());
        if asked <= 0 || position < oldest || position < 0 {
            return;
        }
        match self.retransmits.on_nak(
            Stretch {
                position,
                length: asked,
            },
            turn.now.nanos,
        ) {
            Verdict::Accepted => self.resend(turn),
            Verdict::Suppressed => {}
            Verdict::Overflow => {
                turn.counters.retransmit_overflow.increment();
            }
        }
    }

    fn resend(&mut self, turn: &mut Turn<'_>) {
        let (geometry, log, bounds) = (self.geometry, &self.spec.log, self.bounds);
        self.retransmits.turn(turn.now.nanos, |rest, is_start| {
            let term = log.term_at(rest.position);
            let bounds = Bounds {
                window: rest.length,
                ..bounds
            };
            let plan = Plan::scan(term, geometry.term_offset(rest.position), bounds).ok()?;
            let accepted = if plan.is_empty() {
                0
            } else {
                transmit(&plan, term, turn)
            };
            if accepted == 0 {
                return None;
            }
            if is_start {
                turn.counters.retransmits_sent.increment();
            }
            let advanced = plan.advance(accepted);
            turn.counters.retransmitted_bytes.add(advanced);
            if accepted < plan.bytes() {
                turn.counters.short_sends.increment();
                return None;
            }
            Some(advanced)
        });
    }

    pub(super) fn add_spy(&mut self, position: Counter) {
        self.spies.push(position);
    }

    pub(super) fn remove_spy(&mut self, counter_id: i32) {
        self.spies.retain(|spy| spy.id() != counter_id);
    }

    pub(super) fn term_length(&self) -> i32 {
        self.geometry.term_length()
    }

    pub(super) fn position_of(&self, term_id: i32, term_offset: i32) -> i64 {
        self.geometry.position(term_id, term_offset)
    }

    /// Tells the conductor, if there is news.
    fn receivers_changed(&mut self) {
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

    fn set_limit(&mut self, limit: i64) {
        if limit != self.limit {
            self.limit = limit;
            self.spec.sender_limit.set(limit);
        }
    }
}

/// Sends a plan; a lone run, which is the common case, without setting up a batch.
fn transmit(plan: &Plan, term: &Region, turn: &mut Turn<'_>) -> usize {
    let of_run = |run: &Run| {
        let frames = run.frames;
        Transmit::connected(term.bytes(run.offset, frames.length as usize))
            .segmented(frames.segment as usize)
    };
    match plan.runs() {
        [] => 0,
        [run] => turn.wire.send(&mut [of_run(run)], turn.now, turn.faults),
        runs => {
            let mut batch = [Transmit::connected(&[]); MAX_RUNS];
            for (transmit, run) in batch.iter_mut().zip(runs) {
                *transmit = of_run(run);
            }
            turn.wire
                .send(&mut batch[..runs.len()], turn.now, turn.faults)
        }
    }
}

/// Sends one frame in a datagram of its own. Returns the bytes sent: all or none.
fn send_frame(frame: &[u8], turn: &mut Turn<'_>) -> usize {
    let sent = turn
        .wire
        .send(&mut [Transmit::connected(frame)], turn.now, turn.faults);
    if sent < frame.len() {
        turn.counters.short_sends.increment();
    }
    sent
}
