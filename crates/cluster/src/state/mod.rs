//! State of a consensus module without I/O: sessions, timers, pending messages of services, and their snapshot
//! (`docs/spec/cluster.md` §2, §6.5 and §8).

mod pending;
#[cfg(test)]
mod session_tests;
mod sessions;
mod snapshot;
mod timers;

pub use pending::{PendingMessage, PendingMessages, ServiceMessageError};
pub use sessions::{
    AcceptAll, AdminSession, Authentication, Authenticator, EgressState, Handle, Leadership,
    Session, SessionIo, SessionLimits, SessionPhase, Sessions,
};
pub use snapshot::{
    MODULE_SNAPSHOT_TYPE, ModuleSnapshot, SERVICE_SNAPSHOT_TYPE, SnapshotError, SnapshotReader,
    SnapshotService,
};
pub use timers::Timers;
