//! Why a client lost its driver.

use std::time::Duration;

/// Why a client, and all that was made through it, can not be used any more although nobody closed it.
///
/// A lost client never recovers: the driver has freed its resources, or has to be assumed to have done so. Close it
/// and connect again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The driver said good-bye: it was stopped in an orderly way.
    #[error("the media driver has shut down; start it again and connect again")]
    DriverShutdown,
    /// The driver's heartbeat stopped: the driver was killed, or starved for longer than the driver timeout.
    #[error(
        "the media driver has given no sign of life for {age:?} (aeron.driver.timeout = {timeout:?}): it was killed \
         or starved; start it again and connect again"
    )]
    DriverTimeout {
        /// Time since the driver's last heartbeat.
        age: Duration,
        /// The driver timeout in force.
        timeout: Duration,
    },
    /// The driver gave this client up, because it saw no heartbeat of it for the client liveness timeout.
    #[error(
        "the media driver has timed this client out after {liveness:?} without a heartbeat \
         (aeron.client.liveness.timeout of the driver); see that the client conductor gets to run, and connect again"
    )]
    ClientTimeout {
        /// The driver's client liveness timeout.
        liveness: Duration,
    },
    /// The client conductor did not run for so long that the driver has to be assumed to have given this client up.
    #[error(
        "the client conductor did not run for {interval:?}, longer than the {limit:?} after which the driver gives a \
         client up; call `Client::invoke` more often or leave the conductor on its own thread, and connect again"
    )]
    ServiceInterval {
        /// Time between two turns of the conductor.
        interval: Duration,
        /// The inter-service timeout in force.
        limit: Duration,
    },
    /// The client conductor's thread has failed: a bug in this library.
    #[error("the client conductor has failed, which is a bug; please report it, and connect again")]
    ConductorFailed,
}
