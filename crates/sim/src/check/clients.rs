//! No client is lost for no reason.
//!
//! Input: how a client ended, or failed to connect, without being told to, and what befell it and its driver until then.
//! The weather is no reason, nor are clocks that are set.

use std::time::Duration;

use taran::{ClientEnd, ConnectError, Lost};

use super::{Violation, violation};

/// A client that rested for less is not given up, and a driver that did is not: their timeouts (10 s) without the time
/// between two signs of life (1 s at most) and the time for which agents of these worlds have no turn though nobody stops
/// them (half a second, twice).
const LONG: Duration = Duration::from_secs(8);

/// A client finds a driver that rests for less.
const SHORT: Duration = Duration::from_secs(1);

/// What befell a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lot {
    /// The driver that it has connected to, or looked for, has ended, or was not there.
    pub is_deserted: bool,
    /// The longest time in which its driver had no turn.
    pub driver_rested: Duration,
    /// The longest time in which it had none itself.
    pub client_rested: Duration,
}

/// Why a client has ended.
///
/// # Errors
/// For no reason.
pub fn ended(end: ClientEnd, lot: &Lot) -> Result<&'static str, Violation> {
    let silent = lot.driver_rested >= LONG;
    match end {
        ClientEnd::Lost(Lost::DriverShutdown) if lot.is_deserted => Ok("its driver ended"),
        ClientEnd::Lost(Lost::DriverTimeout { .. }) if lot.is_deserted => Ok("its driver died"),
        ClientEnd::Lost(Lost::DriverTimeout { .. }) if silent => Ok("its driver stood still"),
        ClientEnd::Lost(Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. })
            if lot.client_rested >= LONG =>
        {
            Ok("it stood still")
        }
        _ => violation!("lost for no reason: {end:?}, {lot:?}"),
    }
}

/// Why a client has not connected.
///
/// # Errors
/// For no reason.
pub fn not_connected(error: &ConnectError, lot: &Lot) -> Result<&'static str, Violation> {
    if lot.is_deserted {
        return Ok("there was no driver");
    }
    if lot.driver_rested >= SHORT || lot.client_rested >= SHORT {
        return Ok("its driver or it stood still");
    }
    violation!("does not connect for no reason: {error}, {lot:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHUTDOWN: ClientEnd = ClientEnd::Lost(Lost::DriverShutdown);
    const SILENT: ClientEnd = ClientEnd::Lost(Lost::DriverTimeout {
        age: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    });
    const GIVEN_UP: ClientEnd = ClientEnd::Lost(Lost::ClientTimeout {
        liveness: Duration::from_secs(10),
    });

    #[test]
    fn each_end_has_its_own_reasons() {
        let calm = Lot::default();
        let deserted = Lot {
            is_deserted: true,
            ..calm
        };
        let driver_rested = Lot {
            driver_rested: LONG,
            ..calm
        };
        let client_rested = Lot {
            client_rested: LONG,
            ..calm
        };
        for (end, lot, is_fine) in [
            (SHUTDOWN, calm, false),
            (SHUTDOWN, deserted, true),
            (SHUTDOWN, driver_rested, false),
            (SILENT, calm, false),
            (SILENT, deserted, true),
            (SILENT, driver_rested, true),
            (SILENT, client_rested, false),
            (GIVEN_UP, calm, false),
            (GIVEN_UP, deserted, false),
            (GIVEN_UP, driver_rested, false),
            (GIVEN_UP, client_rested, true),
            (ClientEnd::Closed, deserted, false),
            (ClientEnd::Lost(Lost::ConductorFailed), deserted, false),
        ] {
            assert_eq!(ended(end, &lot).is_ok(), is_fine, "{end:?} {lot:?}");
        }
    }

    #[test]
    fn who_does_not_connect_had_nobody_to_connect_to() {
        let error = ConnectError::NoDriver {
            directory: "/a".into(),
            waited: SHORT,
        };
        let rested = Lot {
            driver_rested: SHORT,
            ..Lot::default()
        };
        not_connected(&error, &rested).unwrap();
        not_connected(&error, &Lot::default()).unwrap_err();
    }
}
