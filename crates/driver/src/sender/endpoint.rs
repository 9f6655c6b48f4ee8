//! A send endpoint: one channel's socket and the publications that use it.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use taran_core::clock::Now;
use taran_net::{ReceiveBatch, Transport};

use super::announce::send_control_batch;
use super::control;
use super::convoy::Fate;
use super::publication::{Company, SenderPublication, Turn};
use super::wire::Wire;
use super::{CONTROL_BATCH, CONTROL_BATCHES, Desk};
use crate::boundary::{ConductorEvent, EndpointId, PublicationId, SendEndpointSpec};
use crate::control_batch::ControlFrameBatch;
use crate::ids::{IdHash, IdMap};
use crate::poll_schedule::{Activity, AgentLoad, PollSchedule, Slot};
use crate::token_bucket::{TokenBucket, error_frames, response_setups};

/// A send endpoint: built by the conductor, owned by the sender.
#[derive(Debug)]
pub struct SendEndpoint {
    id: EndpointId,
    wire: Wire,
    pub(super) control_batch: ControlFrameBatch,
    control: Option<Box<dyn Transport>>,
    publications: PollSchedule<SenderPublication>,
    /// Streams with a lone datagram in the last duty cycle.
    lone: usize,
    seats: IdMap<PublicationId, Slot>,
    /// Whose control frames are those of a session and stream: the oldest where several have the same.
    addressees: IdMap<(i32, i32), PublicationId>,
    heard_ns: i64,
    re_resolution_timeout_ns: Option<i64>,
    error_frames: TokenBucket,
    response_setups: TokenBucket,
}

impl SendEndpoint {
    /// An endpoint without publications.
    #[must_use]
    pub fn new(spec: SendEndpointSpec) -> Self {
        Self {
            id: spec.id,
            wire: Wire::new(spec.data, spec.destination, spec.channel),
            control_batch: ControlFrameBatch::new(),
            control: spec.control,
            publications: PollSchedule::default(),
            lone: 0,
            seats: IdMap::with_hasher(IdHash::new(spec.seed)),
            addressees: IdMap::with_hasher(IdHash::new(spec.seed)),
            heard_ns: 0,
            re_resolution_timeout_ns: spec.re_resolution_timeout_ns,
            error_frames: error_frames(),
            response_setups: response_setups(),
        }
    }

    /// Identity.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// The sender has it now.
    pub(super) fn start(&mut self, now: Now) {
        self.heard_ns = now.nanos;
    }

    /// A turn for each publication that sends, and for some that do not. Returns the bytes of data sent.
    pub(super) fn send(&mut self, pace: AgentLoad, desk: &mut Desk<'_>) -> usize {
        let streams = self.publications.len();
        self.control_batch
            .set_stream_count(if self.wire.is_common() { streams } else { 0 });
        let company = (streams > 1 && self.wire.is_single()).then_some(Company {
            convoy: desk.convoy,
            lone: 0,
            lone_before: self.lone,
            seat: Slot(0),
        });
        let mut turn = Turn {
            now: desk.now,
            wire: &mut self.wire,
            counters: desk.counters,
            reporter: desk.reporter,
            control_batch: &mut self.control_batch,
            spare_trains: &mut desk.spare_trains,
            company,
        };
        let (mut sent, mut sending, mut is_held_up) = (0, 0, false);
        self.publications
            .poll(desk.now.nanos, pace, |seat, publication, side| {
                if side == Activity::Idle {
                    turn.send_convoy();
                }
                if let Some(company) = &mut turn.company {
                    company.seat = seat;
                }
                let before = publication.position;
                let bytes = publication.turn(&mut turn);
                sent += bytes;
                sending += usize::from(bytes > 0);
                is_held_up |= publication.is_held_up;
                bytes > 0 || publication.position != before || publication.is_pending()
            });
        turn.send_convoy();
        if let Some(company) = turn.company.take() {
            self.lone = company.lone;
            company.convoy.settle(|passenger| {
                if passenger.fate != Fate::Went {
                    sent -= passenger.length;
                }
                if let Some(publication) = self.publications.get_mut(passenger.seat) {
                    publication.has_left(passenger, &mut turn);
                }
            });
        }
        if turn.control_batch.is_due(pace == AgentLoad::Idle, turn.now) {
            send_control_batch(&mut turn);
        }
        desk.sending += sending;
        desk.is_held_up |= is_held_up;
        sent
    }

    /// Takes what has arrived from receivers. Returns the number of datagrams.
    pub(super) fn poll_control(&mut self, batch: &mut ReceiveBatch, desk: &mut Desk<'_>) -> usize {
        let mut heard = 0;
        let told = &desk.counters.status_messages_received;
        for _ in 0..CONTROL_BATCHES {
            let before = told.get();
            let transport = self.control.as_mut().unwrap_or(&mut self.wire.transport);
            match transport.receive(batch) {
                Ok(0) => break,
                Ok(count) => {
                    for datagram in batch.datagrams() {
                        control::on_datagram(self, datagram.payload, datagram.source, desk);
                    }
                    heard += count;
                    // What asks for an answer, or is garbage, waits for the next look: no flood of it gets more.
                    if count < CONTROL_BATCH || told.get() - before < count as i64 {
                        break;
                    }
                }
                Err(error) => {
                    desk.reporter.report(desk.now, self.wire.channel(), &error);
                    break;
                }
            }
        }
        heard
    }

