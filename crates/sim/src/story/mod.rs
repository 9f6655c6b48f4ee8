//! Stories as data: what happens in a world, as a list of timed events made from a seed.
//!
//! [`Plan::random`] makes one up, [`attempt()`] has it played and checked, [`shrink()`] makes one that fails short, and
//! [`Plan::to_text`] writes it down, one event a line, so that it can be read, changed and played again.
//!
//! In each story the network is whole again in the end and whoever lives must be heard; then all is closed
//! and nothing may be left.

mod answers;
mod attempt;
mod coverage;
mod deed;
mod finale;
mod flows;
mod generate;
mod place;
mod plan;
mod road;
mod shrink;
mod teller;
mod watch;
mod weather;

pub(crate) use attempt::is_silent;
pub use attempt::{Failure, Look, attempt, attempt_with, silence_panics};
pub use coverage::Coverage;
pub use deed::{Ask, Deed, Publish, Subscribe};
pub use finale::BOUND;
pub use plan::{HostPlan, Plan, PlanError, Timed};
pub use shrink::{Shrunk, shrink};
pub use weather::Weather;
