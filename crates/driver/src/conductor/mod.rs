// SPDX-License-Identifier: Apache-2.0
//! The conductor: creates and removes endpoints, publications and images, and moves no data itself.
//!
//! It reads client commands from the to-driver ring and events of sender and receiver from two queues, and answers
//! through the to-clients broadcast buffer. Once per timer interval it updates its own heartbeat and checks the
//! lifetime of clients, publications and images. In every duty cycle it updates the limits of active publishers and
//! cleans terms before they are reused; idle publications are checked by the poll schedule.
//!
//! Contract: call `do_work(now)` as often as possible. Time is an argument; sockets, files, name lookups and randomness
//! come from what [`Conductor`] was built with. The conductor reads no clock and does not block on name lookups or log
//! files. It makes short system calls itself: opening and closing sockets, listing interfaces, querying free space.

mod clients;
mod command_error;
mod command_reader;
mod command_sender;
mod commands;
mod counters;
mod deferred_commands;
mod error_detail_budget;
mod events;
mod failure;
mod file_worker;
mod flow_control;
mod image_setup;
mod ipc;
mod limit_update;
mod log_files;
mod log_preallocator;
mod log_reservation;
mod names;
mod network;
mod publication_config;
mod publication_index;
mod publication_log;
mod re_resolution;
mod remote_quota;
mod response_channels;
mod response_sender;
mod session_ids;
mod state;
mod storage_errors;
mod subscribers;
mod subscription_linking;
mod subscriptions;
mod termination;
mod timer;

use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::memory::{LockFile, Region};
use taran_core::queue;
use taran_core::ring::many_to_one::Consumer;
use taran_protocol::counter::SystemCounter;

pub(crate) use counters::Counters;
pub(crate) use failure::Failure;
pub(crate) use file_worker::{
    FileRequest, FileResult, FileWorker, InlineFileWorker, RequestOrigin, ReserveRequest,
    create_now, delete_now, reserve_now,
};
pub use names::NameResolver;
pub(crate) use names::{Gossip, GossipCounters, HostLookups, NameTable, literal, preferred};
pub(crate) use network::ResolvedChannel;
pub(crate) use state::{ConductorStateSpec, SystemCounters};
pub use termination::{TerminationHook, TerminationValidator};

use command_reader::CommandReader;
use log_files::LogEvent;
use state::ConductorState;

use crate::boundary::ConductorEvent;
use crate::park_multiplier::NO_CLIENTS_MULTIPLIER;
use crate::poll_schedule::WorkTracker;

/// Maximum number of events taken per agent in one duty cycle.
const EVENTS_PER_CYCLE: usize = 16;

/// Everything a conductor is built from.
pub(crate) struct ConductorSpec {
    /// Shows others that the driver lives.
    pub(crate) lock: LockFile,
    /// The whole of `cnc.dat`, flushed at the end.
    pub(crate) cnc: Region,
    pub(crate) commands: Consumer,
    pub(crate) events: [queue::Receiver<ConductorEvent>; 2],
    pub(crate) state: ConductorStateSpec,
}

/// The conductor agent.
#[doc(alias = "DriverConductor")]
#[derive(Debug)]
pub struct Conductor {
    /// Released when the conductor is dropped, after its last heartbeat.
    _lock: LockFile,
    cnc: Region,
    command_reader: CommandReader,
    events: [queue::Receiver<ConductorEvent>; 2],
    state: ConductorState,
    cycles: DutyCycleTracker,
    timer: Timer,
    work_tracker: WorkTracker,
}

#[derive(Debug)]
struct Timer {
    interval_ns: i64,
    last_ns: i64,
}

impl Conductor {
    /// Creates a conductor without clients.
    pub(crate) fn new(spec: ConductorSpec) -> Self {
        let state = ConductorState::new(spec.state);
        let (timers, now) = (&state.settings.timers, state.now);
        let tracker = |longest: SystemCounter, exceeded: SystemCounter, threshold_ns: i64| {
            DutyCycleTracker::new(
                state.system.get(longest).clone(),
                state.system.get(exceeded).clone(),
                Duration::from_nanos(threshold_ns.unsigned_abs()),
            )
        };
        Self {
            cycles: tracker(
                SystemCounter::ConductorMaxCycleTime,
                SystemCounter::ConductorCycleTimeThresholdExceeded,
                timers.cycle_thresholds_ns[0],
            ),
            timer: Timer {
                interval_ns: timers.interval_ns,
                last_ns: now.nanos,
            },
            work_tracker: WorkTracker::default(),
            command_reader: CommandReader::new(spec.commands, now.nanos),
            _lock: spec.lock,
            cnc: spec.cnc,
            events: spec.events,
            state,
        }
    }