    /// A peer that stays silent may have moved (docs/spec/wire.md §2.14).
    pub(super) fn check_heard(&mut self, desk: &mut Desk<'_>) {
        let (id, events) = (self.id, &mut *desk.events);
        self.wire.unheard_destinations(desk.now, |destination| {
            // Lost when the queue is full: the next timeout asks again.
            let _ = events.offer(ConductorEvent::ReResolveDestination {
                endpoint: id,
                destination,
            });
        });
        if let Some(timeout_ns) = self.re_resolution_timeout_ns
            && desk.now.nanos - self.heard_ns > timeout_ns
        {
            self.heard_ns = desk.now.nanos;
            // Lost when the queue is full: the next timeout asks again.
            let _ = desk
                .events
                .offer(ConductorEvent::ReResolveEndpoint(self.id));
        }
    }

    /// The publication of a control frame, with what it needs to act. It has a turn soon.
    pub(super) fn addressee<'a>(
        &'a mut self,
        session_id: i32,
        stream_id: i32,
        desk: &'a mut Desk<'_>,
    ) -> Option<(&'a mut SenderPublication, Turn<'a>)> {
        let seat = self.seat_of(session_id, stream_id)?;
        self.rouse(seat);
        self.at(seat, desk)
    }

    /// Where the publication of a control frame sits.
    pub(super) fn seat_of(&self, session_id: i32, stream_id: i32) -> Option<Slot> {
        let id = self.addressees.get(&(session_id, stream_id))?;
        self.seats.get(id).copied()
    }

    /// Whoever sits there has a turn soon.
    pub(super) fn rouse(&mut self, seat: Slot) {
        self.publications.schedule_once(seat);
    }

    /// The publication that sits there, with what it needs to act.
    pub(super) fn at<'a>(
        &'a mut self,
        seat: Slot,
        desk: &'a mut Desk<'_>,
    ) -> Option<(&'a mut SenderPublication, Turn<'a>)> {
        let publication = self.publications.get_mut(seat)?;
        let turn = Turn {
            now: desk.now,
            wire: &mut self.wire,
            counters: desk.counters,
            reporter: desk.reporter,
            control_batch: &mut self.control_batch,
            spare_trains: &mut desk.spare_trains,
            company: None,
        };
        Some((publication, turn))
    }

    /// How many error_frames of receivers may be told on.
    pub(super) fn error_frames(&mut self) -> &mut TokenBucket {
        &mut self.error_frames
    }

    /// How many announcements of answers may be passed on.
    pub(super) fn response_setups(&mut self) -> &mut TokenBucket {
        &mut self.response_setups
    }

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// A status message was accepted. Only one about a publication of this endpoint says that its peer is still there.
    pub(super) fn on_status(
        &mut self,
        receiver_id: i64,
        source: SocketAddr,
        is_addressed: bool,
        desk: &mut Desk<'_>,
    ) {
        if is_addressed {
            self.heard_ns = desk.now.nanos;
        }
        self.wire
            .on_status(receiver_id, source, desk.now, desk.reporter);
    }

    pub(super) fn add(&mut self, mut publication: Box<SenderPublication>, now: Now) {
        publication.start(now);
        let (id, key) = (publication.id(), publication.key());
        self.addressees.entry(key).or_insert(id);
        self.seats.insert(id, self.publications.insert(publication));
    }

    pub(super) fn remove(&mut self, id: PublicationId) -> Option<Box<SenderPublication>> {
        let removed = self.publications.remove(self.seats.remove(&id)?)?;
        self.pass_on(id, removed.key());
        Some(removed)
    }

    /// Takes one after the other, when the endpoint goes.
    pub(super) fn remove_any(&mut self) -> Option<Box<SenderPublication>> {
        let id = self.publications.any()?.id();
        self.remove(id)
    }

    /// One that is gone leaves its control frames to the oldest of its key, if there is one.
    fn pass_on(&mut self, id: PublicationId, key: (i32, i32)) {
        if self.addressees.get(&key) != Some(&id) {
            return;
        }
        self.addressees.remove(&key);
        // Each of the others has a key of its own, unless some share one.
        if self.addressees.len() < self.publications.len() {
            let heirs = self.publications.iter().filter(|heir| heir.key() == key);
            if let Some(heir) = heirs.map(SenderPublication::id).min() {
                self.addressees.insert(key, heir);
            }
        }
    }

    /// The publication, which has a turn soon: something about it changes.
    pub(super) fn publication(&mut self, id: PublicationId) -> Option<&mut SenderPublication> {
        self.publications.schedule_once(*self.seats.get(&id)?)
    }

    /// The descriptor on which receivers are heard.
    pub(super) fn control_fd(&self) -> Option<RawFd> {
        self.control
            .as_ref()
            .unwrap_or(&self.wire.transport)
            .raw_fd()
    }
}
