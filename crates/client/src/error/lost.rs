// SPDX-License-Identifier: Apache-2.0
//! Reasons for the loss of a driver.

use std::time::Duration;

/// Reason why a client and its resources became unusable without being closed by the application.
///
/// A lost client never recovers: the driver has freed its resources, or may have done so. Close it and connect again.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "DriverTimeoutException")]
#[doc(alias = "ConductorServiceTimeoutException")]
#[doc(alias = "ClientTimeoutException")]
pub enum Lost {
    /// The driver was shut down in an orderly way.
    #[error("the media driver has shut down; start it again and connect again")]
    DriverShutdown,
    /// The driver ended without shutting down: it was killed or has crashed. Known at the next check, within half a second.
    /// Official drivers do not show this; their end is a [`DriverTimeout`](Self::DriverTimeout).
    #[error(
        "the media driver has ended without shutting down: it was killed or has crashed; start it again and connect \
         again"
    )]
    DriverProcessEnded,
    /// The driver's heartbeat stopped: the driver was not scheduled for longer than the driver timeout, or it is an
    /// official driver that was killed.
    #[error(
        "the media driver has not updated its heartbeat for {age:?} (aeron.driver.timeout = {timeout:?}): it was \
         killed or not scheduled; start it again and connect again"
    )]
    DriverTimeout {
        /// Time since the driver's last heartbeat.
        age: Duration,
        /// The driver timeout in force.
        timeout: Duration,
    },
    /// The driver timed this client out: it saw no heartbeat for the client liveness timeout.
    #[error(
        "the media driver has timed this client out after {liveness:?} without a heartbeat \
         (aeron.client.liveness.timeout of the driver); make sure that the client conductor is scheduled, and connect \
         again"
    )]
    ClientTimeout {
        /// The driver's client liveness timeout.
        liveness: Duration,
    },
    /// The client conductor did not run for longer than the inter-service timeout, so the driver may have timed this
    /// client out.
    #[error(
        "the client conductor did not run for {interval:?}, longer than the inter-service timeout of {limit:?}; \
         call `Client::invoke` more often or leave the conductor on its own thread, and connect again"
    )]
    ServiceInterval {
        /// Time between two duty cycles of the conductor.
        interval: Duration,
        /// The inter-service timeout in force.
        limit: Duration,
    },
    /// The client conductor's thread has panicked: a bug in this library.
    #[error("the client conductor has failed, which is a bug; please report it, and connect again")]
    ConductorFailed,
}

taran_core::debug_is_display!(Lost);
