// SPDX-License-Identifier: Apache-2.0
//! State of a consensus module without I/O: sessions, timers, pending messages of services, and their snapshot
//! (`docs/spec/cluster.md` §2, §6.5 and §8).

mod acks;
mod authorisation;
mod credentials;
mod pending;
#[cfg(test)]
mod session_tests;
mod sessions;
mod snapshot;
mod termination;
mod timers;

pub use acks::{AckError, AckRound, CompleteRound, ServiceAcks};
pub use authorisation::{AuthorisationService, CLUSTER_PROTOCOL_ID, StandardAuthorisation};
pub use credentials::{AdminAuthorisation, CredentialsError, FileAuthenticator, LineDefect};
pub use pending::{PendingMessage, PendingMessages, ServiceMessageError};
pub use sessions::{
    AcceptAll, AdminSession, Authentication, Authenticator, EgressState, Handle, Leadership,
    Session, SessionIo, SessionLimits, SessionPhase, Sessions,
};
pub use snapshot::{
    MODULE_SNAPSHOT_TYPE, ModuleSnapshot, SERVICE_SNAPSHOT_TYPE, SnapshotError, SnapshotReader,
    SnapshotService,
};
pub use termination::{Termination, TerminationInput, TerminationStep};
pub use timers::Timers;
