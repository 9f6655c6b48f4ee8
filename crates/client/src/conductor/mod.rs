//! The client conductor: takes the driver's responses in and watches over the connection.
//!
//! Contract: [`Conductor::turn`] is called with the present time, often. It reads responses, tells users through their
//! callbacks, sends what could not be sent before, gives up on answers that do not come, and every keepalive interval
//! shows the driver a sign of life and looks for one of the driver. It is not on the road of a message.

mod agent;
mod image;
mod liveness;
mod logs;
mod ready;
mod respond;
mod resync;

use std::sync::Arc;
use std::time::Duration;

use taran_core::broadcast::Receiver;
use taran_core::clock::Now;
use taran_core::counters::Counter;

pub(crate) use agent::ConductorAgent;

use crate::error::{AddError, Lost};
use crate::link::Link;

/// Responses taken in one turn at most, so that the other duties get their turn.
const RESPONSES_PER_TURN: usize = 32;
/// So many commands in flight are looked at in each turn; more of them now and then.
const FEW_COMMANDS: usize = 16;
const LOOK_INTERVAL_NS: i64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Conductor {
    responses: Receiver,
    /// When the turn before this one was.
    last_turn_ns: Option<i64>,
    next_check_ns: i64,
    /// When it is looked again which of many commands are late.
    next_look_ns: i64,
    /// The driver's last sign of life, and when it was first seen.
    driver_heartbeat: Option<(i64, i64)>,
    /// The counter that shows the driver that this client lives, once the driver has made it.
    heartbeat: Option<Counter>,
    /// Times that responses were overwritten before they were read.
    overwritten: u64,
}

impl Conductor {
    pub(crate) fn new(responses: Receiver) -> Self {
        Self {
            responses,
            last_turn_ns: None,
            next_check_ns: i64::MIN,
            next_look_ns: i64::MIN,
            driver_heartbeat: None,
            heartbeat: None,
            overwritten: 0,
        }
    }

    /// One turn; returns the amount of work done.
    pub(crate) fn turn(&mut self, link: &Arc<Link>, now: Now) -> usize {
        if link.life.is_over() {
            return 0;
        }
        match self.duties(link, now) {
            Ok(work) => work,
            Err(lost) => {
                link.lose(lost);
                1
            }
        }
    }

    fn duties(&mut self, link: &Arc<Link>, now: Now) -> Result<usize, Lost> {
        self.check_service_interval(link, now)?;
        let mut work = self.take_responses(link)?;
        work += link.send_kept();
        if now.nanos >= self.next_check_ns {
            self.next_check_ns = now.nanos.saturating_add(nanos(link.settings.keepalive));
            self.check_liveness(link, now)?;
            work += 1;
        }
        // After the check: if the driver is dead, that is what happened to the commands.
        work += self.give_up(link, now);
        Ok(work)
    }

    fn take_responses(&mut self, link: &Arc<Link>) -> Result<usize, Lost> {
        for taken in 0..RESPONSES_PER_TURN {
            // A callback may have closed the client meanwhile: nothing is called back after that.
            if link.life.is_over() {
                return Ok(taken);
            }
            let mut outcome = Ok(());
            match self.responses.receive(|type_id, bytes| {
                outcome = respond::respond(link, type_id, bytes);
            }) {
                Ok(true) => outcome?,
                Ok(false) => return Ok(taken),
                Err(_) => {
                    self.overwritten += 1;
                    resync::resync(link, self.overwritten);
                }
            }
        }
        Ok(RESPONSES_PER_TURN)
    }

    /// Fails commands whose answer has not come within the driver timeout. Many of them are not looked at in each turn.
    fn give_up(&mut self, link: &Arc<Link>, now: Now) -> usize {
        let timeout = link.settings.driver_timeout;
        let mut late = Vec::new();
        {
            let mut registry = link.registry();
            if registry.in_flight.len() > FEW_COMMANDS && now.nanos < self.next_look_ns {
                link.note_in_flight(&registry);
                return 0;
            }
            self.next_look_ns = now.nanos.saturating_add(LOOK_INTERVAL_NS);
            for (id, in_flight) in &mut registry.in_flight {
                let since = *in_flight.since_ns.get_or_insert(now.nanos);
                if now.nanos.saturating_sub(since) >= nanos(timeout) {
                    late.push(*id);
                }
            }
            if late.is_empty() {
                link.note_in_flight(&registry);
                return 0;
            }
        }
        abandon(link, &late, &AddError::Timeout { after: timeout });
        late.len()
    }
}

/// Fails commands, and gives back what the driver may have made for them or may yet make.
fn abandon(link: &Arc<Link>, correlation_ids: &[i64], error: &AddError) {
    for &registration_id in correlation_ids {
        let Some(in_flight) = ({
            let mut registry = link.registry();
            let in_flight = registry.in_flight.remove(&registration_id);
            link.note_in_flight(&registry);
            in_flight
        }) else {
            continue;
        };
        // The driver takes commands in order, so it sees this one after the one that it undoes.
        if let Some(undo) =
            in_flight
                .wish
                .undo(link.client_id, link.next_correlation_id(), registration_id)
        {
            link.send_or_keep(&undo);
        }
        in_flight.wish.fail(error.clone());
    }
}

/// A duration as nanoseconds; one of more than 292 years is endless.
fn nanos(duration: Duration) -> i64 {
    taran_core::clock::saturating_nanos(duration)
}
