// SPDX-License-Identifier: Apache-2.0
//! No client is lost without a reason.
//!
//! Input: how a client ended or failed to connect without being asked to, and the history of it and its driver until
//! then. Link faults are not a reason, nor are steps of a wall clock.

use std::time::Duration;

use taran::{CloseReason, ConnectError, Lost};

use super::{Violation, violation};

/// A client or driver that stalls for less than this must not be declared dead. It is the timeout (10 s) less the
/// keepalive interval (at most 1 s) and the gaps between duty cycles that the simulation causes on its own (half a
/// second, twice).
const DEATH_STALL: Duration = Duration::from_secs(8);

/// A client must find a driver that stalls for less than this.
const CONNECT_STALL: Duration = Duration::from_secs(1);

/// Circumstances of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientHistory {
    /// Its driver has ended, or was not running when the client looked for it.
    pub driver_gone: bool,
    /// Longest gap between two duty cycles of its driver's conductor.
    pub longest_driver_stall: Duration,
    /// Longest gap between two of its own duty cycles.
    pub longest_client_stall: Duration,
}

/// Returns the reason for which a client has ended.
///
/// # Errors
/// There is none.
pub fn explain_end(end: CloseReason, history: &ClientHistory) -> Result<&'static str, Violation> {
    let driver_stalled = history.longest_driver_stall >= DEATH_STALL;
    match end {
        CloseReason::Lost(Lost::DriverShutdown) if history.driver_gone => Ok("its driver ended"),
        CloseReason::Lost(Lost::DriverProcessEnded | Lost::DriverTimeout { .. })
            if history.driver_gone =>
        {
            Ok("its driver died")
        }
        CloseReason::Lost(Lost::DriverTimeout { .. }) if driver_stalled => Ok("its driver stalled"),
        CloseReason::Lost(Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. })
            if history.longest_client_stall >= DEATH_STALL =>
        {
            Ok("it stalled")
        }
        _ => violation!("lost without a reason: {end:?}, {history:?}"),
    }
}

/// Returns the reason for which a client could not connect.
///
/// # Errors
/// There is none.
pub fn explain_connect_failure(
    error: &ConnectError,
    history: &ClientHistory,
) -> Result<&'static str, Violation> {
    if history.driver_gone {
        return Ok("there was no driver");
    }
    if history.longest_driver_stall >= CONNECT_STALL
        || history.longest_client_stall >= CONNECT_STALL
    {
        return Ok("its driver or it stalled");
    }
    violation!("not connected without a reason: {error}, {history:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHUTDOWN: CloseReason = CloseReason::Lost(Lost::DriverShutdown);
    const DRIVER_ENDED: CloseReason = CloseReason::Lost(Lost::DriverProcessEnded);
    const DRIVER_TIMED_OUT: CloseReason = CloseReason::Lost(Lost::DriverTimeout {
        age: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    });
    const CLIENT_TIMED_OUT: CloseReason = CloseReason::Lost(Lost::ClientTimeout {
        liveness: Duration::from_secs(10),
    });

    #[test]
    fn client_end_is_accepted_only_with_its_own_reasons() {
        let undisturbed = ClientHistory::default();
        let gone = ClientHistory {
            driver_gone: true,
            ..undisturbed
        };
        let longest_driver_stall = ClientHistory {
            longest_driver_stall: DEATH_STALL,
            ..undisturbed
        };
        let longest_client_stall = ClientHistory {
            longest_client_stall: DEATH_STALL,
            ..undisturbed
        };
        for (end, history, is_accepted) in [
            (SHUTDOWN, undisturbed, false),
            (SHUTDOWN, gone, true),
            (SHUTDOWN, longest_driver_stall, false),
            (DRIVER_ENDED, undisturbed, false),
            (DRIVER_ENDED, gone, true),
            (DRIVER_ENDED, longest_driver_stall, false),
            (DRIVER_TIMED_OUT, undisturbed, false),
            (DRIVER_TIMED_OUT, gone, true),
            (DRIVER_TIMED_OUT, longest_driver_stall, true),
            (DRIVER_TIMED_OUT, longest_client_stall, false),
            (CLIENT_TIMED_OUT, undisturbed, false),
            (CLIENT_TIMED_OUT, gone, false),
            (CLIENT_TIMED_OUT, longest_driver_stall, false),
            (CLIENT_TIMED_OUT, longest_client_stall, true),
            (CloseReason::Closed, gone, false),
            (CloseReason::Lost(Lost::ConductorFailed), gone, false),
        ] {
            assert_eq!(
                explain_end(end, &history).is_ok(),
                is_accepted,
                "{end:?} {history:?}"
            );
        }
    }

    #[test]
    fn connect_failure_is_accepted_only_with_a_stalled_driver() {
        let error = ConnectError::NoDriver {
            directory: "/a".into(),
            waited: CONNECT_STALL,
        };
        let stalled = ClientHistory {
            longest_driver_stall: CONNECT_STALL,
            ..ClientHistory::default()
        };
        explain_connect_failure(&error, &stalled).unwrap();
        explain_connect_failure(&error, &ClientHistory::default()).unwrap_err();
    }
}