    /// Returns true if no command, event, file operation or name lookup is outstanding, so that the only remaining work
    /// is to poll positions and timers.
    pub(crate) fn is_idle(&self) -> bool {
        !self.command_reader.has_next()
            && self.events.iter().all(queue::Receiver::is_empty)
            && !self.state.logs.has_in_flight()
            && !self.state.names.has_pending_lookups()
            && self.state.security.is_idle()
    }

    /// Handles created and extended log files. Returns their number.
    fn poll_log_files(&mut self) -> usize {
        let mut work = 0;
        while let Some(event) = self.state.logs.poll() {
            work += 1;
            let (ticket, file) = match event {
                LogEvent::Created(ticket, file) => (ticket, file),
                LogEvent::Reserved(outcome) => {
                    self.state.on_reserved(&outcome);
                    continue;
                }
            };
            if let Some(file) = self.state.on_file(ticket, file)
                && let Some(Ok(unclaimed)) = self.command_reader.on_file(ticket, file)
            {
                // The requester is gone.
                self.state.logs.retire(unclaimed);
            }
        }
        while let Some(change) = self.state.logs.take_change() {
            self.state.record_space(&change);
        }
        work
    }

    /// Runs name resolution and handles its results. Returns the amount of work done.
    fn poll_lookups(&mut self) -> usize {
        let mut work = self.state.poll_names();
        while let Some(result) = self.state.next_lookup_result() {
            work += 1;
            self.command_reader.on_lookup_result(result);
        }
        work
    }

    fn poll_events(&mut self) -> usize {
        let mut work = 0;
        for queue in &mut self.events {
            for _ in 0..EVENTS_PER_CYCLE {
                let Some(event) = queue.try_recv() else { break };
                self.state.on_event(event);
                work += 1;
            }
        }
        work
    }

    fn on_timer(&mut self) -> usize {
        let now = self.state.now;
        if now.nanos - self.timer.last_ns < self.timer.interval_ns {
            return self.state.resume_sweep();
        }
        self.timer.last_ns = now.nanos;
        self.command_reader.set_heartbeat_ms(now.epoch_millis);
        for client_id in self.state.on_timer() {
            self.command_reader
                .remove_client(&mut self.state, client_id);
        }
        self.command_reader.check_blocked(&self.state);
        1
    }
}

impl Conductor {
    /// Runs one duty cycle and returns the amount of work done.
    pub fn do_work(&mut self, now: Now) -> usize {
        self.cycles.begin_cycle(now.nanos);
        self.state.set_now(now);
        self.state.security.begin_cycle(now);
        let free_limit = self.state.settings.timers.resource_free_limit;
        let load = self.work_tracker.load(now.nanos);
        // Commands that had no room in an earlier cycle are flushed even if no client sends a command.
        self.state.networking.flush_commands();
        let work = self.on_timer()
            + self.poll_log_files()
            + self.poll_lookups()
            + self.command_reader.resume(&mut self.state)
            + self.command_reader.poll(&mut self.state)
            + self.poll_events()
            + self.state.poll_security()
            + self.state.begin_image()
            + self.state.update_limits(load)
            + self.state.logs.delete_retired(free_limit);
        self.work_tracker.record(work, now.nanos);
        work
    }
}

impl Agent for Conductor {
    /// The agent never ends by itself.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        Ok(self.do_work(now))
    }

    fn role_name(&self) -> &'static str {
        "conductor"
    }

    fn on_start(&mut self) {
        self.state.security.on_start();
    }

    /// Clients write commands to memory, which does not end a park. Without clients no latency is at stake, except for
    /// the first command of the first client.
    fn park_multiplier(&self) -> u32 {
        if self.state.clients.is_empty() {
            NO_CLIENTS_MULTIPLIER
        } else {
            1
        }
    }

    fn on_long_park(&mut self) {
        self.cycles.pause();
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        let has_input =
            self.command_reader.is_runnable() || self.events.iter().any(|queue| !queue.is_empty());
        if has_input {
            return Some(i64::MIN);
        }
        let timer_ns = self.timer.last_ns.saturating_add(self.timer.interval_ns);
        Some(timer_ns.min(self.state.next_deadline_ns()?))
    }

    /// Marks the driver as stopped for clients: heartbeat -1.
    fn on_close(&mut self) {
        self.command_reader.set_heartbeat_ms(-1);
        // Best effort: the file may not be on a disk.
        let _ = self.cnc.flush();
    }
}
