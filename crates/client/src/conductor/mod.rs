// SPDX-License-Identifier: Apache-2.0
//! The client conductor: processes the driver's responses and monitors the connection.
//!
//! Contract: [`Conductor::do_work`] is called often, with the current time. Each duty cycle reads responses, runs
//! callbacks, sends queued commands and fails commands that have timed out; once per keepalive interval it updates the
//! client's heartbeat, and at least twice per second it checks that the driver lives. Messages do not pass through the
//! conductor.

mod agent;
mod completion;
mod image;
mod liveness;
mod logs;
mod responses;
mod resync;

use std::sync::Arc;
use std::time::Duration;

use taran_core::broadcast::{Receiver, TailProbe};
use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::memory::LockProbe;

pub(crate) use agent::ConductorAgent;

use crate::client_core::ClientCore;
use crate::error::{CommandError, Lost};
use liveness::check_service_interval;

/// Maximum number of responses processed per duty cycle, so that the other duties run in time.
const RESPONSE_LIMIT: usize = 32;
/// Up to this number of commands in flight, timeouts are checked every duty cycle; above it, once per interval.
const SMALL_COMMAND_COUNT: usize = 16;
const TIMEOUT_CHECK_INTERVAL_NS: i64 = 1_000_000;

/// Maximum interval of checks that the driver lives. Each costs one system call.
const DRIVER_CHECK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
#[doc(alias = "ClientConductor")]
pub(crate) struct Conductor {
    responses: Receiver,
    next_keepalive_ns: i64,
    /// Time of the next timeout check when many commands are in flight.
    next_timeout_check_ns: i64,
    /// The lock that a Taran driver holds for its life; official drivers have none.
    driver_lock: Option<LockProbe>,
    next_driver_check_ns: i64,
    /// The driver's last heartbeat, and the time at which it was first seen.
    driver_heartbeat: Option<(i64, i64)>,
    /// Heartbeat counter of this client, once the driver has created it.
    heartbeat: Option<Counter>,
    /// Number of times that responses were overwritten before they were read.
    overrun_count: u64,
}

impl Conductor {
    /// Returns a handle that tells whether there are responses.
    pub(crate) fn tail_probe(&self) -> TailProbe {
        self.responses.tail_probe()
    }

    pub(crate) fn new(responses: Receiver, driver_lock: Option<LockProbe>) -> Self {
        Self {
            responses,
            next_keepalive_ns: i64::MIN,
            next_timeout_check_ns: i64::MIN,
            driver_lock,
            next_driver_check_ns: i64::MIN,
            driver_heartbeat: None,
            heartbeat: None,
            overrun_count: 0,
        }
    }

    /// Runs one duty cycle and returns the amount of work done.
    pub(crate) fn do_work(&mut self, client: &Arc<ClientCore>, now: Now) -> usize {
        if client.state.is_closed() {
            return 0;
        }
        match self.duty_cycle(client, now) {
            Ok(work) => work,
            Err(lost) => {
                client.lose(lost);
                1
            }
        }
    }

    fn duty_cycle(&mut self, client: &Arc<ClientCore>, now: Now) -> Result<usize, Lost> {
        let (begin, interval) = client.idle_cycle.begin(now.nanos);
        check_service_interval(client, interval)?;
        let responses = self.poll_responses(client)?;
        let mut work = responses + client.flush_queued();
        if now.nanos >= self.next_driver_check_ns {
            let interval = client.settings.keepalive.min(DRIVER_CHECK_INTERVAL);
            self.next_driver_check_ns = now.nanos.saturating_add(nanos(interval));
            self.check_driver(client, now)?;
        }
        if now.nanos >= self.next_keepalive_ns {
            self.next_keepalive_ns = now.nanos.saturating_add(nanos(client.settings.keepalive));
            self.check_liveness(client, now)?;
            work += 1;
        }
        // After the liveness check: if the driver is dead, that is the error of the commands.
        work += self.check_timeouts(client, now);
        if responses < RESPONSE_LIMIT {
            let next_duty_ns = self.next_driver_check_ns.min(self.next_keepalive_ns);
            client.idle_cycle.finish(begin, next_duty_ns);
        }
        Ok(work)
    }

    fn poll_responses(&mut self, client: &Arc<ClientCore>) -> Result<usize, Lost> {
        for taken in 0..RESPONSE_LIMIT {
            // A callback may have closed the client: no callback runs after that.
            if client.state.is_closed() {
                return Ok(taken);
            }
            let mut outcome = Ok(());
            match self.responses.receive(|type_id, bytes| {
                outcome = responses::on_response(client, type_id, bytes);
            }) {
                Ok(true) => outcome?,
                Ok(false) => return Ok(taken),
                Err(_) => {
                    self.overrun_count += 1;
                    resync::resync(client, self.overrun_count);
                }
            }
        }
        Ok(RESPONSE_LIMIT)
    }

    /// Fails commands without a response within the driver timeout.
    fn check_timeouts(&mut self, client: &Arc<ClientCore>, now: Now) -> usize {
        if !client.has_pending_commands() {
            return 0;
        }
        let timeout = client.settings.driver_timeout;
        let mut late = Vec::new();
        {
            let mut registry = client.registry();
            if registry.in_flight.len() > SMALL_COMMAND_COUNT
                && now.nanos < self.next_timeout_check_ns
            {
                client.update_pending_commands(&registry);
                return 0;
            }
            self.next_timeout_check_ns = now.nanos.saturating_add(TIMEOUT_CHECK_INTERVAL_NS);
            for (id, in_flight) in &mut registry.in_flight {
                let since = *in_flight.since_ns.get_or_insert(now.nanos);
                if now.nanos.saturating_sub(since) >= nanos(timeout) {
                    late.push(*id);
                }
            }
            if late.is_empty() {
                client.update_pending_commands(&registry);
                return 0;
            }
        }
        abandon(client, &late, &CommandError::Timeout { after: timeout });
        late.len()
    }
}

/// Fails commands, and removes the resources that the driver may have created or may yet create for them.
fn abandon(client: &Arc<ClientCore>, correlation_ids: &[i64], error: &CommandError) {
    for &registration_id in correlation_ids {
        let Some(in_flight) = ({
            let mut registry = client.registry();
            let in_flight = registry.in_flight.remove(&registration_id);
            client.update_pending_commands(&registry);
            in_flight
        }) else {
            continue;
        };
        // The driver executes commands in order, so it reads the removal after the command itself.
        if let Some(removal_command) = in_flight.request.removal_command(
            client.client_id,
            client.next_correlation_id(),
            registration_id,
        ) {
            client.send_or_queue(&removal_command);
        }
        in_flight.request.fail(error.clone());
    }
}

/// Converts a duration to nanoseconds; more than 292 years saturates.
fn nanos(duration: Duration) -> i64 {
    taran_core::clock::saturating_nanos(duration)
}
