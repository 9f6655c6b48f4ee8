// SPDX-License-Identifier: Apache-2.0
//! Opening of `cnc.dat`.

use std::path::PathBuf;
use std::time::Duration;

use taran_core::memory::{LockProbe, MemoryError};
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::{CNC_FILE_NAME, CNC_HEADER_LENGTH, Cnc, CncError, with_driver_lock};

use super::{SHUT_DOWN, WAIT_FOR_FILE, WAIT_FOR_START};
use crate::builder::ClientBuilder;
use crate::error::ConnectError;

/// A valid `cnc.dat`; its driver may have ended.
pub(super) struct OpenedCnc {
    pub(super) path: PathBuf,
    pub(super) cnc: Cnc,
    pub(super) producer: Producer,
    /// The lock of a Taran driver; official drivers have none.
    pub(super) lock: Option<LockProbe>,
}

impl OpenedCnc {
    /// Returns true if the driver has ended without setting its last heartbeat.
    pub(super) fn has_driver_died(&self) -> bool {
        has_driver_died(self.lock.as_ref(), &self.producer)
    }
}

/// Returns true if a driver with this lock has ended without setting its last heartbeat.
pub(super) fn has_driver_died(lock: Option<&LockProbe>, producer: &Producer) -> bool {
    // The heartbeat is read last: a driver sets its last one before it releases the lock.
    lock.is_some_and(|lock| !lock.is_held()) && producer.consumer_heartbeat_ms() != SHUT_DOWN
}

/// Reason why there is no valid `cnc.dat`.
pub(super) struct CncUnavailable {
    pub(super) error: ConnectError,
    /// Delay before the next attempt; `None` if a starting driver cannot be the cause.
    pub(super) retry_after: Option<Duration>,
}

/// Opens and validates the `cnc.dat` in the directory of a builder.
pub(super) fn open(builder: &ClientBuilder) -> Result<OpenedCnc, CncUnavailable> {
    let directory = builder.directory();
    let path = directory.join(CNC_FILE_NAME);
    let open = || {
        let opened = builder.storage.open(&path);
        let region = opened.map_err(|error| CncUnavailable {
            error: open_error(builder, error, path.clone()),
            retry_after: Some(WAIT_FOR_FILE),
        })?;
        Cnc::open(&region).map_err(|error| CncUnavailable {
            retry_after: error.is_not_ready().then_some(WAIT_FOR_START),
            error: cnc_error(builder, error, path.clone()),
        })
    };
    let (cnc, lock) = with_driver_lock(builder.storage.as_ref(), &directory, open)?;
    let producer = Producer::open(&cnc.to_driver).map_err(|error| CncUnavailable {
        error: ConnectError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        },
        retry_after: None,
    })?;
    Ok(OpenedCnc {
        path,
        cnc,
        producer,
        lock,
    })
}

fn open_error(builder: &ClientBuilder, error: MemoryError, path: PathBuf) -> ConnectError {
    match error {
        MemoryError::NotFound { .. } => ConnectError::NoDriver {
            directory: builder.directory(),
            waited: builder.timeout(),
        },
        MemoryError::Empty { .. } => ConnectError::TooShort {
            path,
            length: 0,
            needed: CNC_HEADER_LENGTH,
        },
        error => ConnectError::NotReadable {
            path,
            reason: error.to_string(),
        },
    }
}

fn cnc_error(builder: &ClientBuilder, error: CncError, path: PathBuf) -> ConnectError {
    match error {
        CncError::TooShort { length, needed } => ConnectError::TooShort {
            path,
            length,
            needed,
        },
        CncError::NotReady => ConnectError::NotReady {
            path,
            waited: builder.timeout(),
        },
        CncError::Version { found, expected } => ConnectError::Version {
            path,
            found,
            expected,
        },
        error => ConnectError::Damaged {
            path,
            reason: error.to_string(),
        },
    }
}
