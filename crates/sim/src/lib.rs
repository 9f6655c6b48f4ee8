//! Virtual time, a faulty network and memory from one seed: the simulator that tests Taran.
//!
//! A [`World`] is a number of hosts, each with its own memory, clock and driver, and clients on them, over one simulated
//! [`network`]. Everything in it runs in one thread, in an order and at times that come from a seed: the same seed gives
//! the same history to the last bit ([`World::fingerprint`]). [`traffic`] publishes and consumes; the [`check`]ers look
//! after every step whether what must always hold still holds, and panic where it does not.
//!
//! A test is a story told to a world, run with many seeds:
//!
//! ```
//! use std::time::Duration;
//! use taran_sim::{HostSpec, Publishing, Subscribing, World};
//!
//! taran_sim::seeds::run("doc::example", 2, |seed| {
//!     let mut world = World::new(seed);
//!     let host = world.add_host(HostSpec::new());
//!     let client = world.connect(host);
//!     let subscriber = world.subscribe(client, Subscribing::new("aeron:ipc", 7));
//!     let publisher = world.publish(client, Publishing::new("aeron:ipc", 7).messages(100));
//!     world.run_until("all is delivered", Duration::from_secs(10), |world| {
//!         world.has_all(subscriber, publisher)
//!     });
//!     world.close_all();
//!     world.expect_nothing_left();
//! });
//! ```

#![forbid(unsafe_code)]

pub mod check;
mod history;
pub mod network;
pub mod seeds;
pub mod story;
pub mod traffic;
pub mod weather;
mod world;

pub use history::{Agent, Event};
pub use traffic::{Lengths, Publishing, Subscribing};
pub use world::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};
