// SPDX-License-Identifier: Apache-2.0
//! The process of a driver, with the checks of its memory and traffic.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use taran_core::agent::Agent as _;
use taran_core::clock::Now;
use taran_core::memory::MemoryStorage;
use taran_driver::{DriverContext, DriverError, DriverParts, Environment};

use super::keys::HostKeys;
use super::parks::Parks;
use super::time_stepper::StallMeter;
use crate::check::counter_consistency::CounterCheck;
use crate::check::leaks::LeakCheck;
use crate::check::streams::Streams;
use crate::check::{Violation, flow, positions, sealed};
use crate::network::{HostId, HostTraffic, SimNetwork};
use crate::process::{AfterKill, CycleContext, HostEnv, Process};

/// Numbers of the agents.
const CONDUCTOR: usize = 0;
const SENDER: usize = 1;
const RECEIVER: usize = 2;

/// First counter that is no system counter.
const FIRST_OTHER_COUNTER: i32 = 46;

/// A driver with three agents: conductor, sender and receiver.
#[derive(Debug)]
pub(super) struct DriverProcess {
    host: usize,
    /// `None` after its end.
    running: Option<Driver>,
}

/// Properties and parts of its host that a driver and its checks need, besides the environment.
pub(super) struct DriverStart {
    pub(super) context: DriverContext,
    /// Network and storage of the host, for the checks.
    pub(super) network: SimNetwork,
    pub(super) network_id: HostId,
    pub(super) storage: MemoryStorage,
    pub(super) directory: PathBuf,
    pub(super) drops_received_frames: bool,
    /// Longest park of the agents; without it they have a duty cycle in each step.
    pub(super) parks: Option<Duration>,
    /// Keys of a driver that secures all channels.
    pub(super) keys: Option<HostKeys>,
}

/// A running driver.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) parts: DriverParts,
    pub(super) leaks: LeakCheck,
    /// Gaps between duty cycles of its conductor.
    pub(super) conductor_stalls: StallMeter,
    pub(super) streams: Streams,
    counters: CounterCheck,
    /// All its datagrams are sealed: what they contain is not known from the network.
    is_secured: bool,
    parks: Option<Parks>,
}

impl DriverProcess {
    /// Starts a driver.
    ///
    /// # Errors
    /// As [`DriverParts::build`].
    pub(super) fn start(env: &mut HostEnv, start: DriverStart) -> Result<Self, DriverError> {
        let now = env.now();
        let seed = env.random().u64(..);
        let environment = Environment::new(
            env.storage(),
            env.network(),
            env.resolver(),
            env.wall_clock(),
            now,
            seed,
        )
        .with_pid(env.host().0 as i64 + 1);
        let is_secured = start.keys.is_some();
        let context = match start.keys {
            Some(keys) => start.context.keys(keys.seeded(env.random().u64(..))),
            None => start.context,
        };
        let mut parts = DriverParts::build(context, environment)?;
        let (network, id) = (&start.network, start.network_id);
        network.forget_streams(id);
        let parks = start
            .parks
            .map(|longest| Parks::start(&mut parts, longest, network.clone(), id));
        if parks.is_none() {
            parts.conductor.on_start();
            parts.sender.on_start();
            parts.receiver.on_start();
        }
        let running = Driver {
            streams: Streams::new(parts.counters.clone(), start.storage, start.directory),
            counters: CounterCheck::new(
                &parts.counters,
                network.with_traffic(id, |traffic| *traffic.counts()),
                start.drops_received_frames,
            ),
            leaks: LeakCheck::new(&parts.counters, network.open_sockets(id)),
            conductor_stalls: StallMeter::new(now.nanos),
            is_secured,
            parks,
            parts,
        };
        Ok(Self {
            host: env.host().0,
            running: Some(running),
        })
    }

    /// Returns the driver until it ends.
    pub(super) fn running(&self) -> Option<&Driver> {
        self.running.as_ref()
    }

    /// Returns the driver for changes until it ends.
    pub(super) fn running_mut(&mut self) -> Option<&mut Driver> {
        self.running.as_mut()
    }

