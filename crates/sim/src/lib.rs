//! Deterministic simulator of Taran: virtual time, a faulty network and memory from one seed.
//!
//! A [`World`] has hosts, each with its own memory and clocks, and [processes](process) on them, such as drivers and
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
//! # Processes, invariants and operations of other crates
//!
//! A crate tests its own processes in the same worlds. It implements [`Process`] for them; their clock, storage and network
//! come from the [`HostEnv`], and fail when the process is killed. An [`Invariant`] is checked after each step. A
//! [`scenario::Operation`] is something that happens to the processes in random worlds; it has a generator, is shrunk
//! when a scenario fails, and is part of the text of the scenario. A [`scenario::Suite`] puts them together:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//! use taran_core::memory::CreateOptions;
//! use taran_sim::scenario::{Operation, Setting, Suite};
//! use taran_sim::{AfterKill, HostEnv, HostIndex, Invariant, Process, Turn, Violation, World};
//!
//! /// Counts its starts in a file, and acknowledges the count to its users.
//! struct StartCounter {
//!     starts: u64,
//!     is_acknowledged: bool,
//! }
//!
//! /// The last acknowledged count and the number of starts, which the invariant compares.
//! #[derive(Default)]
//! struct Acknowledged {
//!     starts: u64,
//!     count: u64,
//! }
//!
//! impl StartCounter {
//!     fn start(env: &mut HostEnv) -> Self {
//!         let storage = env.storage();
//!         let name = "/starts".as_ref();
//!         let file = storage.open(name).or_else(|_| storage.create(name, 4096, CreateOptions::default()));
//!         let file = file.unwrap_or_else(|error| panic!("{error}"));
//!         let mut starts = [0; 8];
//!         file.read(0, &mut starts);
//!         let starts = u64::from_le_bytes(starts) + 1;
//!         file.write(0, &starts.to_le_bytes());
//!         Self { starts, is_acknowledged: false }
//!     }
//! }
//!
//! impl Process for StartCounter {
//!     fn do_work(&mut self, turn: &mut Turn<'_>) -> Result<usize, Violation> {
//!         if self.is_acknowledged {
//!             return Ok(0);
//!         }
//!         self.is_acknowledged = true;
//!         turn.shared::<Acknowledged>().count = self.starts;
//!         Ok(1)
//!     }
//!
//!     fn on_kill(&mut self) -> AfterKill {
//!         AfterKill::Drop
//!     }
//!
//!     fn describe(&self) -> String {
//!         format!("started {} times", self.starts)
//!     }
//! }
//!
//! struct CountIsRight;
//!
//! impl Invariant for CountIsRight {
//!     fn name(&self) -> &'static str {
//!         "count is right"
//!     }
//!
//!     fn check(&mut self, world: &World) -> Result<(), Violation> {
//!         match world.shared::<Acknowledged>() {
//!             Some(it) if it.count > it.starts => {
//!                 Err(Violation(format!("{} of {} starts", it.count, it.starts)))
//!             }
//!             _ => Ok(()),
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
//!     const NAME: &'static str = "restart";
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
//!         let Some((id, _)) = world.processes::<StartCounter>().next() else {
//!             return false;
//!         };
//!         world.kill(id);
//!         world.run_for(Duration::from_millis(self.after_ms));
//!         world.shared_mut::<Acknowledged>().starts += 1;
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
//!     .operation::<Restart>()
//!     .set_up(|world| {
//!         world.shared_mut::<Acknowledged>().starts = 1;
//!         world.spawn(HostIndex::at(0), StartCounter::start);
//!         world.add_invariant(CountIsRight);
//!     })
//!     .finish(|world| {
//!         world.run_for(Duration::from_secs(1));
//!         let it = world.shared::<Acknowledged>().map(|it| (it.count, it.starts));
//!         match it {
//!             Some((count, starts)) if count == starts => Ok(()),
//!             other => Err(Violation(format!("{other:?} at the end"))),
//!         }
//!     });
//! for seed in 0..5 {
//!     let coverage = suite.run(&suite.random(seed)).unwrap_or_else(|failure| panic!("{}", failure.text));
//!     assert_eq!(coverage.get("operation: restart"), 10);
//! }
//! ```
//!
//! A program that runs many seeds, shrinks failures and replays scenarios from files is one call of [`command::main`];
//! `cargo xtask sim --suite NAME` starts the program of a suite (`xtask/src/sim.rs` lists them).

#![forbid(unsafe_code)]

pub mod check;
pub mod command;
pub mod disk;
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
pub use process::{AfterKill, HostEnv, Invariant, Process, ProcessId, Turn};
pub use traffic::{Lengths, PublisherSpec, SubscriberSpec};
pub use world::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};
