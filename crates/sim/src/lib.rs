// SPDX-License-Identifier: Apache-2.0
//! Deterministic simulator of Taran: virtual time, a faulty network, memory and disks from one seed.
//!
//! A [`World`] has hosts, each with its own memory, [`disk`] and clocks, and [processes](process) on them, such as drivers and
//! clients, connected by one simulated [`network`]. It runs in one thread; order and times of all steps come from a seed, so the same seed gives the same
//! history bit for bit ([`World::fingerprint`]). [`traffic`] publishes and consumes. The [`check`]ers verify the
//! invariants after each step and panic on a violation.
//!
//! A test is a scenario that runs on a world with many seeds:
//!
//! ```
//! use std::time::Duration;
//! use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, World};
//!
//! taran_sim::seeds::run("doc::example", 2, |seed| {
//!     let mut world = World::new(seed);
//!     let host = world.add_host(HostSpec::new());
//!     let client = world.connect(host);
//!     let subscriber = world.subscribe(client, SubscriberSpec::new("aeron:ipc", 7));
//!     let publisher = world.publish(client, PublisherSpec::new("aeron:ipc", 7).messages(100));
//!     world.run_until("all is delivered", Duration::from_secs(10), |world| {
//!         world.has_all(subscriber, publisher)
//!     });
//!     world.close_all();
//!     world.expect_nothing_left();
//! });
//! ```
//!
//! # How to bring a process of one's own
//!
//! A crate tests its own processes in the same worlds; nothing here names them. It writes, in this order:
//!
//! 1. A [`Process`]: an object with duty cycles. Clock, shared memory, disk, network and randomness come from its
//!    [`HostEnv`], and fail when the process is killed. What it wrote to its disk stays in the page cache at a kill; a
//!    power cut ([`World::power_cut`]) loses any part of what was not synced. If it tells its
//!    [deadline](Process::next_deadline_ns), the world jumps there.
//! 2. A record of what its users know, such as what was acknowledged to them, which process and operations update
//!    ([`CycleContext::shared`], [`World::shared_mut`]), and [`Invariant`]s over it, which are checked after each step.
//! 3. [`scenario::Operation`]s: what happens to it in random worlds. Each kind has a generator, is shrunk when a scenario
//!    fails, and is part of the text of the scenario. [`scenario::DiskFault`], [`scenario::BitRot`],
//!    [`scenario::MemoryLimit`] and power cuts are there for all.
//! 4. A [`scenario::Suite`] that puts them together, on hosts with or without drivers and streams.
//!
//! [`log_writer`] is an example with an asynchronous disk queue; its tests plant defects, and require that random worlds
//! find them. A smaller one, whose only operation is a restart:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use std::path::Path;
//! use std::time::Duration;
//! use taran_sim::disk::ProcessDisk;
//! use taran_sim::scenario::{DiskFault, Operation, Setting, Suite};
//! use taran_sim::{AfterKill, HostEnv, HostIndex, Invariant, Process, CycleContext, Violation, World};
//! use taran_storage::{Create, Disk, DiskError, OpenOptions, SyncKind};
//!
//! /// Counts its starts in a file of one byte for each, and acknowledges a start when it is durable.
//! struct StartCounter {
//!     disk: ProcessDisk,
//!     /// Time of the next attempt; `i64::MAX` after it has succeeded.
//!     next_attempt_ns: i64,
//! }
//!
//! /// What users know: the starts acknowledged last, and before them, and what the last start found.
//! #[derive(Default)]
//! struct Starts {
//!     acknowledged: u64,
//!     acknowledged_before: u64,
//!     found: u64,
//! }
//!
//! impl StartCounter {
//!     fn start(env: &mut HostEnv) -> Self {
//!         Self { disk: env.disk(), next_attempt_ns: i64::MIN }
//!     }
//!
//!     /// Adds a start; returns the number of those before it.
//!     fn count(&self) -> Result<u64, DiskError> {
//!         let options = OpenOptions::write().with_create(Create::IfMissing);
//!         let file = self.disk.open(Path::new("/starts"), options)?;
//!         let found = file.len()?;
//!         file.write_at(&[1], found)?;
//!         file.sync(SyncKind::Data)?;
//!         self.disk.sync_directory(Path::new("/"))?;
//!         Ok(found)
//!     }
//! }
//!
//! impl Process for StartCounter {
//!     fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
//!         let now_ns = context.now().nanos;
//!         if now_ns < self.next_attempt_ns {
//!             return Ok(0);
//!         }
//!         let Ok(found) = self.count() else {
//!             self.next_attempt_ns = now_ns + 1_000_000;
//!             return Ok(1);
//!         };
//!         self.next_attempt_ns = i64::MAX;
//!         let starts = context.shared::<Starts>();
//!         starts.acknowledged_before = starts.acknowledged;
//!         (starts.found, starts.acknowledged) = (found, found + 1);
//!         Ok(1)
//!     }
//!
//!     fn next_deadline_ns(&self) -> Option<i64> {
//!         Some(self.next_attempt_ns)
//!     }
//!
//!     fn on_kill(&mut self) -> AfterKill {
//!         AfterKill::Drop
//!     }
//!
//!     fn describe(&self) -> String {
//!         format!("next attempt at {}", self.next_attempt_ns)
//!     }
//! }
//!
//! struct NoStartIsLost;
//!
//! impl Invariant for NoStartIsLost {
//!     fn name(&self) -> &'static str {
//!         "no start is lost"
//!     }
//!
//!     fn check(&mut self, world: &World) -> Result<(), Violation> {
//!         match world.shared::<Starts>() {
//!             Some(it) if it.found < it.acknowledged_before => {
//!                 Err(Violation(format!("{} of {} found", it.found, it.acknowledged_before)))
//!             }
//!             _ => Ok(()),
//!         }
//!     }
//! }
//!
//! /// Starts the process of a host, or starts it again.
//! fn boot(world: &mut World, host: HostIndex) {
//!     let before = world.processes::<StartCounter>().next().map(|(id, _)| id);
//!     match before {
//!         Some(id) => world.restart(id, StartCounter::start),
//!         None => {
//!             world.spawn(host, StartCounter::start);
//!         }
//!     }
//! }
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Restart {
//!     after_ms: u64,
//! }
//!
//! impl Operation for Restart {
//!     const NAME: &'static str = "restart process";
//!
//!     fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
//!         let mut operation = || {
//!             let at_ms = random.u64(0..=setting.duration_ms);
//!             (at_ms, Self { after_ms: random.u64(0..50) })
//!         };
//!         (0..10).map(|_| operation()).collect()
//!     }
//!
//!     fn apply(&self, world: &mut World) -> bool {
//!         let found = world.processes::<StartCounter>().find(|(id, _)| world.is_alive(*id));
//!         let Some((id, _)) = found else {
//!             return false;
//!         };
//!         world.kill(id);
//!         world.run_for(Duration::from_millis(self.after_ms));
//!         world.restart(id, StartCounter::start);
//!         true
//!     }
//!
//!     fn simpler(&self) -> Vec<Self> {
//!         let halved = Self { after_ms: self.after_ms / 2 };
//!         if self.after_ms > 0 { vec![halved] } else { Vec::new() }
//!     }
//! }
//!
//! let suite = Suite::without_drivers("start-counter", 1..=1)
//!     .power_cuts()
//!     .operation::<DiskFault>()
//!     .operation::<Restart>()
//!     .set_up(|world| world.add_invariant(NoStartIsLost))
//!     .boot(boot)
//!     .finish(|world| {
//!         world.power_cut(HostIndex::at(0));
//!         world.boot(HostIndex::at(0));
//!         world.run_for(Duration::from_secs(1));
//!         match world.shared::<Starts>() {
//!             Some(it) if it.acknowledged == it.found + 1 => Ok(()),
//!             _ => Err(Violation("the last start was not counted".to_owned())),
//!         }
//!     });
//! let mut power_cuts = 0;
//! for seed in 0..20 {
//!     let coverage = suite.run(&suite.random(seed)).unwrap_or_else(|failure| panic!("{}", failure.text));
//!     power_cuts += coverage.get("power cut");
//! }
//! assert!(power_cuts > 50);
//! ```
//!
//! A program that runs many seeds, shrinks failures and replays scenarios from files is one call of [`command::main`];
//! `cargo xtask sim --suite NAME` starts the program of a suite (`xtask/src/sim.rs` lists them).

#![forbid(unsafe_code)]

pub mod check;
pub mod command;
pub mod disk;
pub mod full_memory;
mod history;
pub mod link_profiles;
pub mod log_writer;
pub mod network;
pub mod process;
pub mod scenario;
pub mod seeds;
pub mod traffic;
mod world;

pub use check::Violation;
pub use history::Event;
pub use process::{AfterKill, CycleContext, HostEnv, Invariant, Process, ProcessId};
pub use traffic::{Lengths, PublisherSpec, SubscriberSpec};
pub use world::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};