    /// Stops the driver in an orderly way.
    pub(super) fn stop(&mut self) {
        if let Some(Driver { mut parts, .. }) = self.running.take() {
            parts.sender.on_close();
            parts.receiver.on_close();
            parts.conductor.on_close();
        }
    }
}

impl Process for DriverProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let Some(driver) = &mut self.running else {
            return Ok(0);
        };
        let done = driver.do_work(context.agent(), context.now());
        done.map_err(|Violation(what)| Violation(format!("host {}: {what}", self.host)))
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        if self.running.is_some() {
            agents.extend([CONDUCTOR, SENDER, RECEIVER]);
        }
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        let Some(Driver { parts, parks, .. }) = &self.running else {
            return Some(i64::MAX);
        };
        if let Some(parks) = parks {
            return Some(parks.next_deadline_ns());
        }
        let conductor_ns = parts.conductor.next_deadline_ns()?;
        let sender_ns = parts.sender.next_deadline_ns()?;
        Some(
            conductor_ns
                .min(sender_ns)
                .min(parts.receiver.next_deadline_ns()?),
        )
    }

    fn on_kill(&mut self) -> AfterKill {
        // The destructors of a driver do not write to shared memory.
        self.running = None;
        AfterKill::Drop
    }

    fn describe(&self) -> String {
        let Some(driver) = &self.running else {
            return "driver, ended".to_owned();
        };
        let mut text = "driver, with the counters".to_owned();
        let counters = &driver.parts.counters;
        counters.for_each(|counter| {
            let value = counters.value(counter.id).unwrap_or_default();
            if counter.id >= FIRST_OTHER_COUNTER || value != 0 {
                let (id, label) = (counter.id, &counter.label);
                // Writing to a string does not fail.
                let _ = write!(text, "\n    {id:>3} {value:>20} {label}");
            }
        });
        text
    }
}

impl Driver {
    /// Runs one duty cycle of an agent and checks the invariants.
    fn do_work(&mut self, agent: usize, now: Now) -> Result<usize, Violation> {
        if let Some(parks) = &self.parks {
            if parks.is_parked(agent, now) {
                return Ok(0);
            }
            parks.begin_cycle(agent);
        }
        if agent == CONDUCTOR {
            self.conductor_stalls.on_duty_cycle(now.nanos);
        }
        let work = match agent {
            CONDUCTOR => self.parts.conductor.do_work(now),
            SENDER => self.parts.sender.do_work(now),
            _ => self.parts.receiver.do_work(now),
        };
        if let Some(parks) = &mut self.parks {
            parks.end_cycle(agent, now, work);
        }
        // Receivers observe subscriber positions even if they do no work.
        if work == 0 && agent != RECEIVER {
            return Ok(0);
        }
        match agent {
            CONDUCTOR => self.check_after_conductor()?,
            RECEIVER if work == 0 => self.check_after_idle_receiver()?,
            _ => self.check()?,
        }
        Ok(work)
    }

    /// Checks the invariants that hold at any time. Must be called after each duty cycle that did or observed anything,
    /// so that all changes between two checks are known.
    fn check(&mut self) -> Result<(), Violation> {
        if !self.streams.refresh() {
            return Ok(());
        }
        positions::check(&self.streams)?;
        flow::check(&self.streams)
    }

    /// The same after a duty cycle of the conductor, the only agent that allocates and frees counters.
    fn check_after_conductor(&mut self) -> Result<(), Violation> {
        self.streams.rescan_counters();
        self.check()
    }

    /// The same after a duty cycle of a receiver without work.
    fn check_after_idle_receiver(&mut self) -> Result<(), Violation> {
        self.check()?;
        self.streams.mark_all_known();
        Ok(())
    }

    /// The same between duty cycles, against the traffic of its host.
    pub(super) fn check_against_traffic(&mut self, traffic: &HostTraffic) -> Result<(), Violation> {
        self.check()?;
        if self.is_secured {
            return sealed::check(traffic);
        }
        self.counters.check(&self.streams, traffic)
    }
}
