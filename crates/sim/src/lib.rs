//! Deterministic simulator of Taran: virtual time, a faulty network and memory from one seed.
//!
//! A [`World`] has hosts, each with its own memory, clock and driver, and clients on them, connected by one simulated
//! [`network`]. It runs in one thread; order and times of all steps come from a seed, so the same seed gives the same
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
pub use history::{Agent, Event};
pub use process::{AfterKill, HostEnv, Invariant, Process, ProcessId, Turn};
pub use traffic::{Lengths, PublisherSpec, SubscriberSpec};
pub use world::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};
