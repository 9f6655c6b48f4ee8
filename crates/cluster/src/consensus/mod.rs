// SPDX-License-Identifier: Apache-2.0
//! Consensus of the members of a cluster: elections, replication of the log, and the commit rule
//! (`docs/spec/cluster.md` §4, §5 and §12.2; `docs/consensus.md` argues why it is safe).
//!
//! [`Consensus`] is one member, without I/O: it knows neither publications nor files, and reads no clock.
//!
//! **Input** is time ([`Consensus::tick`]), messages ([`Consensus::receive`]), completions of durable writes
//! ([`Consensus::on_durable`]), events of the log ([`Consensus::on_log`]), and commands ([`Consensus::transfer_leadership`],
//! [`Consensus::change_membership`]). Changes of the membership that the log has are reported ([`Consensus::on_membership`]).
//! Time never goes back from one input to the next.
//!
//! **Output** is a list of [`Decision`]s. After each input the owner takes all of them ([`Consensus::poll_decision`]) and executes
//! them in their order. It calls [`Consensus::tick`] when [`Consensus::next_deadline`] has passed, and at any other time it likes.
//!
//! A leader's owner appends entries only while [`Consensus::accepts_entries`] returns true, and reports them as
//! [`LogEvent::Appended`].
//!
//! ```
//! use taran_cluster::consensus::{Config, Consensus, Decision, Durability, Recovered, State, Timing};
//!
//! let config = Config::new(0, &[0, 1, 2], Timing::fast(), Durability::QuorumDisk)?;
//! let mut member = Consensus::new(config, Recovered::default(), 42, 0)?;
//! member.tick(0);
//! let mut canvassed = 0;
//! while let Some(decision) = member.poll_decision() {
//!     canvassed += usize::from(matches!(decision, Decision::Send { .. }));
//! }
//! assert_eq!((member.state(), canvassed), (State::Canvass, 2));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod change;
mod config;
mod credit;
mod deadlines;
mod decision;
mod defects;
mod election;
#[cfg(test)]
mod exploration;
mod follower;
mod leader;
mod member;
mod membership;
mod message;
mod peer;
mod reconciliation;
mod recovery;
#[cfg(test)]
mod simulation;
mod state;
mod terms;

pub use change::ChangeError;
pub use config::{
    BallotEnd, Config, ConfigError, Durability, MAX_MEMBERS, MemberId, Nanos, Timing,
};
pub use decision::{Decision, Fault, LogCommand, LogEvent, StopReason, Write};
pub use leader::TransferError;
pub use member::Consensus;
pub use membership::{Incarnation, Membership, MembershipChange, MembershipEntry, ORIGINAL, Voter};
pub use message::{AppendFlags, Message, NewLeadershipTerm, ProtocolVersion};
pub use recovery::{Recovered, RecoveryError};
pub use state::{Role, State};
pub use terms::{TermEntry, Terms};

/// Term of an empty log, and of a message that names none.
pub const NULL_TERM: i64 = -1;

/// Position that is not known.
pub const NULL_POSITION: i64 = -1;
